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

/* Returns the bits before the first name that is left to the parser; `ends` marks the colons of
 * names. */
TARGET static inline uint64_t NAME(telling)(const cwi_json *self, const cwi_json_names *names,
                                            size_t at, uint64_t ends, uint64_t quotes) {
    const uint8_t *const text = self->text + at;
    for (; ends; ends &= ends - 1) {
        ptrdiff_t colon = __builtin_ctzll(ends);
        uint32_t word; /* the name's last three bytes, and its quote */
        memcpy(&word, text + colon - 4, 4);
        uint64_t may = names->pairs[PAIR(word)];
        if (!may) continue;
        may >>= cwi_letter(word & 0xFF);
        if (may & 1) return first(ends) - 1;
        if (!(may >> 32 & 1) || text[colon + 1 + (text[colon + 1] == ' ')] != '"') continue;
        /* The string ends before the last comma. */
        uint64_t behind = quotes & ~1ull << colon;
        size_t from = at + (size_t)__builtin_ctzll(behind) + 1;
        size_t to = at + (size_t)__builtin_ctzll(behind & (behind - 1));
        if (may_end(names->named, self->text, from, to)) return first(ends) - 1;
    }
    return ~0ull;
}

/* `at` follows a comma. Returns where the parser continues: at `at`, or after a later comma. */
TARGET static __attribute__((noinline)) size_t NAME(pass)(cwi_json *self,
                                                          const cwi_json_names *names, size_t at) {
    const size_t from = at;
    uint32_t least = self->depth;
    uint64_t cap = ~0ull;
    while (self->count - at >= BLOCK) {
        const uint8_t *const block = self->text + at;
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
                                 (first(wrong) - 1) & cap);
        if (!(commas &= may)) break;
        const unsigned last = BLOCK - 1 - (unsigned)__builtin_clzll(commas);
        const uint64_t all = ~0ull >> (BLOCK - 1 - last);
        levels now;
        uint64_t members;
        may = walk(self, &now, block, (opens | closes) & all, &members);
        const uint64_t named = firsts & heads & members;
        const uint64_t name_ends = behind(named, strings);
        /* In objects, every name is followed by a colon, and there are no other colons. */
        const uint64_t misplaced = ((heads & members & ~firsts) | (name_ends ^ colons)) & all;
        if (misplaced) may &= first(misplaced) - 1;
        may &= NAME(telling)(self, names, at, name_ends & all & may, quotes);
        if ((may & all) != all) {
            /* Once more, up to an earlier comma. */
            if (!(commas & may)) break;
            cap = may;
            continue;
        }
        cap = ~0ull;
        commit(self, &now, at);
        if (now.least < least) least = now.least;
        at += last + 1;
    }
    return leave(self, least, from, at);
}

#undef STRINGS
#undef PAIR
#undef BITS
#undef TARGET
#undef NAME
#undef LANE
