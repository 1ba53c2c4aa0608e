// Deferred formatting for C++17: `logger.info("order {} at {:.2f}", id, price)`. The format is
// std::format's. The call copies the arguments unchanged, and a reader makes the text. cordwood.hpp
// includes this file.
//
// In C++20 the compiler counts the placeholders of a call. The library compares the rest (in C++17
// also the count). A format may name more arguments than there are, or show one as a type that it
// is not (`{:d}` for a text). Its records then hold both, "{:d} (seven)", and the first call of the
// place answers CW_E_ARGUMENT. (In both, the compiler checks CW_INFO and its kin.)
//
// Arguments may be numbers, bool, char, enums (their number), strings (copied, at most
// CW_STRING_MAX bytes), pointers to void, std::exception (its what()), std::chrono durations and
// system_clock times, and every type that has a cordwood::formatter.
#ifndef CORDWOOD_FORMAT_HPP
#define CORDWOOD_FORMAT_HPP

#include <cordwood/cordwood.h>

#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <ratio>
#include <string_view>
#include <type_traits>
#include <utility>

#if defined(__cpp_consteval)
#define CORDWOOD_CONSTEVAL consteval
#else
#define CORDWOOD_CONSTEVAL constexpr
#endif

namespace cordwood {

/// The buffer that a formatter writes to. It drops text that does not fit.
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

/// Specialize this for your own types: `static void format(const T &value, text_buffer &out)`. The
/// function runs in the call that logs. It may write up to 247 bytes.
template <class T, class = void> struct formatter;

namespace detail {

template <class T, class = void> struct has_formatter : std::false_type {};
template <class T>
struct has_formatter<T, std::void_t<decltype(formatter<T>::format(
                            std::declval<const T &>(), std::declval<text_buffer &>()))>>
    : std::true_type {};

template <class T> struct is_duration : std::false_type {};
template <class Rep, class Period>
struct is_duration<std::chrono::duration<Rep, Period>> : std::true_type {};
template <class T> struct is_time : std::false_type {};
template <class Duration>
struct is_time<std::chrono::time_point<std::chrono::system_clock, Duration>> : std::true_type {};

template <class T>
constexpr bool is_text =
    std::is_convertible_v<const T &, std::string_view> && !std::is_same_v<T, std::nullptr_t>;
template <class T>
constexpr bool is_rendered = has_formatter<T>::value || is_duration<T>::value || is_time<T>::value;
template <class T> constexpr bool is_exception = std::is_base_of_v<std::exception, T>;
template <class T>
constexpr bool is_formattable =
    std::is_arithmetic_v<T> || std::is_enum_v<T> || is_text<T> || is_rendered<T> ||
    is_exception<T> || std::is_same_v<T, std::nullptr_t> ||
    (std::is_pointer_v<T> && std::is_void_v<std::remove_pointer_t<T>>);

template <class T> constexpr uint8_t class_of() {
    if constexpr (is_rendered<T> || is_text<T> || is_exception<T>) {
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

// The memory that a value needs in addition to its cw_arg.
struct no_buffer {};
template <class T> using buffer_for = std::conditional_t<is_rendered<T>, text_buffer, no_buffer>;

inline cw_arg text_value(std::string_view text) noexcept {
    cw_arg value;
    value.s.data = text.data();
    value.s.length = text.size();
    return value;
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

template <class Rep, class Period>
void render(const std::chrono::duration<Rep, Period> &value, text_buffer &out) noexcept {
    if constexpr (std::is_floating_point_v<Rep>) {
        out.print("%g", static_cast<double>(value.count()));
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

template <class T> cw_arg value_of(const T &value, buffer_for<T> &buffer) noexcept {
    (void)buffer;
    if constexpr (has_formatter<T>::value) {
        formatter<T>::format(value, buffer);
        return text_value(buffer.view());
    } else if constexpr (is_rendered<T>) {
        render(value, buffer);
        return text_value(buffer.view());
    } else if constexpr (is_text<T> && std::is_convertible_v<const T &, const char *>) {
        const char *text = value;
        return text_value(text == nullptr ? std::string_view("(null)") : std::string_view(text));
    } else if constexpr (is_text<T>) {
        return text_value(static_cast<std::string_view>(value));
    } else if constexpr (is_exception<T>) {
        const char *what = value.what();
        return text_value(what == nullptr ? std::string_view() : std::string_view(what));
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

// Returns the number of arguments that a format names; -1: it is not a valid format.
constexpr int placeholders(const char *text, size_t size) {
    int next = 0, most = 0;
    bool numbered = false, counted = false;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '}') {
            if (i + 1 >= size || text[i + 1] != '}') {
                return -1;
            }
            i++;
            continue;
        }
        if (text[i] != '{') {
            continue;
        }
        if (i + 1 < size && text[i + 1] == '{') {
            i++;
            continue;
        }
        int depth = 0;
        for (; i < size; i++) {
            if (text[i] == '{') {
                depth++;
                int index = -1;
                for (; i + 1 < size && text[i + 1] >= '0' && text[i + 1] <= '9'; i++) {
                    index = (index < 0 ? 0 : index) * 10 + (text[i + 1] - '0');
                    if (index > CW_ARGUMENTS_MAX) {
                        return -1;
                    }
                }
                (index < 0 ? counted : numbered) = true;
                int used = index < 0 ? ++next : index + 1;
                most = used > most ? used : most;
                if (depth > 2) {
                    return -1;
                }
            } else if (text[i] == '}' && --depth == 0) {
                break;
            }
        }
        if (depth != 0) {
            return -1;
        }
    }
    return numbered && counted ? -1 : most;
}

#if defined(__has_attribute)
#if __has_attribute(error)
__attribute__((error("cordwood: the format's placeholders do not fit the arguments")))
#endif
#endif
void placeholders_do_not_fit_the_arguments();

template <class T> struct identity {
    using type = T;
};

} // namespace detail

/// A literal that was compared with the types of its arguments, and the place of the call.
template <class... A> class basic_format {
public:
    template <size_t N>
    CORDWOOD_CONSTEVAL basic_format(const char (&text)[N], const char *file = __builtin_FILE(),
                                    const char *function = __builtin_FUNCTION(),
                                    uint32_t line = __builtin_LINE()) noexcept
        : text_(text), file_(file), function_(function), size_(N - 1), line_(line) {
#if defined(__cpp_consteval)
        if (detail::placeholders(text, N - 1) < 0 ||
            detail::placeholders(text, N - 1) > static_cast<int>(sizeof...(A))) {
            detail::placeholders_do_not_fit_the_arguments();
        }
#endif
    }

    cw_status write(cw_logger *logger, cw_level level, const A &...arguments) const noexcept {
        static_assert(sizeof...(A) <= CW_ARGUMENTS_MAX, "at most 32 arguments");
        if (!cw_enabled(logger, level)) {
            return CW_DISABLED;
        }
        alignas(8) const uint8_t classes[(sizeof...(A) / 8 + 1) * 8] = {detail::class_of<A>()...};
        const cw_site place = {nullptr, text_, file_, function_, classes,
                               line_,   size_, 0,     CW_STYLE_BRACES, 0};
        return packed(logger, level, place, arguments..., detail::buffer_for<A>()...);
    }

private:
    // The buffers are temporaries of the call above, and live as long as it.
    static cw_status packed(cw_logger *logger, cw_level level, const cw_site &place,
                            const A &...arguments, detail::buffer_for<A> &&...buffers) noexcept {
        const cw_arg values[] = {detail::value_of(arguments, buffers)..., cw_arg_u(0)};
        return cw_place_write(logger, level, &place, values);
    }

    const char *text_;
    const char *file_;
    const char *function_;
    uint32_t size_;
    uint32_t line_;
};

template <class... A> using format = basic_format<typename detail::identity<A>::type...>;

} // namespace cordwood
#endif
