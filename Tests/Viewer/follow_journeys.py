"""The journey of a page that follows 5,000 records a second. With --size all for ten minutes."""

import contextlib
import time

from cases import equal, full, holds, sized, until
from steady import PER_SECOND, Steady, equal_costs

PAGE_BYTES_MAX = 100_000_000
SERVER_BYTES_MAX = 60 << 20
NODES_MAX = 3_000

# Counts the lines of tails.
COUNTS = """
window.came = {tails: 0, rows: 0, skipped: 0};
const ask = fetch;
window.fetch = async (url, options) => {
  const answer = await ask(url, options);
  if (!String(url).includes("/api/tail?")) return answer;
  came.tails += 1;
  const [page, own] = answer.body.tee();
  (async () => {
    let rest = "";
    for await (const piece of own.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + piece).split("\\n");
      rest = lines.pop();
      for (const line of lines) {
        if (line.includes('"message":"steady ')) came.rows += 1;
        came.skipped += Number(/^{"skipped":(\\d+)}/.exec(line)?.[1] ?? 0);
      }
    }
  })().catch(() => {});
  return new Response(page, answer);
};
"""


class Weight:
    """A page's memory: the maximum, and what it still needs."""

    def __init__(self, place, look):
        self.session = look.context.new_cdp_session(look.page)
        self.session.send("Performance.enable")
        self.browser = place.browser.new_browser_cdp_session()
        self.most = self.resident = 0

    def look(self):
        metrics = {one["name"]: one["value"]
                   for one in self.session.send("Performance.getMetrics")["metrics"]}
        self.most = max(self.most, metrics["JSHeapUsedSize"])
        processes = self.browser.send("SystemInfo.getProcessInfo")["processInfo"]
        for process in processes:
            if process["type"] != "renderer":
                continue
            with contextlib.suppress(OSError), open(
                    f"/proc/{process['id']}/statm", encoding="ascii") as file:
                self.resident = max(self.resident, int(file.read().split()[1]) * 4096)

    def kept(self):
        """The bytes left after garbage collection. Checks that there are few nodes."""
        self.look()
        for _ in range(2):
            self.session.send("HeapProfiler.collectGarbage")
        nodes = self.session.send("Memory.getDOMCounters")["nodes"]
        holds(nodes <= NODES_MAX, f"{nodes} nodes")
        return self.session.send("Runtime.getHeapUsage")["usedSize"]


@full
def follows_for_long(place):
    """None of 5,000 records a second is missed: they are shown, or counted and in the list when it
    is scrolled to them. Neither the page nor the server grows, and the writer's cost is that
    without a page. With --size all for ten minutes."""
    count = PER_SECOND * sized(8, 8, 600)
    store = place.directory / "store"
    writer = Steady(place.directory, store, count)
    server = place.server(store)
    look = place.look(server)
    page = look.page
    page.add_init_script(COUNTS)
    page.reload()
    look.settled()
    page.keyboard.press("f")
    page.locator("#follow[aria-pressed=true]").wait_for()
    weight = Weight(place, look)
    writer.begin()
    began, kept = time.monotonic(), []
    while writer.process.poll() is None:
        page.wait_for_timeout(1_000)
        weight.look()
        if time.monotonic() - began >= (len(kept) + 1) * sized(2, 2, 20):
            kept.append(weight.kept())
    writer.end()
    until(lambda: page.evaluate("came.rows + came.skipped >= %d || came.tails > 1" % count), "all")
    came = page.evaluate("came")
    # A page that got nothing for a second reconnects; then its earlier counts are incomplete.
    holds(came["tails"] > 1 or came["rows"] + came["skipped"] <= count + 20, f"{came} of {count}")
    holds(came["skipped"] > 0, "none was skipped")
    kept.append(weight.kept())
    most = server.memory()
    holds(most <= SERVER_BYTES_MAX, f"{most} bytes of the server")
    holds(weight.most <= PAGE_BYTES_MAX, f"{weight.most} bytes of the page")
    holds(max(kept) <= 2 * kept[0] + 1_000_000, f"the page keeps more and more: {kept} bytes")
    # After the last record, the newest is there, and no row before it is missing.
    look.until_row(f"steady {count - 1}")
    seen = set()

    def scrolled():
        rows = [int(text.split()[1]) for text in look.rows() if text.startswith("steady ")]
        equal("rows in order", rows, list(range(rows[0], rows[0] + len(rows))))
        # A busy page may show the rows of one step after the next step was made.
        is_next = not seen or rows[-1] + 1 >= min(seen)
        if is_next:
            seen.update(rows)
        page.locator("#rows").evaluate("(rows, step) => rows.scrollBy(0, step)",
                                       -400 if is_next else 200)
        return len(seen) >= 1_500

    until(scrolled, "1,500 rows")
    equal("rows without a gap", len(seen), max(seen) - min(seen) + 1)
    look.end()

    @contextlib.contextmanager
    def followed(store):
        followed = place.look(place.server(store))
        followed.page.keyboard.press("f")
        followed.page.locator("#follow[aria-pressed=true]").wait_for()
        yield
        followed.end()
    return (f"page {weight.most / 1e6:.1f} MB at most, {max(kept) / 1e6:.1f} kept, renderer "
            f"{weight.resident >> 20} MiB, server {most >> 20} MiB; "
            f"{came['rows']} shown, {came['skipped']} skipped; "
            + equal_costs(place.directory, followed))


JOURNEYS = {"follows_for_long": follows_for_long}
