// Times: nanoseconds of UTC as BigInt, because a number of JavaScript ends at 53 bits.

/** @typedef {"local" | "utc" | "ago"} Zone */

const MILLISECOND = 1_000_000n;
const SECOND = 1_000_000_000n;

/**
 * @param {bigint} ns
 * @returns {string} 2026-11-26T01:49:26.160683888Z, as queries and --since take it.
 */
export function exactText(ns) {
  const date = new Date(Number(ns / MILLISECOND));
  const fraction = String(ns % SECOND).padStart(9, "0");
  return `${date.toISOString().slice(0, 19)}.${fraction}Z`;
}

/** @param {number} ms of UTC */
export function nanoseconds(ms) {
  return BigInt(ms) * MILLISECOND;
}

/** @param {number} number @param {number} [digits] */
function padded(number, digits = 2) {
  return String(number).padStart(digits, "0");
}

/**
 * A time in a row: with milliseconds, its zone stands above the list.
 * @param {bigint} ns @param {Zone} zone @param {bigint} now
 */
export function rowText(ns, zone, now = nanoseconds(Date.now())) {
  if (zone === "ago") return agoText(now - ns);
  const date = new Date(Number(ns / MILLISECOND));
  if (zone === "local") date.setTime(date.getTime() - date.getTimezoneOffset() * 60_000);
  return date.toISOString().slice(0, 23).replace("T", " ");
}

/**
 * The zone that `rowText` uses, in words.
 * @param {Zone} zone
 */
export function zoneText(zone) {
  if (zone === "utc") return "UTC";
  const minutes = -new Date().getTimezoneOffset();
  const sign = minutes < 0 ? "-" : "+";
  const size = Math.abs(minutes);
  const offset = `UTC${sign}${padded(Math.floor(size / 60))}:${padded(size % 60)}`;
  return zone === "local" ? `local time, ${offset}` : "before now";
}

/** @param {bigint} ns how long */
export function agoText(ns) {
  if (ns < 0n) return `in ${spanText(-ns)}`;
  return `${spanText(ns)} ago`;
}

/**
 * A length of time with its two largest units.
 * @param {bigint} ns
 */
export function spanText(ns) {
  if (ns < SECOND) return `${Number(ns / 1000n) / 1000} ms`;
  const seconds = Number(ns / SECOND);
  if (seconds < 60) return `${seconds}.${padded(Number(ns % SECOND / MILLISECOND), 3)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  if (seconds < 86_400) {
    return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds / 60) % 60} min`;
  }
  return `${Math.floor(seconds / 86_400)} d ${Math.floor(seconds / 3600) % 24} h`;
}

/** @param {number | undefined} ms how long */
export function msText(ms) {
  if (ms === undefined) return "";
  return ms < 10_000 ? `${ms.toFixed(1)} ms` : spanText(nanoseconds(Math.round(ms)));
}
