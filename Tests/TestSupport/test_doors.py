"""What a newcomer runs first, when something is not as it should be: a Swift that is too old is
refused in one line, wherever a build begins, and `./dev` waits for another apt. The programs that
say so here are scripts in PATH."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

import settings  # noqa: E402

FLOOR = re.match(r"// swift-tools-version: *([\d.]+)\n", (ROOT / "Package.swift").read_text())[1]
OLD = "Swift version 6.2.3 (swift-6.2.3-RELEASE)\nTarget: x86_64-unknown-linux-gnu"
LOCKED = ("E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)\n"
          "E: Unable to lock directory /var/lib/apt/lists/\n")


class DoorCase(unittest.TestCase):
    """A case with a folder of programs that come first in PATH, and a copy of what begins a
    build."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="cordwood-doors-")
        self.addCleanup(directory.cleanup)
        self.programs = Path(directory.name) / "programs"
        self.tree = Path(directory.name) / "tree"
        for folder in (self.programs, self.tree / "build"):
            folder.mkdir(parents=True)
        for name in ("dev", "Package.swift", "CMakeLists.txt"):
            shutil.copy(ROOT / name, self.tree)
        for name in ("tools", "cmake", "include"):
            (self.tree / name).symlink_to(ROOT / name)

    def program(self, name, script):
        """A script in PATH that notes its words."""
        path = self.programs / name
        path.write_text(f"#!/bin/bash\necho \"$@\" >> {path}.calls\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def calls(self, name):
        path = self.programs / f"{name}.calls"
        return path.read_text().splitlines() if path.exists() else []

    def run_in_tree(self, *words, **more):
        path = f"{self.programs}:{os.environ['PATH']}"
        return subprocess.run(words, cwd=self.tree, text=True, capture_output=True, timeout=120,
                              env=settings.own_environment(PATH=path), check=False, **more)

    def swift(self, version, code=0):
        self.program("swift", f"cat <<'SAID'\n{version}\nSAID\nexit {code}")


class OldSwiftTest(DoorCase):
    def refused(self, ended):
        """Whether it ended with one line that says what to do; nothing but the version was asked
        for."""
        self.assertEqual((ended.returncode, ended.stdout), (1, ""))
        self.assertEqual(ended.stderr, f"dev: Swift 6.2.3 ({self.programs}/swift) is too old: "
                         f"install Swift {FLOOR} or later from https://swift.org/install\n")
        self.assertEqual(set(self.calls("swift")), {"--version"})
        self.assertEqual(list((self.tree / "build").iterdir()), [])

    def test_dev(self):
        self.swift(OLD)
        self.program("apt-get", "exit 1")
        self.program("dpkg-query", "exit 1")  # as if no package were installed
        for verb in ("build", "test", "check", "demo", "bench"):
            with self.subTest(verb):
                self.refused(self.run_in_tree("./dev", verb))
        self.assertEqual(self.calls("apt-get"), [])

    def test_build_script(self):
        """Suites call it by itself."""
        self.swift(OLD)
        self.refused(self.run_in_tree("tools/build.sh"))

    @unittest.skipUnless(shutil.which("cmake"), "cmake is not installed")
    def test_cmake(self):
        def configured(*options):
            ended = self.run_in_tree("cmake", "-S", ".", "-B", "build/cmake", *options)
            return ended.returncode, " ".join(ended.stderr.split())

        self.swift(OLD)
        code, said = configured()
        self.assertEqual(code, 1)
        self.assertIn(f"Swift 6.2.3 ({self.programs}/swift) is too old: install Swift {FLOOR} or "
                      "later from https://swift.org/install", said)
        self.assertEqual(set(self.calls("swift")), {"--version"})
        self.swift(f"Swift version {FLOOR}")
        self.assertEqual(configured(), (0, ""))
        # A library that is there needs no Swift.
        self.swift(OLD)
        (self.tree / "build/lib").mkdir()
        for name in ("libcordwood.so", "libcordwood.a"):
            (self.tree / "build/lib" / name).touch()
        self.assertEqual(configured(), (0, ""))

    def test_versions(self):
        major, minor = map(int, FLOOR.split("."))
        older, newer = f"{major}.{minor - 1}", f"{major}.{minor + 1}"
        for said, fits in (
                (OLD, False), (f"Swift version {older}", False), ("Swift version 5.10.1", False),
                (f"Swift version {older}-dev (LLVM 1a2b, Swift 3c4d)", False),
                (f"swift-driver version: 1.127.14.1 Apple Swift version {older}.3 (swiftlang-"
                 f"{older}.3.3.21 clang-1700.6.3.2)\nTarget: arm64-apple-macosx26.0", False),
                (f"warning: a word before\nSwift version {older}.3 (swift-{older}.3-RELEASE)",
                 False),
                (f"Swift version {FLOOR} (swift-{FLOOR}-RELEASE)", True),
                (f"Swift version {FLOOR}.1 (swift-{FLOOR}.1-RELEASE)\nTarget: x86_64", True),
                (f"Swift version {newer}-dev (LLVM 1a2b, Swift 3c4d)", True),
                (f"Swift version {major}.10", True), (f"Swift version {major + 1}.0", True),
                (f"swift-driver version: 1.148.6 Apple Swift version {FLOOR}.1 (swiftlang-1)",
                 True),
                ("a swift of our own", True)):  # SwiftPM decides
            with self.subTest(said):
                self.swift(said)
                ended = self.run_in_tree("bash", "-c", ". tools/common.sh; needs_swift")
                self.assertEqual(ended.returncode, int(not fits), ended.stderr)
                self.assertEqual(len(ended.stderr.splitlines()), int(not fits), ended.stderr)

    def test_none(self):
        self.swift("Toolchain not found\nmore", code=1)
        ended = self.run_in_tree("./dev", "build")
        self.assertEqual((ended.returncode, ended.stderr), (
            1, f"dev: {self.programs}/swift --version fails (Toolchain not found): install Swift "
            f"{FLOOR} or later from https://swift.org/install\n"))

    @unittest.skipUnless(shutil.which("swift"), "no Swift in PATH")
    def test_package(self):
        """SwiftPM itself refuses a manifest of a newer version, in its first line."""
        package = self.tree / "newer"
        package.mkdir()
        text = (ROOT / "Package.swift").read_text()
        (package / "Package.swift").write_text(
            text.replace(f"swift-tools-version: {FLOOR}", "swift-tools-version: 99.0", 1))
        ended = self.run_in_tree("swift", "package", "--package-path", package, "describe")
        self.assertNotEqual(ended.returncode, 0)
        self.assertRegex(ended.stderr, r"\A[^\n]*is using Swift tools version 99\.0\.0 but the "
                         r"installed version is [\d.]+\n")


class AptTest(DoorCase):
    """needs PACKAGE, which is missing, with an apt that is busy at first."""

    def install(self, apt):
        for name, script in (("dpkg-query", "exit 1"), ("id", "echo 0"), ("sleep", ""),
                             ("apt-get", f"words=\"$*\"; number=$(wc -l < {self.programs}/"
                                         f"apt-get.calls)\n{apt}")):
            self.program(name, script)
        return self.run_in_tree("bash", "-c", "set -euo pipefail; . tools/common.sh; needs left")

    def test_waits(self):
        """Three updates find the lists locked, then one install the downloads."""
        ended = self.install(f"""
            if [ $number -le 3 ] || [ $number -eq 5 ]; then echo -n '{LOCKED}' >&2; exit 100; fi
            echo "E: a warning" >&2""")
        self.assertEqual((ended.returncode, ended.stdout), (0, ""))
        self.assertEqual(ended.stderr.splitlines(), [
            "dev: installing left",
            "dev: waits for another apt, 600 s at most: " + LOCKED.splitlines()[0],
            "E: a warning",
            "dev: waits for another apt, 600 s at most: " + LOCKED.splitlines()[0],
            "E: a warning"])
        calls = self.calls("apt-get")
        self.assertEqual([call.split()[3] for call in calls], ["update"] * 4 + ["install"] * 2)
        self.assertTrue(all(" -o DPkg::Lock::Timeout=600 " in f" {call} " for call in calls))
        self.assertEqual(self.calls("sleep"), ["1"] * 4)

    def test_says_that_it_uses_sudo(self):
        """Before it calls sudo."""
        for code, last in ((0, "dev: installing left"), (1, "  apt-get install left")):
            self.program("sudo", f"echo sudo >&2; exit {code}")
            for name, script in (("dpkg-query", "exit 1"), ("id", "echo 1000")):
                self.program(name, script)
            ended = self.run_in_tree("bash", "-c", ". tools/common.sh; needs left")
            said = ended.stderr.splitlines()
            self.assertEqual(said[0], "dev: about to use sudo, to install left")
            self.assertIn(last, said)

    def test_another_failure_is_not_waited_for(self):
        ended = self.install("[ \"${words#*update}\" != \"$words\" ] || "
                             "{ echo 'E: Unable to locate package left' >&2; exit 100; }")
        self.assertEqual((ended.returncode, ended.stderr.splitlines()[1:]), (1, [
            "E: Unable to locate package left",
            "dev: apt-get, above, says why; if it cannot be mended here, as root, run:",
            "  apt-get update && apt-get install left"]))
        self.assertEqual(self.calls("sleep"), [])

    def test_goes_on_with_old_lists(self):
        ended = self.install("[ \"${words#*update}\" = \"$words\" ] || "
                             "{ echo 'E: no network' >&2; exit 100; }")
        self.assertEqual((ended.returncode, ended.stderr.splitlines()[1:]), (0, [
            "E: no network", "dev: going on with the lists of packages that are here"]))


class SettingsTest(unittest.TestCase):
    """What a caller's environment may not change."""

    def test_own_environment(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "libcordwood.so.0").touch()
            given = {"CORDWOOD_DIR": "x", "CORDWOOD_LIBRARY": "x", "PIP_TARGET": "x",
                     "PIP_CERT": "kept", "PYTHONPATH": "x", "PYTHONUNBUFFERED": "1", "CFLAGS": "x",
                     "DESTDIR": "x", "CC": "kept", "LD_LIBRARY_PATH": f"{folder}:/usr/lib:"}
            program = ("import json, os, sys; sys.path.insert(0, sys.argv[1])\nimport settings\n"
                       "own = settings.own_environment(CORDWOOD_LEVEL='given')\n"
                       "settings.forget_callers()\n"
                       "print(json.dumps([own, dict(os.environ)]))")
            ended = subprocess.run([sys.executable, "-c", program, HERE], check=True, text=True,
                                   stdout=subprocess.PIPE, env=given)
        kept = {"PIP_CERT": "kept", "PYTHONUNBUFFERED": "1", "CC": "kept",
                "LD_LIBRARY_PATH": "/usr/lib"}
        own, mine = ({name: value for name, value in found.items() if name != "LC_CTYPE"}
                     for found in json.loads(ended.stdout))
        self.assertEqual(own, {**kept, "CORDWOOD_LEVEL": "given"})
        self.assertEqual(mine, {**kept, "PYTHONPATH": "x", "CORDWOOD_LIBRARY": "x"})


if __name__ == "__main__":
    unittest.main()
