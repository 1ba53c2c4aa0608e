/* Fuzz target: captured HTTP exchanges. The input yields an exchange of arbitrary bytes, and one
 * with a secret in a form that docs/HTTP.md promises to replace. A grammar makes it: names, values,
 * nesting, escapes, the text around it, the content type, the cut and the pieces. Neither the
 * secret nor its beginning may then be in a file of the store, and an exchange takes no longer than
 * its length allows. */
#include <ctype.h>
#include <time.h>

#include "fuzz.h"

enum { DOC = 1 << 16, WHOLE = 64 << 10 };

/* No escaping changes it. The search is for its beginning, as it may be cut. */
#define SECRET "zQ7hunterX9kW"
#define BEGIN "zQ7hun"
/* "joe:" and a password. */
#define BASIC "am9lOnpRN2h1bnRlclg5a1c"
#define BASIC_BEGIN "am9lOnpRN2"
#define WEB_TOKEN "eyJhbGciOiJIUzI1NiJ9." SECRET ".c2ln"

static cw_engine *engine;
static char store[200];
static char doc[DOC + 64], other[DOC + 64];
static size_t used;
static uint64_t cut_now;

static void capture(uint64_t bytes_max, uint8_t patterns) {
    static const char *const lists[] = {NULL, "[a-f]{2,5}(x|y)*z\n^q.*$",
                                        "(?i)iban [a-z]{2}[0-9]+"};
    cw_http_options options;
    cw_http_options_init(&options, sizeof options);
    options.enabled = 1;
    options.body_bytes_max = bytes_max;
    options.redact_patterns = lists[patterns % 3];
    PROMISE(cw_http_options_set(engine, &options) == CW_OK);
}

int LLVMFuzzerInitialize(int *count, char ***arguments) {
    (void)count;
    (void)arguments;
    engine = open_small("http", store, sizeof store);
    capture(0, 0);
    return 0;
}

/* ── Looking for it ── */

static void look_into(const char *path) {
    static char bytes[4 << 20];
    int fd = open(path, O_RDONLY);
    if (fd < 0) return; /* removed meanwhile */
    ssize_t n;
    while ((n = read(fd, bytes, sizeof bytes)) > 0) {
        const char *found = memmem(bytes, (size_t)n, BEGIN, sizeof BEGIN - 1);
        if (!found) found = memmem(bytes, (size_t)n, BASIC_BEGIN, sizeof BASIC_BEGIN - 1);
        if (!found) continue;
        fprintf(stderr, "leaked in %s, of:\n%.*s\n", path, (int)used, doc);
        abort();
    }
    close(fd);
}

static void look(const char *folder) {
    DIR *directory = opendir(folder);
    struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        char path[600];
        struct stat status;
        snprintf(path, sizeof path, "%.300s/%.250s", folder, entry->d_name);
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
            lstat(path, &status) != 0)
            continue;
        if (S_ISDIR(status.st_mode)) look(path);
        else look_into(path);
    }
    if (directory) closedir(directory);
}

/* ── The grammar ── */

static void put(const char *bytes) {
    size_t n = strlen(bytes);
    if (n > DOC - used) n = DOC - used;
    memcpy(doc + used, bytes, n);
    used += n;
    doc[used] = 0;
}

#define PICK(in, list) (list)[take8(in) % (sizeof(list) / sizeof *(list))]

static const char *const names[] = {
    "password", "userPassword", "API-Key", "api_key", "Client_Secret", "access_token", "PWD",
    "new_password2", "jwt", "CARD_NUMBER", "session", "X-Auth-Token", "db.password",
    "SAMLResponse"};
static const char *const plain_names[] = {"a", "name", "id", "note", "tokenizer", "value", "x-y"};
static const char *const plain_texts[] = {"hello", "a, b", "100", "x y", "", "v1.2", "to be"};
static const char *const blanks[] = {"", " ", "\n", "\t", "  "};

/* A JSON string; `escapes`: some letters become \u00xx. */
static void put_name(input *in, const char *name) {
    uint8_t escapes = take8(in);
    put("\"");
    for (; *name; name++) {
        char one[8] = {*name, 0};
        if (escapes > 200 && (take8(in) & 3) == 0) sprintf(one, "\\u%04x", (unsigned)*name);
        put(one);
    }
    put("\"");
}

static void plain_value(input *in, int depth);

static void plain_member(input *in, int depth) {
    put_name(in, PICK(in, plain_names));
    put(":");
    put(PICK(in, blanks));
    plain_value(in, depth);
}

