// spdlog as a peer: spdlog WHERE MODE N WORKLOAD [THREADS], the modes of load.h.
#include "spdlog.h"

#include "../load.h"

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
