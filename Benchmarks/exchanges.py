"""The cost of a captured HTTP exchange to its host, and its counts that gate. http_hooks.py and
Swift's HTTPHooks measure what the hooks of clients add."""

import hot
from house import OURS, last_json, output


def measure(house):
    program = house.program("http", "http.c", *OURS)
    figure = hot.instructions(house, program, "http", 2_000)
    house.gate("captured exchange of 2 KB: instructions", figure,
               house.limits["instructions_per_exchange"])
    times = house.few(5_000, 40_000)
    rows = [last_json(output(program, house.where(), "times", times)) for _ in range(3)]
    found = min(rows, key=lambda row: row["mean_ns"])
    house.gate("captured exchange of 2 KB: allocations", found["allocations"],
               house.limits["allocations"])
    house.more["http"] = dict(found, instructions=figure)
    house.say(f"a captured exchange of 2 KB, begin, answer and end: {house.more['http']} "
              f"(target: {house.limits['targets']['http_exchange_mean_ns']} ns)")
