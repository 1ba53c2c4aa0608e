/* A disk after a power cut, made from a trace. Synced data is there. Of the rest: each sector of a
 * file holds any of its contents since (as seen by disk.c), or, in some disks, a mixture of two; a
 * file has any of the lengths it had; a directory has any set of names that respects the order of
 * changes to one name and to one file, so that a rename is whole or absent. Some disks keep the
 * order of a journalling file system: any sync includes all names. Blocks that were allocated and
 * never written are zero. A reused file shows its old life. One thread. */
#define _GNU_SOURCE 1
#include "sim.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ── When ── */

static bool is_about_names(uint8_t kind) {
    return kind == EVENT_CREATE || kind == EVENT_REMOVE || kind == EVENT_RENAME ||
           kind == EVENT_SYNC;
}

/* Anywhere; or shortly after a flush, whose promise is fresh; or next to a protocol's step. */
static uint64_t choose_moment(const sim_trace *trace, sim_random *random) {
    uint64_t first = trace->start, span = trace->count - first;
    if (span == 0) return trace->count;
    uint64_t at = first + 1 + sim_below(random, span);
    uint64_t kind = sim_below(random, 5);
    for (uint64_t tried = 0; kind >= 2 && tried < span; tried++) {
        const sim_event *event = &trace->events[first + (at - first + tried) % span];
        bool wanted = kind == 2   ? event->kind == EVENT_FLUSHED
                      : kind == 3 ? is_about_names(event->kind)
                                  : event->kind == EVENT_SYNC &&
                                        trace->kinds[event->inode] == INODE_FILE;
        if (!wanted) continue;
        at = (uint64_t)(event - trace->events) + 1 + (kind == 2 ? sim_below(random, 24) : 0);
        bool before = kind == 4 || (kind == 3 && sim_one_in(random, 2));
        at -= before && at > first + 1 ? 1 : 0;
        break;
    }
    return at > trace->count ? trace->count : at;
}

void cut_require(const sim_trace *trace, uint64_t at, sim_model *model) {
    sim_life *life = &model->life[model->lives - 1];
    memset(life->required, 0, sizeof life->required);
    for (uint64_t i = trace->start; i < at; i++) {
        const sim_event *event = &trace->events[i];
        if (event->kind != EVENT_FLUSHED) continue;
        const uint32_t *counts = (const uint32_t *)(const void *)event->data;
        for (uint32_t t = 0; t < event->bytes / 4 && t < THREADS_MAX; t++)
            if (counts[t] > life->required[t]) life->required[t] = counts[t];
    }
}

/* ── Names ── */

typedef struct {
    uint32_t directory, inode;
    const char *name;
} entry;

typedef struct {
    entry *entries;
    uint32_t count;
    uint8_t *held_inodes; /* an earlier change of theirs did not happen */
    entry *held_names;
    uint32_t held_count;
} names;

static entry *look_up(names *all, uint32_t directory, const char *name) {
    for (uint32_t i = 0; i < all->count; i++)
        if (all->entries[i].directory == directory && !strcmp(all->entries[i].name, name))
            return &all->entries[i];
    return NULL;
}

static void put(names *all, uint32_t directory, const char *name, uint32_t inode) {
    entry *found = look_up(all, directory, name);
    if (!found) found = &all->entries[all->count++];
    *found = (entry){directory, inode, name};
}

static void drop(names *all, uint32_t directory, const char *name) {
    entry *found = look_up(all, directory, name);
    if (found) *found = all->entries[--all->count];
}

static bool is_held(const names *all, const sim_event *event, const char *second) {
    if (all->held_inodes[event->subject]) return true;
    for (uint32_t i = 0; i < all->held_count; i++) {
        const entry *held = &all->held_names[i];
        if (held->directory != event->inode) continue;
        if (!strcmp(held->name, (const char *)event->data)) return true;
        if (second && !strcmp(held->name, second)) return true;
    }
    return false;
}

static void hold(names *all, const sim_event *event, const char *second) {
    all->held_inodes[event->subject] = 1;
    all->held_names[all->held_count++] =
        (entry){event->inode, 0, (const char *)event->data};
    if (second) all->held_names[all->held_count++] = (entry){event->inode, 0, second};
}

static void apply(names *all, const sim_event *event, const char *second) {
    const char *name = (const char *)event->data;
    if (event->kind == EVENT_REMOVE || event->kind == EVENT_RENAME)
        drop(all, event->inode, name);
    if (event->kind == EVENT_CREATE) put(all, event->inode, name, event->subject);
    if (event->kind == EVENT_RENAME) put(all, event->inode, second, event->subject);
}

/* The event up to which each directory's names are durable. */
static uint64_t *durable_names(const sim_trace *trace, uint64_t at, bool journals) {
    uint64_t *until = calloc(trace->inodes + 1, sizeof *until);
    for (uint64_t i = 0; i < at; i++) {
        const sim_event *event = &trace->events[i];
        if (event->kind == EVENT_START || (event->kind == EVENT_SYNC && journals))
            for (uint32_t d = 0; d < trace->inodes; d++) until[d] = i;
        else if (event->kind == EVENT_SYNC && trace->kinds[event->inode] == INODE_DIRECTORY)
            until[event->inode] = i;
    }
    return until;
}

