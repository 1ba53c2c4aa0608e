/* The scans of CScan.h, compiled once per lane width: 32 bytes on processors with AVX2, 16 with
 * SSE2, otherwise one. */
#define _GNU_SOURCE
#include "CScan.h"
#include <string.h>

enum {
    BLOCK = 64,
    /* Bytes of a block, plus the bytes that scans look at beyond it. */
    WINDOW = 80
};

/* Copies up to WINDOW bytes; the pieces may overlap. */
static inline void copy_short(uint8_t *to, const uint8_t *from, size_t count) {
#define PIECE(at, bytes) memcpy(to + (at), from + (at), bytes)
    if (count >= 16) {
        PIECE(0, 16), PIECE(count - 16, 16);
        if (count > 32) PIECE(16, 16);
        if (count > 48) PIECE(32, 16);
        if (count > 64) PIECE(48, 16);
    } else if (count >= 8) {
        PIECE(0, 8), PIECE(count - 8, 8);
    } else if (count >= 4) {
        PIECE(0, 4), PIECE(count - 4, 4);
    } else if (count) {
        to[0] = from[0], to[count / 2] = from[count / 2], to[count - 1] = from[count - 1];
    }
}

/* The block at `at`. Beyond the end of the text it is padded with zeros, in `room`. */
static inline const uint8_t *window_of(const uint8_t *text, size_t at, size_t count,
                                       uint8_t *room) {
    if (at + WINDOW <= count) return text + at;
    memset(room, 0, WINDOW);
    copy_short(room, text + at, count - at);
    return room;
}

static inline uint64_t within(size_t at, size_t count) {
    return at + BLOCK <= count ? ~0ull : (1ull << (count - at)) - 1;
}

/* Four bytes of each word that a mark stands for: "bear", "basi", "E KE" of "PRIVATE KEY", and
 * four of the prefix of each token (tokens.c), in eight groups of one bit each. The tables are
 * indexed by the halves of a byte, so a group matches more than these; matches are compared
 * afterwards. Which four bytes, and in which group, was searched for with ordinary texts: few of
 * them match. The tables are doubled for lanes of 32 bytes. */
#define TWICE(...) {__VA_ARGS__, __VA_ARGS__}
static const int8_t groups_low[4][32] __attribute__((aligned(32))) = {
    TWICE(-124, -48, 56, -40, 8, 16, 0, 37, -118, 2, 0, 32, 0, 0, -111, 2),
    TWICE(27, -114, -78, 29, 81, 41, 10, 98, -91, -128, 0, 80, -91, -128, 6, -126),
    TWICE(-116, -88, 19, 28, 68, 32, 4, 0, -128, 48, -128, -111, 0, 65, 65, 50),
    TWICE(-42, -10, -10, -29, 87, -46, 70, 66, 74, -37, 66, -46, 82, -30, 74, -17)};
static const int8_t groups_high[4][32] __attribute__((aligned(32))) = {
    TWICE(0, 0, 2, 4, -8, -64, 47, -42, 0, 0, 0, 0, 0, 0, 0, 0),
    TWICE(0, 0, 20, 8, -8, -6, -1, -81, 0, 0, 0, 0, 0, 0, 0, 0),
    TWICE(0, 0, 64, 42, -80, 122, 39, -83, 0, 0, 0, 0, 0, 0, 0, 0),
    TWICE(0, 0, -22, 98, -38, -17, -2, -9, 0, 0, 0, 0, 0, 0, 0, 0)};
/* Marks of one byte and of "//", by a byte's lower half. Index 0 holds a byte with another lower
 * half, which never matches. */
static const int8_t signs_low[32] __attribute__((aligned(32))) =
    TWICE(1, 0, 0, 0, 0, '%', 0, 0, 0, 0, 0, 0, 0, '=', 0, '/');

/* Bytes of words by a byte's halves: one bit for each upper half that has any, and one for '/'. */
static const int8_t words_low[32] __attribute__((aligned(32))) =
    TWICE(46, 62, 62, 63, 63, 63, 63, 62, 62, 62, 60, 21, 28, 21, 53, 93);
