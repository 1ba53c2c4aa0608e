// The view of captured HTTP exchanges: a list with a waterfall on one axis of time, and one of them
// with its headers, bodies, times and records.

import { get, stream } from "./api.js";
import { showBody } from "./body.js";
import { bar, Lines } from "./lines.js";
import { aside, Asker, facts, fill, listed, selection } from "./parts.js";
import { msText } from "./time.js";
import {
  button, comparison, copy, counted, element, grouped, nothing, oneLine, quoted, sizeText,
  visible,
} from "./text.js";

/** @typedef {import("./api.js").Exchange} Exchange */
/** @typedef {{all: number, failed: number, slow: number, pending: number, matched: number,
 *   exact: boolean, next: string | null}} Counts */

const PAGE = 200;
const PRESETS = /** @type {const} */ ([
  ["all", "All"], ["failed", "Failed"], ["slow", "Slow"], ["pending", "Pending"],
]);
const TABS = ["Headers", "Body", "Timing", "Logs"];

/**
 * What there is instead of a status where no answer came.
 * @param {Exchange} one
 */
function statusText(one) {
  if (one.status !== undefined) return String(one.status);
  if (one.state !== "done") return one.state === "open" ? "pending" : one.state;
  return one.cancelled ? "gone" : "–";
}

/** @param {Exchange} one */
function pathOf(one) {
  return one.url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, "") || "/";
}

/** @param {Exchange} one */
function problemOf(one) {
  const parts = [one.cancelled ? "cancelled" : "", one.error?.type, one.error?.message,
    one.odata?.code, one.odata?.message];
  if (one.state === "lost") parts.push("its process or engine is gone");
  return [...new Set(parts.filter(Boolean))].join(": ");
}

export class HTTP extends Asker {
  name = "http";
  title = "HTTP";
  asks = true;

  /** @param {import("./views.js").Host} host */
  constructor(host) {
    super(host);
    /** @type {Counts | null} */
    this.counts = null;
    /** The axis: ms of UTC. */
    this.axis = { from: 0, to: 1 };
    this.detailLife = new AbortController();
    /** The detail takes the focus when it comes. */
    this.wantsFocus = false;
    this.lines = /** @type {Lines<Exchange>} */ (new Lines({
      label: "Exchanges", name: (one) => one.key,
      columns: [["time", "Time"], ["method", "Method"], ["status", "Status"], ["host", "Host"],
        ["path", "Path"], ["type", "Type"], ["size", "Up"], ["size", "Down"], ["ms", "Took"],
        ["falls", "Waterfall"]],
      look: (one) => one.failed ? "failed" : one.state === "open" ? "pending" : "",
      cells: (one) => this.cells(one),
      onSelect: (one) => this.open(one.key), onEnd: () => this.more(),
    }));
    this.presets = PRESETS.map(([name, title]) =>
      button(title, () => this.choose({ only: name === "all" ? "" : name })));
    this.sort = selection("http-sort", "Order", [["", "newest first"],
      ["duration", "longest first"]], (sort) => this.choose({ sort }));
    this.aside = aside("Exchange");
    this.body = element("div", { class: "columns" }, this.lines.box, this.aside);
    this.parts = [
      element("div", { class: "bar" },
        element("div", { role: "group", "aria-label": "Which" }, ...this.presets),
        ...this.sort.parts,
        button("Save HAR", () => this.save("http.har", this.asked, "cordwood.har"), { title: "Save these exchanges as HAR 1.2" }),
        this.status),
      this.body,
    ];
  }

  show() {
    const { more } = this.state;
    this.begin();
    this.counts = null;
    this.sort.select.value = more.sort ?? "";
    this.lines.show([]);
    this.lines.mark(more.open ?? "");
    this.tell();
    this.load(null);
    if (more.open) this.run(this.showDetail(more.open));
    else this.aside.hidden = true;
  }

  hide() {
    super.hide();
    this.detailLife.abort();
  }