static names choose_names(const sim_trace *trace, uint64_t at, sim_random *random) {
    uint64_t mode = sim_below(random, 8);
    bool journals = mode >= 6;
    uint64_t *until = durable_names(trace, at, journals);
    uint64_t prefix = trace->start + sim_below(random, at - trace->start + 1);
    uint64_t chance = 1 + sim_below(random, 7); /* in eighths */
    names all = {.entries = calloc(at + 1, sizeof(entry)),
                 .held_inodes = calloc(trace->inodes + 1, 1),
                 .held_names = calloc(2 * at + 2, sizeof(entry))};
    for (uint64_t i = 0; i < at; i++) {
        const sim_event *event = &trace->events[i];
        bool is_rename = event->kind == EVENT_RENAME;
        if (event->kind != EVENT_CREATE && event->kind != EVENT_REMOVE && !is_rename) continue;
        const char *name = (const char *)event->data;
        const char *second = is_rename ? name + strlen(name) + 1 : NULL;
        bool happens = i < until[event->inode];
        if (!happens && !is_held(&all, event, second)) {
            if (mode == 1) happens = true;
            if (mode == 2 || journals) happens = i < prefix;
            if (mode >= 3 && mode < 6) happens = sim_below(random, 8) < chance;
        }
        if (happens) apply(&all, event, second);
        else hold(&all, event, second);
    }
    free(until);
    return all;
}

/* ── Contents ── */

/* Tears are at bounds of processor cache lines. */
enum { TEAR = 64 };

enum { TAKE_OLD, TAKE_NEW, TAKE_ANY, TAKE_SOME, TAKE_PAGES, TAKE_MOMENT };

typedef struct {
    uint8_t *durable, *disk;
    uint64_t *since; /* event of the durable content, per sector */
    uint64_t *last;
    uint64_t sectors, size, size_durable;
} content;

static uint64_t sectors_of(const sim_trace *trace, uint32_t inode, uint64_t at) {
    uint64_t most = 0;
    for (uint64_t i = 0; i < at; i++) {
        const sim_event *event = &trace->events[i];
        if (event->inode != inode) continue;
        uint64_t end = 0;
        if (event->kind == EVENT_DATA) end = event->value + (event->bytes + SECTOR - 1) / SECTOR;
        if (event->kind == EVENT_SIZE) end = (event->value + SECTOR - 1) / SECTOR;
        if (end > most) most = end;
    }
    return most;
}

/* A sync makes a sector's content durable. After a failed sync it covers only later changes: the
 * system has forgotten that the rest is not on the disk. */
static void replay_durable(const sim_trace *trace, uint32_t inode, uint64_t at, content *c) {
    uint8_t *latest = calloc(c->sectors + 1, SECTOR);
    uint64_t failed = 0;
    for (uint64_t i = 0; i < at; i++) {
        const sim_event *event = &trace->events[i];
        if (event->inode != inode) continue;
        if (event->kind == EVENT_SIZE) c->size = event->value;
        if (event->kind == EVENT_FAILED) failed = i;
        if (event->kind == EVENT_DATA) {
            memcpy(latest + event->value * SECTOR, event->data, event->bytes);
            for (uint64_t s = 0; s < event->bytes / SECTOR; s++) c->last[event->value + s] = i + 1;
        }
        if (event->kind == EVENT_SYNC) {
            c->size_durable = c->size;
            for (uint64_t s = 0; s < c->sectors; s++) {
                if (c->last[s] == c->since[s] || c->last[s] <= failed) continue;
                memcpy(c->durable + s * SECTOR, latest + s * SECTOR, SECTOR);
                c->since[s] = c->last[s];
            }
        }
    }
    free(latest);
}

static bool takes(uint64_t mode, sim_random *random, uint64_t salt, uint64_t chance,
                  uint64_t sector, uint64_t *seen, bool is_early) {
    sim_random page = sim_seeded(salt, sector / 8);
    switch (mode) {
    case TAKE_NEW: return true;
    case TAKE_ANY: return sim_one_in(random, ++*seen + 1);
    case TAKE_SOME: return sim_below(random, 8) < chance;
    case TAKE_PAGES: return sim_below(&page, 8) < chance;
    case TAKE_MOMENT: return is_early;
    default: return false;
    }
}

/* Part of a sector is unchanged: power failed during the write. */
static void mix(uint8_t *sector, const uint8_t *fresh, sim_random *random) {
    uint64_t cut = TEAR * (1 + sim_below(random, SECTOR / TEAR - 1));
    bool front = sim_one_in(random, 2);
    memcpy(sector + (front ? 0 : cut), fresh + (front ? 0 : cut), front ? cut : SECTOR - cut);
}

