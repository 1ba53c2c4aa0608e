"""Hosts that have hardly any memory left. Cases of run.py."""

import itertools
import json
import subprocess

from cases import Skipped, equal, full, holds, sized, until
from checking import cat, compare, read_ledger
from identity import Collector
from owners import lanes
from removed import Server

KIB_MAX = 8 << 10


def limited(rounds):
    """Under limits on the address space or the data, set before or after the store is opened, no
    host ends, what is kept is read, and refusals are counted. Without the limit, archives come."""
    def body(bench):
        count, all_refused, all_told, all_early = rounds(), 0, 0, 0
        ways = itertools.cycle(itertools.product(("as", "data"), ("before", "after")))
        for turn, (resource, when) in zip(range(count), ways):
            kib = bench.random.choice([0, bench.random.randrange(1 << 10),
                                       bench.random.randrange(KIB_MAX)])
            store, ledger = bench.directory / f"store{turn}", bench.directory / f"ledger{turn}"
            words = map(str, (resource, when, kib, sized(200, 500, 700)))
            said = bench.finish([bench.programs / "memory", "limited", store, ledger, *words])
            refused, early, archives = map(int, said.split()[-3:])
            slots = read_ledger(ledger)
            equal("refused", sum(slot[2] for slot in slots.values()), refused)
            lines = cat(bench.command, store)
            compare(slots, lines, what=f"{resource} {when} {kib} KiB")
            records = list(map(json.loads, lines))
            gaps = [record for record in records if record["kind"] == "gap"]
            equal(f"told to be missing, {resource} {when} {kib} KiB",
                  sum(record["fields"]["gap.records"] for record in gaps), refused)
            holds(archives > 0, "no archives came later")
            told = sum(record["message"].startswith("memory is short") for record in records)
            holds(told <= 1, f"the shortage is told {told} times")
            all_refused, all_told = all_refused + refused, all_told + told
            all_early += early > 0
        holds(all_told > 0, "nobody was told to wait")
        bench.note(f"{count} hosts, {all_told} told to wait, "
                   f"{all_early} archived under the limit, {all_refused} records refused")

    return body


def limited_sending(bench):
    """The same with a target and a limit on the number of archives: no host ends, and all is sent
    or removed once there is memory."""
    rounds, refused = sized(2, 25, 100), 0
    ways = itertools.cycle(itertools.product(("as", "data"), ("before", "after")))
    with Collector(bench, "depot") as collector:
        bench.environment["CORDWOOD_TARGET"] = collector.url
        for turn, (resource, when) in zip(range(rounds), ways):
            store, ledger = bench.directory / f"store{turn}", bench.directory / f"ledger{turn}"
            kib = bench.random.randrange(KIB_MAX)
            said = bench.finish(
                [bench.programs / "memory", "limited", store, ledger, resource, when, str(kib),
                 str(sized(200, 500, 700)), "sends"], environment=bench.environment)
            refused += int(said.split()[-3])
            equal(f"archives left, {resource} {when} {kib} KiB",
                  list((store / "archives").glob("*.cwa")), [])
    bench.note(f"{rounds} hosts, {refused} records refused")


def limited_bodies(bench):
    """A run of uploads that makes bodies of records begins only where there is room for them."""
    with Server() as url:
        bench.run("memory", "bodies", url)


def limited_errand(bench):
    """A lane that somebody removes is replaced even if the engine can start no thread for it and
    the thread that does the work instead has to wait for memory."""
    with bench.start("memory", "errand", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as host:
        try:
            said = host.stdout.readline()
            if said != b"ready\n":
                raise Skipped("filters of system calls are refused here")
            before = set(lanes(bench))
            for name in before:
                (bench.store / "lanes" / name).unlink()
            until(lambda: set(lanes(bench)) - before, "a new lane")
            refused = read_ledger(bench.ledger)[1][2]
            until(lambda: read_ledger(bench.ledger)[1][1] > 200, "records in it")
            host.communicate()
            equal("the host ends", host.returncode, 0)
        finally:
            host.kill()
    # What lay beside the lane file is reported as damage.
    told = [record["message"] for record in bench.records(codes=(0, 3))]
    holds(any("a new lane has begun" in text for text in told), "the new lane is not told")
    bench.note(f"{refused} records refused")


CASES = {"limited_bodies": limited_bodies, "limited_errand": limited_errand,
         "limited_sending": limited_sending, "limited_few": limited(lambda: 4),
         "limited": full(limited(lambda: sized(0, 100, 400)))}
