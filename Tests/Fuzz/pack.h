/* A store as the input of a fuzz target: one byte of switches, then files. A file is its kind, two
 * numbers of its name, its size, and patches (offset, bytes) on zeros, so that a sparse file is a
 * short input. `repair` corrects checksums, salts and boot ids, which byte mutations would never
 * find, so that the data behind them is read. Layouts: docs/FORMAT.md. seeds.py packs. */
#ifndef CORDWOOD_FUZZ_PACK_H
#define CORDWOOD_FUZZ_PACK_H

#include "fuzz.h"

enum { PACK_REPAIR = 1, PACK_FOLLOW = 2, PACK_FILTER = 4, PACK_THIS_BOOT = 8, PACK_TWICE = 16 };
enum {
    KIND_LANE,
    KIND_SEGMENT,
    KIND_SEALED,
    KIND_CATALOG,
    KIND_JOURNAL,
    KIND_ARCHIVE,
    KIND_STORE,
    KIND_TARGET,
    KIND_QUEUE,
    KIND_SPARE,
    KIND_COUNT
};
enum { FILES_MAX = 12, FILE_MAX = 1 << 20, SIZE_MAX_SPARSE = 16 << 20 };

typedef struct packed {
    char path[300];
    uint8_t kind;
    uint8_t *bytes; /* the part that patches reached */
    size_t used;
    size_t size; /* of the file */
} packed;

static const char *const lanes[] = {
    "20261121T081530Z-812-9f3c5a0de1b27788", "20261121T081531Z-4000000000-0123456789abcdef"};

/* ── CRC-32C ── */

static inline uint32_t crc32c(uint32_t crc, const uint8_t *p, size_t n) {
    static uint32_t table[256];
    if (!table[1])
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t c = i;
            for (int k = 0; k < 8; k++) c = (c >> 1) ^ ((c & 1) ? 0x82F63B78u : 0);
            table[i] = c;
        }
    crc = ~crc;
    while (n--) crc = table[(crc ^ *p++) & 255] ^ (crc >> 8);
    return ~crc;
}

static inline uint32_t get32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}
static inline uint64_t get64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}
static inline void set32(uint8_t *p, uint32_t v) { memcpy(p, &v, 4); }

/* The checksum of content whose own word at `at` counts as zero. */
static inline void sum_into(uint8_t *content, size_t n, size_t at) {
    if (at + 4 > n) return;
    set32(content + at, 0);
    set32(content + at, crc32c(0, content, n));
}

/* ── Repairs ── */

static inline void repair_catalog(uint8_t *b, size_t n, size_t from, uint64_t salt) {
    for (size_t at = from; at + 24 <= n; at += 16) {
        uint32_t length = get32(b + at + 8);
        if (get64(b + at) != salt || length < 24 || length > n - at) continue;
        set32(b + at + 12, crc32c(0, b + at + 16, length - 16));
    }
}

static inline void repair_segment(uint8_t *b, size_t n) {
    if (n < 4096) return;
    uint64_t salt = get64(b + 80);
    for (size_t at = 4096; at + 128 <= n; at += 1024) {
        if (get64(b + at) != salt) continue;
        uint32_t final = get32(b + at + 64);
        if (final < 128 || final > n - at) continue;
        uint32_t crc = crc32c(0, b + at + 12, 52);
        set32(b + at + 68, crc32c(crc, b + at + 128, final - 128));
    }
}

static inline void repair_journal(uint8_t *b, size_t n) {
    if (n < 64) return;
    uint64_t salt = get64(b + 32);
    for (size_t at = 64; at + 112 <= n;) {
        uint32_t length = get32(b + at + 8);
        if (get64(b + at) != salt || length < 112 || length > n - at) return;
        set32(b + at + 12, crc32c(0, b + at + 16, length - 16));
        at += (length + 7u) & ~7u;
    }
}

/* Makes the footer's entry of a block match the block's header. */
static inline void repair_entry(uint8_t *b, uint8_t *entry, size_t end) {
    uint64_t offset = get64(entry);
    if (offset > end || end - offset < 136) return;
    const uint8_t *head = b + offset + 8;
    memcpy(entry + 16, head + 48, 16);
    memcpy(entry + 32, head + 64, 8);
    memcpy(entry + 40, head + 28, 4);
    memcpy(entry + 44, head + 72, 4);
    memcpy(entry + 48, head + 32, 8);
    uint64_t span = 136 + get64(head + 40);
    memcpy(entry + 8, &span, 8);
}

