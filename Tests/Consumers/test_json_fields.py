"""Containers as the value of a C++ field: kept as JSON, by gcc and clang, with and without
exceptions, without avoidable allocations, leaks or use of freed memory. Also numbers that the
header prints, in a locale whose decimal point is a comma.

    Tests/TestSupport/unittests.py Tests/Consumers -k JSON
"""
import json
import subprocess

from cases import full, sized
from test_consumers import LIBRARIES, ROOT, STRICT, WITHOUT, ConsumerCase, compilers, run

# (the value in C++, what a reader shows)
VALUES = [
    ("std::vector<std::string>{\"a\", \"b\"}", ["a", "b"]),
    ("std::vector<int>()", []),
    ("std::vector<bool>{true, false}", [True, False]),
    ("std::vector<uint8_t>{0, 255}", [0, 255]),
    ("std::vector<char>{'a', '\"'}", ["a", "\""]),
    ("std::array<double, 2>{{0.1, -1e300}}", [0.1, -1e300]),
    ("std::set<int>{2, 1}", [1, 2]),
    ("whole", [1, 2, 3]),
    ("std::map<std::string, int>{{\"x\", 1}, {\"\", 2}}", {"": 2, "x": 1}),
    ("std::unordered_map<std::string, double>{{\"z\", 2.5}}", {"z": 2.5}),
    ("std::map<int, std::map<shade, bool>>{{-1, {{shade::light, true}}}}", {"-1": {"7": True}}),
    ("std::map<char, int>{{'\"', 1}}", {"\"": 1}),
    ("std::multimap<int, int>{{1, 2}, {1, 3}}", [[1, 2], [1, 3]]),
    ("std::vector<std::map<std::string, std::vector<int>>>{{{\"a\", {1}}}, {}}",
     [{"a": [1]}, {}]),
    ("std::optional<int>()", None),
    ("std::optional<std::string>()", None),
    ("std::optional<int>(7)", 7),
    ("std::optional<bool>(true)", True),
    ("std::optional<std::string>(owned)", "owned"),
    ("std::optional<std::vector<int>>(std::vector<int>{1})", [1]),
    ("std::vector<std::optional<int>>{1, std::nullopt}", [1, None]),
    ("std::make_pair(1, 2.5f)", [1, 2.5]),
    ("std::make_tuple(true, 'c', shade::light, nullptr, static_cast<const char *>(nullptr), 5ms, "
     "shop::order{3}, std::string_view(\"v\"))",
     [True, "c", 7, None, None, "5ms", "#3", "v"]),
    ("std::vector<double>{NAN, INFINITY, -INFINITY}", ["NaN", "Infinity", "-Infinity"]),
    ("std::vector<long double>{0.5L}", [0.5]),
    ("std::vector<unsigned long long>{UINT64_MAX}", [2**64 - 1]),
    ("std::vector<std::string>{std::string(\"\\0\\x1f\\x7f\\\"\\\\/\", 6)}",
     ["\0\x1f\x7f\"\\/"]),
    # Bytes that are not UTF-8, each shown as U+FFFD.
    ("std::vector<std::string>{\"\\xc3\\xa4\\xf0\\x9f\\xaa\\xb5 \\xff\", \"\\xed\\xa0\\x80\", "
     "\"\\xc0\\xaf\", \"\\xf4\\x90\\x80\\x80\", \"\\xe4\\xb8\"}",
     ["\u00e4\U0001fab5 \ufffd", "\ufffd" * 3, "\ufffd" * 2, "\ufffd" * 4, "\ufffd" * 2]),
    ("std::vector<int>(40000, 77777)", [77777] * 40000),
    # Beyond the limit of JSON: a text that ends with a mark that it is cut.
    ("std::vector<int>(50000, 77777)", "[" + "77777," * 43690 + "777\u2026"),
    ("std::vector<void *>{nullptr}", ["0x0"]),
]
SOURCE = r"""
#ifdef WITHOUT_TO_CHARS
#include <charconv>
#undef __cpp_lib_to_chars
#endif
#include <cordwood/cordwood.hpp>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>
using namespace std::chrono_literals;
enum class shade : unsigned char { dark, light = 7 };
namespace shop {
struct order { int id; };
inline void cordwood_format(const order &o, cordwood::text_buffer &out) { out.print("#%d", o.id); }
} // namespace shop
int main(int, char **argv) {
    auto engine = cordwood::engine::open(argv[1]);
    if (!engine) return 1;
    auto log = engine->logger("json");
    const int whole[] = {1, 2, 3};
    const std::string owned = "owned";
VALUES
    return engine->close() ? 0 : 2;
}
"""
COUNTING = r"""
#include <cordwood/cordwood.hpp>
#include <map>
#include <vector>
extern "C" void *__libc_malloc(size_t);
extern "C" void *__libc_realloc(void *, size_t);
static thread_local int calls = 0;
extern "C" void *malloc(size_t size) { calls++; return __libc_malloc(size); }
extern "C" void *realloc(void *old, size_t size) { calls++; return __libc_realloc(old, size); }
int main(int, char **argv) {
    auto engine = cordwood::engine::open(argv[1]);
    if (!engine) return 1;
    auto log = engine->logger("json");
    const std::vector<std::string> tags = {"a", "b"};
    const std::map<std::string, std::vector<int>> parts = {{"x", {1, 2, 3}}};
    const std::vector<int> many(1000, 7);
    log.info("first", {{"tags", tags}});
    calls = 0;
    log.info("small", {{"tags", tags}, {"parts", parts}, {"none", std::optional<int>()}});
    const int small = calls;
    log.info("large", {{"many", many}});
    std::printf("%d %d\n", small, calls - small);
    return engine->close() ? 0 : 2;
}
"""
LOCALE = r"""
#ifdef WITHOUT_TO_CHARS
#include <charconv>
#undef __cpp_lib_to_chars
#endif
#include <cordwood/cordwood.hpp>
#include <clocale>
#include <cstdio>
#include <vector>
int main(int, char **argv) {
    if (std::setlocale(LC_ALL, argv[2]) == nullptr) return 3;
    char point[16];
    std::snprintf(point, sizeof point, "%.1f", 1.5);
    std::puts(point);
    auto engine = cordwood::engine::open(argv[1]);
    if (!engine) return 1;
    auto log = engine->logger("locale");
    using seconds = std::chrono::duration<double>;
    using thirds = std::chrono::duration<float, std::ratio<1, 3>>;
    CORDWOOD_INFO(log, "{} {} {}", seconds(1.5), thirds(0.25f), seconds(1e-7));
    CORDWOOD_INFO(log, "{}", seconds(123456.7));
    CORDWOOD_INFO(log, "{}", std::vector<double>{0.5, 1e100});
    log.info("field", {{"doubles", std::vector<double>{0.5, 1e-9}}});
    return engine->close() ? 0 : 2;
}
"""
WORDS = ["1.5s 0.25[1/3]s 1e-07s", "123457s", "[0.5, 1e+100]"]


