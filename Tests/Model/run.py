#!/usr/bin/env python3
"""Walks the protocol: builds walker.cpp, runs it, and checks the model against the Swift functions
that it follows. `run.py [--accept] [WALKER OPTION …]`; the last line counts.

The model names those functions in brackets, `[Settle.own]`. steps.txt keeps their statements, one
per line, without comments, `unsafe` and layout: calls with their operands, conditions, assignments.
If a source differs, the suite fails and shows the lines, until the model follows and
`Tests/Model/run.py --accept` has written the list again."""

import difflib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "TestSupport"))

from cases import sized  # noqa: E402

SOURCES = [ROOT / "Sources" / name for name in ("CordwoodCore", "CordwoodStore/Lanes",
                                                "CordwoodStore/Keep", "CordwoodEngine/Services")]
STEPS = HERE / "steps.txt"
TAG = re.compile(r"\[([A-Z]\w+)\.(\w+)\]")
TOKEN = re.compile(r"""\s*(?:(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<word>[\w$]+|`\w+`|"(?:\\.|[^"])*")
    |(?P<close>[)\]}])|(?P<open>[(\[{])
    |(?P<mark>[?!](?!=)|[^\s\w(\[{)\]}"?]+|[?!]=+))""", re.S | re.X)
# A statement continues after the first and before the second. Other adjacent words are separate.
GOES_ON = set("return guard if while for switch case let var try inout throw defer where in as is "
              "func static private fileprivate package public init else".split())
CARRIES_ON = {"else", "where", "in", "as", "is", "throws"}


def tags():
    found = set()
    for path in sorted(HERE.glob("*.h")):
        found |= set(TAG.findall(path.read_text()))
    return sorted(found)


def body(type_name, member):
    """The source text of a type's member, declaration included; None if it has no such member."""
    declares = re.compile(r"\b(?:enum|struct|class|extension) " + type_name + r"\b")
    head = re.compile(r"\b(?:func|var)\s+" + re.escape(member) + r"\b" if member != "init"
                      else r"\binit\??\s*\(")
    for path in sorted(p for source in SOURCES for p in source.rglob("*.swift")):
        text = path.read_text()
        start = declares.search(text)
        found = head.search(text, start.end()) if start else None
        if found is None:
            continue
        depth = 0
        for token in TOKEN.finditer(text, found.start()):
            depth += bool(token["open"]) - bool(token["close"])
            if depth == 0 and token["close"] == "}":
                return text[found.start():token.end()]
    return None


def is_apart(last, token, now):
    """Whether a space separates two tokens."""
    if token["open"]:
        return bool(last["mark"]) or last["word"] in GOES_ON
    return not (last["open"] or last["mark"] == "." or token["close"]
                or now in (",", ":", ".", "?", "!"))


def steps(text):
    """The statements, each as its tokens with one space between words."""
    result, line, last, within = [], "", None, [None]
    for token in TOKEN.finditer(text):
        word = token["word"]
        if token["comment"] or word == "unsafe":
            continue
        now = word or token["open"] or token["close"] or token["mark"]
        ended = last is not None and (last["word"] or last["close"] or last["mark"] in ("?", "!"))
        begins = word and ended and within[-1] in (None, "{") and word not in CARRIES_ON and (
            not last["word"] or last["word"] not in GOES_ON)
        if token["open"]:
            within.append(now)
        elif token["close"]:
            within.pop()
        if line and (begins or now in "{}" or last["open"] == "{"):
            result.append(line)
            line = ""
        if now not in "{}":
            line += " " + now if line and is_apart(last, token, now) else now
        last = token
    # An invariant changes nothing (CordwoodCore/Format/Invariant.swift).
    return [step for step in (*result, line) if step and not step.startswith("invariant(")]


def known_steps():
    """The content of steps.txt, by function."""
    known, name = {}, None
    for line in STEPS.read_text().splitlines() if STEPS.exists() else []:
        if line.startswith("    "):
            known[name].append(line.strip())
        else:
            name = line.rstrip(":")
            known[name] = []
    return known


def compare(accept):
    """(kept, problems)"""
    now, problems = {}, []
    for type_name, member in tags():
        text = body(type_name, member)
        name = f"{type_name}.{member}"
        if text is None:
            problems.append(f"{name}: the model follows it, and the sources have it no more")
        else:
            now[name] = steps(text)
    if accept:
        STEPS.write_text("".join(
            f"{name}:\n" + "".join(f"    {step}\n" for step in now[name]) for name in sorted(now)))
    known = known_steps()
    for name in sorted(now.keys() | known.keys()):
        if name not in now:
            problems.append(f"{name}: stands in steps.txt only")
        elif now[name] != known.get(name):
            lines = difflib.unified_diff(known.get(name, []), now[name], "steps.txt", "source",
                                         lineterm="", n=0)
            problems.append(f"{name} has changed; make the model follow, then run.py --accept\n"
                            + "".join(f"    {line}\n" for line in [*lines][2:]))
    return len(now), problems


def main():
    options = [*sys.argv[1:], *sized((), (), ("--all",))]
    accept = "--accept" in options
    kept, problems = compare(accept)
    for problem in problems:
        print(f"DRIFT {problem}")
    print(f"{kept} functions of the sources are as the model has them" if not problems
          else f"{len(problems)} differ from what the model follows", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory) / "walker"
        subprocess.run(["g++", "-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror",
                        HERE / "walker.cpp", "-o", program], check=True)
        done = subprocess.run([program, *(o for o in options if o != "--accept")],
                              stdout=subprocess.PIPE, text=True, check=False)
    lines = done.stdout.splitlines()
    print("\n".join(lines[:-1]))
    counts = re.fullmatch(r"(\d+) passed, (\d+) failed", lines[-1] if lines else "")
    if counts is None:
        print(f"the walker ended with {done.returncode}\n0 passed, 1 failed")
        return 1
    failed = int(counts[2]) + len(problems)
    print(f"{int(counts[1]) + (0 if problems else 1)} passed, {failed} failed")
    return 1 if failed or done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
