#!/usr/bin/env python3
"""Checks the layers that docs/ARCHITECTURE.md draws: modules by their imports and their
dependencies in Package.swift, rooms inside a module by the types they name. Only SYSTEM and the
files of OWN_CALLS may import the C library or name a system call. Swift modules must have the
setting for strict memory safety, and no folder may hold too many files. The page's arrows are drawn
from the imports: `check_layers.py --draw` writes them there."""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIBC = {"Glibc", "Musl", "Darwin"}
SYNC = {"Synchronization"}
FORMATS = {"CordwoodFormats"}
STORE = FORMATS | {"CordwoodCore", "CordwoodStore"}
ENGINE = STORE | {"CordwoodShip", "CordwoodTrace", "CordwoodEngine"}
MODULES = {
    "CordwoodFormats": {"CExpat", "CJansson", "CSodium", "CZlib", "CZstd"} | SYNC,
    "CordwoodCore": {"CShims", "CCordwood"} | SYNC,
    "CordwoodStore": FORMATS | {"CordwoodCore", "CLZ4", "CShims", "CSodium", "CZstd"} | SYNC,
    "CordwoodShip": STORE | {"CCurl", "CLZ4", "CShims", "CSodium", "CZlib", "CZstd"} | SYNC,
    "CordwoodTrace": STORE | {"CCordwood", "CExpat", "CShims"} | SYNC,
    "CordwoodEngine": ENGINE - {"CordwoodEngine"} | {"CCordwood", "CShims"} | SYNC,
    "Cordwood": ENGINE | {"CCordwood", "CShims", "Dispatch"} | SYNC,
    "CordwoodLogging": {"Cordwood", "Logging"},
    "CordwoodURLSession": {"Cordwood", "Foundation", "FoundationNetworking"},
    "CordwoodHTTPCapture": {"Cordwood", "CordwoodURLSession", "Foundation", "FoundationNetworking"},
    "CordwoodABI": ENGINE | {"CCordwood", "CShims"} | SYNC,
    "CordwoodServing": {"NIOCore", "NIOPosix", "NIOHTTP1"} | SYNC,
    "CordwoodCollector": {"Cordwood", "CordwoodServing", "NIOCore", "NIOPosix", "NIOHTTP1"} | SYNC,
    "CordwoodViewer": STORE | {"Cordwood", "CordwoodServing", "CViewerPage", "NIOCore", "NIOPosix",
                               "NIOHTTP1"} | SYNC,
    "CordwoodCLI": {"Cordwood", "CordwoodCollector", "CordwoodServing", "CordwoodViewer",
                    "ArgumentParser", "CArguments", "Foundation"} | SYNC,
    "CShims": set(),
    "CCurl": set(),
    "CViewerPage": set(),
    "CArguments": set(),
}
# Room → rooms of the same module whose types it may name. Rooms not listed are free.
ROOMS = {
    "CordwoodFormats": {
        "Text": set(),
        "JSON": {"Text"},
        "OData": {"Text", "JSON"},
        "Content": set(),
    },
    "CordwoodCore": {
        "System": set(),
        "Format": {"System"},
        "Append": {"Format", "System"},
    },
    "CordwoodStore": {
        "Files": set(),
        "Age": set(),
        "Lanes": {"Files"},
        "Merge": {"Lanes"},
        "Lines": {"Files", "Lanes"},
        "Codecs": {"Lanes"},
        "Block": {"Codecs", "Lanes"},
        "Query": {"Lanes", "Lines"},
        "Archive": {"Age", "Block", "Codecs", "Lanes"},
        "Facts": {"Block", "Codecs", "Lanes", "Archive"},
        "Keep": {"Files", "Age", "Block", "Codecs", "Lanes", "Merge", "Archive"},
        "View": {"Files", "Age", "Block", "Lanes", "Merge", "Archive", "Facts", "Lines", "Query"},
    },
    "CordwoodShip": {
        "Transport": set(),
        "Policy": {"Transport"},
        "Bodies": set(),
        "Targets": {"Transport", "Bodies"},
        "Upload": {"Transport", "Bodies", "Targets"},
    },
    "CordwoodTrace": {
        "Transactions": set(),
        "HTTP": set(),
    },
    "CordwoodEngine": {
        "Settings": set(),
        "Stores": {"Settings"},
        "Services": {"Settings", "Stores"},
        "Handle": {"Settings", "Stores", "Services"},
    },
    "Cordwood": {
        "Loggers": set(),
        "Calls": {"Loggers"},
    },
}
FILES_MAX = 25  # of a folder
SYSTEM = "CordwoodCore/System/"
MODELLED = "steps of the model, statement by statement (Tests/Model/steps.txt)"
# Files outside SYSTEM that call the C library themselves, and why. Other sockets are NIO's
# (CordwoodServing), Foundation's (CordwoodURLSession, CordwoodHTTPCapture) and libcurl's. CShims
# has what Swift cannot express or must inline: clocks, futexes, signal masks, the gate of forks.
OWN_CALLS = {
    "CordwoodServing/Peer.swift": "NIO's addresses are the library's structs",
    "CordwoodCore/Append/Chunks/Claim.swift": MODELLED,
    "CordwoodCore/Append/Chunks/Sealer.swift": MODELLED,
    "CordwoodCore/Append/Paths/AppendSlow.swift": MODELLED,
    "CordwoodCore/Append/Paths/DeferredPath.swift": "errno is an argument; on the hot path",
    "CordwoodCore/Append/Segments/Recycling.swift": MODELLED,
    "CordwoodCore/Append/Segments/Segments.swift": MODELLED,
    "CordwoodFormats/Text/TimeArgument.swift": "mktime: its calendar; Formats lies below Core",
    "CordwoodFormats/Text/Times.swift": "localtime_r: the time zone; Formats lies below Core",
    "CordwoodStore/Lanes/ReadFile.swift": MODELLED,
    "CordwoodStore/Query/SearchExpression.swift": "regcomp: the library's expressions",
}
# The headers of CShims expose these even without an import.
CALLS = re.compile(r"(?<![.\w])(?:Glibc\.)?(" + "|".join(r"""
    _exit accept access bind chdir chmod chown clock_\w+ close closedir connect cw_open_\w+
    cwi_file_\w+ cwi_lock_\w+ cwi_unlock_file dlopen dlsym dup[23]? epoll_\w+ eventfd
    exec[lv]\w* exit fallocate fchmod fchown fcntl fdatasync fdopendir flock fork fstat
    fstatat fstatfs fsync ftruncate getcwd getdents getegid getenv geteuid getgid
    getpagesize getpid getppid getrandom getrlimit gettid gettimeofday getuid inotify_\w+
    ioctl isatty kill link linkat listen localtime_r lseek lstat madvise memfd_create
    mincore mkdir mkdirat mktime mlock mmap mprotect msync munmap nanosleep open openat
    opendir pipe2? poll posix_\w+ prctl pread pthread_\w+ pwrite raise read readdir readlink
    readlinkat readv realpath recv\w* rename renameat2? rmdir sched_\w+ select send\w*
    setenv setpriority setrlimit setsockopt shutdown sigaction sigaddset sigaltstack
    sigemptyset sigfillset sigismember signal sigpending sigprocmask sigtimedwait sigwait
    sleep socket stat statfs statvfs strerror strerror_r symlink symlinkat syscall sysconf
    time timegm truncate umask uname unlink unlinkat unsetenv usleep vfork wait waitpid
    write writev
""".split()) + r")\(")
PAGE = ROOT / "docs/ARCHITECTURE.md"
DRAWN = "<!-- drawn from the imports -->\n```\n"
IMPORT = re.compile(
    r"^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|private|fileprivate)\s+)?"
    r"import\s+(?:(?:struct|class|enum|protocol|typealias|func|var|let)\s+)?(\w+)")
