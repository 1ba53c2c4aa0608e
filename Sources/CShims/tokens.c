/* Tokens of known makers: a prefix, then as much as the maker writes at least (docs/HTTP.md,
 * "Tokens", with the sources). Each prefix has a mark: the first of the four bytes at which
 * cwi_next_marks stops (scan.c). There is one list for each byte that a mark begins with. */
#include "CScan.h"
#include <string.h>

/* The rest of a token. */
enum {
    LETTERS,      /* letters and digits */
    WORD,         /* also '-', '_' and '.' */
    KEY,          /* WORD with a digit, and 16 letters or digits in a row */
    DOTTED,       /* 16 or more letters, digits, '-' and '_'; '.'; WORD */
    BASE64,       /* also '+', '/' and '=' */
    HEX,
    NUMBER_COLON, /* digits, ':', WORD */
    NUMBER_PATH,  /* digits, '/', WORD */
    SLACK,        /* T…, '/', capital letters and digits, '/', WORD with '/' */
    TEAMS         /* HEX, '/', WORD */
};

typedef struct shape {
    char prefix[18];
    uint8_t length, mark, form, least;
} shape;

#define SHAPE(prefix, mark, form, least) {prefix, sizeof(prefix) - 1, mark, form, least}

static const shape slash[] = {SHAPE("/workflows/T", 0, SLACK, 16),
    SHAPE("/bot", 0, NUMBER_COLON, 30)};
static const shape digit_0[] = {SHAPE("sq0atp-", 2, WORD, 20), SHAPE("sq0csp-", 2, WORD, 20)};
static const shape upper_A[] = {SHAPE("ATATT3", 2, BASE64, 32), SHAPE("AKIA", 0, LETTERS, 12),
    SHAPE("ASIA", 0, LETTERS, 12), SHAPE("ABIA", 0, LETTERS, 12), SHAPE("ACCA", 0, LETTERS, 12),
    SHAPE("ABSK", 0, BASE64, 64), SHAPE("AIza", 0, WORD, 24), SHAPE("ATBB", 0, LETTERS, 24)};
static const shape upper_C[] = {SHAPE("GOCSPX-", 2, WORD, 20), SHAPE("ATCTT3", 2, BASE64, 32)};
static const shape upper_E[] = {SHAPE("AGE-SECRET-KEY-1", 5, LETTERS, 40)};
static const shape upper_G[] = {SHAPE("GR1348941", 0, WORD, 16)};
static const shape upper_H[] = {SHAPE("HRKU-", 0, WORD, 32)};
static const shape upper_N[] = {SHAPE("NRAK-", 0, LETTERS, 20), SHAPE("NRII-", 0, WORD, 20),
    SHAPE("NRJS-", 0, LETTERS, 16)};
static const shape upper_P[] = {SHAPE("PMAK-", 0, WORD, 32)};
static const shape upper_S[] = {SHAPE("SG.", 0, DOTTED, 16)};
static const shape lower_c[] = {SHAPE("/services/T", 6, SLACK, 16),
    SHAPE("dt0c01.", 3, WORD, 48)};
static const shape lower_d[] = {SHAPE("dapi", 0, HEX, 32)};
static const shape lower_g[] = {SHAPE("/IncomingWebhook/", 8, TEAMS, 30),
    SHAPE("/triggers/T", 4, SLACK, 16), SHAPE("rubygems_", 4, HEX, 32),
    SHAPE("glagent-", 3, WORD, 12), SHAPE("glsoat-", 0, WORD, 12), SHAPE("glffct-", 0, WORD, 12),
    SHAPE("glpat-", 0, WORD, 12), SHAPE("glptt-", 0, WORD, 12), SHAPE("glcbt-", 0, WORD, 12),
    SHAPE("glimt-", 0, WORD, 12), SHAPE("gloas-", 0, WORD, 12), SHAPE("gldt-", 0, WORD, 12),
    SHAPE("glft-", 0, WORD, 12), SHAPE("glrt-", 0, WORD, 12), SHAPE("glsa_", 0, WORD, 24),
    SHAPE("ghp_", 0, WORD, 16), SHAPE("gho_", 0, WORD, 16), SHAPE("ghu_", 0, WORD, 16),
    SHAPE("ghs_", 0, WORD, 16), SHAPE("ghr_", 0, WORD, 16), SHAPE("glc_", 0, BASE64, 32),
    SHAPE("gsk_", 0, LETTERS, 40)};
static const shape lower_h[] = {SHAPE("/webhooks/", 4, NUMBER_PATH, 30),
    SHAPE("hvs.", 0, WORD, 24), SHAPE("hvb.", 0, WORD, 24), SHAPE("hf_", 0, LETTERS, 20)};
static const shape lower_i[] = {SHAPE("api_org_", 2, LETTERS, 30),
    SHAPE("lin_api_", 1, LETTERS, 32)};
