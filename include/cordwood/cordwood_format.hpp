// Deferred formatting for C++17: `logger.info("order {} at {:.2f}", id, price)`. The format is
// std::format's. The call copies the arguments unchanged, and a reader makes the text. cordwood.hpp
// includes this file.
//
// In C++20 the compiler counts the placeholders of a call. The library compares the rest (in C++17
// also the count). A format may name more arguments than there are, or show one as a type that it
// is not (`{:d}` for a text). Its records then hold both, "{:d} (seven)", and the first call of the
// place answers CW_E_ARGUMENT. In both, the compiler checks all of it in the macros of
// cordwood_macros.hpp. Arguments: cordwood_values.hpp.
#ifndef CORDWOOD_FORMAT_HPP
#define CORDWOOD_FORMAT_HPP

#include <cordwood/cordwood_append.hpp>
#include <cordwood/cordwood_values.hpp>

#include <type_traits>
#include <utility>

#if defined(__cpp_consteval)
#define CORDWOOD_CONSTEVAL consteval
#else
#define CORDWOOD_CONSTEVAL constexpr
#endif

namespace cordwood {

namespace detail {

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

constexpr bool has_no_nul(const char *text, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\0') {
            return false;
        }
    }
    return true;
}

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
        literal_ = detail::has_no_nul(text, N - 1);
#endif
    }

    __attribute__((always_inline)) cw_status write(cw_logger *logger, cw_level level,
                                                   const A &...arguments) const noexcept {
        static_assert(sizeof...(A) <= CW_ARGUMENTS_MAX, "at most 32 arguments");
        if (!cw_enabled(logger, level)) {
            return CW_DISABLED;
        }
        return packed(logger, level, arguments..., detail::buffer_for<A>()...);
    }

private:
    // The buffers are temporaries of the call above, and live as long as it.
    __attribute__((always_inline)) cw_status
    packed(cw_logger *logger, cw_level level, const A &...arguments,
           detail::buffer_for<A> &&...buffers) const noexcept {
        return kept(logger, level, detail::kept_of<A>(arguments, buffers)...);
    }

    template <class... T>
    __attribute__((always_inline)) cw_status kept(cw_logger *logger, cw_level level,
                                                  T... values) const noexcept {
#if CW_APPEND_INLINE_
        if (is_literal()) {
            cw_site *site = detail::place_of(text_, file_, function_, line_,
                                             detail::padded_classes_of<A...>::list);
            if (CW_LIKELY_(site != nullptr)) {
                return detail::write_kept(logger, level, *site, values...);
            }
        }
#endif
        return called(logger, level, text_, size_, file_, function_, line_, values...);
    }

    template <class... T>
#if CW_APPEND_INLINE_
    __attribute__((noinline))
#endif
    static cw_status
    called(cw_logger *logger, cw_level level, const char *text, uint32_t size, const char *file,
           const char *function, uint32_t line, T... values) noexcept {
        const cw_site place = {nullptr, text, file,  function,
                               detail::padded_classes_of<A...>::list,
                               line,    size, 0,     CW_STYLE_BRACES, 0};
        [[maybe_unused]] detail::no_buffer none;
        const cw_arg arguments[] = {detail::value_of(values, none)..., cw_arg_u(0)};
        return cw_place_write(logger, level, &place, arguments);
    }

    // True if the format's address identifies the format. In C++17 the format may be a host's
    // array, whose content changes; only GCC tells a literal from that.
    __attribute__((always_inline)) bool is_literal() const noexcept {
#if defined(__cpp_consteval)
        return literal_;
#elif !defined(__clang__)
        return __builtin_constant_p(__builtin_strlen(text_)) && __builtin_strlen(text_) == size_;
#else
        return false;
#endif
    }

    const char *text_;
    const char *file_;
    const char *function_;
    uint32_t size_;
    uint32_t line_;
    bool literal_ = false;
};

template <class... A> using format = basic_format<typename detail::identity<A>::type...>;

} // namespace cordwood
#endif