DECLARATION = re.compile(
    r"^(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|final|indirect)\s+)*"
    r"(?:struct|class|enum|actor|protocol|typealias)\s+(\w+)", re.M)
NESTED = re.compile(r"\b(?:struct|class|enum|actor|protocol|typealias)\s+(\w+)")


def without_comments(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)


def check_imports(problems):
    for module, allowed in MODULES.items():
        for path in sorted((ROOT / "Sources" / module).rglob("*.swift")):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                found = IMPORT.match(line)
                if found and found[1] not in allowed | LIBC:
                    problems.append(f"{path.relative_to(ROOT)}:{number}: {module} may not import "
                                    f"{found[1]}")
    for path in sorted((ROOT / "Sources").iterdir()):
        if any(path.glob("**/*.swift")) and path.name not in MODULES:
            problems.append(f"Sources/{path.name}: not drawn in tools/check_layers.py")


def check_system(problems):
    """If a module has a function or value of the same name, a call by that name means its own."""
    for module in sorted({path.parent for path in (ROOT / "Sources").glob("*/*")}):
        texts = {path: without_comments(path.read_text()) for path in module.rglob("*.swift")}
        own = {name for pair in re.findall(
            r"\b(?:func|let|var|case)\s+(\w+)|\b(\w+):\s*\(", "\n".join(texts.values()))
            for name in pair}
        for path, text in sorted(texts.items()):
            name = str(path.relative_to(ROOT / "Sources"))
            if name.startswith(SYSTEM) or name in OWN_CALLS:
                continue
            for number, line in enumerate(text.splitlines(), 1):
                found = IMPORT.match(line)
                if found and found[1] in LIBC:
                    problems.append(f"Sources/{name}:{number}: only {SYSTEM} imports {found[1]}")
                for call in set(CALLS.findall(line)) - own:
                    problems.append(f"Sources/{name}:{number}: {call}() belongs into {SYSTEM}")
    for name in OWN_CALLS:
        path = ROOT / "Sources" / name
        if not path.exists() or not any(
                found and found[1] in LIBC
                for found in map(IMPORT.match, path.read_text().splitlines())):
            problems.append(f"tools/check_layers.py: {name} needs no place in OWN_CALLS")


