// How C++ appends a record of braces: each argument is evaluated first, then a known place writes
// it, in the host's own code where append.h allows that. The macros (cordwood_macros.hpp) have a
// place each, as a static object. The function form (cordwood_format.hpp) finds its place by the
// addresses of what describes it, in a table of this module alone. Both include this file.
#ifndef CORDWOOD_APPEND_HPP
#define CORDWOOD_APPEND_HPP

#include <cordwood/cordwood_values.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace cordwood {
namespace detail {
// Objects that are compiled in different ways do not share what follows: see append.h.
inline namespace CW_FORM_ {

// An argument, evaluated: a number, an address, or a text, which may lie in the buffer.
template <class T> inline auto kept_of(const T &value, buffer_for<T> &buffer) noexcept {
    (void)buffer;
    constexpr uint8_t type = class_of<std::remove_cv_t<T>>();
    if constexpr (type == CW_ARG_TEXT) {
        const cw_arg text = value_of(value, buffer);
        return std::string_view(text.s.data, text.s.length);
    } else if constexpr (std::is_enum_v<T>) {
        return static_cast<std::underlying_type_t<T>>(value);
    } else if constexpr (type == CW_ARG_POINTER) {
        return static_cast<const volatile void *>(value);
    } else {
        return value;
    }
}

#if CW_APPEND_INLINE_
// Bytes of an argument in a record, without the content of a text, which length_of adds.
template <class T> constexpr size_t size_of() {
    switch (class_of<T>()) {
    case CW_ARG_BOOL:
    case CW_ARG_CHAR:
        return 1;
    case CW_ARG_INT:
    case CW_ARG_UINT:
    case CW_ARG_FLOAT:
    case CW_ARG_TEXT:
        return 4;
    default:
        return 8;
    }
}
template <class T> CW_INLINED_ size_t length_of(T value) noexcept {
    if constexpr (class_of<T>() == CW_ARG_TEXT) {
        return value.size();
    } else {
        return 0;
    }
}

template <class T> CW_INLINED_ void put_kept(cw_append *record, T value) noexcept {
    constexpr uint8_t type = class_of<T>();
    if constexpr (type == CW_ARG_TEXT) {
        cw_put_u4(record, value.size(), 0);
        if (!value.empty()) { // an empty one may have no address
            cw_put_bytes_(record, value.data(), value.size());
        }
    } else if constexpr (type == CW_ARG_INT || type == CW_ARG_UINT) {
        cw_put_i4(record, static_cast<int64_t>(value), 0);
    } else if constexpr (type == CW_ARG_LONG || type == CW_ARG_ULONG) {
        cw_put_i8(record, static_cast<int64_t>(value), 0);
    } else if constexpr (type == CW_ARG_LONG_DOUBLE) {
        cw_put_l(record, value, 0);
    } else {
        cw_put_bytes_(record, &value, sizeof value);
    }
}
#endif

template <class... T>
__attribute__((always_inline)) inline cw_status write_kept(cw_logger *logger, cw_level level,
                                                           cw_site &site, T... values) {
#if CW_APPEND_INLINE_
    const size_t bytes = (size_t{0} + ... + (size_of<T>() + length_of(values)));
    cw_append record;
    if (CW_LIKELY_(cw_append_begin(&record, logger, level, &site, bytes))) {
        (void)(..., put_kept(&record, values));
        if (CW_LIKELY_(cw_append_end(&record, bytes))) {
            return CW_OK;
        }
    }
    [[maybe_unused]] no_buffer none;
    [[maybe_unused]] size_t at = 0;
    cw_arg arguments[sizeof...(values) + 1];
    (void)(..., (arguments[at++] = value_of(values, none)));
    return cw_append_slow_(logger, level, &site, arguments, record.block);
#else
    [[maybe_unused]] no_buffer none;
    const cw_arg arguments[] = {value_of(values, none)..., cw_arg_u(0)};
    return cw_site_write(logger, level, &site, arguments);
#endif
}

#if CW_APPEND_INLINE_
// Hidden: a module that is unloaded takes its places with it, and starts with none when it is
// loaded again. Only the pages of slots in use take memory.
constexpr size_t places_max = 1024;
__attribute__((visibility("hidden"))) inline cw_site places[places_max];

// Fills a free slot. One call does, by changing `count` from 0. The others, including those of
// handlers that interrupt it, do without until the format is there. Null: the slot is taken.
template <class Unused = void>
__attribute__((noinline, visibility("hidden"))) cw_site *
new_place(cw_site &slot, const char *text, const char *file, const char *function, uint32_t line,
          const uint8_t *classes) noexcept {
    uint32_t free = 0;
    if (!__atomic_compare_exchange_n(&slot.count, &free, 1, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED)) {
        return nullptr;
    }
    slot.file = file;
    slot.function = function;
    slot.arguments = classes;
    slot.line = line;
    slot.style = CW_STYLE_BRACES;
    __atomic_store_n(&slot.format, text, __ATOMIC_RELEASE);
    return &slot;
}

// The place of a call, found by addresses alone: all of them must be literals' or hidden statics'.
CW_INLINED_ cw_site *place_of(const char *text, const char *file, const char *function,
                              uint32_t line, const uint8_t *classes) noexcept {
    const uint64_t key = reinterpret_cast<uintptr_t>(text) + reinterpret_cast<uintptr_t>(function) +
                         reinterpret_cast<uintptr_t>(classes) + line * 0x9E3779B1u;
    cw_site &slot = places[(key * 0x9E3779B97F4A7C15u) >> 54];
    if (CW_LIKELY_(__atomic_load_n(&slot.format, __ATOMIC_ACQUIRE) == text &&
                   slot.function == function && slot.line == line && slot.arguments == classes &&
                   slot.file == file)) {
        return &slot;
    }
    return new_place(slot, text, file, function, line, classes);
}
#endif

} // namespace CW_FORM_

// Hidden, as the places that name it. Padded with zeros, as cw_place_write wants it.
template <class... A> struct __attribute__((visibility("hidden"))) padded_classes_of {
    alignas(8) static constexpr uint8_t list[(sizeof...(A) / 8 + 1) * 8] = {class_of<A>()...};
};

} // namespace detail
} // namespace cordwood
#endif
