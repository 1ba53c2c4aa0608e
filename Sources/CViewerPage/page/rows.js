// The list: a window of some hundred records around a place, scrolled by the browser, out of any
// number. Near an edge it asks for more by key, never by time, so that no row is lost or shown
// twice.

import { get, stream } from "./api.js";
import { Grid, ROW_PX, rowOf } from "./lines.js";
import { element, levelClass, named, oneLine, valueText } from "./text.js";

/** @typedef {import("./api.js").Row} Row */
/** @typedef {import("./api.js").Line} Line */
/** @typedef {import("./state.js").State} State */

const WINDOW = 600;
const PAGE = 200;
const FIELDS_SHOWN = 8;
/** Of a message in the list; the detail has all of it. */
const TEXT_MAX = 2_000;

/**
 * Who wrote it.
 * @param {Row} row
 */
function originText(row) {
  const name = row.service ?? row.process ?? "?";
  return row.host ? `${name}@${row.host}` : name;
}

/** @extends {Grid<Row>} */
export class Rows extends Grid {
  /**
   * @param {{onSelect: (row: Row) => void, onLines: (lines: Line[]) => void, onMove: () => void,
   *   onLeave: () => void, onError: (error: unknown) => void, time: (ns: string) => string}}
   *   listener
   *   onLines: gets all lines: histogram, facets, counts and damage are among them.
   *   onLeave: new records are followed no more.
   */
  constructor(listener) {
    super(named("rows", HTMLElement), (row) => row.key, listener.onSelect, 0);
    this.listener = listener;
    /** @type {Row[]} */
    this.items = [];
    /** Whether records may exist beyond the window. */
    this.hasOlder = false;
    this.hasNewer = false;
    /** @type {State | null} */
    this.state = null;
    this.life = new AbortController();
    this.isLoading = { back: false, forward: false };
    this.isFollowing = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
  }

  // ── What is asked ──

  /**
   * Begins anew with another query.
   * @param {State} state
   */
  async open(state) {
    this.restart(state);
    const life = this.life;
    try {
      if (state.at) {
        await this.openAt(state, state.at, life.signal);
      } else {
        this.hasOlder = true;
        await this.load("back", "rows,hist,facets,count", null);
      }
      if (!life.signal.aborted && state.follow) this.follow();
    } catch (error) {
      this.listener.onError(error);
    }
  }

  /** Ends what is being asked. */
  stop() {
    this.life.abort();
  }

  /** @param {State} state */
  restart(state) {
    this.stop();
    this.life = new AbortController();
    this.state = state;
    this.items = [];
    this.isLoading = { back: false, forward: false };
    this.hasOlder = this.hasNewer = this.isFollowing = false;
    this.paint();
  }

  /** Begins anew elsewhere in the same result. */
  leave() {
    const { state } = this;
    if (!state) return null;
    this.restart({ ...state, follow: false });
    if (state.follow) this.listener.onLeave();
    return state;
  }

  /** @param {State} state @param {string} key @param {AbortSignal} signal */
  async openAt(state, key, signal) {
    const row = /** @type {Row} */ (await get(`record/${key}`, {}, signal));
    if (signal.aborted) return;
    this.items = [row];
    this.hasOlder = this.hasNewer = true;
    this.selected = row.key;
    this.listener.onSelect(row);
    await Promise.all([
      this.load("back", "rows,hist,facets,count", key, state.q),
      this.load("forward", "rows", key),
    ]);
    this.reveal(this.items.findIndex((one) => one.key === key), "center");
  }

  /**
   * The records at a time: some before, some from it on.
   * @param {string} time as --since takes it
   */
  async goTo(time) {
    const state = this.leave();
    if (!state) return;
    const signal = this.life.signal;
    const ask = async (/** @type {Record<string, string>} */ part) => {
      /** @type {Line[]} */
      const all = [];
      await stream("query", { q: state.q, since: state.since, until: state.until, limit: PAGE,
        parts: "rows", ...part }, signal, (lines) => all.push(...lines));
      return { rows: all.flatMap((line) => line.row ?? []),
        isMore: all.some((line) => line.done && line.done.next !== null) };
    };
    const [back, forward] = await Promise.all([
      ask({ until: time, dir: "back" }), ask({ since: time, dir: "forward" })]);
    const before = back.rows.reverse();
    if (signal.aborted) return;
    // A record of exactly that time may be in both.
    const known = new Set(before.map((row) => row.key));
    this.items = [...before, ...forward.rows.filter((row) => !known.has(row.key))];
    this.hasOlder = back.isMore;
    this.hasNewer = forward.isMore;
    this.reveal(before.length, "start");
    if (this.items[before.length]) this.select(before.length);
  }

