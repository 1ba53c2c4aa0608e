// The view of traces: a list, and one trace as a waterfall of its spans with its records as ticks,
// over all processes. Times are what each machine said; where clocks differ, the row says so.

import { bar, Lines } from "./lines.js";
import { aside, Asker, facts, fill, listed } from "./parts.js";
import { msText } from "./time.js";
import {
  button, counted, element, grouped, levelClass, nothing, oneLine, visible,
} from "./text.js";

/** @typedef {import("./api.js").Trace} Trace */
/** @typedef {import("./api.js").Span} Span */
/** @typedef {import("./api.js").Log} Log */

/** More than these are not opened at once. */
const SPANS_MAX = 200;
const TICKS_MAX = 200;

export class Traces extends Asker {
  name = "traces";
  title = "Traces";
  asks = true;

  /** @param {import("./views.js").Host} host */
  constructor(host) {
    super(host);
    /** @type {string | null} */
    this.next = null;
    /** @type {Span[]} */
    this.all = [];
    /** @type {Log[]} */
    this.logs = [];
    /** @type {Set<number>} the spans, by place, whose own are hidden */
    this.closed = new Set();
    this.axis = { from: 0n, ns: 1 };
    this.list = /** @type {Lines<Trace>} */ (new Lines({
      label: "Traces", name: (one) => one.id,
      columns: [["time", "Began"], ["id", "Trace"], ["ms", "Took"], ["size", "Records"],
        ["size", "HTTP"], ["size", "Trans."], ["size", "Errors"], ["path", "Processes"]],
      look: (one) => one.errors > 0 ? "failed" : "",
      cells: (one) => [this.time(one.first_ns), one.id, msText(one.duration_ms),
        grouped(one.records), grouped(one.exchanges), grouped(one.transactions),
        grouped(one.errors), oneLine(one.processes.join(", "))],
      onSelect: () => {}, onEnd: () => { if (this.next && !this.isLoading) this.load(this.next); },
    }));
    this.list.box.addEventListener("dblclick", () => this.enter());
    this.spans = /** @type {Lines<Span>} */ (new Lines({
      label: "Spans", name: (one) => String(one.place),
      columns: [["span", "Span"], ["process", "Process"], ["ms", "Took"], ["falls", "Waterfall"]],
      look: (one) => one.failed ? "failed" : "",
      cells: (one) => this.cells(one), onSelect: (one) => this.draw(one),
    }));
    this.back = button("All traces", () => this.close());
    this.aside = aside("Span");
    this.body = element("div", { class: "columns" }, this.list.box, this.spans.box, this.aside);
    this.parts = [element("div", { class: "bar" }, this.back, this.status), this.body];
  }

  show() {
    const { more } = this.state;
    this.begin();
    const isOne = Boolean(more.open);
    this.back.hidden = this.spans.box.hidden = !isOne;
    this.list.box.hidden = isOne;
    this.aside.hidden = true;
    this.body.querySelector(".nothing")?.remove();
    if (isOne) return this.loadOne(more.open);
    this.list.show([]);
    this.load(null);
  }

  focus() {
    (this.state.more.open ? this.spans : this.list).box.focus();
  }

  /** @param {string | null} from */
  load(from) {
    this.read("traces", { ...this.asked, from }, (lines, { next, exact, matched = 0 }) => {
      this.next = next ?? null;
      this.list.show([...from ? this.list.items : [],
        ...lines.flatMap((line) => line.trace ?? [])]);
      this.status.textContent = `${exact ? "" : "≥ "}${counted(matched, "trace")}`;
      this.list.box.hidden = matched === 0;
      if (matched === 0) {
        this.body.prepend(nothing(this.isFree
          ? "No record here belongs to a trace: transactions and traceparent give their ids."
          : "No record of a trace matches."));
      }
    });
  }

  /** @param {string} id */
  loadOne(id) {
    this.read(`trace/${encodeURIComponent(id)}`, {}, (lines, { left_out: left = 0 }) => {
      const all = lines.flatMap((line) => line.span ?? []);
      const logs = lines.flatMap((line) => line.log ?? []);
      const starts = [...all.map((one) => one.start_ns), ...logs.map((one) => one.time_ns)]
        .map(BigInt);
      const ends = all.map(({ duration_ms: ms = 0 }, at) =>
        starts[at] + BigInt(Math.round(ms * 1e6)));
      const sorted = [...starts, ...ends].sort((a, b) => a < b ? -1 : 1);
      const from = sorted[0];
      this.axis = { from, ns: Math.max(1, Number(sorted[sorted.length - 1] - from)) };
      this.all = all;
      this.logs = logs;
      this.closed = new Set(all.length > SPANS_MAX ? all.filter((one) => one.depth > 0)
        .map((one) => one.place) : []);
      const skewed = all.filter((one) => one.skew_ns).length;
      this.status.textContent = `Trace ${id} of ${this.time(String(from))}: `
        + `${counted(all.length, "span")}, ${counted(logs.length, "record")}, `
        + `${msText(this.axis.ns / 1e6)}`
        + (skewed ? `; clocks differ in ${grouped(skewed)}` : "")
        + (left > 0 ? `; ${grouped(left)} more are left out` : "");
      this.fold();
      if (all.length === 0) this.draw(null);
    });
  }

