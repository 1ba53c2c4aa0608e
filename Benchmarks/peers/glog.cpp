// glog as a peer: glog WHERE MODE N WORKLOAD [THREADS], the modes of load.h. LOG(INFO) to a file,
// nothing on stderr, all else by default: INFO is flushed at most every 30 s.
#include "../load.h"

#include <glog/logging.h>

#include <string>

static void engine_open(const char *where) {
    static std::string folder = where;
    FLAGS_log_dir = folder;
    FLAGS_logtostderr = false;
    FLAGS_stderrthreshold = google::GLOG_FATAL;
    FLAGS_max_log_size = 4095; // MB, the maximum: no second file
    google::InitGoogleLogging("bench");
}
static void engine_close(void) { google::ShutdownGoogleLogging(); }
static void engine_say(void) { printf(",\"dropped\":0"); }

WRITER write_w1(size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++) LOG(INFO) << "a record of constant text";
}
WRITER write_w2(size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++)
        LOG(INFO) << "order " << static_cast<int>(i) << " at " << std::fixed
                  << prices[i % VARIANTS];
}
WRITER write_w3(size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++)
        LOG(INFO) << "user " << static_cast<const char *>(names[i % VARIANTS]) << " did "
                  << static_cast<int>(i);
}
WRITER write_w4(size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++)
        LOG(INFO).write(messages[i % VARIANTS], MESSAGE);
}

int main(int argc, char **argv) { return load_main(argc, argv); }
