// What the whole result has in common: its levels, loggers, processes, with their counts. A click
// adds one to the query, with Alt it is excluded.

import { comparison, element, grouped, levelClass, named, oneLine, quoted } from "./text.js";

/** @typedef {import("./api.js").Facet} Facet */

const SHOWN = 12;

/**
 * The term that selects a facet's value.
 * @param {string} key @param {string} value
 */
export function facetTerm(key, value) {
  const name = { place: "file", host: "host.name", service: "service.name" }[key] ?? key;
  if (value === "") return `-${name}=*`;
  if (key === "level") return `level=${value.toLowerCase()}`;
  if (key !== "place") return comparison(name, value);
  const colon = value.lastIndexOf(":");
  return `(file=${quoted(value.slice(0, colon))} line=${value.slice(colon + 1)})`;
}

export class Facets {
  constructor() {
    this.box = named("facets", HTMLElement);
    this.clear();
  }

  clear() {
    this.isOld = true;
  }

  /** @param {Facet[]} facets */
  show(facets) {
    if (this.isOld) this.box.replaceChildren();
    this.isOld = false;
    for (const facet of facets) {
      // What no record has divides nothing.
      if (facet.others === 0 && facet.top.every(([value]) => value === "")) continue;
      const old = this.box.querySelector(`[data-facet="${CSS.escape(facet.key)}"]`);
      const made = this.make(facet);
      if (old) old.replaceWith(made);
      else this.box.append(made);
    }
  }

  /** @param {Facet} facet */
  make(facet) {
    const most = Math.max(1, ...facet.top.map(([, count]) => count));
    const rows = facet.top.slice(0, SHOWN).map(([value, count]) => {
      const bar = element("span", { class: "share" });
      bar.style.width = `${(count / most * 100).toFixed(1)}%`;
      const name = value === "" ? "(none)" : oneLine(value);
      return element("li", {},
        element("button",
          {
            type: "button", class: facet.key === "level" ? levelClass(value) : "",
            "data-term": facetTerm(facet.key, value),
            title: `${name}: click to add, Alt-click to exclude`,
          },
          bar, element("span", { class: "name" }, name),
          element("span", { class: "number" }, grouped(count))));
    });
    const rest = facet.top.slice(SHOWN).reduce((sum, [, count]) => sum + count, facet.others);
    if (rest > 0) rows.push(element("li", { class: "rest" }, `others: ${grouped(rest)}`));
    return element("section", { "data-facet": facet.key },
      element("h2", {}, facet.key), element("ul", {}, ...rows));
  }
}
