"""Journeys through the views of exchanges, transactions and traces, over a shop's two stores."""

import json
import re
import subprocess
import sys

import shop
from cases import equal, full, holds, until
from stores import cat, tool
from views import Little, little, printed


def opened(place, seed=1, count=12, address="https://shop.example.com"):
    stores = shop.stores(place.directory, seed, count, address)
    return stores, place.look(place.server(*stores))


def said(look, view):
    """The text of the view's status line, once it is complete."""
    line = look.page.locator(f"#view-{view} .bar [role=status]").first
    line.filter(has_text=re.compile(r"\d+ (exchange|trace|use case|transaction)s?")).wait_for()
    return line.text_content()


def clipboard(look):
    return look.page.evaluate("navigator.clipboard.readText()")


@full
def repeats_a_request(place):
    """HTTP by keyboard: a list, presets, a detail with its tabs, and a working curl command."""
    listening, address = little()
    (client, _), look = opened(place, count=8, address=address)
    keys, page = look.page.keyboard, look.page
    keys.press("2")
    equal("how many", said(look, "http").split()[0], "16")
    asked = "http.side=client status=*"
    answered = len(printed("http", "list", "--json", client, "-q", asked))
    failed = printed("http", "list", "--json", "--failed", client, "-q", asked)
    look.page.locator("#query-text").fill(asked)
    keys.press("Escape")
    keys.press("/")
    keys.press("Enter")
    page.wait_for_url("**q=http.side*")
    until(lambda: said(look, "http").startswith(f"{answered} "), "the query")
    page.locator("#view-http button", has_text="Failed").click()
    until(lambda: said(look, "http").startswith(f"{len(failed)} "), "failed ones")
    page.go_back()
    until(lambda: said(look, "http").startswith(f"{answered} "), "Back")
    keys.press("Escape")
    page.locator("#view-http .lines").focus()
    for key in ("j", "j", "Enter"):
        keys.press(key)
    page.locator("#view-http [role=tab]:focus").wait_for()
    for tab in ("Body", "Timing", "Logs"):
        keys.press("ArrowRight")
        page.locator("#view-http [role=tab][aria-selected=true]", has_text=tab).wait_for()
    keys.press("u")
    until(lambda: clipboard(look).startswith("curl "), "the command is copied")
    sent = json.loads(subprocess.run(["sh", "-c", clipboard(look) + " --silent"], check=True,
                                     stdout=subprocess.PIPE).stdout)
    path, headers, body = Little.seen[-1]
    equal("the answer", sent, [path, headers, body.decode()])
    shown = page.locator("#view-http .detail .message").text_content()
    equal("the same address", shown, address + path)
    link = page.url
    keys.press("Escape")
    page.locator("#view-http .detail").wait_for(state="hidden")
    page.goto("about:blank")
    page.goto(link)
    page.locator("#view-http .detail [role=tab]").first.wait_for()
    listening.shutdown()
    place.screen(look, "repeats-a-request")
    look.end()


def shows_bodies(place):
    """JSON as a searchable tree, markup as text, an image, bytes; HAR of the filtered list."""
    (client, _), look = opened(place, count=8)
    page = look.page
    page.keyboard.press("2")
    said(look, "http")
    look.page.locator("#query-text").fill('path:/orders/4 http.side=client')
    look.page.locator("#query-text").press("Enter")
    until(lambda: said(look, "http").startswith("1 "), "one exchange")
    page.locator("#view-http .lines .row[data-line]").click()
    page.locator("[role=tab]", has_text="Body").click()
    tree = page.locator("#view-http [aria-label='Body of the request'] .tree")
    tree.locator("input").fill("s2")
    tree.locator("mark", has_text='sku: "s2"').wait_for()
    tree.locator("[role=status]", has_text="1 of 1").wait_for()
    place.screen(look, "shows-bodies")
    with page.expect_download() as saving:
        page.locator("#view-http button", has_text="Save HAR").click()
    har = json.loads(saving.value.path().read_text())
    wanted = json.loads(tool("http", "list", "--har", client, "-q", "path:/orders/4").stdout)
    equal("HAR", har, wanted)
    for number, kind in ((1, "Text"), (3, "Hex")):
        look.page.locator("#query-text").fill(f"path:/orders/{number} http.side=client")
        look.page.locator("#query-text").press("Enter")
        page.wait_for_url(f"**orders%2F{number}*")
        until(lambda: said(look, "http").startswith("1 "), "one exchange")
        page.locator("#view-http .lines .row[data-line]").click()
        page.locator("#view-http [aria-label='Body of the response'] button", has_text=kind).click()
    holds(page.locator("#view-http .detail h1, #view-http b").count() == 0, "markup is in the page")
    look.end()


