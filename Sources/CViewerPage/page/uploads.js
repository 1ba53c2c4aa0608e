// The uploads view: waiting archives per target, with reason and expiry; consent; retries.

import { get } from "./api.js";
import { showBody } from "./body.js";
import { alerts, choiceOf, facts, Manager, selection, Table } from "./parts.js";
import { nanoseconds } from "./time.js";
import { button, copy, element, grouped, named, nothing, sizeText, visible } from "./text.js";

/** @typedef {import("./api.js").Pair} Pair */
/** @typedef {import("./api.js").Queue} Queue */
/** @typedef {import("./api.js").Settings} Settings */

const CONSENT = [
  ["granted", "Archives are sent."],
  ["pending", "Archives are kept and wait."],
  ["denied", "Nothing is sent. What waits is deleted at once, for good."],
];
const STATES = {
  waiting: "not tried yet", retry: "failed, and tried again",
  paused: "the server wants other credentials", sent: "another target does not have it yet",
  filtered: "this target wants none of its records", kept: "sent, but for refused records",
  quarantined: "refused, unreadable or given up",
};
const FAILED = ["retry", "paused", "kept", "quarantined"];
const WAITING = ["waiting", "retry", "paused"];

export class Uploads extends Manager {
  name = "uploads";
  title = "Uploads";

  /** @param {AbortSignal} signal */
  look(signal) {
    const { state, target } = this.state.more;
    return Promise.all([get("settings", {}, signal), get("queue", { state, target }, signal)]);
  }

  /**
   * Changes something, and shows what is there then.
   * @param {string} path @param {Record<string, unknown>} body @param {string} done
   */
  async send(path, body, done) {
    await this.change(path, body, done);
    await this.load();
  }

  /** @param {[{stores: Settings[]}, Queue]} answer */
  draw([{ stores }, queue]) {
    const focused = document.activeElement?.id;
    const parts = stores.map((store) => this.store(store, queue));
    if (parts.length === 0) parts.push(nothing("No store here has archives to send."));
    parts.push(...alerts(queue.problems));
    if (queue.stores.some((store) => store.targets.length > 0)) parts.push(this.pairs(queue));
    this.root.replaceChildren(...parts);
    if (focused) document.getElementById(focused)?.focus();
  }

  /** @param {Settings} store @param {Queue} queue */
  store(store, queue) {
    const targets = queue.stores.find((one) => one.path === store.path)?.targets ?? [];
    const part = element("section", { "aria-label": `Store ${store.path}` },
      element("h2", {}, visible(store.path)),
      choiceOf("May archives be sent?", CONSENT, store.consent.value, store.writable, (value) =>
        this.consent(store, value)));
    if (targets.length === 0) {
      part.append(nothing("No target is registered: programs add one, and cordwood upload does."));
      return part;
    }
    const table = new Table("Targets", ["Target", "Kind", "Server", "Form", "Archives"]);
    for (const target of targets) {
      const counts = Object.entries(target.states).map(([state, [count, bytes]]) =>
        `${grouped(count)} ${state} (${sizeText(bytes)})`);
      table.add([target.name, target.kind ?? "", target.origin ?? "",
        [target.format, target.encoding].filter((word) => word && word !== "none").join(", "),
        counts.join(", ") || "nothing waits"]);
    }
    part.append(table.element);
    return part;
  }

  /** @param {Settings} store @param {string} value */
  consent(store, value) {
    if (value === "denied" && !confirm("Delete all archives that wait, for good?")) {
      this.load();
      return;
    }
    this.send("consent", { store: store.path, value, version: store.consent.version },
      `consent is ${value}`);
  }

  /** @param {Queue} queue */
  pairs(queue) {
    const isWritable = new Map(queue.stores.map((store) => [store.path, store.writable]));
    const part = element("section", { "aria-label": "Archives" },
      element("h2", {}, "Archives"), this.filters(queue));
    const table = new Table("Archives and targets",
      ["Archive", "Size", "Target", "State", "Tried", "Next try", "Why", ""]);
    for (const pair of queue.pairs) {
      const next = pair.not_before ? this.time(nanoseconds(Date.parse(pair.not_before))) : "";
      const row = table.add([pair.archive, sizeText(pair.bytes), pair.target, pair.state,
        String(pair.attempts), next, pair.cause ?? ""], () => this.open(pair));
      const offer = (/** @type {string} */ word, /** @type {() => void} */ action) =>
        row.lastElementChild?.append(button(word, action,
          { "aria-label": `${word} ${pair.archive} for ${pair.target}` }));
      if (isWritable.get(pair.store) && FAILED.includes(pair.state)) {
        offer("Retry", () => this.retry(pair));
      }
      if (WAITING.includes(pair.state)) offer("Preview", () => this.run(this.preview(pair, 0)));
    }
    if (queue.pairs.length === 0) part.append(nothing("Nothing waits."));
    else part.append(table.element);
    if (queue.next !== null) {
      part.append(element("p", {}, `Only the first ${grouped(queue.pairs.length)} are shown: `
        + "choose a state or a target."));
    }
    part.append(element("div", { id: "pair", role: "region", "aria-label": "Archive and target" }));
    return part;
  }

