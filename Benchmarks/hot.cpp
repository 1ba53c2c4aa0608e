// One record, seen from a C++ host: like hot.c, with braces: logger.info("order {} at {}", …),
// whose arguments are copied raw and whose text is made by the reader. w1 is logger.info("…"),
// which keeps its place; w4 is the ready message by logger.write.
// -DMACROS: by CORDWOOD_INFO instead of logger.info; its w1 keeps only the text's address.
// hotpp STORE MODE N WORKLOAD [THREADS], the modes of load.h.
#define LOAD_OFF
#include "hot.h"
#include "load.h"

#include <cordwood/cordwood.hpp>

#include <string_view>

#ifdef MACROS
#define INFO(...) CORDWOOD_INFO(log, __VA_ARGS__)
#define DEBUG(...) CORDWOOD_DEBUG(log, __VA_ARGS__)
#else
#define INFO(...) log.info(__VA_ARGS__)
#define DEBUG(...) log.debug(__VA_ARGS__)
#endif

static cordwood::logger braces() { return cordwood::logger(logger); }

WRITER write_w1(size_t first, size_t count) {
    auto log = braces();
    for (size_t i = first; i < first + count; i++) INFO("a record of constant text");
}
WRITER write_w2(size_t first, size_t count) {
    auto log = braces();
    for (size_t i = first; i < first + count; i++)
        INFO("order {} at {:f}", static_cast<int>(i), prices[i % VARIANTS]);
}
WRITER write_w3(size_t first, size_t count) {
    auto log = braces();
    for (size_t i = first; i < first + count; i++)
        INFO("user {} did {}", static_cast<const char *>(names[i % VARIANTS]),
             static_cast<int>(i));
}
WRITER write_w4(size_t first, size_t count) {
    auto log = braces();
    for (size_t i = first; i < first + count; i++)
        log.write(cordwood::level::info, std::string_view(messages[i % VARIANTS], MESSAGE));
}
WRITER write_off(size_t first, size_t count) {
    auto log = braces();
    auto off = [&log](size_t i) {
        DEBUG("order {} at {:f}", static_cast<int>(i), prices[i % VARIANTS]);
    };
    for (size_t i = first; i < first + count; i += 10) { // as hot.c
        off(i), off(i), off(i), off(i), off(i);
        off(i), off(i), off(i), off(i), off(i);
    }
}

int main(int argc, char **argv) { return load_main(argc, argv); }
