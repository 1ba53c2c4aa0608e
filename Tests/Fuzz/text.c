/* Fuzz target: texts of deferred records. The input is a place (style, format, classes of
 * arguments) and the bytes of its arguments. It is put into a segment as a record with its own
 * definition (FORMAT 8, type 9) and read by cw_reader_next, which makes the text. */
#include "pack.h"

enum { HEADER = 4096, CHUNK = 64 << 10 };

int LLVMFuzzerInitialize(int *count, char ***arguments) {
    (void)count;
    (void)arguments;
    plain_environment();
    make_scratch("text");
    read_boot_id();
    return 0;
}

static uint8_t segment[HEADER + CHUNK];

static void put32(size_t at, uint32_t v) { memcpy(segment + at, &v, 4); }
static void put64(size_t at, uint64_t v) { memcpy(segment + at, &v, 8); }

static size_t put_str(size_t at, const uint8_t *bytes, size_t n) {
    for (size_t rest = n;;) {
        segment[at++] = (uint8_t)(rest < 128 ? rest : rest | 128);
        if (rest < 128) break;
        rest >>= 7;
    }
    memcpy(segment + at, bytes, n);
    return at + n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in = {data, size};
    memset(segment, 0, sizeof segment);
    memcpy(segment, "CWSEGM01", 8);
    put32(8, 1);
    put32(12, HEADER);
    memcpy(segment + 48, boot_id, 16);
    put64(64, 1);
    put32(72, 1);
    put32(76, 2);
    put64(80, 77);
    put64(88, HEADER + CHUNK);
    put64(96, 1000000000);
    put32(112, 1);
    put64(128, HEADER + CHUNK);
    put64(256, HEADER + CHUNK);
    put32(516, 1);

    size_t chunk = HEADER;
    put64(chunk, 77);
    put32(chunk + 12, CHUNK);
    put64(chunk + 16, HEADER);
    put32(chunk + 32, 1);

    /* Type 9: u32 length of the definition, the definition, the arguments. */
    size_t record = chunk + 128, at = record + 20;
    uint8_t style = take8(&in);
    size_t classes = take8(&in) % 40;
    const uint8_t *bytes;
    segment[at + 4] = 0;
    segment[at + 5] = (uint8_t)classes;
    segment[at + 6] = style % 5;
    at += 8;
    at = put_str(at, (const uint8_t *)"f.c", 3);
    at = put_str(at, (const uint8_t *)"f", 1);
    size_t n = take_bytes(&in, take16(&in) % 2000, &bytes);
    at = put_str(at, bytes, n);
    n = take_bytes(&in, classes, &bytes);
    for (size_t i = 0; i < n; i++) segment[at + i] = style & 128 ? bytes[i] : bytes[i] % 13 + 1;
    at += classes;
    put32(record + 16, (uint32_t)(at - record - 20));
    n = take_bytes(&in, 30000, &bytes);
    memcpy(segment + at, bytes, n);
    at += n;
    put32(record, (uint32_t)(at - record));
    segment[record + 12] = 9;
    segment[record + 13] = 9;
    put32(chunk + 8, (uint32_t)(at - chunk));

    char path[300];
    snprintf(path, sizeof path, "%s/%s.00000001-0001.seg", scratch, lanes[0]);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    PROMISE(fd >= 0);
    PROMISE(write(fd, segment, sizeof segment) == (ssize_t)sizeof segment);
    close(fd);
    cw_reader *reader = NULL;
    PROMISE(cw_reader_open(path, NULL, &reader) == CW_OK);
    PROMISE(read_all(reader, 10) == 1);
    cw_reader_close(&reader);
    return 0;
}
