// Lists of things, a row each, of one height: only rows that can be seen are elements. A list
// takes the focus, its rows do not; the keys of `moves` belong to it.

import { element } from "./text.js";

export const ROW_PX = 22;
/** Rows beyond what can be seen, above and below. */
const SPARE = 8;
let serial = 0;

/**
 * A row of cells, each with its class and what is in it.
 * @param {string} look classes @param {[string, Node | string][]} cells @param {string} [role]
 */
export function rowOf(look, cells, role = "gridcell") {
  return element("div", { class: `row ${look}`, role: "row" },
    ...cells.map(([name, content]) => element("span", { class: name, role }, content)));
}

/**
 * The rows, the selection and the keys of a list. Who extends it makes the rows' elements.
 * @template T
 */
export class Grid {
  /**
   * @param {HTMLElement} box @param {(item: T) => string} name tells items apart
   * @param {(item: T) => void} onSelect @param {number} heads rows above the items
   */
  constructor(box, name, onSelect, heads) {
    this.box = box;
    this.name = name;
    this.onSelect = onSelect;
    this.heads = heads;
    /** @type {T[]} */
    this.items = [];
    this.selected = "";
    this.prefix = `line-${serial += 1}`;
    /** @type {Map<string, HTMLElement>} by name: the rows that are elements */
    this.shown = new Map();
    this.isPainting = false;
    this.space = element("div", { class: "space", role: "rowgroup" });
    box.append(this.space);
    box.addEventListener("scroll", () => this.scrolled(), { passive: true });
    box.addEventListener("click", (event) => {
      const row = event.target instanceof Element ? event.target.closest("[data-line]") : null;
      if (row instanceof HTMLElement) this.select(Number(row.dataset.line));
    });
    new ResizeObserver(() => this.paint()).observe(box);
  }

  /** @param {T} _ @returns {HTMLElement} */
  make(_) { throw new Error("no row"); }

  /** @param {number} _ the row behind the last element */
  drawn(_) {}

  scrolled() { this.paint(); }

  /** All rows there are, or -1. */
  get rowCount() { return this.items.length + this.heads; }

  /** Every row anew. */
  redraw() {
    for (const old of this.shown.values()) old.remove();
    this.shown.clear();
    this.paint();
  }

  get index() {
    return this.items.findIndex((one) => this.name(one) === this.selected);
  }

  /** The selected one. */
  get item() {
    return /** @type {T | undefined} */ (this.items[this.index]);
  }

  /** @param {number} index */
  select(index) {
    const item = this.items[index];
    if (!item) return;
    this.mark(this.name(item));
    this.reveal(index);
    this.onSelect(item);
  }

  /** @param {string} name */
  mark(name) {
    this.selected = name;
    this.paint();
  }

  /** Where moving begins without a selection: with what the reader sees. */
  get begin() { return Math.ceil(this.box.scrollTop / ROW_PX); }

  /** @param {number} by */
  move(by) {
    const wanted = this.index < 0 ? this.begin : this.index + by;
    this.select(Math.max(0, Math.min(this.items.length - 1, wanted)));
  }

  /** @param {"first" | "last"} end */
  goToEnd(end) {
    this.select(end === "last" ? this.items.length - 1 : 0);
  }

  /** @param {number} index */
  reveal(index) {
    this.resize();
    const top = index * ROW_PX, { scrollTop } = this.box;
    const height = this.box.clientHeight - this.heads * ROW_PX;
    if (top < scrollTop) this.box.scrollTop = top;
    else if (top + ROW_PX > scrollTop + height) this.box.scrollTop = top + ROW_PX - height;
    this.paint();
  }

  get moves() {
    const down = () => this.move(1), up = () => this.move(-1);
    const first = () => this.goToEnd("first"), last = () => this.goToEnd("last");
    return {
      j: down, k: up, ArrowDown: down, ArrowUp: up, Home: first, End: last, g: first, G: last,
      PageDown: () => this.move(20), PageUp: () => this.move(-20),
    };
  }

  resize() {
    this.space.style.height = `${this.items.length * ROW_PX}px`;
  }

  /** Draws again within the next frame. */
  paint() {
    if (this.isPainting) return;
    this.isPainting = true;
    requestAnimationFrame(() => {
      this.isPainting = false;
      this.draw();
    });
  }

  draw() {
    this.resize();
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW_PX) - SPARE);
    const last = first + Math.ceil(this.box.clientHeight / ROW_PX) + 2 * SPARE;
    const items = this.items.slice(first, last);
    const names = new Set(items.map(this.name));
    for (const [name, old] of this.shown) {
      if (names.has(name)) continue;
      old.remove();
      this.shown.delete(name);
    }
    items.forEach((item, offset) => {
      const name = this.name(item), index = first + offset;
      let row = this.shown.get(name);
      if (!row) {
        row = this.make(item);
        row.id = `${this.prefix}-${name}`;
        this.shown.set(name, row);
        this.space.append(row);
      }
      row.dataset.line = String(index);
      row.style.transform = `translateY(${index * ROW_PX}px)`;
      row.setAttribute("aria-selected", String(name === this.selected));
      row.setAttribute("aria-rowindex", String(index + 1 + this.heads));
    });
    const active = this.shown.get(this.selected);
    if (active) this.box.setAttribute("aria-activedescendant", active.id);
    else this.box.removeAttribute("aria-activedescendant");
    this.box.setAttribute("aria-rowcount", String(this.rowCount));
    this.drawn(last);
  }
}

/**
 * A list that is all here, below a row of heads.
 * @template T
 * @extends {Grid<T>}
 */
export class Lines extends Grid {
  /**
   * @param {{label: string, columns: [string, string][], cells: (item: T) => (Node | string)[],
   *   name: (item: T) => string, look?: (item: T) => string,
   *   onSelect: (item: T) => void, onEnd?: () => void}} how
   *   columns: class and title of each; cells: as many; look: classes of the row; onEnd: the last
   *   rows are seen.
   */
  constructor(how) {
    super(element("div", { class: "lines", role: "grid", tabIndex: 0, "aria-label": how.label }),
      how.name, how.onSelect, 1);
    this.how = how;
    this.space.before(element("div", { role: "rowgroup", class: "top" },
      rowOf("heads", how.columns, "columnheader")));
  }

  /** @param {T[]} items */
  show(items) {
    this.items = items;
    this.redraw();
  }

  /** @param {T} item */
  make(item) {
    const cells = this.how.cells(item);
    return rowOf(this.how.look?.(item) ?? "",
      this.how.columns.map(([name], at) => [name, cells[at] ?? ""]));
  }

  /** @param {number} last */
  drawn(last) {
    if (last >= this.items.length && this.items.length > 0) this.how.onEnd?.();
  }
}

/**
 * A bar on a common axis, both from 0 to 1.
 * @param {number} from @param {number} to @param {string} look classes
 */
export function bar(from, to, look) {
  const made = element("span", { class: `fall ${look}` });
  made.style.left = `${(from * 100).toFixed(3)}%`;
  made.style.width = `${(Math.max(0, to - from) * 100).toFixed(3)}%`;
  return made;
}
