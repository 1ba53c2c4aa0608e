/* The parser of bodies with and without skipping irrelevant text, under the address and undefined
 * behaviour sanitizers: both must produce the same for each text, whole or damaged. A text ends
 * where its memory ends. Prints the seed of a difference. run.py builds it. */
#include <stdbool.h>
static bool is_narrow;
#define PASS(...) (is_narrow ? pass_16(__VA_ARGS__) : pass_32(__VA_ARGS__))
#include "json.c"
#include <stdio.h>
#include <stdlib.h>

enum { TEXTS = 60000, TEXT_MAX = 20000 };

static uint64_t state, passed_bytes, all_bytes;

static uint32_t below(uint32_t bound) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)((state >> 11) % bound);
}

/* True one time in `many`; 0: never. */
static bool once_in(uint32_t many) { return many && below(many) == 0; }

/* ── Texts ── */

static char text[TEXT_MAX];
static size_t length;
static uint32_t blanks, escapes, others, faults;

static void put(const char *word) {
    size_t count = strlen(word);
    if (length + count > TEXT_MAX) return;
    memcpy(text + length, word, count);
    length += count;
}

#define ONE_OF(...) put(((const char *const[]){__VA_ARGS__})[below( \
        sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))])

static void blank(void) {
    if (once_in(blanks)) ONE_OF(" ", " ", "\n  ", "\t", "  ");
}

static void name(void) {
    put("\"");
    ONE_OF("id", "sku", "price", "token", "password", "name", "key", "type", "value", "text", "a",
           "", "x1", "Kennwort", "user_id", "sessionid", "z<", "<b", "code", "items", "n", "k");
    put("\"");
}

static void string(void) {
    put("\"");
    for (uint32_t i = below(3) ? below(12) : below(90); i > 0; i--) {
        char letter[2] = {(char)(' ' + below(95)), 0};
        if (*letter == '"' || *letter == '\\' || (*letter == '<' && below(20))) *letter = ',';
        put(letter);
        if (once_in(escapes)) ONE_OF("\\n", "\\\"", "\\u00e9", "\\\\", "\\x");
        if (once_in(others)) ONE_OF("\xc3\xa9", "\x1f", "\x7f");
    }
    put("\"");
}

static void number(void) {
    char digits[32];
    snprintf(digits, sizeof digits, below(2) ? "%u" : "0.%u", below(100000));
    if (!faults) return put(digits);
    ONE_OF(digits, digits, "-1", "1e5", "01", "0", "1.2.3", "0.5E-7", "12345678901234567890", "1.",
           ".5", "tru", "nul", "trueX", "]");
}

static void value(int depth);

static void object(int depth) {
    put("{");
    blank();
    for (uint32_t i = 0, count = below(6); i < count; i++) {
        if (i) put(","), blank();
        name(), blank();
        put(once_in(4 * faults) ? "," : ":");
        blank(), value(depth + 1), blank();
    }
    put(once_in(4 * faults) ? "]" : "}");
}

static void list(int depth) {
    put("[");
    blank();
    for (uint32_t i = 0, count = below(8); i < count; i++) {
        if (i) put(","), blank();
        value(depth + 1), blank();
    }
    put("]");
}

static void value(int depth) {
    switch (below(depth > 6 ? 5 : 8)) {
    case 0: case 1: return string();
    case 2: case 3: return number();
    case 4: return ONE_OF("true", "false", "null");
    case 5: case 6: return object(depth);
    default: return list(depth);
    }
}

static void damage(void) {
    if (below(3) == 0) length = below((uint32_t)length + 1);
    for (uint32_t i = below(3) ? 0 : below(4); i > 0 && length > 40; i--) {
        size_t at = below((uint32_t)length - 20), from = below((uint32_t)length - 20);
        if (below(2)) text[at] = "{}[]:,\"\\ 0-.t<\n"[below(15)];
        else memmove(text + at, text + from, below(20));
    }
    /* The parser requires UTF-8. */
    for (size_t i = 0; i < length; i++)
        if ((uint8_t)text[i] >= 0xC0 && (i + 1 == length || (uint8_t)text[i + 1] >> 6 != 2))
            text[i] = 'x';
}

static void make_text(void) {
    blanks = below(3) ? 0 : 1 + below(6);
    escapes = below(3) ? 0 : 5 + below(100);
    others = below(4) ? 0 : 10 + below(100);
    faults = below(3) ? 0 : 5 + below(60);
    length = 0;
    put("{\"a\":[");
    for (uint32_t i = 1 + below(20); i > 0; i--) {
        value(1);
        if (i > 1) put(",");
    }
    put(below(2) ? "]}" : "],\"b\":1}");
    damage();
}

/* ── What a caller does, by the seed ── */