  redraw() {
    this.lines.redraw();
    this.tell();
  }

  focus() {
    this.lines.box.focus();
  }

  /** @param {Record<string, string>} more */
  choose(more) {
    this.askMore({ open: "", ...more });
  }

  get asked() {
    const { only, sort } = this.state.more;
    return { ...super.asked, only, sort };
  }

  command() {
    return this.commandOf({ verb: "http", sort: "" });
  }

  /** @param {string | null} from after this key */
  load(from) {
    this.read("http", { ...this.asked, from, limit: PAGE }, (lines, done) => {
      if (done.matched !== undefined) this.counts = /** @type {any} */ (done);
      this.lines.items = [...this.lines.items, ...lines.flatMap((line) => line.exchange ?? [])];
      this.measure();
      this.lines.redraw();
      this.tell();
    }, ({ progress }) => {
      if (progress) this.status.textContent = `${Math.round(progress * 100)} % read`;
    });
  }

  more() {
    const next = this.counts?.next;
    if (next && !this.isLoading) this.load(next);
  }

  /** The axis of all that is loaded. */
  measure() {
    let from = Infinity, to = 0;
    for (const one of this.lines.items) {
      const start = startOf(one);
      from = Math.min(from, start);
      to = Math.max(to, one.state === "open" ? Date.now() : start + (one.duration_ms ?? 0));
    }
    if (to > 0) this.axis = { from, to: Math.max(to, from + 0.001) };
  }

  /** @param {Exchange} one */
  cells(one) {
    const { from, to } = this.axis;
    const start = (startOf(one) - from) / (to - from);
    const end = one.state === "open" ? 1 : start + (one.duration_ms ?? 0) / (to - from);
    const problem = problemOf(one);
    return [
      this.time(one.start_ns), oneLine(one.method), statusText(one), oneLine(one.host ?? ""),
      `${oneLine(pathOf(one).slice(0, 500))}${problem ? `  ! ${oneLine(problem)}` : ""}`,
      oneLine((one.response?.type ?? "").replace(/;.*/, "")),
      sizeText(one.request?.body_bytes), sizeText(one.response?.body_bytes),
      msText(one.duration_ms), bar(start, end, one.failed ? "bad" : ""),
    ];
  }

  tell() {
    const { counts, state } = this;
    this.presets.forEach((button, at) => {
      const [name, title] = PRESETS[at];
      button.setAttribute("aria-pressed", String((state.more.only || "all") === name));
      button.textContent = counts ? `${title} ${grouped(counts[name])}` : title;
    });
    this.body.querySelector(".nothing")?.remove();
    this.lines.box.hidden = counts?.matched === 0;
    if (!counts) {
      this.status.textContent = this.busy;
      return;
    }
    const shown = this.lines.items.length;
    this.status.textContent = `${counts.exact ? "" : "≥ "}${counted(counts.matched, "exchange")}`
      + `${shown < counts.matched ? `, ${grouped(shown)} loaded` : ""} · ${this.host.zone()}`;
    if (counts.matched > 0) return;
    this.body.prepend(nothing(this.isFree && !state.more.only
      ? "These stores hold no HTTP exchanges: a program captures them after cordwood http enable."
      : "No HTTP exchange matches."));
  }

  // ── One of them ──

  /** @param {string} key */
  open(key) {
    this.keep({ open: key });
    this.run(this.showDetail(key));
  }

  /**
   * Keeps words in the address.
   * @param {Record<string, string>} more
   */
  keep(more) {
    this.host.change({ more: { ...this.state.more, ...more } }, false);
  }

  close() {
    if (this.aside.hidden) return;
    this.detailLife.abort();
    this.wantsFocus = false;
    this.aside.hidden = true;
    this.keep({ open: "", tab: "" });
    this.lines.mark("");
    this.focus();
  }

