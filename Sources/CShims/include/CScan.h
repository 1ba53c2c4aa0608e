/* Finds the bytes that matter to redaction and to the cutting of lines, in blocks of 64: each such
 * byte sets one bit. All reads stay within [text, text + count). Any thread. scan.c */
#ifndef CORDWOOD_SCAN_H
#define CORDWOOD_SCAN_H
#include <stddef.h>
#include <stdint.h>

/* Returns the next offset from `at` on where those bytes occur, or count if they do not.
 * Linear in both lengths. */
size_t cwi_find(const uint8_t *text, size_t at, size_t count, const void *wanted, size_t length);

/* Returns the first block from `at` on, a multiple of 64, that contains a mark, and sets `bits`
 * to its marks; returns count if no block does. A mark is a byte that may reveal a secret: '=',
 * '%', "yJ" (of "eyJ"), "//", and a possible beginning of a known vendor's token, of "Bearer",
 * of "Basic" or of the end of "PRIVATE KEY": */
size_t cwi_next_marks(const uint8_t *text, size_t at, size_t count, uint64_t *bits);

/* Returns the end of the token of a known maker (docs/HTTP.md, "Tokens") that has the mark at `at`,
 * and sets *from to the first byte to replace. Returns 0 if no token is there. A token at the end
 * of the text may be cut off: it counts if its secret part has at least `open_from` bytes.
 * SIZE_MAX: the text is whole, so a cut token never counts. tokens.c */
size_t cwi_token_end(const uint8_t *text, size_t at, size_t count, size_t open_from, size_t *from);

/* Sets one bit for each byte of the text, 64 in a word: in `words` for letters, digits, bytes from
 * 0x80 on and any of `_.-@+%$#~&\/`; in `varying` for digits and `/`; in `signs` for `"` and the
 * backslash. Bits beyond the text are 0, and so is one more word of each. Returns whether a bit of
 * `signs` is set. */
_Bool cwi_word_marks(const uint8_t *text, size_t count, uint64_t *words, uint64_t *varying,
                     uint64_t *signs);

/* Replaces each byte below 0x20, and 0x7F, by a space. */
void cwi_blank_controls(uint8_t *text, size_t count, _Bool keeps_tabs);

/* True if no scan has anything to look at in the text: it holds no quote, backslash, "--" (of a
 * key's first line), mark or control character, and no colon before a blank or a quote. */
_Bool cwi_is_plain(const uint8_t *text, size_t count);

_Bool cwi_is_ascii(const uint8_t *text, size_t count);

/* True if every byte from `at` on may occur in a token of RFC 9110. */
_Bool cwi_is_token(const uint8_t *text, size_t at, size_t count);

/* Compares the text with a lower-case word and ignores the text's case. Both have `length`
 * bytes. */
_Bool cwi_has(const uint8_t *text, const uint8_t *word, size_t length);

/* Returns the first byte of the item's name (`name=value`) that ends before `at`, at least
 * `least`. */
size_t cwi_item_start(const uint8_t *text, size_t at, size_t least);

/* Names of secrets by their last letters: one word per pair of letters, with one bit for each
 * third. cwi_letter gives 1 to 26 for a letter of either case, 27 for a quote, 0 for anything
 * else. */
enum { CWI_ENDINGS = 1 << 10 };
extern const uint8_t cwi_letters[256];

static inline uint8_t cwi_letter(uint8_t byte) { return cwi_letters[byte]; }

static inline _Bool cwi_may_end(const uint32_t *endings, uint8_t third, uint8_t second,
                                uint8_t last) {
    return endings[cwi_letters[last] << 5 | cwi_letters[second]] >> cwi_letters[third] & 1;
}

/* 0: not a letter, a digit or a byte from 0x80 on. Otherwise, OR it into the byte to get lower
 * case. */
extern const uint8_t cwi_name_bytes[256];

static inline uint8_t cwi_name_byte(uint8_t byte) { return cwi_name_bytes[byte]; }

#endif
