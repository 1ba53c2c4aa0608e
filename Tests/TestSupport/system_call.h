/* syscall(2) under another name, for programs that replace it. */
#pragma once
#include <errno.h>
#include <stdarg.h>

typedef struct {
    long a, b, c, d, e, f;
} call_arguments;

static inline call_arguments call_arguments_of(va_list rest) {
    call_arguments of;
    of.a = va_arg(rest, long), of.b = va_arg(rest, long), of.c = va_arg(rest, long);
    of.d = va_arg(rest, long), of.e = va_arg(rest, long), of.f = va_arg(rest, long);
    return of;
}

static inline long system_call(long number, call_arguments of) {
    long result;
    register long r10 __asm__("r10") = of.d;
    register long r8 __asm__("r8") = of.e;
    register long r9 __asm__("r9") = of.f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(of.a), "S"(of.b), "d"(of.c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    if (result >= 0 || result <= -4096) return result;
    errno = (int)-result;
    return -1;
}