@full
def views_have_no_violations(place):
    """axe in each view, in light, dark and at 200 %, with and without open parts. Empty views say
    that they are."""
    _, look = opened(place, count=30)
    for name, page in place.looks(look):
        page.goto(look.origin)
        page.locator(".row").first.wait_for()
        for key, view in VIEWS:
            page.keyboard.press(key)
            root = page.locator(f"#view-{view}")
            root.locator("[data-line], tbody tr").first.wait_for()
            for shown in ("list", "detail"):
                if shown == "detail":
                    page.keyboard.press("j")
                    if view != "http":
                        page.keyboard.press("Enter")
                    if view == "traces":
                        page.locator("[aria-label=Spans] .row[data-line]").first.wait_for()
                        page.keyboard.press("j")
                    page.locator(f"#view-{view} .detail:not([hidden]) header").wait_for()
                    page.wait_for_load_state("networkidle")
                place.has_no_violation(page, f"{view}-{name}-{shown}")


@full
def leads_from_a_funnel(place):
    """Use cases by keyboard: the figures and the funnel are the command's. A stuck one leads to its
    records in both processes."""
    stores, look = opened(place, count=15)
    keys, page = look.page.keyboard, look.page
    wanted = printed("transactions", "--json", *stores)
    keys.press("4")
    equal("use cases", said(look, "transactions").split()[0], str(len(wanted)))
    one = wanted[-1]
    cells = page.locator("#view-transactions .page tbody tr").last.locator("td")
    equal("the figures", cells.all_text_contents()[1:4],
          [str(one["count"]), str(one["count"] - one["ended"]), str(one["with_errors"])])
    for _ in wanted:
        keys.press("j")
    keys.press("Enter")
    rows = page.locator("#view-transactions .detail tbody tr")
    rows.first.wait_for()
    shown = [[cell for cell in row.locator("td").all_text_contents()] for row in rows.all()]
    funnel = [["begun", str(one["count"]), "100.0 %", str(one["stopped_at_once"])]] + [
        [f"{step['event']} {step['name']}", str(step["reached"]), f"{step['share'] * 100:.1f} %",
         str(step["stopped"])] for step in one["funnel"]]
    equal("the funnel", shown, funnel)
    page.locator("#view-transactions .detail .logs button").first.click()
    page.wait_for_url("**id=TXN*")
    moments = page.locator("#view-transactions .detail ol.logs button")
    moments.first.wait_for()
    id = re.search(r"id=(TXN[0-9A-F-]+)", page.url)[1]
    equal("its records", moments.count(),
          len(printed("transactions", "--json", "--id", id, *stores)))
    place.screen(look, "leads-from-a-funnel")
    page.locator("#view-transactions .detail button", has_text="All its records").click()
    page.wait_for_url("**txn*")
    equal("records of all processes", look.count(), len(tool(
        "cat", *stores, "-q", f"txn:{id}").stdout.splitlines()))
    look.end()


