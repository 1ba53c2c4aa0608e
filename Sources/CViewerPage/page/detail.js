// One record in full: its text, fields, origin and place. Each value is a button: a click adds it
// to the query, with Alt it is excluded, C copies it.

import { get } from "./api.js";
import { facetTerm } from "./facets.js";
import { facts, fill } from "./parts.js";
import { exactText } from "./time.js";
import {
  button, comparison, element, fieldTerm, levelClass, named, quoted, visible,
} from "./text.js";

/** @typedef {import("./api.js").Row} Row */

export class Detail {
  /**
   * @param {{onClose: () => void, onError: (error: unknown) => void,
   *   onAround: (row: Row) => void, time: (ns: string) => string}} listener
   */
  constructor(listener) {
    this.listener = listener;
    this.box = named("detail", HTMLElement);
    this.life = new AbortController();
  }

  hide() {
    this.life.abort();
    this.box.hidden = true;
    this.box.replaceChildren();
  }

  /**
   * What the list knows of it at once, then all of it.
   * @param {Row} row
   */
  async show(row) {
    this.life.abort();
    this.life = new AbortController();
    const { signal } = this.life;
    this.draw(row);
    try {
      const whole = /** @type {Row} */ (await get(`record/${row.key}`, {}, signal));
      if (!signal.aborted) this.draw(whole);
    } catch (error) {
      this.listener.onError(error);
    }
  }

  /** @param {Row} row */
  draw(row) {
    const ns = BigInt(row.time_ns);
    const { list, add, heading } = facts();
    add("time", exactText(ns));
    add("logger", row.logger, facetTerm("logger", row.logger));
    add("kind", row.kind, `kind=${row.kind}`);
    for (const [key, value] of Object.entries(row.fields ?? {})) {
      add(key, value, fieldTerm(key, value));
    }
    add("trace", row.trace_id, `trace:${row.trace_id}`);
    add("span", row.span_id, `span:${row.span_id}`);
    if (row.file) {
      heading("Source");
      add("place", `${row.file}:${row.line}`, facetTerm("place", `${row.file}:${row.line}`));
      add("function", row.function, row.function ? `function=${quoted(row.function)}` : "");
    }
    heading("Origin");
    add("process", row.process, comparison("process", row.process));
    add("pid", row.pid, `pid=${row.pid}`);
    add("thread", row.thread ?? row.tid,
      row.thread ? `thread=${quoted(row.thread)}` : `tid=${row.tid}`);
    add("service.name", row.service, row.service ? facetTerm("service", row.service) : "");
    add("host.name", row.host, row.host ? facetTerm("host", row.host) : "");
    for (const [key, value] of Object.entries(row.resource ?? {})) {
      add(key, value, comparison(key, value));
    }
    add("record", row.record_id, `record_id:${row.record_id}`);

    const parts = /** @type {Node[]} */ ([
      element("pre", { class: "message" }, visible(row.message))]);
    const { exception } = row;
    if (exception && (exception.type || exception.message || exception.stacktrace)) {
      const title = [exception.type, exception.message].filter(Boolean).join(": ");
      parts.push(element("pre", { class: "exception" },
        visible([title, exception.stacktrace].filter(Boolean).join("\n"))));
    }
    if (row.message_base64) {
      parts.push(element("details", {}, element("summary", {}, "Bytes that are not UTF-8"),
        element("pre", {}, hexText(fromBase64(row.message_base64)))));
    }
    parts.push(element("p", { class: "actions" },
      button("What was around it", () => this.listener.onAround(row))), list);
    fill(this.box, this.listener.onClose, [
      element("span", { class: `level ${levelClass(row.level)}` }, row.level),
      element("time", { dateTime: exactText(ns) }, this.listener.time(row.time_ns)),
    ], ...parts);
  }
}

/** @param {string} base64 */
function fromBase64(base64) {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

/**
 * Sixteen bytes a line, in hexadecimal and as ASCII.
 * @param {Uint8Array} bytes
 */
export function hexText(bytes) {
  const lines = [];
  for (let start = 0; start < Math.min(bytes.length, 64 << 10); start += 16) {
    const part = [...bytes.slice(start, start + 16)];
    const hex = part.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const text = part.map((byte) => byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".");
    lines.push(`${start.toString(16).padStart(6, "0")}  ${hex.padEnd(47)}  ${text.join("")}`);
  }
  if (bytes.length > 64 << 10) lines.push("…");
  return lines.join("\n");
}