static uint64_t choose_size(const sim_trace *trace, uint32_t inode, uint64_t at,
                            const content *c, uint64_t mode, sim_random *random) {
    if (mode == TAKE_OLD || sim_one_in(random, 4)) return c->size_durable;
    if (!sim_one_in(random, 4)) return c->size;
    uint64_t size = c->size_durable, synced = 0, seen = 1;
    for (uint64_t i = 0; i < at; i++)
        if (trace->events[i].inode == inode && trace->events[i].kind == EVENT_SYNC) synced = i;
    for (uint64_t i = synced; i < at; i++) {
        const sim_event *event = &trace->events[i];
        if (event->inode == inode && event->kind == EVENT_SIZE && sim_one_in(random, ++seen))
            size = event->value;
    }
    return size;
}

static void fill(const sim_trace *trace, uint32_t inode, uint64_t at, bool tears,
                 sim_random *random, content *c) {
    replay_durable(trace, inode, at, c);
    memcpy(c->disk, c->durable, c->sectors * SECTOR);
    uint64_t mode = sim_below(random, TAKE_MOMENT + 1), salt = sim_next(random);
    uint64_t chance = 1 + sim_below(random, 7), moment = sim_below(random, at + 1);
    uint64_t *seen = calloc(c->sectors + 1, sizeof *seen);
    for (uint64_t i = 0; i < at; i++) {
        const sim_event *event = &trace->events[i];
        if (event->inode != inode || event->kind != EVENT_DATA) continue;
        for (uint64_t k = 0; k < event->bytes / SECTOR; k++) {
            uint64_t s = event->value + k;
            if (i + 1 <= c->since[s]) continue;
            if (!takes(mode, random, salt, chance, s, &seen[s], i < moment)) continue;
            const uint8_t *fresh = event->data + k * SECTOR;
            if (tears && sim_one_in(random, 16)) mix(c->disk + s * SECTOR, fresh, random);
            else memcpy(c->disk + s * SECTOR, fresh, SECTOR);
        }
    }
    free(seen);
    c->size = choose_size(trace, inode, at, c, mode, random);
}

/* ── The disk ── */

static void write_file(const char *path, const uint8_t *bytes, uint64_t count, uint64_t room) {
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    uint64_t there = count < room ? count : room, done = 0;
    while (file >= 0 && done < there) {
        ssize_t n = write(file, bytes + done, there - done);
        if (n <= 0) break;
        done += (uint64_t)n;
    }
    if (file < 0 || done < there || ftruncate(file, (off_t)count) != 0) {
        fprintf(stderr, "sim: cannot write %s\n", path);
        abort();
    }
    close(file);
}

static void make_file(const sim_trace *trace, uint32_t inode, uint64_t at, bool tears,
                      sim_random *random, const char *path) {
    content c = {.sectors = sectors_of(trace, inode, at)};
    c.durable = calloc(c.sectors + 1, SECTOR);
    c.disk = calloc(c.sectors + 1, SECTOR);
    c.since = calloc(c.sectors + 1, sizeof *c.since);
    c.last = calloc(c.sectors + 1, sizeof *c.last);
    fill(trace, inode, at, tears, random, &c);
    write_file(path, c.disk, c.size, c.sectors * SECTOR);
    free(c.durable);
    free(c.disk);
    free(c.since);
    free(c.last);
}

static void make_link(const sim_trace *trace, uint32_t inode, const char *path) {
    for (uint64_t i = 0; i < trace->count; i++) {
        const sim_event *event = &trace->events[i];
        if (event->inode != inode || event->kind != EVENT_DATA) continue;
        char target[PATH_BYTES];
        snprintf(target, sizeof target, "%.*s", (int)event->bytes, (const char *)event->data);
        if (symlink(target, path) != 0) abort();
        return;
    }
}

static void make_tree(const sim_trace *trace, const names *all, uint32_t directory, uint64_t at,
                      bool tears, sim_random *random, const char *path) {
    for (uint32_t i = 0; i < all->count; i++) {
        const entry *each = &all->entries[i];
        if (each->directory != directory) continue;
        char child[PATH_BYTES * 2];
        snprintf(child, sizeof child, "%s/%s", path, each->name);
        if (trace->kinds[each->inode] == INODE_DIRECTORY) {
            if (mkdir(child, 0700) != 0) abort();
            make_tree(trace, all, each->inode, at, tears, random, child);
        } else if (trace->kinds[each->inode] == INODE_LINK) {
            make_link(trace, each->inode, child);
        } else {
            make_file(trace, each->inode, at, tears, random, child);
        }
    }
}

uint64_t cut_make(const sim_trace *trace, sim_random *random, const char *root) {
    uint64_t at = choose_moment(trace, random);
    bool tears = sim_one_in(random, 4);
    names all = choose_names(trace, at, random);
    make_tree(trace, &all, 0, at, tears, random, root);
    free(all.entries);
    free(all.held_inodes);
    free(all.held_names);
    return at;
}