static void plain_value(input *in, int depth) {
    static const char *const scalars[] = {"1", "null", "true", "-1.5e3", "[]", "{}", "[1,\"}\"]"};
    static const char *const strings[] = {"\"a \\\"b\\\" \\\\\"", "\"} ]\"", "\"\\n\\u00e9\""};
    uint8_t how = take8(in);
    if (depth > 3 || how < 120) put(PICK(in, scalars));
    else if (how < 160) put(PICK(in, strings));
    else if (how < 200) put_name(in, PICK(in, plain_texts));
    else {
        put("{");
        plain_member(in, depth + 1);
        put("}");
    }
}

static void secret_value(input *in) {
    static const char *const values[] = {
        "\"" SECRET "\"", "\"" SECRET " \\\" \\\\ " SECRET "\"",
        "[\"" SECRET "\",{\"x\":\"]" SECRET "\"}]",
        "{\"a\":\"}\",\"b\":[1,\"" SECRET "\"]}", "\"" SECRET "\""};
    put(PICK(in, values));
}

static void member_of_name(input *in) {
    put_name(in, PICK(in, names));
    put(PICK(in, blanks));
    put(":");
    put(PICK(in, blanks));
    secret_value(in);
}

/* {"name":"password", …, "value":"…"} in either order. */
static void named_members(input *in) {
    static const char *const namings[] = {"name", "key", "Name", "field", "header", "k"};
    static const char *const headers[] = {"Authorization", "X-Auth-Key", "Set-Cookie"};
    static const char *const values[] = {"value", "Value", "val"};
    const char *naming = PICK(in, namings), *value = PICK(in, values);
    uint8_t order = take8(in);
    const char *name = take8(in) & 1 ? PICK(in, headers) : PICK(in, names);
    if (order & 1) {
        put_name(in, value);
        put(":\"" SECRET "\",");
        put(PICK(in, blanks));
        if (order & 2) put("\"enabled\":[true,\"}\"],");
    }
    put_name(in, naming);
    put(":");
    put(PICK(in, blanks));
    put_name(in, name);
    if (order & 1) return;
    put(",");
    put(PICK(in, blanks));
    if (order & 2) put("\"enabled\":{\"a\":\"}\"},");
    put_name(in, value);
    put(" : ");
    secret_value(in);
}

/* A prefix makes text of the document, whose redaction is promised only for a body. */
static bool is_alone;

static void json(input *in) {
    static const char *const before[] = {"", "{\"a\":1}\n", "\xef\xbb\xbf", ")]}',\n", "data: ",
        "f("};
    size_t which = take8(in) % (sizeof before / sizeof *before);
    is_alone = which > 1;
    put(before[which]);
    int depth = take8(in) % 4;
    for (int i = 0; i < depth; i++) {
        put(take8(in) & 1 ? "{" : "[{");
        for (int more = take8(in) % 3; more > 0; more--) {
            plain_member(in, 0);
            put(",");
        }
        put_name(in, "x");
        put(":");
    }
    put("{");
    uint8_t named = take8(in) & 1;
    for (int more = take8(in) % 3; more > 0 && !named; more--) {
        plain_member(in, 0);
        put(",");
    }
    if (named) named_members(in);
    else member_of_name(in);
    /* After a value that waits for its name nothing else may name it. */
    put(",\"last\":1}");
}

static void form(input *in) {
    for (int more = take8(in) % 3; more > 0; more--) put("a=b+c%20d&");
    uint8_t coded = take8(in);
    for (const char *name = PICK(in, names); *name; name++) {
        char one[8] = {*name, 0};
        if (coded > 128 && (take8(in) & 3) == 0) sprintf(one, "%%%02X", (unsigned)*name);
        put(one);
    }
    put("=" SECRET);
    put(take8(in) & 1 ? "&z=1" : "");
}

static void markup(input *in) {
    static const char *const before[] = {"<?xml version=\"1.0\"?>\n", "", "<!-- a -->",
        "<a x='y'>t</a>"};
    /* The last ones are not valid XML. */
    static const char *const forms[] = {
        "<%s>" SECRET "</%s>", "<u:%s Type='t'>" SECRET "</u:%s>", "<b %s=\"" SECRET "\"/>%.0s",
        "<b c='1' %s='" SECRET "'>t</b>%.0s",
        "<add key='%s' value=\"" SECRET "\"/>%.0s",
        "<property name=\"%s\">" SECRET "</property>%.0s",
        "<key>%s</key>\n<string>" SECRET "</string>%.0s",
        "<e key='%s'><value>" SECRET "</value></e>%.0s",
        "<e key=\"%s\"><![CDATA[" SECRET "]]></e>%.0s",
        "<input name=\"%s\" value=\"" SECRET "\">%.0s",
        "<input value='" SECRET "' type=text name=%s>%.0s"};
    char piece[400];
    const char *name = PICK(in, names);
    size_t which = take8(in) % 4, form = take8(in) % (sizeof forms / sizeof *forms);
    is_alone = which == 3 || form > 8;
    put(before[which]);
    put("<doc>");
    snprintf(piece, sizeof piece, forms[form], name, name);
    put(piece);
    put("</doc>");
}

