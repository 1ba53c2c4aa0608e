// The view of the stores: what each holds, and what is asked of the programs that write to it:
// levels, and whether HTTP exchanges are captured.

import { get } from "./api.js";
import { choiceOf, Manager, Table } from "./parts.js";
import { button, element, grouped, nothing, sizeText, visible } from "./text.js";

/** @typedef {import("./api.js").Settings} Settings */

const CAPTURE = [
  ["auto", "Each program decides."],
  ["on", "Programs with hooks capture HTTP exchanges; secrets are replaced."],
  ["off", "No program captures HTTP exchanges."],
];

export class Stores extends Manager {
  name = "store";
  title = "Store";

  /** @param {AbortSignal} signal */
  look(signal) {
    return Promise.all([get("settings", {}, signal), get("store", {}, signal)]);
  }

  /** @param {[{stores: Settings[]}, import("./api.js").Store]} answer */
  draw([settings, store]) {
    const table = new Table("Stores",
      ["Store", "Records", "Archives", "Size", "Lanes", "First record", "Last record"]);
    for (const one of store.stores) {
      const time = (/** @type {string} */ ns) => ns === "0" ? "" : this.time(ns);
      table.add([one.path, grouped(one.records), grouped(one.archives),
        sizeText(one.archive_bytes), `${grouped(one.lanes)}, ${grouped(one.lanes_live)} live`,
        time(one.first_ns), time(one.last_ns)]);
    }
    /** @type {HTMLElement[]} */
    const parts = [element("h2", {}, "Stores"), table.element];
    for (const [what, texts] of Object.entries(
      { Damage: store.problems, "Locked: no key opens them": store.locked })) {
      if (texts.length === 0) continue;
      parts.push(element("h2", {}, what), element("ul", {},
        ...texts.slice(0, 100).map((text) => element("li", {}, visible(text)))));
    }
    for (const one of settings.stores) parts.push(this.settings(one));
    this.root.replaceChildren(...parts);
  }

  /** @param {Settings} store */
  settings(store) {
    const field = element("input", { id: `level-${store.path}`, type: "text", spellcheck: false,
      placeholder: "app.db=debug", size: 24, required: true });
    const add = element("form", { class: "bar" },
      element("label", { htmlFor: field.id }, "Logger and level"), field,
      element("button", {}, "Set"));
    add.addEventListener("submit", (event) => {
      event.preventDefault();
      this.send("levels", store, field.value.trim().split(/\s+/), "levels are set");
    });
    const levels = new Table("Levels", ["Loggers", "Level", ""]);
    for (const text of store.levels.value) {
      const at = text.lastIndexOf("="), prefix = text.slice(0, at);
      const row = levels.add([prefix || "(all)", text.slice(at + 1)]);
      if (!store.writable) continue;
      row.lastElementChild?.append(button("Programs decide", () =>
        this.send("levels", store, [`${prefix}=default`], "programs decide"),
      { "aria-label": `Let programs decide about ${prefix || "all loggers"}` }));
    }
    return element("section", { "aria-label": `Settings of ${store.path}` },
      element("h2", {}, `What programs do: ${visible(store.path)}`),
      choiceOf("Capture HTTP exchanges?", CAPTURE, store.capture.value, store.writable,
        (value) => this.send("capture", store, value, `capture is ${value}`)),
      store.levels.value.length > 0 ? levels.element
        : nothing("Each program decides which levels it keeps."),
      ...store.writable ? [add] : []);
  }

  /**
   * @param {"levels" | "capture"} name @param {Settings} store @param {unknown} value
   * @param {string} done
   */
  async send(name, store, value, done) {
    const body = { store: store.path, value, version: store[name].version };
    // What failed is still in the form, to be corrected.
    if (await this.change(name, body, done)) await this.load();
  }
}