  /**
   * @param {"back" | "forward"} dir @param {string} parts
   * @param {string | null} from records beyond this key @param {string} [q]
   */
  async load(dir, parts, from, q) {
    const state = this.state;
    if (!state || this.isLoading[dir]) return;
    this.isLoading[dir] = true;
    const signal = this.life.signal;
    let count = 0, isMore = false, edge = from;
    const end = () => this.items.at(dir === "back" ? 0 : -1)?.key ?? null;
    // The window may have moved on meanwhile.
    const isHere = () => edge === null || end() === edge;
    try {
      const ask = {
        q: q ?? state.q, since: state.since, until: state.until, dir, from, limit: PAGE, parts,
      };
      await stream("query", ask, signal, (lines) => {
        const rows = lines.flatMap((line) => line.row ?? []);
        count += rows.length;
        // Large rows make short pages.
        for (const line of lines) if (line.done) isMore = line.done.next !== null;
        if (isHere()) {
          if (dir === "back") this.prepend(rows.reverse());
          else this.append(rows);
          edge = end();
        }
        // Rows are all there before the counting goes on.
        if (count >= PAGE || lines.some((line) => line.rows)) {
          this.isLoading[dir] = false;
        }
        this.listener.onLines(lines);
      });
      if (signal.aborted || isMore || !isHere()) return;
      if (dir === "back") this.hasOlder = false;
      else this.hasNewer = false;
    } finally {
      if (this.life.signal === signal) this.isLoading[dir] = false;
      this.paint();
    }
  }

  /** Shows new records as they are written, until something else is asked. */
  async follow() {
    const state = this.state;
    if (!state || this.isFollowing) return;
    if (this.hasNewer) return this.open({ ...state, at: "", follow: true });
    this.isFollowing = true;
    const signal = this.life.signal;
    try {
      // What was written since the list was read, too.
      const from = this.items.at(-1)?.key ?? "first";
      await stream("tail", { q: state.q, from }, signal, (lines) => {
        /** @type {Row[]} */
        const rows = [];
        for (const line of lines) {
          if (line.row) rows.push(line.row);
          if (!line.skipped) continue;
          this.append(rows.splice(0));
          this.hasNewer = true;
        }
        this.append(rows);
        this.catchUp();
        this.listener.onLines(lines);
      });
      if (!signal.aborted) throw new Error("the server ended");
    } catch (error) {
      this.listener.onError(error);
      if (!signal.aborted) this.listener.onLeave();
    } finally {
      if (this.life.signal === signal) this.isFollowing = false;
    }
  }

  /** What came too fast to show is shown once nothing comes any more. */
  catchUp() {
    clearTimeout(this.timer);
    if (!this.hasNewer) return;
    const signal = this.life.signal;
    this.timer = setTimeout(() => {
      if (signal.aborted || !this.isFollowing || !this.hasNewer || !this.isAtEnd()) return;
      this.goToEnd("last");
    }, 1_000);
  }

  // ── The window ──

  /** @param {Row[]} rows older than all, oldest first */
  prepend(rows) {
    if (rows.length === 0) return;
    const isAtEnd = this.isAtEnd();
    this.items = [...rows, ...this.items];
    let scroll = this.box.scrollTop + rows.length * ROW_PX;
    const beyond = this.items.length - WINDOW;
    if (beyond > 0) {
      this.items.length = WINDOW;
      this.hasNewer = true;
    }
    this.resize();
    if (isAtEnd && beyond <= 0) scroll = this.space.offsetHeight;
    this.box.scrollTop = scroll;
    this.paint();
  }

