// What a call answers: a status, or a value with its status. A part of cordwood.hpp, which includes
// it.
//
//     auto sent = engine.upload(std::chrono::seconds(5));
//     if (sent.failed()) std::fprintf(stderr, "%u not sent: %s\n", sent->failed, sent.text());
//
// Both are values: any thread. As in cordwood.hpp, only allocations throw.
#ifndef CORDWOOD_STATUS_HPP
#define CORDWOOD_STATUS_HPP

#include <cordwood/cordwood.h>

#include <string>
#include <utility>

namespace cordwood {

/// The status of a call. True in a condition if it is CW_OK.
class status {
public:
    constexpr status(cw_status code = CW_OK) noexcept : code_(code) {}
    constexpr cw_status code() const noexcept { return code_; }
    constexpr explicit operator bool() const noexcept { return code_ == CW_OK; }
    /// True for negative codes: the call failed.
    constexpr bool failed() const noexcept { return code_ < CW_OK; }
    /// The name, such as "CW_E_FULL".
    const char *name() const noexcept { return cw_status_name(code_); }
    /// One sentence about the status.
    const char *text() const noexcept { return cw_strerror(code_); }
    friend constexpr bool operator==(status a, status b) noexcept { return a.code_ == b.code_; }
    friend constexpr bool operator!=(status a, status b) noexcept { return a.code_ != b.code_; }

private:
    cw_status code_;
};

/// The calling thread's last failure, with path, value and cause; empty if there was none.
inline std::string last_error() {
    std::string text(cw_last_error(nullptr, 0), '\0');
    if (!text.empty()) {
        cw_last_error(text.data(), text.size() + 1);
    }
    return text;
}

/// A status and a value, which is there if the status is CW_OK. A call whose value also has a
/// meaning with other statuses says so. Reading a missing value gives an empty one, whose calls
/// answer CW_E_ARGUMENT; it is never undefined behaviour.
template <class T> class result : public cordwood::status {
public:
    result(cordwood::status why) noexcept : cordwood::status(why) {}
    result(T &&value) noexcept : value_(std::move(value)) {}
    result(cordwood::status answer, T &&value) noexcept
        : cordwood::status(answer), value_(std::move(value)) {}
    cordwood::status status() const noexcept { return *this; }
    T &operator*() &noexcept { return value_; }
    T &&operator*() &&noexcept { return std::move(value_); }
    T *operator->() noexcept { return &value_; }

private:
    T value_{};
};

} // namespace cordwood

#endif
