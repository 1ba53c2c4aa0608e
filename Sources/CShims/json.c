/* The parser of CJSON.h: one state for what may come next, one bit for each open bracket. It
 * passes over what the caller need not see in blocks of 64 bytes (json_lanes.h). */
#include "CJSON.h"
#include "CScan.h"
#include <stdbool.h>
#include <string.h>

enum { VALUE, FIRST_VALUE, NAME, FIRST_NAME, AFTER };

void cwi_json_begin(cwi_json *self, const uint8_t *text, size_t at, size_t count, uint32_t limit) {
    memset(self, 0, offsetof(cwi_json, begins));
    self->text = text;
    self->at = self->end = at;
    self->count = count;
    self->limit = limit < CWI_JSON_DEPTH ? limit : CWI_JSON_DEPTH - 1;
}

void cwi_json_pairs(const cwi_json_names *names, uint64_t *pairs) {
    for (uint32_t pair = 0; pair < CWI_PAIRS; pair++) {
        /* Each byte's lowest five bits, and the bit that letters have. */
        uint32_t last = pair >> 6, second = pair & 0x3F;
        uint32_t ending = (uint32_t)cwi_letter((uint8_t)(last + (last & 0x20))) << 5 |
                          cwi_letter((uint8_t)(second + (second & 0x20)));
        pairs[pair] = (uint64_t)names->namings[ending] << 32 | names->members[ending];
    }
}

/* ── Scanning, always within [at, count) ── */

#define INLINE static inline __attribute__((always_inline))

INLINE uint8_t peek(const uint8_t *text, size_t at, size_t count) {
    return at < count ? text[at] : 0;
}