  /** @param {Queue} queue */
  filters(queue) {
    const bar = element("p", { class: "bar" });
    const targets = queue.stores.flatMap((store) => store.targets.map(({ name }) => name));
    for (const [name, words] of Object.entries(
      { state: Object.keys(STATES), target: [...new Set(targets)] })) {
      const { select, parts } = selection(`uploads-${name}`, name,
        [["", `any ${name}`], ...words.map((word) => [word, word])],
        (value) => this.askMore({ [name]: value }));
      select.value = this.state.more[name] ?? "";
      bar.append(...parts);
    }
    bar.append(button("Look again", () => this.load()));
    for (const store of queue.stores) {
      const failed = store.targets.some(({ states }) => FAILED.some((state) => states[state]));
      if (!failed || !store.writable) continue;
      const more = queue.stores.length > 1 ? ` of ${store.path}` : "";
      bar.append(button(`Retry all that failed${more}`, () => this.send("queue",
        { store: store.path, value: "retry", target: this.state.more.target || null },
        "what failed is tried again")));
    }
    return bar;
  }

  /** @param {Pair} pair */
  retry(pair) {
    const { store, archive, target, version } = pair;
    this.send("queue", { store, archive, target, version, value: "retry" },
      "it is tried again");
  }

  /** @param {Pair} pair */
  open(pair) {
    const meaning = STATES[/** @type {keyof STATES} */ (pair.state)] ?? "";
    const { list, add } = facts();
    add("Archive", pair.archive);
    add("Target", pair.target);
    add("State", `${pair.state}: ${meaning}`);
    add("Why", pair.cause);
    for (const [name, count] of Object.entries({
      "Attempts that failed": pair.attempts, "HTTP status": pair.http_status,
      "Records sent": pair.records_sent, "Records refused": pair.records_refused })) {
      if (count) add(name, grouped(count));
    }
    add("Last written", pair.last_ns ? this.time(pair.last_ns) : "");
    add("Kept until", pair.kept_until_ns ? this.time(pair.kept_until_ns)
      : "all targets have it, or the program's limits of age and size remove it");
    this.fill("Archive and target", list,
      button("Copy name", () => copy(pair.archive, "name")));
  }

  /** @param {string} title @param {...Node} content */
  fill(title, ...content) {
    const box = named("pair", HTMLElement);
    box.replaceChildren(element("h2", {}, title), ...content);
    box.scrollIntoView({ block: "nearest" });
    return box;
  }

  /** @param {Pair} pair @param {number} part of its requests */
  async preview(pair, part) {
    const { store, archive, target } = pair, { signal } = this.life;
    const asked = { store, archive, target, part };
    const one = await get("preview", asked, signal);
    if (signal.aborted) return;
    const { list, add } = facts();
    add("Request", `${one.method} ${one.origin}/…`);
    for (const { name, value } of one.headers) add(name, value, "", true);
    add("Records", one.records);
    add("Body", `${sizeText(one.body_bytes)}, before compression ${sizeText(one.content_bytes)}`
      + (one.content_kept < one.content_bytes ? `, shown ${sizeText(one.content_kept)}` : ""));
    const actions = element("p", { class: "actions" }, button("Save as sent",
      () => this.save("preview/sent", asked, `${archive}-${part}.body`)));
    const { next } = one;
    if (next) actions.append(button("Next request", () => this.run(this.preview(pair, next))));
    const box = this.fill(`What would be sent of ${visible(archive)} to ${visible(target)}`,
      element("p", { class: "note" }, "*** is a secret. The store knows no path of a URL."), list,
      actions);
    await showBody(box, "preview/content", asked, one.body_kind, archive, signal);
  }
}
