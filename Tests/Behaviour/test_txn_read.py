"""B-TXN, read: what `cordwood transactions` shows of a store that several processes write, and the
JSON that it exports."""

import json
import subprocess
import sys
import textwrap

from sending import CORDWOOD, ROOT, StoreCase

SERVER = textwrap.dedent("""
    import sys
    sys.path.insert(0, sys.argv[1])
    import cordwood
    with cordwood.open(sys.argv[2]) as engine:
        with engine.join_transaction(sys.argv[3]) as transaction:
            transaction.event(7)
    """)


class B_TXN_read(StoreCase):
    def cordwood(self, *arguments, code=0):
        done = subprocess.run([CORDWOOD, *arguments, self.store], capture_output=True, check=False)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return done.stdout.decode()

    def objects(self, *arguments):
        return [json.loads(line)
                for line in self.cordwood("transactions", *arguments, "--json").splitlines()]

    def test_B_TXN_2_figures_of_client_and_server(self):
        self.engine.name_transaction(17, "Checkout")
        done, left = self.engine.transaction(17), self.engine.transaction(17)
        for one in (done, left):
            one.event(0)
        subprocess.run([sys.executable, "-c", SERVER, ROOT / "bindings/python/src", self.store,
                        done.id], check=True)
        done.event(1, "42", "Baad!")
        done.end()
        figures, = self.objects()
        self.assertEqual((figures["usecase"], figures["name"], figures["count"], figures["ended"],
                          figures["with_errors"]), (17, "Checkout", 2, 1, 1))
        self.assertEqual([(row["event"], row["reached"], row["share"], row["stopped"])
                          for row in figures["funnel"]],
                         [(0, 2, 1, 1), (1, 1, 0.5, 0), (7, 1, 0.5, 0)])
        self.assertEqual(figures["duration_ms"]["p50"], figures["duration_ms"]["max"])
        listed = {one["id"]: one for one in self.objects("--list")}
        known = {one.id: one for one in self.engine.transactions()}
        self.assertEqual(set(listed), set(known))
        for id, one in known.items():
            self.assertEqual((listed[id]["events"], listed[id]["errors"], listed[id]["ended"]),
                             (one.events, one.errors, one.ended))
        records = self.objects("--id", done.id)
        self.assertEqual([(one["operation"], one.get("event")) for one in records],
                         [("begin", None), ("event", 0), ("join", None), ("event", 7),
                          ("end", None), ("event", 1), ("end", None)])
        self.assertEqual(len({one["pid"] for one in records}), 2)
        left.end()

    def test_B_TXN_5_exported_json(self):
        one = self.engine.transaction(17)
        one.event(0)
        one.event(1, "42", "Baad!")
        one.end()
        document = json.loads(self.cordwood("export", "--format", "transactions"))
        only, = document["apptxns"]
        self.assertEqual((only["apptxn/id"], only["apptxn/usecase"]), (one.id, 17))
        first, second = only["apptxn/logs"]
        self.assertIsNone(first["apptxnlog/in-ctx-err-code"])
        self.assertNotIn("apptxnlog/in-ctx-err-desc", first)
        self.assertEqual((second["apptxnlog/in-ctx-err-code"], second["apptxnlog/in-ctx-err-desc"]),
                         ("42", "Baad!"))

    def test_B_TXN_2_deleted_by_the_command(self):
        one, two = self.engine.transaction(1), self.engine.transaction(2)
        self.cordwood("transactions", "--delete", one.id)
        self.assertEqual([item.id for item in self.engine.transactions()], [two.id])
        self.assertEqual([item["id"] for item in self.objects("--list")], [two.id])
        one.event(5)  # restarts it
        self.assertEqual({item["id"]: item["events"] for item in self.objects("--list")},
                         {one.id: 1, two.id: 0})
        self.cordwood("transactions", "--delete-all")
        self.assertEqual(self.objects("--list"), [])
        for each in (one, two):
            each.end()
