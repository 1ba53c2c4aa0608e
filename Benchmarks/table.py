"""The figures of a run as tables: the same for the terminal, docs/PERFORMANCE.md and the README.

A table is (title, description, headings, rows of text). It contains only what was measured."""

import textwrap

TIMES = ("mean", "p50", "p99", "p99.9", "p99.99", "max")


def number(value, digits=1):
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if abs(value) >= 10_000:
        return f"{value:,.0f}"
    return f"{value:.{digits}f}" if isinstance(value, float) else f"{value:,}"


def counted(row):
    """Records on file, and how many of those logged are missing."""
    on_file = row.get("on_file")
    if on_file is None:
        return "–"
    missing = row.get("records", on_file) - on_file
    return f"{on_file:,}" if missing == 0 else f"{on_file:,} ({missing:,} missing)"


def load(row):
    return row["workload"].upper() + (" ×2" if row["threads"] > 1 else "")


def rows_of(data, **wanted):
    return [row for row in data["figures"]
            if all(row.get(key) == value for key, value in wanted.items())]


def time_of(row, name):
    """A quantile; none if fewer than two samples lie beyond it."""
    beyond = {"p99": 0.01, "p99.9": 0.001, "p99.99": 0.0001}.get(name, 1)
    if row.get("samples", 10**9) * beyond < 1.999:
        return "–"
    return number(row.get(name))


def times_table(title, text, rows, with_rate=False):
    times = [name for name in TIMES if any(name in row for row in rows)]
    heads = ["engine", "load", *times, "bytes", "dropped", "on file", "kept at kill -9"]
    out = []
    for row in rows:
        line = [row["engine"], load(row), *(time_of(row, name) for name in times)]
        line += [number(row.get("bytes_per_record")),
                 number(row.get("dropped", "–")), counted(row), row["kept"]]
        out.append(line)
    return (title, text, heads, out) if out else None


def sustained_table(title, text, rows):
    out = []
    for row in rows:
        out.append([row["engine"], load(row), number(row["records"] / row["seconds"] / 1e6, 2),
                    number(row["records"] / row["closed_seconds"] / 1e6, 2),
                    number(row.get("user_s"), 2), number(row.get("system_s"), 2),
                    number(row.get("faults")), number(row.get("writer_faults")),
                    number(row.get("bytes_per_record")),
                    number(row.get("dropped", "–")), counted(row), row["kept"]])
    heads = ["engine", "load", "M/s returned", "M/s closed", "user s", "system s",
             "faults", "of writers",
             "bytes", "dropped", "on file", "kept at kill -9"]
    return (title, text, heads, out) if out else None


def hot(data):
    yield times_table("The append path, bursts", "ns a record: mean of each burst of 1,000 calls, "
                      "a burst a millisecond; the distribution is that of the bursts.",
                      rows_of(data, part="hot", mode="bursts"))
    rows = data["more"].get("beside_copy", [])
    yield ("Bursts beside a TSC read and a copy", "ns a record: the median burst, of rounds in "
           "turn; their median and quartiles. Of the copy: the median of the rounds' ratios.",
           ["engine", "load", "p50", "from", "to", "of the copy"],
           [[row["engine"], load(row), number(row["p50"]), number(row["from"]), number(row["to"]),
             number(row["of_copy"], 2)] for row in rows]) if rows else None
    rows = rows_of(data, part="hot", mode="paced")
    clock = f"{rows[0]['clock_ns']} ns of two clock reads taken off" if rows else ""
    floor = " A plain copy of as many bytes shows the machine's own tail." if any(
        row["engine"] == "a plain copy" for row in rows) else ""
    yield times_table("The append path, single calls at 1 M/s", f"ns a call; {clock}.{floor}", rows)
    counts = data["more"].get("instructions_per_record", {})
    loads = ("w1", "w2", "w3", "w4")
    out = [[f"instructions, {name}", *(number(figures.get(name_of)) for name_of in loads)]
           for name, figures in counts.items()]
    if "bytes_per_record" in data["more"]:
        out.append(["bytes in the segment", *(number(data["more"]["bytes_per_record"].get(name))
                                              for name in loads)])
    yield ("Counts a record", "They do not depend on the machine, and ours gate.",
           ["count", "W1", "W2", "W3", "W4"], out) if out else None


