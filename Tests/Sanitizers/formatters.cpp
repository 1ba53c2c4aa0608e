// Formatters of C++ types write anything into a text_buffer, in any pieces. It keeps the first 247
// bytes and touches no others. Tested around the end with every pair of pieces, then by seed.
// Run under the address and undefined behaviour sanitizers.
#include <cordwood/cordwood.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

static const size_t kept = 247;

struct both {
    cordwood::text_buffer buffer;
    std::string all;

    void append(const std::string &text) {
        buffer.append(text);
        all += text;
        check();
    }
    void print(const std::string &text) {
        buffer.print("%s", text.c_str());
        all += text;
        check();
    }
    void check() const {
        std::string wanted = all.substr(0, kept);
        if (buffer.view() == wanted) return;
        std::fprintf(stderr, "after %zu bytes it has %zu, not %zu\n", all.size(),
                     buffer.view().size(), wanted.size());
        std::exit(1);
    }
};

int main(int count, char **words) {
    const size_t sizes[] = {0, 1, 2, 20, 245, 246, 247, 248, 249, 250, 300, 200000};
    for (size_t first : sizes) {
        for (size_t second : sizes) {
            for (int form = 0; form < 4; form++) {
                both one;
                const std::string a(first, 'a'), b(second, 'b');
                form & 1 ? one.append(a) : one.print(a);
                form & 2 ? one.append(b) : one.print(b);
                one.append("tail");
                one.print("tail");
            }
        }
    }
    uint64_t seed = count > 1 ? std::strtoull(words[1], nullptr, 0) : 1, state = seed;
    auto below = [&](uint64_t bound) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return (state >> 33) % bound;
    };
    for (int round = 0; round < 100000; round++) {
        both one;
        for (uint64_t pieces = below(8); pieces > 0; pieces--) {
            const std::string text(below(below(4) == 0 ? 400 : 60), char('a' + below(26)));
            below(2) == 0 ? one.append(text) : one.print(text);
        }
    }
    std::printf("formatters: 576 pairs, 100000 by seed %llu\n",
                static_cast<unsigned long long>(seed));
    return 0;
}
