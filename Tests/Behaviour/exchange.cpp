// An exchange of a C++ host, and one that its scope ends: exchange STORE (test_http.py).
#include <cordwood/cordwood.hpp>

#include <memory>

int main(int count, char **words) {
    auto engine = cordwood::engine::open(count > 1 ? words[1] : "");
    if (!engine) return 1;
    cw_http_options options;
    cw_http_options_init(&options, sizeof options);
    options.enabled = 1;
    if (cw_http_options_set(engine->handle(), &options) != CW_OK) return 2;
    auto exchange = engine->begin_http("POST", "http://api.test/v1?token=zq-1",
                                                   {{"Cookie", "sid=zq-2"}},
                                                   "{\"password\":\"zq-3\"}");
    if (!exchange || exchange.id().size() != 16) return 3;
    exchange.response(200, {{"Content-Type", "application/json"}}, "h2");
    exchange.response_body("{\"a\":1}");
    cordwood::http_exchange moved = std::move(exchange);
    if (exchange || !moved.end() || moved) return 4;
    { auto left = engine->begin_http("GET", "http://api.test/left"); }
    cordwood::http_exchange empty;
    empty.response(200);
    empty.end();

    cordwood::conversation outer("talk-1");
    {
        cordwood::conversation inner;
        if (inner.id().size() != 32) return 5;
        cordwood::conversation innermost("talk-2");
        engine->begin_http("GET", "http://api.test/inner").end();
    }
    engine->begin_http("GET", "http://api.test/outer").end();
    engine->begin_http("GET", "http://api.test/said",
                                   {{"X-Conversation-Id", "own"}})
        .end();

    cw_http_request request{};
    cw_field fields[64]{};
    for (cw_field &field : fields) {
        field.key = {"shop", 4};
        field.type = CW_TYPE_STRING;
        field.value.s = {"x", 1};
    }
    request.method = {"GET", 3};
    request.url = {"http://api.test/fields", 22};
    request.fields = fields;
    for (std::size_t fits : {1U, 63U, 64U}) {
        request.field_count = fits;
        engine->begin_http(request).end();
    }

    // Ended out of order: the innermost one still open is in force.
    auto first = std::make_unique<cordwood::conversation>("a-conversation-with-a-long-id-1");
    auto second = std::make_unique<cordwood::conversation>("a-conversation-with-a-long-id-2");
    auto third = std::make_unique<cordwood::conversation>("a-conversation-with-a-long-id-3");
    second.reset();
    engine->begin_http("GET", "http://api.test/third").end();
    first.reset();
    third.reset();
    if (cordwood::conversation::current() != &outer) return 6;
    engine->begin_http("GET", "http://api.test/last").end();
    return 0;
}