def check_package(problems):
    """The manifest, as SwiftPM reads it."""
    read = subprocess.run(["swift", "package", "dump-package"], cwd=ROOT, check=True,
                          stdout=subprocess.PIPE).stdout
    for target in json.loads(read)["targets"]:
        name = target["name"]
        if target["type"] not in ("regular", "executable") or "path" in target:
            continue
        allowed = MODULES.get(name, set())
        if "Cordwood" in allowed:  # Package.swift says why it names those below
            allowed = allowed | ENGINE
        for dependency in target["dependencies"]:
            other = next(iter(dependency.values()))[0]
            if other not in allowed:
                problems.append(f"Package.swift: {name} may not depend on {other}")
        is_strict = {"treatWarning", "strictMemorySafety"} <= {
            kind for setting in target["settings"] for kind in setting["kind"]}
        if any((ROOT / "Sources" / name).rglob("*.swift")) and not is_strict:
            problems.append(f"Package.swift: {name} without swiftSettings: strict")


def check_rooms(problems):
    for module, rooms in ROOMS.items():
        sources = {room: {path: without_comments(path.read_text())
                          for path in sorted((ROOT / "Sources" / module / room).rglob("*.swift"))}
                   for room in rooms}
        owner, own = {}, {}
        for room, files in sources.items():
            own[room] = set()
            for text in files.values():
                owner.update((name, room) for name in DECLARATION.findall(text))
                own[room] |= set(NESTED.findall(text))
        for room, files in sources.items():
            for path, text in files.items():
                for name in sorted(set(re.findall(r"(?<![.\w])[A-Z]\w+", text))):
                    other = room if name in own[room] else owner.get(name, room)
                    if other != room and other not in rooms[room]:
                        problems.append(f"{path.relative_to(ROOT)}: room {room} may not name "
                                        f"{name} of {other}")


def imports_of(module):
    found = set()
    for path in (ROOT / "Sources" / module).rglob("*.swift"):
        found |= {line[1] for line in map(IMPORT.match, path.read_text().splitlines()) if line}
    return found & set(MODULES)


def drawing():
    """A line for each module: its imports, without those that its other imports see already."""
    sees = {module: imports_of(module) for module in MODULES if module.startswith("Cordwood")}
    below = {module: set() for module in MODULES}
    for _ in sees:
        for module, seen in sees.items():
            below[module] = seen.union(*(below[other] for other in seen))
    lines = []
    for module in sorted(sees, key=lambda name: (-len(below[name]), name)):
        nearest = sees[module] - set().union(*(below[other] for other in sees[module]))
        lines.append(f"{module:20} → {', '.join(sorted(nearest))}" if nearest else module)
    return "\n".join(lines)


def check_drawing(problems, draws):
    text = PAGE.read_text()
    start = text.index(DRAWN) + len(DRAWN)
    end = text.index("```", start)
    if draws:
        PAGE.write_text(text[:start] + drawing() + "\n" + text[end:])
    elif text[start:end].rstrip("\n") != drawing():
        problems.append(f"{PAGE.relative_to(ROOT)}: the arrows are not those of the imports; "
                        "tools/check_layers.py --draw writes them")


def check_folders(problems):
    for folder in sorted({path.parent for path in (ROOT / "Sources").rglob("*.swift")}):
        count = len(list(folder.glob("*.swift")))
        if count > FILES_MAX:
            problems.append(f"{folder.relative_to(ROOT)}: {count} files, over {FILES_MAX}")


def main():
    problems = []
    check_imports(problems)
    check_system(problems)
    check_package(problems)
    check_rooms(problems)
    check_folders(problems)
    check_drawing(problems, "--draw" in sys.argv[1:])
    print("\n".join(problems) or f"{len(MODULES)} modules")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
