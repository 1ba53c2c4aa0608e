"""Opens of a store's file are counted one by one, and a wait for too many fails."""
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock

import looks
from cases import Failed


class LooksTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="cordwood-looks-")
        self.addCleanup(folder.cleanup)
        self.store = Path(folder.name)
        for name in ("store", "deleted"):
            (self.store / name).write_text(name)

    def reads(self, waits):
        """What the file `store` was read while that waits."""
        over, count = threading.Event(), 0

        def read():
            nonlocal count
            while not over.is_set():
                (self.store / "deleted").read_text()
                (self.store / "store").read_text()
                count += 1
        thread = threading.Thread(target=read)
        thread.start()
        try:
            waits()
        finally:
            over.set()
            thread.join()
        return count

    def test_each_open_counts(self):
        self.assertGreaterEqual(self.reads(lambda: looks.looks(self.store, 100)), 100)

    def test_other_files_do_not_count(self):
        with mock.patch.object(looks, "SECONDS_MAX", 0.3), self.assertRaises(Failed):
            self.reads(lambda: looks.looks(self.store, 1, "journal"))
