// The query bar: text, times, the error with its column, terms added by a click.

import { named } from "./text.js";

export class QueryBar {
  /** @param {(q: string, since: string, until: string) => void} onAsk */
  constructor(onAsk) {
    this.form = named("query", HTMLFormElement);
    this.text = named("query-text", HTMLInputElement);
    this.since = named("since", HTMLInputElement);
    this.until = named("until", HTMLInputElement);
    this.error = named("query-error", HTMLElement);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      onAsk(this.text.value.trim(), this.since.value.trim(), this.until.value.trim());
    });
  }

  /** @param {{q: string, since: string, until: string}} state */
  show(state) {
    this.text.value = state.q;
    this.since.value = state.since;
    this.until.value = state.until;
  }

  focus() {
    this.text.focus();
    this.text.select();
  }

  /**
   * @param {string} text empty: no error
   * @param {number | null} [column] of the query's text, from 1
   */
  tell(text, column = null) {
    this.error.textContent = text;
    this.text.setAttribute("aria-invalid", String(text !== "" && column !== null));
    if (column !== null && text !== "") {
      this.text.focus();
      this.text.setSelectionRange(column - 1, column);
    }
  }
}

/**
 * A query with one more term, or with its opposite. A query with OR outside of parentheses gets
 * parentheses around it.
 * @param {string} q @param {string} term @param {boolean} isExcluded
 */
export function added(q, term, isExcluded) {
  const wanted = isExcluded ? `-${term}` : term;
  const opposite = isExcluded ? term : `-${term}`;
  const words = terms(q);
  if (words.includes(wanted)) return q;
  const kept = words.filter((word) => word !== opposite);
  const rest = words.includes("OR") ? `(${q})` : kept.join(" ");
  return rest === "" ? wanted : `${rest} ${wanted}`;
}

/**
 * The query's outermost terms as written; quotes, expressions and parentheses hold together.
 * @param {string} q @returns {string[]}
 */
export function terms(q) {
  const found = [];
  let word = "", depth = 0, close = "";
  for (let index = 0; index < q.length; index += 1) {
    const letter = q[index];
    if (close) {
      word += letter;
      if (letter === "\\" && index + 1 < q.length) word += q[index += 1];
      else if (letter === close) close = "";
    } else if (/\s/.test(letter) && depth === 0) {
      if (word) found.push(word);
      word = "";
    } else {
      if (letter === '"') close = '"';
      else if (letter === "/" && /^-?(i:)?$|~(i:)?$/.test(word)) close = "/";
      else if (letter === "(") depth += 1;
      else if (letter === ")") depth -= 1;
      word += letter;
    }
  }
  if (word) found.push(word);
  return found;
}
