// What a C++ host may log: how each type's value becomes an argument of a record. The function form
// (cordwood_format.hpp) and the macros (cordwood_macros.hpp) include this file.
//
// Numbers, char, bool, enums (their number), strings, pointers to void and the text of a
// std::exception are copied as they are. The call itself makes the text of the rest:
//   - your own types: see cordwood_format below, and cordwood::formatter (up to 247 bytes);
//   - std::chrono durations ("5ms") and system_clock times (ISO 8601, UTC);
//   - containers and arrays, pairs, tuples and std::optional of all of these. As in C++23:
//     [1, 2], sets {1, 2}, maps {"a": 1}, pairs (1, "x"); optional("x") or none. A text of more
//     than 1,020 bytes is cut and ends with "…".
// Nothing here allocates.
#ifndef CORDWOOD_VALUES_HPP
#define CORDWOOD_VALUES_HPP

#include <cordwood/cordwood.h>

#include <charconv>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <iterator>
#include <limits>
#include <optional>
#include <ratio>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace cordwood {

/// The buffer that a formatter writes to. It drops text that does not fit. `print` is printf, and
/// the host's locale decides on its decimal point.
class text_buffer {
public:
    void append(std::string_view text) noexcept {
        size_t count = text.size() < room() ? text.size() : room();
        if (count > 0) {
            std::memcpy(bytes_ + size_, text.data(), count);
        }
        size_ += count;
    }
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    void
    print(const char *format, ...) noexcept {
        va_list list;
        va_start(list, format);
        int count = std::vsnprintf(bytes_ + size_, room() + 1, format, list);
        va_end(list);
        if (count > 0) {
            size_ += static_cast<size_t>(count) < room() ? static_cast<size_t>(count) : room();
        }
    }
    std::string_view view() const noexcept { return {bytes_, size_}; }

private:
    // The last byte is reserved for print's NUL.
    size_t room() const noexcept { return sizeof bytes_ - 1 - size_; }

    size_t size_ = 0;
    char bytes_[248];
};

/// Your own type: write a function beside it, in its namespace,
///     void cordwood_format(const order &value, cordwood::text_buffer &out);
/// or, for a type that is not yours, specialize this with
///     static void format(const T &value, text_buffer &out);
/// The function runs in the call that logs. It may write up to 247 bytes. The record names a
/// std::exception that it throws.
template <class T, class = void> struct formatter;

