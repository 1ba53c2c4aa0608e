/* The C parts that handle untrusted bytes, under the address and undefined behaviour sanitizers:
 * checksums at every alignment against the definition, strings that end where a page ends,
 * printing, zeros, and the crash report's text. run.py builds it. */
#define _GNU_SOURCE 1
#include "CShims.h"
#include "crash.h"
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static uint32_t crc_slow(const unsigned char *p, size_t n) {
    uint32_t crc = ~0u;
    while (n--) {
        crc ^= *p++;
        for (int k = 0; k < 8; k++) crc = (crc >> 1) ^ ((crc & 1) ? 0x82F63B78u : 0);
    }
    return ~crc;
}

/* n bytes that end where memory ends. */
static unsigned char *at_page_end(size_t n) {
    char *memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(memory != MAP_FAILED && mprotect(memory + 4096, 4096, PROT_NONE) == 0);
    return (unsigned char *)memory + 4096 - n;
}

int main(void) {
    int checks = 0;
    unsigned char *end = at_page_end(300);
    for (int i = 0; i < 300; i++) end[i] = (unsigned char)(i * 31 + 7);
    for (size_t from = 0; from < 40; from++)
        for (size_t to = from; to <= 300; to += 13, checks++) {
            uint32_t whole = crc_slow(end + from, to - from);
            assert(cwi_crc32c(0, end + from, to - from) == whole);
            size_t half = (to - from) / 2;
            uint32_t part = cwi_crc32c(0, end + from, half);
            assert(cwi_crc32c(part, end + from + half, to - from - half) == whole);
        }
    for (size_t n = 0; n < 100; n++, checks++) {
        char *text = (char *)at_page_end(n + 1), other[101];
        memset(text, 'a', n);
        text[n] = 0;
        memset(other, 'a', sizeof other);
        assert(cwi_same_text(text, other, n));
        assert(n == 0 || !cwi_same_text(text, other, n - 1));
        assert(!cwi_same_text(text, other, n + 1) || n + 1 > 100);
        if (n > 0) other[n - 1] = 'b';
        assert(n == 0 || !cwi_same_text(text, other, n));
        munmap((void *)((uintptr_t)text & ~(uintptr_t)4095), 8192);
    }
    char out[64];
    int number = -42;
    double price = NAN;
    assert(cwi_print(out, sizeof out, "%5d", 1, &number) == 5 && strcmp(out, "  -42") == 0);
    assert(cwi_print(out, 3, "%5d", 1, &number) == 5 && strcmp(out, "  ") == 0);
    assert(cwi_print(out, sizeof out, "%.2f", 3, &price) == 3 && strcmp(out, "nan") == 0);
    assert(cwi_print(out, sizeof out, "%d", 9, &number) == 0);
    char said[16];
    assert(cwi_error_text(2, said, sizeof said) == 16 && memcmp(said, "No such file or ", 16) == 0);
    FILE *file = tmpfile();
    assert(file && cwi_write_zeros(fileno(file), 5, 200000) == 0);
    assert(fseek(file, 0, SEEK_END) == 0 && ftell(file) == 200005);
    fclose(file);
    checks += 8;

    /* Every signal and code, with frames inside and outside of modules, and far away. */
    crash_work *work = calloc(1, sizeof *work);
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS, 64};
    for (size_t s = 0; s < 8; s++)
        for (int code = -8; code < 12; code++, checks++) {
            ucontext_t context;
            getcontext(&context);
#if defined(__x86_64__)
            context.uc_mcontext.gregs[REG_RBP] = 0;
            context.uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)&main;
#endif
            memset(work, 0, sizeof *work);
            work->context = &context;
            work->info.si_signo = signals[s];
            work->info.si_code = code;
            work->info.si_addr = (void *)(uintptr_t)(code * 0x123456789);
            work->tid = 1;
            crash_describe(work);
            const cwi_crash_report *report = &work->report;
            assert(report->type_length > 0 && report->message_length > report->type_length);
            assert(report->stack_length > 20 && memcmp(report->stack, "#0 0x", 5) == 0);
            assert(report->fields_length < CRASH_FIELDS && report->fields[0] >= 6);
            assert(memmem(report->stack, report->stack_length, "BuildId", 7) ||
                   !memmem(report->stack, report->stack_length, "libc.so", 7));
        }
    free(work);
    printf("%d checks\n", checks);
    return 0;
}
