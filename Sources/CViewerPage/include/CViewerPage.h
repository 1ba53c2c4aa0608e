/* The files of the viewer's page, as they are in page/, within the program: nothing is installed
 * beside it, and nothing on the disk can change what a browser gets. Constant data. */
#ifndef C_VIEWER_PAGE_H
#define C_VIEWER_PAGE_H

#include <stddef.h>

typedef struct cvp_file {
    const char *name; /* as in page/ */
    const unsigned char *bytes;
    size_t count;
} cvp_file;

/* How many files there are. */
size_t cvp_count(void);

/* One of them; index below cvp_count(). */
cvp_file cvp_at(size_t index);

#endif
