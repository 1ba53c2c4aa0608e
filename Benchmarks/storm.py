#!/usr/bin/env python3
"""Draws docs/storm.svg: the requests of 100,000 clients that come back after an hour, from the
curves that Tests/CordwoodShipTests/StormTests.swift writes.

    CORDWOOD_STORM=build/storm.json swift test --filter StormTests
    Benchmarks/storm.py build/storm.json docs/storm.svg"""

import json
import math
import sys
from pathlib import Path

from plot import STYLE

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 420, 64, 24, 64, 52
MINUTES, OUTAGE_MINUTES, BIN_S = 130, 60, 10
LINES = (("ticks", "#d1453b", "a timer of 30 s, no backoff"),
         ("ceilings", "#c98500", "backoff without jitter"),
         ("ours", "#2a78d6", "full jitter: ours"))


def bins(curve):
    """The worst second of each bin."""
    return [max(curve[at:at + BIN_S]) for at in range(0, min(len(curve), MINUTES * 60), BIN_S)]


def main():
    curves = json.loads(Path(sys.argv[1]).read_text())
    top = 10 ** math.ceil(math.log10(max(max(curves[name]) for name, _, _ in LINES)))

    def x_of(minutes):
        return LEFT + minutes / MINUTES * (WIDTH - LEFT - RIGHT)

    def y_of(value):
        share = math.log10(max(value, 1)) / math.log10(top)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           f'width="{WIDTH}" height="{HEIGHT}" role="img">',
           "<title>100,000 clients that come back after an outage of an hour</title>",
           f"<style>{STYLE}.away {{ fill: #8c959f; opacity: 0.15; }}"
           ".line { fill: none; stroke-width: 1.6; }</style>",
           f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}"/>',
           f'<rect class="away" x="{x_of(0)}" y="{TOP}" width="{x_of(OUTAGE_MINUTES) - x_of(0)}" '
           f'height="{HEIGHT - TOP - BOTTOM}"/>',
           '<text class="title" x="12" y="22">Requests in the worst second of ten, 100,000 clients'
           "</text>",
           f'<text class="small" x="{x_of(OUTAGE_MINUTES / 2):.0f}" y="{HEIGHT - BOTTOM - 8}" '
           'text-anchor="middle">nothing answers</text>']
    for number, (_, colour, text) in enumerate(LINES):
        out.append(f'<circle cx="{LEFT + number * 230}" cy="44" r="5" fill="{colour}"/>'
                   f'<text x="{LEFT + 10 + number * 230}" y="48">{text}</text>')
    tick = 1
    while tick <= top:
        out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y_of(tick):.1f}" '
                   f'y2="{y_of(tick):.1f}"/><text class="small" x="{LEFT - 8}" '
                   f'y="{y_of(tick) + 4:.1f}" text-anchor="end">{tick:,}</text>')
        tick *= 10
    for minutes in range(0, MINUTES + 1, 10):
        out.append(f'<text class="small" x="{x_of(minutes):.0f}" y="{HEIGHT - BOTTOM + 18}" '
                   f'text-anchor="middle">{minutes} min</text>')
    for name, colour, text in LINES:
        points = " ".join(f"{x_of(at * BIN_S / 60):.1f},{y_of(value):.1f}"
                          for at, value in enumerate(bins(curves[name])))
        out.append(f'<polyline class="line" stroke="{colour}" points="{points}">'
                   f"<title>{text}</title></polyline>")
    after = max(curves["ours"][OUTAGE_MINUTES * 60:])
    out.append(f'<text class="small" x="12" y="{HEIGHT - 10}">Ours after the return: at most '
               f"{after} requests a second. Simulated with the library's own backoff; seed 1."
               "</text></svg>")
    Path(sys.argv[2]).write_text("\n".join(out) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
