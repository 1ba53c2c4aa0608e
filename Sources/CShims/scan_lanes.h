/* scan.c includes this file once per width: LANE bytes, NAME and TARGET of the functions, BITS
 * of a lane whose bytes are each 0 or -1. */
typedef signed char NAME(bytes) __attribute__((vector_size(LANE)));
typedef signed char NAME(anywhere) __attribute__((vector_size(LANE), aligned(1)));
#define LOAD(at) (*(const NAME(anywhere) *)(const void *)(at))

/* For each byte, the groups whose words have that byte at that place (scan.c). */
TARGET static inline NAME(bytes) NAME(groups)(const NAME(bytes) v, int place) {
#if LANE == 32
    /* No group contains a byte from 0x80 on; for those the shuffle gives 0. */
    NAME(bytes) low = (NAME(bytes))SHUFFLE(groups_low[place], v);
    return low & (NAME(bytes))SHUFFLE(groups_high[place], (NAME(bytes))((v32u)v >> 4));
#else
    NAME(bytes) found;
    for (int i = 0; i < LANE; i++)
        found[i] = groups_low[place][v[i] & 15] & groups_high[place][(uint8_t)v[i] >> 4];
    return found;
#endif
}

/* Marks of one byte, and the mark of two equal bytes. */
TARGET static inline NAME(bytes) NAME(signs)(const NAME(bytes) v) {
#if LANE == 32
    return (NAME(bytes))((NAME(bytes))SHUFFLE(signs_low, v) == v);
#else
    return (NAME(bytes))((v == '=') | (v == '%') | (v == '/'));
#endif
}

/* Few places have a mark, so this first asks whether there may be one, by two of the four bytes.
 * `some` receives the groups of the first and the third. */
TARGET static inline NAME(bytes) NAME(may_mark)(const uint8_t *at, NAME(bytes) *some) {
    NAME(bytes) v = LOAD(at);
    *some = NAME(groups)(v, 0) & NAME(groups)(LOAD(at + 2), 2);
    return *some | NAME(signs)(v) | (NAME(bytes))(LOAD(at + 1) == 'J');
}

TARGET static inline NAME(bytes) NAME(is_mark)(const uint8_t *at, NAME(bytes) some) {
    NAME(bytes) v = LOAD(at), next = LOAD(at + 1);
    some &= NAME(groups)(next, 1) & NAME(groups)(LOAD(at + 3), 3);
    return (NAME(bytes))((v == '=') | (v == '%') | (some != 0) |
                         ((v == 'y') & (next == 'J')) | ((v == '/') & (next == '/')));
}

/* Sets `some` for each lane. */
TARGET static inline _Bool NAME(may_have_marks)(const uint8_t *window, NAME(bytes) *some) {
    NAME(bytes) any = {0};
    for (int i = 0; i < BLOCK; i += LANE) any |= NAME(may_mark)(window + i, some + i / LANE);
    return BITS((NAME(bytes))(any != 0)) != 0;
}

TARGET NOINLINE size_t NAME(next_marks)(const uint8_t *text, size_t at, size_t count,
                                        uint64_t *bits) {
    for (; at < count; at += BLOCK) {
        NAME(bytes) some[BLOCK / LANE];
        _Bool may = 0;
        while (at + WINDOW <= count && !(may = NAME(may_have_marks)(text + at, some))) at += BLOCK;
        uint8_t room[WINDOW];
        const uint8_t *const window = window_of(text, at, count, room);
        if (!may && !NAME(may_have_marks)(window, some)) continue;
        *bits = 0;
        for (int i = 0; i < BLOCK; i += LANE)
            *bits |= BITS(NAME(is_mark)(window + i, some[i / LANE])) << i;
        *bits &= within(at, count);
        if (*bits) return at;
    }
    return count;
}

/* True for the bytes first … last, none of which is above 0x7F. */
#define WITHIN(v, first, last) (((v) >= (first)) & ((v) <= (last)))

TARGET NOINLINE _Bool NAME(word_marks)(const uint8_t *text, size_t count, uint64_t *words,
                                       uint64_t *varying, uint64_t *signs) {
    uint64_t any = 0;
    size_t block = 0;
    for (size_t at = 0; at < count; at += BLOCK, block++) {
        uint8_t room[WINDOW];
        const uint8_t *window = text + at;
        /* The last block of a longer text is read with the bytes before it. */
        unsigned before = 0;
        if (at + BLOCK > count) {
            if (count < BLOCK) window = window_of(text, at, count, room);
            else window = text + count - BLOCK, before = (unsigned)(at + BLOCK - count);
        }
        uint64_t word = 0, vary = 0, sign = 0;
        for (int i = 0; i < BLOCK; i += LANE) {
            const NAME(bytes) v = LOAD(window + i);
            const NAME(bytes) escape = (NAME(bytes))(v == '\\');
            sign |= BITS((NAME(bytes))((v == '"') | escape)) << i;
#if LANE == 32
            /* Negation makes bytes with a bit negative. Those from 0x80 on belong to words, too. */
            NAME(bytes) kind = (NAME(bytes))SHUFFLE(words_low, v);
            kind &= (NAME(bytes))SHUFFLE(words_high, (NAME(bytes))((v32u)v >> 4));
            word |= BITS(-kind | v) << i;
            vary |= BITS(-(kind & VARYING)) << i;
#else
            const NAME(bytes) lower = v | 0x20;
            word |= BITS((NAME(bytes))(WITHIN(lower, 'a', 'z') | WITHIN(v, '-', '9') |
                                       WITHIN(v, '#', '&') | (v < 0) | (v == '_') |
                                       (v == '@') | (v == '+') | (v == '~') | escape))
                    << i;
            vary |= BITS((NAME(bytes))WITHIN(v, '/', '9')) << i;
#endif
        }
        words[block] = word >>= before;
        varying[block] = vary >>= before;
        signs[block] = sign >>= before;
        any |= sign;
    }
    words[block] = varying[block] = signs[block] = 0;
    return any != 0;
}