def peers(data):
    yield times_table(
        "Beside its peers, bursts", "ns a record: mean of each burst of 1,000 calls with pauses; "
        "engines in turn, median of the rounds, max of all.",
        rows_of(data, part="peers", mode="bursts"))
    yield times_table(
        "Beside its peers, single calls at 0.1 M/s", "ns a call, the clock's own taken off.",
        rows_of(data, part="peers", mode="paced"))
    yield sustained_table(
        "Beside its peers, back to back", "M records/s until the last call returned, and until "
        "the engine was closed and all on file.",
        rows_of(data, part="peers", mode="sustained"))
    yield ("Killed at full rate (kill -9)", "Records whose call had returned, and those on file "
           "afterwards; W2, one thread.",
           ["engine", "kills", "returned", "on file", "lost", "most in one kill"],
           [[row["engine"], number(row["kills"]), number(row["records"]), number(row["on_file"]),
             number(row["lost"]), number(row["lost_most"])]
            for row in rows_of(data, part="kill")]) if rows_of(data, part="kill") else None


def lasting(data):
    yield sustained_table(
        "Back to back", "M records/s until the last call returned, and until the engine was "
        "closed. Every record was read back and compared.", rows_of(data, part="sustained"))
    rows = rows_of(data, part="lasting")
    yield ("8 GB back to back, then a minute at 3 M/s", "M records/s back to back; ns a record in "
           "the slowest second at 3 M/s; resident memory at most. Every record was read back and "
           "compared.", ["engine", "load", "M/s", "slowest second", "MiB", "faults of writers",
                         "slow appends", "on file"],
           [[row["engine"], load(row), number(row["million_records_s"], 2),
             number(row["slowest_second"]), number(row["peak_kib"] / 1024),
             number(row["writer_faults"]), number(row["slow_appends"]), counted(row)]
            for row in rows]) if rows else None
    rows = rows_of(data, part="archived")
    yield ("Archiving typed records", "What one core archives; MB of segments, bytes a record in "
           "the archive.", ["load", "records", "M records/s a core", "MB/s a core", "bytes"],
           [[load(row), number(row["records"]), number(row["million_records_s_core"], 2),
             number(row["mb_s_core"]), number(row["bytes_per_record"])] for row in rows]
           ) if rows else None
    rows = rows_of(data, part="paced")
    yield times_table("A minute at 1 M/s", "ns a call, writeback included; "
                      f"{rows[0]['clock_ns'] if rows else ''} ns of two clock reads taken off.",
                      rows)
    out = [[row["engine"], load(row), *(number(row["due"].get(name)) for name in TIMES),
            f"{100 * row['late'] / row['records']:.2f} %"] for row in rows]
    yield ("A minute at 1 M/s, from when each call was due", "ns until it returned; what waited "
           "for a slow call counts, too. Late: begun over 1 µs after it was due.",
           ["engine", "load", *TIMES, "late"], out) if out else None


def guests(data):
    for part in ("python", "swift"):
        yield times_table(part.capitalize(), "ns a call.", rows_of(data, part=part))


def whole(data):
    rows = data["more"].get("whole") or []
    if not rows:
        return
    peers = [row.get("spdlog", {}) for row in rows]
    yield ("From the call to the archive", "Instructions a record, of all threads: the host's own, "
           "the archiver's, the other helpers'. Bytes a record: its segment's, then its archive's. "
           "spdlog writes the same records as text.",
           ["load", "records", "instructions", "host", "archiving", "helpers", "segment", "archive",
            "spdlog", "bytes"],
           [[row["workload"].upper(), *(number(row[name]) for name in (
               "records", "instructions", "call", "archiving", "helper")),
             number(row["segment_bytes"], 2), number(row["archive_bytes"], 2),
             number(peer.get("instructions")), number(peer.get("bytes"))]
            for row, peer in zip(rows, peers)])
    steps = list(rows[0]["steps"])
    yield ("Archiving a record, step by step", "Instructions.", ["load", *steps, "all else"],
           [[row["workload"].upper(), *(number(row["steps"][step]) for step in steps),
             number(row["archiving"] - sum(row["steps"].values()))] for row in rows])