static void lines(input *in) {
    static const char *const forms[] = {
        "%s: " SECRET "\n", "%s: |\n  " SECRET "\n  " SECRET "\n", "%s: >-\n\n    " SECRET "\n",
        "%s:\n  " SECRET "\n", "%s:\n  - " SECRET "\n  - " SECRET "\n", "%s: 'a " SECRET "'\n",
        "%s: \"a\\\"" SECRET "\"\n", "%s: a\r\n " SECRET "\r\n", "- %s: |2\n    " SECRET "\n",
        "  %s:\n    a: " SECRET "\n", "%s = \"" SECRET "\"\n", "{'%s': '" SECRET "', 'a': 1}\n",
        "{%s: \"" SECRET "\"}\n", "login(u: \"a\", %s: \"" SECRET "\")\n"};
    char piece[300];
    if (take8(in) & 1) put("a: b\nlist:\n- x\n");
    snprintf(piece, sizeof piece, PICK(in, forms), PICK(in, names));
    put(piece);
    put("z: 1\n");
}

static void text(input *in) {
    static const char *const forms[] = {
        "a %s=" SECRET " b", "x Bearer " SECRET " y%.0s",
        "Basic " BASIC "%.0s",
        "see https://joe:" SECRET "@host/a%.0s", "at //joe:" SECRET "@host/a%.0s",
        "in " WEB_TOKEN " x%.0s",
        "basic " BASIC "==, b%.0s", "(\"//joe:" SECRET "@host\")%.0s",
        "-----BEGIN RSA PRIVATE KEY-----\n" SECRET "\n" SECRET
        "\n-----END RSA PRIVATE KEY-----\n%.0s",
        "-----BEGIN PRIVATE KEY-----\r\n" SECRET "%.0s"};
    char piece[300];
    snprintf(piece, sizeof piece, PICK(in, forms), PICK(in, names));
    put(piece);
}

static void parts(input *in) {
    char piece[300];
    put("--b0\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\nx\r\n--b0\r\n");
    snprintf(piece, sizeof piece,
        "Content-Disposition: form-data; name=\"%s\"\r\n", PICK(in, names));
    put(piece);
    if (take8(in) & 1) put("Content-Type: text/plain\r\n");
    put("\r\n" SECRET "\r\n--b0--\r\n");
}

/* ── Packing ── */

static void repack(const char *before, const char *(*escape)(unsigned char), const char *behind) {
    size_t n = used;
    memcpy(other, doc, n);
    used = 0;
    put(before);
    for (size_t i = 0; i < n; i++) {
        const char *as = escape((unsigned char)other[i]);
        char one[2] = {other[i], 0};
        put(as ? as : one);
    }
    put(behind);
}

static const char *as_json(unsigned char c) {
    static char code[8];
    if (c == '"') return "\\\"";
    if (c == '\\') return "\\\\";
    if (c == '\n') return "\\n";
    if (c == '/') return "\\/";
    if (c >= 0x20) return NULL;
    sprintf(code, "\\u%04x", c);
    return code;
}

static const char *as_item(unsigned char c) {
    static char code[8];
    if (isalnum(c)) return NULL;
    if (c == ' ') return "+";
    sprintf(code, "%%%02X", c);
    return code;
}

static const char *as_entity(unsigned char c) {
    if (c == '"') return "&quot;";
    if (c == '\'') return "&#39;";
    if (c == '<') return "&lt;";
    if (c == '>') return "&gt;";
    return c == '&' ? "&amp;" : NULL;
}

/* ── Exchanges ── */

static cw_str str(const void *bytes, size_t n) {
    cw_str s = {bytes, n};
    return s;
}
static cw_str word(const char *bytes) { return str(bytes, strlen(bytes)); }

static const char *const types[] = {"", "application/json", "text/plain",
    "text/html; charset=utf-8",
                                    "application/xml", "application/octet-stream"};

static void exchange(input *in, cw_str url, cw_http_header header, cw_str asked, cw_str got,
                     cw_str error) {
    cw_http_header headers[2] = {{word("Content-Type"), word(PICK(in, types))}, header};
    cw_http_request request = {.struct_size = sizeof request, .method = word("POST"), .url = url,
                               .headers = headers, .header_count = 2, .body = asked};
    struct cw_http_response response = {.struct_size = sizeof response, .status = 200,
                                        .headers = headers, .header_count = 2};
    cw_http_outcome outcome = {.struct_size = sizeof outcome, .error = error};
    cw_http_exchange *one = NULL;
    PROMISE(cw_http_begin(engine, &request, &one) == CW_OK);
    PROMISE(cw_http_response(one, &response) == CW_OK);
    size_t first = got.length ? take16(in) % (got.length + 1) : 0;
    PROMISE(cw_http_response_body(one, got.data, first) == CW_OK);
    if (got.length > first)
        PROMISE(cw_http_response_body(one, got.data + first, got.length - first) == CW_OK);
    cw_status status = cw_http_end(&one, &outcome);
    PROMISE(status == CW_OK || status == CW_E_FULL);
}

