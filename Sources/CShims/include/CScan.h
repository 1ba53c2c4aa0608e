/* Looking for bytes that matter to redaction: 16 at a time where the processor has SSE2, else one.
 * Everything is read within [text, text + count). Any thread. */
#ifndef CORDWOOD_SCAN_H
#define CORDWOOD_SCAN_H
#include <stddef.h>
#include <stdint.h>
#if defined(__SSE2__)
/* Not <emmintrin.h>: its types clash with Swift's Glibc module, as x86intrin.h does. */
typedef char cwi_v16 __attribute__((vector_size(16)));
typedef char cwi_v16u __attribute__((vector_size(16), aligned(1)));
static inline cwi_v16 cwi_load16(const uint8_t *at) { return *(const cwi_v16u *)(const void *)at; }
static inline uint32_t cwi_mask16(cwi_v16 v) { return (uint32_t)__builtin_ia32_pmovmskb128(v); }
#endif

/* Where those bytes stand next from `at` on; count: nowhere. Linear in both (memmem). shims.c */
size_t cwi_find(const uint8_t *text, size_t at, size_t count, const void *wanted, size_t length);

/* Index of the next quote or backslash from `at` on; count: there is none. */
static inline size_t cwi_scan_quote(const uint8_t *text, size_t at, size_t count) {
#if defined(__SSE2__)
    for (; at + 16 <= count; at += 16) {
        cwi_v16 v = cwi_load16(text + at);
        uint32_t found = cwi_mask16((cwi_v16)((v == '"') | (v == '\\')));
        if (found) return at + (size_t)__builtin_ctz(found);
    }
#endif
    for (; at < count; at++)
        if (text[at] == '"' || text[at] == '\\') return at;
    return count;
}

/* A bit for each of the 64 bytes from `at` on that is a quote or backslash. */
static inline uint64_t cwi_quote_bits(const uint8_t *text, size_t at, size_t count) {
    uint64_t bits = 0;
#if defined(__SSE2__)
    if (at + 64 <= count) {
        for (int i = 0; i < 4; i++) {
            cwi_v16 v = cwi_load16(text + at + 16 * i);
            bits |= (uint64_t)cwi_mask16((cwi_v16)((v == '"') | (v == '\\'))) << (16 * i);
        }
        return bits;
    }
#endif
    for (size_t i = 0; i < 64 && at + i < count; i++)
        bits |= (uint64_t)(text[at + i] == '"' || text[at + i] == '\\') << i;
    return bits;
}

/* Bits of 64 bytes: quotes; those with a colon or white space behind them; backslashes. */
typedef struct cwi_quotes {
    uint64_t quotes;
    uint64_t names;
    uint64_t slashes;
} cwi_quotes;

static inline cwi_quotes cwi_quotes_of(const uint8_t *text, size_t at, size_t count) {
    cwi_quotes found = {0, 0, 0};
#if defined(__SSE2__)
    if (at + 65 <= count) {
        for (int i = 0; i < 4; i++) {
            cwi_v16 v = cwi_load16(text + at + 16 * i), next = cwi_load16(text + at + 16 * i + 1);
            cwi_v16 quote = (cwi_v16)(v == '"');
            cwi_v16 ends = (cwi_v16)((next == ':') | ((next >= 0) & (next <= 0x20)));
            found.quotes |= (uint64_t)cwi_mask16(quote) << (16 * i);
            found.names |= (uint64_t)cwi_mask16(quote & ends) << (16 * i);
            found.slashes |= (uint64_t)cwi_mask16((cwi_v16)(v == '\\')) << (16 * i);
        }
        return found;
    }
#endif
    for (size_t i = 0; i < 64 && at + i < count; i++) {
        uint8_t byte = text[at + i], next = at + i + 1 < count ? text[at + i + 1] : 0;
        found.quotes |= (uint64_t)(byte == '"') << i;
        found.names |= (uint64_t)(byte == '"' && (next == ':' || next <= 0x20)) << i;
        found.slashes |= (uint64_t)(byte == '\\') << i;
    }
    return found;
}

/* Index of the next byte from `at` on where a secret may be told: '=', '%', "yJ" (of "eyJ"),
 * "//", or a 'b' or 'B' that may begin "Bearer" or "Basic"; count: there is none. */
static inline size_t cwi_scan_mark(const uint8_t *text, size_t at, size_t count) {
#if defined(__SSE2__)
    for (; at + 21 <= count; at += 16) {
        cwi_v16 v = cwi_load16(text + at), next = cwi_load16(text + at + 1);
        cwi_v16 fourth = cwi_load16(text + at + 4);
        cwi_v16 mark = (cwi_v16)((v == '=') | (v == '%') | ((v == 'y') & (next == 'J')) |
                                 ((v == '/') & (next == '/')) |
                                 /* b, a or e, …, a or c or e or g */
                                 (((v | 0x20) == 'b') & ((next | 0x24) == 'e') &
                                  ((fourth | 0x26) == 'g')));
        uint32_t found = cwi_mask16(mark);
        if (found) return at + (size_t)__builtin_ctz(found);
    }
#endif
    for (; at < count; at++) {
        uint8_t byte = text[at];
        if (byte == '=' || byte == '%') return at;
        if (byte == 'y' && at + 1 < count && text[at + 1] == 'J') return at;
        if (byte == '/' && at + 1 < count && text[at + 1] == '/') return at;
        if ((byte | 0x20) == 'b' && at + 4 < count && (text[at + 4] | 0x26) == 'g') return at;
    }
    return count;
}

/* Index of the next control character (below 0x20, or 0x7F) from `at` on; count: there is none. */
static inline size_t cwi_scan_control(const uint8_t *text, size_t at, size_t count) {
#if defined(__SSE2__)
    for (; at + 16 <= count; at += 16) {
        cwi_v16 v = cwi_load16(text + at);
        uint32_t found = cwi_mask16((cwi_v16)(((v >= 0) & (v < 0x20)) | (v == 0x7F)));
        if (found) return at + (size_t)__builtin_ctz(found);
    }
#endif
    for (; at < count; at++)
        if (text[at] < 0x20 || text[at] == 0x7F) return at;
    return count;
}
#endif
