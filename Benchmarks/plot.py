"""A picture of latencies as SVG, made by the standard library alone: one row an engine, percentiles
on a logarithmic scale. Legible on light and dark backgrounds: colours by prefers-color-scheme."""

import math
from html import escape

WIDTH, LEFT, RIGHT, TOP, ROW, BOTTOM, TITLE = 860, 190, 24, 34, 30, 46, 40
MARKS = (("p50", "#2a78d6"), ("p99", "#1f9d76"), ("p99.9", "#c98500"), ("max", "#d1453b"))
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #24292f; }
.small { font-size: 11px; fill: #57606a; }
.title { font-size: 15px; font-weight: 600; }
.grid { stroke: #d0d7de; stroke-width: 1; }
.range { stroke: #8c959f; stroke-width: 2; }
.ground { fill: #ffffff; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .small { fill: #9198a1; }
  .grid { stroke: #30363d; } .range { stroke: #6e7681; } .ground { fill: #0d1117; }
}
"""


def nanoseconds(value):
    for limit, unit, one in ((1e9, "s", 1e9), (1e6, "ms", 1e6), (1e3, "µs", 1e3)):
        if value >= limit:
            return f"{value / one:g} {unit}"
    return f"{value:g} ns"


def rows_of(data):
    """(heading, [(engine, figures)]) of what can be compared: single calls of the peers, then our
    own; then Python and Swift."""
    wanted = (("peers", "paced", "single calls at 0.1 M/s"),
              ("hot", "paced", "single calls, 1 M/s"),
              ("paced", "paced", "a minute at 1 M/s"), ("python", None, "Python"),
              ("swift", None, "Swift"))
    for part, mode, what in wanted:
        loads = {}
        for row in data["figures"]:
            if row["part"] == part and mode in (None, row["mode"]) and row.get("p50") is not None:
                loads.setdefault(row["workload"], []).append((row["engine"], row))
        for load, rows in loads.items():
            yield f"{load.upper()} {what}".strip(), sorted(rows, key=lambda row: row[1]["p50"])


def svg(data):
    groups = list(rows_of(data))
    values = [row[name] for _, rows in groups for _, row in rows for name, _ in MARKS
              if row.get(name, 0) > 0]
    if not values:
        return None
    low = 10.0 ** math.floor(math.log10(max(1.0, min(values))))
    high = 10.0 ** math.ceil(math.log10(max(values) * 1.01))
    height = TOP + sum(TITLE + ROW * len(rows) for _, rows in groups) + BOTTOM

    def at(value):
        share = math.log(max(value, low) / low) / math.log(high / low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    machine = data["machine"]
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
           f'width="{WIDTH}" height="{height}" role="img">',
           "<title>Latency of one log call, by engine</title>", f"<style>{STYLE}</style>",
           f'<rect class="ground" width="{WIDTH}" height="{height}"/>']
    for at_mark, (name, colour) in enumerate(MARKS):
        x = LEFT + at_mark * 80
        out.append(f'<circle cx="{x}" cy="18" r="5" fill="{colour}"/>'
                   f'<text x="{x + 10}" y="22">{name}</text>')
    tick = low
    while tick <= high * 1.001:
        x = at(tick)
        out.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" '
                   f'y2="{height - BOTTOM}"/>')
        out.append(f'<text class="small" x="{x:.1f}" y="{height - BOTTOM + 16}" '
                   f'text-anchor="middle">{nanoseconds(tick)}</text>')
        tick *= 10
    y = TOP
    for heading, rows in groups:
        out.append(f'<text class="title" x="12" y="{y + 26}">{escape(heading)}</text>')
        y += TITLE
        for engine, row in rows:
            points = [(row[name], colour, name) for name, colour in MARKS if row.get(name)]
            middle = y + ROW / 2
            out.append(f'<text x="{LEFT - 12}" y="{middle + 4}" text-anchor="end">'
                       f"{escape(engine)}</text>")
            ends = [at(value) for value, _, _ in points]
            out.append(f'<line class="range" x1="{min(ends):.1f}" x2="{max(ends):.1f}" '
                       f'y1="{middle}" y2="{middle}"/>')
            for value, colour, name in points:
                out.append(f'<circle cx="{at(value):.1f}" cy="{middle}" r="6" fill="{colour}">'
                           f"<title>{escape(engine)} {name}: {nanoseconds(round(value, 1))}"
                           "</title></circle>")
            y += ROW
    out.append(f'<text class="small" x="12" y="{height - 8}">{escape(machine["cpu"])}, '
               f'{machine["cores"]} cores, {escape(machine["kernel"])}, '
               f'{escape(machine["file_system"].split()[0])}, {escape(machine["when"])}</text>')
    out.append("</svg>")
    return "\n".join(out) + "\n"
