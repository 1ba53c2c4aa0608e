/* For test_bench.py: reads tenths of nanoseconds, one number a line, into two histograms, joins
 * them like those of two threads, and prints the result as the benchmarks do. */
#include "histogram.h"

#include <stdlib.h>

int main(void) {
    histogram *all = calloc(1, sizeof *all), *half = calloc(1, sizeof *half);
    if (all == NULL || half == NULL) return 1;
    unsigned long long value;
    for (size_t i = 0; scanf("%llu", &value) == 1; i++) histogram_add(i % 2 ? all : half, value);
    histogram_join(all, half);
    printf("{");
    histogram_print(all, 0);
    printf("}\n");
    return 0;
}
