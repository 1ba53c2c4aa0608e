/* A thread logs to more engines than its table holds, while handlers log to others between any two
 * instructions of the table's change. abi.c includes it after abi_hazards.h. */

enum { TABLE_ENGINES = 6, TABLE_STEPS = 800, TABLE_RECORDS = 32768 };
static struct {
    cw_engine *engine;
    cw_logger *log;
    char directory[4200];
    unsigned sent;
    unsigned char read[TABLE_RECORDS];
} table[TABLE_ENGINES];
static int table_step, table_target, table_other;

/* The text is ready, so that only the append's steps are counted. */
#define TABLE_PUT(engine_index, before, after)                                                     \
    do {                                                                                           \
        int e_ = (engine_index);                                                                   \
        char text_[32];                                                                            \
        size_t n_ = (size_t)snprintf(text_, sizeof text_, "%u", table[e_].sent++);                 \
        before;                                                                                    \
        cw_status status_ = log_text(table[e_].log, text_, n_);                                    \
        after;                                                                                     \
        EXPECT(CW_OK, status_);                                                                    \
    } while (0)

static void table_inner(void) { TABLE_PUT(table_other, (void)0, (void)0); }
static void table_outer(void) {
    TABLE_PUT(table_target, step_start(table_step, table_inner), step_end());
}

static void table_each(const cw_record_view *view, void *user) {
    char text[32] = "";
    memcpy(text, view->message.data, view->message.length < 31 ? view->message.length : 31);
    unsigned e = *(unsigned *)user, number = (unsigned)strtoul(text, NULL, 10);
    if (number < TABLE_RECORDS) table[e].read[number]++;
    else table[e].read[0] = 9;
}

static void case_table_steps(void) {
    const char *parent = store;
    EXPECT(0, mkdir(parent, 0700));
    for (unsigned e = 0; e < TABLE_ENGINES; e++) {
        snprintf(table[e].directory, sizeof table[e].directory, "%s/%u", parent, e);
        store = table[e].directory;
        cw_options options = defaults();
        table[e].engine = open_with(&options);
        table[e].log = logger_of(table[e].engine, "table");
    }
    steps_prepare();
    for (table_step = 1; table_step <= TABLE_STEPS; table_step += 3) {
        /* Engine 0's append is interrupted. The handler logs to an engine for which the thread has
         * a block or none. A second handler interrupts it and logs to another, of either sort. */
        for (int e = 3; e >= 0; e--) TABLE_PUT(e, (void)0, (void)0);
        table_target = table_step % 4 == 3 ? 1 + table_step / 4 % 3 : 4;
        table_other = table_step % 8 == 6 ? 5 : 1 + table_step / 2 % 3;
        TABLE_PUT(0, step_start(20 + table_step % 10 * 8, table_outer), step_end());
    }
    for (unsigned e = 0; e < TABLE_ENGINES; e++) {
        EXPECT(CW_OK, cw_close(&table[e].engine, 20000));
        store = table[e].directory;
        EXPECT(table[e].sent, read_logs(table_each, &e));
        unsigned missing = 0, twice = 0;
        for (unsigned i = 0; i < table[e].sent; i++) {
            missing += table[e].read[i] == 0;
            twice += table[e].read[i] > 1;
        }
        EXPECT(0, missing);
        EXPECT(0, twice);
    }
}
BY_MACRO(table_steps)
BY_TEXT(table_steps)
