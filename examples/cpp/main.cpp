// A C++ host of Cordwood: logs every line of a file as one record, from several threads.
//
//   main STORE INPUT_FILE [--threads N] [--repeat R] [--kept FILE] [--progress]
//
// Like examples/c/main.c: lines are dealt to the threads; --kept names a file of one u64 per
// thread, raised after each call that kept its record. The file survives `kill -9`, as records do.
// Build: c++ -std=c++17 -I include examples/cpp/main.cpp -L build/lib -lcordwood -lpthread
#include <cordwood/cordwood.hpp>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

using clock_type = std::chrono::steady_clock;
using counter = std::atomic<uint64_t>;
static_assert(sizeof(counter) == sizeof(uint64_t), "the kept file is an array of u64");

constexpr size_t field_every = 4;

struct arguments {
    std::string store, input, kept;
    size_t threads = 4, repeat = 1;
    bool progress = false;
};

[[noreturn]] void fail(const std::string &what, const std::string &why) {
    std::fprintf(stderr, "%s: %s\n", what.c_str(), why.c_str());
    std::exit(1);
}

void check(cordwood::status status, const char *what) {
    if (status.failed()) {
        fail(what, std::string(status.name()) + ": " + cordwood::last_error());
    }
}

arguments parse(const std::vector<std::string> &words) {
    arguments given;
    if (words.size() < 2) {
        fail("usage", "STORE INPUT_FILE [--threads N] [--repeat R] [--kept FILE] [--progress]");
    }
    given.store = words[0];
    given.input = words[1];
    for (size_t i = 2; i < words.size(); i++) {
        if (words[i] == "--progress") {
            given.progress = true;
            continue;
        }
        const std::string next = i + 1 < words.size() ? words[i + 1] : "";
        if (words[i] == "--threads") {
            given.threads = std::strtoull(next.c_str(), nullptr, 10);
        } else if (words[i] == "--repeat") {
            given.repeat = std::strtoull(next.c_str(), nullptr, 10);
        } else if (words[i] == "--kept") {
            given.kept = next;
        } else {
            fail(words[i], "not known");
        }
        i++;
    }
    if (given.threads == 0 || given.threads > 256) {
        fail("--threads", "1 to 256");
    }
    return given;
}

std::string contents(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        fail(path, "cannot be read");
    }
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Lines without their newline; every other byte stays as it is.
std::vector<std::string_view> split(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        size_t end = text.find('\n');
        lines.push_back(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return lines;
}

// One counter per thread, in the file if one is named.
counter *map_counters(const std::string &path, size_t threads) {
    size_t size = threads * sizeof(counter);
    int file = -1;
    if (!path.empty()) {
        file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (file < 0 || ::ftruncate(file, static_cast<off_t>(size)) != 0) {
            fail(path, "cannot be made");
        }
    }
    int flags = MAP_SHARED | (file < 0 ? MAP_ANONYMOUS : 0);
    void *counters = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, file, 0);
    if (counters == MAP_FAILED) {
        fail("--kept", "cannot be mapped");
    }
    return static_cast<counter *>(counters);
}

// A counter stops at the first refused record, so it counts a prefix of the thread's lines.
cordwood::status write_lines(cordwood::logger log, const std::vector<std::string_view> &lines,
                             size_t first, const arguments &given, counter &kept) {
    uint64_t done = 0;
    for (size_t round = 0; round < given.repeat; round++) {
        for (size_t i = first; i < lines.size(); i += given.threads) {
            size_t number = i + 1;
            cordwood::status status =
                number % field_every == 0
                    ? log.info(lines[i], {{"line", static_cast<int64_t>(number)}})
                    : log.write(cordwood::level::info, lines[i]);
            if (!status) {
                return status;
            }
            done++;
            // A plain store: this thread alone writes its counter.
            kept.store(done, std::memory_order_relaxed);
        }
    }
    return CW_OK;
}

uint64_t sum(const counter *counters, size_t count) {
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += counters[i].load(std::memory_order_relaxed);
    }
    return total;
}

void show_progress(const counter *kept, size_t threads, const std::atomic<size_t> &running) {
    while (running.load() > 0) {
        std::fprintf(stderr, "\r%llu", static_cast<unsigned long long>(sum(kept, threads)));
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    std::fputc('\n', stderr);
}

} // namespace

int main(int count, char **words) {
    const arguments given = parse({words + 1, words + (count < 1 ? 1 : count)});
    const std::string text = contents(given.input);
    const std::vector<std::string_view> lines = split(text);
    counter *kept = map_counters(given.kept, given.threads);

    auto opened = cordwood::engine::open(given.store);
    check(opened.status(), "open");
    cordwood::engine engine = *std::move(opened);
    const cordwood::logger log = engine.logger("demo.cpp");

    const auto begin = clock_type::now();
    std::vector<std::thread> threads;
    std::vector<cordwood::status> answers(given.threads);
    std::atomic<size_t> running(given.threads);
    for (size_t i = 0; i < given.threads; i++) {
        threads.emplace_back([&, i] {
            answers[i] = write_lines(log, lines, i, given, kept[i]);
            running.fetch_sub(1);
        });
    }
    if (given.progress) {
        show_progress(kept, given.threads, running);
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    const std::chrono::duration<double, std::nano> elapsed = clock_type::now() - begin;
    for (cordwood::status answer : answers) {
        check(answer, "write");
    }
    check(engine.close(), "close");

    // The time of one call, as its thread sees it.
    const uint64_t total = sum(kept, given.threads);
    const double thread_time = elapsed.count() * static_cast<double>(given.threads);
    const double per_record = total == 0 ? 0 : thread_time / static_cast<double>(total);
    std::printf("{\"host\":\"cpp\",\"kept\":%llu,\"ns_per_record\":%.1f}\n",
                static_cast<unsigned long long>(total), per_record);
    return 0;
}
