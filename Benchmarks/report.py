#!/usr/bin/env python3
"""Writes the figures of a run into docs/PERFORMANCE.md, the README and Benchmarks/last.svg.

    ./dev bench --json Benchmarks/last.json && python3 Benchmarks/report.py

No table there is written by hand; test_bench.py fails if one differs from last.json."""

import json
import sys
import textwrap
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import plot  # noqa: E402
import table  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
LAST, PICTURE = HERE / "last.json", HERE / "last.svg"
BEGIN, END = "<!-- figures: begin -->\n", "<!-- figures: end -->"


def replaced(page, figures):
    """The page with these figures between its marks."""
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise ValueError("the page has no place for figures, or several")
    head, rest = page.split(BEGIN)
    return head + BEGIN + figures.rstrip() + "\n" + END + rest.split(END)[1]


def surroundings(data):
    machine = data["machine"]
    words = ", ".join(f"{name} {version}" for name, version in data["versions"].items())
    lines = [f"`{machine['command'].strip()}` on {machine['when']}: {machine['cpu']}, "
             f"{machine['cores']} cores, {machine['memory_gib']} GiB, Linux {machine['kernel']} "
             f"({machine['architecture']}), stores on {machine['file_system'].split()[0]}; load "
             f"average {machine['load_before']:.1f} before the run.", "", f"Versions: {words}."]
    for note in data["notes"]:
        lines.append(f"\nNot measured: {note.rstrip('.')}.")
    failed = [gate["name"] for gate in data["gates"] if not gate["good"]]
    lines += ["", f"Gates of this run: {len(data['gates']) - len(failed)} passed, {len(failed)} "
              f"failed{': ' + '; '.join(failed) if failed else ''}."]
    return "\n".join("\n".join(textwrap.wrap(line, 120, break_on_hyphens=False)) for line in lines)


def summary(data):
    """A few lines: each engine's mean in bursts, the tail of its single calls, what a kill lost."""
    def find(engine, part, mode, load, key):
        for row in table.rows_of(data, engine=engine, part=part, mode=mode, workload=load,
                                 threads=1):
            return row.get(key)
        return None

    engines = []
    for row in table.rows_of(data, part="peers", mode="bursts"):
        if row["engine"] not in engines:
            engines.append(row["engine"])
    rows = ["| ns a record | W1 | W2 | W3 | W4 | p99.9 of W2 | lost in kills at full rate |",
            "|---|---|---|---|---|---|---|"]
    for engine in engines:
        cells = [table.number(find(engine, "peers", "bursts", load, "mean"))
                 for load in ("w1", "w2", "w3", "w4")]
        cells.append(table.number(find(engine, "peers", "paced", "w2", "p99.9")))
        lost, kills = (find(engine, "kill", "kill", "w2", key) for key in ("lost", "kills"))
        cells.append("–" if lost is None else f"{lost:,} in {kills}")
        rows.append(f"| {engine} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def documents():
    """(path, text) of all that is made from the last run."""
    data = json.loads(LAST.read_text(encoding="utf-8"))
    page, readme = ROOT / "docs/PERFORMANCE.md", ROOT / "README.md"
    figures = surroundings(data) + "\n\n" + table.markdown(data)
    yield page, replaced(page.read_text(encoding="utf-8"), figures)
    yield readme, replaced(readme.read_text(encoding="utf-8"), summary(data))
    yield PICTURE, plot.svg(data)


def main():
    for path, text in documents():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