def rest(data):
    rows = data.get("archive") or []
    yield ("Archiving plain lines", "Beside `zstd -3` on the same file; dense blocks also beside "
           "`zstd -19`.",
           ["file", "raw bytes", "archive", "zstd -3", "of zstd -3", "MB/s", "zstd MB/s", "dense",
            "of zstd -3", "of zstd -19"],
           [[row["file"], number(row["raw_bytes"]), number(row["archive_bytes"]),
             number(row["zstd3_bytes"]), number(row["of_zstd3"], 3), number(row["archive_mb_s"]),
             number(row["zstd3_mb_s"]), number(row.get("dense_bytes")),
             number(row.get("dense_of_zstd3"), 3), number(row.get("dense_of_zstd19"), 3)]
            for row in rows]) if rows else None
    rows = data["more"].get("archive_costs") or []
    yield ("What archiving in dense blocks takes", "Counted under callgrind; memory beyond that of "
           "an archive of nothing, at blocks of 1 MiB, and of 4 MiB in `cordwood compact`.",
           ["file", "instructions a byte", "times those of zstd -3", "KiB", "KiB compacting",
            "instructions a byte given back"],
           [[row["file"], number(row["instructions_a_byte"]), number(row["of_zstd3_instructions"]),
             number(row["kib"]), number(row["compact_kib"]),
             number(row.get("out_instructions_a_byte"), 2)] for row in rows]) if rows else None
    rows = data["more"].get("archive_speeds") or []
    yield ("Files into dense archives and out of them", "MB of the file in a processor's second, "
           "the least time of five runs, without the tool's own start: `cordwood archive`, "
           "`cordwood export --format raw`.",
           ["file", "in", "out"],
           [[row["file"], number(row["in_mb_s_core"]), number(row["out_mb_s_core"])]
            for row in rows]) if rows else None
    rows = data["more"].get("archive_typed") or []
    yield ("Typed records of a service", "Nine places (`service.c`), in dense blocks; beside their "
           "text under `zstd -3`. Seconds are a processor's, the least of five archivings.",
           ["records", "threads", "bytes a record", "of zstd -3", "million records a second"],
           [[number(row["records"]), number(row["threads"]), number(row["bytes_a_record"]),
             number(row["of_zstd3"], 3), number(row.get("million_records_s_core"), 2)]
            for row in rows]) if rows else None
    rows = data.get("upload") or []
    yield ("Uploading archives over loopback", "The best of three runs; CPU in seconds a GB. curl "
           "sends the same files, and looks at nothing; the collector checks and syncs each.",
           ["what", "MB", "MB/s", "our CPU s/GB", "server's CPU s/GB"],
           [[row["what"], number(row["bytes"] / 1e6), number(row["mb_s"]),
             number(row["cpu_s_gb"], 3), number(row["server_cpu_s_gb"], 3)] for row in rows]
           ) if rows else None
    idle = data.get("idle")
    yield ("An idle engine", "Over a program that does nothing.",
           ["KiB resident", "ms to open and write one record"],
           [[number(idle["resident_kib_over_nothing"]), number(idle["open_ms"])]]
           ) if idle else None
    rows = targets(data)
    yield ("What it should reach", "Targets inform. Gates, which can fail a "
           "run, are in thresholds.json.",
           ["what", "target", "seen", ""],
           [[name, number(limit), number(figure), good] for name, limit, figure, good in rows]
           ) if rows else None


