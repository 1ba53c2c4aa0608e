// How spdlog's programs open and close it: a basic_file_sink (_mt) with the default pattern and the
// default flush policy: none before the stdio buffer is full. LOAD_ASYNC=1: the default thread pool
// (8,192 slots, one thread, block when full).
#ifndef BENCH_SPDLOG_H
#define BENCH_SPDLOG_H

#include "../environment.h"

#include <spdlog/async.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <memory>
#include <string>

static std::shared_ptr<spdlog::logger> logger;

static void engine_open(const char *where) {
    std::string path = std::string(where) + "/spdlog.log";
    logger = load_number("LOAD_ASYNC", 0)
                 ? spdlog::basic_logger_mt<spdlog::async_factory>("bench", path)
                 : spdlog::basic_logger_mt("bench", path);
    logger->set_level(spdlog::level::debug);
}
static void engine_close(void) {
    logger.reset();
    spdlog::shutdown();
}
static void engine_say(void) { printf(",\"dropped\":0"); }

#endif
