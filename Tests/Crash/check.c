/* The model of the crash tests: reads a store and compares it with the records that each thread was
 * told are kept. Every kept record must be there, whole, once, in its thread's order. Beyond them
 * at most the one whose call had not returned may be there.
 *     check LOGGER SEED KEPT_FILE [LOGGER SEED KEPT_FILE]… -- PLACE…
 * PLACE: a store, or an archive. Together they hold each record once, each place in order. Prints
 * for each logger `kept read lost torn twice disordered invented damaged`, in numbers. */
#include "crash.h"

#include <cordwood/cordwood.h>
#include <stdlib.h>

enum { GROUPS_MAX = 32 };

typedef struct {
    uint8_t *times; /* how often each number was read */
    uint64_t room, next;
} thread_seen;

typedef struct { /* the records of a logger */
    const char *logger;
    uint64_t seed;
    const uint64_t *kept;
    thread_seen seen[THREADS];
    uint64_t read, torn, twice, disordered;
} group;

static group groups[GROUPS_MAX];
static int group_count;
static uint64_t damaged;

static void note(group *g, uint64_t thread, uint64_t number) {
    thread_seen *t = &g->seen[thread];
    if (number >= t->room) {
        uint64_t room = number * 2 + 1024;
        uint8_t *grown = realloc(t->times, room);
        if (grown == NULL) exit(2);
        memset(grown + t->room, 0, room - t->room);
        t->times = grown;
        t->room = room;
    }
    if (t->times[number] > 0) g->twice++;
    else t->times[number] = 1;
    if (number < t->next) g->disordered++;
    t->next = number + 1;
}

static void look(const cw_record_view *view) {
    group *g = groups;
    while (g < groups + group_count && (strlen(g->logger) != view->logger.length ||
                                        memcmp(g->logger, view->logger.data, view->logger.length)))
        g++;
    if (g == groups + group_count) return;
    char start[64], expected[MESSAGE_MAX];
    size_t length = view->message.length < 63 ? view->message.length : 63;
    if (length > 0) memcpy(start, view->message.data, length);
    start[length] = 0;
    unsigned long long thread, number;
    g->read++;
    if (sscanf(start, "t%llu n%llu ", &thread, &number) != 2 || thread >= THREADS ||
        number >= 1ull << 32) {
        g->torn++;
        return;
    }
    size_t size = make_message(expected, g->seed, thread, number);
    if (size != view->message.length || memcmp(expected, view->message.data, size) != 0) g->torn++;
    else note(g, thread, number);
}

static int read_place(const char *place) {
    cw_reader_options options = {.struct_size = sizeof options,
                                 .kinds = 1u << CW_KIND_LOG,
                                 .identity_file = getenv("CORDWOOD_IDENTITY")};
    cw_reader *reader;
    cw_status status = cw_reader_open(place, &options, &reader);
    if (status != CW_OK) {
        fprintf(stderr, "check: %s: %s\n", place, cw_status_name(status));
        return 0;
    }
    for (int i = 0; i < group_count; i++)
        for (size_t j = 0; j < THREADS; j++) groups[i].seen[j].next = 0;
    cw_record_view view = {.struct_size = sizeof view};
    while ((status = cw_reader_next(reader, &view)) != CW_END) {
        if (status == CW_OK) look(&view);
        else if (status == CW_E_DAMAGED && damaged < 1000) damaged++;
        else break;
    }
    if (status != CW_END) fprintf(stderr, "check: %s: %s\n", place, cw_status_name(status));
    cw_reader_close(&reader);
    return status == CW_END;
}

static void tell(const group *g) {
    uint64_t lost = 0, invented = 0;
    for (size_t i = 0; i < THREADS; i++) {
        uint64_t told = g->kept[i * 8];
        const thread_seen *t = &g->seen[i];
        for (uint64_t n = 0; n < told || n < t->room; n++) {
            int there = n < t->room && t->times[n] > 0;
            if (n < told && !there) lost++;
            if (n > told && there) invented++;
        }
    }
    const uint64_t numbers[] = {sum_kept(g->kept), g->read,       lost,     g->torn,
                                g->twice,          g->disordered, invented, damaged};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        printf("%llu%c", (unsigned long long)numbers[i], i == 7 ? '\n' : ' ');
}

int main(int argc, char **argv) {
    fill_letters();
    int at = 1;
    for (; at + 3 < argc && strcmp(argv[at], "--") != 0; at += 3, group_count++) {
        if (group_count == GROUPS_MAX) return 2;
        group *g = &groups[group_count];
        g->logger = argv[at];
        g->seed = strtoull(argv[at + 1], NULL, 10);
        g->kept = map_kept(argv[at + 2]);
        if (g->kept == NULL) return 2;
    }
    if (at >= argc || strcmp(argv[at], "--") != 0) return 2;
    while (++at < argc)
        if (!read_place(argv[at])) return 2;
    for (int i = 0; i < group_count; i++) tell(&groups[i]);
    return 0;
}