def targets(data):
    """(what, target, seen, "reached" or "missed") of what this run measured."""
    wanted, out = data["targets"], []  # those of the run

    def one(name, limit, figure, at_least=False):
        if figure is not None and limit is not None:
            good = figure >= limit if at_least else figure <= limit
            out.append((name, limit, figure, "reached" if good else "missed"))

    def figure(key, **row):
        found = rows_of(data, **row)
        return found[0].get(key) if found else None

    for name, limit in wanted["bursts_mean_ns"].items():
        one(f"{name.upper()}: ns a record in bursts", limit,
            figure("mean", part="hot", engine="cordwood C", workload=name, mode="bursts",
                   threads=1))
    for row in data["more"].get("beside_copy", []):
        one(f"{row['workload'].upper()}, {row['engine']}: bursts, of a TSC read and a copy",
            wanted.get("bursts_of_copy", {}).get(row["engine"], {}).get(row["workload"]),
            row["of_copy"])
    for name, limit in wanted["paced_p999_ns"].items():
        one(f"{name.upper()}: p99.9 at 1 M/s, ns", limit,
            figure("p99.9", part="paced", engine="cordwood C", workload=name)
            or figure("p99.9", part="hot", engine="cordwood C", workload=name, mode="paced"))
    for name in ("w2", "w4"):
        both, single = (figure("mean", part="hot", engine="cordwood C", workload=name,
                               mode="bursts", threads=threads) for threads in (2, 1))
        if both and single:
            one(f"{name.upper()}: two producers, of one", wanted["two_producers_of_one"],
                round(both / single, 2))
        one(f"{name.upper()}: M records/s back to back",
            wanted.get("million_records_s", {}).get(name),
            figure("million_records_s", part="sustained", engine="cordwood C", workload=name,
                   threads=1), at_least=True)
        one(f"{name.upper()}: M records/s archived a core",
            wanted["million_records_s_core_archived"],
            figure("million_records_s_core", part="archived", workload=name), at_least=True)
    one("Large files into dense archives: processor seconds, of `zstd -3`",
        wanted.get("dense_of_zstd3_seconds"), data["more"].get("dense_of_zstd3_seconds"))
    for name, limit in wanted.get("python_of_bare", {}).items():
        one(f"Python, {name}: of a bare ctypes call", limit,
            figure("of_bare", part="python", engine=name))
    for name, limit in wanted.get("python_of_logging", {}).items():
        one(f"Python, {name}: of `logging` before any handler writes", limit,
            figure("of_logging", part="python", engine=name))
    for name, limit in wanted.get("python_ns", {}).items():
        one(f"Python, {name}: ns, median burst", limit,
            figure("burst_p50", part="python", engine=name))
    for name, limit in wanted.get("swift_ns", {}).items():
        one(f"Swift, {name.upper()}: ns a record in bursts", limit,
            figure("mean", part="swift", engine="cordwood Swift", workload=name))
    return out


def tables(data):
    for part in (hot, peers, lasting, guests, whole, rest):
        for table in part(data):
            if table and table[3]:
                yield table


def text(data):
    """The tables for a terminal."""
    out = []
    for title, what, heads, rows in tables(data):
        widths = [max(len(str(line[at])) for line in [heads, *rows]) for at in range(len(heads))]
        out.append(f"\n{title}. {what}")
        for line in [heads, *rows]:
            out.append("  ".join(str(word).ljust(width) if at < 1 or not word[:1].isdigit()
                                 else str(word).rjust(width)
                                 for at, (word, width) in enumerate(zip(line, widths))).rstrip())
    return "\n".join(out)


def markdown(data, level="###"):
    out = []
    for title, what, heads, rows in tables(data):
        out += [f"{level} {title}", textwrap.fill(what, 120), "", "| " + " | ".join(heads) + " |",
                "|" + "---|" * len(heads)]
        out += ["| " + " | ".join(line) + " |" for line in rows]
        out.append("")
    return "\n".join(out).rstrip()
