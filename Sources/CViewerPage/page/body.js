// The kept bytes of a body: JSON as a tree that opens and can be searched, text, an image of a kind
// that runs nothing, or hexadecimal. Markup is text.

import { getBlob, parse } from "./api.js";
import { hexText } from "./detail.js";
import { facts } from "./parts.js";
import { button, download, element, visible } from "./text.js";

/** Of a text; the file has all of it. */
const TEXT_MAX = 256 << 10;
/** Members of one object or array that are shown at once. */
const MEMBERS_MAX = 500;
const MATCHES_MAX = 1_000;

/**
 * @param {HTMLElement} box @param {string} path of the API
 * @param {import("./api.js").Words} asked
 * @param {string} kind json, form, text, image, bytes @param {string} name of the file
 * @param {AbortSignal} signal
 */
export async function showBody(box, path, asked, kind, name, signal) {
  const blob = await getBlob(path, asked, signal);
  const bytes = new Uint8Array(await blob.arrayBuffer());
  if (signal.aborted) return;
  const content = element("div", {});
  const text = new TextDecoder().decode(bytes);
  /** @type {[string, () => Node][]} */
  const ways = [];
  const value = kind === "json" ? parsed(text) : undefined;
  if (value !== undefined) ways.push(["Tree", () => tree(value)]);
  if (kind === "form") ways.push(["Form", () => form(text)]);
  if (kind === "image") ways.push(["Image", () => image(blob, bytes, signal)]);
  if (kind !== "image" && kind !== "bytes") {
    ways.push(["Text", () => element("pre", { tabIndex: 0 }, visible(text.slice(0, TEXT_MAX))
      + (text.length > TEXT_MAX ? "\n… the rest is in the file" : ""))]);
  }
  ways.push(["Hex", () => element("pre", { tabIndex: 0 }, hexText(bytes))]);
  const buttons = ways.map(([title, make]) => button(title, () => choose(title, make)));
  const choose = (/** @type {string} */ title, /** @type {() => Node} */ make) => {
    for (const one of buttons) one.setAttribute("aria-pressed", String(one.textContent === title));
    content.replaceChildren(make());
  };
  box.append(element("p", { class: "actions" }, ...buttons,
    button("Save", () => download(blob, `${name}.bin`))), content);
  choose(...ways[0]);
}

/** @param {string} text */
function parsed(text) {
  try {
    const value = parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;  // cut, or not JSON: it is shown as text
  }
}

/** @param {string} text */
function form(text) {
  const { list, add } = facts();
  for (const [name, value] of [...new URLSearchParams(text)].slice(0, MEMBERS_MAX)) {
    add(name, value, "", true);
  }
  return list;
}

/**
 * The type is that of the bytes, not what a header says.
 * @param {Blob} blob @param {Uint8Array} bytes @param {AbortSignal} signal
 */
function image(blob, bytes, signal) {
  const start = [...bytes.slice(0, 4)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const type = { "89504e47": "png", "47494638": "gif", "52494646": "webp" }[start]
    ?? (start.startsWith("ffd8ff") ? "jpeg" : "");
  if (!type) return element("p", {}, "No image that is known here: see its bytes.");
  const url = URL.createObjectURL(blob.slice(0, blob.size, `image/${type}`));
  signal.addEventListener("abort", () => URL.revokeObjectURL(url));
  return element("img", { src: url, alt: "the body, drawn" });
}

// ── JSON ──

/** @typedef {(string | number)[]} Path */

/** @param {object} value */
function tree(value) {
  const root = element("div", { class: "tree" });
  const found = element("span", { role: "status" });
  const search = element("input", { type: "search", placeholder: "search inside",
    "aria-label": "Search inside", spellcheck: false });
  const top = branch("", value);
  /** @type {Path[]} */
  let matches = [];
  let at = -1;
  const begin = () => {
    matches = search.value === "" ? [] : matching(value, search.value.toLowerCase());
    at = -1;
    next();
  };
  const next = () => {
    for (const old of root.querySelectorAll("mark")) old.replaceWith(...old.childNodes);
    found.textContent = search.value && "0 found";
    if (matches.length === 0) return;
    at = (at + 1) % matches.length;
    found.textContent = `${at + 1} of ${matches.length === MATCHES_MAX ? "≥ " : ""}`
      + `${matches.length}`;
    const line = top.reach(matches[at]);
    const mark = element("mark", {});
    mark.append(...line.childNodes);
    line.append(mark);
    mark.scrollIntoView({ block: "nearest" });
  };
  search.addEventListener("input", begin);
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    next();
  });
  root.append(element("p", { class: "actions" }, search, found), top.node);
  top.open();
  return root;
}

/**
 * The paths of names and plain values that have a text, in their order.
 * @param {object} value @param {string} wanted in lower case
 */
function matching(value, wanted) {
  /** @type {Path[]} */
  const found = [];
  /** @type {[Path, unknown][]} */
  const left = [[[], value]];
  while (left.length > 0 && found.length < MATCHES_MAX) {
    const [path, one] = /** @type {[Path, unknown]} */ (left.pop());
    const name = path[path.length - 1];
    const isHit = typeof name === "string" && name.toLowerCase().includes(wanted)
      || !isGroup(one) && String(one).toLowerCase().includes(wanted);
    if (isHit) found.push(path);
    if (!isGroup(one)) continue;
    for (const [key, part] of members(one).reverse()) left.push([[...path, key], part]);
  }
  return found;
}

/** @param {unknown} value @returns {value is object} */
function isGroup(value) {
  return typeof value === "object" && value !== null;
}

/** @param {object} value @returns {[string | number, unknown][]} */
function members(value) {
  return Array.isArray(value) ? value.map((part, index) => [index, part]) : Object.entries(value);
}

/**
 * A member that opens: its own are made when it does.
 * @param {string | number} name @param {object} value
 */
function branch(name, value) {
  const parts = members(value);
  const size = Array.isArray(value) ? `[${parts.length}]` : `{${parts.length}}`;
  const line = element("summary", {},
    name === "" ? "" : element("span", { class: "field" }, visible(`${name}: `)), size);
  const inside = element("div", {});
  const node = element("details", {}, line, inside);
  /** @type {Map<string | number, ReturnType<typeof leaf>>} */
  const made = new Map();
  let shown = 0;
  const more = button("", () => fill(shown + MEMBERS_MAX));
  const fill = (/** @type {number} */ wanted) => {
    for (const [key, part] of parts.slice(shown, wanted)) {
      const child = isGroup(part) ? branch(key, part) : leaf(key, part);
      made.set(key, child);
      inside.append(child.node);
    }
    shown = Math.max(shown, Math.min(wanted, parts.length));
    more.textContent = `${parts.length - shown} more`;
    if (shown < parts.length) inside.append(more);
    else more.remove();
  };
  node.addEventListener("toggle", () => { if (node.open && shown === 0) fill(MEMBERS_MAX); });
  const open = () => {
    node.open = true;
    if (shown === 0) fill(MEMBERS_MAX);
  };
  const reach = (/** @type {Path} */ path) => {
    if (path.length === 0) return line;
    open();
    fill(parts.findIndex(([key]) => key === path[0]) + 1);
    return made.get(path[0])?.reach(path.slice(1)) ?? line;
  };
  return { node: /** @type {HTMLElement} */ (node), open, reach };
}

/** @param {string | number} name @param {unknown} value */
function leaf(name, value) {
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  const node = /** @type {HTMLElement} */ (element("div", {},
    element("span", { class: "field" }, visible(`${name}: `)), visible(text)));
  return { node, open() {}, reach: (/** @type {Path} */ _) => node };
}
