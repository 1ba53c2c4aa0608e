// Containers, arrays, pairs, tuples and std::optional as the value of a field: their JSON
// (CW_TYPE_JSON). Maps become objects, whose keys are text; the rest becomes arrays. Values are
// those of cordwood_values.hpp: numbers and bools keep their type, values with a text become
// strings, std::nullopt and null pointers become null. NaN and infinities become strings, and bytes
// that are not UTF-8 become U+FFFD.
// are not UTF-8 become U+FFFD.
// Text of up to 512 bytes stays on the caller's stack; only longer text takes heap memory. If a
// text has more than 262,144 bytes, or memory runs out for it, it is cut, ends with "…" and is a
// string.
#ifndef CORDWOOD_JSON_HPP
#define CORDWOOD_JSON_HPP

#include <cordwood/cordwood_values.hpp>

#include <cmath>
#include <cstdlib>

namespace cordwood {
namespace detail {

// Text that grows. It belongs to the full expression that makes a field.
class json_buffer {
public:
    json_buffer() noexcept = default;
    json_buffer(const json_buffer &) = delete;
    json_buffer &operator=(const json_buffer &) = delete;
    ~json_buffer() {
        if (bytes_ != near_) {
            std::free(bytes_);
        }
    }

    void append(std::string_view text) noexcept {
        if (cut_ || text.empty()) {
            return;
        }
        size_t count = text.size();
        if (count > capacity_ - mark - size_ && !grow(count)) {
            cut_ = true;
            count = capacity_ - mark - size_;
            for (; count > 0 && (static_cast<unsigned char>(text[count]) & 0xC0) == 0x80; count--) {
            }
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
    static constexpr size_t bytes_max = 262144 + mark;

    bool grow(size_t count) noexcept {
        size_t wanted = capacity_;
        while (wanted - mark - size_ < count) {
            if (wanted >= bytes_max) {
                return false;
            }
            wanted = wanted * 2 < bytes_max ? wanted * 2 : bytes_max;
        }
        void *made = std::realloc(bytes_ == near_ ? nullptr : bytes_, wanted);
        if (made == nullptr) {
            return false;
        }
        if (bytes_ == near_) {
            std::memcpy(made, near_, size_);
        }
        bytes_ = static_cast<char *>(made);
        capacity_ = wanted;
        return true;
    }

    size_t size_ = 0;
    size_t capacity_ = sizeof near_;
    bool cut_ = false;
    char *bytes_ = near_;
    char near_[512 + mark];
};

// The number of bytes of the character that begins there; 0: none does.
inline size_t utf8_count(std::string_view text, size_t at) noexcept {
    const auto byte = [&](size_t place) {
        return place < text.size() ? static_cast<unsigned char>(text[place]) : 0U;
    };
    const unsigned first = byte(at), second = byte(at + 1);
    const size_t count = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3
                         : first < 0xF5                                                        ? 4
                                                                                               : 0;
    for (size_t i = 1; i < count; i++) {
        if ((byte(at + i) & 0xC0U) != 0x80U) {
            return 0;
        }
    }
    // Overlong, a surrogate, or beyond the last character.
    const bool is_odd = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
                        (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
    return is_odd ? 0 : count;
}

inline void put_json_text(std::string_view text, json_buffer &out) noexcept {
    out.append("\"");
    size_t from = 0, at = 0;
    const auto escape = [&](const char *letters, size_t count) {
        out.append(text.substr(from, at - from));
        out.append({letters, count});
        at++;
        from = at;
    };
    while (at < text.size() && !out.is_cut()) {
        const unsigned char byte = static_cast<unsigned char>(text[at]);
        const size_t count = utf8_count(text, at);
        if (count == 0) {
            escape("\xEF\xBF\xBD", 3);
        } else if (byte == '"' || byte == '\\') {
            const char letters[2] = {'\\', static_cast<char>(byte)};
            escape(letters, 2);
        } else if (byte < 0x20) {
            char letters[8];
            std::snprintf(letters, sizeof letters, "\\u%04x", static_cast<unsigned>(byte));
            escape(letters, 6);
        } else {
            at += count;
        }
    }
    out.append(text.substr(from, at - from));
    out.append("\"");
}

template <class T> void put_json(const T &value, json_buffer &out);

// True for a map without duplicate keys, as an object needs.
template <class T, class = void> struct is_object : std::false_type {};
template <class T>
using value_at = decltype(std::declval<const T &>().at(std::declval<typename T::key_type>()));
template <class T>
struct is_object<T, std::void_t<typename T::mapped_type, value_at<T>>> : std::true_type {};

template <class T> void put_json_key(const T &key, json_buffer &out) {
    if constexpr (is_text<T>) {
        put_json_text(text_of(key), out);
    } else if constexpr (std::is_same_v<T, char>) {
        put_json_text({&key, 1}, out);
    } else {
        list_buffer text;
        put(key, text);
        put_json_text(text.view(), out);
    }
}

template <class T> void put_json_range(const T &value, json_buffer &out) {
    out.append(is_object<T>::value ? "{" : "[");
    bool is_first = true;
    for (auto &&element : value) {
        if (out.is_cut()) {
            return;
        }
        out.append(is_first ? "" : ",");
        is_first = false;
        if constexpr (is_object<T>::value) {
            put_json_key(element.first, out);
            out.append(":");
            put_json(element.second, out);
        } else {
            put_json(static_cast<const element_of<T> &>(element), out);
        }
    }
    out.append(is_object<T>::value ? "}" : "]");
}

template <class T, size_t... I>
void put_json_tuple(const T &value, json_buffer &out, std::index_sequence<I...>) {
    out.append("[");
    (void)(..., (out.append(I == 0 ? "" : ","), put_json(std::get<I>(value), out)));
    out.append("]");
}

template <class T> void put_json_number(T value, json_buffer &out) noexcept {
    char digits[64];
    if constexpr (std::is_floating_point_v<T>) {
        if (!std::isfinite(value)) {
            out.append(std::isnan(value) ? "\"NaN\"" : std::signbit(value) ? "\"-Infinity\""
                                                                         : "\"Infinity\"");
            return;
        }
    }
    out.append(digits_of(value, digits));
}

template <class T> void put_json(const T &value, json_buffer &out) {
    if constexpr (is_rendered<T>) {
        text_buffer text;
        render_value(value, text);
        put_json_text(text.view(), out);
    } else if constexpr (is_text<T> || is_exception<T>) {
        if constexpr (std::is_pointer_v<T>) {
            if (value == nullptr) {
                out.append("null");
                return;
            }
        }
        put_json_text(text_of(value), out);
    } else if constexpr (is_range<T>::value) {
        put_json_range(value, out);
    } else if constexpr (is_optional<T>::value) {
        if (value) {
            put_json(*value, out);
        } else {
            out.append("null");
        }
    } else if constexpr (is_tuple<T>::value) {
        put_json_tuple(value, out, std::make_index_sequence<std::tuple_size_v<T>>());
    } else if constexpr (std::is_enum_v<T>) {
        put_json(static_cast<std::underlying_type_t<T>>(value), out);
    } else if constexpr (std::is_same_v<T, bool>) {
        out.append(value ? "true" : "false");
    } else if constexpr (std::is_same_v<T, char>) {
        put_json_text({&value, 1}, out);
    } else if constexpr (std::is_integral_v<T>) {
        using widest = std::conditional_t<std::is_signed_v<T>, long long, unsigned long long>;
        put_json_number(static_cast<widest>(value), out);
    } else if constexpr (std::is_floating_point_v<T>) {
        using shown = std::conditional_t<std::is_same_v<T, long double>, double, T>;
        put_json_number(static_cast<shown>(value), out);
    } else if constexpr (std::is_same_v<T, std::nullptr_t>) {
        out.append("null");
    } else {
        list_buffer text;
        put(value, text);
        put_json_text(text.view(), out);
    }
}

// Made by a call that is noexcept.
template <class T> cw_str json_of(const T &value, json_buffer &buffer) noexcept {
    put_json(value, buffer);
    const std::string_view text = buffer.view();
    return {text.data(), text.size()};
}

} // namespace detail
} // namespace cordwood
#endif
