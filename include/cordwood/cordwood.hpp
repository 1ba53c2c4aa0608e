// Cordwood for C++17: move-only handles and typed fields over cordwood.h, header only.
//     auto engine = cordwood::engine::open("logs");
//     if (!engine) return 1;
//     engine->logger("app").info("order {} is {:.1f} s late", 7, 2.5);
//
// Nothing here throws by itself; only std::string may, out of memory. -fno-exceptions and -fno-rtti
// compile. A failure is a `status`, or a `result<T>`, which is one. An engine closes in its
// destructor. Loggers are plain pointers: copy, keep and use them, also after that; they then
// answer CW_E_CLOSED. Threads: as the C function that a member calls. cordwood_reader.hpp, for
// reading, comes with it.
#ifndef CORDWOOD_HPP
#define CORDWOOD_HPP

#include <cordwood/cordwood.h>
#include <cordwood/cordwood_format.hpp>
#include <cordwood/cordwood_json.hpp>
#include <cordwood/cordwood_status.hpp>
#include <cordwood/cordwood_target.hpp>
#include <cordwood/cordwood_words.hpp>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#if defined(__cpp_rtti) && __has_include(<cxxabi.h>)
#include <cxxabi.h>
#include <typeinfo>
#define CORDWOOD_HAS_TYPE_NAMES 1
#else
#define CORDWOOD_HAS_TYPE_NAMES 0
#endif

// Lets clang warn of a field in a variable, whose JSON would be gone.
#if defined(__clang__)
#define CORDWOOD_LIFETIMEBOUND [[clang::lifetimebound]]
#else
#define CORDWOOD_LIFETIMEBOUND
#endif

namespace cordwood {

namespace detail {

inline cw_str borrow(std::string_view text) noexcept { return {text.data(), text.size()}; }

inline std::string_view view(cw_str text) noexcept {
    return text.length == 0 ? std::string_view() : std::string_view(text.data, text.length);
}

// Returns null for an empty string, which selects the library's default.
inline const char *text_or_null(const std::string &text) noexcept {
    return text.empty() ? nullptr : text.c_str();
}

inline uint64_t nanoseconds(std::chrono::system_clock::time_point time) noexcept {
    auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch());
    return since.count() < 0 ? 0 : static_cast<uint64_t>(since.count());
}

// The name of an exception's class, which the object frees; "std::exception" without RTTI.
class type_name {
public:
#if CORDWOOD_HAS_TYPE_NAMES
    explicit type_name(const std::exception &error) noexcept
        : mangled_(typeid(error).name()),
          text_(abi::__cxa_demangle(mangled_, nullptr, nullptr, nullptr)) {}
    std::string_view view() const noexcept { return text_ != nullptr ? text_ : mangled_; }
#else
    explicit type_name(const std::exception &) noexcept {}
    std::string_view view() const noexcept { return mangled_; }
#endif
    ~type_name() { std::free(text_); }
    type_name(const type_name &) = delete;
    type_name &operator=(const type_name &) = delete;

private:
    const char *mangled_ = "std::exception";
    char *text_ = nullptr;
};

// Selects calls with a format and arguments, not those with only a message and an exception.
template <class First, class... Rest>
using if_format = std::enable_if_t<
    is_formattable<First> && (is_formattable<Rest> && ...) &&
        !(sizeof...(Rest) == 0 && is_exception<First>),
    int>;

} // namespace detail

// ── Writing ──────────────────────────────────────────────────────────────────────────────────────

/// The text of a JSON value, as a field's: `{"order", cordwood::json{text}}` (CW_TYPE_JSON).
struct json {
    std::string_view text;
};