static const shape lower_k[] = {SHAPE("dckr_oat_", 2, WORD, 20), SHAPE("xkeysib-", 1, WORD, 32),
    SHAPE("tskey-", 2, WORD, 16)};
static const shape lower_n[] = {SHAPE("sntrys_", 1, BASE64, 40), SHAPE("sntryu_", 1, HEX, 40),
    SHAPE("npm_", 0, LETTERS, 20), SHAPE("ntn_", 0, LETTERS, 32)};
static const shape lower_o[] = {SHAPE("dop_v1_", 1, WORD, 16), SHAPE("doo_v1_", 1, WORD, 16),
    SHAPE("dor_v1_", 1, WORD, 16)};
static const shape lower_p[] = {SHAPE("pscale_oauth_", 0, WORD, 24),
    SHAPE("pscale_tkn_", 0, WORD, 24), SHAPE("pscale_pw_", 0, WORD, 24),
    SHAPE("dckr_pat_", 5, WORD, 20), SHAPE("pypi-AgE", 0, WORD, 16), SHAPE("shpat_", 2, WORD, 16),
    SHAPE("shpss_", 2, WORD, 16), SHAPE("dp.pt.", 1, LETTERS, 32), SHAPE("dp.st.", 1, WORD, 32),
    SHAPE("dp.ct.", 1, LETTERS, 32), SHAPE("dp.sa.", 1, LETTERS, 32),
    SHAPE("pplx-", 1, LETTERS, 40)};
static const shape lower_r[] = {SHAPE("rk_live_", 0, WORD, 8), SHAPE("rk_test_", 0, WORD, 8),
    SHAPE("rk_prod_", 0, WORD, 8)};
static const shape lower_s[] = {SHAPE("sk-svcacct-", 0, WORD, 16),
    SHAPE("sk-admin-", 0, WORD, 16), SHAPE("sk_live_", 0, WORD, 8), SHAPE("sk_test_", 0, WORD, 8),
    SHAPE("sk_prod_", 0, WORD, 8), SHAPE("sk-proj-", 0, WORD, 16), SHAPE("sk-ant-", 0, WORD, 16),
    SHAPE("sk-or-v1-", 0, WORD, 16), SHAPE("sk-litellm-", 0, WORD, 16),
    SHAPE("sk-lf-", 0, WORD, 16),
    SHAPE("shpca_", 0, WORD, 16), SHAPE("shppa_", 0, WORD, 16), SHAPE("sbp_", 0, HEX, 32),
    SHAPE("sk-", 0, KEY, 20)};
static const shape lower_u[] = {SHAPE("github_pat_", 4, WORD, 16)};
static const shape lower_x[] = {SHAPE("xoxb-", 0, WORD, 8), SHAPE("xoxp-", 0, WORD, 8),
    SHAPE("xoxa-", 0, WORD, 8), SHAPE("xoxr-", 0, WORD, 8), SHAPE("xoxs-", 0, WORD, 8),
    SHAPE("xoxo-", 0, WORD, 8), SHAPE("xoxe.", 0, WORD, 8), SHAPE("xoxe-", 0, WORD, 8),
    SHAPE("xapp-", 0, WORD, 16)};
static const shape lower_y[] = {SHAPE("ya29.", 0, WORD, 16)};

/* ── The rest of a token ── */

enum { DIGIT = 1, LOW_HEX = 2, UPPER = 4, LOWER = 8, SIGN = 16, DOT = 32, MORE = 64 };
enum {
    ALNUM = DIGIT | UPPER | LOWER,
    IN_WORD = ALNUM | SIGN | DOT,
    IN_BASE64 = IN_WORD | MORE
};

static const uint8_t kinds[256] = {
    ['0' ... '9'] = DIGIT, ['A' ... 'F'] = UPPER | LOW_HEX, ['G' ... 'Z'] = UPPER,
    ['a' ... 'f'] = LOWER | LOW_HEX, ['g' ... 'z'] = LOWER, ['-'] = SIGN, ['_'] = SIGN,
    ['.'] = DOT, ['+'] = MORE, ['/'] = MORE, ['='] = MORE};

static size_t run(const uint8_t *text, size_t at, size_t count, uint8_t of) {
    while (at < count && kinds[text[at]] & of) at++;
    return at;
}

/* A part of at least `least` bytes, then a byte: the offset after it. `count` + 1: the text ends
 * before. 0: something else is there. */
static size_t part(const uint8_t *text, size_t at, size_t count, uint8_t of, size_t least,
                   uint8_t then) {
    size_t end = run(text, at, count, of);
    if (end == count) return count + 1;
    return end - at >= least && text[end] == then ? end + 1 : 0;
}

/* Where the last part begins, for the forms that have several; otherwise `at`. */
static size_t last_part(const uint8_t *text, size_t at, size_t count, uint8_t form) {
    switch (form) {
    case NUMBER_COLON: return part(text, at, count, DIGIT, 5, ':');
    case NUMBER_PATH: return part(text, at, count, DIGIT, 15, '/');
    case TEAMS: return part(text, at, count, DIGIT | LOW_HEX, 32, '/');
    case DOTTED: return part(text, at, count, ALNUM | SIGN, 16, '.');
    case SLACK:
        at = part(text, at, count, DIGIT | UPPER, 6, '/');
        return at && at <= count ? part(text, at, count, DIGIT | UPPER, 6, '/') : at;
    default: return at;
    }
}

