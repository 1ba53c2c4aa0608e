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
