#!/usr/bin/env python3
"""The viewer's server: who is let in, what a request may cost, and that its answers and changes are
those of the command line.

    run.py [--size S] [--seed S] [-k PATTERN …] [CASE …]

With --size all, 400 queries instead of 200, and twenty minutes of records."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent / "TestSupport"), str(HERE.parent / "Query")]

import answers  # noqa: E402
import cases  # noqa: E402
import changes  # noqa: E402
import devices  # noqa: E402
import door  # noqa: E402
import previews  # noqa: E402
import views  # noqa: E402

CASES = {
    "links": door.links,
    "the matrix": door.the_matrix,
    "headers": door.headers,
    "another user": door.another_user,
    "sockets": door.sockets,
    "arguments": door.arguments,
    "half open": door.half_open,
    "slow readers": door.slow_readers,
    "a crowd": door.a_crowd,
    "cancel": door.cancel,
    "pipelines": door.pipelines,
    "equal times": answers.equal_times,
    "large rows": answers.large_rows,
    "queries": answers.queries,
    "certain rows": answers.certain_rows,
    "one record": answers.one_record,
    "live": answers.live,
    "young": answers.young,
    "floods": answers.floods,
    "steady": answers.steady,
    "hostile": answers.hostile,
    "who may change": changes.who_may,
    "as the command": changes.as_the_command,
    "the queue": changes.the_queue,
    "hosts follow": changes.hosts_follow,
    "unwritable": changes.unwritable,
    "previews": previews.previews,
    "preview refusals": previews.preview_refusals,
    "preview of media": previews.preview_of_media,
    "http": views.http,
    "http pending": views.http_pending,
    "http again": views.http_again,
    "transactions": views.transactions,
    "devices": devices.devices,
    "one device": devices.one_device,
    "traces": views.traces,
}


def main():
    parser = cases.parser("run.py", __doc__.split("\n\n")[0])
    chosen = parser.parse_args()

    def one(_, case):
        with cases.folder("viewer") as folder:
            return case(folder, chosen.seed)

    run = cases.Run()
    run.all(cases.chosen(CASES, chosen), one)
    return run.end()


if __name__ == "__main__":
    sys.exit(main())
