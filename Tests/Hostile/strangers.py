"""Stores of other users, on which root's programs work. Cases of hostile.py; they need root."""

import os
import subprocess

from cases import Skipped, equal, until
from harness import tool

# The owner of the stores.
USER = 65534
NO_CACHE = {"CORDWOOD_CACHE": "off"}


def needs_root():
    if os.geteuid() != 0:
        raise Skipped("other users need root")


def own(path, user=USER):
    for each in (path, *path.rglob("*")):
        os.lchown(each, user, user)


def deleted(suite):
    """A host of root's goes on in a user's store that was deleted, and makes it for that user."""
    needs_root()
    for case in ("deleted", "deleted_child"):
        store = suite.folder / case
        store.mkdir()
        own(store)
        with subprocess.Popen([suite.host, case, store], stdin=subprocess.PIPE) as host:
            try:
                until(lambda: "again" in tool("cat", store, environment=NO_CACHE).text, case)
                host.communicate()
            finally:
                host.kill()
        equal(f"{case} ends", host.returncode, 0)
        made = (store, *store.rglob("*"))
        equal("root's", [path for path in made if path.stat().st_uid == 0], [])


CASES = [deleted]
