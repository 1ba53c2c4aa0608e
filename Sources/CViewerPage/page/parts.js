// What views are made of: how they ask, the detail beside a list, facts, records in short, tables,
// choices.

import { get, getBlob, post, Refusal, stream } from "./api.js";
import { button, download, element, levelClass, oneLine, say, valueText, visible } from "./text.js";

/** @typedef {import("./api.js").Line} Line */
/** @typedef {import("./views.js").Host} Host */

/** A view's questions: they end when it is hidden, and when it asks anew. */
export class Asker {
  /** @param {Host} host */
  constructor(host) {
    this.host = host;
    this.life = new AbortController();
    this.isLoading = false;
    this.status = element("p", { role: "status" });
    this.busy = "reading …";
  }

  get state() { return this.host.state; }

  hide() {
    this.life.abort();
    this.life = new AbortController();
    this.isLoading = false;
  }

  /** Begins anew. */
  begin() {
    this.hide();
    this.status.textContent = this.busy;
  }

  /** What the query bar asks. */
  get asked() {
    const { q, since, until } = this.state;
    return { q, since, until };
  }

  /** Nothing is asked: all there is is shown. */
  get isFree() {
    const { q, since, until } = this.state;
    return !q && !since && !until;
  }

  /** @param {Record<string, string>} more words of the view's own */
  askMore(more) {
    this.host.ask({ more: { ...this.state.more, ...more } });
  }

  /**
   * The command for what is asked.
   * @param {import("./api.js").Words} more @returns {Promise<string>}
   */
  async commandOf(more) {
    return (await get("command", { ...this.asked, ...more })).text;
  }

  /**
   * Reads all lines of a path, then calls `take`.
   * @param {string} path @param {import("./api.js").Words} asked
   * @param {(lines: Line[], done: Partial<import("./api.js").Done>) => void} take
   * @param {(line: Line) => void} [hear] gets each line as it comes
   */
  async read(path, asked, take, hear) {
    const { signal } = this.life;
    /** @type {Line[]} */
    const all = [];
    this.isLoading = true;
    try {
      await stream(path, asked, signal, (lines) => {
        for (const line of lines) {
          all.push(line);
          if (line.problem) this.host.tell(new Error(line.problem));
          hear?.(line);
        }
      });
      if (!signal.aborted) take(all, all.at(-1)?.done ?? {});
    } catch (error) {
      this.failed(error, signal);
    } finally {
      if (this.life.signal === signal) this.isLoading = false;
    }
  }

  /** @param {unknown} error @param {AbortSignal} signal of what failed */
  failed(error, signal) {
    if (!signal.aborted && this.status.textContent === this.busy) this.status.textContent = "";
    this.host.tell(error);
  }

  /** @param {Promise<unknown>} work what fails of it is told */
  run(work) {
    work.catch(this.host.tell);
  }

  /** @param {string} path @param {import("./api.js").Words} asked @param {string} name */
  save(path, asked, name) {
    this.run(getBlob(path, asked, this.life.signal).then((blob) => download(blob, name)));
  }

  /** @param {string | bigint} ns */
  time(ns) {
    return this.host.time(ns);
  }

  /** @param {string} q @param {string} [at] a record's key */
  toLogs(q, at = "") {
    this.host.ask({ view: "logs", q, since: "", until: "", at });
  }

  /** @param {string} id */
  toTrace(id) {
    this.host.ask({ view: "traces", q: "", more: { open: id } });
  }

  /**
   * A record in short, a button that leads to it.
   * @param {{key: string, time_ns: string, level: string, message: string}} row
   */
  recordButton(row) {
    const made = button("", () => this.toLogs("", row.key), { class: levelClass(row.level) });
    made.append(element("span", { class: "time" }, this.time(row.time_ns)),
      element("span", { class: "level", title: row.level }, ` ${row.level.slice(0, 1)} `),
      oneLine(row.message.slice(0, 500)));
    return made;
  }
}

/** A view of what can be changed; it does not follow, but looks again. */
export class Manager extends Asker {
  asks = false;
  help = [["r", "look again"]];
  keys = { r: () => this.load() };
  root = element("div");
  parts = /** @type {Node[]} */ ([this.root]);

  show() {
    this.load();
  }

  async load() {
    this.begin();
    const { signal } = this.life;
    try {
      const answer = await this.look(signal);
      if (!signal.aborted) this.draw(answer);
    } catch (error) {
      this.failed(error, signal);
    }
  }

  /** @param {AbortSignal} _ @returns {Promise<any>} */
  async look(_) {}

  /** @param {any} _ what `look` gave */
  draw(_) {}

