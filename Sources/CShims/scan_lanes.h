/* Included by scan.c once for each width: LANE bytes, NAME and TARGET of the functions, BITS of a
 * lane of which each byte is 0 or -1. */
typedef signed char NAME(bytes) __attribute__((vector_size(LANE)));
typedef signed char NAME(anywhere) __attribute__((vector_size(LANE), aligned(1)));
#define LOAD(at) (*(const NAME(anywhere) *)(const void *)(at))
#define WHERE(condition) (BITS((NAME(bytes))(condition)) << i)

/* Of each byte the groups of words that have it at that place (scan.c). */
TARGET static inline NAME(bytes) NAME(groups)(const NAME(bytes) v, int place) {
#if LANE == 32
    NAME(bytes) low = (NAME(bytes))SHUFFLE(groups_low[place], v & 15);
    return low & (NAME(bytes))SHUFFLE(groups_high[place], (NAME(bytes))((v32u)v >> 4));
#else
    NAME(bytes) found;
    for (int i = 0; i < LANE; i++)
        found[i] = groups_low[place][v[i] & 15] & groups_high[place][(uint8_t)v[i] >> 4];
    return found;
#endif
}

TARGET static inline uint64_t NAME(marks)(const uint8_t *window) {
    uint64_t bits = 0;
    for (int i = 0; i < BLOCK; i += LANE) {
        NAME(bytes) v = LOAD(window + i), next = LOAD(window + i + 1);
        NAME(bytes) third = LOAD(window + i + 2);
        NAME(bytes) words = NAME(groups)(v, 0) & NAME(groups)(next, 1) & NAME(groups)(third, 2);
        bits |= WHERE((v == '=') | (v == '%') | (words != 0) | ((v == 'y') & (next == 'J')) |
                      ((v == '/') & (next == '/')));
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
NEXT(marks)
NEXT(controls)
NEXT(specials)

#undef NEXT
#undef WHERE
#undef LOAD
#undef BITS
#undef TARGET
#undef NAME
#undef LANE
