/* The scans for redaction at every width, under the address and undefined behaviour sanitizers:
 * texts that end where memory ends, against a bytewise check. Prints the seed. run.py builds it. */
#include "scan.c"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* If there are wider ones, tests the narrowest too. */
#if defined(__SSE2__)
#define LANE 1
#define NAME(scan) scan##_1
#define TARGET
#define BITS(lane) ((uint64_t)((lane)[0] != 0))
#include "scan_lanes.h"
#endif

typedef size_t (*next_bits)(const uint8_t *, size_t, size_t, uint64_t *);
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

/* The bytes allowed at the four places of a group's words, by halves. */
static const char *const places[4][8] = {
    {"gn", "/hioy", "0gp", "BCbcdh", "AENrsu", "BGbgk", "ACSs", "AHNPpsx"},
    {"ehlpst", "_abfnoprvw", ".achls", "0ASaev", " BCKRSTbk", "ERWeghlr", "GTk", "IMRabhloy"},
    {"kmnr", "2_bo", "cdfpst", "1PSps", "BCIKRS_", "1A_aeiouy", "-.T", "AJKpxz"},
    {"_sty", "-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz", "_abfopt",
     "./IXi", "ABEIKlpt", "-3R_abmors",
     "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz", "-KSU_abceioprs"}};

static _Bool has_halves(const char *of, uint8_t byte) {
    _Bool low = 0, high = 0;
    for (; *of; of++) {
        low = low || ((uint8_t)*of & 15) == (byte & 15);
        high = high || (uint8_t)*of >> 4 == byte >> 4;
    }
    return low && high;
}

static _Bool is_mark(const uint8_t *text, size_t at, size_t count) {
    uint8_t next = byte_at(text, at + 1, count);
    if (text[at] == '=' || text[at] == '%' || (text[at] == 'y' && next == 'J') ||
        (text[at] == '/' && next == '/'))
        return 1;
    for (int group = 0; group < 8; group++) {
        int place = 0;
        while (place < 4 &&
               has_halves(places[place][group], byte_at(text, at + (size_t)place, count)))
            place++;
        if (place == 4) return 1;
    }
    return 0;
}

