#include "CArguments.h"

#include <stddef.h>

static int count;
static char **arguments;

/* The C library calls constructors with the arguments of main. */
__attribute__((constructor)) static void keep(int argc, char **argv) {
    count = argc;
    arguments = argv;
}

int cw_argument_count(void) { return count; }

const char *cw_argument(int number) {
    return number >= 0 && number < count ? arguments[number] : NULL;
}
