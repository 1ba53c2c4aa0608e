// What the page shows, kept in the address: a link opens the same view, and Back works.

/**
 * `more` are words of the view's own, such as what is open in it; another view has others.
 * @typedef {{view: string, q: string, since: string, until: string, at: string, selected: string,
 *   follow: boolean, more: Record<string, string>}} State
 */

const TEXTS = /** @type {const} */ (["q", "since", "until", "at"]);
const COMMON = ["view", ...TEXTS, "record", "follow"];

/** @returns {State} */
export function read() {
  const words = new URLSearchParams(location.hash.slice(1));
  return {
    view: words.get("view") ?? "logs",
    q: words.get("q") ?? "", since: words.get("since") ?? "", until: words.get("until") ?? "",
    at: words.get("at") ?? "", selected: words.get("record") ?? "",
    follow: words.get("follow") === "1",
    more: Object.fromEntries([...words].filter(([name]) => !COMMON.includes(name))),
  };
}

/** @param {State} state @returns {string} the fragment, with its `#` */
export function fragment(state) {
  const words = new URLSearchParams();
  if (state.view !== "logs") words.set("view", state.view);
  for (const name of TEXTS) if (state[name]) words.set(name, state[name]);
  if (state.selected) words.set("record", state.selected);
  if (state.follow) words.set("follow", "1");
  for (const [name, value] of Object.entries(state.more)) if (value) words.set(name, value);
  const text = words.toString();
  return text ? `#${text}` : "#";
}

/**
 * Writes the state to the address.
 * @param {State} state @param {boolean} isStep true: Back returns to what was before
 */
export function write(state, isStep) {
  const wanted = fragment(state);
  if (wanted === (location.hash || "#")) return;
  if (isStep) history.pushState(null, "", wanted);
  else history.replaceState(null, "", wanted);
}

/**
 * Two states that differ in the selected record at most.
 * @param {State} a @param {State} b
 */
export function asksTheSame(a, b) {
  return fragment({ ...a, selected: "" }) === fragment({ ...b, selected: "" });
}

/**
 * A choice that outlives the page. Names only, never logged text.
 * @param {"zone" | "theme"} name @param {string} [value]
 */
export function choice(name, value) {
  try {
    if (value !== undefined) localStorage.setItem(name, value);
    return localStorage.getItem(name) ?? "";
  } catch {
    return value ?? "";  // storage is off
  }
}
