"""Shared by all tests of the Python package: a store for each, and the records in it."""
import importlib
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, List

try:
    import cordwood
except ModuleNotFoundError:  # not installed: the checkout's own package
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
    import cordwood

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "Tests" / "TestSupport"))
# Marks a test that the core leaves out.
full: Any = importlib.import_module("cases").full

__all__ = ["StoreCase", "cordwood", "full"]


class StoreCase(unittest.TestCase):
    """A case with an empty store directory, `self.store`."""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory(prefix="cordwood-test-")
        self.addCleanup(directory.cleanup)
        self.store = str(Path(directory.name) / "logs")

    def open(self, **options: Any) -> cordwood.Engine:
        """An engine on the store, closed when the test ends."""
        engine = cordwood.open(self.store, **options)
        self.addCleanup(engine.close, 60)
        return engine

    def records(self, **which: Any) -> List[cordwood.Record]:
        """The host's records; the engine's own diagnostics are left out."""
        return [record for record in cordwood.read(self.store, **which)
                if not record.logger.startswith("Cordwood")]

    def only(self, **which: Any) -> cordwood.Record:
        """The record, which must be the only one."""
        found = self.records(**which)
        self.assertEqual(len(found), 1, [record.message for record in found])
        return found[0]
