#!/usr/bin/env python3
"""The viewer's page as people use it: Debian's Chromium, driven by Playwright, over stores that
Python programs write. What the page shows must be what `cordwood` prints.

    journeys.py [--size S] [--seed S] [-k PATTERN …] [CASE …]

Without Chromium or Playwright every case is skipped. Screenshots are in build/viewer-screens, for a
person to look at."""

import importlib.util
import json
import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(ROOT / "Tests/TestSupport"), str(ROOT / "bindings/python/src")]

import cases  # noqa: E402
import environments  # noqa: E402
import follow_journeys  # noqa: E402
import guard_journeys  # noqa: E402
import manage_journeys  # noqa: E402
import stores  # noqa: E402
import view_journeys  # noqa: E402
from asking import Asking  # noqa: E402
from cases import equal, full, holds, sized, until  # noqa: E402

BUILD = Path(os.environ.get("CORDWOOD_BUILD", ROOT / "build"))
CORDWOOD = str(BUILD / "bin/cordwood")
CHROMIUM = "/usr/bin/chromium"
SCREENS = ROOT / "build/viewer-screens"
WAIT_MS = 30_000
NODES_MAX = 1_500

# Lines of the standard input become records. The process lives until it ends.
HOST = """
import cordwood, json, sys
engine = cordwood.open(sys.argv[1], process_name=sys.argv[2], level="trace")
print("ready", flush=True)
for line in sys.stdin:
    one = json.loads(line)
    logger = engine.logger(one.get("logger", "app"))
    for number in range(one.get("count", 1)):
        logger.log(one.get("level", "INFO"), one["message"].replace("%N", str(number)),
                   **one.get("fields", {}))
    print("done", flush=True)
engine.close()
"""


class Writer:
    """A program that logs lines on request."""

    def __init__(self, store, name="shop"):
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOST, store, name], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
            env={**os.environ, "CORDWOOD_LIBRARY": str(BUILD / "lib/libcordwood.so"),
                 "PYTHONPATH": str(ROOT / "bindings/python/src")})
        equal("the writer", self.process.stdout.readline(), "ready\n")

    def log(self, message, **more):
        self.process.stdin.write(json.dumps({"message": message, **more}) + "\n")
        self.process.stdin.flush()
        equal("the writer", self.process.stdout.readline(), "done\n")

    def end(self):
        self.process.stdin.close()
        equal("the writer's exit code", self.process.wait(), 0)


