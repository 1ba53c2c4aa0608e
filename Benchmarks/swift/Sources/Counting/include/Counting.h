/* Allocations of the calling thread since it began. */
#ifndef COUNTING_H
#define COUNTING_H
#include <stdint.h>
uint64_t counting_allocations(void);
#endif