static inline void repair_archive(uint8_t *b, size_t n) {
    const uint32_t skippable = 0x184D2A50;
    size_t at = 0;
    size_t sides[64][2], side_count = 0;
    while (n - at >= 8 && get32(b + at) == skippable) {
        uint8_t *content = b + at + 8;
        size_t room = n - at - 8;
        uint32_t length = get32(b + at + 4);
        if (length > room) break;
        if (length >= 64 && !memcmp(content, "CWARCH01", 8)) {
            set32(content + 12, length);
            sum_into(content, length, 60);
        } else if (length == 128 && !memcmp(content, "CWBLCK01", 8)) {
            uint64_t stored = get64(content + 40);
            if (stored > room - length) stored = room - length;
            memcpy(content + 40, &stored, 8);
            uint8_t *frame = content + length;
            if (content[25] == 2 && stored >= 8) {
                /* Codec none: the payload lies open. */
                uint64_t raw = stored - 8;
                set32(frame, skippable);
                set32(frame + 4, (uint32_t)raw);
                memcpy(content + 32, &raw, 8);
                set32(content + 76, crc32c(0, frame + 8, raw));
            }
            set32(content + 72, crc32c(0, frame, stored));
            sum_into(content, length, 80);
            at += 8 + length + stored;
            continue;
        } else if (length >= 152 && !memcmp(content, "CWEXTR01", 8)) {
            uint64_t stored = length - 152;
            memcpy(content + 24 + 40, &stored, 8);
            set32(content + 24 + 72, crc32c(0, content + 152, stored));
            sum_into(content + 24, 128, 80);
            if (side_count < 64) {
                sides[side_count][0] = at;
                sides[side_count++][1] = length + 8;
            }
        } else if (length >= 80 && !memcmp(content, "CWFOOT01", 8)) {
            size_t room_left = length >= 96 ? length - 96 : 0;
            if (side_count * 24 > room_left) side_count = room_left / 24;
            uint32_t count = (uint32_t)((room_left - side_count * 24) / 72);
            set32(content + 56, count);
            set32(content + 60, (uint32_t)side_count);
            for (uint32_t i = 0; i < count; i++) repair_entry(b, content + 80 + i * 72, at);
            for (size_t i = 0; i < side_count; i++) {
                uint8_t *side = content + 80 + count * 72 + i * 24;
                uint64_t place = sides[i][0], span = sides[i][1];
                set32(side, 1);
                set32(side + 4, crc32c(0, b + place, span));
                memcpy(side + 8, &place, 8);
                memcpy(side + 16, &span, 8);
            }
            set32(content + length - 16, length + 8);
            set32(content + length - 12, crc32c(0, content, length - 12));
            memcpy(content + length - 8, "CWAREND1", 8);
        }
        at += 8 + length;
    }
}

static uint8_t boot_id[16];

static inline void read_boot_id(void) {
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    int digits = 0, c;
    while (file && (c = getc(file)) != EOF && digits < 32) {
        int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (d < 0) continue;
        boot_id[digits / 2] |= (uint8_t)(digits % 2 ? d : d << 4);
        digits++;
    }
    if (file) fclose(file);
}

static inline void repair(packed *files, unsigned count, unsigned switches) {
    for (unsigned i = 0; i < count; i++) {
        packed *f = files + i;
        bool live = switches & PACK_THIS_BOOT;
        uint64_t salt = 0;
        /* The lane of this file comes first in the input. */
        for (unsigned k = 0; k < count; k++)
            if (files[k].kind == KIND_LANE && files[k].used >= 88)
                salt = get64(files[k].bytes + 80);
        switch (f->kind) {
        case KIND_LANE:
            if (live && f->used >= 64) memcpy(f->bytes + 48, boot_id, 16);
            if (live && f->used >= 16384 + 64) memcpy(f->bytes + 16384 + 48, boot_id, 16);
            if (f->used > 8192)
                repair_catalog(f->bytes, f->used < 16384 ? f->used : 16384, 8192, salt);
            if (f->used > 16384) repair_segment(f->bytes + 16384, f->used - 16384);
            break;
        case KIND_SEGMENT:
        case KIND_SEALED:
            if (live && f->used >= 64) memcpy(f->bytes + 48, boot_id, 16);
            repair_segment(f->bytes, f->used);
            break;
        case KIND_CATALOG:
            if (f->used > 64) repair_catalog(f->bytes, f->used, 64, salt);
            break;
        case KIND_JOURNAL: repair_journal(f->bytes, f->used); break;
        case KIND_ARCHIVE: repair_archive(f->bytes, f->used); break;
        default: break;
        }
    }
}

