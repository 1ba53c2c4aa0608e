#!/usr/bin/env python3
"""Checks that README.md's programs are those of examples/, word for word. Builds and runs each and
reads its records back, runs the commands beside them, and runs or compiles the code blocks on all
other pages: a reader's first copy and paste must work."""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "Tests/TestSupport"))

import cases  # noqa: E402
import snippets  # noqa: E402
import swift_hosts  # noqa: E402

PROGRAMS = {
    "c": ("examples/hello/hello.c", "hello from C"),
    "cpp": ("examples/hello/hello.cpp", "hello from C++"),
    "python": ("examples/hello/hello.py", "hello from Python"),
    "swift": ("examples/swift/Sources/Hello/main.swift", "hello from Swift"),
}


def blocks():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^```(\w+)\n(.*?)^```$", text, re.S | re.M))


def command(language, source, folder):
    """Builds the program if it must be built; returns the command that runs it."""
    library = [f"-I{ROOT}/include", f"-L{ROOT}/build/lib", "-lcordwood", "-lpthread",
               f"-Wl,-rpath,{ROOT}/build/lib", "-o", f"{folder}/hello"]
    strict = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
    if language == "c":
        subprocess.run(["cc", "-std=c11", *strict, source, *library], check=True)
    elif language == "cpp":
        subprocess.run(["g++", "-std=c++17", *strict, source, *library], check=True)
    elif language == "python":
        return [sys.executable, source]
    else:
        return [str(swift_hosts.program("Hello"))]
    return [f"{folder}/hello"]


def check(language, shown):
    path, message = PROGRAMS[language]
    if shown.get(language) != (ROOT / path).read_text(encoding="utf-8"):
        raise cases.Failed(f"README's {language} program is not {path}")
    environment = dict(os.environ, CORDWOOD_LIBRARY=str(ROOT / "build/lib/libcordwood.so"),
                       PYTHONPATH=str(ROOT / "bindings/python/src"), PYTHONDONTWRITEBYTECODE="1")
    with tempfile.TemporaryDirectory() as folder:
        run = command(language, str(ROOT / path), folder)
        subprocess.run(run, cwd=folder, env=environment, check=True)
        out = subprocess.run([str(ROOT / "build/bin/cordwood"), "cat", "--json",
                              f"{folder}/logs"], check=True, stdout=subprocess.PIPE).stdout
    messages = [json.loads(line)["message"] for line in out.splitlines()]
    cases.holds(message in messages, f"{path}: {message!r} is not among {messages}")


def commands():
    """The page's commands, without those before the first heading, which build all this, those of
    CMake and pkg-config, which the consumers suite runs, and those that never end."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    code = re.sub(r"^```.*?^```$", "", text[text.index("\n## "):], flags=re.S | re.M)
    for line in re.findall(r"^    (.+)$", code, re.M):
        if not re.search(r" tail -f | serve |cmake |pkg-config ", line):
            yield line


def check_commands(shown):
    """Runs all in one folder that looks like a checkout with the page's programs in it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("include", "build"):
            (folder / part).symlink_to(ROOT / part)
        (folder / "hello.c").write_text(shown["c"], encoding="utf-8")
        (folder / "hello.cpp").write_text(shown["cpp"], encoding="utf-8")
        for command in commands():
            done = subprocess.run(["bash", "-c", command], cwd=folder, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            # grep exits with 1 if nothing matched, which is an answer.
            if done.returncode != 0 and not (" grep " in command and done.returncode == 1):
                raise cases.Failed(f"{command}: ended {done.returncode}: {done.stdout}")


def check_block(language, code):
    """Runs or compiles a block; those in Swift are compiled with the hosts."""
    problem = None
    if language == "python":
        with tempfile.TemporaryDirectory() as folder:
            problem = snippets.run_python(code, folder)
    elif language != "swift":
        problem = snippets.compiled(language, code)
    cases.holds(not problem, problem)


def main():
    shown = blocks()
    table = {f"README {language}": (check, language, shown) for language in PROGRAMS}
    table["README commands"] = (check_commands, shown)
    for place, language, code in snippets.blocks():
        table[f"{place} {language}"] = (check_block, language, code)
    run = cases.Run()
    run.all(cases.chosen(table, cases.parser().parse_args()), lambda _, case: case[0](*case[1:]))
    return run.end()


if __name__ == "__main__":
    sys.exit(main())
