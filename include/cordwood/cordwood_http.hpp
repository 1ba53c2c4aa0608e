// HTTP exchanges that a host records itself and that end with their scope (docs/HTTP.md). A part of
// cordwood.hpp, which includes it.
//
//     auto exchange = engine.begin_http("GET", "https://api.test/v1/orders");
//     exchange.response(200, {{"Content-Type", "application/json"}});
//     exchange.response_body(bytes);
//     exchange.end(); // or with an error; without it: "abandoned"
//
// If the engine does not capture, the exchange is empty, and all calls accept that. Threads: one at
// a time. As in cordwood.hpp, only allocations throw, and std::random_device, which a conversation
// reads if the host gives it no id.
#ifndef CORDWOOD_HPP
#include <cordwood/cordwood.hpp> // which in turn includes this file
#endif
#ifndef CORDWOOD_HTTP_HPP
#define CORDWOOD_HTTP_HPP

#include <cstddef>
#include <initializer_list>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cordwood {

struct http_header {
    std::string_view name;
    std::string_view value;
};

namespace detail {

// Borrows the texts of a list of http_header.
template <class List> std::vector<cw_http_header> borrow_headers(const List &list) {
    std::vector<cw_http_header> given;
    given.reserve(list.size());
    for (const http_header &one : list) given.push_back({borrow(one.name), borrow(one.value)});
    return given;
}

} // namespace detail

/// While a conversation lives, the thread's records carry the field `http.conversation`, and so do
/// the exchanges of http_exchange that have no header for it. Scopes nest. Each ends on the thread
/// that made it, in any order; the innermost living one is current.
class conversation {
public:
    /// Makes a new id of 32 hex digits.
    conversation() : conversation(fresh()) {}
    explicit conversation(std::string id) : id_(std::move(id)), outer_(in_force()) {
        in_force() = this;
        cw_context_set(key, id_.c_str());
    }
    conversation(const conversation &) = delete;
    conversation &operator=(const conversation &) = delete;
    ~conversation() {
        if (in_force() != this) {
            conversation *inner = in_force();
            while (inner != nullptr && inner->outer_ != this) inner = inner->outer_;
            if (inner != nullptr) inner->outer_ = outer_;
            return;
        }
        in_force() = outer_;
        cw_context_set(key, outer_ == nullptr ? nullptr : outer_->id_.c_str());
    }

    const std::string &id() const noexcept { return id_; }
    /// The calling thread's current conversation; null: none.
    static const conversation *current() noexcept { return in_force(); }
    static constexpr const char *key = "http.conversation";

private:
    static conversation *&in_force() noexcept {
        static thread_local conversation *innermost = nullptr;
        return innermost;
    }
    static std::string fresh() {
        std::random_device random;
        std::string digits;
        for (int i = 0; i < 32; ++i) digits.push_back("0123456789abcdef"[random() & 15U]);
        return digits;
    }

    std::string id_;
    conversation *outer_;
};

/// An open exchange: a request and its answer. Moves, never copies.
class http_exchange {
public:
    using headers = std::initializer_list<http_header>;

    http_exchange() noexcept = default;
    http_exchange(http_exchange &&other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)), status_(other.status_) {}
    http_exchange &operator=(http_exchange &&other) noexcept {
        std::swap(handle_, other.handle_);
        std::swap(status_, other.status_);
        return *this;
    }
    ~http_exchange() {
        if (handle_ != nullptr) end("never ended", "abandoned");
    }

    /// True if the engine captures the exchange.
    explicit operator bool() const noexcept { return handle_ != nullptr; }
    /// The status of cw_http_begin: CW_DISABLED if nothing is captured.
    cordwood::status begun() const noexcept { return status_; }
    /// The id that `cordwood http show` takes; empty if the exchange is not captured.
    std::string_view id() const noexcept {
        const char *found = cw_http_id(handle_);
        return found == nullptr ? std::string_view() : std::string_view(found);
    }

    cordwood::status request_body(std::string_view bytes) noexcept {
        return bytes.empty() ? CW_OK : cw_http_request_body(handle_, bytes.data(), bytes.size());
    }
    cordwood::status response_body(std::string_view bytes) noexcept {
        return bytes.empty() ? CW_OK : cw_http_response_body(handle_, bytes.data(), bytes.size());
    }
    /// Sets the answer's status and headers. A second call replaces the first.
    cordwood::status response(int32_t status, headers list = {}, const char *protocol = nullptr) {
        std::vector<cw_http_header> given = detail::borrow_headers(list);
        struct cw_http_response answer{};
        answer.struct_size = sizeof answer;
        answer.status = status;
        answer.headers = given.data();
        answer.header_count = given.size();
        answer.protocol = protocol;
        return cw_http_response(handle_, &answer);
    }
    /// Ends the exchange and writes the record. error says why there is no answer, or not all of
    /// it.
    cordwood::status end(std::string_view error = {}, std::string_view type = {}) noexcept {
        cw_http_outcome outcome{};
        outcome.error = detail::borrow(error);
        outcome.error_type = detail::borrow(type);
        return end(outcome);
    }
    /// Ends the exchange with phases, sizes and the rest. The call sets struct_size.
    cordwood::status end(cw_http_outcome outcome) noexcept {
        outcome.struct_size = sizeof outcome;
        return cw_http_end(&handle_, &outcome);
    }
    cw_http_exchange *handle() const noexcept { return handle_; }

private:
    friend class engine;
    cw_http_exchange *handle_ = nullptr;
    cw_status status_ = CW_DISABLED;
};

inline http_exchange engine::begin_http(cw_http_request request) const noexcept {
    http_exchange made;
    request.struct_size = sizeof request;
    cw_field all[64]; // the limit of http.h
    const conversation *in_force = conversation::current();
    const std::size_t given = request.fields == nullptr ? 0 : request.field_count;
    if (in_force != nullptr && given < sizeof all / sizeof *all) {
        for (std::size_t i = 0; i < given; ++i) all[i] = request.fields[i];
        cw_field &talk = all[given];
        talk = cw_field{};
        talk.key = detail::borrow(conversation::key);
        talk.type = CW_TYPE_STRING;
        talk.value.s = detail::borrow(in_force->id());
        request.fields = all;
        request.field_count = given + 1;
    }
    made.status_ = cw_http_begin(handle_, &request, &made.handle_);
    return made;
}

inline http_exchange engine::begin_http(std::string_view method, std::string_view url,
                                        std::initializer_list<http_header> headers,
                                        std::string_view body) const {
    if (!cw_http_enabled(handle_)) return http_exchange();
    std::vector<cw_http_header> given = detail::borrow_headers(headers);
    cw_http_request request{};
    request.method = detail::borrow(method);
    request.url = detail::borrow(url);
    request.headers = given.data();
    request.header_count = given.size();
    request.body = detail::borrow(body);
    return begin_http(request);
}

} // namespace cordwood
#endif
