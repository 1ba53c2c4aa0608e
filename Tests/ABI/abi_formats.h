/* Deferred formatting: readers must produce what printf would have printed at once. abi.c includes
 * it. Formats are generated. snprintf prints each directive by itself, as printf does. */
#include <math.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <wchar.h>

static uint64_t random_state;
static uint64_t random_next(void) { /* splitmix64 */
    uint64_t z = (random_state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}
static unsigned below(unsigned bound) { return (unsigned)(random_next() % bound); }
static bool one_in(unsigned n) { return below(n) == 0; }

enum { FORMATS = 100000, FORMAT_BYTES = 512, TEXT_BYTES = 16384, PIECES_MAX = 6 };

typedef struct {
    char format[FORMAT_BYTES], text[TEXT_BYTES];
    size_t format_used, text_used;
    uint8_t classes[CW_ARGUMENTS_MAX + 1];
    cw_arg arguments[CW_ARGUMENTS_MAX + 1];
    unsigned count;
} generated;

static void pass(generated *g, uint8_t class, cw_arg value) {
    g->classes[g->count] = class;
    g->arguments[g->count++] = value;
}

static void add_text(generated *g, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int n = vsnprintf(g->text + g->text_used, TEXT_BYTES - g->text_used, format, list);
    va_end(list);
    if (n > 0) g->text_used += (size_t)n;
}

/* The format of one directive, with the values of its stars. */
#define ADD(value)                                                                                 \
    (stars == 0   ? add_text(g, one, value)                                                        \
     : stars == 1 ? add_text(g, one, star[0], value)                                               \
                  : add_text(g, one, star[0], star[1], value))

static double some_double(void) {
    static const double odd[] = {0.0, -0.0, 1.0, -1.5, 1e308, -1e-308, 5e-324, 0.1, 123456789.125};
    switch (below(6)) {
    case 0: return odd[below(sizeof odd / sizeof *odd)];
    case 1: return one_in(2) ? NAN : (one_in(2) ? INFINITY : -INFINITY);
    case 2: return (double)(int64_t)random_next();
    default: return ((double)below(2000000) - 1000000) / (1 + below(1000));
    }
}

static uint64_t some_integer(void) {
    switch (below(4)) {
    case 0: return below(200);
    case 1: return (uint64_t)-(int64_t)below(200);
    case 2: return 1ull << below(64);
    default: return random_next();
    }
}

static void directive(generated *g) {
    static const char *strings[] = {"", "a", "text", "with space", "\xC3\xA4\xE2\x82\xAC",
                                    "a longer string that is wider than most widths are", NULL};
    static const char letters[] = "diouxXcsSpaAeEfFgGm%";
    char one[64] = "%";
    size_t n = 1;
    int stars = 0, star[2];
    char letter = letters[below(sizeof letters - 1)];
    if (letter == 'S') letter = 's'; /* %S is not C11; %ls is tested by hand */
    bool isInteger = strchr("diouxX", letter) != NULL;
    bool isDouble = strchr("aAeEfFgG", letter) != NULL;
    if (letter == '%') {
        strcpy(g->format + g->format_used, "%%");
        g->format_used += 2;
        add_text(g, "%%");
        return;
    }
    /* Only flags that C defines for the conversion. */
    if (one_in(4)) one[n++] = '-';
    if (one_in(5) && (isDouble || letter == 'd' || letter == 'i')) one[n++] = '+';
    if (one_in(6) && (isDouble || letter == 'd' || letter == 'i')) one[n++] = ' ';
    if (one_in(6) && (isDouble || strchr("oxX", letter))) one[n++] = '#';
    if (one_in(5) && (isDouble || isInteger)) one[n++] = '0';
    if (one_in(3)) {
        if (one_in(3)) {
            star[stars] = (int)below(60) - 20;
            one[n++] = '*';
            pass(g, CW_ARG_INT, cw_arg_i(star[stars++]));
        } else {
            n += (size_t)sprintf(one + n, "%u", 1 + below(40));
        }
    }
    if (one_in(3) && letter != 'c' && letter != 'p') {
        one[n++] = '.';
        if (one_in(3)) {
            star[stars] = (int)below(40) - 5;
            one[n++] = '*';
            pass(g, CW_ARG_INT, cw_arg_i(star[stars++]));
        } else if (!one_in(5)) {
            n += (size_t)sprintf(one + n, "%u", below(30));
        }
    }
    static const char *lengths[] = {"", "", "hh", "h", "l", "ll", "j", "z", "t"};
    unsigned length = isInteger ? below(9) : 0;
    bool isLong = isDouble && one_in(4);
    if (isInteger) n += (size_t)sprintf(one + n, "%s", lengths[length]);
    if (isLong) one[n++] = 'L';
    one[n++] = letter;
    one[n] = 0;
    if (isInteger && length < 4) {
        int value = (int)some_integer();
        pass(g, CW_ARG_INT, cw_arg_i(value));
        ADD(value);
    } else if (isInteger) {
        long long value = (long long)some_integer();
        pass(g, CW_ARG_LONG, cw_arg_i(value));
        ADD(value);
    } else if (isLong) {
        long double value = (long double)some_double() / 3;
        pass(g, CW_ARG_LONG_DOUBLE, cw_arg_l(value));
        ADD(value);
    } else if (isDouble) {
        double value = some_double();
        pass(g, CW_ARG_DOUBLE, cw_arg_d(value));
        ADD(value);
    } else if (letter == 'c') {
        int value = 32 + (int)below(95);
        pass(g, CW_ARG_INT, cw_arg_i(value));
        ADD(value);
    } else if (letter == 's') {
        const char *value = strings[below(sizeof strings / sizeof *strings)];
        pass(g, CW_ARG_POINTER, cw_arg_p(value));
        ADD(value);
    } else if (letter == 'p') {
        void *value = one_in(4) ? NULL : (void *)(uintptr_t)random_next();
        pass(g, CW_ARG_POINTER, cw_arg_p(value));
        ADD(value);
    } else { /* m */
        errno = 2;
        if (stars == 0) add_text(g, one);
        else if (stars == 1) add_text(g, one, star[0]);
        else add_text(g, one, star[0], star[1]);
    }
    memcpy(g->format + g->format_used, one, n);
    g->format_used += n;
}

static void generate(generated *g, uint64_t seed) {
    random_state = seed;
    memset(g, 0, sizeof *g);
    for (unsigned pieces = below(PIECES_MAX + 1); pieces > 0; pieces--) {
        static const char *words[] = {"", " ", "order ", "=", "\n", "\xFF", "|"};
        const char *word = words[below(7)];
        g->format_used += (size_t)sprintf(g->format + g->format_used, "%s", word);
        add_text(g, "%s", word);
        directive(g);
    }
    /* Each format has a place of its own. */
    g->format_used += (size_t)sprintf(g->format + g->format_used, " #%llu",
                                      (unsigned long long)seed);
    add_text(g, " #%llu", (unsigned long long)seed);
    g->format[g->format_used] = 0;
}

static uint64_t formats_seen;
static void formats_each(const cw_record_view *view, void *user) {
    generated *g = user;
    generate(g, formats_seen++);
    if (view->message.length == g->text_used &&
        memcmp(view->message.data, g->text, g->text_used) == 0)
        return;
    if (failures++ < 10)
        printf("format %llu \"%s\": read \"%.*s\", printf says \"%.*s\"\n",
               (unsigned long long)formats_seen - 1, g->format, (int)view->message.length,
               view->message.data, (int)g->text_used, g->text);
}

static void case_formats(void) { /* more places than the table holds: the rest carry their own */
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "formats");
    generated *g = malloc(sizeof *g);
    cw_site *sites = calloc(FORMATS, sizeof *sites);
    for (uint64_t i = 0; i < FORMATS; i++) {
        generate(g, i);
        sites[i] = (cw_site){.format = g->format, .file = "formats.c", .function = "main",
                             .arguments = g->classes, .line = (uint32_t)i + 1};
        errno = 2;
        EXPECT(CW_OK, cw_site_write(log, CW_LEVEL_INFO, &sites[i], g->arguments));
        EXPECT(2, errno);
    }
    EXPECT(FORMATS, read_logs(formats_each, g));
    EXPECT(CW_OK, cw_close(&engine, 20000));
    formats_seen = 0;
    EXPECT(FORMATS, read_logs(formats_each, g)); /* from archives */
    EXPECT(FORMATS, formats_seen);
    free(sites);
    free(g);
}

