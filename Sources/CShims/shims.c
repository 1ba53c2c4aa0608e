#include "CShims.h"

/* ── CRC-32C ── */

static uint32_t crc_table[256];
static uint32_t crc_ready; /* 0: table not made, 1: made */

static void crc_make(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) c = (c >> 1) ^ ((c & 1) ? 0x82F63B78u : 0);
        crc_table[i] = c;
    }
    /* Two threads may make it at once: both write the same values. */
    __atomic_store_n(&crc_ready, 1, __ATOMIC_RELEASE);
}

static uint32_t crc_portable(uint32_t crc, const unsigned char *p, size_t n) {
    if (!__atomic_load_n(&crc_ready, __ATOMIC_ACQUIRE)) crc_make();
    while (n--) crc = crc_table[(crc ^ *p++) & 255] ^ (crc >> 8);
    return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc_sse42(uint32_t crc, const unsigned char *p,
                                                            size_t n) {
    uint64_t c = crc;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        c = __builtin_ia32_crc32di(c, v);
    }
    uint32_t r = (uint32_t)c;
    while (n--) r = __builtin_ia32_crc32qi(r, *p++);
    return r;
}
#endif

uint32_t cwi_crc32c(uint32_t crc, const void *data, size_t length) {
    crc = ~crc;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2")) return ~crc_sse42(crc, data, length);
#endif
    return ~crc_portable(crc, data, length);
}
