/* The trace in memory: events in the order in which they happened, and the kind of each file.
 * disk.c's lock protects it while it fills; one thread reads it once the life has ended. Also
 * contains the random numbers: splitmix64, so that a seed means the same everywhere. */
#include "sim.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *grown(void *memory, uint64_t bytes) {
    void *result = realloc(memory, bytes);
    if (!result) {
        fprintf(stderr, "sim: no memory\n");
        abort();
    }
    return result;
}

void trace_add(sim_trace *trace, uint8_t kind, uint32_t inode, uint32_t subject, uint64_t value,
               const void *data, uint32_t bytes) {
    if (trace->count == trace->room) {
        trace->room = trace->room ? trace->room * 2 : 4096;
        trace->events = grown(trace->events, trace->room * sizeof *trace->events);
    }
    sim_event *event = &trace->events[trace->count++];
    *event = (sim_event){.kind = kind, .inode = inode, .subject = subject, .value = value,
                         .bytes = bytes};
    if (bytes) {
        event->data = grown(NULL, bytes);
        memcpy(event->data, data, bytes);
    }
}

uint32_t trace_inode(sim_trace *trace, uint8_t kind) {
    if (trace->inodes == trace->inodes_room) {
        trace->inodes_room = trace->inodes_room ? trace->inodes_room * 2 : 256;
        trace->kinds = grown(trace->kinds, trace->inodes_room);
    }
    trace->kinds[trace->inodes] = kind;
    return trace->inodes++;
}

void trace_clear(sim_trace *trace) {
    for (uint64_t i = 0; i < trace->count; i++) free(trace->events[i].data);
    free(trace->events);
    free(trace->kinds);
    memset(trace, 0, sizeof *trace);
}

sim_random sim_seeded(uint64_t seed, uint64_t stage) {
    sim_random random = {seed * 0x9E3779B97F4A7C15u ^ stage * 0xD1B54A32D192ED03u};
    sim_next(&random);
    return random;
}

uint64_t sim_next(sim_random *random) {
    uint64_t z = random->state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

uint64_t sim_below(sim_random *random, uint64_t bound) {
    return bound ? sim_next(random) % bound : 0;
}

bool sim_one_in(sim_random *random, uint64_t n) { return sim_below(random, n) == 0; }