class Server:
    """`cordwood serve` over stores."""

    def __init__(self, *stores):
        self.process = subprocess.Popen(
            [CORDWOOD, "serve", *map(str, stores)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env={**os.environ, "CORDWOOD_CACHE": "off", "TZ": "UTC"})
        self.link = next(word for line in self.process.stdout for word in line.split()
                         if word.startswith("http://"))

    def memory(self):
        """Its peak memory, in bytes."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", text)[1]) * 1024

    def end(self):
        self.process.send_signal(signal.SIGINT)
        equal("the server's exit code", self.process.wait(30), 0)


class Look:
    """A page on a server, with its requests, reports and console lines."""

    def __init__(self, browser, link, **options):
        self.context = browser.new_context(
            viewport={"width": 1400, "height": 900}, timezone_id="UTC",
            permissions=["clipboard-read", "clipboard-write"], **options)
        self.origin = link.split("/open/")[0]
        self.asked, self.said = [], []
        self.page = self.open(link)

    def open(self, link):
        page = self.context.new_page()
        page.set_default_timeout(WAIT_MS)
        page.add_init_script("window.reports = []; document.addEventListener("
                             "'securitypolicyviolation', (e) => reports.push(e.violatedDirective))")
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        page.goto(link)
        self.page = page
        self.settled()
        return page

    def settled(self):
        """Waits until everything is counted."""
        self.page.locator("#count").filter(has_text=re.compile(r"match(es)?\b")).wait_for()

    def count(self):
        """The count of the whole result. Another query may begin between waiting and reading."""
        while True:
            self.settled()
            text = self.page.locator("#count").text_content()
            if found := re.match(r"([\d\u202f]+) match", text):
                return int(found[1].replace("\u202f", ""))

    def ask(self, query):
        """As by hand: the query's field, Enter."""
        self.page.keyboard.press("Escape")
        self.page.locator("#query-text").fill(query)
        self.page.locator("#query-text").press("Enter")
        self.settled()

    def rows(self):
        """The texts of the rows present as elements, in list order."""
        return self.page.evaluate(
            "[...document.querySelectorAll('.row')].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex)"
            ".map((row) => row.querySelector('.text').textContent)")

    def until_row(self, text):
        self.page.locator(".row .text", has_text=text).first.wait_for()

    def end(self):
        """No request went elsewhere, nothing was forbidden, nothing failed."""
        equal("reports of the policy", self.page.evaluate("window.reports"), [])
        equal("the console", self.said, [])
        away = [url for url in self.asked if not url.startswith((self.origin + "/", "blob:"))]
        equal("requests to elsewhere", away, [])
        equal("the title", self.page.title(), "Cordwood")
        self.context.close()


def tool_count(store, query):
    done = subprocess.run([CORDWOOD, "grep", "-c", "-q", query, "", store], check=False,
                          capture_output=True, text=True)
    holds(done.returncode in (0, 1), done.stderr)
    return int(done.stdout)


def filled(place, count=2_000):
    """A store that is not being written: levels, loggers and fields by turns."""
    store = place.directory / "store"
    writer = Writer(store)
    for part in range(count // 50):
        level = ["DEBUG", "INFO", "INFO", "WARNING", "ERROR"][part % 5]
        writer.log(f"part {part} record %N", count=50, level=level,
                   logger=["app.db", "app.web", "ui"][part % 3],
                   fields={"order": part, "user": ["anna", "bo b", '"'][part % 3]})
    writer.end()
    return store


# ── The journeys ──

def opens_once(place):
    """The link works once. A browser without the cookie is told so."""
    server = place.server(filled(place, 50))
    look = place.look(server)
    equal("matches", look.count() >= 50, True)
    look.end()
    stranger = place.browser.new_context()
    answer = stranger.new_page().goto(server.link)
    holds(answer.status >= 400, f"the link worked twice: {answer.status}")
    stranger.close()


def finds(place):
    """A query, a facet's click, Alt-click, an error with its column, and Back."""
    store = filled(place)
    look = place.look(place.server(store))
    for query in ("level>=error", "logger:app order=3", '"part 7 record 4"', "absent"):
        look.ask(query)
        equal(f"matches of {query}", look.count(), tool_count(store, query))
    look.ask("")
    facet = look.page.locator("#facets button", has_text="ERROR")
    facet.click()
    look.page.wait_for_url("**/#q=level%3Derror*")
    equal("errors", look.count(), tool_count(store, "level=error"))
    look.page.locator("[data-facet=logger] button", has_text="app.db").click(modifiers=["Alt"])
    look.page.wait_for_url("**-logger*")
    equal("errors of others", look.count(), tool_count(store, "level=error -logger=app.db"))
    look.page.go_back()
    look.page.wait_for_url("**/#q=level%3Derror")
    equal("errors again", look.count(), tool_count(store, "level=error"))
    look.page.locator("#query-text").fill("level>=error (")
    look.page.locator("#query-text").press("Enter")
    look.page.locator("#query-error:not([hidden])").wait_for()
    at = look.page.evaluate("document.getElementById('query-text').selectionStart")
    holds(at >= 13, f"the error's column: {at}")
    look.said.clear()  # the browser's own line about the 400 answer
    place.screen(look, "finds")
    look.end()


@full
def scrolls(place):
    """From the newest record to the oldest and back: each is seen, and only rows that are visible
    are elements."""
    count = sized(1_500, 1_500, 4_000)
    look = place.look(place.server(filled(place, count)))
    look.ask("record")
    nodes = 0

    def walk(by):
        nonlocal nodes
        seen = {}
        still = 0
        while still < 3:
            before = len(seen)
            rows = look.page.evaluate(
                "[...document.querySelectorAll('.row')].map((row) => [row.dataset.key,"
                " row.querySelector('.text').textContent])")
            seen.update(rows)
            nodes = max(nodes, look.page.evaluate("document.querySelectorAll('*').length"))
            look.page.evaluate(f"document.getElementById('rows').scrollBy(0, {by})")
            look.page.evaluate("new Promise((done) => requestAnimationFrame(() =>"
                               " requestAnimationFrame(done)))")
            look.page.wait_for_load_state("networkidle")
            still = still + 1 if len(seen) == before else 0
        return seen
    back = walk(-400)
    equal("records seen", len(back), count)
    forward = walk(400)
    equal("records seen on the way back", set(forward), set(back))
    holds(nodes <= NODES_MAX, f"{nodes} elements")
    look.end()
    return f"{count} records, {nodes} elements at most"


@full
def brushes(place):
    """Dragging over the histogram narrows the time. Keys move and widen it, also over silence."""
    store = place.directory / "store"
    for burst in range(3):
        stores.write(store, 100, times=1_800_000_000.0 + burst * 1_000)
    look = place.look(place.server(store))
    look.ask("kind=log")
    equal("all", look.count(), 300)
    box = look.page.locator("#histogram canvas").bounding_box()
    y = box["y"] + box["height"] / 2
    look.page.mouse.move(box["x"] + box["width"] * 0.4, y)
    look.page.mouse.down()
    look.page.mouse.move(box["x"] + box["width"] * 0.6, y, steps=5)
    look.page.mouse.up()
    look.page.wait_for_url("**since=*")
    equal("narrowed", look.count(), 100)
    look.page.locator("#histogram canvas").focus()
    for keys, wanted in (("]]]", 0), ("[[[", 100), ("---", 300)):
        for key in keys:
            before = look.page.url
            look.page.keyboard.press(key)
            until(lambda: look.page.url != before, f"{key} asks")
        equal(f"after {keys}", look.count(), wanted)
    for _ in range(10):
        look.page.go_back()
    until(lambda: look.count() == 300 and "since" not in look.page.url, "Back shows everything")
    look.end()


def follows(place):
    """New records appear as they are written, only those of the query, also over a roll. A reader
    that scrolled up stays in place."""
    store = place.directory / "store"
    writer = Writer(store)
    writer.log("before %N", count=100)
    look = place.look(place.server(store))
    look.ask("level>=warn")
    look.page.keyboard.press("Escape")
    look.page.keyboard.press("f")
    look.page.locator("#follow[aria-pressed=true]").wait_for()
    writer.log("quiet")
    writer.log("loud one", level="WARNING")
    look.until_row("loud one")
    subprocess.run([CORDWOOD, "archive", store], check=True, capture_output=True)
    writer.log("loud two", level="ERROR")
    look.until_row("loud two")
    holds(not [row for row in look.rows() if "quiet" in row], "the query is not applied")
    look.page.keyboard.press("f")
    look.page.locator("#follow[aria-pressed=false]").wait_for()
    writer.end()
    place.screen(look, "follows")
    look.end()


def leaves(place):
    """A reader that navigates away stops following, and the page says so."""
    store = place.directory / "store"
    writer = Writer(store)
    writer.log("old %N", count=700)
    look = place.look(place.server(store))
    page = look.page
    follow = page.locator("#follow")
    pressed, released = (page.locator(f"#follow[aria-pressed={word}]")
                         for word in ("true", "false"))

    def goes_to_a_time():
        page.keyboard.press("t")
        page.locator("#go-to-time").fill("1h ago")
        page.keyboard.press("Enter")

    for number, leave in enumerate((lambda: page.keyboard.press("g"), goes_to_a_time)):
        page.keyboard.press("f")
        pressed.wait_for()
        writer.log(f"seen {number}")
        look.until_row(f"seen {number}")
        leave()
        released.wait_for()
        until(lambda: any("old 0" in row for row in look.rows()), "the oldest")
        holds("following" not in page.locator("#count").text_content(), "it says that it follows")
        holds("follow" not in page.url, f"the address: {page.url}")
        page.keyboard.press("G")
        look.until_row(f"seen {number}")
        equal("what it says", follow.get_attribute("aria-pressed"), "false")
    # With everything in the list there is no way to leave.
    look.ask('"seen"')
    page.keyboard.press("Escape")
    with page.expect_request("**/api/tail?*"):  # sent once the list is there
        page.keyboard.press("f")
    page.keyboard.press("g")
    writer.log("seen 2")
    look.until_row("seen 2")
    pressed.wait_for()
    writer.end()
    look.end()


@full
def survives_a_kill(place):
    """The host is killed: its last record is there, and the page continues."""
    store = place.directory / "store"
    writer = Writer(store)
    look = place.look(place.server(store))
    look.page.keyboard.press("f")
    writer.log("the last words")
    writer.process.kill()
    writer.process.wait()
    look.until_row("the last words")
    again = Writer(store)
    again.log("the next life")
    look.until_row("the next life")
    again.end()
    look.end()


@full
def links_last(place):
    """A link to a record opens it after its lane was archived, also from another page."""
    store = place.directory / "store"
    writer = Writer(store)
    writer.log("record %N", count=500)
    look = place.look(place.server(store))
    look.ask('"record 250"')
    look.page.keyboard.press("Escape")
    look.page.keyboard.press("j")
    look.page.locator("#detail .message", has_text="record 250").wait_for()
    look.ask("")
    look.ask('"record 250"')
    look.page.locator(".row", has_text="record 250").click()
    look.page.wait_for_url("**record=*")
    link = look.page.url
    writer.end()
    subprocess.run([CORDWOOD, "archive", store], check=True, capture_output=True)
    look.open(link)
    look.page.locator("#detail .message", has_text="record 250").wait_for()
    look.page.keyboard.press(".")
    look.until_row("record 249")
    look.until_row("record 251")
    look.end()


def keyboard_only(place):
    """Query, list, detail, a value included and excluded, copied, closed: without a mouse."""
    store = filled(place)
    look = place.look(place.server(store))
    keys = look.page.keyboard
    keys.press("/")
    keys.type("level>=warn")
    keys.press("Enter")
    look.page.wait_for_url("**level*")
    look.settled()
    keys.press("Escape")
    for key in ("k", "k", "j", "Enter"):
        keys.press(key)
    look.page.locator("#detail:not([hidden]) dl").wait_for()
    order = look.page.locator("#detail dd button[data-term^='order=']")
    for _ in range(20):
        if look.page.evaluate("document.activeElement.dataset.term ?? ''").startswith("order="):
            break
        keys.press("Tab")
    term = order.get_attribute("data-term")
    keys.press("c")
    until(lambda: look.page.evaluate("navigator.clipboard.readText()") == term.split("=")[1],
          "the value is copied")
    keys.press("e")
    look.page.wait_for_url("**order*")
    equal("matches", look.count(), tool_count(store, f"level>=warn {term}"))
    keys.press("c")
    until(lambda: look.page.evaluate("navigator.clipboard.readText()").startswith("cordwood cat"),
          "the command is copied")
    command = look.page.evaluate("navigator.clipboard.readText()")
    printed = subprocess.run(command.replace("cordwood", CORDWOOD, 1), shell=True, check=True,
                             capture_output=True, text=True).stdout
    equal("the command's lines", len(printed.splitlines()), look.count())
    keys.press("?")
    look.page.locator("#dialog[open]").wait_for()
    keys.press("Escape")
    keys.press("t")
    keys.type("1970-01-01")
    keys.press("Enter")
    look.page.locator(".row[aria-rowindex='1']").wait_for()
    look.end()


HOSTILE = [
    "<script>document.title = 'taken'</script>", "</title><img src=http://192.0.2.1/x.png>",
    "<svg onload=alert(1)>", "\u202egnirts\u202c", "nul\u0000nul", "\u001b]0;taken\u0007",
    "javascript:alert(1)", "'\"><iframe src=//192.0.2.1>", "{{constructor.constructor('x')()}}",
    "a" * 300_000, "\u0301" * 500, "line\nline\r\nline",
]


def obeys_nothing(place):
    """Records, names and fields that are markup, control characters or very long appear as text."""
    store = place.directory / "store"
    writer = Writer(store, name="<b>shop</b>")
    for text in HOSTILE:
        writer.log(text, logger=text.replace("\0", "0")[:100],
                   fields={text.replace("\0", "0")[:200]: text, "order": 1})
    writer.log("many", fields={f"field{number}": "<i>x</i>" for number in range(500)})
    writer.end()
    look = place.look(place.server(store))
    look.ask("order=1")
    look.page.keyboard.press("Escape")
    for _ in range(len(HOSTILE)):
        look.page.keyboard.press("k")
        look.page.locator("#detail dl").wait_for()
    look.ask("many")
    look.page.keyboard.press("Escape")
    look.page.keyboard.press("j")
    look.page.locator("#detail dt", has_text="field499").wait_for()
    for button in look.page.locator("#facets button").all()[:30]:
        holds(button.get_attribute("data-term"), "a facet without a term")
    holds(look.page.evaluate("document.querySelectorAll('iframe, img, svg, b, i').length") == 0,
          "markup of a record is in the page")
    place.screen(look, "obeys-nothing")
    look.end()


def has_no_violations(place):
    """axe, in light, dark and at 200 %, with screenshots of each; in the core once, at 200 %."""
    look = place.look(place.server(filled(place)))
    for name, page in place.looks(look):
        page.goto(look.origin)
        page.locator(".row").first.wait_for()
        for shown in sized(("detail",), ("list", "detail"), ("list", "detail")):
            if shown == "detail":
                page.keyboard.press("k")
                page.locator("#detail dl").wait_for()
            place.has_no_violation(page, f"logs-{name}-{shown}")


@full
def counts_as_the_command(place):
    """The page's counts of generated queries are those of the command and of the oracle."""
    store, held = stores.mixed(place.directory, place.seed)
    try:
        look = place.look(place.server(store))
        matching = stores.oracle(store)
        chance = random.Random(place.seed)
        asking = Asking(chance, [line["time"] for line in chance.sample(stores.cat(store), 20)])
        for _ in range(sized(20, 20, 200)):
            query = asking.query()
            look.ask(query)
            equal(f"matches of {query}", look.count(), tool_count(store, query))
            equal(f"the oracle of {query}", matching(query), look.count())
        look.end()
    finally:
        stores.let_go(held)


JOURNEYS = {f.__name__: f for f in (
    opens_once, finds, scrolls, brushes, follows, leaves, survives_a_kill, links_last,
    keyboard_only,
    obeys_nothing, has_no_violations, counts_as_the_command, manage_journeys.uploads,
    manage_journeys.fleet_of, manage_journeys.read_only,
    manage_journeys.managing_has_no_violations)}
JOURNEYS |= guard_journeys.JOURNEYS | view_journeys.JOURNEYS | follow_journeys.JOURNEYS


class Place:
    """A case's directory, browser and servers."""

    def __init__(self, directory, browser, seed):
        self.directory, self.browser = directory, browser
        self.seed, self.servers = seed, []

    def server(self, *stores):
        self.servers.append(Server(*stores))
        return self.servers[-1]

    def look(self, server):
        return Look(self.browser, server.link)

    def looks(self, look):
        """(name, page) of the same session in light, dark and at 200 %; in the core at 200 % alone.
        Closes the look."""
        state = look.context.storage_state()
        look.end()
        kinds = (("light", "light", 1), ("dark", "dark", 1), ("double", "light", 2))
        for name, scheme, scale in sized(kinds[-1:], kinds, kinds):
            context = self.browser.new_context(
                storage_state=state, color_scheme=scheme, device_scale_factor=scale,
                bypass_csp=True, timezone_id="UTC",
                viewport={"width": 1400 // scale, "height": 900 // scale})
            yield name, context.new_page()
            context.close()

    @staticmethod
    def has_no_violation(page, name):
        """Checks with axe. Keeps a screenshot of that name."""
        folder = Path(importlib.util.find_spec("axe_core_python").origin).parent
        page.evaluate(next(folder.rglob("axe.min.js")).read_text())
        found = page.evaluate("axe.run()")["violations"]
        page.screenshot(path=SCREENS / f"{name}.png")
        equal(f"violations in {name}",
              [(one["id"], one["nodes"][0]["html"][:80]) for one in found], [])

    @staticmethod
    def screen(look, name):
        look.page.screenshot(path=SCREENS / f"{name}.png")

    def end(self):
        for server in self.servers:
            server.end()


def main():
    arguments = cases.parser(description=__doc__).parse_args()
    table = cases.chosen(JOURNEYS, arguments)
    run = cases.Run()
    missing = None if Path(CHROMIUM).exists() else "no Chromium here"
    python = None if missing else environments.interpreter("viewer")
    if not missing and python is None:
        missing = "PyPI did not give Playwright"
    if missing:
        def skipped(_name, _case):
            raise cases.Skipped(missing)
        run.all(table, skipped)
        return run.end()
    if importlib.util.find_spec("playwright") is None:
        os.execv(python, [python, *sys.argv])
    from playwright.sync_api import sync_playwright
    SCREENS.mkdir(parents=True, exist_ok=True)
    with cases.folder("viewer") as directory, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[
            "--no-sandbox", f"--host-resolver-rules=MAP {guard_journeys.ELSEWHERE} 127.0.0.1"])

        def one(name, case):
            work = directory / name
            work.mkdir()
            place = Place(work, browser, arguments.seed)
            try:
                return case(place)
            finally:
                place.end()
        run.all(table, one)
        browser.close()
    return run.end()


if __name__ == "__main__":
    sys.exit(main())