/* ── By hand ── */

typedef struct {
    const char *message, *function;
    uint32_t line, level;
} macro_wanted;
static macro_wanted macro_list[80];
static size_t macro_count, macro_seen;

static void macro_each(const cw_record_view *view, void *user) {
    (void)user;
    macro_wanted *wanted = &macro_list[macro_seen++];
    HOLDS(view->message.length == strlen(wanted->message) &&
          memcmp(view->message.data, wanted->message, view->message.length) == 0);
    if (failures && view->message.length)
        printf("read \"%.*s\" for \"%s\"\n", (int)view->message.length, view->message.data,
               wanted->message);
    EXPECT(wanted->line, view->line);
    EXPECT(wanted->level, view->level);
    HOLDS(strlen(wanted->function) == view->function.length &&
          memcmp(wanted->function, view->function.data, view->function.length) == 0);
    HOLDS(view->file.length >= 13 &&
          memcmp(view->file.data + view->file.length - 13, "abi_formats.h", 13) == 0);
}

/* One expansion, so that both have the same line. */
#define LOGGED(macro, level_, wanted, ...)                                                         \
    do {                                                                                           \
        macro_list[macro_count++] = (macro_wanted){(wanted), __func__, __LINE__, (level_)};        \
        macro(log, __VA_ARGS__);                                                                   \
    } while (0)