TARGET NOINLINE _Bool NAME(is_ascii)(const uint8_t *text, size_t count) {
    if (count < LANE) {
        uint8_t all = 0;
        for (size_t at = 0; at < count; at++) all |= text[at];
        return all < 0x80;
    }
    NAME(bytes) all = LOAD(text + count - LANE);
    size_t at = 0;
    for (; at + 4 * LANE <= count; at += 4 * LANE)
        all |= LOAD(text + at) | LOAD(text + at + LANE) | LOAD(text + at + 2 * LANE) |
               LOAD(text + at + 3 * LANE);
    for (; at + LANE <= count; at += LANE) all |= LOAD(text + at);
    return BITS((NAME(bytes))(all < 0)) == 0;
}

TARGET static inline NAME(bytes) NAME(controls)(const NAME(bytes) v) {
    return (NAME(bytes))(((v >= 0) & (v < 0x20)) | (v == 0x7F));
}

TARGET NOINLINE _Bool NAME(has_controls)(const uint8_t *text, size_t count) {
    uint8_t room[LANE];
    if (count < LANE) {
        memset(room, ' ', LANE);
        copy_short(room, text, count);
        text = room, count = LANE;
    }
    NAME(bytes) found = NAME(controls)(LOAD(text + count - LANE));
    for (size_t at = 0; at + LANE < count; at += LANE) found |= NAME(controls)(LOAD(text + at));
    return BITS(found) != 0;
}

/* True if there are no marks, quotes, backslashes, control characters or double hyphens, and no
 * colons followed by a blank or a quote. */
TARGET NOINLINE _Bool NAME(is_plain)(const uint8_t *text, size_t count) {
    for (size_t at = 0; at < count; at += LANE) {
        uint8_t room[LANE + 3];
        const uint8_t *window = text + at;
        if (count - at < LANE + 3) {
            memset(room, 0, sizeof room);
            copy_short(room, text + at, count - at);
            window = room;
        }
        NAME(bytes) v = LOAD(window), next = LOAD(window + 1), some;
        NAME(bytes) found = (NAME(bytes))(
            NAME(controls)(v) | (v == '"') | (v == '\\') |
            ((v == '-') & (next == '-')) | ((v == ':') & ((next == ' ') | (next == '\''))));
        if (BITS((NAME(bytes))(NAME(may_mark)(window, &some) != 0)))
            found |= NAME(is_mark)(window, some);
        if (BITS(found) & within(at, count)) return 0;
    }
    return 1;
}

#if LANE > 1
/* Finds `wanted` in a long text by its two bytes at these offsets. If too many places have both, or
 * the rest is short, returns `count` and sets `*rest` to the offset from which on it may occur. */
TARGET NOINLINE size_t NAME(find)(const uint8_t *text, size_t count, const uint8_t *wanted,
                                  size_t length, const size_t rare[2], size_t *rest) {
    const signed char first = (signed char)wanted[rare[0]],
                      second = (signed char)wanted[rare[1]];
    const uint8_t *const firsts = text + rare[0], *const seconds = text + rare[1];
    size_t at = 0, tries = 0;
    for (; at + 4 * LANE + length <= count && tries <= at / 8 + 64; at += 4 * LANE) {
        NAME(bytes) found[4];
        for (int i = 0; i < 4; i++)
            found[i] = (NAME(bytes))((LOAD(firsts + at + i * LANE) == first) &
                                     (LOAD(seconds + at + i * LANE) == second));
        if (!BITS((found[0] | found[1]) | (found[2] | found[3]))) continue;
        for (int i = 0; i < 4; i++) {
            for (uint64_t bits = BITS(found[i]); bits; bits &= bits - 1, tries += length) {
                size_t here = at + (size_t)(i * LANE + __builtin_ctzll(bits));
                if (memcmp(text + here, wanted, length) == 0) return here;
            }
        }
    }
    *rest = at;
    return count;
}
#endif

#undef LOAD
#undef BITS
#undef TARGET
#undef NAME
#undef LANE
