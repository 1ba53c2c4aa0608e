"""Where virtual environments lie, when one is made again, and whose one a suite takes."""

import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import environments


class Environments(unittest.TestCase):
    """pip is replaced: it installs what this test gives."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name)
        self.asked, self.given = [], {"one==1", "two==2"}
        requirements = {}
        for name, text in (("large", "# why\none==1\ntwo==2\n"), ("small", "two==2\n"),
                           ("odd", "one==1\nthree==3\n")):
            requirements[name] = self.top / f"{name}.txt"
            requirements[name].write_text(text)
        for patch in (mock.patch.dict(os.environ, XDG_CACHE_HOME=str(self.top / "cache"),
                                      TEST_INSTALLS="yes"),
                      mock.patch.object(environments, "REQUIREMENTS", requirements),
                      mock.patch.object(environments.subprocess, "run", self.run_instead)):
            patch.start()
            self.addCleanup(patch.stop)

    def run_instead(self, command, **_):
        self.asked.append([str(word) for word in command])
        if "venv" in command:
            (command[-1] / "bin").mkdir(parents=True)
        wanted = {word for word in map(str, command) if "==" in word}
        return mock.Mock(returncode=int(not wanted <= self.given))

    def test_the_cache_is_outside(self):
        self.assertEqual(environments.cache(), self.top / "cache/cordwood-build")
        for home in ("", "relative/path"):
            with mock.patch.dict(os.environ, XDG_CACHE_HOME=home, HOME=str(self.top)):
                self.assertEqual(environments.cache(), self.top / ".cache/cordwood-build")

    def test_made_once_for_all_that_need_no_more(self):
        python = environments.interpreter("large")
        self.assertEqual(python, f"{environments.folder('large')}/bin/python")
        made = len(self.asked)
        self.assertEqual(environments.interpreter("large"), python)
        self.assertEqual(environments.interpreter("small"), python)
        self.assertEqual(len(self.asked), made)

    def test_the_key_is_of_requirements_and_interpreter(self):
        before = environments.folder("small")
        with mock.patch.object(environments.sys, "version", "4.0"):
            self.assertNotEqual(environments.folder("small"), before)
        environments.REQUIREMENTS["small"].write_text("two==3\n")
        self.assertNotEqual(environments.folder("small"), before)

    def test_one_that_was_broken_off_is_made_again(self):
        place = environments.folder("small")
        (place / "bin").mkdir(parents=True)
        (place / "bin/left").touch()
        self.assertIsNone(environments.partly_made("small"))
        self.assertEqual(environments.interpreter("small"), f"{place}/bin/python")
        self.assertFalse((place / "bin/left").exists())

    def test_what_pypi_does_not_give(self):
        self.assertIsNone(environments.interpreter("odd"))
        self.assertEqual([command[-1] for command in self.asked[-2:]], ["one==1", "three==3"])
        python = f"{environments.folder('odd')}/bin/python"
        self.assertEqual((environments.made("odd"), environments.partly_made("odd")),
                         (None, python))
        left = environments.folder("odd") / "bin/one"
        left.touch()
        self.assertIsNone(environments.interpreter("odd"))
        self.given.add("three==3")
        self.assertEqual(environments.interpreter("odd"), python)
        self.assertTrue(left.exists())  # a server may run from there

    def test_nothing_is_installed(self):
        with mock.patch.dict(os.environ, TEST_INSTALLS="no"):
            self.assertIsNone(environments.interpreter("small"))
            self.assertEqual(self.asked, [])


if __name__ == "__main__":
    unittest.main()