static _Bool is_special(const uint8_t *text, size_t at, size_t count) {
    uint8_t next = byte_at(text, at + 1, count);
    return is_quote(text, at, count) || is_control(text, at, count) ||
           is_mark(text, at, count) || (text[at] == '-' && next == '-') ||
           (text[at] == ':' && (next == ' ' || next == '\''));
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

static uint64_t state;

static uint64_t draw(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

/* A lowercase word, and a text that differs from it in case, or in more. */
static void check_has(const uint8_t *text, size_t count) {
    uint8_t word[64], other[64];
    size_t length = draw() % 40;
    if (length > count) length = count;
    _Bool has = 1;
    for (size_t i = 0; i < length; i++) {
        word[i] = text[i] >= 'A' && text[i] <= 'Z' ? text[i] | 0x20 : text[i];
        other[i] = draw() % 3 ? word[i] : text[i];
        if (word[i] >= 'a' && word[i] <= 'z' && draw() % 3 == 0) other[i] = word[i] ^ 0x20;
        if (draw() % 100 == 0) other[i] ^= (uint8_t)(1u << draw() % 8);
        uint8_t lower = other[i] >= 'A' && other[i] <= 'Z' ? other[i] | 0x20 : other[i];
        has = has && lower == word[i];
    }
    assert(cwi_has(other, word, length) == has);
}

/* Whatever the text: a token lies in it, and one that needs more of it only counts where it may go
 * on. */
static void check_tokens(const uint8_t *text, size_t count) {
    for (size_t at = 0; at <= count; at++) {
        size_t from = 0, end = cwi_token_end(text, at, count, SIZE_MAX, &from);
        size_t open_from = 0, open = cwi_token_end(text, at, count, 0, &open_from);
        size_t some_from = 0, some = cwi_token_end(text, at, count, 4, &some_from);
        assert(end == 0 || (from <= at + 18 && from < end && end <= count && open == end));
        assert(open == 0 || (open_from <= open && (open == end || open == count)));
        assert(some == 0 ? end == 0 : (some == open && some_from + 4 <= some));
    }
}

static int check_all(const uint8_t *text, size_t count) {
    static const struct {
        next_bits next;
        counts is;
    } scans[] = {
        {next_marks_1, is_mark}, {cwi_next_marks, is_mark},
#if defined(__SSE2__)
        {next_marks_16, is_mark},
#endif
    };
    for (size_t i = 0; i < sizeof scans / sizeof *scans; i++)
        check_bits(scans[i].next, scans[i].is, text, count);
    _Bool is_plain = 1;
    for (size_t i = 0; i < count; i++) is_plain = is_plain && !is_special(text, i, count);
    assert(cwi_is_plain(text, count) == is_plain && is_plain_1(text, count) == is_plain);
#if defined(__SSE2__)
    assert(is_plain_16(text, count) == is_plain);
#endif
    _Bool is_ascii = 1;
    for (size_t i = 0; i < count; i++) is_ascii = is_ascii && text[i] < 0x80;
    assert(cwi_is_ascii(text, count) == is_ascii && is_ascii_1(text, count) == is_ascii);
#if defined(__SSE2__)
    assert(is_ascii_16(text, count) == is_ascii);
#endif
    _Bool has_controls = 0;
    for (size_t i = 0; i < count; i++) has_controls = has_controls || is_control(text, i, count);
    assert(has_controls_1(text, count) == has_controls);
#if defined(__SSE2__)
    assert(has_controls_16(text, count) == has_controls);
#endif
    check_has(text, count);
    check_tokens(text, count);
    _Bool keeps_tabs = count & 1;
    uint8_t *blanked = malloc(count + 1);
    memcpy(blanked, text, count);
    cwi_blank_controls(blanked, count, keeps_tabs);
    for (size_t i = 0; i < count; i++) {
        _Bool is_blanked = is_control(text, i, count) && !(keeps_tabs && text[i] == '\t');
        assert(blanked[i] == (is_blanked ? ' ' : text[i]));
    }
    free(blanked);
    return 1;
}

/* Words of a long text of few or many letters, and words that it may lack. */
static int check_find(const uint8_t *text, size_t count, unsigned letters) {
    uint8_t word[80];
    size_t length = 1 + draw() % sizeof word, from = draw() % count;
    if (draw() % 2) length = 1 + length % 12;
    if (length > count - from) length = count - from;
    memcpy(word, text + from, length);
    if (draw() % 2) word[draw() % length] = (uint8_t)('c' + draw() % (letters + 1));
    size_t at = draw() % 3 ? 0 : draw() % count;
    const uint8_t *place = memmem(text + at, count - at, word, length);
    size_t expected = place ? (size_t)(place - text) : count;
    assert(cwi_find(text, at, count, word, length) == expected);
#if defined(__SSE2__)
    if (length > 1) {
        size_t rare[2], rest = 0;
        find_rare(word, length, rare);
        assert(rare[0] < length && rare[1] < length && rare[0] != rare[1]);
        size_t found = find_16(text + at, count - at, word, length, rare, &rest);
        assert(found < count - at ? at + found == expected : at + rest <= expected);
    }
#endif
    return 1;
}

int main(int argc, char **argv) {
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)getpid() * 2654435761u;
    state = seed | 1;
    printf("seed %llu\n", (unsigned long long)seed);
    char *memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(memory != MAP_FAILED && mprotect(memory + 4096, 4096, PROT_NONE) == 0);
    static const char *pieces[] = {
        "\"",    "\\",    ":",      "=",    "%",    "yJ",   "y",    "//",   "/",     "bearer",
        ": ",    ":'",    "BASIC",  "--",   "-",    "ghp_", "gl",   "xoxb", "AKIA",  "github",
        "AIza",  "sk_",   "rk-",    "npm_", "dop_", "hf_",  "SG.",  "shp",  "pypi",  "ya29",
        "E KEY", "shpat_", "\x7F", "\t",   "\xC3", "/bot12345:", "/services/T0AB123/B0AB123/",
        "/webhooks/123456789012345678/", "/IncomingWebhook/", "0123456789abcdef0123456789abcdef",
        "xkeysib-", "dapi", "AGE-SECRET-KEY-1", "glcbt-", "dp.pt."};
    int checks = 0;
    for (int round = 0; round < 20000; round++) {
        size_t count = draw() % 400;
        uint8_t *text = (uint8_t *)memory + 4096 - count;
        for (size_t i = 0; i < count; i++) text[i] = (uint8_t)('c' + draw() % 20);
        /* From texts without such pieces to texts of nothing else. */
        size_t many = draw() % 4 == 0 ? 0 : draw() % (count / 4 + 1);
        for (size_t k = 0; k < many; k++) {
            const char *piece = pieces[draw() % (sizeof pieces / sizeof *pieces)];
            size_t length = strlen(piece), at = draw() % count;
            memcpy(text + at, piece, length <= count - at ? length : count - at);
        }
        checks += check_all(text, count);
    }
    enum { LONG = 64 * 1024, LEAST = 4000, PAGE = 4096 };
    memory = mmap(NULL, LONG + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(memory != MAP_FAILED && mprotect(memory + LONG, PAGE, PROT_NONE) == 0);
    for (int round = 0; round < 400; round++) {
        size_t count = LEAST + draw() % (LONG - LEAST);
        uint8_t *text = (uint8_t *)memory + LONG - count;
        unsigned letters = 1 + (unsigned)(draw() % 24);
        for (size_t i = 0; i < count; i++) text[i] = (uint8_t)('c' + draw() % letters);
        for (int k = 0; k < 20; k++) checks += check_find(text, count, letters);
    }
    printf("%d checks\n", checks);
    return 0;
}
