"""docs/UPLOADS.md as read by a program: the commands of a section as written there, and the table
for ClickHouse."""

import re
import shlex

from frame import ROOT, Failed

PAGE = ROOT / "docs/UPLOADS.md"


def sections():
    """Sections by title, of either level."""
    parts = re.split(r"^##+ (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def blocks(title):
    """A section's indented blocks, in order."""
    found, block = [], []
    for line in [*sections()[title].splitlines(), "end"]:
        if line.startswith("    ") or not line and block:
            block.append(line[4:])
        elif block:
            found.append("\n".join(block).strip() + "\n")
            block = []
    return found


def block(title, opening):
    """The only block of a section that begins so."""
    found = [text for text in blocks(title) if text.startswith(opening)]
    if len(found) != 1:
        raise Failed(f"{PAGE}: {len(found)} blocks in {title} begin with {opening}")
    return found[0]


def commands(title):
    """The shell commands of a section, each with all its lines."""
    found, command = [], ""
    for line in "".join(blocks(title)).replace("\\\n", " ").splitlines():
        command = f"{command}\n{line}" if command else line
        try:
            shlex.split(command.removesuffix("&"), comments=True)
        except ValueError:
            continue  # a quote is still open
        found += [command] if is_command(command) else []
        command = ""
    if not found:
        raise Failed(f"{PAGE}: no command in {title}")
    return found


PROGRAMS = {"cordwood", "curl", "rclone", "rotel-agent", "mkdir"}


def is_command(text):
    words = [word for word in shlex.split(text.removesuffix("&"), comments=True)
             if not re.match(r"CORDWOOD_\w+=", word)]
    return bool(words) and words[0] in PROGRAMS


def table():
    """The page's table for ClickHouse."""
    found = [block for block in blocks("clickhouse") if block.startswith("CREATE TABLE")]
    if len(found) != 1:
        raise Failed(f"{PAGE}: {len(found)} tables for ClickHouse")
    return found[0]