/// A typed field of a record: an integer, floating point number, bool, string or json, and
/// containers, arrays, pairs, tuples and std::optional of everything that a message takes, which
/// are kept as JSON (cordwood_json.hpp). A field borrows its strings, and the JSON that it makes is
/// gone after the full expression, so build it inside the call:
/// `log.info("order", {{"id", 7}, {"user", name}, {"tags", std::vector<std::string>{"new"}}})`.
struct field : cw_field {
    template <class T, std::enable_if_t<!detail::is_composite<T>, int> = 0>
    field(std::string_view name, const T &content) noexcept : cw_field() {
        key = detail::borrow(name);
        put(content);
    }
    /// The compiler fills in `text`: never pass one.
    template <class T, std::enable_if_t<detail::is_composite<T>, int> = 0>
    field(std::string_view name, const T &content,
          detail::json_buffer &&text CORDWOOD_LIFETIMEBOUND = {}) noexcept
        : cw_field() {
        key = detail::borrow(name);
        if constexpr (detail::is_optional<T>::value) {
            if constexpr (!detail::is_composite<typename T::value_type> &&
                          takes<typename T::value_type>) {
                if (content) {
                    put(*content);
                    return;
                }
            }
        }
        type = CW_TYPE_JSON;
        value.s = detail::json_of(content, text);
    }

private:
    template <class T>
    static constexpr bool takes = std::is_arithmetic_v<T> || detail::is_text<T>;

    template <class T> void put(const T &content) noexcept {
        if constexpr (std::is_same_v<T, bool>) {
            type = CW_TYPE_BOOL;
            value.b = content;
        } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
            type = CW_TYPE_INT;
            value.i = content;
        } else if constexpr (std::is_integral_v<T>) {
            type = CW_TYPE_UINT;
            value.u = content;
        } else if constexpr (std::is_floating_point_v<T>) {
            type = CW_TYPE_DOUBLE;
            value.d = static_cast<double>(content);
        } else if constexpr (std::is_same_v<T, json>) {
            type = CW_TYPE_JSON;
            value.s = detail::borrow(content.text);
        } else {
            static_assert(std::is_convertible_v<const T &, std::string_view>,
                          "a field is an integer, a floating point number, a bool, a string, "
                          "cordwood::json, or a container, array, pair, tuple or std::optional of "
                          "what a message takes");
            type = CW_TYPE_STRING;
            value.s = detail::borrow(text(content));
        }
    }

    static std::string_view text(std::string_view content) noexcept { return content; }
    static std::string_view text(const char *content) noexcept {
        return content == nullptr ? std::string_view() : std::string_view(content);
    }
    template <class T> static std::string_view text(const T &content) noexcept {
        if constexpr (std::is_array_v<T> || std::is_pointer_v<T>) {
            return text(static_cast<const char *>(content));
        } else {
            return static_cast<std::string_view>(content);
        }
    }
};
static_assert(sizeof(field) == sizeof(cw_field), "a list of fields is handed on as it stands");

using fields = std::initializer_list<field>;

/// The place of a call in the source. The compiler fills it in; never set it by hand.
struct site {
    const char *file;
    const char *function;
    uint32_t line;
    /// The names are literals, which live forever, so records may name the place by its number.
    bool literal = false;

    static constexpr site current(const char *file = __builtin_FILE(),
                                  const char *function = __builtin_FUNCTION(),
                                  uint32_t line = __builtin_LINE()) noexcept {
        return {file, function, line, true};
    }
};

/// A dotted name in an engine. Any thread may use it; copy it freely. `write` is the fastest call.
/// The calls named for levels also keep the place in the source. All return cw_write_record's
/// status: CW_OK if kept, CW_DISABLED below the threshold, negative if refused. None throws, and
/// none blocks (except with overflow::block).
class logger {
public:
    logger() noexcept = default;
    explicit logger(cw_logger *handle) noexcept : handle_(handle) {}

    explicit operator bool() const noexcept { return handle_ != nullptr; }
    cw_logger *handle() const noexcept { return handle_; }

    /// True if the logger would write a record of that level: one load and one branch.
    bool enabled(level at) const noexcept { return cw_enabled(handle_, static_cast<cw_level>(at)); }

