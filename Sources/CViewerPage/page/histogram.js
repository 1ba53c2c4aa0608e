// Records by time, stacked by level, on a canvas. Dragging over it, or the view's keys, narrow and
// move the time that is asked for.

import { exactText, spanText } from "./time.js";
import { grouped, LEVELS, named } from "./text.js";

/** @typedef {import("./api.js").Histogram} Bins */

/** @param {number[]} counts */
function sum(counts) {
  return counts.reduce((all, one) => all + one, 0);
}

/** @param {{from: number, to: number}} brush */
function sorted({ from, to }) {
  return from < to ? [from, to] : [to, from];
}

export class Histogram {
  /**
   * @param {(since: bigint, until: bigint) => void} onRange @param {(ns: bigint) => string} time
   */
  constructor(onRange, time) {
    this.onRange = (/** @type {bigint} */ since, /** @type {bigint} */ until) => {
      this.asked = { since, until };
      onRange(since, until);
    };
    this.time = time;
    this.box = named("histogram", HTMLElement);
    const canvas = this.box.querySelector("canvas");
    if (!canvas) throw new Error("the page has no canvas");
    this.canvas = canvas;
    this.label = named("histogram-range", HTMLElement);
    /** @type {{step: bigint, first: bigint, counts: number[][]} | null} */
    this.data = null;
    /** @type {{from: number, to: number} | null} */
    this.brush = null;
    /** @type {{since: bigint, until: bigint} | null} */
    this.asked = null;
    canvas.addEventListener("pointerdown", (event) => this.began(event));
    canvas.addEventListener("pointermove", (event) => this.moved(event));
    canvas.addEventListener("pointerup", () => this.ended());
    canvas.addEventListener("pointercancel", () => { this.brush = null; this.draw(); });
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  /** @param {Bins} bins */
  show(bins) {
    this.data = null;
    if (bins.bins.length > 0) {
      const step = BigInt(bins.step_ns), first = BigInt(bins.bins[0][0]);
      const last = BigInt(bins.bins[bins.bins.length - 1][0]);
      const size = Number((last - first) / step) + 1;
      /** @type {number[][]} */
      const counts = Array.from({ length: size }, () => []);
      for (const [start, levels] of bins.bins) {
        counts[Number((BigInt(start) - first) / step)] = levels;
      }
      this.data = { step, first, counts };
    }
    this.draw();
  }

  /** @param {string} since @param {string} until asked now: what it had asked is over, or not */
  forget(since, until) {
    const { asked } = this;
    if (asked && (since !== exactText(asked.since) || until !== exactText(asked.until))) {
      this.asked = null;
    }
  }

  get range() {
    if (!this.data) return null;
    const { first, step, counts } = this.data;
    return { since: first, until: first + step * BigInt(counts.length) };
  }

  /**
   * What share of the records is older than a time, from 0 to 1.
   * @param {bigint} ns
   */
  shareBefore(ns) {
    if (!this.data) return 1;
    const { first, step, counts } = this.data;
    let before = 0, all = 0;
    counts.forEach((levels, index) => {
      const count = sum(levels);
      all += count;
      const start = first + step * BigInt(index);
      if (start + step <= ns) before += count;
      else if (start < ns) before += count * Number(ns - start) / Number(step);
    });
    return all === 0 ? 1 : before / all;
  }

  /**
   * The time at which that share of the records is older.
   * @param {number} share from 0 to 1
   */
  timeAt(share) {
    if (!this.data) return null;
    const { first, step, counts } = this.data;
    const sums = counts.map(sum);
    let left = share * sum(sums);
    for (const [index, count] of sums.entries()) {
      if (left <= count && count > 0) {
        return first + step * BigInt(index) + BigInt(Math.floor(Number(step) * left / count));
      }
      left -= count;
    }
    return first + step * BigInt(counts.length);
  }

  draw() {
    const { canvas, box } = this;
    const scale = devicePixelRatio || 1;
    const width = box.clientWidth, height = canvas.clientHeight || 56;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const context = canvas.getContext("2d");
    if (!context) return;
    context.scale(scale, scale);
    context.clearRect(0, 0, width, height);
    if (!this.data) return this.tell();
    const style = getComputedStyle(box);
    const colors = LEVELS.map((level) => style.getPropertyValue(`--${level}`).trim());
    const { counts } = this.data;
    const most = Math.max(1, ...counts.map(sum));
    const bar = width / counts.length;
    counts.forEach((levels, index) => {
      let y = height;
      levels.forEach((count, level) => {
        if (count === 0) return;
        // What is rare and bad is the last to vanish.
        const size = Math.max(count / most * (height - 2), level >= 5 ? 2 : 0.5);
        y -= size;
        context.fillStyle = colors[level];
        context.fillRect(index * bar, y, Math.max(1, bar - 0.5), size);
      });
    });
    if (this.brush) {
      const [from, to] = sorted(this.brush);
      context.fillStyle = style.getPropertyValue("--brush").trim();
      context.fillRect(from, 0, Math.max(1, to - from), height);
    }
    this.tell();
  }

  tell() {
    const range = this.range;
    if (!range || !this.data) {
      this.label.textContent = "";
      this.canvas.setAttribute("aria-label", "No records");
      return;
    }
    const all = sum(this.data.counts.flat());
    const text = `${this.time(range.since)} to ${this.time(range.until)}, `
      + `a bar is ${spanText(this.data.step)}`;
    this.label.textContent = text;
    this.canvas.setAttribute("aria-label", `${grouped(all)} records from ${text}`);
  }

  // ── Hands ──

  /** @param {PointerEvent} event */
  began(event) {
    if (!this.data || event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.brush = { from: event.offsetX, to: event.offsetX };
  }

  /** @param {PointerEvent} event */
  moved(event) {
    if (this.brush) {
      this.brush.to = event.offsetX;
      this.draw();
    } else if (this.data) {
      const index = Math.floor(event.offsetX / this.box.clientWidth * this.data.counts.length);
      const levels = this.data.counts[index] ?? [];
      const start = this.data.first + this.data.step * BigInt(Math.max(0, index));
      const parts = LEVELS.map((level, at) => levels[at] ? `${grouped(levels[at])} ${level}` : "");
      this.canvas.title = [this.time(start), ...parts.filter(Boolean)].join("\n");
    }
  }

  ended() {
    const { brush, data } = this;
    this.brush = null;
    if (!brush || !data) return;
    const width = this.box.clientWidth;
    const [from, to] = sorted(brush)
      .map((x) => Math.min(Math.max(x / width * data.counts.length, 0), data.counts.length));
    // A click is its bar.
    const first = BigInt(Math.floor(from)), last = BigInt(Math.max(Math.ceil(to),
      Math.floor(from) + 1));
    this.onRange(data.first + data.step * first, data.first + data.step * last);
  }

  /**
   * By half of the time that is asked for, or else shown.
   * @param {-1 | 1} direction
   */
  shift(direction) {
    const range = this.asked ?? this.range;
    if (!range) return;
    const half = (range.until - range.since) / 2n * BigInt(direction);
    this.onRange(range.since + half, range.until + half);
  }

  /**
   * Half of it around the middle, or twice.
   * @param {boolean} isIn
   */
  zoom(isIn) {
    const range = this.asked ?? this.range;
    if (!range) return;
    const size = range.until - range.since;
    if (size >= 4n) {
      const change = isIn ? size / 4n : -size / 2n;
      this.onRange(range.since + change, range.until - change);
    }
  }
}
