"""What a mutation is, and the list of all, which the files beside it fill."""

from dataclasses import dataclass

SHIMS = "Sources/CShims/"
CORE = "Sources/CordwoodCore/Append/"
SYSTEM = "Sources/CordwoodCore/System/"
STORE = "Sources/CordwoodStore/"
SHIP = "Sources/CordwoodShip/"
ENGINE = "Sources/CordwoodEngine/"
VIEWER = "Sources/CordwoodViewer/"
PAGE = "Sources/CViewerPage/page/"


@dataclass(frozen=True)
class Edit:
    file: str
    lines: str
    becomes: str


@dataclass(frozen=True)
class Mutation:
    rule: str
    name: str
    edits: tuple
    suite: str
    case: str
    why: str
    heavy: bool = False
    release: bool = False  # the case bites only on code that is optimised as a whole


MUTATIONS = []


def mutation(rule, name, file, lines, becomes, catch, why, *, also=(), heavy=False,
             release=False):
    """also: (file, lines, becomes) of a second defence that masks this one."""
    suite, _, case = catch.partition(" ")
    edits = tuple(Edit(*edit) for edit in ((file, lines, becomes), *also))
    MUTATIONS.append(
        Mutation(rule, f"{rule}-{name}", edits, suite, case, why, heavy, release))