    /// Writes a record of text alone. The text may hold any bytes. Inlined always: objects that are
    /// compiled in different ways do not share it (append.h).
    __attribute__((always_inline)) cordwood::status write(level at,
                                                          std::string_view message) const noexcept {
        return cw_write_here_(handle_, static_cast<cw_level>(at), message.data(), message.size());
    }
    /// Writes a record with everything that C offers: its own time, trace ids, place.
    cordwood::status write(const cw_record &record) const noexcept {
        return cw_write_record(handle_, &record);
    }
    cordwood::status log(level at, std::string_view message, fields with = {},
                         site where = site::current()) const noexcept {
        return write_at(at, message, with, where, nullptr);
    }
    cordwood::status log(level at, std::string_view message, const std::exception &error,
                         fields with = {}, site where = site::current()) const noexcept {
        return write_at(at, message, with, where, &error);
    }

    /// trace(), debug(), info(), notice(), warn(), error() and fatal(), each in two forms:
    /// `info("paid", {{"order", id}})` keeps the text and its fields;
    /// `info("order {} at {:.2f}", id, price)`, as std::format (cordwood_format.hpp), copies the
    /// raw arguments, and a reader makes the text.
#define CORDWOOD_LEVEL(name)                                                                       \
    __attribute__((always_inline)) cordwood::status name(                                          \
        std::string_view message, fields with = {}, site where = site::current()) const noexcept { \
        return write_at(level::name, message, with, where, nullptr);                               \
    }                                                                                              \
    template <class First, class... Rest, detail::if_format<First, Rest...> = 0>                   \
    __attribute__((always_inline)) cordwood::status name(                                          \
        format<First, Rest...> text, const First &first, const Rest &...rest) const noexcept {     \
        return text.write(handle_, static_cast<cw_level>(level::name), first, rest...);            \
    }
    CORDWOOD_LEVEL(trace)
    CORDWOOD_LEVEL(debug)
    CORDWOOD_LEVEL(info)
    CORDWOOD_LEVEL(notice)
    CORDWOOD_LEVEL(warn)
    CORDWOOD_LEVEL(error)
    CORDWOOD_LEVEL(fatal)
#undef CORDWOOD_LEVEL
    /// warn(), error() and fatal() of an exception: `error("not saved", caught)` also keeps its
    /// class and its text.
#define CORDWOOD_LEVEL(name)                                                                       \
    cordwood::status name(std::string_view message, const std::exception &caught,                  \
                          fields with = {}, site where = site::current()) const noexcept {         \
        return write_at(level::name, message, with, where, &caught);                               \
    }
    CORDWOOD_LEVEL(warn)
    CORDWOOD_LEVEL(error)
    CORDWOOD_LEVEL(fatal)
#undef CORDWOOD_LEVEL
    template <class First, class... Rest, detail::if_format<First, Rest...> = 0>
    cordwood::status log(level at, cordwood::format<First, Rest...> text, const First &first,
                         const Rest &...rest) const noexcept {
        return text.write(handle_, static_cast<cw_level>(at), first, rest...);
    }

private:
    __attribute__((always_inline)) cordwood::status write_at(level at, std::string_view message,
                                                             fields with, site where,
                                                             const std::exception *error) const
        noexcept {
        if (with.size() == 0 && error == nullptr && where.literal &&
            message.size() < CW_STRING_MAX) {
            return write_text(at, message, where);
        }
        return write_all(at, message, with, where, error);
    }

    /// A message and its place: deferred, with the message as the only argument.
    __attribute__((always_inline)) cordwood::status
    write_text(level at, std::string_view message, site where) const noexcept {
        const cw_level number = static_cast<cw_level>(at);
        const uint8_t *const classes = detail::padded_classes_of<std::string_view>::list;
#if CW_APPEND_INLINE_
        if (CW_LIKELY_(cw_enabled(handle_, number))) {
            cw_site *site =
                detail::place_of("{}", where.file, where.function, where.line, classes);
            if (CW_LIKELY_(site != nullptr)) {
                return detail::write_kept(handle_, number, *site, message);
            }
        }
#endif
        const cw_site place = {nullptr,    "{}", where.file, where.function,  classes,
                               where.line, 2,    0,          CW_STYLE_BRACES, 0};
        const cw_arg value = detail::text_value(message);
        return cw_place_write(handle_, number, &place, &value);
    }

