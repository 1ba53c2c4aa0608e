#!/usr/bin/env python3
"""The engine under the thread sanitizer, the address sanitizer, the undefined behaviour sanitizer
(its C parts, and the headers' own code in hosts) and valgrind: builds the library of each kind, and
runs stress.c against it.
`run.py [--size S] [--seconds N] [-k PATTERN …] [shims] [headers] [transfers] [valgrind] [thread]
[address]`; the last line counts. Findings stay in build/sanitizers/NAME.log."""

import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "TestSupport"))

import cases  # noqa: E402
from cases import Failed, full, only_all  # noqa: E402
from settings import forget_settings  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FUZZ = ROOT / "Tests/Fuzz"
WORK = ROOT / "build/sanitizers"
RUNTIME = ("swiftSwiftOnoneSupport", "swiftCore", "swiftSynchronization", "swiftGlibc",
           "swift_Concurrency", "swift_StringProcessing", "dispatch", "BlocksRuntime")


def run(command, log, environment=None, seconds=600):
    """Returns the output. A failed or slow command raises Failed."""
    try:
        done = subprocess.run([str(word) for word in command], cwd=ROOT, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=dict(os.environ, **(environment or {})), timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{command[0]} takes over {seconds} s") from error
    text = done.stdout.decode(errors="replace")
    with open(WORK / log, "a", encoding="utf-8") as file:
        file.write(text)
    if done.returncode != 0:
        raise Failed(f"exit {done.returncode}; see build/sanitizers/{log}\n{text[-3000:]}")
    return text


def toolchain():
    tools = Path(os.path.realpath(shutil.which("swift"))).parent
    return tools / "clang", tools.parent / "lib/swift/linux"


def sanitized(kind, log, sources=(HERE / "stress.c",)):
    """A program over a library of that kind, all of it, Swift and C."""
    clang, library = toolchain()
    scratch = ROOT / "build" / f"sanitize-{kind}"
    scratch.mkdir(parents=True, exist_ok=True)
    # What SwiftPM has already fetched is not fetched again.
    for name in ("checkouts", "repositories", "workspace-state.json"):
        there = ROOT / ".build" / name
        if there.is_dir() and not (scratch / name).exists():
            shutil.copytree(there, scratch / name, symlinks=True)
        elif there.is_file() and not (scratch / name).exists():
            shutil.copy(there, scratch / name)
    packages = {"PKG_CONFIG_PATH": str(ROOT / "build/work/pkgconfig")}
    command = ["swift", "build", "--scratch-path", scratch, f"--sanitize={kind}", "--product",
               "CordwoodABI", "-Xswiftc", "-DCORDWOOD_INVARIANTS"]
    run(command, log, packages, 3600)
    folder = subprocess.run([*map(str, command), "--show-bin-path"], cwd=ROOT, check=True,
                            text=True, stdout=subprocess.PIPE,
                            env=dict(os.environ, **packages)).stdout.strip()
    program = WORK / f"{sources[0].stem}-{kind}"
    machine = os.uname().machine
    run([clang, "-std=gnu11", "-O1", "-g", f"-fsanitize={kind}", f"-I{ROOT}/include",
         *sources, "-o", program, f"-L{library}", f"-Wl,-rpath,{library}",
         library / machine / "swiftrt.o", "-Wl,--whole-archive", f"{folder}/libCordwoodABI.a",
         "-Wl,--no-whole-archive", f"-L{ROOT}/build/work/archives",
         *[f"-l{name}" for name in RUNTIME], "-l:libzstd.a", "-l:liblz4.a", "-l:libsodium.a",
         "-l:libz.a", "-l:libjansson.a", "-l:libexpat.a",
         "-lstdc++", "-lm", "-lpthread", "-ldl"], log)
    return program


def plain():
    program = WORK / "stress"
    run(["cc", "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include",
         HERE / "stress.c", "-o", program, f"-L{ROOT}/build/lib", "-lcordwood", "-lpthread",
         f"-Wl,-rpath,{ROOT}/build/lib"], "plain.log")
    return program


def shims(log):
    """The C that reads and writes untrusted bytes."""
    clang, _ = toolchain()
    folder = ROOT / "Sources/CShims"
    texts = []
    for test, sources in (("shims_test.c", ["shims.c", "made.c", "fork.c", "crash_text.c"]),
                          ("scan_test.c", ["tokens.c"]), ("json_test.c", ["scan.c"]),
                          # It includes reserve.c.
                          ("reserve_test.c", ["shims.c", "made.c", "fork.c"])):
        program = WORK / test.removesuffix("_test.c")
        run([clang, "-std=gnu11", "-O1", "-g", "-fsanitize=undefined,address",
             "-fno-sanitize-recover=all", "-I", folder / "include", "-I", folder, HERE / test,
             *[folder / source for source in sources], "-o", program, "-lpthread", "-ldl"], log)
        texts.append(run([program], log, {"ASAN_OPTIONS": "detect_leaks=0"}).strip())
    return "\n".join(texts)


def headers(log):
    """Code that the headers compile into hosts, and C++ formatters by seed."""
    consumers = ROOT / "Tests/Consumers"
    said = ""
    for source, compiler in ((consumers / "consumer.c", ("cc", "-std=gnu11")),
                             (consumers / "bad_input.c", ("cc", "-std=gnu11")),
                             (consumers / "consumer.cpp", ("c++", "-std=c++17")),
                             (consumers / "formats.cpp", ("c++", "-std=c++17")),
                             (HERE / "formatters.cpp", ("c++", "-std=c++17"))):
        program = WORK / f"header-{source.name}"
        run([*compiler, "-O1", "-g", "-fsanitize=undefined,address", "-fno-sanitize-recover=all",
             f"-I{ROOT}/include", source, "-o", program, f"-L{ROOT}/build/lib", "-lcordwood",
             "-lpthread", f"-Wl,-rpath,{ROOT}/build/lib"], log)
        words = []
        if source.parent == consumers:
            words = [WORK / f"store-{source.name}"]
            shutil.rmtree(words[0], ignore_errors=True)
        said = run([program, *words], log, {"ASAN_OPTIONS": "detect_leaks=0"}).strip()
    return said


def transfers(log, whole):
    """What libcurl reports, whole and in pieces, by seed; memory leaks are found. whole: the
    library is of that kind, too, not only its allocations."""
    sys.path.insert(0, str(FUZZ))
    from seeds import transfer_seeds  # pylint: disable=import-outside-toplevel
    sources = (FUZZ / "curl.c", FUZZ / "driver.c")
    if whole:
        program = sanitized("address", log, sources)
    else:
        program = WORK / "curl"
        clang, _ = toolchain()
        run([clang, "-std=gnu11", "-O1", "-g", "-fsanitize=undefined,address",
             "-fno-sanitize-recover=all", f"-I{ROOT}/include", *sources, "-o", program,
             f"-L{ROOT}/build/lib", "-lcordwood", "-lpthread",
             f"-Wl,-rpath,{ROOT}/build/lib"], log)
    folder = WORK / "transfers"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, data in transfer_seeds():
        (folder / name).write_bytes(data)
    return run([program, "-runs", "2000", "-keep", WORK, folder], log,
               {"ASAN_OPTIONS": "detect_leaks=1 exitcode=66",
                "LSAN_OPTIONS": f"suppressions={HERE}/lsan.supp print_suppressions=0"}).strip()


def stress(kind, log, seconds):
    store = WORK / f"store-{kind}"
    shutil.rmtree(store, ignore_errors=True)
    environment, command = {}, [store, seconds]
    if kind == "valgrind":
        # valgrind cannot read Swift's debug information, so the library is stripped of it.
        command = ["valgrind", "--error-exitcode=66", "--leak-check=no", "--num-callers=30",
                   f"--suppressions={HERE}/valgrind.supp", plain(), *command]
    else:
        command = [sanitized(kind, log), *command]
        environment = {
            "TSAN_OPTIONS": f"exitcode=66 suppressions={HERE}/tsan.supp",
            "ASAN_OPTIONS": "detect_leaks=0 exitcode=66",
        }
    text = run(command, log, environment)
    found = re.search(r"(\d+) records, (\d+) of writers", text)
    if not found or int(found[2]) < 1000:
        raise Failed(f"too few records to say anything: {text[-500:]}")
    return f"{found[1]} records"


# The C shims, the headers' code and what libcurl reports, under the sanitizers of addresses and of
# undefined behaviour. Thread and address are those of the whole library, which each builds again.
CASES = {"shims": lambda log, _: shims(log), "headers": full(lambda log, _: headers(log)),
         "transfers": full(lambda log, _: transfers(log, False)),
         "valgrind": full(partial(stress, "valgrind")),
         "thread": only_all(partial(stress, "thread")),
         "address": only_all(lambda log, seconds: stress("address", log, seconds) + "\n"
                             + transfers(log, True))}


def main():
    parser = cases.parser()
    parser.add_argument("--seconds", type=int, default=4)
    arguments = parser.parse_args()
    table = cases.chosen(CASES, arguments)
    WORK.mkdir(parents=True, exist_ok=True)
    forget_settings()
    run = cases.Run()

    def one(name, case):
        log = f"{name}.log"
        (WORK / log).unlink(missing_ok=True)
        return case(log, arguments.seconds)
    run.all(table, one)
    return run.end()


if __name__ == "__main__":
    sys.exit(main())
