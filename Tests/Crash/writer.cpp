// Like writer.c, in C++: writes at full rate from eight threads until it is killed, or dies.
//
//     writer-cpp STORE KEPT_FILE SEGMENT_BYTES SEED [HOW RECORDS]
//
// Odd threads: deferred, `{}`. Threads 2, 6: text and fields. 0, 4: only text. HOW: as in writer.c;
// throw: main throws an exception without a handler; thread: a thread does; noexcept: out of a
// function that must not; joinable: threads are destroyed while they run.
#include "crash.h"
#include "deaths.h"

#include <cordwood/cordwood.hpp>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

uint64_t *kept;
uint64_t seed;

void run(cordwood::logger log, uint64_t thread) {
    char message[MESSAGE_MAX];
    for (uint64_t number = 0;; number++) {
        cordwood::status status;
        if (thread % 2) {
            const std::string_view filler(letters + number % 26,
                                          filler_length(seed, thread, number));
            status = log.info("t{} n{} {}", thread, number, filler);
        } else {
            const std::string_view text(message, make_message(message, seed, thread, number));
            status = thread % 4 == 2 ? log.info(text, {{"number", number}})
                                     : log.write(cordwood::level::info, text);
        }
        if (!status) { // as in writer.c: a refused record is not kept, and this thread ends
            std::fprintf(stderr, "writer: a thread ends: %s\n", status.name());
            return;
        }
        note_kept(kept, thread, number + 1);
    }
}

void throw_in_cpp() { throw std::runtime_error("nobody catches this"); }
void may_not_throw() noexcept { throw_in_cpp(); }

void die_in_cpp(const std::string &how) {
    if (how == "throw") {
        throw_in_cpp();
    }
    if (how == "thread") {
        std::thread(throw_in_cpp).join();
    }
    if (how == "noexcept") {
        may_not_throw();
    }
    die(how.c_str());
}

} // namespace

int main(int count, char **words) {
    if (count != 5 && count != 7) {
        return 2;
    }
    const std::string how = count == 7 ? words[5] : "";
    seed = std::strtoull(words[4], nullptr, 10);
    fill_letters();
    kept = map_kept(words[2]);
    if (kept == nullptr) {
        return 1;
    }
    cordwood::options options(words[1]);
    auto opened =
        cordwood::engine::open(options.segment_bytes(std::strtoull(words[3], nullptr, 10)));
    if (!opened) {
        std::fprintf(stderr, "writer: %s\n", cordwood::last_error().c_str());
        return 1;
    }
    // Never destroyed: its destructor would close the engine.
    static cordwood::engine &engine = *new cordwood::engine(*std::move(opened));
    const cordwood::logger log = engine.logger("crash");
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < THREADS; i++) {
        threads.emplace_back(run, log, i);
    }
    if (how.empty()) {
        threads[0].join();
        return 0;
    }
    const uint64_t records = std::strtoull(words[6], nullptr, 10);
    if (!wait_until_kept(kept, records)) {
        return 4;
    }
    die_in_cpp(how);
    if (how != "joinable") {
        for (std::thread &thread : threads) {
            thread.detach();
        }
    }
    return 3;
}
