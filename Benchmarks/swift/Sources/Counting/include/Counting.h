/* Allocations of the calling thread since it began, and workloads by their C names: callgrind
 * toggles at these functions only if they are called by these names. */
#ifndef COUNTING_H
#define COUNTING_H
#include <stdint.h>
uint64_t counting_allocations(void);
typedef void (*counting_workload)(intptr_t count);
counting_workload counting_find(const char *name); /* NULL: there is none */
#endif
