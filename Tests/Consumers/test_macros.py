"""CORDWOOD_INFO and its kin: what users write, right and wrong. Each line of RIGHT compiles without
a warning and produces exactly its text. Each line of WRONG does not compile, and the compiler names
the mistake. gcc tries all in C++17 and clang in C++20; with --size all, both in both.

    Tests/TestSupport/unittests.py Tests/Consumers -k Macro
"""
import os
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from cases import full, sized
from test_consumers import LIBRARIES, ROOT, STRICT, WITHOUT, ConsumerCase, compilers, run

# Used by the lines below.
HEAD = r"""
#include <cordwood/cordwood.hpp>
#include "side.hpp"
#include "side.hpp"
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <tuple>
#include <unordered_map>
#include <vector>
#if __has_include(<filesystem>)
#include <filesystem>
#endif

using namespace std::chrono_literals;
#define WORLD "world"
enum plain { red = -3, blue = 5 };
enum class shade : unsigned char { dark, light = 7 };
struct silent { int x; };
struct base { virtual ~base() = default; };
namespace shop {
struct order { int id; double price; };
inline void cordwood_format(const order &o, cordwood::text_buffer &out) {
    out.print("#%d for %.2f", o.id, o.price);
}
enum class state { open, shut };
inline void cordwood_format(const state &s, cordwood::text_buffer &out) {
    out.append(s == state::open ? "open" : "shut");
}
struct late : order {};
} // namespace shop
struct point { int x, y; };
template <> struct cordwood::formatter<point> {
    static void format(const point &p, cordwood::text_buffer &out) {
        out.print("(%d,%d)", p.x, p.y);
    }
};
#if defined(__cpp_exceptions)
struct thrower {};
inline void cordwood_format(const thrower &, cordwood::text_buffer &) {
    throw std::runtime_error("no");
}
#endif
struct bits { unsigned three : 3; };
struct __attribute__((packed)) packed { char c; int n; };
template <class T> void in_template(const cordwood::logger &log, const T &value) {
    CORDWOOD_INFO(log, "template {}", value);
}
template <class... T> void in_pack(const cordwood::logger &log, const T &...values) {
    CORDWOOD_INFO(log, "pack {} {}", values...);
}
inline void in_inline(const cordwood::logger &log, int n) { CORDWOOD_INFO(log, "inline {}", n); }
constexpr int in_constexpr(const cordwood::logger &log, int n) {
    CORDWOOD_INFO(log, "constexpr {}", n);
    return n + 1;
}
static_assert(in_constexpr(cordwood::logger(), 1) == 2, "logs nothing while it compiles");
struct member {
    int n = 4;
    void say(const cordwood::logger &log) const { CORDWOOD_INFO(log, "member {}", n); }
};
#define WRAPPED(...) CORDWOOD_INFO(log, __VA_ARGS__)
#define TWICE(a, b) CORDWOOD_INFO(log, "two " a); CORDWOOD_INFO(log, "two " b)
template <class T> struct many {
    many(const cordwood::logger &log, T t) {
        CORDWOOD_INFO(log, "made {}", t);
        if (log) { CORDWOOD_INFO(log, "and {}", t); }
        auto inner = [&] { CORDWOOD_INFO(log, "within"); CORDWOOD_INFO(log, "and within"); };
        inner();
    }
};
inline std::string made() { return std::string(30, 't'); }
inline int counted() {
    static int calls = 0;
    return ++calls;
}
"""
SIDE = """#pragma once
#include <cordwood/cordwood.hpp>
inline void in_header(const cordwood::logger &log, int n) { CORDWOOD_INFO(log, "header {}", n); }
"""
# A second unit of the same program that uses the same inline functions.
OTHER = """#include "side.hpp"
void in_other(const cordwood::logger &log);
void in_other(const cordwood::logger &log) { in_header(log, 2); }
"""