/* Bytes of the input, without the secret. */
static cw_str free_bytes(input *in, char *room, size_t most) {
    const uint8_t *from;
    size_t n = take_bytes(in, take16(in) % (most + 1), &from);
    memcpy(room, from, n);
    for (size_t i = 0; i < n; i++)
        if (room[i] == BEGIN[0] || room[i] == BASIC_BEGIN[0]) room[i] = '=';
    return str(room, n);
}

static void arbitrary(input *in) {
    static char url[1024], name[64], value[512], asked[4096], got[4096], error[512];
    cw_str address = free_bytes(in, url, 1000);
    if (address.length == 0) address = word("http://h/");
    cw_http_header header = {free_bytes(in, name, 60), free_bytes(in, value, 500)};
    cw_str sent = free_bytes(in, asked, 4000);
    cw_str came = free_bytes(in, got, 4000);
    exchange(in, address, header, sent, came, free_bytes(in, error, 500));
}

static void planted(input *in) {
    static void (*const makers[])(input *) = {json, json, markup, text, lines, form, parts};
    used = 0;
    doc[0] = 0;
    is_alone = false;
    uint8_t form_of = take8(in) % 7;
    makers[form_of](in);
    bool isDocument = form_of < 3 && !is_alone;
    if (isDocument && take8(in) % 4 == 0) repack("<a>", as_entity, "</a>");
    for (int level = take8(in) % 6; level > 2 && form_of < 4 && !is_alone; level--)
        repack("{\"a\":\"", as_json, "\",\"b\":1}");
    if (isDocument && take8(in) % 4 == 0) repack("a=b&data=", as_item, "&c=d");
    uint8_t where = take8(in);
    uint16_t cut = take16(in);
    cw_http_header none = {word("X-A"), word("b")};
    cw_str url = word("http://h.test/"), empty = {NULL, 0};
    if (where > 192 && form_of == 3) {
        none.value = str(doc, used);
        exchange(in, url, none, empty, empty, str(doc, used));
        return;
    }
    uint64_t most = where & 1 && used > 0 ? cut % used + 1 : 0;
    if (most != cut_now) capture(cut_now = most, 0);
    exchange(in, url, none, where & 2 ? str(doc, used) : empty, str(doc, used), empty);
}

static void addresses(input *in) {
    static const char *const forms[] = {
        "https://joe:" SECRET "@h/a?b=c%.0s", "//joe:" SECRET "@h/%.0s", "/a?%s=" SECRET "&b=c#d",
        "http://h/?b=c#%s=" SECRET,
        "http://h/?next=https%%3A%%2F%%2Fy%%2F%%3F%s%%3D" SECRET "%%26b%%3D1",
        "http://h/?key=" SECRET "&x%.0s", "http://h/?code=" SECRET "%.0s"};
    snprintf(doc, DOC, PICK(in, forms), PICK(in, names));
    used = strlen(doc);
    cw_http_header header = {word(take8(in) & 1 ? "Location" : "Referer"), str(doc, used)};
    cw_str empty = {NULL, 0};
    exchange(in, str(doc, used), header, empty, empty, empty);
}

/* Short pieces over and over: quadratic code would take minutes. */
static void repeated(input *in) {
    static char long_text[WHOLE];
    const uint8_t *from;
    size_t n = take_bytes(in, 1 + take8(in) % 40, &from);
    if (n == 0) return;
    for (size_t i = 0; i < sizeof long_text; i++) long_text[i] = (char)from[i % n];
    struct timespec begin, end;
    cw_http_header none = {word("X-A"), word("b")};
    if (memmem(long_text, 4096, BEGIN, sizeof BEGIN - 1)) return;
    if (cut_now != 0) capture(cut_now = 0, 0);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    exchange(in, word("http://h/"), none, str(long_text, sizeof long_text), word(""), word(""));
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    PROMISE(end.tv_sec - begin.tv_sec < 5);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in = {data, size};
    uint8_t how = take8(&in);
    used = 0;
    if (how < 64) {
        uint8_t patterns = take8(&in);
        if (patterns % 3) capture(cut_now = 0, patterns);
        arbitrary(&in);
        if (patterns % 3) capture(cut_now, 0);
    } else if (how < 200) planted(&in);
    else if (how < 240) addresses(&in);
    else repeated(&in);
    look(store);
    return 0;
}
