// Targets, to which the engine uploads archives, and errors of failed transfers. A part of
// cordwood.hpp, which includes it.
//
//     engine.add_target(cordwood::target("https://logs.example").auth_token("…"));
//
// A target owns its strings. engine::add_target passes them to the library, which copies them.
// Threads: one at a time. As in cordwood.hpp, only allocations throw.
#ifndef CORDWOOD_TARGET_HPP
#define CORDWOOD_TARGET_HPP

#include <cordwood/cordwood.h>
#include <cordwood/cordwood_status.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cordwood {

namespace detail {

// Negative waits become 0. Waits that do not fit become forever.
inline uint32_t timeout_ms(std::chrono::milliseconds wait) noexcept {
    if (wait.count() <= 0) {
        return 0;
    }
    return wait.count() >= static_cast<long long>(UINT32_MAX) ? UINT32_MAX
                                                              : static_cast<uint32_t>(wait.count());
}

// Calls cw_upload or a similar function, which fills the counts if it accepts its arguments.
template <class Call>
result<cw_upload_result> counted(Call call, cw_engine *engine,
                                 std::chrono::milliseconds wait) noexcept {
    cw_upload_result counts = {};
    counts.struct_size = sizeof counts;
    cordwood::status answer = call(engine, timeout_ms(wait), &counts, sizeof counts);
    return {answer, std::move(counts)};
}

} // namespace detail

/// A target of uploads: `target("https://logs.example").auth_token("…")`. Settings that the host
/// does not name keep the default of cordwood.h.
class target {
public:
    explicit target(std::string url) {
        cw_target_options_init(&raw_, sizeof raw_);
        put(&cw_target_options::url, std::move(url));
    }
    target &name(std::string text) { return put(&cw_target_options::name, std::move(text)); }
    target &kind(std::string text) { return put(&cw_target_options::kind, std::move(text)); }
    target &format(std::string text) { return put(&cw_target_options::format, std::move(text)); }
    target &encoding(std::string text) {
        return put(&cw_target_options::encoding, std::move(text));
    }
    target &method(std::string text) { return put(&cw_target_options::method, std::move(text)); }
    target &auth_token(std::string text) {
        return put(&cw_target_options::auth_token, std::move(text));
    }
    target &auth(std::string user, std::string password) {
        put(&cw_target_options::auth_user, std::move(user));
        return put(&cw_target_options::auth_password, std::move(password));
    }
    /// Call it once for each header, and the next function once for each parameter. add_target
    /// refuses a line break or a NUL in them: CW_E_ARGUMENT.
    target &header(std::string_view name, std::string_view value) {
        return line(&cw_target_options::headers, name, ": ", value);
    }
    target &parameter(std::string_view name, std::string_view value) {
        return line(&cw_target_options::parameters, name, "=", value);
    }
    target &ca_file(std::string path) {
        return put(&cw_target_options::ca_file, std::move(path));
    }
    target &client_certificate(std::string certificate_file, std::string key_file,
                               std::string key_password = {}) {
        put(&cw_target_options::client_certificate_file, std::move(certificate_file));
        put(&cw_target_options::client_key_file, std::move(key_file));
        return put(&cw_target_options::client_key_password, std::move(key_password));
    }
    /// An empty url disables the proxy, whatever the environment says. authentication:
    /// "user:password".
    target &proxy(std::string url, std::string authentication = {}) {
        text(&cw_target_options::proxy) = std::move(url);
        return put(&cw_target_options::proxy_auth, std::move(authentication));
    }
    target &http_version(uint32_t version) noexcept {
        return set(&cw_target_options::http_version, version);
    }
    target &connect_timeout(std::chrono::milliseconds wait) noexcept {
        return set(&cw_target_options::connect_timeout_ms, detail::timeout_ms(wait));
    }
    target &request_timeout(std::chrono::milliseconds wait) noexcept {
        return set(&cw_target_options::request_timeout_ms, detail::timeout_ms(wait));
    }
    target &bytes_per_s(uint64_t rate) noexcept {
        return set(&cw_target_options::bytes_per_s, rate);
    }
    /// Limits uploads to records of this level and above, and of these loggers (names separated by
    /// commas).
    target &only(cw_level level, std::string loggers = {}) {
        set(&cw_target_options::level, static_cast<uint32_t>(level));
        return put(&cw_target_options::loggers, std::move(loggers));
    }
    target &body_max(uint64_t bytes, uint32_t records = 0) noexcept {
        set(&cw_target_options::body_bytes_max, bytes);
        return set(&cw_target_options::body_records_max, records);
    }
    /// Sets the conditions for an answer to confirm the body; see cw_target_options.
    target &expect(std::string conditions) {
        return put(&cw_target_options::expect, std::move(conditions));
    }
    target &requests_max(uint32_t count) noexcept {
        return set(&cw_target_options::requests_max, count);
    }
    target &callbacks(cw_upload_attempting_fn attempting, cw_upload_completed_fn completed,
                      void *user) noexcept {
        raw_.attempting = attempting;
        raw_.completed = completed;
        raw_.user = user;
        return *this;
    }
    /// The engine passes it the user of `callbacks`.
    target &condition(cw_upload_condition_fn ask) noexcept {
        return set(&cw_target_options::condition, ask);
    }
    target &drained(cw_upload_drained_fn tell) noexcept {
        return set(&cw_target_options::drained, tell);
    }
    target &busy(cw_upload_busy_fn tell) noexcept { return set(&cw_target_options::busy, tell); }
    target &credentials(cw_credentials_fn ask) noexcept {
        return set(&cw_target_options::credentials, ask);
    }
    target &transport(cw_transport_fn send) noexcept {
        return set(&cw_target_options::transport, send);
    }
    /// Valid while the target is neither changed nor moved.
    cw_target_options &raw() noexcept {
        for (auto &[member, text] : texts_) {
            raw_.*member = text.c_str();
        }
        return raw_;
    }

private:
    using text_member = const char *cw_target_options::*;