  /** @param {string} key */
  async showDetail(key) {
    this.detailLife.abort();
    this.detailLife = new AbortController();
    const { signal } = this.detailLife;
    const one = /** @type {Exchange} */ (await get(`http/${key}`, {}, signal));
    if (signal.aborted) return;
    const hasFocus = this.wantsFocus || this.aside.contains(document.activeElement);
    this.draw(one, signal);
    if (hasFocus) this.focusTab();
  }

  focusTab() {
    const tab = this.aside.querySelector("[role=tab][aria-selected=true]");
    if (tab instanceof HTMLElement) tab.focus();
  }

  /** @param {Exchange} one @param {AbortSignal} signal */
  draw(one, signal) {
    const panel = element("div", { role: "tabpanel", id: "http-panel", tabIndex: 0 });
    const wanted = TABS.find((name) => name.toLowerCase() === this.state.more.tab) ?? TABS[0];
    const note = element("p", { class: "note", role: "status" });
    const choose = (/** @type {string} */ name) => {
      for (const tab of tabs) {
        const isChosen = tab.textContent === name;
        tab.setAttribute("aria-selected", String(isChosen));
        tab.tabIndex = isChosen ? 0 : -1;
      }
      panel.replaceChildren();
      panel.setAttribute("aria-labelledby", `http-tab-${name}`);
      if (name === "Headers") showHeaders(one, panel);
      else if (name === "Timing") showTiming(one, panel);
      else if (name === "Body") this.showBodies(one, panel, signal);
      else this.run(this.showLogs(one, panel, signal));
    };
    const tabs = TABS.map((name, at) => button(name, () => {
      this.keep({ tab: name.toLowerCase() });
      choose(name);
    }, {
      role: "tab", id: `http-tab-${name}`, "aria-controls": "http-panel",
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        const by = { ArrowRight: 1, ArrowLeft: TABS.length - 1 }[event.key];
        if (by === undefined) return;
        const next = tabs[(at + by) % TABS.length];
        next.click();
        next.focus();
      },
    }));
    const actions = element("p", { class: "actions" },
      button("Copy as curl", () => this.run(this.copyCurl(one, note))));
    const { trace_id } = one;
    if (trace_id) actions.append(button("Its trace", () => this.toTrace(trace_id)));
    fill(this.aside, () => this.close(), [
      element("strong", { class: one.failed ? "bad" : "" },
        `${visible(one.method)} ${statusText(one)}`),
      element("span", {}, msText(one.duration_ms)),
    ], element("pre", { class: "message" }, visible(one.url)),
      actions, note,
      element("div", { role: "tablist", "aria-label": "Of the exchange" }, ...tabs), panel);
    const problem = problemOf(one);
    if (problem) panel.before(element("pre", { class: "exception" }, visible(problem)));
    choose(wanted);
  }

  /** @param {Exchange} one @param {HTMLElement} note */
  async copyCurl(one, note) {
    const answer = await get(`http/${one.key}/curl`);
    await copy(answer.text, "curl command");
    note.textContent = visible(answer.notes.join("; "));
  }

  /** @param {Exchange} one @param {HTMLElement} panel @param {AbortSignal} signal */
  showBodies(one, panel, signal) {
    for (const side of /** @type {const} */ (["request", "response"])) {
      const message = one[side];
      const size = message?.body_bytes ?? message?.body_kept ?? 0;
      const words = [size > 0 ? sizeText(size) : "no body"];
      if (message?.body_kept !== undefined && message.body_kept < size) {
        words.push(`${sizeText(message.body_kept)} kept`);
      }
      if (message?.body_note) words.push(visible(message.body_note));
      const box = element("section", { "aria-label": `Body of the ${side}` },
        element("h2", {}, `${side === "request" ? "Request" : "Response"}: ${words.join(", ")}`));
      panel.append(box);
      if (message?.body_kind) {
        this.run(showBody(box, `http/${one.key}/body/${side}`, {}, message.body_kind,
          `${one.id || "body"}-${side}`, signal));
      }
    }
  }

  /**
   * The records of its trace around it; without a trace, those of its thread.
   * @param {Exchange} one @param {HTMLElement} panel @param {AbortSignal} signal
   */
  async showLogs(one, panel, signal) {
    const scope = one.trace_id ? "trace" : "thread";
    const list = listed("ol", []);
    panel.append(element("h2", {}, scope === "trace"
      ? "Records of its trace" : "Records of its thread, around it"), list);
    await stream(`around/${one.key}`, { scope, n: 100 }, signal, (lines) => {
      list.append(...lines.flatMap(({ row }) =>
        row && !row.self ? element("li", {}, this.recordButton(row)) : []));
    });
  }

  get keys() {
    return {
      ...this.lines.moves, Escape: () => this.close(),
      Enter: () => {
        if (!this.lines.item) this.lines.move(0);
        this.wantsFocus = true;
        if (!this.aside.hidden) this.focusTab();
      },
      u: () => {
        const button = this.aside.querySelector(".actions button");
        if (!this.aside.hidden && button instanceof HTMLElement) button.click();
      },
      T: () => {
        const id = this.lines.item?.trace_id;
        if (id) this.toTrace(id);
      },
    };
  }

  help = [
    ["j k ↓ ↑", "next, previous exchange"], ["Enter", "to its detail, where ← → choose a tab"],
    ["g G", "first, last"], ["u", "copy it as curl"], ["T", "its trace"],
  ];
}

