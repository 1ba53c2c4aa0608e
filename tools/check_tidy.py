#!/usr/bin/env python3
"""House style that a machine can check: lines of at most 100 characters, on pages 120 (except
tables and code), files of at most 600 lines, an opening comment in each, no bare notes to oneself,
no paths of one machine, no references to missing pages, no unresolved conflicts, one oldest Swift
in all manifests and pages, and at the top nothing that a program left there."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINE_MAX, PAGE_LINE_MAX, FILE_MAX = 100, 120, 600
CODE = {".swift", ".c", ".h", ".hpp", ".cpp", ".py", ".sh", ".cmake"}
NAMES = {"dev", "run", "CMakeLists.txt"}
TOP = set(""".ci .gitignore .swift-format Benchmarks CHANGELOG.md CMakeLists.txt CONTRIBUTING.md
    LICENSE Package.swift README.md Sources Tests bindings cmake conftest.py dev docs examples
    include pytest.ini tools""".split())
# Files whose first line belongs to their tool.
UNOPENED = {"__init__.py", "Package.swift"}
OPENING = ("//", "/*", "#", '"""')
# Assembled from parts, so that this file does not match itself.
NOTES = re.compile(r"\b(?:TO" + "DO|FIX" + "ME|XX" + r"X)\b")
# A page that a comment refers to: "RELIABILITY R11", "FORMAT §8", "docs/HTTP.md".
PAGE = re.compile(r"\b([A-Z]{4,})(?:\.md\b|,? §| R\d)")
PAGES = {path.stem for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]}
PLACES = re.compile(r"(?<![\w.])/(?:wo" + "rk|ro" + "ot|home/\\w+)/")
# The first line of Package.swift has the oldest Swift (tools/common.sh, swift_floor).
FLOOR = re.compile(r"^// swift-tools-version: *([\d.]+)|\bSwift ([\d.]*\d) or later")


def listed(*words):
    out = subprocess.run(["git", "ls-files", *words], cwd=ROOT, check=True, stdout=subprocess.PIPE,
                         text=True).stdout
    return out.splitlines()


def files():
    """Git's files, and new ones in their folders. What else lies in the checkout is the user's: a
    reader of the README leaves programs, stores and an installed prefix there."""
    known = listed()
    folders = sorted({name.partition("/")[0] for name in known if "/" in name})
    new = listed("-o", "--exclude-standard", "--", *folders)
    return [ROOT / name for name in (*known, *new) if (ROOT / name).is_file()]


def opening(lines):
    """The first line that says anything, after those that tools require first."""
    for line in lines:
        if line.strip() and not line.startswith(("#!", "// swift-tools-version")):
            return line
    return "#"


def check(path, problems, floor):
    name = path.relative_to(ROOT)
    code = path.suffix in CODE or path.name in NAMES
    if not code and path.suffix not in {".md", ".yml", ".yaml", ".json", ".toml"}:
        if PLACES.search(path.read_bytes().decode("latin-1")):
            problems.append(f"{name}: a path of one machine")
        return
    lines = path.read_text(encoding="utf-8").splitlines()
    if code and len(lines) > FILE_MAX:
        problems.append(f"{name}: {len(lines)} lines, at most {FILE_MAX}")
    opens = opening(lines).lstrip().startswith(OPENING)
    if code and path.name not in UNOPENED and not opens:
        problems.append(f"{name}:1: no opening comment")
    if path.suffix == ".md":
        problems += [f"{name}:{number}: {len(line)} characters" for number, line in too_wide(lines)]
    for number, line in enumerate(lines, 1):
        if code and len(line) > LINE_MAX:
            problems.append(f"{name}:{number}: {len(line)} characters")
        if code and NOTES.search(line):
            problems.append(f"{name}:{number}: a note to oneself; write an issue instead")
        problems += [f"{name}:{number}: no page {page}" for page in PAGE.findall(line)
                     if code and page not in PAGES]
        if PLACES.search(line):
            problems.append(f"{name}:{number}: a path of one machine")
        problems += [f"{name}:{number}: Swift {''.join(found)}, but Package.swift says {floor}"
                     for found in FLOOR.findall(line) if "".join(found) != floor]
        if line.startswith(("<<<<<<< ", ">>>>>>> ")):
            problems.append(f"{name}:{number}: a conflict that nobody resolved")
        if code and (line != line.rstrip() or "\t" in line):
            problems.append(f"{name}:{number}: a tab, or white space at the end")


def too_wide(lines):
    """(number, line) of a page's prose that is not wrapped. A word may be longer than a line."""
    is_code = False
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        words = re.sub(r"`[^`]*`", "code", line).split()
        if len(line) > PAGE_LINE_MAX and not is_code and len(words) > 2 and not line.startswith(
                ("|", "    ")):
            yield number, line


def main():
    problems, seen = [], files()
    floor = FLOOR.match((ROOT / "Package.swift").read_text(encoding="utf-8"))[1]
    for path in seen:
        check(path, problems, floor)
    top = {name.partition("/")[0] for name in listed()}
    problems += [f"{name}: not of the top level" for name in sorted(top - TOP)]
    print("\n".join(problems) or f"{len(seen)} files")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
