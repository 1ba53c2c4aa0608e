/* How often the engine's threads have slept and woken so far, for idle.c and load.h. */
#ifndef BENCH_WAKES_H
#define BENCH_WAKES_H

#include <dirent.h>
#include <stdio.h>
#include <string.h>

/* How often the threads named cordwood-… went to sleep. */
static inline long helper_wakes(void) {
    long sum = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks != NULL && (task = readdir(tasks)) != NULL;) {
        char path[300], line[256];
        long count = 0;
        int is_ours = 0;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        FILE *file = task->d_name[0] == '.' ? NULL : fopen(path, "r");
        while (file != NULL && fgets(line, sizeof line, file) != NULL) {
            if (strncmp(line, "Name:\tcordwood-", 15) == 0) is_ours = 1;
            if (sscanf(line, "voluntary_ctxt_switches: %ld", &count) == 1 && is_ours) sum += count;
        }
        if (file != NULL) fclose(file);
    }
    if (tasks != NULL) closedir(tasks);
    return sum;
}

#endif
