// The view of all records: histogram, facets, the list and the detail of one.

import { Refusal } from "./api.js";
import { Detail } from "./detail.js";
import { Facets } from "./facets.js";
import { Histogram } from "./histogram.js";
import { Asker } from "./parts.js";
import { Rows } from "./rows.js";
import { exactText } from "./time.js";
import { counted, element, grouped, named, openDialog } from "./text.js";

/** @typedef {import("./api.js").Line} Line */

const NONE = { matched: 0, isExact: false, progress: 0, skipped: 0 };

export class Logs extends Asker {
  name = "logs";
  title = "Logs";
  asks = true;

  /** @param {import("./views.js").Host} host */
  constructor(host) {
    super(host);
    /** Of the result: what has been counted so far. */
    this.tally = { ...NONE };
    this.histogram = new Histogram((since, until) =>
      host.ask({ since: exactText(since), until: exactText(until) }), host.time);
    this.facets = new Facets();
    this.rows = new Rows({
      onSelect: (row) => {
        host.change({ selected: row.key }, false);
        this.detail.show(row);
      },
      onLines: (lines) => this.take(lines),
      onMove: () => this.showPlace(), onLeave: () => this.setFollow(false), time: host.time,
      onError: (error) => {
        host.tell(error);
        if (error instanceof Refusal) named("count", HTMLElement).textContent = "";
      },
    });
    this.detail = new Detail({
      onError: host.tell, onClose: () => this.close(), time: host.time,
      onAround(row) { host.ask({ q: "", since: "", until: "", at: row.key, follow: false }); },
    });
    named("follow", HTMLElement).addEventListener("click", () => this.toggleFollow());
    named("go-to", HTMLElement).addEventListener("click", () => this.askTime());
    const place = named("place", HTMLElement);
    place.addEventListener("click", (event) => {
      const box = place.getBoundingClientRect();
      const time = this.histogram.timeAt((event.clientY - box.top) / box.height);
      if (time !== null) this.run(this.rows.goTo(exactText(time)));
    });
  }

  show() {
    const { state } = this;
    this.detail.hide();
    this.tally = { ...NONE };
    this.facets.clear();
    this.histogram.forget(state.since, state.until);
    named("problems", HTMLElement).replaceChildren();
    this.setFollow(state.follow);
    this.rows.open(state.selected && !state.at ? { ...state, at: state.selected } : state);
  }

  hide() {
    this.detail.hide();
    this.rows.stop();
  }

  redraw() {
    this.rows.redraw();
    this.histogram.draw();
    this.showCount();
  }

  focus() {
    this.rows.box.focus();
  }

  close() {
    if (this.detail.box.hidden) return;
    this.detail.hide();
    this.rows.mark("");
    this.host.change({ selected: "" }, false);
    this.focus();
  }

  command() {
    return this.commandOf({});
  }

  /**
   * Takes histogram, facets, counts and damage from the lines.
   * @param {Line[]} lines
   */
  take(lines) {
    const { tally } = this;
    this.facets.show(lines.flatMap((line) => line.facet ?? []));
    for (const line of lines) {
      if (line.hist) this.histogram.show(line.hist);
      if (line.progress !== undefined) tally.progress = line.progress;
      if (line.skipped) tally.skipped += line.skipped;
      if (line.problem) tellProblem(line.problem);
      if (line.done && line.done.matched !== undefined) {
        tally.matched = line.done.matched;
        tally.isExact = line.done.exact;
        tally.progress = 1;
      }
    }
    this.showCount();
  }

  showCount() {
    const { tally, rows } = this;
    const count = named("count", HTMLElement);
    let text;
    if (tally.isExact) {
      text = counted(tally.matched, "match", "matches");
    } else {
      const known = Math.max(tally.matched, rows.items.length);
      text = `≥ ${grouped(known)}, ${Math.round(tally.progress * 100)} % read …`;
    }
    named("none", HTMLElement).hidden = !tally.isExact || rows.items.length > 0;
    if (this.state.follow) text += ", following";
    if (tally.skipped > 0) text += `, ${grouped(tally.skipped)} came too fast to show`;
    text = `${text} · ${this.host.zone()}`;
    if (count.textContent !== text) count.textContent = text;
  }

  /** The bar beside the list: where in all records the list is. */
  showPlace() {
    const thumb = named("place", HTMLElement).firstElementChild;
    if (!(thumb instanceof HTMLElement)) return;
    const first = this.rows.firstSeen();
    const share = first ? this.histogram.shareBefore(BigInt(first.time_ns)) : 1;
    const isLast = !this.rows.hasNewer && this.rows.isAtEnd();
    thumb.style.top = `${Math.min(isLast ? 1 : share, 0.97) * 100}%`;
  }

  // ── Hands ──

  toggleFollow() {
    const part = this.state.follow ? { follow: false } : { follow: true, at: "", until: "" };
    this.host.change(part, false);
    this.show();
  }

  /** @param {boolean} follow */
  setFollow(follow) {
    this.host.change({ follow }, false);
    named("follow", HTMLElement).setAttribute("aria-pressed", String(follow));
    this.showCount();
  }

  askTime() {
    const field = element("input", {
      type: "text", id: "go-to-time", spellcheck: false, size: 32,
      placeholder: "2026-11-26T08:15, 10m ago, yesterday 14:30",
    });
    const form = element("form", { method: "dialog" },
      element("label", { htmlFor: "go-to-time" }, "Time, as --since takes it"), field,
      element("button", {}, "Go"));
    form.addEventListener("submit", () => {
      const time = field.value.trim();
      if (time) this.run(this.rows.goTo(time));
      this.focus();
    });
    openDialog("Go to a time", form);
  }

  get keys() {
    return {
      ...this.rows.moves,
      Enter: () => {
        const row = this.rows.item;
        if (!row) return this.rows.move(0);
        this.detail.show(row);
        this.detail.box.querySelector("button")?.focus();
      },
      Escape: () => this.close(),
      f: () => this.toggleFollow(), t: () => this.askTime(),
      "[": () => this.histogram.shift(-1), "]": () => this.histogram.shift(1),
      ArrowLeft: () => this.histogram.shift(-1), ArrowRight: () => this.histogram.shift(1),
      "+": () => this.histogram.zoom(true), "-": () => this.histogram.zoom(false),
      ".": () => {
        const row = this.rows.item;
        if (row) this.detail.listener.onAround(row);
      },
      T: () => {
        const row = this.rows.item;
        if (row?.trace_id) this.toLogs(`trace:${row.trace_id}`);
      },
    };
  }

  help = [
    ["j k ↓ ↑", "next, previous record"], ["Enter", "its detail"], ["f", "follow"],
    ["g G", "oldest, newest"], ["t", "go to a time"], ["[ ] ← →", "half a window earlier, later"],
    ["+ −", "zoom in, out"], [".", "what was around the record"],
    ["T", "all of the record's trace"],
  ];
}

/** @param {string} text */
function tellProblem(text) {
  const list = named("problems", HTMLElement);
  if (list.childElementCount < 20) list.append(element("li", {}, text));
}