namespace detail {

// ── Which types ──────────────────────────────────────────────────────────────────────────────────

template <class T, class = void> struct has_formatter : std::false_type {};
template <class T>
struct has_formatter<T, std::void_t<decltype(formatter<T>::format(
                            std::declval<const T &>(), std::declval<text_buffer &>()))>>
    : std::true_type {};
// Found in the type's own namespace.
template <class T, class = void> struct has_function : std::false_type {};
template <class T>
struct has_function<T, std::void_t<decltype(cordwood_format(std::declval<const T &>(),
                                                            std::declval<text_buffer &>()))>>
    : std::true_type {};
template <class T> constexpr bool is_own = has_formatter<T>::value || has_function<T>::value;

template <class T> struct is_duration : std::false_type {};
template <class Rep, class Period>
struct is_duration<std::chrono::duration<Rep, Period>> : std::true_type {};
template <class T> struct is_time : std::false_type {};
template <class Duration>
struct is_time<std::chrono::time_point<std::chrono::system_clock, Duration>> : std::true_type {};

template <class T> struct is_optional : std::false_type {};
template <class T> struct is_optional<std::optional<T>> : std::true_type {};
template <class T> struct is_tuple : std::false_type {};
template <class A, class B> struct is_tuple<std::pair<A, B>> : std::true_type {};
template <class... A> struct is_tuple<std::tuple<A...>> : std::true_type {};

template <class T>
using element_of =
    std::remove_cv_t<std::remove_reference_t<decltype(*std::begin(std::declval<const T &>()))>>;
// A type whose elements have that same type (std::filesystem::path) is not one.
template <class T, class = void> struct is_range : std::false_type {};
template <class T>
struct is_range<T, std::void_t<element_of<T>, decltype(std::end(std::declval<const T &>()))>>
    : std::bool_constant<!std::is_same_v<element_of<T>, T>> {};
template <class T, class = void> struct has_keys : std::false_type {};
template <class T> struct has_keys<T, std::void_t<typename T::key_type>> : std::true_type {};
template <class T, class = void> struct is_map : std::false_type {};
template <class T> struct is_map<T, std::void_t<typename T::mapped_type>> : std::true_type {};

template <class T>
constexpr bool is_text =
    std::is_convertible_v<const T &, std::string_view> && !std::is_same_v<T, std::nullptr_t>;
// Their text is made by the call, in a text_buffer.
template <class T>
constexpr bool is_rendered = is_own<T> || is_duration<T>::value || is_time<T>::value;
template <class T> constexpr bool is_exception = std::is_base_of_v<std::exception, T>;

template <class T> constexpr bool formattable();
template <class T> struct all_formattable;
template <template <class...> class Tuple, class... A> struct all_formattable<Tuple<A...>> {
    static constexpr bool value = (formattable<std::remove_cv_t<A>>() && ...);
};

// Made of other values; their text is made by the call, in a list_buffer.
template <class T> constexpr bool composite() {
    if constexpr (is_rendered<T> || is_text<T> || is_exception<T>) {
        return false;
    } else if constexpr (is_range<T>::value) {
        return formattable<element_of<T>>();
    } else if constexpr (is_optional<T>::value || is_tuple<T>::value) {
        return all_formattable<T>::value;
    } else {
        return false;
    }
}
template <class T> constexpr bool is_composite = composite<T>();

template <class T> constexpr bool formattable() {
    return std::is_arithmetic_v<T> || std::is_enum_v<T> || is_text<T> || is_rendered<T> ||
           is_exception<T> || is_composite<T> || std::is_same_v<T, std::nullptr_t> ||
           (std::is_pointer_v<T> && std::is_void_v<std::remove_pointer_t<T>>);
}
template <class T> constexpr bool is_formattable = formattable<T>();

template <class T> constexpr uint8_t class_of() {
    if constexpr (is_rendered<T> || is_text<T> || is_exception<T> || is_composite<T>) {
        return CW_ARG_TEXT;
    } else if constexpr (std::is_enum_v<T>) {
        return class_of<std::underlying_type_t<T>>();
    } else if constexpr (std::is_same_v<T, bool>) {
        return CW_ARG_BOOL;
    } else if constexpr (std::is_same_v<T, char>) {
        return CW_ARG_CHAR;
    } else if constexpr (std::is_integral_v<T>) {
        return std::is_signed_v<T> ? (sizeof(T) > 4 ? CW_ARG_LONG : CW_ARG_INT)
                                   : (sizeof(T) > 4 ? CW_ARG_ULONG : CW_ARG_UINT);
    } else if constexpr (std::is_same_v<T, float>) {
        return CW_ARG_FLOAT;
    } else if constexpr (std::is_same_v<T, double>) {
        return CW_ARG_DOUBLE;
    } else if constexpr (std::is_same_v<T, long double>) {
        return CW_ARG_LONG_DOUBLE;
    } else {
        return CW_ARG_POINTER;
    }
}

// ── The text of values that the call renders ─────────────────────────────────────────────────────

inline cw_arg text_value(std::string_view text) noexcept {
    cw_arg value;
    value.s.data = text.data();
    value.s.length = text.size();
    return value;
}

template <class T> std::string_view text_of(const T &value) noexcept {
    if constexpr (is_exception<T>) {
        const char *what = value.what();
        return what == nullptr ? std::string_view() : std::string_view(what);
    } else if constexpr (std::is_convertible_v<const T &, const char *>) {
        const char *text = value;
        return text == nullptr ? std::string_view("(null)") : std::string_view(text);
    } else {
        return static_cast<std::string_view>(value);
    }
}

template <class T> void render_own(const T &value, text_buffer &out) {
    if constexpr (has_formatter<T>::value) {
        formatter<T>::format(value, out);
    } else {
        cordwood_format(value, out);
    }
}

template <class Period> constexpr const char *unit_of() {
    if constexpr (std::is_same_v<Period, std::nano>) {
        return "ns";
    } else if constexpr (std::is_same_v<Period, std::micro>) {
        return "us";
    } else if constexpr (std::is_same_v<Period, std::milli>) {
        return "ms";
    } else if constexpr (std::is_same_v<Period, std::ratio<1>>) {
        return "s";
    } else if constexpr (std::is_same_v<Period, std::ratio<60>>) {
        return "min";
    } else if constexpr (std::is_same_v<Period, std::ratio<3600>>) {
        return "h";
    } else if constexpr (std::is_same_v<Period, std::ratio<86400>>) {
        return "d";
    } else {
        return nullptr;
    }
}

// The digits of a number, in any locale of the host. precision 0: as many as it takes to read the
// same number back; else that many significant ones, as with "%g".
template <class T>
std::string_view digits_of(T value, char (&digits)[64], int precision = 0) noexcept {
#if !defined(__cpp_lib_to_chars)
    if constexpr (std::is_floating_point_v<T>) {
        const int written = std::snprintf(
            digits, sizeof digits, "%.*Lg",
            precision > 0 ? precision : std::numeric_limits<T>::max_digits10,
            static_cast<long double>(value));
        // The locale's decimal point, of one byte or more, is the part that no number has in "C".
        size_t count = 0;
        for (int at = 0; at < written; at++) {
            if (std::strchr("0123456789+-abefin", digits[at]) != nullptr) {
                digits[count++] = digits[at];
            } else if (count == 0 || digits[count - 1] != '.') {
                digits[count++] = '.';
            }
        }
        return {digits, count};
    } else
#endif
    {
        char *const end = digits + sizeof digits;
        std::to_chars_result made = {digits, {}};
        if constexpr (std::is_floating_point_v<T>) {
            made = precision > 0
                       ? std::to_chars(digits, end, value, std::chars_format::general, precision)
                       : std::to_chars(digits, end, value);
        } else {
            made = std::to_chars(digits, end, value);
        }
        return {digits, static_cast<size_t>(made.ptr - digits)};
    }
}

template <class Rep, class Period>
void render(const std::chrono::duration<Rep, Period> &value, text_buffer &out) noexcept {
    if constexpr (std::is_floating_point_v<Rep>) {
        char digits[64];
        out.append(digits_of(static_cast<double>(value.count()), digits, 6));
    } else {
        out.print("%lld", static_cast<long long>(value.count()));
    }
    if constexpr (unit_of<typename Period::type>() != nullptr) {
        out.append(unit_of<typename Period::type>());
    } else {
        out.print("[%lld/%lld]s", static_cast<long long>(Period::num),
                  static_cast<long long>(Period::den));
    }
}

// Writes ISO 8601, UTC.
template <class Duration>
void render(const std::chrono::time_point<std::chrono::system_clock, Duration> &value,
            text_buffer &out) noexcept {
    using nanoseconds = std::chrono::nanoseconds;
    auto ns = std::chrono::duration_cast<nanoseconds>(value.time_since_epoch()).count();
    long long seconds = ns / 1000000000, rest = ns % 1000000000;
    if (rest < 0) {
        rest += 1000000000;
        seconds -= 1;
    }
    std::time_t time = static_cast<std::time_t>(seconds);
    std::tm parts = {};
    gmtime_r(&time, &parts);
    out.print("%04d-%02d-%02dT%02d:%02d:%02d.%09lldZ", parts.tm_year + 1900, parts.tm_mon + 1,
              parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, rest);
}

template <class T> void render_value(const T &value, text_buffer &out) {
    if constexpr (is_own<T>) {
#if defined(__cpp_exceptions)
        try {
            render_own(value, out);
        } catch (const std::exception &error) {
            out.append("(its formatter threw: ");
            out.append(text_of(error));
            out.append(")");
        }
#else
        render_own(value, out);
#endif
    } else {
        render(value, out);
    }
}

// The text of a composite value: cut between two characters, and then it ends with "…".
class list_buffer {
public:
    void append(std::string_view text) noexcept {
        size_t count = text.size();
        if (cut_ || count == 0) {
            return;
        }
        if (count > sizeof bytes_ - mark - size_) {
            count = sizeof bytes_ - mark - size_;
            for (; count > 0 && (static_cast<unsigned char>(text[count]) & 0xC0) == 0x80; count--) {
            }
            cut_ = true;
        }
        std::memcpy(bytes_ + size_, text.data(), count);
        size_ += count;
        if (cut_) {
            std::memcpy(bytes_ + size_, "\xE2\x80\xA6", mark);
            size_ += mark;
        }
    }
    bool is_cut() const noexcept { return cut_; }
    std::string_view view() const noexcept { return {bytes_, size_}; }

private:
    static constexpr size_t mark = 3;

