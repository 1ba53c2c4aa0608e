// The macros for C++17: CORDWOOD_INFO(log, "order {} at {:.2f}", id, price), and TRACE, DEBUG,
// NOTICE, WARN, ERROR and FATAL; CORDWOOD_LOG_EVERY_N and CORDWOOD_LOG_EVERY_MS leave some out.
// cordwood.hpp includes this file.
//
// A macro is the cheapest way to log a format from C++, with three quarters of the instructions of
// log.info("…", …): its place is a static object, as CW_INFO's is. `log` is a cordwood::logger, or
// a cw_logger *. Arguments: cordwood_values.hpp.
//   - The format is std::format's, as a string literal. In C++17, too, the compiler refuses a
//     format that does not fit its arguments: see cordwood_check.hpp.
//   - Below the threshold nothing but `log` is evaluated; otherwise each argument once.
//   - The record is kept when the statement ends. It has no value; the engine counts a failure.
//   - Any thread may use the macros. Signals, fork: safe, if your own types' functions are.
//   - They also work in templates, lambdas, inline functions (each module of the process has its
//     own place) and constexpr functions, which log when they run and not while they compile.
//   - A macro takes references: a static data member that it logs needs a definition.
#ifndef CORDWOOD_MACROS_HPP
#define CORDWOOD_MACROS_HPP

#include <cordwood/cordwood.hpp>
#include <cordwood/cordwood_append.hpp>
#include <cordwood/cordwood_check.hpp>

#include <type_traits>

#define CORDWOOD_TRACE(log, ...) CORDWOOD_LOG(log, CW_LEVEL_TRACE, __VA_ARGS__)
#define CORDWOOD_DEBUG(log, ...) CORDWOOD_LOG(log, CW_LEVEL_DEBUG, __VA_ARGS__)
#define CORDWOOD_INFO(log, ...) CORDWOOD_LOG(log, CW_LEVEL_INFO, __VA_ARGS__)
#define CORDWOOD_NOTICE(log, ...) CORDWOOD_LOG(log, CW_LEVEL_NOTICE, __VA_ARGS__)
#define CORDWOOD_WARN(log, ...) CORDWOOD_LOG(log, CW_LEVEL_WARN, __VA_ARGS__)
#define CORDWOOD_ERROR(log, ...) CORDWOOD_LOG(log, CW_LEVEL_ERROR, __VA_ARGS__)
#define CORDWOOD_FATAL(log, ...) CORDWOOD_LOG(log, CW_LEVEL_FATAL, __VA_ARGS__)

/// `level`: a cordwood::level, or a cw_level. CW_MIN_LEVEL removes records when compiling, if the
/// compiler knows the level.
#define CORDWOOD_LOG(log, level, ...) CORDWOOD_LOG_WHEN_(log, level, true, __VA_ARGS__)

/// Writes the first of every n records of this place, counted over all threads. n 0 counts as 1.
/// The format's arguments are evaluated only for a record that is written.
#define CORDWOOD_LOG_EVERY_N(log, level, n, ...)                                                   \
    CORDWOOD_LOG_WHEN_(log, level,                                                                 \
                       cw_site_every_n(&::cordwood::detail::rate_of<cw_place_>, (n)),              \
                       __VA_ARGS__)
/// Writes at most one record of this place in ms milliseconds, over all threads.
#define CORDWOOD_LOG_EVERY_MS(log, level, ms, ...)                                                 \
    CORDWOOD_LOG_WHEN_(log, level,                                                                 \
                       cw_site_every_ms(&::cordwood::detail::rate_of<cw_place_>, (ms)),            \
                       __VA_ARGS__)

