// The views of the page, and the buttons and keys that lead to them. One is shown at a time, in
// an element of its own; the query, the times and the address are common to all.

import { Devices } from "./devices.js";
import { HTTP } from "./http.js";
import { Logs } from "./logs.js";
import { Stores } from "./store.js";
import { button, element, named } from "./text.js";
import { Traces } from "./traces.js";
import { Transactions } from "./transactions.js";
import { Uploads } from "./uploads.js";

/** @typedef {import("./state.js").State} State */
/**
 * What a view may ask of the page, and what the page asks of a view: docs/HACKING.md.
 * @typedef {{ask: (part: Partial<State>) => void,
 *   change: (part: Partial<State>, isStep: boolean) => void,
 *   tell: (error: unknown) => void, state: State, time: (ns: string | bigint) => string,
 *   zone: () => string}} Host
 */
/**
 * @typedef {{name: string, title: string, asks: boolean,
 *   parts?: Node[], show: () => void, hide: () => void,
 *   redraw?: () => void, focus?: () => void, keys: Record<string, () => void>,
 *   help: string[][], command?: () => Promise<string>}} View
 */

/** @type {(new (host: Host) => View)[]} by their keys, from 1 */
const TABLE = [Logs, HTTP, Uploads, Transactions, Traces, Devices, Stores];

export class Views {
  /** @param {Host} host */
  constructor(host) {
    this.host = host;
    const main = named("view", HTMLElement);
    this.all = TABLE.map((Made, at) => {
      const view = new Made(host), key = String(at + 1);
      const root = document.getElementById(`view-${view.name}`) ?? element("div",
        { id: `view-${view.name}`, class: "view", hidden: true });
      root.tabIndex = -1;
      main.append(root);
      const way = button(view.title, () => this.go(view.name),
        { title: `${view.title} (${key})`, "aria-keyshortcuts": key });
      named("views", HTMLElement).append(way);
      return { key, view, root, way };
    });
    /** The one that is shown. */
    this.current = this.all[0];
  }

  /** @param {string} name the view's, or its key */
  go(name) {
    const wanted = this.all.find((one) => one.key === name || one.view.name === name);
    if (!wanted || wanted === this.current) return;
    this.host.ask({ view: wanted.view.name, follow: false });
  }

  /** Shows the state's view; one of another name is hidden before. */
  open() {
    const next = this.all.find((one) => one.view.name === this.host.state.view) ?? this.all[0];
    const old = this.current;
    this.current = next;
    if (old !== next) old.view.hide();
    const { activeElement } = document;
    const isLost = old !== next && old.root.contains(activeElement);
    for (const { root, way } of this.all) {
      root.hidden = root !== next.root;
      if (way === next.way) way.setAttribute("aria-current", "page");
      else way.removeAttribute("aria-current");
    }
    for (const one of document.querySelectorAll("[data-for]")) {
      const { name, asks, command } = next.view;
      const what = one instanceof HTMLElement ? one.dataset.for : "";
      const isShown = what === name || what === "asks" && asks
        || what === "command" && command !== undefined;
      one.toggleAttribute("hidden", !isShown);
    }
    if (!next.root.firstChild) next.root.append(...next.view.parts ?? []);
    next.view.show();
    if (isLost) this.focus();
  }

  focus() {
    const { view, root } = this.current;
    if (view.focus) view.focus();
    else root.focus();
  }
}