static uint32_t tables[3][CWI_ENDINGS];
static uint64_t pairs[CWI_PAIRS];
static const cwi_json_names names = {tables[0], tables[1], tables[2], pairs};

static void make_tables(void) {
    uint32_t many = below(3);
    for (int i = 0; i < CWI_ENDINGS; i++) {
        int last = i >> 5, second = i & 31;
        bool is_letters = last > 0 && last < 27 && second > 0 && second < 27;
        for (int table = 0; table < 3; table++)
            tables[table][i] = !is_letters              ? (many ? ~0u : 0)
                               : below(40) < 4 * many ? 1u << below(28) | 1
                                                      : 0;
    }
    cwi_json_pairs(&names, pairs);
}

static void mark(cwi_json *json, int event, uint64_t seed) {
    uint64_t chance = (json->name_from * 0x9E3779B97F4A7C15u) ^ seed;
    chance = (chance ^ chance >> 29) * 0xBF58476D1CE4E5B9u;
    chance ^= chance >> 32;
    uint64_t bit = 1ull << json->depth;
    if (event == CWI_JSON_NAME) {
        if (chance % 11 == 0 && !json->secret) json->secret = json->depth + 1;
        if (chance % 13 == 1 && !json->errors) json->errors = json->depth + 1;
        if (chance % 17 == 2) json->schema = json->depth + 1;
        if (chance % 5 == 3) json->watched |= bit, json->told[2] |= bit;
        if (chance % 7 == 1) json->told[3] |= bit;
    } else if (event == CWI_JSON_STRING && !json->secret && json->objects & bit) {
        if (chance % 3 < 2) json->told[chance % 3] |= bit;
    }
}

static bool same(const cwi_json *a, const cwi_json *b, int event) {
    /* Of the open brackets, and of the one closed last. */
    uint64_t open = (2ull << (a->depth + (event == CWI_JSON_CLOSED))) - 2;
    bool has_name = event == CWI_JSON_NAME ||
                    (event == CWI_JSON_STRING && a->objects >> a->depth & 1);
    bool has_value = event == CWI_JSON_STRING || event == CWI_JSON_NUMBER;
    bool is_same = a->at == b->at && a->end == b->end && a->depth == b->depth &&
                   a->secret == b->secret && a->errors == b->errors && a->schema == b->schema &&
                   (a->objects & open) == (b->objects & open) &&
                   (a->watched & open) == (b->watched & open);
    for (int i = 0; i < 4; i++)
        is_same = is_same && (a->told[i] & open & a->objects) == (b->told[i] & open & a->objects);
    for (uint32_t depth = 1; depth <= a->depth; depth++)
        is_same = is_same && a->begins[depth] == b->begins[depth];
    if (has_name)
        is_same = is_same && a->name_from == b->name_from && a->name_to == b->name_to &&
                  a->name_has_escapes == b->name_has_escapes;
    if (has_value) is_same = is_same && a->from == b->from && a->to == b->to;
    if (event == CWI_JSON_STRING) is_same = is_same && a->has_escapes == b->has_escapes;
    return is_same && (event != CWI_JSON_CLOSED || a->from == b->from);
}

static bool compare(uint64_t seed) {
    state = seed * 0x9E3779B97F4A7C15u + 1;
    for (int i = 0; i < 4; i++) below(2);
    make_tables();
    make_text();
    uint8_t *copy = malloc(length ? length : 1);
    memcpy(copy, text, length);
    uint32_t limit = below(4) ? 64 : 1 + below(8);
    cwi_json plain, passing;
    cwi_json_begin(&plain, copy, 0, length, limit);
    plain.next_pass = SIZE_MAX;
    cwi_json_begin(&passing, copy, 0, length, limit);
    int event;
    bool is_same;
    do {
        event = cwi_json_next(&plain, &names);
        is_same = cwi_json_next(&passing, &names) == event && same(&plain, &passing, event);
        mark(&plain, event, seed);
        mark(&passing, event, seed);
    } while (is_same && event > CWI_JSON_BROKEN);
    all_bytes += length;
    passed_bytes += passing.passed;
    free(copy);
    return is_same;
}

int main(void) {
    for (int width = 0; width < 2; width++) {
        is_narrow = width == 0;
        if (!is_narrow && !is_wide()) break;
        for (uint64_t seed = 1; seed <= TEXTS; seed++) {
            if (compare(seed)) continue;
            printf("json: seed %llu of width %d differs: %.*s\n", (unsigned long long)seed,
                   is_narrow ? 16 : 32, (int)length, text);
            return 1;
        }
    }
    double share = 100.0 * (double)passed_bytes / (double)all_bytes;
    printf("json: %d texts, %.0f %% passed over\n", TEXTS, share);
    return share < 5;
}
