// The page's pure parts, without a browser: terms of queries, quoting, times, what is shown of text.
// node page.mjs [-k PATTERN …]

import assert from "node:assert/strict";

const PAGE = "../../Sources/CViewerPage/page";
const { added, terms } = await import(`${PAGE}/query.js`);
const { comparison, fieldTerm, grouped, oneLine, quoted, visible } =
  await import(`${PAGE}/text.js`);
const { exactText, rowText, spanText } = await import(`${PAGE}/time.js`);

const patterns = process.argv.slice(2).filter((word) => word !== "-k");
let passed = 0, failed = 0;

function test(name, body) {
  if (patterns.length > 0 && !patterns.some((pattern) => name.includes(pattern))) return;
  try {
    body();
    passed += 1;
    console.log(`ok       ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED   ${name}\n${error.message}`);
  }
}

test("terms hold quotes, expressions and parentheses together", () => {
  for (const [query, wanted] of [
    ["", []],
    ["a  b\tc", ["a", "b", "c"]],
    ['"a b" c', ['"a b"', "c"]],
    ['x="a \\" b" c', ['x="a \\" b"', "c"]],
    ["/a b/ c", ["/a b/", "c"]],
    ["x~i:/a b/ -/c d/", ["x~i:/a b/", "-/c d/"]],
    ["path:/orders b", ["path:/orders", "b"]],
    ["(a OR (b c)) d", ["(a OR (b c))", "d"]],
    ['"unfinished one', ['"unfinished one']],
  ]) assert.deepEqual(terms(query), wanted, query);
});

test("a term is added once, and its opposite goes", () => {
  assert.equal(added("", "a=1", false), "a=1");
  assert.equal(added("b", "a=1", true), "b -a=1");
  assert.equal(added("b -a=1", "a=1", false), "b a=1");
  assert.equal(added("a=1 b", "a=1", true), "b -a=1");
  assert.equal(added("a=1 b", "a=1", false), "a=1 b");
  assert.equal(added("a OR b", "c", false), "(a OR b) c");
  assert.equal(added('"x OR y"', "c", false), '"x OR y" c');
});

test("values are quoted where a query would read something else", () => {
  for (const [value, wanted] of [
    ["anna", "anna"], ["app.db", "app.db"], ["a b", '"a b"'], ["7", '"7"'], ["true", '"true"'],
    ["OR", '"OR"'], ["-x", '"-x"'], ["", '""'], ['say "hi"\n', '"say \\"hi\\"\\n"'],
    ["a:b", '"a:b"'], ["*", '"*"'], ["a\\b", '"a\\\\b"'],
  ]) assert.equal(quoted(value), wanted);
});

test("fields keep their types, and their names where columns have them, too", () => {
  assert.equal(fieldTerm("order", 7), "order=7");
  assert.equal(fieldTerm("order", "7"), 'order="7"');
  assert.equal(fieldTerm("big", 18446744073709551615n), "big=18446744073709551615");
  assert.equal(fieldTerm("is paid", true), '"is paid"=true');
  assert.equal(fieldTerm("level", "x"), "fields.level=x");
  assert.equal(fieldTerm("items", [1, { a: 2 }]), "items=*");
  assert.equal(fieldTerm("nothing", null), "nothing=*");
  assert.equal(comparison("pid", 12), "pid=12");
});

test("text that could deceive is shown, not obeyed", () => {
  assert.equal(visible("a\u202eb\u0000c\u001b[31m"), "a\\u202eb\\u0000c\\u001b[31m");
  assert.equal(visible("a\n\tb"), "a\n\tb");
  assert.equal(oneLine("a\r\nb\tc"), "a ⏎ b c");
  assert.equal(grouped(1234567), "1\u202f234\u202f567");
});

test("times are exact to the nanosecond", () => {
  const ns = 1795657766160683888n;
  assert.equal(exactText(ns), "2026-11-26T01:49:26.160683888Z");
  assert.equal(rowText(ns, "utc", ns), "2026-11-26 01:49:26.160");
  assert.equal(rowText(ns, "ago", ns + 61_500_000_000n), "1 min 1 s ago");
  assert.equal(rowText(ns + 5_000_000n, "ago", ns), "in 5 ms");
  assert.equal(spanText(90_061_000_000_000n), "1 d 1 h");
});

console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : passed > 0 ? 0 : 5;