enum { KEY_LOOKED_AT = 256 };

static _Bool is_key(const uint8_t *text, size_t at, size_t end, size_t least) {
    _Bool has_digit = 0, has_run = 0;
    for (size_t row = 0; at < end; at++) {
        has_digit = has_digit || kinds[text[at]] & DIGIT;
        row = kinds[text[at]] & ALNUM ? row + 1 : 0;
        has_run = has_run || row >= least;
    }
    return has_digit && has_run;
}

static size_t shape_end(const shape *one, const uint8_t *text, size_t at, size_t count,
                        size_t open_from) {
    size_t last = last_part(text, at, count, one->form);
    if (!last || last > count) return last && !open_from ? count : 0;
    uint8_t of = one->form == HEX ? DIGIT | LOW_HEX
                 : one->form == LETTERS ? ALNUM
                 : one->form == BASE64 || one->form == SLACK ? IN_BASE64 : IN_WORD;
    /* A text may begin one key after another: each is looked at for as many bytes only. */
    size_t far = one->form == KEY && count - last > KEY_LOOKED_AT ? last + KEY_LOOKED_AT : count;
    size_t end = run(text, last, far, of);
    _Bool is_open = end == count && end - last >= open_from;
    if (end - last < one->least && !is_open) return 0;
    if (one->form == KEY && !(is_open && !open_from) && !is_key(text, last, end, is_open ? 1 : 16))
        return 0;
    return run(text, end, count, of & MORE ? IN_BASE64 : IN_WORD);
}

/* Whether a token may begin there: after no letter or digit of ASCII, except the last of an escape
 * (%20, \n, \x20, \u0020). */
static _Bool may_begin(const uint8_t *text, size_t at) {
    if (!at || !(kinds[text[at - 1]] & ALNUM)) return 1;
    if (at >= 2 && text[at - 2] == '\\') return 1;
    size_t digits = 0;
    while (digits < 4 && digits < at && kinds[text[at - 1 - digits]] & (DIGIT | LOW_HEX)) digits++;
    if (digits >= 2 && at >= 3 && text[at - 3] == '%') return 1;
    if (digits >= 2 && at >= 4 && text[at - 4] == '\\' && text[at - 3] == 'x') return 1;
    return digits == 4 && at >= 6 && text[at - 6] == '\\' && text[at - 5] == 'u';
}

static size_t among(const shape *shapes, size_t shape_count, const uint8_t *text, size_t at,
                    size_t count, size_t open_from, size_t *from) {
    for (const shape *one = shapes; one < shapes + shape_count; one++) {
        if (at < one->mark || count - (at - one->mark) < one->length) continue;
        size_t start = at - one->mark, after = start + one->length;
        if (memcmp(text + start, one->prefix, one->length) != 0) continue;
        _Bool is_path = one->prefix[0] == '/';
        if (!is_path && !may_begin(text, start)) continue;
        /* In an address, the path before the secret is kept. Slack's secret includes the T. */
        size_t secret = after - (one->form == SLACK);
        size_t end = shape_end(one, text, is_path ? secret : after, count, open_from);
        if (!end) continue;
        *from = is_path ? secret : start;
        return end;
    }
    return 0;
}

#define AMONG(shapes)                                                                             \
    among(shapes, sizeof(shapes) / sizeof *(shapes), text, at, count, open_from, from)

size_t cwi_token_end(const uint8_t *text, size_t at, size_t count, size_t open_from,
                     size_t *from) {
    if (at >= count) return 0;
    switch (text[at]) {
    case '/': return AMONG(slash);
    case '0': return AMONG(digit_0);
    case 'A': return AMONG(upper_A);
    case 'C': return AMONG(upper_C);
    case 'E': return AMONG(upper_E);
    case 'G': return AMONG(upper_G);
    case 'H': return AMONG(upper_H);
    case 'N': return AMONG(upper_N);
    case 'P': return AMONG(upper_P);
    case 'S': return AMONG(upper_S);
    case 'c': return AMONG(lower_c);
    case 'd': return AMONG(lower_d);
    case 'g': return AMONG(lower_g);
    case 'h': return AMONG(lower_h);
    case 'i': return AMONG(lower_i);
    case 'k': return AMONG(lower_k);
    case 'n': return AMONG(lower_n);
    case 'o': return AMONG(lower_o);
    case 'p': return AMONG(lower_p);
    case 'r': return AMONG(lower_r);
    case 's': return AMONG(lower_s);
    case 'u': return AMONG(lower_u);
    case 'x': return AMONG(lower_x);
    case 'y': return AMONG(lower_y);
    default: return 0;
    }
}
