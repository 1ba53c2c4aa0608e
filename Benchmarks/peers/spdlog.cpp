// spdlog as a peer: spdlog WHERE MODE N WORKLOAD [THREADS], the modes of load.h. A basic_file_sink
// (_mt) with the default pattern and the default flush policy: none before the stdio buffer is
// full. LOAD_ASYNC=1: the default thread pool (8,192 slots, one thread, block when full).
#include "../load.h"

#include <spdlog/async.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>

static std::shared_ptr<spdlog::logger> logger;

static void engine_open(const char *where) {
    std::string path = std::string(where) + "/spdlog.log";
    logger = load_number("LOAD_ASYNC", 0)
                 ? spdlog::basic_logger_mt<spdlog::async_factory>("bench", path)
                 : spdlog::basic_logger_mt("bench", path);
}
static void engine_close(void) {
    logger.reset();
    spdlog::shutdown();
}
static void engine_say(void) { printf(",\"dropped\":0"); }

WRITER write_w1(size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++) logger->info("a record of constant text");
}
WRITER write_w2(size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++)
        logger->info("order {} at {:f}", static_cast<int>(i), prices[i % VARIANTS]);
}
WRITER write_w3(size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++)
        logger->info("user {} did {}", static_cast<const char *>(names[i % VARIANTS]),
                     static_cast<int>(i));
}
WRITER write_w4(size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++)
        logger->info(spdlog::string_view_t(messages[i % VARIANTS], MESSAGE));
}

int main(int argc, char **argv) { return load_main(argc, argv); }