#define AT_11(log, ...) CW_LOG(log, 11, __VA_ARGS__)
#define EVERY_3(log, ...) CW_LOG_EVERY_N(log, CW_LEVEL_INFO, 3, __VA_ARGS__)
#define EVERY_MINUTE(log, ...) CW_LOG_EVERY_MS(log, CW_LEVEL_INFO, 60000, __VA_ARGS__)

enum shade { DARK, LIGHT = 7 };
static int evaluated(void) {
    printf("an argument of a disabled record was evaluated\n");
    failures++;
    return 1;
}

/* The first record of a place is a call. Later ones are inlined if they can be. */
static void log_by_hand(cw_logger *log) {
    unsigned char small = 250;
    short negative = -3;
    float third = 0.25f;
    bool yes = true;
    char buffer[8] = "buffer";
    const volatile int changing = 5;
    wchar_t wide[] = L"w\u00e4ide";
    char *text = NULL;
    LOGGED(CW_INFO, 9, "constant", "constant");
    LOGGED(CW_WARN, 13, "100%", "100%%");
    LOGGED(CW_ERROR, 17, "7 2.500000 who", "%d %f %s", 7, 2.5, "who");
    LOGGED(CW_NOTICE, 10, "250 -3 0.25 1 buffer 5", "%hhu %hd %.2f %d %s %d", small, negative,
           third, yes, buffer, changing);
    LOGGED(CW_FATAL, 21, "7 (null)|(nil)", "%d %s|%p", LIGHT, text, (void *)text);
    LOGGED(AT_11, 11, "4 -1 1.5 \xE2\x82\xAC", "%zu %lld %Lg %lc", sizeof(int), -1LL, 1.5L,
           (wint_t)0x20AC);
    LOGGED(CW_INFO, 9, "w\xC3\xA4ide|w\xC3\xA4i|   w\xC3\xA4ide|x  |",
           "%ls|%.4ls|%9ls|%-3ls|", wide, wide, wide, L"x");
    LOGGED(CW_INFO, 9, "two 1", "%2$s %1$d", 1, "two");
    LOGGED(CW_INFO, 9, "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16",
           "%d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
           12, 13, 14, 15, 16);
}