static const int8_t words_high[32] __attribute__((aligned(32))) =
    TWICE(0, 0, 65, 2, 4, 8, 16, 32, 0, 0, 0, 0, 0, 0, 0, 0);
/* The bits of digits and of '/'. */
enum { VARYING = 2 | 64 };

/* Kept out of the function that chooses by width, so that it only jumps. */
#define NOINLINE static __attribute__((noinline))

/* Intel's headers are not needed: vector comparisons and three built-in functions suffice. */
#if defined(__SSE2__)
#define LANE 16
#define NAME(scan) scan##_16
#define TARGET
typedef char v16 __attribute__((vector_size(16)));
#define BITS(lane) ((uint64_t)(uint32_t)__builtin_ia32_pmovmskb128((v16)(lane)))
#include "scan_lanes.h"

#define LANE 32
#define NAME(scan) scan##_32
#define TARGET __attribute__((target("avx2")))
typedef char v32 __attribute__((vector_size(32)));
typedef unsigned char v32u __attribute__((vector_size(32)));
#define SHUFFLE(table, index)                                                                 \
    __builtin_ia32_pshufb256(*(const v32 *)(const void *)(table), (v32)(index))
#define BITS(lane) ((uint64_t)(uint32_t)__builtin_ia32_pmovmskb256((v32)(lane)))
#include "scan_lanes.h"

