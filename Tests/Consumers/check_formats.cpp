// Generated formats and lists of argument classes, by seed. What the macros' checker
// (cordwood_check.hpp) accepts at compile time, the library must keep with its arguments. What the
// library refuses, the checker must refuse, too. Only for arguments without a placeholder, for
// signs and precisions that std::format does not take, and for {:c} of a bool may it refuse more.
//     check_formats SEED COUNT     exit 0: they agree
#include <cordwood/cordwood.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <string>

namespace {

std::mt19937 dice; // NOLINT

unsigned below(unsigned limit) { return static_cast<unsigned>(dice() % limit); }

const char *one_of(std::initializer_list<const char *> words) {
    return words.begin()[below(static_cast<unsigned>(words.size()))];
}

std::string index() { return below(3) == 0 ? std::to_string(below(4)) : std::string(); }

std::string placeholder() {
    std::string text = "{" + index();
    if (below(3) != 0) {
        text += ':';
        if (below(3) == 0) {
            text += one_of({"", "*", "\xC3\xA4", "x", "{", "}"});
            text += one_of({"<", ">", "^"});
        }
        text += below(5) == 0 ? one_of({"+", "-", " "}) : "";
        text += below(6) == 0 ? "#" : "";
        text += below(6) == 0 ? "0" : "";
        text += below(4) == 0 ? one_of({"1", "20", "{}", "{0}", "{1}", "{", "{x}"}) : "";
        text += below(5) == 0 ? one_of({".1", ".{}", ".{1}", ".", ".0"}) : "";
        text += below(9) == 0 ? "L" : "";
        text += below(2) == 0 ? one_of({"d", "x", "X", "b", "B", "o", "c", "s", "?", "p", "P", "a",
                                        "e", "f", "g", "G", "A", "E", "F", "y", "ld", "%", "n"})
                              : "";
    }
    return text + "}";
}

std::string format() {
    std::string text;
    for (unsigned i = below(4); i > 0; i--) {
        text += one_of({"", "a", "{{", "}}", "order "});
        text += placeholder();
    }
    if (!text.empty() && below(4) == 0) { // one byte more, less or different
        const size_t at = below(static_cast<unsigned>(text.size()));
        const std::string other = one_of({"{", "}", ":", ".", "", "1", "x"});
        text.replace(at, below(2), other);
    }
    return text;
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    auto engine = cordwood::engine::open(":memory:");
    if (!engine) return 1;
    cw_logger *log = engine->logger("check").handle();
    dice.seed(static_cast<unsigned>(std::atoi(argv[1])));
    std::deque<std::string> texts; // the sites point into them
    std::deque<uint8_t[8]> lists;
    std::deque<cw_site> sites;
    int agreed[2] = {0, 0}, wrong = 0;
    for (int n = std::atoi(argv[2]); n > 0; n--) {
        const std::string &text = texts.emplace_back(format());
        int count = 0; // about as many as there are placeholders
        for (char c : text) count += c == '{' ? 1 : 0;
        count = below(4) == 0 ? static_cast<int>(below(4)) : count > 4 ? 4 : count;
        uint8_t *classes = lists.emplace_back();
        cw_arg values[5];
        std::memset(values, 0, sizeof values);
        for (int i = 0; i < count; i++) {
            classes[i] = static_cast<uint8_t>(CW_ARG_INT + below(CW_ARG_TEXT));
            if (classes[i] == CW_ARG_TEXT) values[i].s = {"t", 1};
        }
        cw_site &site = sites.emplace_back(cw_site{nullptr, text.c_str(), "f", "f", classes, 1, 0,
                                                   0, CW_STYLE_BRACES, 0});
        const auto found =
            cordwood::detail::format_checker(text.data(), text.size(), classes, count).check();
        using cordwood::detail::mistake;
        const cw_status status = cw_site_write(log, CW_LEVEL_INFO, &site, values);
        const bool accepts = found.what == mistake::none, keeps = status == CW_OK;
        const bool is_stricter =
            found.what == mistake::unused || found.what == mistake::flag ||
            (found.what == mistake::type && classes[found.argument] == CW_ARG_BOOL);
        if ((accepts && !keeps) || (!accepts && keeps && !is_stricter)) {
            std::printf("\"%s\" of", text.c_str());
            for (int i = 0; i < count; i++) std::printf(" %d", classes[i]);
            std::printf(": the checker %d, the library %s\n", static_cast<int>(found.what),
                        cw_status_name(status));
            wrong++;
        } else {
            agreed[accepts ? 1 : 0]++;
        }
    }
    std::printf("accepted %d, refused %d, wrong %d\n", agreed[1], agreed[0], wrong);
    return wrong == 0 && engine->close() ? 0 : 1;
}
