/* json.c includes this file once per width: LANE bytes, NAME and TARGET of the functions, BITS of a
 * lane whose bytes are each 0 or -1.
 * Redaction need not see most members and items. This code passes over whole ones, 64 bytes at a
 * time: a word holds one bit per byte, and the grammar says which bits may follow which. It
 * stops after the last comma before anything else, and the parser continues there. Anything else
 * is an escape, a name or a string to be handed out, white space other than one blank after a
 * comma or colon, a value that is not whole within the block, or malformed JSON. */
typedef unsigned char NAME(bytes) __attribute__((vector_size(LANE)));
typedef unsigned char NAME(anywhere) __attribute__((vector_size(LANE), aligned(1)));
typedef signed char NAME(with_sign) __attribute__((vector_size(LANE)));
typedef struct { NAME(bytes) lanes[BLOCK / LANE]; } NAME(block);

TARGET static inline uint64_t NAME(where)(const NAME(block) *block, uint8_t byte) {
    uint64_t bits = 0;
    for (int i = 0; i < BLOCK / LANE; i++) bits |= BITS(block->lanes[i] == byte) << (i * LANE);
    return bits;
}

TARGET static inline uint64_t NAME(digits)(const NAME(block) *block) {
    uint64_t bits = 0;
    for (int i = 0; i < BLOCK / LANE; i++) {
        const NAME(bytes) from_least = block->lanes[i] + (uint8_t)(0x80 - '0');
        bits |= BITS((NAME(with_sign))from_least < -0x80 + 10) << (i * LANE);
    }
    return bits;
}

/* `at` follows a comma. Returns where the parser continues: at `at`, or after a later comma. */
TARGET static size_t NAME(pass)(cwi_json *self, const cwi_json_names *names, size_t at) {
    const size_t from = at;
    uint32_t least = self->depth;
    while (at < self->count) {
        uint8_t room[BLOCK];
        const uint8_t *const block = block_of(self->text, at, self->count, room);
        NAME(block) v, lower;
        uint64_t odd = 0;
        for (int i = 0; i < BLOCK / LANE; i++) {
            v.lanes[i] = *(const NAME(anywhere) *)(const void *)(block + i * LANE);
            lower.lanes[i] = v.lanes[i] | 0x20;
            odd |= BITS((v.lanes[i] == '\\') | (v.lanes[i] == '<') | (v.lanes[i] < 0x20))
                   << (i * LANE);
        }
        const uint64_t quotes = NAME(where)(&v, '"');
        /* Strings, including their opening quotes and excluding their closing ones. */
        const uint64_t inside = STRINGS(quotes);
        const uint64_t strings = inside | quotes, firsts = quotes & inside;
        const uint64_t blanks = NAME(where)(&v, ' ') & ~strings;
        const uint64_t opens = NAME(where)(&lower, '{') & ~strings;
        const uint64_t closes = NAME(where)(&lower, '}') & ~strings;
        const uint64_t colons = NAME(where)(&v, ':') & ~strings;
        uint64_t commas = NAME(where)(&v, ',') & ~strings;
        /* Numbers and words. The sums are disjoint: if they were ORed, the compiler would turn
         * them back into lanes and move their bits once more. */
        uint64_t scalars = ~(strings + opens + closes + commas + colons);
        /* Names and items must begin at `heads`, values at `wanted`; neither may begin anywhere
         * else. */
        uint64_t heads = commas << 1 | 1, wanted = colons << 1, wrong = odd;
        if (blanks) {
            scalars ^= blanks;
            wrong |= blanks & ~(heads | wanted);
            heads += heads & blanks, wanted += wanted & blanks;
        }
        const uint64_t starts = scalars & ~(scalars << 1);
        const uint64_t digits = NAME(digits)(&v) & scalars;
        const uint64_t dots = NAME(where)(&v, '.') & scalars;
        /* A number has at most one dot, with digits on both sides, and no digit after a leading
         * 0. */
        wrong |= (dots & ~(digits << 1 & digits >> 1)) | (behind(dots << 1, digits) & dots) |
                 (starts & digits >> 1 & NAME(where)(&v, '0'));
        heads |= opens << 1 & ~closes;
        wrong |= (heads | wanted) ^ (firsts | starts | opens);
        uint64_t may = words_end(self, at, scalars & ~(digits | dots), scalars, starts,
                                 first(wrong) - 1);
        for (;;) {
            if (!(commas &= may)) return leave(self, least, from, at);
            const unsigned last = BLOCK - 1 - (unsigned)__builtin_clzll(commas);
            const uint64_t all = ~0ull >> (BLOCK - 1 - last);
            levels now;
            uint64_t members;
            may = walk(self, &now, block, (opens | closes) & all, &members);
            const uint64_t named = firsts & heads & members;
            const uint64_t name_ends = behind(named, strings);
            /* In objects, every name is followed by a colon, and there are no other colons. */
            const uint64_t misplaced = (heads & members & ~firsts) | (name_ends ^ colons);
            if (misplaced & all) may &= first(misplaced) - 1;
            const uint64_t ends = name_ends & all & may;
            may &= telling(self, names, at, ends, quotes);
            if ((may & all) != all) continue;
            commit(self, &now, at);
            if (now.least < least) least = now.least;
            at += last + 1;
            break;
        }
    }
    return leave(self, least, from, at);
}

#undef STRINGS
#undef BITS
#undef TARGET
#undef NAME
#undef LANE
