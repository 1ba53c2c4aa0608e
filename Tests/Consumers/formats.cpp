// Formats with braces, and what std::format makes of them. Prints the expected text of each record,
// one per line. test_formats.py compares them with the output of the command line.
#include <cordwood/cordwood.hpp>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

struct point {
    int x, y;
};
template <> struct cordwood::formatter<point> {
    static void format(const point &p, cordwood::text_buffer &out) {
        out.print("(%d,%d)", p.x, p.y);
    }
};


struct flood {
    size_t appended, printed;
};
template <> struct cordwood::formatter<flood> {
    static void format(const flood &f, cordwood::text_buffer &out) {
        out.append(std::string(f.appended, 'a'));
        out.print("%s", std::string(f.printed, 'p').c_str());
        out.append("e");
    }
};

enum class shade : unsigned char { dark, light = 7 };
enum plain { none = -1 };

// A place's first record is a call. The header may append the later ones.
#define SAYS(expected, ...)                                                                        \
    for (int turn = 0; turn < 3; turn++) {                                                         \
        std::puts(expected);                                                                       \
        if (!log.info(__VA_ARGS__)) return 3;                                                      \
    }

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    auto engine = cordwood::engine::open(cordwood::options(argv[1]));
    if (!engine) return 1;
    auto log = engine->logger("formats");
    using namespace std::chrono_literals;
    std::string text = "text";
    const char *missing = nullptr;
    const float small = 0.1f;
    const long double large = 2.5L;

    SAYS("order 7 at 2.50 from text", "order {} at {:.2f} from {}", 7, 2.5, text);
    SAYS("b a b {} {x}", "{1} {0} {1} {{}} {{x}}", 'a', 'b');
    SAYS("    text|view    |  ab  |***42****|", "{:>8}|{:<8}|{:^6}|{:*^9}|", text,
         std::string_view("view"), "ab", 42);
    SAYS("0|-1|4294967295|-9223372036854775808|18446744073709551615", "{}|{}|{}|{}|{}",
         static_cast<unsigned char>(0), -1, 4294967295u, std::numeric_limits<long>::min(),
         std::numeric_limits<unsigned long>::max());
    SAYS("true|false|1|yes|  true|A|65|A", "{}|{}|{:d}|{}|{:>6}|{}|{:d}|{:c}", true, false, true,
         "yes", true, 'A', 'A', 65);
    SAYS("ff|0xff|0XFF|101|0b101|0b0101|17|017|0",
         "{:x}|{:#x}|{:#X}|{:b}|{:#b}|{:#06b}|{:o}|{:#o}|{:#o}", 255, 255, 255, 5, 5, 5, 15, 15, 0);
    SAYS("+7| 7|-7|00042|-0042|   42|42   ", "{:+}|{: }|{:-}|{:05}|{:05}|{:5}|{:<5}", 7, 7, -7, 42,
         -42, 42, 42);
    SAYS("0.1|1.5|1|-0|1e+05|123456|1e+100|5e-324", "{}|{}|{}|{}|{}|{}|{}|{}", 0.1, 1.5, 1.0, -0.0,
         1e5, 123456.0, 1e100, 5e-324);
    SAYS("0.3333333333333333|1e-05|1e-04|0.001|1.7976931348623157e+308|0.1", "{}|{}|{}|{}|{}|{}",
         1.0 / 3, 0.00001, 0.0001, 0.001, std::numeric_limits<double>::max(), small);
    SAYS("3.14|3.142e+00|3.14|0x1.8p+1|1.8P+1|2.500000", "{:.2f}|{:.3e}|{:.3g}|0x{:a}|{:A}|{:f}",
         3.14159, 3.14159, 3.14159, 3.0, 3.0, large);
    SAYS("inf|-inf|nan|   inf|+inf", "{}|{}|{}|{:06}|{:+}", INFINITY, -INFINITY, NAN, INFINITY,
         INFINITY);
    SAYS("    2.5|2.5    |+2.500|0002.5", "{:7}|{:<7}|{:+.3f}|{:06}", 2.5, 2.5, 2.5, 2.5);
    SAYS("     5|3.14|tex|te  |", "{:{}}|{:.{}f}|{:.3}|{:4.2}|", 5, 6, 3.14159, 2, text, text);
    SAYS("7|-1|0x0|(null)|", "{}|{}|{}|{}|{}", shade::light, none, nullptr, missing, std::string());
    SAYS("5ms|3s|2min|7us|0.5s|(1,2)|     (1,2)", "{}|{}|{}|{}|{}|{}|{:>10}", 5ms, 3s, 2min, 7us,
         std::chrono::duration<double>(0.5), point{1, 2}, point{1, 2});
    for (size_t first : {246u, 247u, 248u, 300u}) {
        for (size_t second : {0u, 20u, 200000u}) {
            std::string all = std::string(first, 'a') + std::string(second, 'p') + "e";
            SAYS(all.substr(0, 247).c_str(), "{}", flood{first, second});
        }
    }
    SAYS("1970-01-01T00:00:01.500000000Z", "{}",
         std::chrono::system_clock::time_point(std::chrono::milliseconds(1500)));
    SAYS("failed 3: why", "failed {}: {}", 3, std::runtime_error("why"));
    SAYS("\xC3\xA4   |\xE6\xBC\xA2  |--x--|\xC3\xA4x\xC3\xA4",
         "{:<4}|{:<4}|{:-^5}|{:\xC3\xA4^3}", "\xC3\xA4", "\xE6\xBC\xA2", "x", "x");
    for (int i = 0; i < 3; i++) {
        std::printf("loop %d of 3\n", i);
        if (!log.warn("loop {} of {}", i, 3)) return 4;
    }
