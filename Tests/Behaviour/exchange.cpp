// An exchange of a C++ host, and one that its scope ends: exchange STORE (test_http.py).
#include <cordwood/cordwood.hpp>

int main(int count, char **words) {
    auto engine = cordwood::engine::open(count > 1 ? words[1] : "");
    if (!engine) return 1;
    cw_http_options options;
    cw_http_options_init(&options, sizeof options);
    options.enabled = 1;
    if (cw_http_options_set(engine->handle(), &options) != CW_OK) return 2;
    auto exchange = cordwood::http_exchange::begin(*engine, "POST", "http://api.test/v1?token=zq-1",
                                                   {{"Cookie", "sid=zq-2"}},
                                                   "{\"password\":\"zq-3\"}");
    if (!exchange || exchange.id().size() != 16) return 3;
    exchange.response(200, {{"Content-Type", "application/json"}}, "h2");
    exchange.response_body("{\"a\":1}");
    cordwood::http_exchange moved = std::move(exchange);
    if (exchange || !moved.end() || moved) return 4;
    { auto left = cordwood::http_exchange::begin(*engine, "GET", "http://api.test/left"); }
    cordwood::http_exchange empty;
    empty.response(200);
    empty.end();

    cordwood::conversation outer("talk-1");
    {
        cordwood::conversation inner;
        if (inner.id().size() != 32) return 5;
        cordwood::conversation innermost("talk-2");
        cordwood::http_exchange::begin(*engine, "GET", "http://api.test/inner").end();
    }
    cordwood::http_exchange::begin(*engine, "GET", "http://api.test/outer").end();
    cordwood::http_exchange::begin(*engine, "GET", "http://api.test/said",
                                   {{"X-Conversation-Id", "own"}})
        .end();
    return 0;
}