# (its subject, the line, the texts of its records)
RIGHT = [
    ("no argument", 'CORDWOOD_INFO(log, "100 % constant");', ["100 % constant"]),
    ("order and price", 'CORDWOOD_INFO(log, "order {} at {:f}", 7, 2.5);', ["order 7 at 2.500000"]),
    ("doubled braces", 'CORDWOOD_INFO(log, "{{}} {} {{x}}", 1);', ["{} 1 {x}"]),
    ("a temporary string", 'CORDWOOD_INFO(log, "{}", made() + "!");', ["t" * 30 + "!"]),
    ("a view that no NUL ends", 'std::string_view v("abcdef", 3); CORDWOOD_INFO(log, "{}|", v);',
     ["abc|"]),
    ("a text in an array", 'char a[9] = "ab"; const char *p = a; '
     'CORDWOOD_INFO(log, "{} {} {}", a, p, "lit");', ["ab ab lit"]),
    ("NULL as a text", 'const char *p = nullptr; char *q = nullptr; '
     'CORDWOOD_INFO(log, "{} {:>8}", p, q);', ["(null)   (null)"]),
    ("enums", 'CORDWOOD_INFO(log, "{} {} {} {}", red, blue, shade::light, shop::state::shut);',
     ["-3 5 7 shut"]),
    ("bool", 'CORDWOOD_INFO(log, "{} {:d} {:>6}", true, false, true);', ["true 0   true"]),
    ("char and bytes", "CORDWOOD_INFO(log, \"{} {:d} {} {}\", 'A', 'A', int8_t(-5), uint8_t(200));",
     ["A 65 -5 200"]),
    ("sizes", 'CORDWOOD_INFO(log, "{} {} {:#x}", sizeof(int), SIZE_MAX, uint16_t(255));',
     ["4 18446744073709551615 0xff"]),
    ("pointers", 'CORDWOOD_INFO(log, "{} {} {}", nullptr, reinterpret_cast<void *>(16), '
     'static_cast<const void *>(nullptr));', ["0x0 0x10 0x0"]),
    ("floats", 'CORDWOOD_INFO(log, "{} {} {:.2f} {:e}", 0.1f, 0.1, 2.555L, 1.0);',
     ["0.1 0.1 2.56 1.000000e+00"]),
    ("volatile, bits, packed", 'volatile int n = 3; volatile bool b = true; bits f = {5}; '
     'packed p = {1, 9}; CORDWOOD_INFO(log, "{} {} {} {}", n, b, f.three, p.n);', ["3 true 5 9"]),
    ("durations", 'CORDWOOD_INFO(log, "{} {} {:>5}|", 5ms, 2min, 3s);', ["5ms 2min    3s|"]),
    ("a time", 'CORDWOOD_INFO(log, "{}", std::chrono::system_clock::time_point(1500ms));',
     ["1970-01-01T00:00:01.500000000Z"]),
    ("width and precision from arguments",
     'CORDWOOD_INFO(log, "{:{}}|{:.{}f}|{:{}.{}f}", 5, 4, 3.14159, 2, 2.5, 6, 1);',
     ["   5|3.14|   2.5"]),
    ("numbered arguments", 'CORDWOOD_INFO(log, "{1} {0} {1:>4} {0:{2}}", 1, 2, 3);',
     ["2 1    2   1"]),
    ("fills", 'CORDWOOD_INFO(log, "{:*^7}{:\u00e4<3}{:+}{:05}", "mid", "x", 7, -42);',
     ["**mid**x\u00e4\u00e4+7-0042"]),
    ("your own types", 'CORDWOOD_INFO(log, "{} {:>9} {}", shop::order{3, 1.5}, point{1, 2}, '
     'shop::late{{4, 2}});', ["#3 for 1.50     (1,2) #4 for 2.00"]),
    ("optional", 'std::optional<int> a = 7; std::optional<std::string> b = "x", c; '
     'CORDWOOD_INFO(log, "{} {} {}", a, b, c);', ['optional(7) optional("x") none']),
    ("vectors", 'CORDWOOD_INFO(log, "{} {} {} {}", std::vector<int>{1, 2}, '
     'std::vector<std::string>{"a", "b\\"\\n"}, std::vector<bool>{true, false}, '
     'std::vector<double>());', ['[1, 2] ["a", "b\\"\\n"] [true, false] []']),
    ("arrays", "int a[] = {1, 2}; std::array<char, 2> b = {'x', '\\''}; "
     'CORDWOOD_INFO(log, "{} {}", a, b);', ["[1, 2] ['x', '\\'']"]),
    ("doubles in a list", 'CORDWOOD_INFO(log, "{}", std::vector<double>{0.1, 1.0, 1e100, -2.5});',
     ["[0.1, 1, 1e+100, -2.5]"]),
    ("maps and sets", 'std::map<std::string, std::vector<int>> m = {{"a", {1}}, {"b", {}}}; '
     'std::set<int> s = {2, 1}; CORDWOOD_INFO(log, "{} {}", m, s);',
     ['{"a": [1], "b": []} {1, 2}']),
    ("pairs and tuples", 'CORDWOOD_INFO(log, "{} {}", std::pair<int, const char *>(1, "x"), '
     'std::make_tuple(true, shop::order{1, 2}, 5ms));', ['(1, "x") (true, #1 for 2.00, 5ms)']),
    ("a list beyond its room", 'CORDWOOD_INFO(log, "{}", std::vector<int>(1000, 7));',
     ["[" + "7, " * 339 + "7,\u2026"]),
    ("a text cut between characters", 'std::string t = "x"; for (int i = 0; i < 1000; i++) '
     't += "\u00e4"; CORDWOOD_INFO(log, "{}", std::vector<std::string>{t});',
     ['["x' + "\u00e4" * 508 + "\u2026"]),
    ("an exception", 'CORDWOOD_INFO(log, "failed: {}", std::runtime_error("why"));',
     ["failed: why"]),
    ("in a template", 'in_template(log, 1); in_template(log, "x"); in_template(log, 1.5); '
     'in_pack(log, 1, "p");', ["template 1", "template x", "template 1.5", "pack 1 p"]),
    ("in an inline function", "in_inline(log, 3); in_inline(log, 4);", ["inline 3", "inline 4"]),
    ("in a header of two units", "in_header(log, 1); in_other(log);", ["header 1", "header 2"]),
    ("in a member", "member().say(log);", ["member 4"]),
    ("in a lambda", 'auto f = [&](auto n) { CORDWOOD_INFO(log, "lambda {}", n); }; f(1); f("s");',
     ["lambda 1", "lambda s"]),
    ("in a constexpr function", "in_constexpr(log, 5);", ["constexpr 5"]),
    ("if without braces", 'if (log) CORDWOOD_INFO(log, "yes"); else CORDWOOD_INFO(log, "no");',
     ["yes"]),
    ("commas in an argument", 'CORDWOOD_INFO(log, "{} {}", std::pair<int, int>(1, 2).first, '
     '[] { int a = 1, b = 2; return a + b; }());', ["1 3"]),
    ("a macro in an argument of a macro", 'CORDWOOD_INFO(log, "outer {}", [&log] { '
     'in_inline(log, 0); return 1; }());', ["inline 0", "outer 1"]),
    ("a moved value stays", 'std::string s = "kept"; CORDWOOD_INFO(log, "{}", std::move(s)); '
     'CORDWOOD_INFO(log, "{}", s);', ["kept", "kept"]),
    ("evaluated once", 'int i = 0; CORDWOOD_INFO(log, "{} {}", ++i, counted()); '
     'CORDWOOD_INFO(log, "{} {}", i, counted());', ["1 1", "1 2"]),
    ("not evaluated when off", 'int i = 0; CORDWOOD_DEBUG(log, "{} {}", ++i, counted()); '
     'CORDWOOD_TRACE(log, "{}", ++i); CORDWOOD_INFO(log, "{} {}", i, counted());', ["0 3"]),
    ("every third", 'for (int i = 0; i < 7; i++) '
     'CORDWOOD_LOG_EVERY_N(log, cordwood::level::info, 3, "{} {}", i, counted());',
     ["0 4", "3 5", "6 6"]),
    ("once in a time", 'for (int i = 0; i < 7; i++) '
     'CORDWOOD_LOG_EVERY_MS(log, CW_LEVEL_INFO, 3600000, "{} {}", i, counted());', ["0 7"]),
    ("each of every 0", 'for (int i = 0; i < 2; i++) '
     'CORDWOOD_LOG_EVERY_N(log, CW_LEVEL_WARN, 0u, "{} {}", i, counted());', ["0 8", "1 9"]),
    ("as often in each template", 'auto f = [&](auto v) { for (int i = 0; i < 3; i++) '
     'CORDWOOD_LOG_EVERY_N(log, CW_LEVEL_INFO, 2, "{} {}", v, counted()); }; f(1); f(2.5);',
     ["1 10", "1 11", "2.5 12", "2.5 13"]),
    ("the logger is evaluated once", 'int i = 0; auto at = [&] { i++; return log; }; '
     'CORDWOOD_INFO(at(), "one"); CORDWOOD_DEBUG(at(), "none"); CORDWOOD_INFO(log, "{}", i);',
     ["one", "2"]),
    ("loggers", 'CORDWOOD_INFO(log.handle(), "handle"); CORDWOOD_INFO(cordwood::logger(), "none"); '
     'struct own : cordwood::logger { using logger::logger; } mine(log.handle()); '
     'CORDWOOD_INFO(mine, "derived");', ["handle", "derived"]),
    ("levels", 'CORDWOOD_NOTICE(log, "n"); CORDWOOD_WARN(log, "w"); CORDWOOD_ERROR(log, "e"); '
     'CORDWOOD_FATAL(log, "f"); CORDWOOD_LOG(log, cordwood::level::warn, "l {}", 1); '
     'CORDWOOD_LOG(log, CW_LEVEL_DEBUG, "off"); CORDWOOD_LOG(log, 9u, "nine");',
     ["n", "w", "e", "f", "l 1", "nine"]),
    ("literals joined", 'CORDWOOD_INFO(log, "hello " WORLD " {}", 1); '
     'CORDWOOD_INFO(log, R"(raw, "{}")", 2);', ["hello world 1", 'raw, "2"']),
    ("a macro of your own", 'WRAPPED("wrapped"); WRAPPED("wrapped {}", 2); TWICE("a", "b");',
     ["wrapped", "wrapped 2", "two a", "two b"]),
    ("many in a constructor", "many<int>(log, 1); many<double>(log, 1.5);",
     ["made 1", "and 1", "within", "and within", "made 1.5", "and 1.5", "within", "and within"]),
    ("your own types in lists", 'CORDWOOD_INFO(log, "{} {}", std::optional<shop::state>('
     'shop::state::open), std::vector<point>{{1, 2}, {3, 4}});',
     ["optional(open) [(1,2), (3,4)]"]),
    ("32 arguments", 'CORDWOOD_INFO(log, "%s", %s);' % ("{}" * 32, ", ".join(["1"] * 32)),
     ["1" * 32]),
    ("the function form", 'log.info("{} {}", std::vector<int>{1}, shop::order{1, 2});',
     ["[1] #1 for 2.00"]),
    ("a formatter that throws", 'CORDWOOD_INFO(log, "{}!", thrower());',
     ["(its formatter threw: no)!"]),
]