  /** @param {Row[]} rows newer than all, oldest first */
  append(rows) {
    if (rows.length === 0) return;
    const isAtEnd = this.isAtEnd();
    if (this.isFollowing) {
      // A reader that looks at older rows while new ones come keeps them.
      if (!isAtEnd && (this.hasNewer || this.items.length + rows.length > WINDOW)) {
        this.hasNewer = true;
        return;
      }
      // The list has no gaps: it goes on behind what is missing, and that is older.
      if (this.hasNewer) {
        this.items = [];
        this.hasNewer = false;
        this.hasOlder = true;
      }
    }
    const all = [...this.items, ...rows];
    const beyond = Math.max(0, all.length - WINDOW);
    this.items = all.slice(beyond);
    if (beyond > 0) this.hasOlder = true;
    const scroll = this.box.scrollTop - beyond * ROW_PX;
    this.resize();
    this.box.scrollTop = isAtEnd && this.isFollowing ? this.space.offsetHeight : scroll;
    this.scrolled();
  }

  isAtEnd() {
    return this.box.scrollTop + this.box.clientHeight >= this.space.offsetHeight - ROW_PX;
  }

  scrolled() {
    const { scrollTop, clientHeight } = this.box;
    const edge = 40 * ROW_PX;
    const report = this.listener.onError;
    if (scrollTop < edge && this.hasOlder && this.items.length > 0) {
      this.load("back", "rows", this.items[0].key).catch(report);
    }
    if (scrollTop + clientHeight > this.space.offsetHeight - edge && this.hasNewer
      && this.items.length > 0) {
      if (this.isFollowing) this.catchUp();
      else this.load("forward", "rows", this.items[this.items.length - 1].key).catch(report);
    }
    this.paint();
  }

  /** @param {"first" | "last"} end */
  async goToEnd(end) {
    const state = this.state, isLast = end === "last";
    if (!state) return;
    if (isLast ? !this.hasNewer : !this.hasOlder) return super.goToEnd(end);
    if (isLast && this.isFollowing) return this.open({ ...state, at: "" });
    this.leave();
    try {
      if (isLast) this.hasOlder = true;
      else this.hasNewer = true;
      await this.load(isLast ? "back" : "forward", "rows", null);
      super.goToEnd(end);
    } catch (error) {
      this.listener.onError(error);
    }
  }

  /** The first row that can be seen. */
  firstSeen() {
    return this.items[Math.min(this.items.length - 1, Math.floor(this.box.scrollTop / ROW_PX))];
  }

  /** The newest record, if it can be seen. */
  get begin() {
    return this.isAtEnd() ? this.items.length - 1 : super.begin;
  }

  /** @param {number} index @param {"start" | "center" | "nearest"} where */
  reveal(index, where = "nearest") {
    if (where === "nearest") return super.reveal(index);
    this.resize();
    this.box.scrollTop = index * ROW_PX
      - (where === "start" ? 2 * ROW_PX : this.box.clientHeight / 2);
    this.paint();
  }

  get rowCount() {
    return this.hasOlder || this.hasNewer ? -1 : this.items.length;
  }

  drawn() {
    this.listener.onMove();
  }

  /** @param {Row} row */
  make(row) {
    const text = document.createDocumentFragment();
    text.append(oneLine(row.message.slice(0, TEXT_MAX)));
    const fields = Object.entries(row.fields ?? {});
    for (const [key, value] of fields.slice(0, FIELDS_SHOWN)) {
      const shown = oneLine(valueText(value).slice(0, TEXT_MAX));
      text.append(" ", element("span", { class: "field" }, `${oneLine(key)}=`), shown);
    }
    if (fields.length > FIELDS_SHOWN) text.append(` … ${fields.length - FIELDS_SHOWN} more`);
    if (row.exception?.type) text.append(` ${oneLine(row.exception.type)}`);
    const isRule = row.kind === "gap" || row.kind === "lifecycle";
    const made = rowOf(`${levelClass(row.level)}${isRule ? " rule" : ""}`, [
      ["time", this.listener.time(row.time_ns)], ["level", row.level.slice(0, 1)],
      ["origin", oneLine(originText(row))], ["logger", oneLine(row.logger)], ["text", text]]);
    made.dataset.key = row.key;
    made.children[1].setAttribute("title", row.level);
    return made;
  }
}