class JSONFieldTest(ConsumerCase):
    """Each case with every compiler."""

    def each(self, standards=("c++17",)):
        """(its name, the compiler's command)"""
        for name in compilers(sized(["g++"], *[["g++", "clang++"]] * 2)):
            for standard in standards:
                yield f"{name} {standard}", [name, f"-std={standard}", *STRICT]

    def build(self, words, text, name="fields"):
        source, program = self.directory / f"{name}.cpp", self.directory / name
        source.write_text(text, encoding="utf-8")
        run([*words, "-I", ROOT / "include", source, "-o", program, "-L", LIBRARIES,
             "-lcordwood", f"-Wl,-rpath,{LIBRARIES}"])
        return program

    def store(self):
        return self.directory / f"store{len(list(self.directory.glob('store*')))}"

    def test_values(self):
        """What is shown; with the address sanitizer, that a text lives while it is used."""
        lines = "\n".join(f'    log.info("{number}", {{{{"it", {value}}}, {{"next", {number}}}}});'
                          for number, (value, _) in enumerate(VALUES))
        text = SOURCE.replace("VALUES", lines)
        # The library keeps objects that loggers of a closed engine point to.
        (self.directory / "leaks").write_text("leak:libcordwood.so\n", encoding="utf-8")
        environment = {"LSAN_OPTIONS": f"suppressions={self.directory}/leaks:print_suppressions=0"}
        ways = [(called, words, options) for called, words in self.each(("c++17", "c++20"))
                for options in (["-O1", "-g", "-fsanitize=address"],
                                [*WITHOUT, "-DWITHOUT_TO_CHARS"])
                if "17" in called or "-O1" in options]
        for called, words, options in sized(ways[:1], ways, ways):
            with self.subTest(called, options=options):
                program, store = self.build([*words, *options], text), self.store()
                run([program, store], environment=environment)
                found = [line["fields"] for line in self.cat(store) if line["logger"] == "json"]
                self.assertEqual([one["next"] for one in found], list(range(len(VALUES))))
                for one, (value, wanted) in zip(found, VALUES):
                    self.assertEqual(one["it"], wanted, value[:100])
                    self.assertEqual(json.dumps(one["it"]), json.dumps(wanted), value[:100])

    def test_memory(self):
        """A small value needs no allocation, and a large one only its own."""
        for called, words in self.each():
            with self.subTest(called):
                program = self.build([*words, "-O1"], COUNTING, "counting")
                small, large = map(int, run([program, self.store()]).split())
                self.assertEqual(small, 0)
                self.assertLessEqual(1, large)
                self.assertLess(large, 5)

    @full
    def test_mistakes(self):
        """A field in a variable, whose text would dangle (clang), and values that have no JSON."""
        for called, words in self.each():
            for code, said, by in (
                    ("cordwood::field one{\"tags\", std::vector<int>{1}}; (void)one;",
                     "temporary", "clang++"),
                    ("struct other {}; log.info(\"x\", {{\"it\", std::vector<other>()}});",
                     "a field is an integer", "")):
                if by not in called:
                    continue
                with self.subTest(called, code=code):
                    source = self.directory / "wrong.cpp"
                    source.write_text("#include <cordwood/cordwood.hpp>\n#include <vector>\n"
                                      "void f(const cordwood::logger &log);\n"
                                      "void f(const cordwood::logger &log) { (void)log; "
                                      f"{code} }}\n", encoding="utf-8")
                    done = subprocess.run([*words, "-I", str(ROOT / "include"), "-fsyntax-only",
                                           source], capture_output=True, text=True, check=False)
                    self.assertNotEqual(done.returncode, 0, "it compiles")
                    self.assertIn(said, done.stderr)

    @full
    def test_locale(self):
        """Durations, lists and JSON use a point, whatever the host's locale uses."""
        folder = self.directory / "locales"
        folder.mkdir()
        made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", str(folder / "de")],
                              capture_output=True, check=False)
        if made.returncode != 0:
            self.skipTest("localedef cannot make de_DE (Debian: locales)")
        environment = {"LOCPATH": str(folder), "LC_ALL": ""}
        for called, words in self.each():
            for options in ([], ["-DWITHOUT_TO_CHARS"]):
                with self.subTest(called, options=options):
                    program, store = self.build([*words, *options], LOCALE, "locale"), self.store()
                    self.assertEqual(run([program, store, "de"], environment=environment), "1,5\n")
                    found = [line for line in self.cat(store) if line["logger"] == "locale"]
                    self.assertEqual([line["message"] for line in found], [*WORDS, "field"])
                    self.assertEqual(found[-1]["fields"], {"doubles": [0.5, 1e-9]})
