/* Looking for bytes that matter to redaction, a block of 64 at a time: a bit for each that counts.
 * Everything is read within [text, text + count). Any thread. scan.c */
#ifndef CORDWOOD_SCAN_H
#define CORDWOOD_SCAN_H
#include <stddef.h>
#include <stdint.h>

/* Where those bytes stand next from `at` on; count: nowhere. Linear in both (memmem). */
size_t cwi_find(const uint8_t *text, size_t at, size_t count, const void *wanted, size_t length);

/* The first block from `at` on, a multiple of 64, that has any, and in `bits` which; count: none.
 * Where a secret may be told: '=', '%', "yJ" (of "eyJ"), "//", and what may be how a token of a
 * known maker, "Bearer", "Basic" or the end of "PRIVATE KEY" begins: */
size_t cwi_next_marks(const uint8_t *text, size_t at, size_t count, uint64_t *bits);

/* What is below 0x20, and 0x7F, becomes a space. */
void cwi_blank_controls(uint8_t *text, size_t count, _Bool keeps_tabs);

/* True where no scan has anything to look at in the text: no quote, backslash, "--" (of a key's
 * first line), mark or control character, and no colon before a blank or a quote. */
_Bool cwi_is_plain(const uint8_t *text, size_t count);

_Bool cwi_is_ascii(const uint8_t *text, size_t count);

/* True where all bytes from `at` on are those of a token of RFC 9110. */
_Bool cwi_is_token(const uint8_t *text, size_t at, size_t count);

/* True where a text begins with a word, which is in lower case, whatever its own case; both have
 * `length` bytes. */
_Bool cwi_has(const uint8_t *text, const uint8_t *word, size_t length);

/* Names of secrets by their last letters: for each two a word, in it a bit for each third.
 * cwi_letter: 1 to 26, a letter, whatever its case; 27, a quote; 0, anything else. */
enum { CWI_ENDINGS = 1 << 10 };
extern const uint8_t cwi_letters[256];

static inline uint8_t cwi_letter(uint8_t byte) { return cwi_letters[byte]; }

static inline _Bool cwi_may_end(const uint32_t *endings, uint8_t third, uint8_t second,
                                uint8_t last) {
    return endings[cwi_letters[last] << 5 | cwi_letters[second]] >> cwi_letters[third] & 1;
}

/* 0: no letter, digit or byte from 0x80 on. Or'ed to the byte: in lower case. */
extern const uint8_t cwi_name_bytes[256];

static inline uint8_t cwi_name_byte(uint8_t byte) { return cwi_name_bytes[byte]; }

#endif
