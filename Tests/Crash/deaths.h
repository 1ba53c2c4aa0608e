/* The ways in which a C or C++ writer dies while its threads log at full rate. `die` returns if
 * main is to return, or if the way is unknown. C11 and C++17. */
#ifndef DEATHS_H
#define DEATHS_H

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* Each frame needs the one above it: no compiler turns the recursion into a loop. */
static volatile int overflow_depth;
static int overflow_stack(volatile char *above) {
    volatile char frame[512];
    frame[0] = (char)(above[0] + 1);
    if (++overflow_depth < 0) return 0; /* never: the stack ends first */
    return overflow_stack(frame) + frame[0];
}

static void *overflow_in_thread(void *argument) {
    char start[1] = {0};
    return argument == (void *)(intptr_t)overflow_stack(start) ? argument : NULL;
}

static void die(const char *how) {
    if (strcmp(how, "abort") == 0) abort();
    if (strcmp(how, "_exit") == 0) _exit(3);
    if (strcmp(how, "exit") == 0) exit(3);
    if (strcmp(how, "quick_exit") == 0) quick_exit(3);
    if (strcmp(how, "kill") == 0) kill(getpid(), SIGKILL);
    if (strcmp(how, "term") == 0) kill(getpid(), SIGTERM);
    if (strcmp(how, "trap") == 0) __builtin_trap();
    if (strcmp(how, "segv") == 0) {
        volatile int *volatile nowhere = (volatile int *)8;
        *nowhere = 1;
    }
    if (strcmp(how, "exec") == 0) execl("/bin/sh", "sh", "-c", "exit 3", (char *)NULL);
    if (strcmp(how, "pthread_exit") == 0) pthread_exit(NULL);
    if (strcmp(how, "overflow") == 0) {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, 256 << 10);
        pthread_attr_setguardsize(&attributes, 64 << 10);
        pthread_t thread;
        pthread_create(&thread, &attributes, overflow_in_thread, NULL);
        pthread_join(thread, NULL);
    }
}

#endif
