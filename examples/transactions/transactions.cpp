// Like transactions.c, in C++: the transaction ends with its scope. transactions-cpp STORE URL
#include <cordwood/cordwood.hpp>

#include <iostream>

enum class usecase { checkout = 17 };
enum class event { begun = 0, paid = 1 };

int main(int argc, char **argv) {
    if (argc != 3) return std::cerr << "transactions-cpp STORE URL\n", 2;
    auto engine = cordwood::engine::open(argv[1]);
    if (!engine) return std::cerr << cordwood::last_error() << "\n", 1;
    engine->name_transactions({{17, CW_EVENT_NONE, "checkout"}, {17, 1, "paid"}});
    if (!engine->add_target(cordwood::target(argv[2])
                                .kind("transactions")
                                .name("transactions")
                                .auth_token("token")))
        return std::cerr << cordwood::last_error() << "\n", 1;

    if (auto checkout = engine->begin_transaction(usecase::checkout)) {
        auto inside = checkout->attach(); // this thread's records carry the id
        checkout->event(event::begun);
        std::cout << CW_TRANSACTION_HEADER ": " << checkout->id() << "\n"
                  << "traceparent: " << checkout->traceparent() << "\n";
        checkout->event(event::paid, "42", "the card was refused");
    }

    auto sent = engine->flush_transactions(std::chrono::seconds(30));
    if (!sent) return std::cerr << cordwood::last_error() << "\n", 1;
    std::cout << sent->records << " events sent\n";
    return 0;
}
