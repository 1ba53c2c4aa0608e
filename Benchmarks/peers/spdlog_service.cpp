// A service's records (service.h) by spdlog: spdlog_service WHERE RECORDS THREADS.
#include "spdlog.h"

#define INFO(printf, braces, ...) logger->info(braces, ##__VA_ARGS__)
#define DEBUG(printf, braces, ...) logger->debug(braces, ##__VA_ARGS__)
#define WARN(printf, braces, ...) logger->warn(braces, ##__VA_ARGS__)
#define LINE(text, length) logger->info(spdlog::string_view_t(text, length))
#include "../service.h"

int main(int argc, char **argv) { return service_main(argc, argv); }
