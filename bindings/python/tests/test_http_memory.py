"""What HTTP capture hands to C lives until C has read it: in hosts whose allocator overwrites freed
memory (PYTHONMALLOC=debug), and in hosts that fork during a request."""
import os
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any, Dict, List

from support import StoreCase, cordwood

_START = """\
import cordwood, gc, os, sys
from cordwood._capture import calls
engine = cordwood.open({store!r})
engine.capture_http()
"""


class HTTPMemory(StoreCase):
    """Hosts in separate processes."""

    def python(self, program: str) -> None:
        """Runs a program with an engine that captures; it must exit with 0 and print no error."""
        package = str(Path(cordwood.__file__).resolve().parents[1])
        environment = {**os.environ, "PYTHONPATH": package, "PYTHONMALLOC": "debug"}
        ended = subprocess.run(
            [sys.executable, "-W", "ignore::DeprecationWarning", "-c",
             _START.format(store=self.store) + program],
            env=environment, timeout=60, capture_output=True, text=True, check=False)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def exchanges(self, op: str) -> List[Dict[str, Any]]:
        """Fields of the records of exchanges."""
        return [dict(record.fields) for record in cordwood.read(self.store, kinds="http")
                if record.fields["http.op"] == op]

    def test_fields_of_a_context(self) -> None:
        self.python(
            "for i in range(100):\n"
            "    with cordwood.context(note='value-%d-%s' % (i, 'x' * 40), raw=b'%d' % i * 20,\n"
            "                          account='k' * 50 + str(i), number=i, share=i / 4,\n"
            "                          odd=i % 2 == 1,\n"
            "                          **{'own%d' % i: 'y%d' % i * 30}):\n"
            "        one = calls.begin(engine._handle, 'GET', 'http://h/%d' % i,\n"
            "                                 [('A', 'line')] * 3, body=b'b' * 3)\n"
            "    one.end()\n")
        found = self.exchanges("end")
        self.assertEqual(len(found), 100)
        for i, one in enumerate(found):
            self.assertEqual(
                [one["note"], one["account"], one["raw"], one["number"], one["share"], one["odd"],
                 one[f"own{i}"]],
                [f"value-{i}-{'x' * 40}", "k" * 50 + str(i), str(i) * 20, i, i / 4, i % 2 == 1,
                 f"y{i}" * 30])

    def test_a_fork_during_an_exchange(self) -> None:
        """The process that began it ends it: a child that collects or ends one does not."""
        self.python(
            "from cordwood._capture.hooks import HTTPHooks\n"
            "from cordwood._capture.record import begin\n"
            "hooks = HTTPHooks(engine, (), False)\n"
            "names = 'collected', 'ended', 'closed'\n"
            "open_ones = [begin(hooks, 'GET', 'http://h/' + name, []) for name in names]\n"
            "direct = calls.begin(engine._handle, 'GET', 'http://h/direct', [])\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    open_ones[1].received(b'x')\n"
            "    open_ones[1].end(OSError('in the child'))\n"
            "    open_ones[2].closed()\n"
            "    direct.end()\n"
            "    del open_ones[:], direct\n"
            "    gc.collect()\n"
            "    own = begin(hooks, 'GET', 'http://h/child', [])\n"
            "    own.end()\n"
            "    os._exit(0)\n"
            "status = os.waitpid(child, 0)[1]\n"
            "for one in open_ones: one.end()\n"
            "direct.end()\n"
            "sys.exit(status)\n")
        found = self.exchanges("end")
        self.assertEqual(sorted(one["url.full"].rpartition("/")[2] for one in found),
                         ["child", "closed", "collected", "direct", "ended"])
        self.assertEqual([one for one in found if "error.type" in one], [])

    def test_a_handle_that_another_thread_is_about_to_use(self) -> None:
        """One thread closes a connection while another reads: the reader's handle is cleared before
        the exchange is freed, and it is freed once."""
        self.python(
            "one = calls.begin(engine._handle, 'GET', 'http://h/', [])\n"
            "in_hand, real, seen = one._handle, calls._end, []\n"
            "def end(*arguments):\n"
            "    seen.append(in_hand.value)\n"
            "    one.response_body(b'late')\n"
            "    one.response(200, [('A', 'b')])\n"
            "    one.end()\n"
            "    return real(*arguments)\n"
            "calls._end = end\n"
            "one.end()\n"
            "one.end()\n"
            "assert seen == [None], seen\n")
        one, = self.exchanges("end")
        self.assertNotIn("http.response.status_code", one)


if __name__ == "__main__":
    unittest.main()