static void case_macros(void) {
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "macros");
    for (int i = 0; i < 3; i++) log_by_hand(log);
    CW_DEBUG(log, "%d", evaluated());
    if (1) CW_TRACE(log, "a statement %d", evaluated());
    else HOLDS(0);
    for (int i = 0; i < 7; i++) {
        static const char *const said[] = {"every 0", "", "", "every 3", "", "", "every 6"};
        LOGGED(EVERY_3, 9, said[i], "every %d", i);
        macro_count -= i % 3 != 0;
    }
    for (int i = 0; i < 100; i++) {
        LOGGED(EVERY_MINUTE, 9, "once", "%s", "once");
        macro_count -= i > 0;
    }
    CW_INFO((cw_logger *)NULL, "%d", evaluated());
    for (int archived = 0; archived < 2; archived++) {
        macro_seen = 0;
        EXPECT(macro_count, read_logs(macro_each, NULL));
        if (!archived) EXPECT(CW_OK, cw_close(&engine, 60000));
    }
}

static void count_nothing(const cw_record_view *view, void *user) {
    (void)view, (void)user;
}

static void case_format_refused(void) { /* data as a format, and formats that do not fit */
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "refused");
    put(log, "%n%s%d is text in cw_write");
    static const uint8_t none[] = {CW_ARG_NONE}, number[] = {CW_ARG_INT, CW_ARG_NONE};
    static const uint8_t real[] = {CW_ARG_DOUBLE, CW_ARG_NONE};
    const cw_arg argument[2] = {cw_arg_i(1), cw_arg_u(0)};
    static cw_site sites[] = {
        {.format = "%n", .arguments = number, .line = 1},
        {.format = "%d %d", .arguments = number, .line = 2},
        {.format = "%s", .arguments = number, .line = 3},
        {.format = "%d", .arguments = real, .line = 4},
        {.format = "%d", .arguments = none, .line = 5},
        {.format = "100% sure", .arguments = none, .line = 6},
        {.format = "%1$d %d", .arguments = number, .line = 7},
        {.format = "%", .arguments = none, .line = 8},
    };
    size_t count = sizeof sites / sizeof *sites;
    for (size_t i = 0; i < count; i++) {
        EXPECT(CW_E_ARGUMENT, cw_site_write(log, CW_LEVEL_INFO, &sites[i], argument));
        NAMED("format");
        EXPECT(CW_OK, cw_site_write(log, CW_LEVEL_INFO, &sites[i], argument)); /* reported once */
    }
    EXPECT(CW_E_ARGUMENT, cw_site_write(log, CW_LEVEL_INFO, NULL, argument));
    EXPECT(CW_E_ARGUMENT, cw_site_write(NULL, CW_LEVEL_INFO, &sites[0], argument));
    EXPECT(CW_E_LEVEL, cw_site_write(log, 77, &sites[0], argument));
    EXPECT(CW_DISABLED, cw_site_write(log, 1, &sites[0], argument));
    EXPECT(1 + 2 * count, read_logs(count_nothing, NULL));
    EXPECT(CW_OK, cw_close(&engine, 60000));
    cw_site late = {.format = "late", .arguments = none};
    EXPECT(CW_E_CLOSED, cw_site_write(log, CW_LEVEL_INFO, &late, argument));
}

/* ── The texts of a binding ── */