    cordwood::status write_all(level at, std::string_view message, fields with, site where,
                               const std::exception *error) const noexcept {
        cw_record record = {};
        record.struct_size = sizeof record;
        record.level = static_cast<cw_level>(at);
        record.message = detail::borrow(message);
        record.fields = with.begin();
        record.field_count = with.size();
        record.file = detail::borrow(where.file);
        record.function = detail::borrow(where.function);
        record.line = where.line;
        // The name of an exception's class costs an allocation, which unwritten records avoid.
        return error == nullptr || !enabled(at) ? write(record) : write_error(record, *error);
    }

    cordwood::status write_error(cw_record &record, const std::exception &error) const noexcept {
        detail::type_name type(error);
        record.exception_type = detail::borrow(type.view());
        const char *what = error.what();
        record.exception_message = detail::borrow(what == nullptr ? "" : what);
        return write(record);
    }

    cw_logger *handle_ = nullptr;
};

/// Sets a field that every later record of the calling thread carries, in all engines.
inline status set_context(const std::string &key, const std::string &value) noexcept {
    return cw_context_set(key.c_str(), value.c_str());
}
inline status remove_context(const std::string &key) noexcept {
    return cw_context_set(key.c_str(), nullptr);
}

/// Sets the W3C ids (16 and 8 bytes) of this thread's later records. Two nulls remove them.
inline status set_trace(const uint8_t *trace_id, const uint8_t *span_id = nullptr,
                        uint8_t flags = 0) noexcept {
    return cw_trace_set(trace_id, span_id, flags);
}

// ── Opening ──────────────────────────────────────────────────────────────────────────────────────

/// The settings of a store: `options("logs").level(level::debug).quota_bytes(1u << 30)`. Settings
/// not named keep the default of cordwood.h. `raw()` gives the rest, valid while this object lives.
class options {
public:
    /// An empty directory selects the environment's CORDWOOD_DIR.
    explicit options(std::string directory = {}) : directory_(std::move(directory)) {
        cw_options_init(&raw_, sizeof raw_);
    }
    options &process_name(std::string name) {
        process_name_ = std::move(name);
        return *this;
    }
    options &level(cordwood::level at) noexcept { return put(raw_.level, at); }
    options &segment_bytes(uint64_t bytes) noexcept { return put(raw_.segment_bytes, bytes); }
    options &roll_age(std::chrono::seconds age) noexcept {
        return put(raw_.roll_age_s, age.count());
    }
    options &quota_bytes(uint64_t bytes) noexcept { return put(raw_.quota_bytes, bytes); }
    options &archives_max(uint32_t count) noexcept { return put(raw_.archives_max, count); }
    options &expiration_days(uint32_t days) noexcept { return put(raw_.expiration_days, days); }
    options &codec(cordwood::codec which, int32_t strength = 0) noexcept {
        raw_.codec_level = strength;
        return put(raw_.codec, which);
    }
    options &archive_method(cordwood::archive_method form) noexcept {
        return put(raw_.archive_method, form);
    }
    options &archive_time_step(std::chrono::nanoseconds step) noexcept {
        return put(raw_.archive_time_step_ns, step.count());
    }
    options &consent(cordwood::consent first) noexcept { return put(raw_.consent, first); }
    options &overflow(cordwood::overflow policy) noexcept { return put(raw_.overflow, policy); }
    options &console(cordwood::console echo) noexcept { return put(raw_.console, echo); }
    options &console_level(cordwood::level at) noexcept { return put(raw_.console_level, at); }
    options &flags(uint32_t set) noexcept { return put(raw_.flags, set); }
    options &upload_interval(std::chrono::seconds interval) noexcept {
        return put(raw_.upload_interval_s, interval.count());
    }
    options &archive_removed(cw_archive_removed_fn call, void *user) noexcept {
        raw_.user = user;
        raw_.archive_removed = call;
        return *this;
    }
    /// age recipients ("age1…"), separated by spaces or commas.
    options &encrypt_to(std::string recipients) {
        encrypt_to_ = std::move(recipients);
        raw_.encrypt_to = encrypt_to_.c_str(); // open refuses an empty one
        return *this;
    }
    options &identity_file(std::string path) {
        identity_file_ = std::move(path);
        return *this;
    }
    cw_options &raw() noexcept {
        raw_.directory = detail::text_or_null(directory_);
        raw_.process_name = detail::text_or_null(process_name_);
        raw_.encrypt_to = raw_.encrypt_to == nullptr ? nullptr : encrypt_to_.c_str();
        raw_.identity_file = detail::text_or_null(identity_file_);
        return raw_;
    }

private:
    template <class Member, class Value> options &put(Member &member, Value value) noexcept {
        member = static_cast<Member>(value);
        return *this;
    }
    cw_options raw_;
    std::string directory_;
    std::string process_name_;
    std::string encrypt_to_;
    std::string identity_file_;
};