  /** Shows the spans that are not hidden. */
  fold() {
    let hidden = Infinity;
    this.spans.show(this.all.filter((one) => {
      if (one.depth > hidden) return false;
      hidden = this.closed.has(one.place) ? one.depth : Infinity;
      return true;
    }));
  }

  /** @param {boolean} isOpen */
  turn(isOpen) {
    const { item } = this.spans;
    if (!item) return;
    if (isOpen) this.closed.delete(item.place);
    else this.closed.add(item.place);
    this.fold();
  }

  /** @param {string} ns from 0 to 1 */
  share(ns) {
    return Number(BigInt(ns) - this.axis.from) / this.axis.ns;
  }

  /** @param {Span} one */
  cells(one) {
    const start = this.share(one.start_ns);
    const end = one.duration_ms === undefined ? 1 : start + one.duration_ms * 1e6 / this.axis.ns;
    const hasOwn = (this.all[one.place + 1]?.depth ?? 0) > one.depth;
    const falls = element("span", { class: "ticks" }, bar(start, end, one.failed ? "bad"
      : one.duration_ms === undefined ? "open" : ""));
    for (const log of this.logsOf(one).slice(0, TICKS_MAX)) {
      const at = this.share(log.time_ns);
      falls.append(bar(at, at, `tick ${levelClass(log.level)}`));
    }
    return [
      `${"  ".repeat(one.depth)}${hasOwn ? this.closed.has(one.place) ? "▸ " : "▾ " : "  "}`
        + `${oneLine(one.name.slice(0, 200)) || one.kind}${skewText(one)}`,
      oneLine(one.process), one.duration_ms === undefined ? "no end" : msText(one.duration_ms),
      falls,
    ];
  }

  /** @param {Span | null} span those on no span */
  logsOf(span) {
    return this.logs.filter((log) => log.span === span?.place);
  }

  /** @param {Span | null} one */
  draw(one) {
    const { list, add } = facts();
    add("kind", one?.kind);
    add("process", one?.process);
    add("began", one && this.time(one.start_ns));
    if (one) add("took", one.duration_ms === undefined ? "no end" : msText(one.duration_ms));
    add("clocks", one && skewText(one));
    const actions = element("p", { class: "actions" });
    if (one) {
      const { kind, key } = one;
      actions.append(kind === "exchange"
        ? button("The exchange", () => this.host.ask({ view: "http", q: "", more: { open: key } }))
        : button("Its first record", () => this.toLogs("", key)));
    }
    actions.append(button("All its records", () =>
      this.toLogs(`trace:${this.state.more.open}`)));
    const some = (/** @type {string} */ title, /** @type {Log[]} */ logs) => logs.length > 0
      ? [element("h2", {}, title),
        listed("ol", logs.slice(0, 500).map((log) => this.recordButton(log)))] : [];
    fill(this.aside, () => this.closeDetail(),
      [element("strong", { class: one?.failed ? "bad" : "" },
        visible(one?.name ?? "Records on no span"))],
      actions, list, ...some(one ? "Its records" : "", this.logsOf(one)),
      ...one ? some("Records on no span", this.logsOf(null)) : []);
  }

  enter() {
    const id = this.list.item?.id;
    if (id) this.host.ask({ more: { open: id } });
  }

  closeDetail() {
    this.aside.hidden = true;
    this.focus();
  }

  close() {
    if (!this.aside.hidden) this.closeDetail();
    else if (this.state.more.open) {
      this.host.ask({ more: {} });
      this.focus();
    }
  }

  /** @returns {Record<string, () => void>} */
  get keys() {
    const isOne = Boolean(this.state.more.open);
    return {
      ...(isOne ? this.spans : this.list).moves, Escape: () => this.close(),
      ArrowRight: () => this.turn(true), ArrowLeft: () => this.turn(false),
      Enter: () => {
        if (!isOne) return this.enter();
        const action = this.aside.querySelector(".actions button");
        if (action instanceof HTMLElement) action.focus();
      },
    };
  }

  help = [
    ["j k ↓ ↑", "next, previous"], ["Enter", "opens the trace; to the span's detail"],
    ["→ ←", "shows and hides what is below a span"],
  ];
}

/** @param {Span} one */
function skewText(one) {
  if (!one.skew_ns) return "";
  const ms = Number(one.skew_ns) / 1e6;
  return ms < 0 ? `  ⚠ begins ${msText(-ms)} before its request: clocks differ`
    : `  ⚠ ends ${msText(ms)} after its answer: clocks differ`;
}
