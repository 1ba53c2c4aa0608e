/* jansson, and the one call of it that needs care: whoever reads a text is any thread of a host. */
#include <jansson.h>
#include <locale.h>

/* A text as a tree, which the caller owns; NULL: it is none, and *error says why. Duplicate keys
 * and all that RFC 8259 does not have are refused; "\u0000" is taken. jansson puts the locale's
 * decimal point into its copy of a number and asserts that strtod takes all of it, so this thread
 * reads with the point of "C" meanwhile, whatever the host sets elsewhere. */
static inline json_t *cwi_json_load(const char *bytes, size_t count, json_error_t *error) {
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* glibc's own: takes no memory */
    locale_t before = plain != (locale_t)0 ? uselocale(plain) : (locale_t)0;
    json_t *value = json_loadb(
        bytes, count, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, error);
    if (before != (locale_t)0) uselocale(before);
    if (plain != (locale_t)0) freelocale(plain);
    return value;
}