#define CORDWOOD_LOG_WHEN_(log, level, condition, ...)                                             \
    do {                                                                                           \
        static_assert(::cordwood::detail::is_literal(CORDWOOD_TEXT_(CW_FIRST_(__VA_ARGS__, 0))),   \
                      "cordwood: the format must be a string literal; "                            \
                      "for a text, CORDWOOD_INFO(log, \"{}\", text)");                             \
        if (!__builtin_is_constant_evaluated()) {                                                  \
            cw_logger *const cw_logger_ = ::cordwood::detail::handle_of(log);                      \
            const cw_level cw_level_ = ::cordwood::detail::level_of(level);                        \
            if (cw_level_ + 1u > CW_MIN_LEVEL && cw_enabled(cw_logger_, cw_level_)) {              \
                constexpr const char *cw_function_ = __func__;                                     \
                struct cw_place_ {                                                                 \
                    static constexpr const char *format() { return CW_FIRST_(__VA_ARGS__, 0); }    \
                    static constexpr const char *file() { return __FILE__; }                       \
                    static constexpr const char *function() { return cw_function_; }               \
                    static constexpr uint32_t line() { return __LINE__; }                          \
                };                                                                                 \
                if (condition) {                                                                   \
                    ::cordwood::detail::write_at<cw_place_>(cw_logger_, cw_level_,                 \
                                                            __VA_ARGS__);                          \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    } while (0)

#define CORDWOOD_TEXT_(...) CORDWOOD_TEXT_OF_(__VA_ARGS__)
#define CORDWOOD_TEXT_OF_(...) #__VA_ARGS__

namespace cordwood {
namespace detail {

// True if the format's source text begins like a literal of char.
constexpr bool is_literal(const char *source) {
    return source[0] == '"' || (source[0] == 'R' && source[1] == '"');
}

template <class T> inline cw_logger *handle_of(const T &log) noexcept {
    constexpr bool is_logger = std::is_convertible_v<const T &, const logger &>;
    constexpr bool is_handle = std::is_convertible_v<const T &, cw_logger *>;
    static_assert(is_logger || is_handle, "cordwood: a macro's first argument is a "
                                          "cordwood::logger (not a pointer to one)");
    if constexpr (is_logger) {
        return static_cast<const logger &>(log).handle();
    } else if constexpr (is_handle) {
        return log;
    } else {
        return nullptr;
    }
}

constexpr cw_level level_of(level at) { return static_cast<cw_level>(at); }
constexpr cw_level level_of(cw_level at) { return at; }

// Hidden: a module that is unloaded takes its places with it, and two modules with a library each
// do not share one.
template <class... A> struct __attribute__((visibility("hidden"))) classes_of {
    alignas(8) static constexpr uint8_t list[] = {class_of<std::remove_cv_t<A>>()..., CW_ARG_NONE};
};

// How often a place may log: its count, its next time. Kept apart from its site: the arguments
// decide the type of the site, and are not evaluated for a record that is left out.
template <class Place> __attribute__((visibility("hidden"))) inline cw_site rate_of{};

// Objects that are compiled in different ways do not share what follows: see append.h.
inline namespace CW_FORM_ {

// The buffers are temporaries of the caller's expression, and live as long as it.
template <class... A>
__attribute__((always_inline)) inline void write_site(cw_logger *logger, cw_level level,
                                                      cw_site &site, const A &...arguments,
                                                      buffer_for<A> &&...buffers) {
    (void)write_kept(logger, level, site, kept_of<A>(arguments, buffers)...);
}

template <class Place, class Format, class... A>
__attribute__((always_inline, visibility("hidden"))) inline void
write_at(cw_logger *logger, cw_level level, const Format &, const A &...arguments) {
    constexpr bool is_array = std::is_array_v<Format>;
    constexpr bool is_short = sizeof...(A) <= CW_ARGUMENTS_MAX;
    static_assert(is_array, "cordwood: the format must be a string literal");
    static_assert(is_short, "cordwood: a record takes at most 32 arguments");
    if constexpr (is_array && is_short) {
        if constexpr ((argument_of_type<std::remove_cv_t<A>>::is_right && ...)) {
            constexpr verdict found = format_checker(Place::format(), sizeof(Format) - 1,
                                                     classes_of<A...>::list, sizeof...(A))
                                          .check();
            if constexpr (format_for_argument<found.what, found.argument>::is_right) {
                static cw_site site = {nullptr,
                                       Place::format(),
                                       Place::file(),
                                       Place::function(),
                                       classes_of<A...>::list,
                                       Place::line(),
                                       0,
                                       0,
                                       CW_STYLE_BRACES,
                                       0};
                write_site<A...>(logger, level, site, arguments..., buffer_for<A>()...);
            }
        }
    }
}

} // namespace CW_FORM_
} // namespace detail
} // namespace cordwood
#endif
