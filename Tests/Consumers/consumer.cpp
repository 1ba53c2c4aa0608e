// The smallest C++ host, like consumer.c; compiled with and without exceptions and RTTI.
#include <cordwood/cordwood.hpp>

#include <cstdio>

#ifdef __cpp_exceptions
#include <stdexcept>
#endif

namespace {

int failures = 0;

void expect(bool holds, const char *what) {
    if (!holds) {
        std::fprintf(stderr, "%s: %s\n", what, cordwood::last_error().c_str());
        failures++;
    }
}

void write_all(cordwood::logger log) {
    const std::string user = "anna";
    expect(static_cast<bool>(log.info("hello")), "info");
    expect(log.debug("hidden").code() == CW_DISABLED, "debug below the level");
    expect(static_cast<bool>(log.warn(
               "fields", {{"order", 7}, {"user", user}, {"price", 1.5}, {"new", true},
                          {"cart", cordwood::json{"[{\"sku\":\"x\"}]"}}})),
           "warn with fields");
#ifdef __cpp_exceptions
    try {
        throw std::runtime_error("boom");
    } catch (const std::exception &error) {
        expect(static_cast<bool>(log.error("failed", error, {{"order", 7}})), "error");
    }
#endif
}

void read_all(const char *store, int wanted) {
    auto reader = cordwood::reader::open(store, cordwood::reader_options().logger("consumer.cpp"));
    expect(static_cast<bool>(reader), "reader");
    int found = 0;
    bool saw_order = false, saw_cart = false;
    for (const cordwood::record_view &record : *reader) {
        found++;
        for (cordwood::field_view field : record.fields()) {
            const auto value = field.value();
            const int64_t *order = std::get_if<int64_t>(&value);
            saw_order = saw_order || (field.key() == "order" && order != nullptr && *order == 7);
            saw_cart = saw_cart || (field.key() == "cart" && field.type() == CW_TYPE_JSON);
        }
        expect(record.line() != 0 && !record.file().empty(), "place");
        expect(record.record_id_text().size() == 48 && !record.process_name().empty(), "id");
        bool saw_host = false;
        for (cordwood::field_view attribute : record.resource())
            saw_host = saw_host || attribute.key() == "host.name";
        expect(saw_host && !record.host().empty() && record.service().empty(), "origin");
    }
    expect(reader->status().code() == CW_END, "end");
    expect(found == wanted && saw_order && saw_cart, "records");
    auto asked = cordwood::reader::open(
        store,
        cordwood::reader_options().logger("consumer.cpp").query("user=anna price>1 cart.0.sku=x"));
    int answers = 0;
    for (const cordwood::record_view &record : *asked) answers += record.message() == "fields";
    expect(answers > 0 && asked->status().code() == CW_END, "query");
    auto wrong = cordwood::reader::open(store, cordwood::reader_options().query("price>"));
    expect(wrong.status().code() == CW_E_ARGUMENT, "a wrong query");
}

cw_status busy(void *, const cw_transport_request *, cw_transport_response *response) {
    return cw_transport_response_status(response, 503);
}

bool count_bytes(void *, const void *, size_t) { return true; }

// CW_END: the background is sending it now.
bool is_shown(cordwood::status answer) { return answer == CW_OK || answer == CW_END; }

void send_all(cordwood::engine &engine) {
    expect(!engine.last_upload_error(), "no transfer failed yet");
    const auto place = [] { return cordwood::target("http://logs.example/in").kind("http"); };
    auto number = engine.add_target(place().name("out").transport(busy));
    expect(number && *number != 0, "target");
    expect(engine.add_target(place().name("out")) == CW_E_EXISTS, "the same name again");
    expect(is_shown(engine.upload_preview(*number, count_bytes)), "the target's preview");
    expect(engine.upload_preview(*number + 1, count_bytes) == CW_E_NOT_FOUND, "another number");
    using namespace std::string_view_literals;
    for (const std::string_view word : {"a\nX: b"sv, "a\r\nX: b"sv, "a\0X"sv}) {
        expect(engine.add_target(place().header("A", word)) == CW_E_ARGUMENT, "a header");
        expect(engine.add_target(place().header(word, "a")) == CW_E_ARGUMENT, "its name");
        expect(engine.add_target(place().kind("loki").parameter("tenant", word)) == CW_E_ARGUMENT,
               "a parameter");
    }
    auto sent = engine.upload();
    expect(sent == CW_E_UPLOAD && sent.failed(), "upload to a busy server");
    expect(sent->failed == 1 && sent->last_http_status == 503, "its counts");
    auto none = engine.flush_transactions(std::chrono::seconds(5));
    expect(none == CW_E_NO_TARGET && none->records == 0, "no target of transactions");
    // The background may have sent it first.
    const cordwood::upload_error error = engine.last_upload_error("out");
    expect(error && error->http_status == 503 && error->attempt >= 1, "the last error");
    expect(error.text() != error.text("de"), "its text");
    expect(!engine.last_upload_error("another"), "another target's");
    expect(static_cast<bool>(engine.remove_target("out")), "remove");
}

void apply_policies(cordwood::engine &engine) {
    expect(engine.apply_policy(R"({"enabled": 1})").code() == CW_E_ARGUMENT, "a wrong policy");
    expect(cordwood::last_error().find("enabled") != std::string::npos, "the key is named");
    cordwood::logger log = engine.logger("quiet");
    expect(static_cast<bool>(engine.apply_policy(R"({"levels": {"quiet": "fatal"}})")), "policy");
    expect(log.error("x").code() == CW_DISABLED, "the policy's level");
}

void fail_all(cordwood::logger log) {
    cordwood::network_result ended;
    ended.http_status = 204;
    expect(!cordwood::network_error::from(ended), "a request that went well");
    ended.http_status = 403;
    ended.headers = {{"retry-after", "7"}};
    ended.body = R"({"error": {"code": "A/1", "message": "no"}})";
    ended.method = "GET";
    ended.url = "https://me:hush@api.example/teams?token=hush";
    ended.exchange_id = "9f3c5a0de1b27788";
    cordwood::network_error error = cordwood::network_error::from(ended);
    expect(error && error->outcome == CW_OUTCOME_CLIENT && error->retry_after_ms == 7000, "client");
    expect(std::string_view(error->url.data) == "https://api.example/teams", "its address");
    expect(std::string_view(error->exchange_id.data) == ended.exchange_id, "its exchange");
    expect(error.text().find("A/1") != std::string::npos && error.text() != error.text("de"),
           "its text");
    expect(static_cast<bool>(error.log(log, "teams", {{"page", 2}})), "its record");
    cw_record more = {};
    more.level = CW_LEVEL_DEBUG;
    expect(error.log(log, more).code() == CW_DISABLED, "below the level");
    expect(cordwood::network_error().log(log).code() == CW_E_ARGUMENT, "no error to log");
    ended.http_status = -1;
    expect(cordwood::network_error::from(ended)->outcome == CW_OUTCOME_REQUEST_FAILED, "below 0");
}

} // namespace

int main(int count, char **words) {
    const char *store = count > 1 ? words[1] : "";
    auto opened = cordwood::engine::open(cordwood::options(store).codec(cordwood::codec::lz4));
    expect(static_cast<bool>(opened), "open");
    cordwood::engine engine = *std::move(opened);
    cordwood::logger log = engine.logger("consumer.cpp");
    write_all(log);
    expect(engine.stats()->records_written >= 2, "stats");
    send_all(engine);
    apply_policies(engine);
    fail_all(engine.logger("net"));
    expect(static_cast<bool>(engine.close()), "close");
    expect(static_cast<bool>(engine.close()), "close again");
    expect(log.info("late").code() == CW_E_CLOSED, "after close");
    expect(!log.enabled(cordwood::level::fatal), "enabled after close");
    cordwood::logger nobody;
    expect(nobody.info("x").code() == CW_E_ARGUMENT, "an empty logger");
    expect(!cordwood::engine::open(cordwood::options("/dev/null/x")), "open what cannot be");
    expect(cordwood::last_error().find("/dev/null") != std::string::npos, "the path is named");
#ifdef __cpp_exceptions
    read_all(store, 3);
#else
    read_all(store, 2);
#endif
    return failures != 0;
}