static unsigned site_texts;
static void site_text_each(const cw_record_view *view, void *user) {
    (void)user;
    static const struct {
        const char *text;
        size_t length;
    } wanted[] = {{"{} %d\0end", 9}, {"", 0}, {"", 0}};
    size_t length = site_texts < 3 ? wanted[site_texts].length : CW_STRING_MAX;
    EXPECT(length, view->message.length);
    if (site_texts < 3) HOLDS(memcmp(wanted[site_texts].text, view->message.data, length) == 0);
    EXPECT(site_texts == 4, (view->flags & CW_VIEW_TRUNCATED) != 0);
    EXPECT(7, view->line);
    EXPECT(4, view->function.length);
    site_texts++;
}

static void case_site_text(void) { /* byte for byte; a place with other arguments is refused */
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "text");
    static const uint8_t text[8] = {CW_ARG_TEXT}, two[8] = {CW_ARG_TEXT, CW_ARG_TEXT};
    static const uint8_t number[8] = {CW_ARG_INT}, none[8] = {CW_ARG_NONE};
    static cw_site site = {.format = "{}", .file = "t.py", .function = "main", .line = 7,
                           .arguments = text, .style = CW_STYLE_BRACES};
    char *large = calloc(1, CW_STRING_MAX + 1);
    EXPECT(CW_OK, cw_site_text(log, CW_LEVEL_INFO, &site, "{} %d\0end", 9));
    EXPECT(CW_OK, cw_site_text(log, CW_LEVEL_INFO, &site, "none of it", 0));
    EXPECT(CW_OK, cw_site_text(log, CW_LEVEL_INFO, &site, NULL, 0));
    EXPECT(CW_OK, cw_site_text(log, CW_LEVEL_INFO, &site, large, CW_STRING_MAX));
    EXPECT(CW_OK, cw_site_text(log, CW_LEVEL_INFO, &site, large, CW_STRING_MAX + 1));
    EXPECT(CW_E_ARGUMENT, cw_site_text(log, CW_LEVEL_INFO, &site, NULL, 1));
    NAMED("message");
    EXPECT(CW_E_ARGUMENT, cw_site_text(log, CW_LEVEL_INFO, NULL, "x", 1));
    EXPECT(CW_E_ARGUMENT, cw_site_text(NULL, CW_LEVEL_INFO, &site, "x", 1));
    EXPECT(CW_E_LEVEL, cw_site_text(log, 77, &site, "x", 1));
    EXPECT(CW_DISABLED, cw_site_text(log, CW_LEVEL_TRACE, &site, "x", 1));
    const uint8_t *lists[] = {two, number, none, NULL};
    for (size_t i = 0; i < 4; i++) {
        cw_site other = {.format = "{}", .arguments = lists[i], .style = CW_STYLE_BRACES};
        EXPECT(CW_E_ARGUMENT, cw_site_text(log, CW_LEVEL_INFO, &other, "x", 1));
    }
    EXPECT(5, read_logs(site_text_each, NULL));
    EXPECT(CW_OK, cw_close(&engine, 20000));
    site_texts = 0;
    EXPECT(5, read_logs(site_text_each, NULL));
    free(large);
}

typedef struct {
    size_t longest;
    uint32_t flags;
} long_tally;
static void long_each(const cw_record_view *view, void *user) {
    long_tally *t = user;
    if (view->message.length > t->longest) t->longest = view->message.length;
    t->flags |= view->flags;
}

