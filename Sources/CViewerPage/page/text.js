// Elements, and text for queries and the clipboard. What was logged reaches the page by
// `textContent` and attributes alone, never as markup.

/**
 * An element with its properties set and its children appended; a string becomes text.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, unknown>} [properties] `class`, `aria-…`, `role` and `data-…` are set as
 *   attributes, `on…` as listeners, the rest as properties.
 * @param {...(Node | string)} children @returns {HTMLElementTagNameMap[K]}
 */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) {
      made.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    } else if (name === "class" || name === "role" || name.includes("-")) {
      made.setAttribute(name, String(value));
    } else {
      Object.assign(made, { [name]: value });
    }
  }
  made.append(...children);
  return made;
}

/**
 * @param {string} title @param {() => void} onclick
 * @param {Record<string, unknown>} [properties] more of them, as of `element`
 */
export function button(title, onclick, properties) {
  return element("button", { type: "button", onclick, ...properties }, title);
}

/**
 * The element of the page with this id.
 * @template {typeof HTMLElement} T
 * @param {string} id @param {T} type @returns {InstanceType<T>}
 */
export function named(id, type) {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no ${id}`);
  return /** @type {InstanceType<T>} */ (found);
}

/** What a query reads as one name or one text without quotes. */
const WORD = /^[\p{L}_][\p{L}\p{N}_.-]*$/u;

/**
 * A value as a query writes it: in quotes where it would be read as something else.
 * @param {string} value
 */
export function quoted(value) {
  if (WORD.test(value) && !/^(AND|OR|NOT|true|false)$/.test(value)) return value;
  const escapes = /** @type {Record<string, string>} */ ({
    "\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t",
  });
  return `"${value.replace(/[\\"\n\r\t]/g, (letter) => escapes[letter])}"`;
}

/**
 * A comparison; numbers and booleans stand for themselves, so that their type counts.
 * @param {string} name @param {unknown} value
 */
export function comparison(name, value) {
  const left = WORD.test(name) ? name : quoted(name);
  return `${left}=${typeof value === "string" ? quoted(value) : valueText(value)}`;
}

/** What a query takes for a column even where a record has a field of that name. */
const COLUMNS = ["time", "level", "kind", "logger", "message"];

/**
 * The term for a field of a record; for one that is JSON, that it is there.
 * @param {string} name @param {unknown} value
 */
export function fieldTerm(name, value) {
  const isColumn = COLUMNS.includes(name) || name.startsWith("fields.");
  const field = isColumn ? `fields.${name}` : name;
  if (typeof value !== "object") return comparison(field, value);
  return `${WORD.test(field) ? field : quoted(field)}=*`;
}

const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/**
 * Control characters, and those that turn the direction of text, become visible.
 * @param {string} text
 */
export function visible(text) {
  return text.replace(HIDDEN, (letter) =>
    `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/**
 * The text in one line.
 * @param {string} text
 */
export function oneLine(text) {
  return visible(text.replace(/\r?\n/g, " ⏎ ").replace(/\t/g, " "));
}

/** The names of levels, from the least. */
export const LEVELS = ["none", "trace", "debug", "info", "notice", "warn", "error", "fatal"];

/**
 * The class for a level's name as `cordwood cat` shows it, such as `INFO+2`.
 * @param {string} level
 */
export function levelClass(level) {
  const name = level.toLowerCase().replace(/[+-].*$/, "");
  return `level-${LEVELS.includes(name) ? name : LEVELS[0]}`;
}

/** @param {number} count */
export function grouped(count) {
  return String(count).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/**
 * So many things.
 * @param {number} count @param {string} one @param {string} many
 */
export function counted(count, one, many = `${one}s`) {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

/**
 * A field's value as text.
 * @param {unknown} value
 */
export function valueText(value) {
  if (typeof value === "string" || typeof value === "bigint") return String(value);
  return JSON.stringify(value, (_, part) => typeof part === "bigint" ? raw(part) : part);
}

/**
 * A BigInt within JSON, as its digits.
 * @param {bigint} number
 */
function raw(number) {
  const { rawJSON } = /** @type {{rawJSON?: (text: string) => unknown}} */ (JSON);
  return rawJSON ? rawJSON(String(number)) : Number(number);
}

/**
 * 917 B, 64.0 KiB; nothing for what is unknown.
 * @param {number | undefined} bytes
 */
export function sizeText(bytes) {
  if (bytes === undefined) return "";
  if (bytes < 1024) return `${bytes} B`;
  const power = Math.min(5, Math.floor(Math.log(bytes) / Math.log(1024)));
  return `${(bytes / 1024 ** power).toFixed(1)} ${"KMGTP"[power - 1]}iB`;
}

/**
 * Gives a file to the browser to save.
 * @param {Blob} blob @param {string} name
 */
export function download(blob, name) {
  const url = URL.createObjectURL(blob.slice(0, blob.size, "application/octet-stream"));
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/**
 * Copies, and says so.
 * @param {string} text @param {string} what
 */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    say(`${what} copied`);
  } catch {
    say(`${what} could not be copied: the browser refused`);
  }
}

let saidAt = 0;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let sayTimer;

/**
 * Tells the reader something in passing, once a second at most.
 * @param {string} text
 */
export function say(text) {
  clearTimeout(sayTimer);
  const wait = Math.max(0, saidAt + 1000 - Date.now());
  sayTimer = setTimeout(() => {
    saidAt = Date.now();
    named("said", HTMLElement).textContent = text;
  }, wait);
}

/**
 * One sentence where a view has nothing to show.
 * @param {string} sentence
 */
export function nothing(sentence) {
  return element("p", { class: "nothing" }, sentence);
}

/** @param {string} title @param {...Node} content */
export function openDialog(title, ...content) {
  const dialog = named("dialog", HTMLDialogElement);
  dialog.replaceChildren(element("h2", { id: "dialog-title" }, title), ...content);
  dialog.showModal();
}