#define WIDEST(scan, ...) \
    (__builtin_cpu_supports("avx2") ? scan##_32(__VA_ARGS__) : scan##_16(__VA_ARGS__))
#else
#define LANE 1
#define NAME(scan) scan##_1
#define TARGET
#define BITS(lane) ((uint64_t)((lane)[0] != 0))
#include "scan_lanes.h"

#define WIDEST(scan, ...) scan##_1(__VA_ARGS__)
#endif

size_t cwi_next_marks(const uint8_t *text, size_t at, size_t count, uint64_t *bits) {
    return WIDEST(next_marks, text, at, count, bits);
}

_Bool cwi_word_marks(const uint8_t *text, size_t count, uint64_t *words, uint64_t *varying,
                     uint64_t *signs) {
    return WIDEST(word_marks, text, count, words, varying, signs);
}

void cwi_blank_controls(uint8_t *text, size_t count, _Bool keeps_tabs) {
    if (!WIDEST(has_controls, text, count)) return;
    for (size_t i = 0; i < count; i++)
        if ((text[i] < 0x20 || text[i] == 0x7F) && !(keeps_tabs && text[i] == '\t')) text[i] = ' ';
}

_Bool cwi_is_plain(const uint8_t *text, size_t count) {
    return WIDEST(is_plain, text, count);
}

_Bool cwi_is_ascii(const uint8_t *text, size_t count) { return WIDEST(is_ascii, text, count); }

#if defined(__SSE2__)
/* The most frequent bytes of logs, in descending order. */
static const char common[] = "e0 1at2o3nrsi5=4l6d879cpu.m:-/gf,h_\"byT\nwvk{}[]()";

/* Offsets of the two bytes that are rarest in logs; of equally rare ones, the last. */
static void find_rare(const uint8_t *wanted, size_t length, size_t rare[2]) {
    size_t ranks[2] = {0, 0};
    rare[0] = 0, rare[1] = 1;
    for (size_t i = 0; i < length; i++) {
        const char *place = memchr(common, wanted[i], sizeof common - 1);
        size_t rank = place ? (size_t)(place - common) : sizeof common;
        if (rank >= ranks[0]) {
            if (i) rare[1] = rare[0], ranks[1] = ranks[0];
            rare[0] = i, ranks[0] = rank;
        } else if (rank >= ranks[1]) {
            rare[1] = i, ranks[1] = rank;
        }
    }
}

/* For shorter texts and longer words, memmem is as fast. */
enum { LONG_TEXT = 4096, LONG_WORD = 64 };
#endif

size_t cwi_find(const uint8_t *text, size_t at, size_t count, const void *wanted, size_t length) {
#if defined(__SSE2__)
    if (at < count && count - at >= LONG_TEXT && length > 1 && length <= LONG_WORD) {
        size_t rare[2], rest = 0;
        find_rare(wanted, length, rare);
        size_t found = WIDEST(find, text + at, count - at, wanted, length, rare, &rest);
        if (found < count - at) return at + found;
        at += rest;
    }
#endif
    const uint8_t *found = at < count ? memmem(text + at, count - at, wanted, length) : NULL;
    return found ? (size_t)(found - text) : count;
}

static const uint8_t token_bytes[256] = {
    ['!'] = 1,         ['#' ... '\''] = 1, ['*'] = 1,         ['+'] = 1, ['-'] = 1, ['.'] = 1,
    ['0' ... '9'] = 1, ['A' ... 'Z'] = 1,  ['^' ... 'z'] = 1, ['|'] = 1, ['~'] = 1};

_Bool cwi_is_token(const uint8_t *text, size_t at, size_t count) {
    uint8_t all = 1;
    for (; at < count; at++) all &= token_bytes[text[at]];
    return all;
}

/* Bits of the bytes that differ. Where a lower-case letter is wanted, case does not count. */
static inline uint64_t differs(uint64_t some, uint64_t wanted) {
    uint64_t low = wanted & 0x7F7F7F7F7F7F7F7F;
    uint64_t letters = (low + 0x1F1F1F1F1F1F1F1F) & ~(low + 0x0505050505050505) & ~wanted;
    return (some ^ wanted) & ~(letters >> 2 & 0x2020202020202020);
}

_Bool cwi_has(const uint8_t *text, const uint8_t *word, size_t length) {
    uint64_t some = 0, wanted = 0;
    if (length < 8) {
        copy_short((uint8_t *)&some, text, length);
        copy_short((uint8_t *)&wanted, word, length);
        return differs(some, wanted) == 0;
    }
    for (size_t i = 0;; i = i + 16 <= length ? i + 8 : length - 8) {
        memcpy(&some, text + i, 8), memcpy(&wanted, word + i, 8);
        if (differs(some, wanted)) return 0;
        if (i + 8 == length) return 1;
    }
}

/* The bytes of cwi_name_bytes, and some signs. */
static const uint8_t item_bytes[256] = {
    ['!'] = 1, ['$'] = 1,         ['%'] = 1,         ['*'] = 1, ['+'] = 1, ['-'] = 1,
    ['.'] = 1, ['0' ... '9'] = 1, ['@' ... 'Z'] = 1, ['['] = 1, [']'] = 1, ['_'] = 1,
    ['~'] = 1, ['a' ... 'z'] = 1, [0x80 ... 0xFF] = 1};

size_t cwi_item_start(const uint8_t *text, size_t at, size_t least) {
    while (at > least && item_bytes[text[at - 1]]) at--;
    return at;
}

const uint8_t cwi_letters[256] = {
    ['a'] = 1,  ['b'] = 2,  ['c'] = 3,  ['d'] = 4,  ['e'] = 5,  ['f'] = 6,  ['g'] = 7,
    ['h'] = 8,  ['i'] = 9,  ['j'] = 10, ['k'] = 11, ['l'] = 12, ['m'] = 13, ['n'] = 14,
    ['o'] = 15, ['p'] = 16, ['q'] = 17, ['r'] = 18, ['s'] = 19, ['t'] = 20, ['u'] = 21,
    ['v'] = 22, ['w'] = 23, ['x'] = 24, ['y'] = 25, ['z'] = 26, ['A'] = 1,  ['B'] = 2,
    ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,  ['I'] = 9,
    ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23,
    ['X'] = 24, ['Y'] = 25, ['Z'] = 26, ['"'] = 27};

const uint8_t cwi_name_bytes[256] = {['0' ... '9'] = 0x20,
                                     ['A' ... 'Z'] = 0x20,
                                     ['a' ... 'z'] = 0x20,
                                     [0x80 ... 0xFF] = 0x80};