LITERAL = "cordwood: the format must be a string literal"
NAMED = "cordwood: a placeholder is {}, {:spec}, {0} or {0:spec}; it has no name"
MISSING, UNUSED = ("cordwood: a placeholder without an argument",
                   "cordwood: an argument without a placeholder")
TYPE = "cordwood: a placeholder's type does not fit its argument"
FLAG = "cordwood: a sign, #, 0, L or precision that its argument cannot have"
UNKNOWN = "cordwood: no such specification"
BRACE = "cordwood: unbalanced brace"
WIDTH = "cordwood: a width or precision in an argument must be an integer"
WIDE = "cordwood: wide characters and strings have no format"
POINTER = "cordwood: a pointer to something"
NONE = "cordwood: this type has no format"

# (what the compiler must print, the line)
WRONG = [
    (MISSING, 'CORDWOOD_INFO(log, "{} {}", 1);'), (MISSING, 'CORDWOOD_INFO(log, "{1}", 1);'),
    (MISSING, 'CORDWOOD_INFO(log, "{}");'), (MISSING, 'CORDWOOD_INFO(log, "{:{}}", 1);'),
    (UNUSED, 'CORDWOOD_INFO(log, "{}", 1, 2);'), (UNUSED, 'CORDWOOD_INFO(log, "order %d", 7);'),
    (UNUSED, 'CORDWOOD_INFO(log, "{0} {2}", 1, 2, 3);'),
    (TYPE, 'CORDWOOD_INFO(log, "{:d}", "seven");'),
    (TYPE, 'CORDWOOD_INFO(log, "{:f}", std::string("1.5"));'),
    (TYPE, 'CORDWOOD_INFO(log, "{:s}", 5);'), (TYPE, 'CORDWOOD_INFO(log, "{:x}", 1.5);'),
    (TYPE, 'CORDWOOD_INFO(log, "{:f}", 1);'), (TYPE, 'CORDWOOD_INFO(log, "{:d}", nullptr);'),
    (TYPE, 'CORDWOOD_INFO(log, "{:s}", \'c\');'), (TYPE, 'CORDWOOD_INFO(log, "{:c}", true);'),
    (TYPE, 'CORDWOOD_INFO(log, "{:d}", point{1, 2});'),
    (TYPE, 'CORDWOOD_INFO(log, "{:p}", "text");'), (TYPE, 'CORDWOOD_INFO(log, "{:d}", 5ms);'),
    (FLAG, 'CORDWOOD_INFO(log, "{:+}", "text");'), (FLAG, 'CORDWOOD_INFO(log, "{:.2}", 5);'),
    (FLAG, 'CORDWOOD_INFO(log, "{:05}", true);'), (FLAG, 'CORDWOOD_INFO(log, "{:#}", nullptr);'),
    (UNKNOWN, 'CORDWOOD_INFO(log, "{:y}", 1);'), (UNKNOWN, 'CORDWOOD_INFO(log, "{:5 d}", 1);'),
    (UNKNOWN, 'CORDWOOD_INFO(log, "{:.f}", 1.5);'),
    (UNKNOWN, 'CORDWOOD_INFO(log, "{:%H:%M}", std::chrono::system_clock::now());'),
    (UNKNOWN, 'CORDWOOD_INFO(log, "{:ld}", 1L);'),
    (UNKNOWN, 'CORDWOOD_INFO(log, "{::f}", std::vector<double>{1});'),
    (BRACE, 'CORDWOOD_INFO(log, "{", 1);'), (BRACE, 'CORDWOOD_INFO(log, "{:d", 1);'),
    (BRACE, 'CORDWOOD_INFO(log, "} {}", 1);'), (BRACE, 'CORDWOOD_INFO(log, "{0", 1);'),
    (BRACE, 'CORDWOOD_INFO(log, "{:{", 1, 2);'),
    (NAMED, 'CORDWOOD_INFO(log, "{price}", 1.5);'), (NAMED, 'CORDWOOD_INFO(log, "{ }", 1);'),
    (NAMED, 'CORDWOOD_INFO(log, "body: {\\"a\\": 1}");'),
    ("cordwood: the format mixes {} and {0}", 'CORDWOOD_INFO(log, "{0} {}", 1, 2);'),
    (WIDTH, 'CORDWOOD_INFO(log, "{:{}}", 1, "wide");'),
    (WIDTH, 'CORDWOOD_INFO(log, "{:.{}f}", 1.5, 2.0);'),
    (WIDTH, 'CORDWOOD_INFO(log, "{:{}}", 1, true);'),
    ("cordwood: the format contains a NUL", 'CORDWOOD_INFO(log, "a\\0b");'),
    (WIDE, 'CORDWOOD_INFO(log, "{}", L"wide");'), (WIDE, 'CORDWOOD_INFO(log, "{}", L\'w\');'),
    (WIDE, 'CORDWOOD_INFO(log, "{}", std::wstring(L"w"));'),
    (WIDE, 'CORDWOOD_INFO(log, "{}", u"sixteen");'),
    (POINTER, 'int n = 1; CORDWOOD_INFO(log, "{}", &n);'),
    (POINTER, 'const unsigned char *p = nullptr; CORDWOOD_INFO(log, "{}", p);'),
    (POINTER, 'CORDWOOD_INFO(log, "{}", &counted);'), (POINTER, 'CORDWOOD_INFO(log, "{}", &log);'),
    (NONE, 'CORDWOOD_INFO(log, "{}", silent{1});'),
    (NONE, 'CORDWOOD_INFO(log, "{}", std::vector<silent>());'),
    (NONE, 'CORDWOOD_INFO(log, "{}", std::optional<silent>());'),
    (NONE, 'CORDWOOD_INFO(log, "{}", std::map<int, silent>());'),
    (NONE, 'CORDWOOD_INFO(log, "{}", std::make_unique<int>(1));'),
    (NONE, 'std::atomic<int> n{1}; CORDWOOD_INFO(log, "{}", n);'),
    (NONE, 'CORDWOOD_INFO(log, "{}", std::filesystem::path("/x"));'),
    (NONE, 'CORDWOOD_INFO(log, "{}", [] { return 1; });'),
    (LITERAL, 'std::string t = "x"; CORDWOOD_INFO(log, t);'),
    (LITERAL, 'const char *t = "{}"; CORDWOOD_INFO(log, t, 1);'),
    (LITERAL, 'static constexpr char t[] = "{}"; CORDWOOD_INFO(log, t, 1);'),
    (LITERAL, 'CORDWOOD_INFO(log, log ? "a" : "b");'),
    (LITERAL, 'CORDWOOD_INFO(log, "ab" + 1);'), (LITERAL, 'CORDWOOD_INFO(log, L"wide");'),
    (LITERAL, 'CORDWOOD_INFO("order {}", 7);'),
    ("cordwood: a macro's first argument is a cordwood::logger", 'CORDWOOD_INFO(&log, "x");'),
    ("cordwood: a macro's first argument is a cordwood::logger", 'CORDWOOD_INFO("a", "b {}", 1);'),
    ("cordwood: a record takes at most 32 arguments",
     'CORDWOOD_INFO(log, "%s", %s);' % ("{}" * 33, ", ".join(["1"] * 33))),
    (MISSING, 'auto f = [&](auto n) { CORDWOOD_INFO(log, "{} {}", n); }; f(1);'),
]


