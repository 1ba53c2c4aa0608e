/* LTTng-UST as a peer: lttng WHERE MODE N WORKLOAD [THREADS], the modes of load.h. A tracepoint
 * with typed fields, written to a CTF trace by LTTng's daemons, which lttng.py starts and ends.
 * Calls wait while the buffers are full (LTTNG_UST_ALLOW_BLOCKING), so that nothing is discarded.
 */
#include "../load.h"

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_bench.h"

static void engine_open(const char *where) { (void)where; }
static void engine_close(void) {} /* `lttng stop` follows (lttng.py) */
static void engine_say(void) {}

WRITER write_w1(size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++) lttng_ust_tracepoint(cordwood_bench, constant);
}
WRITER write_w2(size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++)
        lttng_ust_tracepoint(cordwood_bench, order, (int)i, prices[i % VARIANTS]);
}
WRITER write_w3(size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++)
        lttng_ust_tracepoint(cordwood_bench, user, names[i % VARIANTS], (int)i);
}
WRITER write_w4(size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++)
        lttng_ust_tracepoint(cordwood_bench, ready, messages[i % VARIANTS], MESSAGE);
}

int main(int argc, char **argv) { return load_main(argc, argv); }
