"""Journeys through the views Uploads, Devices and Store. journeys.py runs them."""

import subprocess

import changes
import devices
from cases import equal, full, holds, until
from serving import CORDWOOD, environment


def printed(*words):
    return subprocess.run([CORDWOOD, *map(str, words)], check=True, capture_output=True,
                          text=True, env=environment()).stdout


def choose(look, word):
    look.page.locator(f"input[type=radio][value={word}]").check()


def uploads(place):
    """Consent that a running host sees; failures, causes and retries, by mouse and keyboard."""
    store = place.directory / "store"
    with changes.Taker() as taker:
        taker.status = 400
        for _ in range(2):
            changes.write(store, 20)
            changes.tool("archive", store)
        changes.tool("upload", store, "--to", taker.url, "--kind", "http", "--name", "there",
                     codes=(5,))
        look = place.look(place.server(store))
        page = look.page
        page.keyboard.press("3")
        page.get_by_role("button", name="Retry all that failed").wait_for()
        equal("the address", page.url.split("#")[1], "view=uploads")
        rows = page.get_by_role("region", name="Archives and targets").locator("tbody tr")
        equal("pairs", rows.count(), len(printed("queue", store).splitlines()))
        failed = rows.filter(has_text="400")
        equal("failed ones", failed.count(), 1)
        failed.locator("button.link").focus()
        page.keyboard.press("Enter")
        page.locator("#pair dd", has_text="retry: failed, and tried again").wait_for()
        place.screen(look, "uploads-pair")
        failed.get_by_role("button", name="Preview").click()
        page.locator("#pair h2", has_text="What would be sent").wait_for()
        page.locator("#pair dd", has_text=f"POST {taker.url}…").wait_for()
        # A raw archive, in hexadecimal.
        page.locator("#pair pre", has_text="CWARCH").wait_for()
        equal("nothing was sent", taker.bodies, [])
        place.screen(look, "uploads-preview")
        failed.get_by_role("button", name="Retry").click()
        page.locator("#said", has_text="it is tried again").wait_for()
        until(lambda: "attempt 1 failed" not in printed("queue", store), "the retry")
        page.locator("#uploads-state").select_option("waiting")
        until(lambda: rows.count() == 1, "the filter")
        page.go_back()
        until(lambda: rows.count() == 2, "Back")
        with changes.Host(store, taker.url) as host:
            taker.status = 200
            choose(look, "pending")
            page.locator("#said", has_text="consent is pending").wait_for()
            holds(host.say("send").startswith("not sent"), "sent without consent")
            equal("the command line", printed("consent", store), "pending\n")
            choose(look, "granted")
            page.locator("#said", has_text="consent is granted").wait_for()
            equal("sent", host.say("send"), "False")
            holds(taker.bodies, "nothing arrived")
            # Another change came before the page's.
            changes.tool("consent", store, "pending")
            choose(look, "pending")
            page.locator("#said", has_text="somebody else").wait_for()
            until(lambda: page.locator("input[value=pending]").is_checked(), "what is there")
            page.once("dialog", lambda dialog: dialog.dismiss())
            page.locator("input[value=denied]").click()
            equal("not confirmed", printed("consent", store), "pending\n")
        look.said[:] = [text for text in look.said if "409" not in text]
        look.end()


@full
def fleet_of(place):
    """Devices, their figures, the way to the records of one. Levels and capture in Store."""
    store = place.directory / "store"
    devices.fleet(store, 0, 12)
    devices.fleet(store, 12, 13, 20, "host.name", "<b>x</b>")
    look = place.look(place.server(store))
    page = look.page
    page.keyboard.press("6")
    rows = page.get_by_role("region", name="Figures").locator("tbody tr")
    until(lambda: rows.count() == 13, "the devices")
    wanted = devices.counted(devices.cat(store))
    for row in rows.all():
        cells = [cell.text_content().replace("\u202f", "") for cell in row.locator("th, td").all()]
        equal(cells[0], [int(cells[3]), int(cells[4])], wanted[cells[0]][:2])
    page.locator("#devices-part").fill("dev-1")
    page.locator("#devices-part").press("Enter")
    until(lambda: rows.count() == 4, "part of a name")
    place.screen(look, "devices")
    page.get_by_role("button", name="dev-12", exact=True).click()
    look.settled()
    equal("the question", page.locator("#query-text").input_value(), "host.name=dev-12")
    page.go_back()
    until(lambda: rows.count() == 4, "Back")
    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.press("7")
    choose(look, "on")
    page.locator("#said", has_text="capture is on").wait_for()
    holds("http on" in (store / "control").read_text(), "capture is not on")
    page.locator("input[placeholder='app.db=debug']").fill("app=debug noise=off")
    page.keyboard.press("Enter")
    page.locator("#said", has_text="levels are set").wait_for()
    equal("levels", printed("level", store), "app=debug\nnoise=off\n")
    page.get_by_role("button", name="Let programs decide about noise").click()
    page.locator("#said", has_text="programs decide").wait_for()
    equal("levels", printed("level", store), "app=debug\n")
    place.screen(look, "store")
    look.end()


@full
def read_only(place):
    """What cannot be changed is marked so."""
    store = place.directory / "store"
    changes.write(store, 3)
    look = place.look(place.server("--read-only", store))
    look.page.keyboard.press("3")
    look.page.locator("fieldset[disabled]").wait_for()
    look.page.keyboard.press("7")
    look.page.locator("#view-store fieldset[disabled]").wait_for()
    equal("forms", look.page.locator("#view-store form").count(), 0)
    look.end()


@full
def managing_has_no_violations(place):
    """axe over the three views, in light, dark and at 200 %; screenshots of each."""
    store = place.directory / "store"
    devices.fleet(store, 0, 8)
    changes.tool("upload", store, "--to", "http://127.0.0.1:9/", "--kind", "http", codes=(5,))
    changes.tool("level", store, "app.db=debug", "noise=off")
    look = place.look(place.server(store))
    for name, page in place.looks(look):
        for view in ("uploads", "devices", "store"):
            page.goto(f"{look.origin}/#view={view}")
            page.reload()
            page.locator(f"#view-{view} tbody tr").first.wait_for()
            if view == "uploads":
                page.locator("#view-uploads button.link").first.click()
            place.has_no_violation(page, f"{view}-{name}")
