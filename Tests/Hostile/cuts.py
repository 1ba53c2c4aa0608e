"""Files that were cut or lost: each reading verb names them, exits with 3, and returns the rest."""

import os
import random
import subprocess
import sys
import warnings

import cases
from cases import Failed, full, sized
from harness import CORDWOOD, LIBRARY, ROOT, tool

os.environ.setdefault("CORDWOOD_LIBRARY", str(LIBRARY / "libcordwood.so"))
sys.path.insert(0, str(ROOT / "bindings/python/src"))

import cordwood  # noqa: E402

WHOLE = "what is whole"
# A process with more names than fit into a lane file, which is killed.
MANY_NAMES = """
import cordwood, os, sys
engine = cordwood.open(sys.argv[1])
for number in (*range(1500), *range(1500)):  # the first ones may be archived by now
    engine.logger(f"app.part{number}.with.a.name.of.some.length").info(f"line {number}")
os.kill(os.getpid(), 9)
"""


def log(store, *lines):
    """Logs from a process that has ended."""
    subprocess.run([CORDWOOD, "log", "--store", store, "--logger", "app"],
                   input="".join(f"{line}\n" for line in lines).encode(), check=True)


def written(suite, name, filler=0):
    """A store of several segments. filler: bytes of each line that no codec makes smaller."""
    chance = random.Random(cases.seed())
    log(suite.folder / name, *(f"line {number} {chance.randbytes(filler).hex()}".rstrip()
                               for number in range(3000)))
    return suite.folder / name


def holds(condition, what):
    if not condition:
        raise Failed(what)


def warned(store):
    """The warnings of cordwood.read."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in cordwood.read(store):
            pass
    return [str(one.message) for one in told]


def all_tell(store, file):
    """Each verb's output names the file, and whole records are read."""
    for verb in (["cat", store], ["grep", "line", store], ["stats", store], ["verify", store],
                 ["tail", store, "-n", "5"], ["export", store, "--format", "raw"],
                 ["export", store, "--format", "ndjson"], ["http", store],
                 ["transactions", store], ["cat", "--since", "2100-01-01T00:00:00Z", store]):
        text = tool(*verb, codes=(3,)).text
        holds(file.name in text, f"{verb[0]} does not name {file.name}: {text[-300:]}")
        if verb == ["cat", store]:
            told = warned(store)
            holds(any(file.name in one for one in told), f"python does not name it: {told}")
        if verb in (["cat", store], ["export", store, "--format", "raw"]):
            holds(WHOLE in text, f"{verb[0]} does not give what is whole")


def tells(store, whole, words, what):
    """True if all readers report a loss, in those words; False if none does and nothing is lost."""
    done = tool("export", store, "--format", "raw", codes=(0, 3))
    if done.code == 0:
        holds(done.text == whole, f"{what}: something is gone, and nobody says so")
    else:
        holds(words in done.text, f"{what}: {done.text[-300:]}")
    for verb in ("cat", "stats", "verify"):
        code = tool(verb, store, codes=(0, 3)).code
        holds(code == done.code, f"{what}: export ends with {done.code}, {verb} {code}")
    told = warned(store)
    holds(bool(told) == (done.code == 3), f"{what}: export ends with {done.code}, python: {told}")
    return done.code == 3


def cut_archives(suite):
    """At the bounds of its parts and at random: also within its first block, so that nothing of it
    can be read, not even its own texts."""
    store = written(suite, "cut-archive", sized(0, 0, 150))
    tool("archive", store, codes=(0,))
    archive = max((store / "archives").glob("*.cwa"), key=lambda path: path.stat().st_size)
    log(store, WHOLE)
    content = archive.read_bytes()
    chance = random.Random(cases.seed())
    cuts = [cut for cut in (0, 1, 100, 200, 300, 4096) if cut < len(content) - 1]
    cuts.append(len(content) - 1)
    cuts += [chance.randrange(len(content)) for _ in range(sized(3, 8, 100))]
    cuts += sized((), (), range(0, len(content), 4096))
    for cut in cuts:
        archive.write_bytes(content[:cut])
        try:
            all_tell(store, archive)
        except Failed as why:
            raise Failed(f"cut to {cut} of {len(content)}: {why}") from None
    archive.write_bytes(content)
    tool("verify", store, codes=(0,))
    return f"{len(cuts)} cuts of {len(content)} bytes"


@full
def cut_lanes(suite):
    """Segments and lane files of this boot, cut at page bounds and at random. All readers report a
    loss; none does if nothing is lost."""
    store = written(suite, "cut-lane")
    whole = tool("export", store, "--format", "raw", codes=(0,)).text
    chance = random.Random(cases.seed())
    count, silent = 0, 0
    for path in sorted((store / "lanes").iterdir()):
        content = path.read_bytes()
        pages = range(0, len(content), 4096)
        cuts = {*pages[:4], *chance.sample(pages, min(len(pages), 6)),
                *(chance.randrange(len(content)) for _ in range(6))}
        for cut in sorted(sized(cuts, cuts, pages)):
            path.write_bytes(content[:cut])
            what = f"{path.name} cut to {cut} of {len(content)}"
            silent += not tells(store, whole, path.name, what)
            count += 1
        path.write_bytes(content)
    tool("verify", store, codes=(0,))
    return f"{count} cuts, {silent} behind the last record"


def cut_catalogs(suite):
    """Files of names that do not fit into the lane file, cut at page bounds and at random, or gone.
    All readers report the records whose names are lost."""
    store = suite.folder / "cut-catalog"
    subprocess.run([sys.executable, "-c", MANY_NAMES, store], check=False, env={
        **os.environ, "PYTHONPATH": str(ROOT / "bindings/python/src")})
    whole = tool("export", store, "--format", "raw", codes=(0,)).text
    files = sorted((store / "lanes").glob("*.catalog-*"))
    holds(files, "all names are in the lane file")
    chance = random.Random(cases.seed())
    count, silent = 0, 0
    for path in files:
        content = path.read_bytes()
        pages = range(0, len(content), 4096)
        cuts = {None, 0, 1, *chance.sample(pages, min(len(pages), 6)),
                *(chance.randrange(len(content)) for _ in range(6))}
        for cut in sized(cuts, cuts, [None, *pages]):
            path.unlink()
            if cut is not None:
                path.write_bytes(content[:cut])
            what = f"{path.name} cut to {cut} of {len(content)}"
            silent += not tells(store, whole, "names or attributes are lost", what)
            count += 1
            path.unlink(missing_ok=True)
            path.write_bytes(content)
    tool("verify", store, codes=(0,))
    return f"{count} cuts, {silent} behind the last name"


def lost_lane_file(suite):
    """A lane's segments without the file that names their owner."""
    store = written(suite, "lost-lane")
    lane, = (store / "lanes").glob("*.lane")
    lane.unlink()
    left = set(os.listdir(store / "lanes"))
    holds(left, "it had no segment of its own")
    log(store, WHOLE)
    all_tell(store, lane)
    text = tool("archive", store, codes=(3,)).text
    holds(lane.stem in text, f"archive does not name it: {text}")
    holds(left <= set(os.listdir(store / "lanes")), "archive removed its segments")


CASES = [cut_archives, cut_lanes, cut_catalogs, lost_lane_file]
