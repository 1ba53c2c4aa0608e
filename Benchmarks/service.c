/* Records like a real service's (service.h), in our store, with the settings of hot.h:
 * service STORE RECORDS THREADS. */
#include <cordwood/cordwood.h>

#define HOT_LEVEL CW_LEVEL_DEBUG
#include "hot.h"

#define INFO(printf, braces, ...) CW_INFO(logger, printf, ##__VA_ARGS__)
#define DEBUG(printf, braces, ...) CW_DEBUG(logger, printf, ##__VA_ARGS__)
#define WARN(printf, braces, ...) CW_WARN(logger, printf, ##__VA_ARGS__)
#define LINE(text, length) \
    (cw_write(logger, CW_LEVEL_INFO, text, length) == CW_OK ? (void)0 : hot_fail("cw_write"))
#include "service.h"

int main(int argc, char **argv) { return service_main(argc, argv); }
