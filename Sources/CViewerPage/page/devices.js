// The view of devices: of which machines, services or programs the records are, when each was last
// seen, and how many records, errors and bytes it has. A click asks for the records of one.

import { get } from "./api.js";
import { alerts, Manager, selection, Table } from "./parts.js";
import { agoText, exactText } from "./time.js";
import { button, comparison, counted, element, grouped, nothing, sizeText } from "./text.js";

/** @typedef {import("./api.js").Devices} Answer */

const BY = { "host.name": "machine", "service.name": "service", process: "program" };
const SORT = { last: "last seen", name: "name", records: "records", errors: "errors",
  bytes: "size", gaps: "gaps" };

export class Devices extends Manager {
  name = "devices";
  title = "Devices";
  busy = "counting …";

  show() {
    const controls = { by: this.by.select, sort: this.sort.select, part: this.part };
    for (const [name, control] of Object.entries(controls)) {
      if (control !== document.activeElement) {
        control.value = this.state.more[name] ?? (name === "part" ? "" : control.value);
      }
    }
    this.load();
  }

  by = selection("devices-by", "By", Object.entries(BY), (by) => this.ask("by", by), "");
  sort = selection("devices-sort", "sorted by", Object.entries(SORT),
    (sort) => this.ask("sort", sort), "");
  part = element("input", { id: "devices-part", type: "search", spellcheck: false,
    placeholder: "part of a name", "aria-label": "Part of a name",
    onchange: () => this.ask("part", this.part.value.trim()) });
  bar = element("p", { class: "bar" }, ...this.by.parts, ...this.sort.parts,
    this.part,
    button("Look again", () => this.load()));
  parts = [this.bar, this.status, this.root];

  /** @param {string} name @param {string} value */
  ask(name, value) {
    this.askMore({ [name]: value, from: "" });
  }

  /** @param {AbortSignal} signal */
  look(signal) {
    const { by, sort, part, from } = this.state.more;
    return get("devices", { by, sort, q: part, from }, signal);
  }

  /** @param {Answer} answer */
  draw(answer) {
    const noun = BY[/** @type {keyof BY} */ (answer.by)];
    const parts = [];
    if (answer.devices <= 1 && !this.state.more.part) {
      parts.push(nothing(answer.devices === 0 ? "There are no records."
        : `All records are of one ${noun}.`));
    }
    const table = new Table("Figures", [noun[0].toUpperCase() + noun.slice(1), "Version",
      "Last seen", "Records", "Errors", "Gaps", "Size", "When"]);
    for (const device of answer.rows) {
      const row = table.add([device.name || "(not said)", device.version,
        this.time(device.last_ns), grouped(device.records), grouped(device.errors),
        device.gaps ? grouped(device.gaps) : "", sizeText(device.bytes)],
      device.name ? () => this.toLogs(comparison(answer.by, device.name)) : undefined);
      row.lastElementChild?.append(picture(device, answer));
      if (device.errors > 0) row.children[4].className = "bad";
    }
    if (answer.rows.length > 0) parts.push(table.element);
    const { next } = answer;
    if (next !== null) parts.push(button("Next page", () => this.askMore({ from: next })));
    this.root.replaceChildren(...parts, ...alerts(answer.problems));
    let text = `${grouped(answer.matched)} of ${counted(answer.devices, noun)}`;
    if (answer.unknown_archives > 0) {
      text += `; ${grouped(answer.unknown_archives)} archives cannot be told apart`;
    }
    this.status.textContent = text;
  }
}

const SVG = "http://www.w3.org/2000/svg";

/**
 * When its records were written, in the time of all of them.
 * @param {import("./api.js").Device} device @param {Answer} answer
 */
function picture(device, answer) {
  const most = Math.max(...device.counts, 1);
  const made = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", device.counts.map((count, index) => {
    const height = count === 0 ? 0 : Math.max(1, Math.round(count / most * 16));
    return height === 0 ? "" : `M${index * 2} 16v${-height}h2v${height}z`;
  }).join(""));
  const span = agoText(BigInt(answer.last_ns) - BigInt(device.last_ns));
  for (const [name, value] of Object.entries({ viewBox: "0 0 96 16", class: "picture", role: "img",
    "aria-label":
      `records from ${exactText(BigInt(device.first_ns)).slice(0, 19)}, the last one ${span}`,
  })) made.setAttribute(name, value);
  made.append(path);
  return made;
}
