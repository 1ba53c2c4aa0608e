// What the page asks of its server. Lists come as lines of JSON and end when the caller aborts.

/**
 * @typedef {{time: string, time_ns: string, key: string, level: string, logger: string,
 *   message: string, message_base64?: string, pid: number, tid: number, thread?: string,
 *   file?: string, line?: number, function?: string, fields?: Record<string, unknown>,
 *   exception?: {type?: string, message?: string, stacktrace?: string}, trace_id?: string,
 *   span_id?: string, kind: string | number, process: string | null, service: string | null,
 *   host: string | null, resource?: Record<string, unknown> | null, record_id: string | null,
 *   self?: boolean}} Row
 * @typedef {{step_ns: string, bins: [string, number[]][]}} Histogram
 * @typedef {{key: string, top: [string, number][], others: number}} Facet
 * @typedef {{matched: number, exact: boolean, ms: number, next: string | null,
 *   left_out?: number}} Done
 * @typedef {{headers?: {name: string, value: string}[], headers_note?: string, type?: string,
 *   body_kind?: string, body_kept?: number, body_bytes?: number, body_note?: string}} Message
 * @typedef {{state: string, id: string, side: string, time: string, method: string, url: string,
 *   host?: string, status?: number, failed: boolean, duration_ms?: number,
 *   phases_ms?: Record<string, number>, error?: {type?: string, message?: string},
 *   cancelled?: boolean, odata?: {code?: string, message?: string}, request?: Message,
 *   response?: Message, conversation?: string, redirected_from?: string, attempt?: number,
 *   protocol?: string, peer?: string, transaction?: string, trace_id?: string, span_id?: string,
 *   pid: number, tid: number, process?: string, key: string, start_ns: string}} Exchange
 * @typedef {{usecase: number, name?: string, count: number, ended: number, with_errors: number,
 *   duration_ms?: {p50: number, p95: number, max: number}, stopped_at_once: number,
 *   funnel: {event: number, name?: string, reached: number, share: number, stopped: number}[]
 *   }} Usecase
 * @typedef {{id: string, first_ns: string, duration_ms: number, processes: string[],
 *   records: number, exchanges: number, transactions: number, errors: number}} Trace
 * @typedef {{place: number, depth: number, kind: string, name: string, process: string,
 *   start_ns: string, duration_ms?: number, failed: boolean, key: string, skew_ns?: string}} Span
 * @typedef {{key: string, time_ns: string, level: string, process: string, message: string,
 *   span?: number}} Log
 * @typedef {{usecase?: Usecase, trace?: Trace, span?: Span, log?: Log,
 *   transaction?: {id: string, last_event?: number, last_ns: string},
 *   moment?: {key: string, time_ns: string, process: string, operation: string, event?: number,
 *     name?: string, error_code?: string, error_description?: string, duration_ms?: number},
 *   row?: Row, rows?: number, exchange?: Exchange, hist?: Histogram, facet?: Facet,
 *   progress?: number, problem?: string, done?: Done, skipped?: number, now_ns?: string}} Line
 * @typedef {{version: string, problems: string[], locked: string[], stores: {path: string,
 *   records: number, archives: number, archive_bytes: number, lanes: number, lanes_live: number,
 *   first_ns: string, last_ns: string}[]}} Store
 * @typedef {{store: string, archive: string, target: string, bytes: number, state: string,
 *   attempts: number, reason?: string, not_before?: string, http_status?: number,
 *   records_sent: number, records_refused?: number, cause?: string, version: string,
 *   last_ns?: string, kept_until_ns?: string}} Pair
 * @typedef {{name: string, kind?: string, origin?: string, format?: string, encoding?: string,
 *   states: Record<string, [number, number]>}} Target
 * @typedef {{stores: {path: string, writable: boolean, targets: Target[]}[], problems: string[],
 *   pairs: Pair[], next: string | null}} Queue
 * @typedef {{value: string, version: string}} Setting
 * @typedef {{path: string, writable: boolean, consent: Setting, capture: Setting,
 *   levels: {value: string[], version: string}}} Settings
 * @typedef {{name: string, version: string, first_ns: string, last_ns: string, records: number,
 *   errors: number, gaps: number, bytes: number, counts: number[]}} Device
 * @typedef {{by: string, devices: number, matched: number, unknown_archives: number,
 *   first_ns: string, last_ns: string, problems: string[], rows: Device[], next: string | null}}
 *   Devices
 * @typedef {Record<string, string | number | null | undefined>} Words of a question; empty ones are
 *   left out
 */

/** What the server refused, with the column of the query that it means. */
export class Refusal extends Error {
  /** @param {string} text @param {number | null} column @param {number} status */
  constructor(text, column, status) {
    super(text);
    this.column = column;
    this.status = status;
  }
}

/** @param {string} path @param {Words} parameters @param {AbortSignal} [signal] */
async function request(path, parameters, signal) {
  const given = Object.entries(parameters).filter(([, value]) => value != null && value !== "");
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  return checked(await fetch(`/api/${path}?${search}`, {
    headers: { "X-Cordwood": "1" }, cache: "no-store", signal,
  }));
}

/**
 * Changes something in a store.
 * @param {string} path @param {Record<string, unknown>} body
 */
export async function post(path, body) {
  return (await checked(await fetch(`/api/${path}`, {
    method: "POST", headers: { "X-Cordwood": "1", "Content-Type": "application/json" },
    body: JSON.stringify(body),
  }))).json();
}

/** @param {Response} response */
async function checked(response) {
  if (response.ok) return response;
  let text = `the server answered ${response.status}`, column = null;
  try {
    const answer = await response.json();
    text = answer.error ?? text;
    column = answer.column ?? null;
  } catch {
    // Not ours: the status says it.
  }
  throw new Refusal(text, column, response.status);
}

/** @param {string} path @param {Words} parameters @param {AbortSignal} [signal] */
export async function get(path, parameters = {}, signal) {
  return parse(await (await request(path, parameters, signal)).text());
}

/** @param {string} path @param {Words} parameters @param {AbortSignal} [signal] */
export async function getBlob(path, parameters = {}, signal) {
  return (await request(path, parameters, signal)).blob();
}

/**
 * Calls `take` with each batch of lines that has come.
 * @param {string} path @param {Words} parameters @param {AbortSignal} signal
 * @param {(lines: Line[]) => void} take
 */
export async function stream(path, parameters, signal, take) {
  const response = await request(path, parameters, signal);
  const body = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (!body) return;
  let rest = "";
  while (true) {
    const { value, done } = await body.read();
    if (done || signal.aborted) break;
    const parts = (rest + value).split("\n");
    rest = parts.pop() ?? "";
    const lines = parts.filter((part) => part !== "").map(parse);
    if (lines.length > 0) take(lines);
  }
  if (rest !== "" && !signal.aborted) throw new Error("the server's answer ended within a line");
}

/**
 * Parses JSON and keeps integers of 64 bits exact, as BigInt, where the browser can.
 * @param {string} text
 */
export function parse(text) {
  const exact = (/** @type {string} */ _, /** @type {unknown} */ value,
    /** @type {{source?: string} | undefined} */ context) =>
    typeof value === "number" && !Number.isSafeInteger(value)
      && /^-?\d+$/.test(context?.source ?? "") ? BigInt(context?.source ?? 0) : value;
  return JSON.parse(text, /** @type {(key: string, value: unknown) => unknown} */ (exact));
}
