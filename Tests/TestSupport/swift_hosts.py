#!/usr/bin/env python3
"""The Swift programs that suites and benchmarks start: the examples, the crash tests' writer, the
consumers' hosts, the benchmarks' program, and the Swift of the pages in docs/. Each belongs to a
package that names Cordwood by path. One build makes them all: a package in build/swift-hosts
depends on those packages, and is built in the library's build directory with the same flags, so
that the library's own objects are reused.

    swift_hosts.py          builds them

In a suite: `program("Writer")`. A build with nothing to do takes seconds. `./dev test` builds
before the suites and sets TEST_SWIFT_HOSTS=made; then nothing is built here."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import snippets  # noqa: E402
from environments import BUILD, locked  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
PLACE = BUILD / "swift-hosts"
# name of the package → (its directory, its programs)
PACKAGES = {
    "cordwood-example": (ROOT / "examples/swift",
                         ("Example", "Hello", "Transactions", "HTTP", "HTTPErrors")),
    "cordwood-crash-swift": (ROOT / "Tests/Crash/swift-writer", ("Writer",)),
    "consumer": (PLACE / "consumer", ("Consumer", "HTTPPlanted", "Moved")),
    "cordwood-bench-swift": (PLACE / "benchmark", ("HotSwift",)),
}
# Copies of packages: SwiftPM distinguishes them by their folders' names.
COPIES = {"consumer": ROOT / "Tests/Consumers/swift", "benchmark": ROOT / "Benchmarks/swift"}


def manifest():
    packages = "".join(f"        .package(name: {json.dumps(name)}, path: "
                       f"{json.dumps(str(place))}),\n" for name, (place, _) in PACKAGES.items())
    products = "".join(f"            .product(name: {json.dumps(product)}, package: "
                       f"{json.dumps(name)}),\n"
                       for name, (_, programs) in PACKAGES.items() for product in programs)
    packages += f"        .package(name: \"cordwood\", path: {json.dumps(str(ROOT))}),\n"
    pages = "".join(f"            .product(name: \"{name}\", package: \"cordwood\"),\n"
                    for name in ("Cordwood", "CordwoodHTTPCapture", "CordwoodURLSession"))
    floor = (ROOT / "Package.swift").read_text().partition("\n")[0]
    return (f"{floor}\nimport PackageDescription\n\n"
            'let package = Package(\n    name: "swift-hosts",\n    dependencies: [\n'
            f"{packages}    ],\n    targets: [\n        .target(name: \"All\", dependencies: [\n"
            f"{products}        ]),\n        .target(name: \"Snippets\", dependencies: [\n"
            f"{pages}        ])\n    ]\n)\n")


def write(path, text):
    """Writes only if it differs: newer files are built again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def forget_old(made):
    """SwiftPM recompiles a target only if a module that it names has changed. These programs cannot
    name a module below Cordwood, but contain its layouts (Package.swift, underCordwood). Removes
    the objects older than one of those modules, so that they are rebuilt."""
    newest = max((path.stat().st_mtime_ns for path in made.glob("Modules/Cordwood*.swiftmodule")
                  if "Tests" not in path.name), default=0)
    names = [name for _, programs in PACKAGES.values() for name in programs]
    for name in (*names, "Snippets"):
        objects = list(made.glob(f"{name}.build/*.o"))
        if any(path.stat().st_mtime_ns < newest for path in objects):
            for path in objects:
                path.unlink()


def build():
    with locked("swift-hosts"):
        for name, package in COPIES.items():
            text = (package / "Package.swift").read_text()
            write(PLACE / name / "Package.swift", text.replace(
                f'"{os.path.relpath(ROOT, package)}"', f'"{os.path.relpath(ROOT, PLACE / name)}"'))
            for path in (package / "Sources").rglob("*.*"):
                write(PLACE / name / path.relative_to(package), path.read_text())
        write(PLACE / "package/Package.swift", manifest())
        write(PLACE / "package/Sources/All/all.swift", "public let all = 0\n")
        write(PLACE / "package/Sources/Snippets/pages.swift", snippets.swift_file())
        subprocess.run([ROOT / "tools/build.sh"], check=True, stdout=sys.stderr)
        forget_old(ROOT / ".build/release")
        subprocess.run([ROOT / "tools/swiftpm.sh", "release", "build", "--package-path",
                        PLACE / "package", "--scratch-path", ROOT / ".build"], check=True,
                       stdout=sys.stderr)


def program(name):
    """The path of that program, built."""
    path = ROOT / ".build/release" / name
    if os.environ.get("TEST_INSTALLS") == "no":  # conftest.py: pytest uses what is there
        if not path.exists():
            raise unittest.SkipTest(f"{name} is not built: Tests/TestSupport/swift_hosts.py builds")
    elif os.environ.get("TEST_SWIFT_HOSTS") != "made":
        build()
    return path


if __name__ == "__main__":
    build()