INLINE bool is_blank(uint8_t byte) {
    return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

/* Moves `at` past blanks and returns the byte there, or 0 at the end. */
INLINE uint8_t solid(const uint8_t *text, size_t *at, size_t count) {
    while (*at < count) {
        uint8_t byte = text[*at];
        if (byte > ' ' || !is_blank(byte)) return byte;
        ++*at;
    }
    return 0;
}

/* Finds the next quote, backslash or control character. */
INLINE size_t plain_end(const uint8_t *text, size_t at, size_t count) {
#if defined(__SSE2__)
    typedef signed char bytes __attribute__((vector_size(16)));
    typedef signed char anywhere __attribute__((vector_size(16), aligned(1)));
    typedef char mask __attribute__((vector_size(16)));
    for (; at + 16 <= count; at += 16) {
        bytes v = *(const anywhere *)(const void *)(text + at);
        bytes found = (v == '"') | (v == '\\') | ((v >= 0) & (v < 0x20));
        unsigned bits = (unsigned)__builtin_ia32_pmovmskb128((mask)found);
        if (bits) return at + (size_t)__builtin_ctz(bits);
    }
#endif
    while (at < count && text[at] >= 0x20 && text[at] != '"' && text[at] != '\\') at++;
    return at;
}

static bool is_hex(uint8_t byte) {
    return (uint8_t)(byte - '0') < 10 || (uint8_t)((byte | 0x20) - 'a') < 6;
}

/* Continues string_end from the first backslash. */
static __attribute__((noinline)) size_t escaped_end(const uint8_t *text, size_t at, size_t count) {
    while (peek(text, at, count) == '\\') {
        uint8_t letter = peek(text, at + 1, count);
        if (letter == 'u') {
            for (size_t i = 2; i < 6; i++)
                if (!is_hex(peek(text, at + i, count))) return 0;
            at += 6;
        } else if (letter && strchr("\"\\/bfnrt", letter)) {
            at += 2;
        } else {
            return 0;
        }
        at = plain_end(text, at, count);
    }
    return peek(text, at, count) == '"' ? at : 0;
}

/* Returns the offset of the closing quote of the string whose first character is at `at`, or 0
 * if the string is invalid or does not end. */
INLINE size_t string_end(const uint8_t *text, size_t at, size_t count, uint8_t *has_escapes) {
    size_t end = plain_end(text, at, count);
    uint8_t byte = peek(text, end, count);
    *has_escapes = byte == '\\';
    if (byte == '"') return end;
    return byte == '\\' ? escaped_end(text, end, count) : 0;
}

INLINE bool may_end(const uint32_t *endings, const uint8_t *text, size_t from, size_t to) {
    if (to - from > 2) return cwi_may_end(endings, text[to - 3], text[to - 2], text[to - 1]);
    return to > from &&
           cwi_may_end(endings, '"', to - from > 1 ? text[to - 2] : '"', text[to - 1]);
}

INLINE size_t digits_end(const uint8_t *text, size_t at, size_t count) {
    if (at + 8 <= count) {
        uint64_t eight, high = 0x8080808080808080u;
        memcpy(&eight, text + at, 8);
        /* Leaves the highest bit set in each byte that is not a digit. */
        eight ^= 0x3030303030303030u;
        uint64_t others = (eight | ((eight & ~high) + 0x7676767676767676u)) & high;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        if (others) return at + (size_t)(__builtin_ctzll(others) >> 3);
#endif
    }
    while (at < count && (uint8_t)(text[at] - '0') < 10) at++;
    return at;
}

/* Returns the end of the number that begins at `at`, or 0 if it is invalid. */
INLINE size_t number_end(const uint8_t *text, size_t at, size_t count, size_t *digits) {
    size_t from = at + (text[at] == '-');
    size_t end = digits_end(text, from, count);
    *digits = end - from;
    if (end == from || (text[from] == '0' && end > from + 1)) return 0;
    uint8_t byte = peek(text, end, count);
    if (byte == '.') {
        from = end + 1;
        end = digits_end(text, from, count);
        if (end == from) return 0;
        *digits += end - from;
        byte = peek(text, end, count);
    }
    if ((byte | 0x20) == 'e') {
        byte = peek(text, end + 1, count);
        from = end + 1 + (byte == '-' || byte == '+');
        end = digits_end(text, from, count);
        if (end == from) return 0;
        *digits += end - from;
    }
    return end;
}

static size_t word_end(const uint8_t *text, size_t at, size_t count) {
    static const char *const words[] = {"true", "false", "null"};
    for (int i = 0; i < 3; i++) {
        size_t length = strlen(words[i]);
        if (at + length <= count && memcmp(text + at, words[i], length) == 0) return at + length;
    }
    return 0;
}

/* ── Passing over ── */

#if defined(__SSE2__)
enum { BLOCK = 64, DEPTHS = CWI_JSON_DEPTH };

INLINE uint64_t first(uint64_t bits) { return bits & -bits; }

/* The bits just after the runs whose first bits are `bits`. */
INLINE uint64_t behind(uint64_t bits, uint64_t runs) { return (runs + bits) & ~runs; }

/* Sets each bit that has an odd number of ones up to and including it. */
INLINE uint64_t parity(uint64_t bits) {
    for (int i = 1; i < BLOCK; i *= 2) bits ^= bits << i;
    return bits;
}

/* Reduces `may` to the bits up to which everything but digits and dots is part of a number or a
 * word. */
INLINE uint64_t words_end(const cwi_json *self, size_t at, uint64_t others, uint64_t scalars,
                          uint64_t starts, uint64_t may) {
    while (others &= may) {
        uint64_t before = starts & (first(others) | (first(others) - 1));
        if (!before) return 0;
        size_t from = BLOCK - 1 - (size_t)__builtin_clzll(before), digits;
        uint8_t byte = self->text[at + from];
        size_t to = (uint8_t)(byte - '0') < 10 || byte == '-'
                        ? number_end(self->text, at + from, self->count, &digits)
                        : word_end(self->text, at + from, self->count);
        if (to == 0) return may & ((1ull << from) - 1);
        if (to - at >= BLOCK) break;
        if (scalars >> (to - at) & 1) return may & ((1ull << from) - 1);
        others &= ~0ull << (to - at);
    }
    return may;
}

/* The brackets that are open after a block; those up to `least` were open before it. */
typedef struct levels {
    uint64_t objects;
    uint32_t depth, least;
    uint8_t begins[DEPTHS];
} levels;

/* All ones if the bracket at that depth belongs to an object. */
INLINE uint64_t all_if_object(uint64_t objects, uint32_t depth) {
    return 0 - (objects >> depth & 1);
}

/* Walks the brackets of a block one by one. Sets `members` to the bits whose innermost bracket
 * is an object's. Returns the bits before the first bracket that is left to the parser. */
INLINE uint64_t walk(const cwi_json *self, levels *now, const uint8_t *block, uint64_t brackets,
                     uint64_t *members) {
    uint64_t objects = self->objects, result = ~0ull;
    /* The value itself, and the open brackets whose end the caller wants to see. */
    uint64_t watched = self->watched | 2;
    uint32_t depth = self->depth, least = depth;
    uint64_t inside = all_if_object(objects, depth), is_member = inside;
    for (; brackets; brackets &= brackets - 1) {
        unsigned at = (unsigned)__builtin_ctzll(brackets);
        uint8_t byte = block[at];
        uint64_t was = inside, curly = 0 - (uint64_t)(byte >> 5 & 1);
        if (byte & 2) { /* '{' or '[' */
            if (depth >= self->limit) {
                result = first(brackets) - 1;
                break;
            }
            uint64_t bit = 1ull << ++depth;
            inside = curly;
            objects = (objects & ~bit) | (curly & bit);
            watched &= ~bit;
            now->begins[depth] = (uint8_t)at;
        } else {
            if (curly != inside || (watched >> depth & 1)) {
                result = first(brackets) - 1;
                break;
            }
            if (depth - 1 < least) least = depth - 1;
            uint64_t around = all_if_object(objects, depth - 1);
            if (brackets & 4ull << at && block[at + 2] == byte - 2) { /* "},{" */
                now->begins[depth] = (uint8_t)(at + 2);
                is_member ^= (inside ^ around) & 6ull << at;
                brackets &= brackets - 1;
                continue;
            }
            depth--;
            inside = around;
        }
        is_member ^= (was ^ inside) & ~1ull << at;
    }
    now->objects = objects, now->depth = depth, now->least = least;
    *members = is_member;
    return result;
}

/* Records that the block at `at` has been passed over, up to the last bracket taken. */
INLINE void commit(cwi_json *self, const levels *now, size_t at) {
/* Usually one iteration. */
#pragma clang loop vectorize(disable)
    for (uint32_t depth = now->depth; depth > now->least; depth--)
        self->begins[depth] = at + now->begins[depth];
    self->objects = now->objects;
    self->depth = now->depth;
}

/* Records that everything up to the comma before `at` has been passed over. Returns `at`. */
INLINE size_t leave(cwi_json *self, uint32_t least, size_t from, size_t at) {
    if (at == from) return at;
    const uint64_t old = (2ull << least) - 1;
    for (int i = 0; i < 4; i++) self->told[i] &= old;
    self->watched &= old;
    self->end = at - 1;
    return at;
}

/* The index in `pairs` for the second and the third byte of a word. */
INLINE uint32_t pair_of(uint32_t word) {
    return (word >> 8 & 0x1F) | (word >> 9 & 0x20) | (word >> 10 & 0x7C0) | (word >> 11 & 0x800);
}

#define LANE 16
#define NAME(function) function##_16
#define TARGET
typedef char v16 __attribute__((vector_size(16)));
#define BITS(lane) ((uint64_t)(uint32_t)__builtin_ia32_pmovmskb128((v16)(lane)))
#define STRINGS(quotes) (parity(quotes))
#define PAIR(word) pair_of(word)
#include "json_lanes.h"

#define LANE 32
#define NAME(function) function##_32
#define TARGET __attribute__((target("avx2,bmi,bmi2,pclmul")))
typedef char v32 __attribute__((vector_size(32)));
#define BITS(lane) ((uint64_t)(uint32_t)__builtin_ia32_pmovmskb256((v32)(lane)))
typedef long long v2 __attribute__((vector_size(16)));
#define STRINGS(quotes) \
    ((uint64_t)__builtin_ia32_pclmulqdq128((v2){(long long)(quotes)}, (v2){-1}, 0)[0])
#define PAIR(word) __builtin_ia32_pext_si(word, 0x5F5F00)
#include "json_lanes.h"

static bool is_wide(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("pclmul");
}

#ifndef PASS
#define PASS(...) (is_wide() ? pass_32(__VA_ARGS__) : pass_16(__VA_ARGS__))
#endif

/* Passes over text from just after a comma. Returns where the parser continues. */
static __attribute__((noinline)) size_t pass(cwi_json *self, const cwi_json_names *names,
                                             size_t at) {
    size_t to = PASS(self, names, at);
    /* When passing over did not help, it is tried less often. */
    self->wait = to > at ? 0 : self->wait < 1000 ? 2 * self->wait + 32 : 1000;
    self->next_pass = to + self->wait;
    self->passed += to - at;
    return to;
}
#else
static size_t pass(cwi_json *self, const cwi_json_names *names, size_t at) {
    (void)names;
    self->next_pass = SIZE_MAX;
    return at;
}
#endif

/* ── The parser ── */

INLINE bool has_marks(const cwi_json *self) {
    return self->secret | self->errors | self->schema;
}

/* Clears what the caller had set for the value that has ended. True if any of it is still set. */
static __attribute__((noinline)) bool let_go(cwi_json *self, uint32_t depth) {
    if (self->secret == depth + 1) self->secret = 0;
    if (self->errors == depth + 1) self->errors = 0;
    if (self->schema == depth + 1) self->schema = 0;
    return has_marks(self);
}

/* Returns an event; the next call continues in that state. */
#define LEAVE(found, next)                                                                    \
    do {                                                                                      \
        self->at = at, self->end = end, self->depth = depth, self->state = (next);            \
        return (found);                                                                       \
    } while (0)

int cwi_json_next(cwi_json *self, const cwi_json_names *names) {
    const uint8_t *const text = self->text;
    const size_t count = self->count;
    size_t at = self->at, end = self->end, to;
    uint32_t depth = self->depth;
    bool is_object = self->objects >> depth & 1;
    bool is_marked = has_marks(self);
    uint8_t byte;
    switch (self->state) {
    case FIRST_NAME: goto first_name;
    case FIRST_VALUE: goto first_value;
    case NAME: goto name;
    case VALUE: goto value;
    default: goto after;
    }

first_name:
    byte = solid(text, &at, count);
    if (byte == '}') goto close;
    goto quote;
name:
    byte = solid(text, &at, count);
quote:
    if (byte != '"') LEAVE(CWI_JSON_BROKEN, NAME);
    self->name_from = at + 1;
    to = string_end(text, at + 1, count, &self->name_has_escapes);
    if (to == 0) LEAVE(CWI_JSON_BROKEN, NAME);
    self->name_to = to;
    at = to + 1;
    if (solid(text, &at, count) != ':') LEAVE(CWI_JSON_BROKEN, NAME);
    at++;
    byte = solid(text, &at, count);
    if ((is_marked && self->secret) || self->name_has_escapes ||
        may_end(names->members, text, self->name_from, to))
        LEAVE(CWI_JSON_NAME, VALUE);
    goto first_byte;

first_value:
    byte = solid(text, &at, count);
    if (byte == ']') goto close;
    goto first_byte;
value:
    byte = solid(text, &at, count);
first_byte:
    if (byte == '"') {
        to = string_end(text, at + 1, count, &self->has_escapes);
        if (to == 0) LEAVE(CWI_JSON_BROKEN, VALUE);
        self->from = at + 1, self->to = to;
        at = end = to + 1;
        if ((is_marked && self->secret) || self->has_escapes || text[self->from] == '<' ||
            (is_object && may_end(names->named, text, self->from, to) &&
             (self->name_has_escapes ||
              may_end(names->namings, text, self->name_from, self->name_to))))
            LEAVE(CWI_JSON_STRING, AFTER);
        goto after;
    }
    if ((uint8_t)(byte - '0') < 10 || byte == '-') {
        size_t digits;
        to = number_end(text, at, count, &digits);
        /* At the end of the text, more of the number may follow. */
        if (to == 0 || (to == count && depth > 0)) LEAVE(CWI_JSON_BROKEN, VALUE);
        self->from = at, self->to = to;
        at = end = to;
        if (is_marked && self->secret && digits > 2) LEAVE(CWI_JSON_NUMBER, AFTER);
        goto after;
    }
    if (byte == '{' || byte == '[') {
        if (depth >= self->limit) LEAVE(CWI_JSON_BROKEN, VALUE);
        uint64_t bit = 1ull << ++depth;
        self->begins[depth] = at;
        end = ++at;
        is_object = byte == '{';
        self->watched &= ~bit;
        for (int i = 0; i < 4; i++) self->told[i] &= ~bit;
        if (!is_object) {
            self->objects &= ~bit;
            goto first_value;
        }
        self->objects |= bit;
        goto first_name;
    }
    to = word_end(text, at, count);
    if (to == 0) LEAVE(CWI_JSON_BROKEN, VALUE);
    at = end = to;

after:
    if (is_marked) is_marked = let_go(self, depth);
    if (depth == 0) LEAVE(CWI_JSON_WHOLE, AFTER);
    byte = solid(text, &at, count);
    if (byte == ',') {
        at++;
        if (at >= self->next_pass && !is_marked) {
            self->depth = depth, self->end = end;
            at = pass(self, names, at);
            depth = self->depth, end = self->end;
            is_object = self->objects >> depth & 1;
        }
        if (is_object) goto name;
        goto value;
    }
    if (byte != (is_object ? '}' : ']')) LEAVE(CWI_JSON_BROKEN, AFTER);
close:
    end = ++at;
    uint64_t bit = 1ull << depth--;
    is_object = self->objects >> depth & 1;
    if (self->watched & bit) {
        self->from = self->begins[depth + 1];
        LEAVE(CWI_JSON_CLOSED, AFTER);
    }
    goto after;
}