    size_t size_ = 0;
    bool cut_ = false;
    char bytes_[1023];
};

// Shows a text as C++23 does in a list: in quotes, with escapes for what would break them or the
// line.
inline void put_quoted(std::string_view text, char quote, list_buffer &out) noexcept {
    out.append({&quote, 1});
    for (size_t from = 0, at = 0; at <= text.size() && !out.is_cut(); at++) {
        const unsigned char byte = at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
        const bool is_plain = byte >= 0x20 && byte != 0x7F && byte != '\\' &&
                              byte != static_cast<unsigned char>(quote);
        if (at < text.size() && is_plain) {
            continue;
        }
        out.append(text.substr(from, at - from));
        from = at + 1;
        if (at == text.size()) {
            break;
        }
        char escape[8];
        const char *letter = byte == 0 ? nullptr : std::strchr("\nn\tt\rr\\\\\"\"''", byte);
        int count = letter != nullptr ? std::snprintf(escape, sizeof escape, "\\%c", letter[1])
                                      : std::snprintf(escape, sizeof escape, "\\u{%x}", byte);
        out.append({escape, static_cast<size_t>(count)});
    }
    out.append({&quote, 1});
}

template <class T> void put_number(T value, list_buffer &out) noexcept {
    char digits[64];
    out.append(digits_of(value, digits));
}

template <class T> void put(const T &value, list_buffer &out);

template <class T> void put_range(const T &value, list_buffer &out) {
    out.append(has_keys<T>::value ? "{" : "[");
    bool is_first = true;
    for (auto &&element : value) {
        if (out.is_cut()) {
            return;
        }
        out.append(is_first ? "" : ", ");
        is_first = false;
        if constexpr (is_map<T>::value) {
            put(element.first, out);
            out.append(": ");
            put(element.second, out);
        } else {
            put(static_cast<const element_of<T> &>(element), out);
        }
    }
    out.append(has_keys<T>::value ? "}" : "]");
}

template <class T, size_t... I>
void put_tuple(const T &value, list_buffer &out, std::index_sequence<I...>) {
    out.append("(");
    (void)(..., (out.append(I == 0 ? "" : ", "), put(std::get<I>(value), out)));
    out.append(")");
}

template <class T> void put(const T &value, list_buffer &out) {
    if constexpr (is_rendered<T>) {
        text_buffer text;
        render_value(value, text);
        out.append(text.view());
    } else if constexpr (is_text<T> || is_exception<T>) {
        put_quoted(text_of(value), '"', out);
    } else if constexpr (is_range<T>::value) {
        put_range(value, out);
    } else if constexpr (is_optional<T>::value) {
        out.append(value ? "optional(" : "none");
        if (value) {
            put(*value, out);
            out.append(")");
        }
    } else if constexpr (is_tuple<T>::value) {
        put_tuple(value, out, std::make_index_sequence<std::tuple_size_v<T>>());
    } else if constexpr (std::is_enum_v<T>) {
        put(static_cast<std::underlying_type_t<T>>(value), out);
    } else if constexpr (std::is_same_v<T, bool>) {
        out.append(value ? "true" : "false");
    } else if constexpr (std::is_same_v<T, char>) {
        put_quoted({&value, 1}, '\'', out);
    } else if constexpr (std::is_integral_v<T>) {
        using widest = std::conditional_t<std::is_signed_v<T>, long long, unsigned long long>;
        put_number(static_cast<widest>(value), out);
    } else if constexpr (std::is_floating_point_v<T>) {
        put_number(value, out);
    } else {
        char text[24];
        const void *address = const_cast<const void *>(static_cast<const volatile void *>(value));
        int count = std::snprintf(text, sizeof text, "0x%llx",
                                  static_cast<unsigned long long>(
                                      reinterpret_cast<uintptr_t>(address)));
        out.append({text, static_cast<size_t>(count)});
    }
}

// ── One argument ─────────────────────────────────────────────────────────────────────────────────

// The memory that a value needs in addition to its cw_arg.
struct no_buffer {};
template <class T>
using buffer_for = std::conditional_t<is_rendered<T>, text_buffer,
                                      std::conditional_t<is_composite<T>, list_buffer, no_buffer>>;

template <class T> inline cw_arg value_of(const T &value, buffer_for<T> &buffer) noexcept {
    (void)buffer;
    if constexpr (is_rendered<T>) {
        render_value(value, buffer);
        return text_value(buffer.view());
    } else if constexpr (is_text<T> || is_exception<T>) {
        return text_value(text_of(value));
    } else if constexpr (is_composite<T>) {
        put(value, buffer);
        return text_value(buffer.view());
    } else if constexpr (std::is_enum_v<T>) {
        return cw_arg_i(static_cast<int64_t>(value));
    } else if constexpr (std::is_same_v<T, long double>) {
        return cw_arg_l(value);
    } else if constexpr (std::is_floating_point_v<T>) {
        return cw_arg_d(static_cast<double>(value));
    } else if constexpr (std::is_integral_v<T>) {
        return cw_arg_i(static_cast<int64_t>(value));
    } else {
        return cw_arg_p(value);
    }
}

} // namespace detail
} // namespace cordwood
#endif
