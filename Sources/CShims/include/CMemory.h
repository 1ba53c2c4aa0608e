/* Memory where the system may refuse it. Any thread. */
#ifndef CORDWOOD_MEMORY_H
#define CORDWOOD_MEMORY_H
#include "CShims.h"

/* Of what Swift's runtime has in reserve (reserve.c). */
enum { CWI_RESERVE_BYTES = 4 << 20 };

/* Whether so many bytes can be had: where a limit may refuse them, obtains them and gives them
 * back. False also while half of the large blocks that Swift's runtime has in reserve are taken
 * (reserve.c). */
bool cwi_has_room(size_t bytes);

#endif