static void case_format_strings(void) { /* not a byte beyond a precision; long: whole or cut */
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "strings");
    long page = sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, (size_t)page * 2, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(memory + page, (size_t)page, PROT_NONE);
    char *end = memory + page - 5;
    memcpy(end, "guard", 5);
    CW_INFO(log, "%.5s|%.*s|%.*s", end, 5, end, 2, end + 3);
    wchar_t *wide_end = (wchar_t *)(void *)(memory + page) - 2;
    wide_end[0] = L'o';
    wide_end[1] = L'k';
    CW_INFO(log, "%.2ls", wide_end);
    long_tally t = {0};
    EXPECT(2, read_logs(long_each, &t));
    EXPECT(14, t.longest);
    EXPECT(0, t.flags & CW_VIEW_TRUNCATED);
    char *large = malloc(CW_STRING_MAX + 2);
    memset(large, 'x', CW_STRING_MAX + 1);
    large[CW_STRING_MAX + 1] = 0;
    CW_INFO(log, "%s", large + CW_STRING_MAX - 65535); /* 64 KiB */
    t = (long_tally){0};
    EXPECT(3, read_logs(long_each, &t));
    EXPECT(65536, t.longest);
    EXPECT(0, t.flags & CW_VIEW_TRUNCATED);
    CW_INFO(log, "%s", large);
    for (int archived = 0; archived < 2; archived++) {
        t = (long_tally){0};
        EXPECT(4, read_logs(long_each, &t));
        EXPECT(CW_STRING_MAX, t.longest);
        HOLDS(t.flags & CW_VIEW_TRUNCATED);
        if (!archived) EXPECT(CW_OK, cw_close(&engine, 60000));
    }
    free(large);
}

/* ── New places in handlers and children ── */

enum { PLACES = 20000, PLACE_WRITERS = 16 };
static cw_site *places;
static atomic_uint places_next;
static cw_logger *places_log;

/* One record from an unused place: "<writer> <number>" as numbered() writes it. */
static cw_status from_new_place(unsigned writer, uint64_t number) {
    static const uint8_t classes[] = {CW_ARG_INT, CW_ARG_LONG, CW_ARG_NONE};
    unsigned place = places_next++ % PLACES;
    places[place] = (cw_site){.format = "%u %llu from a place", .file = "places.c",
                              .function = "f", .arguments = classes, .line = place + 1};
    const cw_arg arguments[] = {cw_arg_u(writer), cw_arg_u(number), cw_arg_u(0)};
    return cw_site_write(places_log, CW_LEVEL_INFO, &places[place], arguments);
}

static volatile uint64_t places_in_handler;
static void log_from_handler(int signal_number) {
    (void)signal_number;
    if (places_next < PLACES - 2 && from_new_place(1, places_in_handler) == CW_OK)
        places_in_handler++;
}