/* ── Unpacking ── */

static inline void name_file(packed *f, uint8_t kind, uint8_t a, uint8_t b) {
    const char *lane = lanes[kind >> 7];
    const char *in = scratch;
    f->kind = (kind & 127) % KIND_COUNT;
    /* The largest numbers, too: numbers in names have no checksum. */
    char number[32];
    if (a < 250)
        snprintf(number, sizeof number, "%08u", a);
    else
        snprintf(number, sizeof number, "%llu", 18446744073709551615ull - (255u - a));
    switch (f->kind) {
    case KIND_LANE: snprintf(f->path, sizeof f->path, "%s/lanes/%s.lane", in, lane); break;
    case KIND_SEGMENT:
        snprintf(f->path, sizeof f->path, "%s/lanes/%s.%s-%04u.seg", in, lane, number, b);
        break;
    case KIND_SEALED:
        snprintf(f->path, sizeof f->path, "%s/lanes/%s.%s-%04u.sealed", in, lane, number, b);
        break;
    case KIND_CATALOG:
        snprintf(f->path, sizeof f->path, "%s/lanes/%s.catalog-%u", in, lane, a);
        break;
    case KIND_JOURNAL: snprintf(f->path, sizeof f->path, "%s/lanes/%s.journal", in, lane); break;
    case KIND_ARCHIVE:
        snprintf(f->path, sizeof f->path, "%s/archives/%s.%s-%08u.%016u.cwa", in, lane, number, b,
                 a);
        break;
    case KIND_STORE: snprintf(f->path, sizeof f->path, "%s/store", in); break;
    case KIND_TARGET: snprintf(f->path, sizeof f->path, "%s/targets/t%u", in, a); break;
    case KIND_QUEUE:
        snprintf(f->path, sizeof f->path, "%s/queue/%s.%s-%08u@t%u.retry-%u-%s-failed", in, lane,
                 number, b, a, b, number);
        break;
    default: snprintf(f->path, sizeof f->path, "%s/lanes/.%s.spare-%u", in, lane, a); break;
    }
}

/* Takes the files out of the input. `forget` frees the memory. */
static inline unsigned unpack(input *in, packed *files) {
    unsigned count = 0;
    size_t total = 0;
    while (in->left > 4 && count < FILES_MAX) {
        packed *f = files + count++;
        uint8_t kind = take8(in), a = take8(in), b = take8(in);
        name_file(f, kind, a, b);
        f->size = take24(in) % (SIZE_MAX_SPARSE + 1);
        f->bytes = calloc(1, FILE_MAX);
        f->used = 0;
        for (unsigned patches = take16(in); patches > 0 && in->left > 0; patches--) {
            size_t offset = take24(in);
            const uint8_t *from;
            size_t n = take_bytes(in, take16(in), &from);
            if (offset >= FILE_MAX || n > FILE_MAX - offset) continue;
            memcpy(f->bytes + offset, from, n);
            if (offset + n > f->used) f->used = offset + n;
        }
        if (f->used > f->size) f->size = f->used;
        total += f->used;
        if (total > 4u << 20) break;
    }
    return count;
}

static inline void forget(packed *files, unsigned count) {
    for (unsigned i = 0; i < count; i++) free(files[i].bytes);
}

static inline void make_directory(const char *name) {
    char path[300];
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    mkdir(path, 0700);
}

static inline void write_files(const packed *files, unsigned count) {
    mkdir(scratch, 0700);
    make_directory("lanes");
    make_directory("archives");
    make_directory("targets");
    make_directory("queue");
    for (unsigned i = 0; i < count; i++) {
        int fd = open(files[i].path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        if (fd < 0) continue;
        PROMISE(write(fd, files[i].bytes, files[i].used) == (ssize_t)files[i].used);
        PROMISE(ftruncate(fd, (off_t)files[i].size) == 0);
        close(fd);
    }
}

/* Makes the input's files where `scratch` says. Returns their number, for `forget`. */
static inline unsigned take_files(const uint8_t *data, size_t size, packed *files,
                                  unsigned *switches) {
    input in = {data, size};
    *switches = take8(&in);
    unsigned count = unpack(&in, files);
    if (*switches & PACK_REPAIR) repair(files, count, *switches);
    write_files(files, count);
    return count;
}

#endif
