/* Included by scan.c once for each width: LANE bytes, NAME and TARGET of the functions, BITS of a
 * lane of which each byte is 0 or -1. */
typedef signed char NAME(bytes) __attribute__((vector_size(LANE)));
typedef signed char NAME(anywhere) __attribute__((vector_size(LANE), aligned(1)));
#define LOAD(at) (*(const NAME(anywhere) *)(const void *)(at))
#define WHERE(condition) (BITS((NAME(bytes))(condition)) << i)

TARGET static inline uint64_t NAME(quotes)(const uint8_t *window) {
    uint64_t bits = 0;
    for (int i = 0; i < BLOCK; i += LANE) {
        NAME(bytes) v = LOAD(window + i);
        bits |= WHERE((v == '"') | (v == '\\'));
    }
    return bits;
}

TARGET static inline uint64_t NAME(marks)(const uint8_t *window) {
    uint64_t bits = 0;
    for (int i = 0; i < BLOCK; i += LANE) {
        NAME(bytes) v = LOAD(window + i), next = LOAD(window + i + 1);
        NAME(bytes) fourth = LOAD(window + i + 4);
        /* b; a or e; whatever; whatever; a, c, e or g */
        bits |= WHERE((v == '=') | (v == '%') | ((v == 'y') & (next == 'J')) |
                      ((v == '/') & (next == '/')) |
                      (((v | 0x20) == 'b') & ((next | 0x24) == 'e') & ((fourth | 0x26) == 'g')));
    }
    return bits;
}

TARGET static inline uint64_t NAME(controls)(const uint8_t *window) {
    uint64_t bits = 0;
    for (int i = 0; i < BLOCK; i += LANE) {
        NAME(bytes) v = LOAD(window + i);
        bits |= WHERE(((v >= 0) & (v < 0x20)) | (v == 0x7F));
    }
    return bits;
}

/* All of these, colons and double hyphens. */
TARGET static inline uint64_t NAME(specials)(const uint8_t *window) {
    uint64_t bits = 0;
    for (int i = 0; i < BLOCK; i += LANE) {
        NAME(bytes) v = LOAD(window + i), next = LOAD(window + i + 1);
        bits |= WHERE((v == '"') | (v == '\\') | (v == ':') | ((v == '-') & (next == '-')));
    }
    return bits | NAME(marks)(window) | NAME(controls)(window);
}

#define NEXT(scan)                                                                            \
    TARGET static size_t NAME(next_##scan)(const uint8_t *text, size_t at, size_t count,      \
                                           uint64_t *bits) {                                  \
        for (; at < count; at += BLOCK) {                                                     \
            uint8_t room[WINDOW];                                                             \
            *bits = NAME(scan)(window_of(text, at, count, room)) & within(at, count);         \
            if (*bits) return at;                                                             \
        }                                                                                     \
        return count;                                                                         \
    }
NEXT(quotes)
NEXT(marks)
NEXT(controls)
NEXT(specials)

TARGET static size_t NAME(next_names)(const uint8_t *text, size_t at, size_t count,
                                      const uint32_t *endings, ptrdiff_t *before,
                                      cwi_names *found) {
    for (size_t block = at & ~(size_t)(BLOCK - 1); block < count; block += BLOCK) {
        uint8_t room[WINDOW];
        const uint8_t *window = window_of(text, block, count, room);
        uint64_t quotes = 0, ends = 0, slashes = 0;
        for (int i = 0; i < BLOCK; i += LANE) {
            NAME(bytes) v = LOAD(window + i), next = LOAD(window + i + 1);
            quotes |= WHERE(v == '"');
            ends |= WHERE((v == '"') & ((next == ':') | ((next >= 0) & (next <= 0x20))));
            slashes |= WHERE(v == '\\');
        }
        uint64_t counting = block < at ? ~0ull << (at - block) : ~0ull;
        found->quotes = quotes & counting;
        found->slashes = slashes & counting;
        found->ends = secret_ends(text, block, ends & counting, endings);
        if (found->ends | found->slashes) return block;
        if (found->quotes)
            *before = (ptrdiff_t)block + 63 - __builtin_clzll(found->quotes);
    }
    return count;
}

#undef NEXT
#undef WHERE
#undef LOAD
#undef BITS
#undef TARGET
#undef NAME
#undef LANE
