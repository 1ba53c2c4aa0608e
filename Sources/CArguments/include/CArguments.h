/* The program's arguments, as the system passed them: Swift's CommandLine reads them from /proc,
 * and has none where that is not mounted. */
#ifndef CARGUMENTS_H
#define CARGUMENTS_H

int cw_argument_count(void);
/* 0 is the program's name. NULL: there is no such argument. */
const char *cw_argument(int number);

#endif
