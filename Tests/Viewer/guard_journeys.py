"""Journeys of visitors who must not be let in, of two pages, and of names that look like markup."""

import http.server
import socketserver
import threading

import devices
import stores
from cases import equal, full, holds, until
from manage_journeys import choose, printed

# A name that resolves to this machine, like that of a rebinding server.
ELSEWHERE = "rebound.example"

# What a page of another site may try: to read, and to change something without reading.
ATTACK = """async (origin) => {
  const tries = [
    fetch(`${origin}/api/store`, { credentials: "include" }),
    fetch(`${origin}/api/store`, { credentials: "include", headers: { "X-Cordwood": "1" } }),
    fetch(`${origin}/`, { credentials: "include" }),
    fetch(`${origin}/api/consent`, { method: "POST", mode: "no-cors", credentials: "include",
      body: '{"value":"denied","version":"0"}' }).then((answer) => answer.text()),
  ];
  return (await Promise.allSettled(tries)).map((one) => one.value ?? "refused");
}"""


def rebinds(place):
    """Under a name that was rebound to this machine nothing is served, and no link is used up. The
    same holds for a page of another site in the browser that has the cookie."""
    store = place.directory / "store"
    stores.write(store, 5)
    server = place.server(store)
    port = server.link.split(":")[2].split("/")[0]
    elsewhere = f"http://{ELSEWHERE}:{port}"
    stranger = place.browser.new_context()
    page = stranger.new_page()
    for path in ("/", "/" + server.link.split("/", 3)[3], "/api/store", "/page/app.js"):
        equal(f"{path} by another name", page.goto(elsewhere + path).status, 421)
    stranger.close()
    look = place.look(server)  # the link still works
    handler = http.server.SimpleHTTPRequestHandler
    handler.log_message = lambda *_: None
    with socketserver.TCPServer(("127.0.0.1", 0), handler) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        other = look.context.new_page()
        for name in ("127.0.0.1", ELSEWHERE):
            other.goto(f"http://{name}:{site.server_address[1]}/nothing")
            found = other.evaluate(ATTACK, look.origin)
            equal(f"read by {name}", [text for text in found if text not in ("refused", "")], [])
        site.shutdown()
    equal("consent", printed("consent", store), "granted\n")
    look.end()


@full
def two_pages(place):
    """A page does not overwrite a change by another page that it has not seen, but shows it."""
    store = place.directory / "store"
    stores.write(store, 5)
    first = place.look(place.server(store))
    second = place.look(place.server(store))
    for look in (first, second):
        look.page.keyboard.press("3")
        look.page.locator("input[value=granted]:checked").wait_for()
    choose(first, "pending")
    first.page.locator("#said", has_text="consent is pending").wait_for()
    second.page.once("dialog", lambda dialog: dialog.accept())
    second.page.locator("input[value=denied]").click()
    second.page.locator("#said", has_text="somebody else").wait_for()
    until(lambda: second.page.locator("input[value=pending]").is_checked(), "what is there")
    equal("consent", printed("consent", store), "pending\n")
    for look in (first, second):
        look.page.keyboard.press("Escape")
        look.page.locator("h1").click()
        look.page.keyboard.press("7")
        look.page.locator("input[placeholder='app.db=debug']").wait_for()
    first.page.locator("input[placeholder='app.db=debug']").fill("app=debug")
    first.page.keyboard.press("Enter")
    first.page.locator("#said", has_text="levels are set").wait_for()
    second.page.locator("input[placeholder='app.db=debug']").fill("app=off")
    second.page.keyboard.press("Enter")
    second.page.locator("#said", has_text="somebody else").wait_for()
    second.page.locator("td", has_text="debug").wait_for()
    equal("levels", printed("level", store), "app=debug\n")
    second.said[:] = [text for text in second.said if "409" not in text]
    for look in (first, second):
        look.end()


NAMES = ["<img src=x onerror=alert(1)>", "</title><b>", "\u202egnirts", "a\x1b]0;x\x07", "'\"><i>"]


def obeys_no_name(place):
    """If the names of stores, machines, programs, targets and loggers are markup, every view shows
    them as text."""
    paths = []
    for number, name in enumerate(NAMES):
        store = place.directory / f"{name.replace('/', '')}{number}"
        paths.append(store)
        devices.named(store, name)
        stores.tool("upload", store, "--to", "http://127.0.0.1:9/", "--kind", "http", "--name",
                    name.replace("\x1b", "").replace("\x07", ""), codes=(5,))
        stores.tool("level", store, "b<i>=debug")
    look = place.look(place.server(*paths))
    page = look.page
    for view in ("logs", "uploads", "devices", "store", "http", "traces", "transactions"):
        page.goto(f"{look.origin}/#view={view}")
        page.reload()
        if view in ("uploads", "devices", "store"):
            page.locator(f"#view-{view} tbody tr").nth(len(NAMES) - 1).wait_for()
            shown = page.locator(f"#view-{view}").text_content()
            for text in ("<img src=x onerror=alert(1)>", "\\u202egnirts"):
                holds(text in shown, f"{text} is not in {view}")
        page.wait_for_load_state("networkidle")
        equal(f"markup in {view}", page.evaluate(
            "document.querySelectorAll('main :is(img, iframe, i, script), main b:not(label b),"
            " head title ~ b').length"), 0)
    look.end()


JOURNEYS = {f.__name__: f for f in (rebinds, two_pages, obeys_no_name)}