/** @param {Exchange} one */
function startOf(one) {
  return Number(BigInt(one.start_ns) / 1000n) / 1000;
}

/** @param {Exchange} one @param {HTMLElement} panel */
function showHeaders(one, panel) {
  const { list, add, heading } = facts();
  add("time", one.time);
  add("side", one.side, `http.side=${one.side}`);
  add("method", one.method, comparison("method", one.method));
  add("status", one.status, `status=${one.status}`);
  add("host", one.host, comparison("server.address", one.host));
  add("protocol", one.protocol);
  add("peer", one.peer);
  add("attempt", one.attempt);
  if (one.conversation) {
    add("conversation", one.conversation, `http.conversation=${quoted(one.conversation)}`);
  }
  add("redirected from", one.redirected_from, comparison("http.id", one.redirected_from));
  add("transaction", one.transaction, `txn:${one.transaction}`);
  add("trace", one.trace_id, `trace:${one.trace_id}`);
  add("span", one.span_id, `span:${one.span_id}`);
  add("process", `${one.process ?? ""}[${one.pid}:${one.tid}]`, `pid=${one.pid}`);
  add("exchange", one.id, comparison("http.id", one.id));
  for (const [title, part] of Object.entries({ Request: one.request, Response: one.response })) {
    const headers = part?.headers ?? [], note = part?.headers_note;
    if (headers.length || note) heading(`${title} headers${note ? ` (${note})` : ""}`);
    for (const { name, value } of headers) add(name, value, "", true);
  }
  panel.append(list);
}

/** @param {Exchange} one @param {HTMLElement} panel */
function showTiming(one, panel) {
  const phases = Object.entries(one.phases_ms ?? {});
  if (phases.length === 0) {
    panel.append(nothing(one.state === "open"
      ? "It has not ended: its phases come with its end."
      : "Its client or server gave no phases."));
    return;
  }
  const known = phases.reduce((sum, [, ms]) => sum + ms, 0);
  const all = Math.max(known, one.duration_ms ?? 0, 0.001);
  let before = 0;
  const list = element("dl", { class: "facts phases" });
  const add = (/** @type {string} */ name, /** @type {number | undefined} */ ms,
    /** @type {Node[]} */ ...bars) => list.append(element("dt", {}, name),
    element("dd", {}, element("span", { class: "falls" }, ...bars), msText(ms)));
  for (const [name, ms] of phases) {
    add(name, ms, bar(before / all, (before + ms) / all, ""));
    before += ms;
  }
  add("all", one.duration_ms);
  panel.append(list);
}
