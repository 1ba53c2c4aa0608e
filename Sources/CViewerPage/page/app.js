// The page: its state, and what is common to all views: query, choices, keys.

import { Refusal } from "./api.js";
import { added, QueryBar } from "./query.js";
import { asksTheSame, choice, read, write } from "./state.js";
import { copy, element, named, openDialog } from "./text.js";
import { rowText, zoneText } from "./time.js";
import { Views } from "./views.js";

/** @typedef {import("./state.js").State} State */

let state = read();

const bar = new QueryBar((q, since, until) => ask({ q, since, until }));
const zone = named("zone", HTMLSelectElement);
const theme = named("theme", HTMLSelectElement);
const views = new Views({
  ask, change, tell,
  get state() { return state; },
  time: (ns) => rowText(BigInt(ns), chosenZone()),
  zone: () => `times: ${zoneText(chosenZone())}`,
});

function chosenZone() {
  return /** @type {import("./time.js").Zone} */ (zone.value);
}

/**
 * Another question: a step that Back returns from. Words of the view stay where it does.
 * @param {Partial<State>} part
 */
function ask(part) {
  const isSame = (part.view ?? state.view) === state.view;
  change({ at: "", selected: "", ...isSame ? {} : { more: {} }, ...part }, true);
  open();
}

/** @param {Partial<State>} part @param {boolean} isStep */
function change(part, isStep) {
  state = { ...state, ...part };
  write(state, isStep);
}

/** Shows the state from the beginning. */
function open() {
  bar.show(state);
  bar.tell("");
  views.open();
}

/** @param {string} term @param {boolean} isExcluded */
function addTerm(term, isExcluded) {
  ask({ q: added(state.q, term, isExcluded) });
}

/** @param {unknown} error */
function tell(error) {
  if (error instanceof DOMException && error.name === "AbortError") return;
  const text = error instanceof Error ? error.message : String(error);
  bar.tell(error instanceof TypeError ? "the server does not answer; it may have ended" : text,
    error instanceof Refusal ? error.column : null);
}

// ── Hands ──

async function copyCommand() {
  try {
    const text = await views.current.view.command?.();
    if (text !== undefined) await copy(text, "command");
  } catch (error) {
    tell(error);
  }
}

const HELP = [
  ["/", "query"], ["Esc", "close"], ["e x", "add the focused value, exclude it"],
  ["c", "copy the focused value, or the command"], ["?", "this list"],
];

function showKeys() {
  const ways = views.all.map(({ key, view }) => [key, view.title]);
  const keys = [...views.current.view.help, ...HELP, ...ways];
  openDialog("Keys", element("dl", { class: "keys" }, ...keys.flatMap(([key, text]) =>
    [element("dt", {}, element("kbd", {}, key)), element("dd", {}, text)])),
  element("form", { method: "dialog" },
    element("button", {}, "Close")));
}

/** What the focused value says of itself. */
function focused() {
  const { activeElement } = document;
  return activeElement instanceof HTMLElement ? activeElement.dataset : {};
}

/** @param {boolean} isExcluded */
function addFocused(isExcluded) {
  const { term } = focused();
  if (term) addTerm(term, isExcluded);
}

/**
 * What a view does not do itself.
 * @type {Record<string, () => void>}
 */
const ACTIONS = {
  "/": () => { if (views.current.view.asks) bar.focus(); },
  e: () => addFocused(false), x: () => addFocused(true),
  c: () => {
    const { value } = focused();
    if (value !== undefined) copy(value, "value");
    else copyCommand();
  },
  "?": showKeys,
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const { key, target } = event;
  if (named("dialog", HTMLDialogElement).open) return;
  if (target instanceof HTMLInputElement || target instanceof HTMLSelectElement) {
    if (key === "Escape") views.focus();
    return;
  }
  // Buttons keep what Enter means to them.
  if (key === "Enter" && target instanceof HTMLButtonElement) return;
  const way = views.all.find((one) => one.key === key);
  const action = way ? () => views.go(key) : views.current.view.keys[key] ?? ACTIONS[key];
  if (!action) return;
  event.preventDefault();
  action();
});

// A button with a term adds it to the query, with Alt it is excluded.
document.addEventListener("click", (event) => {
  const button = event.target instanceof Element ? event.target.closest("button") : null;
  if (button?.dataset.term) addTerm(button.dataset.term, event.altKey);
});

/** Colours as chosen: those of dark.css, or not. */
function paint() {
  named("dark", HTMLLinkElement).media = { light: "not all", dark: "all" }[theme.value]
    ?? "(prefers-color-scheme: dark)";
}

named("help", HTMLElement).addEventListener("click", showKeys);
named("copy-link", HTMLElement).addEventListener("click", () => copy(location.href, "link"));
named("copy-command", HTMLElement).addEventListener("click", copyCommand);

zone.value = choice("zone") || "local";
theme.value = choice("theme") || "auto";
paint();

for (const [name, field] of /** @type {const} */ ([["zone", zone], ["theme", theme]])) {
  field.addEventListener("change", () => {
    choice(name, field.value);
    paint();
    const { view } = views.current;
    if (view.redraw) view.redraw();
    else view.show();
  });
}

window.addEventListener("popstate", () => {
  const before = state;
  state = read();
  if (!asksTheSame(before, state)) open();
});

open();
