// Application transactions that end with their scope (docs/TRANSACTIONS.md). A part of
// cordwood.hpp, which includes it.
//
//     if (auto checkout = engine.begin_transaction(17)) {
//         auto inside = checkout->attach(); // this thread's records carry the id
//         checkout->event(1, "42", "Baad!");
//     }
//
// Threads: several may use a transaction, but none while one of them ends or moves it. As in
// cordwood.hpp, only allocations throw.
#ifndef CORDWOOD_HPP
#include <cordwood/cordwood.hpp> // which in turn includes this file
#endif
#ifndef CORDWOOD_TRANSACTION_HPP
#define CORDWOOD_TRANSACTION_HPP

#include <chrono>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace cordwood {

/// A transaction as the store has it. Times are UTC, ns since 1970.
struct transaction_info {
    std::string id;
    int32_t usecase;
    std::string usecase_name;
    uint64_t first_ns;
    uint64_t last_ns;
    uint32_t events;
    uint32_t errors;
    bool is_ended;
};

/// An open transaction in this process. Moves, never copies. Its destructor ends it.
class transaction {
public:
    /// While a scope lives, every record of the calling thread carries the transaction's ids. End
    /// it on the thread that attached it, before the transaction ends, and the last attached one
    /// first.
    class scope {
    public:
        scope() noexcept = default;
        scope(scope &&other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
        /// Attachments must end last one first, which assignment could not keep.
        scope &operator=(scope &&other) = delete;
        ~scope() { end(); }
        /// True if the call attached the transaction.
        explicit operator bool() const noexcept { return held_ != nullptr; }
        cordwood::status end() noexcept {
            cw_transaction *held = std::exchange(held_, nullptr);
            return held == nullptr ? CW_OK : cw_transaction_detach(held);
        }

    private:
        friend class transaction;
        explicit scope(cw_transaction *held) noexcept : held_(held) {}
        cw_transaction *held_ = nullptr;
    };

    transaction() noexcept = default; // an empty one: its calls answer CW_E_ARGUMENT
    transaction(transaction &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    transaction &operator=(transaction &&other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~transaction() { end(); }

    explicit operator bool() const noexcept { return handle_ != nullptr; }
    cw_transaction *handle() const noexcept { return handle_; }

    /// The id, "TXN17-586AB00B-…"; empty for an empty transaction.
    std::string id() const { return handle_ == nullptr ? "" : cw_transaction_id(handle_); }
    int32_t usecase() const noexcept { return cw_transaction_usecase(handle_); }
    /// The W3C header `traceparent` for a request made inside the transaction.
    std::string traceparent() const {
        char text[56] = "";
        cw_transaction_traceparent(handle_, text);
        return text;
    }

    /// Logs an event at the present time: a number, or a member of an enum. Beyond 32 bits the call
    /// logs nothing and answers CW_E_ARGUMENT.
    template <class Event> cordwood::status event(Event event) noexcept {
        return logged(event, nullptr, nullptr);
    }
    /// Logs an event that is an error. U+FFFD replaces a NUL in its texts.
    template <class Event> cordwood::status event(Event event, const std::string &error_code) {
        std::string kept;
        return logged(event, c_text(error_code, kept), nullptr);
    }
    template <class Event>
    cordwood::status event(Event event, const std::string &error_code,
                           const std::string &error_description) {
        std::string code, description;
        return logged(event, c_text(error_code, code), c_text(error_description, description));
    }

    [[nodiscard]] scope attach() noexcept {
        return scope(cw_transaction_attach(handle_) == CW_OK ? handle_ : nullptr);
    }

    /// Ends the transaction in this process. Idempotent. The transaction may continue elsewhere,
    /// and a process may join it again.
    cordwood::status end() noexcept { return cw_transaction_end(&handle_); }

private:
    friend class engine;
    template <class Number> static bool fits(Number value, int32_t &out) noexcept {
        static_assert(std::is_enum<Number>::value || std::is_integral<Number>::value,
                      "a number or a member of an enum");
        if constexpr (std::is_enum<Number>::value) {
            return fits(static_cast<std::underlying_type_t<Number>>(value), out);
        } else {
            out = static_cast<int32_t>(value);
            if constexpr (std::is_signed<Number>::value) {
                const auto wide = static_cast<long long>(value);
                return wide >= INT32_MIN && wide <= INT32_MAX;
            } else {
                return static_cast<unsigned long long>(value) <= INT32_MAX;
            }
        }
    }
    template <class Event>
    cordwood::status logged(Event event, const char *code, const char *description) noexcept {
        int32_t wanted;
        if (!fits(event, wanted)) return CW_E_ARGUMENT;
        return cw_transaction_event(handle_, wanted, code, description);
    }
    /// Makes a text for C, which ends at a NUL. If NULs had to be replaced, `kept` holds the
    /// result.
    static const char *c_text(const std::string &text, std::string &kept) {
        if (text.find('\0') == std::string::npos) return text.c_str();
        for (char letter : text) {
            if (letter == '\0') kept += "\xEF\xBF\xBD";
            else kept += letter;
        }
        return kept.c_str();
    }
    cw_transaction *handle_ = nullptr;
};

template <class Usecase>
result<transaction> engine::begin_transaction(Usecase usecase) const noexcept {
    int32_t wanted;
    if (!transaction::fits(usecase, wanted)) return cordwood::status(CW_E_ARGUMENT);
    transaction made;
    cordwood::status answer = cw_transaction_begin(handle_, wanted, &made.handle_);
    return {answer, std::move(made)};
}

inline result<transaction> engine::join_transaction(const std::string &id) const noexcept {
    if (id.find('\0') != std::string::npos) return cordwood::status(CW_E_ARGUMENT);
    transaction made;
    cordwood::status answer = cw_transaction_join(handle_, id.c_str(), &made.handle_);
    return {answer, std::move(made)};
}

inline cordwood::status
engine::name_transactions(const std::vector<cw_transaction_name> &names) const noexcept {
    return cw_transaction_names_set(handle_, names.data(), names.size());
}

inline result<std::vector<transaction_info>> engine::transactions() const {
    std::vector<transaction_info> found;
    cordwood::status answer = cw_transactions_list(
        handle_,
        [](void *user, const cw_transaction_view *one) {
            static_cast<std::vector<transaction_info> *>(user)->push_back(
                {one->id, one->usecase, one->usecase_name, one->first_ns, one->last_ns,
                 one->events, one->errors, one->is_ended});
            return true;
        },
        &found);
    return {answer, std::move(found)};
}

inline cordwood::status engine::forget_transactions(const std::string &id) const noexcept {
    if (id.find('\0') != std::string::npos) return CW_E_ARGUMENT;
    return cw_transactions_delete(handle_, id.empty() ? nullptr : id.c_str());
}

inline result<cw_upload_result>
engine::flush_transactions(std::chrono::milliseconds wait) const noexcept {
    return detail::counted(cw_transactions_flush, handle_, wait);
}

} // namespace cordwood

#endif