  /**
   * Changes something. False: it failed, and nobody else was faster.
   * @param {string} path @param {Record<string, unknown>} body @param {string} done
   */
  async change(path, body, done) {
    try {
      await post(path, body);
      say(done);
    } catch (error) {
      if (!(error instanceof Refusal && error.status === 409)) {
        this.host.tell(error);
        return false;
      }
      say(error.message);
    }
    return true;
  }
}

/** @param {string} label what it shows */
export function aside(label) {
  return element("aside", { class: "detail", hidden: true, "aria-label": label });
}

/**
 * @param {HTMLElement} box @param {() => void} onClose @param {Node[]} heads
 * @param {...(Node | string)} content
 */
export function fill(box, onClose, heads, ...content) {
  box.hidden = false;
  box.replaceChildren(element("header", {}, ...heads,
    button("×", onClose, { class: "close", "aria-label": "Close" })), ...content);
}

/** A list of names and values; a value with a term is a button that adds it to the query. */
export function facts() {
  const list = element("dl", { class: "facts" });
  const add = (/** @type {string} */ name, /** @type {unknown} */ value,
    /** @type {string} */ term = "", isEmptyShown = false) => {
    if (value === undefined || value === null || value === "" && !isEmptyShown) return;
    const text = visible(valueText(value));
    const shown = term === "" ? text : element("button",
      { type: "button", "data-term": term, "data-value": text,
        title: "click to add to the query, Alt-click to exclude" }, text);
    list.append(element("dt", {}, visible(name)), element("dd", {}, shown));
  };
  const heading = (/** @type {string} */ text) =>
    list.append(element("dt", { class: "heading" }, text), element("dd", {}));
  return { list, add, heading };
}

/**
 * Buttons below each other.
 * @param {"ol" | "ul"} tag @param {Node[]} buttons
 */
export function listed(tag, buttons) {
  return element(tag, { class: "logs" }, ...buttons.map((one) => element("li", {}, one)));
}

/** @param {string[]} problems */
export function alerts(problems) {
  return problems.map((problem) => element("p", { role: "alert" }, problem));
}

/**
 * A table of figures.
 * @param {string[]} heads @param {(Node | string)[][]} rows
 */
export function figures(heads, rows) {
  return element("table", {},
    element("thead", {}, element("tr", {}, ...heads.map((one) => one
      ? element("th", { scope: "col" }, one) : element("td")))),
    element("tbody", {}, ...rows.map((cells) =>
      element("tr", {}, ...cells.map((cell) => element("td", {}, cell))))));
}

/** A table whose rows have names, and may open or be changed. */
export class Table {
  /** @param {string} title @param {string[]} heads the last one, if empty, is for buttons */
  constructor(title, heads) {
    this.heads = heads;
    const table = figures(heads, []);
    this.body = table.tBodies[0];
    this.element = element("div", { class: "table", tabIndex: 0, role: "region",
      "aria-label": title }, table);
  }

  /**
   * The first cell names the row, and is a button if something opens.
   * @param {string[]} cells @param {() => void} [open]
   */
  add(cells, open) {
    const row = element("tr");
    cells.forEach((cell, index) => {
      const text = visible(cell);
      row.append(index > 0 ? element("td",
          { title: text, class: text.length > 24 ? "long" : "" }, text)
        : element("th", { scope: "row" }, open ? button(text, open, { class: "link" }) : text));
    });
    if (cells.length < this.heads.length) row.append(element("td"));
    this.body.append(row);
    return row;
  }
}

let groups = 0;

/**
 * One of several words, each with what it does.
 * @param {string} title @param {string[][]} words @param {string} value @param {boolean} isOpen
 * @param {(value: string) => void} choose
 */
export function choiceOf(title, words, value, isOpen, choose) {
  const name = `choice-${++groups}`;
  const set = element("fieldset", { disabled: !isOpen }, element("legend", {}, title));
  for (const [word, text] of words) {
    set.append(element("label", {}, element("input", {
      type: "radio", name, value: word, checked: word === value, onchange: () => choose(word),
    }), element("span", {}, element("b", {}, word), ` ${text}`)));
  }
  if (!isOpen) set.append(element("p", {}, "It cannot be changed here."));
  return set;
}

/**
 * A list to choose one from, with its label.
 * @param {string} id @param {string} label @param {string[][]} words each with its text
 * @param {(value: string) => void} choose @param {string} [look] of the label
 */
export function selection(id, label, words, choose, look = "hidden") {
  const select = element("select", { id, onchange: () => choose(select.value) },
    ...words.map(([value, text]) => element("option", { value }, text)));
  return { select, parts: [element("label", { class: look, htmlFor: id }, label), select] };
}
