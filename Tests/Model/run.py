#!/usr/bin/env python3
"""The protocol, walked: builds walker.cpp, runs it, and holds the model against the Swift functions
that it follows. `run.py [--all] [--accept] [WALKER OPTION …]`; the last line counts.

The model names those functions in brackets, `[Settle.own]`. steps.txt keeps what each of them does
to shared words, in its order; where the source does something else by now the suite fails, until
the model has been made to follow and --accept has written the list again."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent
SOURCES = [ROOT / "Sources/CordwoodCore", ROOT / "Sources/Cordwood/Engine"]
STEPS = HERE / "steps.txt"
TAG = re.compile(r"\[([A-Z]\w+)\.(\w+)\]")
# Atomics with what they go to, plain stores to words that others read, fences, a reader's looks.
STEP = re.compile(
    r"(cwa_\w+)\(([^,()]*(?:\([^()]*\))?[^,()]*)"
    r"|pointee\.(busy|ptr|chunk|segment|settling|salt|base|generation|retired) (?:=|&\+=) "
    r"|(Membarrier\.\w+|Verdict\.load|Settle\.own|Settle\.forced)\("
    r"|\b(flock|renameat|unlinkFile|renameSpare|renameToSpare|isResident|isQuiet|recheck|refresh"
    r"|storeBytes|copyMemory|writeHeader|takeSpare|makeInLine|fence"
    r"|leaveChunk|setSegment|written)\(")


def tags():
    found = set()
    for path in sorted(HERE.glob("*.h")):
        found |= set(TAG.findall(path.read_text()))
    return sorted(found)


def body(type_name, member):
    """The text of that member of that type; None where there is none."""
    declares = re.compile(r"\b(?:enum|struct|class|extension) " + type_name + r"\b")
    head = re.compile(r"^    .*\b(?:init|(?:func|var) )" + re.escape(member) + r"\b"
                      if member != "init" else r"^    .*\binit\??\(", re.M)
    for path in sorted(p for source in SOURCES for p in source.rglob("*.swift")):
        text = path.read_text()
        start = declares.search(text)
        found = head.search(text, start.end()) if start else None
        if found is None:
            continue
        end = text.find("\n    }\n", found.start())
        line = text.find("\n", found.start())
        if text[found.start():line].rstrip().endswith("}"):
            end = line
        return text[found.start():end]
    return None


def steps(text):
    code = re.sub(r"//.*", "", text)
    code = re.sub(r"\s+", " ", code)
    result = []
    for name, target, word, barrier, call in STEP.findall(code):
        if name:
            result.append(f"{name} {target.replace('unsafe ', '').strip()}".strip())
        else:
            result.append(f"{word} =" if word else barrier or call)
    return "; ".join(result)


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
        STEPS.write_text("".join(f"{name}: {now[name]}\n" for name in sorted(now)))
    lines = STEPS.read_text().splitlines() if STEPS.exists() else []
    known = {name: rest for name, _, rest in (line.partition(": ") for line in lines)}
    known = {name.rstrip(":"): rest for name, rest in known.items()}
    for name in sorted(now.keys() | known.keys()):
        if name not in now:
            problems.append(f"{name}: stands in steps.txt only")
        elif now[name] != known.get(name):
            problems.append(f"{name} has changed; make the model follow, then run.py --accept\n"
                            f"    was {known.get(name)}\n    is  {now[name]}")
    return len(now), problems


def main():
    options = sys.argv[1:]
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