    std::string &text(text_member member) {
        for (auto &pair : texts_) {
            if (pair.first == member) {
                return pair.second;
            }
        }
        return texts_.emplace_back(member, std::string()).second;
    }
    // An empty value keeps the default that cw_target_options_init wrote.
    target &put(text_member member, std::string value) {
        if (!value.empty()) {
            text(member) = std::move(value);
        }
        return *this;
    }
    target &line(text_member member, std::string_view name, const char *between,
                 std::string_view value) {
        std::string &all = text(member);
        all.append(all.empty() ? "" : "\n");
        one_line(all, name);
        all.append(between);
        one_line(all, value);
        return *this;
    }
    // A name or value must not start a second line or cut off the lines after it. A DEL replaces
    // every character that would do that, and the library refuses the line.
    static void one_line(std::string &all, std::string_view word) {
        for (const char character : word) {
            const bool ends = character == '\n' || character == '\r' || character == '\0';
            all.push_back(ends ? '\x7f' : character);
        }
    }
    template <class Value>
    target &set(Value cw_target_options::*member, Value value) noexcept {
        raw_.*member = value;
        return *this;
    }
    cw_target_options raw_;
    std::vector<std::pair<text_member, std::string>> texts_;
};

/// How a transfer failed; empty if none did. It needs no engine: `if (auto error =
/// engine.last_upload_error()) std::puts(error.text().c_str());`
class upload_error {
public:
    upload_error() noexcept = default;
    explicit upload_error(const cw_upload_error *taken) noexcept : raw_(taken) {}
    explicit operator bool() const noexcept { return raw_ != nullptr; }
    const cw_upload_error *operator->() const noexcept { return raw_.get(); }
    const cw_upload_error &operator*() const noexcept { return *raw_; }
    /// Returns the error in words for people. language: "en", "de", also with a region.
    std::string text(const std::string &language = "en") const {
        std::string words(cw_upload_error_text(raw_.get(), language.c_str(), nullptr, 0), '\0');
        cw_upload_error_text(raw_.get(), language.c_str(), &words[0], words.size() + 1);
        return words;
    }

private:
    struct freeing {
        void operator()(const cw_upload_error *error) const noexcept {
            cw_upload_error_free(&error);
        }
    };
    std::unique_ptr<const cw_upload_error, freeing> raw_;
};

} // namespace cordwood

#endif