STANDARDS = {"g++": sized(("c++17",), ("c++17",), ("c++17", "c++20")),
             "clang++": sized(("c++20",), ("c++20",), ("c++17", "c++20"))}


def turns_of(code):
    """A place's first record is a call. The header may append the later ones. A line that counts
    its evaluations runs once."""
    return 1 if "counted()" in code else 3


class MacroTest(ConsumerCase):
    """Each case with every compiler."""

    def each(self):
        """(compiler, standard, the command)"""
        (self.directory / "side.hpp").write_text(SIDE, encoding="utf-8")
        (self.directory / "head.hpp").write_text(HEAD, encoding="utf-8")
        for name in compilers(sized(["g++"], *[["g++", "clang++"]] * 2)):
            for standard in STANDARDS[name]:
                yield name, standard, [name, f"-std={standard}", *STRICT, "-I", ROOT / "include",
                                       "-I", self.directory]

    def right(self, words, lines, *options):
        """The texts of the records that a program with those lines writes."""
        body = "\n".join(f"    for (int turn_ = 0; turn_ < {turns_of(code)}; turn_++) {{ {code} }}"
                         for _, code, _ in lines)
        source, other = self.directory / "right.cpp", self.directory / "other.cpp"
        source.write_text(
            '#include "head.hpp"\nvoid in_other(const cordwood::logger &log);\n'
            "int main(int, char **argv) {\n"
            "    auto engine = cordwood::engine::open(argv[1]);\n    if (!engine) return 1;\n"
            f'    auto log = engine->logger("macros");\n{body}\n'
            "    return engine->close() ? 0 : 2;\n}\n", encoding="utf-8")
        other.write_text(OTHER, encoding="utf-8")
        program = self.directory / "right"
        run([*words, *options, source, other, "-o", program, "-L", LIBRARIES, "-lcordwood",
             f"-Wl,-rpath,{LIBRARIES}"])
        store = self.directory / f"store{len(list(self.directory.glob('store*')))}"
        run([program, store])
        return self.cat(store)

    def refused(self, words, code):
        """The compiler's output for that line. Empty if it compiles."""
        source = Path(tempfile.mkdtemp(dir=self.directory)) / "wrong.cpp"
        source.write_text("void f(const cordwood::logger &log);\n"
                          f"void f(const cordwood::logger &log) {{\n    {code}\n}}\n",
                          encoding="utf-8")
        ended = subprocess.run([str(word) for word in [*words, source]], text=True, check=False,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return ended.stdout if ended.returncode else ""

    def test_right(self):
        for name, standard, words in self.each():
            for options in sized([["-O2"]], *[[["-O0"], ["-O2"], ["-O2", *WITHOUT]]] * 2):
                lines = [line for line in RIGHT
                         if options[1:] != WITHOUT or "thrower" not in line[1]]
                with self.subTest(name, standard=standard, options=options):
                    found = self.right(words, lines, *options)
                    self.assertEqual([line["message"] for line in found],
                                     [text for _, code, texts in lines
                                      for text in texts * turns_of(code)])
                    places = [(line["file"].rpartition("/")[2], line["function"], line["level"])
                              for line in found]
                    self.assertIn(("right.cpp", "main", "INFO"), places)
                    self.assertIn(("head.hpp", "in_template", "INFO"), places)
                    self.assertIn(("head.hpp", "say", "INFO"), places)
                    self.assertIn(("right.cpp", "main", "FATAL"), places)

    def test_wrong(self):
        for name, standard, words in self.each():
            head = self.directory / "head.hpp"
            compiled = self.directory / ("head.hpp.gch" if name == "g++" else "head.pch")
            run([*words, "-x", "c++-header", head, "-o", compiled])
            use = ["-include", head] if name == "g++" else ["-include-pch", compiled]
            base = [*words, "-Wno-unused", *use, "-fsyntax-only"]
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                wrong = WRONG[::sized(5, 1, 1)]
                outputs = list(pool.map(partial(self.refused, base), [code for _, code in wrong]))
            for (said, code), output in zip(wrong, outputs):
                with self.subTest(name, standard=standard, code=code):
                    errors = [line for line in output.splitlines() if "error:" in line]
                    self.assertTrue(any(said in line for line in errors), output or "compiles")
                    self.assertIn(".cpp:3", output, "the place is not named")
            compiled.unlink()

    def test_checker_and_library_agree(self):
        """check_formats.cpp"""
        program = self.directory / "check_formats"
        run(["g++", "-std=c++17", *STRICT, "-O1", "-I", ROOT / "include",
             ROOT / "Tests/Consumers/check_formats.cpp", "-o", program, "-L", LIBRARIES,
             "-lcordwood", f"-Wl,-rpath,{LIBRARIES}"])
        for seed in range(1, sized(2, 5, 5)):
            with self.subTest(seed=seed):
                said = run([program, seed, 25000]).split()
                self.assertGreater(int(said[1].rstrip(",")), 2500, said)
                self.assertGreater(int(said[3].rstrip(",")), 2500, said)

    @full
    def test_places_belong_to_their_module(self):
        """A place in an inline function or a template is not shared between modules, and keeps
        nothing loaded."""
        for name, standard, words in self.each():
            with self.subTest(name, standard=standard):
                source, module = self.directory / "module.cpp", self.directory / "module.so"
                source.write_text('#include "head.hpp"\nvoid f(const cordwood::logger &log);\n'
                                  "void f(const cordwood::logger &log) { in_inline(log, 1); "
                                  "in_template(log, 1); member().say(log); }\n", encoding="utf-8")
                run([*words, "-fPIC", "-shared", source, "-o", module, "-L", LIBRARIES,
                     "-lcordwood"])
                lines = [line.split() for line in
                         run(["readelf", "-W", "--symbols", module]).splitlines()]
                places = [line for line in lines if len(line) == 8 and "write_at" in line[7]
                          and line[3] in ("OBJECT", "UNIQUE")]
                self.assertEqual(len(places), 3, lines)
                self.assertEqual({line[4] for line in places}, {"LOCAL"})
                self.assertFalse([line for line in lines if "UNIQUE" in line
                                  and "cordwood" in line[-1]])
