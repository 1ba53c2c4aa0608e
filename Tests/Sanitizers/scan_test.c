/* The scans for redaction at every width, under the address and undefined behaviour sanitizers:
 * texts that end where memory ends, against what each byte by itself would say. Prints the seed.
 * run.py builds it. */
#include "scan.c"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Where there are wider ones, the narrowest too. */
#if defined(__SSE2__)
#define LANE 1
#define NAME(scan) scan##_1
#define TARGET
#define BITS(lane) ((uint64_t)((lane)[0] != 0))
#include "scan_lanes.h"
#endif

typedef size_t (*next_bits)(const uint8_t *, size_t, size_t, uint64_t *);
typedef size_t (*next_ends)(const uint8_t *, size_t, size_t, const uint32_t *, ptrdiff_t *,
                            cwi_names *);
typedef _Bool (*counts)(const uint8_t *text, size_t at, size_t count);

static uint8_t byte_at(const uint8_t *text, size_t at, size_t count) {
    return at < count ? text[at] : 0;
}

static _Bool is_quote(const uint8_t *text, size_t at, size_t count) {
    (void)count;
    return text[at] == '"' || text[at] == '\\';
}

static _Bool is_control(const uint8_t *text, size_t at, size_t count) {
    (void)count;
    return text[at] < 0x20 || text[at] == 0x7F;
}

static _Bool is_mark(const uint8_t *text, size_t at, size_t count) {
    uint8_t next = byte_at(text, at + 1, count);
    switch (text[at]) {
    case '=':
    case '%': return 1;
    case 'y': return next == 'J';
    case '/': return next == '/';
    case 'b':
    case 'B': {
        uint8_t fourth = byte_at(text, at + 4, count);
        return memchr("aAeE", next, 4) && memchr("aAcCeEgG", fourth, 8);
    }
    default: return 0;
    }
}

static _Bool is_special(const uint8_t *text, size_t at, size_t count) {
    return is_quote(text, at, count) || is_control(text, at, count) || text[at] == ':' ||
           is_mark(text, at, count) || (text[at] == '-' && byte_at(text, at + 1, count) == '-');
}

static uint64_t expected(counts is, const uint8_t *text, size_t block, size_t count) {
    uint64_t bits = 0;
    for (size_t i = 0; i < BLOCK && block + i < count; i++)
        bits |= (uint64_t)is(text, block + i, count) << i;
    return bits;
}

static void check_bits(next_bits next, counts is, const uint8_t *text, size_t count) {
    size_t at = 0;
    while (at < count) {
        uint64_t bits = 0, wanted = 0;
        size_t found = next(text, at, count, &bits);
        size_t block = at;
        while (block < count && !(wanted = expected(is, text, block, count))) block += BLOCK;
        if (block >= count) {
            assert(found == count);
            return;
        }
        assert(found == block && bits == wanted);
        at = block + BLOCK;
    }
}

/* Names end in "key", "pwd" and "ken"; what does not end in letters may be one. */
static uint32_t endings[CWI_ENDINGS];

static void allow(const char *three) {
    endings[cwi_letter(three[2]) << 5 | cwi_letter(three[1])] |= 1u << cwi_letter(three[0]) | 1;
}

static _Bool is_end(const uint8_t *text, size_t at, size_t count) {
    uint8_t next = byte_at(text, at + 1, count);
    if (text[at] != '"' || (next != ':' && next > 0x20)) return 0;
    return at < 3 || cwi_may_end(endings, text[at - 3], text[at - 2], text[at - 1]);
}

static void check_names(next_ends next, const uint8_t *text, size_t count, size_t at) {
    ptrdiff_t before = -1, last = -1;
    cwi_names found;
    size_t block = next(text, at, count, endings, &before, &found);
    for (size_t i = at; i < count; i++) {
        size_t mine = i & ~(size_t)(BLOCK - 1);
        if (is_end(text, i, count) || text[i] == '\\') {
            assert(block == mine && before == last);
            uint64_t counting = mine < at ? ~0ull << (at - mine) : ~0ull;
            for (size_t k = 0; k < BLOCK && mine + k < count; k++) {
                _Bool is_in = counting >> k & 1;
                assert((found.quotes >> k & 1) == (is_in && text[mine + k] == '"'));
                assert((found.slashes >> k & 1) == (is_in && text[mine + k] == '\\'));
                assert((found.ends >> k & 1) == (is_in && is_end(text, mine + k, count)));
            }
            return;
        }
        /* Those of the block that has something stand in `found`. */
        size_t next_block = mine + BLOCK;
        if (i + 1 == next_block || i + 1 == count)
            for (size_t k = mine > at ? mine : at; k <= i; k++)
                if (text[k] == '"') last = (ptrdiff_t)k;
    }
    assert(block == count && before == last);
}

static uint64_t state;

static uint64_t draw(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

static int check_all(const uint8_t *text, size_t count) {
    static const struct {
        next_bits next;
        counts is;
    } scans[] = {
        {next_quotes_1, is_quote},       {next_marks_1, is_mark},
        {next_controls_1, is_control},   {next_specials_1, is_special},
        {cwi_next_quotes, is_quote},     {cwi_next_marks, is_mark},
        {cwi_next_controls, is_control},
#if defined(__SSE2__)
        {next_quotes_16, is_quote},      {next_marks_16, is_mark},
        {next_controls_16, is_control},  {next_specials_16, is_special},
#endif
    };
    for (size_t i = 0; i < sizeof scans / sizeof *scans; i++)
        check_bits(scans[i].next, scans[i].is, text, count);
    size_t at = count ? draw() % count : 0;
    check_names(next_names_1, text, count, at);
    check_names(cwi_next_names, text, count, at);
#if defined(__SSE2__)
    check_names(next_names_16, text, count, at);
#endif
    _Bool is_plain = 1;
    for (size_t i = 0; i < count; i++) is_plain = is_plain && !is_special(text, i, count);
    assert(cwi_is_plain(text, count) == is_plain);
    return 1;
}

int main(int argc, char **argv) {
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)getpid() * 2654435761u;
    state = seed | 1;
    printf("seed %llu\n", (unsigned long long)seed);
    for (uint32_t i = 0; i < CWI_ENDINGS; i++)
        if (i >> 5 < 1 || i >> 5 > 26 || (i & 31) < 1 || (i & 31) > 26) endings[i] = ~0u;
    allow("key"), allow("pwd"), allow("ken");
    char *memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(memory != MAP_FAILED && mprotect(memory + 4096, 4096, PROT_NONE) == 0);
    static const char *pieces[] = {"\"", "\\", ":", "=", "%", "yJ", "y", "//", "/", "bearer",
                                   "BASIC", "--", "-", "\"id\":", "key\"", "pwd\" :", "token\"",
                                   "\x7F", "\t", "\xC3"};
    int checks = 0;
    for (int round = 0; round < 20000; round++) {
        size_t count = draw() % 400;
        uint8_t *text = (uint8_t *)memory + 4096 - count;
        for (size_t i = 0; i < count; i++) text[i] = (uint8_t)('c' + draw() % 20);
        /* From texts that have none to texts of nothing else. */
        size_t many = draw() % 4 == 0 ? 0 : draw() % (count / 4 + 1);
        for (size_t k = 0; k < many; k++) {
            const char *piece = pieces[draw() % (sizeof pieces / sizeof *pieces)];
            size_t length = strlen(piece), at = draw() % count;
            memcpy(text + at, piece, length <= count - at ? length : count - at);
        }
        checks += check_all(text, count);
    }
    printf("%d checks\n", checks);
    return 0;
}