#if !defined(__cpp_consteval)
    // Not a literal: its address does not determine its content.
    static char kept_changing[32];
    for (int i = 0; i < 4; i++) {
        char changing[32];
        std::snprintf(changing, sizeof changing, "changed %d: {}", i / 2);
        std::memcpy(kept_changing, changing, sizeof changing);
        std::printf("changed %d: 7\nchanged %d: 8\n", i / 2, i / 2);
        if (!log.info(changing, 7) || !log.info(kept_changing, 8)) return 9;
    }
#endif
    for (int i = 0; i < 3; i++) { // a text without arguments is not a format
        const std::string said = "{} is text " + std::to_string(i);
        std::puts(said.c_str());
        if (!log.info(said)) return 9;
    }
    std::puts("by CW_INFO: 5 text");
    CW_INFO(log.handle(), "by CW_INFO: %d %s", 5, text.c_str());
    if (log.debug("disabled {}", 1).code() != CW_DISABLED) return 5;
    for (int i = 0; i < 2; i++) { // kept with its arguments, and reported once
        const cw_status said = i == 0 ? CW_E_ARGUMENT : CW_OK;
        auto is_told = [&](cordwood::status status) {
            return status.code() == said &&
                   (i > 0 || cordwood::last_error().find("format") != std::string::npos);
        };
#if !defined(__cpp_consteval)
        std::printf("too {} many {} (%d)\n", i);
        if (!is_told(log.info("too {} many {}", i))) return 7;
        std::printf("no {format (%d, x)\n", i);
        if (!is_told(log.info("no {format", i, 'x'))) return 7;
#endif
        std::puts("{:d} (str)\n{{}} {:.2f} (3, str)\n{:s} (1.5)\n{:{}} (1, wide)");
        if (!is_told(log.info("{:d}", "str"))) return 8;
        if (!is_told(log.info("{{}} {:.2f}", 3, text = "str"))) return 8;
        if (!is_told(log.info("{:s}", 1.5))) return 8;
        if (!is_told(log.info("{:{}}", 1, "wide"))) return 8;
        std::puts("{:x} (str)");
        if (!is_told(log.info("{:x}", text))) return 8;
    }
    return engine->close() ? 0 : 6;
}