class transaction;
struct transaction_info;
class http_exchange;
struct http_header;

/// One open store directory. Moves, never copies. The destructor closes the engine and waits at
/// most a second for the helper's current job. Call close() to wait longer or to see the status.
class engine {
public:
    [[nodiscard]] static result<engine> open(options how) noexcept {
        engine made;
        cordwood::status answer = cw_open(&how.raw(), &made.handle_);
        return {answer, std::move(made)};
    }
    [[nodiscard]] static result<engine> open(std::string directory) {
        return open(options(std::move(directory)));
    }

    engine() noexcept = default; // an empty handle: its calls answer CW_E_ARGUMENT
    engine(engine &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    engine &operator=(engine &&other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~engine() { close(std::chrono::seconds(1)); }

    explicit operator bool() const noexcept { return handle_ != nullptr; }
    cw_engine *handle() const noexcept { return handle_; }

    /// Gets the logger of that dotted name; "" is the root. If the library refuses it, the logger
    /// is empty (false), and last_error() says why.
    cordwood::logger logger(const std::string &name = {}) const noexcept {
        cw_logger *found = nullptr;
        cw_logger_get(handle_, name.c_str(), &found);
        return cordwood::logger(found);
    }
    /// Sets the threshold of a name and of all dotted names below it; "" is the root.
    cordwood::status set_level(const std::string &prefix, level at) noexcept {
        return cw_level_set(handle_, prefix.c_str(), static_cast<cw_level>(at));
    }
    /// Sets an attribute (service.name, user.id …) of the resource for the records that follow; ""
    /// removes it.
    cordwood::status set_resource(const std::string &key, const std::string &value) noexcept {
        return cw_resource_set(handle_, key.c_str(), value.c_str());
    }
    cordwood::status set_consent(consent value) noexcept {
        return cw_consent_set(handle_, static_cast<cw_consent>(value));
    }
    /// Makes the process write a last record when it crashes: see cw_crash_handler_install.
    cordwood::status install_crash_handler() noexcept { return cw_crash_handler_install(handle_); }
    cordwood::status flush(durability how = durability::machine,
                           std::chrono::milliseconds wait = forever) noexcept {
        return cw_flush(handle_, static_cast<cw_durability>(how), detail::timeout_ms(wait));
    }
    /// Seals the open segments, so that the engine archives them and can upload them.
    cordwood::status roll() noexcept { return cw_roll(handle_); }
    /// Waits until the engine has archived everything sealed before the call.
    cordwood::status archive_wait(std::chrono::milliseconds wait = forever) noexcept {
        return cw_archive_wait(handle_, detail::timeout_ms(wait));
    }
    /// Adds a target and gives its number, which upload_preview takes.
    result<uint32_t> add_target(target where) noexcept {
        uint32_t number = 0;
        cordwood::status answer = cw_target_add(handle_, &where.raw(), &number);
        return {answer, std::move(number)};
    }
    cordwood::status remove_target(const std::string &name) noexcept {
        return cw_target_remove(handle_, name.c_str());
    }
    /// Lets the engine retry archives that the target refused; an empty name: all targets.
    cordwood::status retry_quarantined(const std::string &name = {}) noexcept {
        return cw_quarantine_retry(handle_, name.empty() ? nullptr : name.c_str());
    }
    /// Sends waiting archives once. Gives the counts with every status, also with CW_E_UPLOAD.
    result<cw_upload_result> upload(std::chrono::milliseconds wait = forever) noexcept {
        return detail::counted(cw_upload, handle_, wait);
    }
    /// Shows what upload would send to a target, piece by piece, and sends nothing.
    cordwood::status upload_preview(uint32_t target_id, cw_bytes_fn sink,
                                    void *user = nullptr) noexcept {
        return cw_upload_preview(handle_, target_id, sink, user);
    }
    /// As upload, in the background. done may be null; it runs once.
    cordwood::status upload_async(cw_upload_done_fn done = nullptr, void *user = nullptr) noexcept {
        return cw_upload_async(handle_, done, user);
    }
    /// Gives the last failed transfer to a target, or to any target if no name is given.
    upload_error last_upload_error(const std::string &target = {}) const noexcept {
        const cw_upload_error *error = nullptr;
        cw_upload_last_error(handle_, target.empty() ? nullptr : target.c_str(), &error);
        return upload_error(error);
    }
    /// Applies a policy, one JSON object: cw_policy_apply. cordwood::last_error() names a bad key.
    cordwood::status apply_policy(std::string_view json) noexcept {
        return cw_policy_apply(handle_, json.data(), json.size());
    }
    /// Reports counts since open.
    [[nodiscard]] result<cw_stats> stats() const noexcept {
        cw_stats counts = {};
        counts.struct_size = sizeof counts;
        cordwood::status answer = cw_stats_get(handle_, &counts, sizeof counts);
        return {answer, std::move(counts)};
    }

    // ── Transactions: cordwood_transaction.hpp ──

    /// Begins a transaction of a number or an enum's member; beyond 32 bits: CW_E_ARGUMENT.
    template <class Usecase>
    [[nodiscard]] result<transaction> begin_transaction(Usecase usecase) const noexcept;
    /// Joins the transaction of that id, which another process or an earlier run began.
    [[nodiscard]] result<transaction> join_transaction(const std::string &id) const noexcept;
    /// Registers names of use cases (event CW_EVENT_NONE) and events.
    cordwood::status
    name_transactions(const std::vector<cw_transaction_name> &names) const noexcept;
    /// Lists the transactions of the store, oldest first. CW_END: no transactions.
    /// CW_E_DAMAGED: the list has the rest.
    [[nodiscard]] result<std::vector<transaction_info>> transactions() const;
    /// Forgets one transaction, or every transaction of the store if id is empty.
    cordwood::status forget_transactions(const std::string &id = {}) const noexcept;
    /// Sends events to the targets of the kind "transactions". Gives the counts as upload does.
    result<cw_upload_result>
    flush_transactions(std::chrono::milliseconds wait = forever) const noexcept;

    // ── Captured HTTP: cordwood_http.hpp ──

    /// Begins an exchange as cw_http_begin. The host sets all of `request` but struct_size. The
    /// call appends the current conversation to its fields, unless they are already at the limit.
    http_exchange begin_http(cw_http_request request) const noexcept;
    http_exchange begin_http(std::string_view method, std::string_view url,
                             std::initializer_list<http_header> headers = {},
                             std::string_view body = {}) const;

    /// Closes; idempotent. CW_E_TIMEOUT: closed, but the helper is still busy and ends by itself.
    cordwood::status close(std::chrono::milliseconds wait = std::chrono::seconds(5)) noexcept {
        return cw_close(&handle_, detail::timeout_ms(wait));
    }

private:
    cw_engine *handle_ = nullptr;
};

} // namespace cordwood

#undef CORDWOOD_HAS_TYPE_NAMES
#undef CORDWOOD_LIFETIMEBOUND

#include <cordwood/cordwood_reader.hpp>
#include <cordwood/cordwood_http.hpp>
#include <cordwood/cordwood_macros.hpp>
#include <cordwood/cordwood_network.hpp>
#include <cordwood/cordwood_transaction.hpp>

#endif