def follows_a_trace(place):
    """One request by keyboard, from its exchange to the trace of both processes, with different
    clocks. A span leads back to the exchange, a tick's record to the list."""
    stores, look = opened(place)
    keys, page = look.page.keyboard, look.page
    keys.press("5")
    equal("how many", said(look, "traces").split()[0],
          str(len({row["trace_id"] for store in stores for row in cat(store)
                   if row.get("trace_id")})))
    keys.press("2")
    page.locator("#query-text").fill("path=/orders/1 http.side=server")
    page.locator("#query-text").press("Enter")
    until(lambda: said(look, "http").startswith("1 "), "one exchange")
    keys.press("Escape")
    keys.press("j")
    keys.press("T")
    page.wait_for_url("**view=traces*")
    rows = page.locator("#view-traces [aria-label=Spans] .row[data-line]")
    rows.first.wait_for()
    texts = sorted((row.locator(".process").text_content(), row.locator(".span").text_content())
                   for row in rows.all())
    equal("spans", len(texts), 4)
    equal("both processes", [text[0] for text in texts], ["client", "client", "server", "server"])
    holds(any("before its request: clocks differ" in text[1] for text in texts), texts)
    holds(page.locator("#view-traces .tick").count() >= 2, "no ticks")
    for key in ("j", "j"):
        keys.press(key)
    page.locator("#view-traces .detail header strong", has_text="POST /orders/1?").wait_for()
    place.screen(look, "follows-a-trace")
    keys.press("k")
    page.locator("#view-traces .detail .logs button", has_text="order 1 of").first.click()
    page.wait_for_url("**#at=*")
    look.until_row("order 1 of")
    look.end()


# One use case with a hundred requests, each with the server's side. argv is the store.
MANY = shop.PROGRAM.split("BASE =")[0] + """
with engine.transaction(17) as one:
    for number in range(110):
        told = [("traceparent", one.headers()["traceparent"]), ("X-Number", str(number))]
        for by, start in ((0, number * 10), (1, number * 10 + 2)):
            made = calls.begin(engine._handle, "GET", f"{address}/part/{number}", told, side=by,
                               start_ns=%d + start * 10**6)
            made.response(200, [])
            made.end(duration_ns=(8 - by * 4) * 10**6)
engine.close()
""" % shop.BASE


@full
def folds(place):
    """In a trace of more than 200 spans nested ones are hidden until opened."""
    store = place.directory / "store"
    subprocess.run([sys.executable, "-c", MANY, store, "client", "1", "1", "https://x.example"],
                   check=True, env=shop.environment())
    look = place.look(place.server(store))
    keys, page = look.page.keyboard, look.page
    keys.press("5")
    page.get_by_role("grid", name="Traces").locator("[data-line]").wait_for()
    for key in ("j", "Enter"):
        keys.press(key)
    page.wait_for_url("**open=*")
    spans = page.get_by_role("grid", name="Spans")

    def count():
        return int(spans.get_attribute("aria-rowcount")) - 1

    status = page.locator("#view-traces .bar [role=status]")
    status.filter(has_text="221 spans").wait_for()
    until(lambda: count() == 111, "the servers' sides are hidden")
    for key in ("j", "j"):
        keys.press(key)
    spans.locator("[aria-selected=true]", has_text="▸ GET /part/0").wait_for()
    keys.press("ArrowRight")
    until(lambda: count() == 112, "one is shown")
    spans.locator("[aria-selected=true]", has_text="▾ GET /part/0").wait_for()
    keys.press("ArrowLeft")
    until(lambda: count() == 111, "and hidden again")
    keys.press("k")
    keys.press("ArrowLeft")
    until(lambda: count() == 1, "all are below the first")
    keys.press("ArrowRight")
    until(lambda: count() == 111, "they keep what was hidden")
    nodes = page.evaluate("document.querySelectorAll('*').length")
    holds(nodes < 1_500, f"{nodes} elements")
    look.end()


VIEWS = [("2", "http"), ("4", "transactions"), ("5", "traces")]

JOURNEYS = {f.__name__: f for f in (
    repeats_a_request, shows_bodies, leads_from_a_funnel, follows_a_trace, folds,
    views_have_no_violations)}
