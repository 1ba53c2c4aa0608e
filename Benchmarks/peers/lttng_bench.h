/* The tracepoints of lttng.c, one a workload. LTTng's headers include this file several times. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER cordwood_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng_bench.h"

#if !defined(BENCH_LTTNG_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define BENCH_LTTNG_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(cordwood_bench, constant, LTTNG_UST_TP_ARGS(),
                           LTTNG_UST_TP_FIELDS())
LTTNG_UST_TRACEPOINT_EVENT(cordwood_bench, order, LTTNG_UST_TP_ARGS(int, id, double, price),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, id, id)
                                                   lttng_ust_field_float(double, price, price)))
LTTNG_UST_TRACEPOINT_EVENT(cordwood_bench, user, LTTNG_UST_TP_ARGS(const char *, name, int, what),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_string(name, name)
                                                   lttng_ust_field_integer(int, what, what)))
LTTNG_UST_TRACEPOINT_EVENT(cordwood_bench, ready,
                           LTTNG_UST_TP_ARGS(const char *, text, size_t, length),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_sequence_text(char, text, text,
                                                                             size_t, length)))

#endif

#include <lttng/tracepoint-event.h>