static void case_places_storm(void) { /* a handler registers and interrupts a registrar */
    cw_options options = defaults();
    options.segment_bytes = 256u << 10;
    cw_engine *engine = open_with(&options);
    places_log = logger_of(engine, "places");
    places = calloc(PLACES, sizeof *places);
    struct sigaction action = {.sa_handler = log_from_handler};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    uint64_t number = 0;
    while (places_next < PLACES - 2) {
        errno = 77;
        EXPECT(CW_OK, from_new_place(0, number++));
        EXPECT(77, errno);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    for (int archived = 0; archived < 2; archived++) {
        tally t = {.unordered = 1};
        read_logs(tally_each, &t);
        EXPECT(0, t.bad);
        EXPECT(number, t.count[0]);
        EXPECT(places_in_handler, t.count[1]);
        if (!archived) EXPECT(CW_OK, cw_close(&engine, 20000));
    }
    HOLDS(places_in_handler > 10);
}

static void *places_job(void *argument) {
    job *j = argument;
    for (uint64_t i = 0; i < j->count; i++) EXPECT(CW_OK, from_new_place(j->writer, i));
    return NULL;
}

static void case_places_fork(void) { /* children know the parent's places and add their own */
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    places_log = logger_of(engine, "places");
    places = calloc(PLACES, sizeof *places);
    pthread_t threads[3];
    job jobs[3];
    for (unsigned i = 0; i < 3; i++) {
        jobs[i] = (job){places_log, i, 4000, 0, NULL};
        pthread_create(&threads[i], NULL, places_job, &jobs[i]);
    }
    enum { CHILDREN = 8, EACH = 300 };
    pid_t children[CHILDREN];
    for (unsigned c = 0; c < CHILDREN; c++) {
        children[c] = fork();
        if (children[c] == 0) {
            failures = 0;
            job mine = {places_log, 3 + c, EACH, 0, NULL};
            places_job(&mine);
            fflush(stdout);
            _exit(failures ? 1 : 0);
        }
        struct timespec pause = {0, 2000000};
        nanosleep(&pause, NULL);
    }
    for (unsigned i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    for (unsigned c = 0; c < CHILDREN; c++) {
        int status = -1;
        waitpid(children[c], &status, 0);
        EXPECT(0, status);
    }
    EXPECT(CW_OK, cw_close(&engine, 20000));
    tally t = {.unordered = WRITERS_MAX};
    read_logs(tally_each, &t);
    EXPECT(0, t.bad);
    for (unsigned i = 0; i < 3; i++) EXPECT(4000, t.count[i]);
    for (unsigned c = 0; c < CHILDREN; c++) EXPECT(EACH, t.count[3 + c]);
}

static void case_errno(void) { /* remains the host's, through every roll */
    cw_options options = defaults();
    options.segment_bytes = 64u << 10;
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "errno");
    cw_record record = {.struct_size = sizeof record, .level = CW_LEVEL_INFO, .line = 1};
    for (uint64_t i = 0; i < 5000; i++) {
        errno = 77;
        EXPECT(CW_OK, numbered(log, 0, i));
        EXPECT(CW_OK, cw_write_record(log, &record));
        EXPECT(77, errno);
    }
    EXPECT(CW_OK, cw_close(&engine, 20000));
}

/* ── Places by address: their strings count, whatever their addresses add up to ── */

enum { ALIKE_FILES = 64, ALIKE_LINES = 100 };
static char alike_names[ALIKE_FILES][13];
static cw_site alike_place(unsigned file, uint32_t line) {
    static const uint8_t classes[8] = {CW_ARG_INT};
    return (cw_site){NULL, "{}",  alike_names[file], file % 2 ? "odd" : "even", classes,
                     line, 2, 0, CW_STYLE_BRACES, 0};
}

static uint64_t alike_wrong;
static void alike_each(const cw_record_view *view, void *user) {
    (void)user;
    char text[16] = "";
    memcpy(text, view->message.data, view->message.length < 15 ? view->message.length : 15);
    int number = atoi(text);
    unsigned file = (unsigned)number % ALIKE_FILES;
    alike_wrong += view->line != 1000u - 13u * file + (unsigned)number / ALIKE_FILES;
    alike_wrong += view->file.length != strlen(alike_names[file]) ||
                   memcmp(view->file.data, alike_names[file], view->file.length) != 0;
    alike_wrong += view->function.length != (file % 2 ? 3u : 4u);
}

static void case_places_alike(void) {
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "alike");
    for (unsigned i = 0; i < ALIKE_FILES; i++)
        snprintf(alike_names[i], sizeof alike_names[i], "src/f%02u.cpp", i);
    for (int round = 0; round < 3; round++)
        for (int line = 0; line < ALIKE_LINES; line++)
            for (unsigned file = 0; file < ALIKE_FILES; file++) {
                /* The address of the name plus the line is the same for all files. */
                cw_site place = alike_place(file, 1000u - 13u * file + (unsigned)line);
                cw_arg number = cw_arg_i(line * ALIKE_FILES + (int)file);
                EXPECT(CW_OK, cw_place_write(log, CW_LEVEL_INFO, &place, &number));
            }
    for (int closed = 0; closed < 2; closed++) {
        EXPECT(3 * ALIKE_LINES * ALIKE_FILES, read_logs(alike_each, NULL));
        EXPECT(0, alike_wrong);
        if (!closed) EXPECT(CW_OK, cw_close(&engine, 20000));
    }
}
