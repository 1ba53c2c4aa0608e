#include <cordwood/cordwood.hpp>

int main() {
    auto engine = cordwood::engine::open("logs");
    if (!engine) return 1;
    auto log = engine->logger("app.cpp");
    log.info("hello from C++", {{"order", 7}, {"price", 1.5}}); // typed fields
    CORDWOOD_WARN(log, "order {} is {:.1f} s late", 7, 2.5); // formatted when somebody reads it
}
