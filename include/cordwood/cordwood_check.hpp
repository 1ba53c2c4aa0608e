// Compares a std::format string with the types of its arguments while the compiler runs, in C++17,
// too. The macros of cordwood_macros.hpp include this file. It knows the rules of std::format, and
// one more: each argument must have a placeholder. Users see the messages of the static_asserts;
// the number after a message is that of the argument, from 0.
#ifndef CORDWOOD_CHECK_HPP
#define CORDWOOD_CHECK_HPP

#include <cordwood/cordwood_values.hpp>

#include <cstddef>
#include <cstdint>

namespace cordwood {
namespace detail {

enum class mistake { none, nul, brace, name, mixed, missing, unused, unknown, type, flag, width };

struct verdict {
    mistake what;
    int argument;
};

// A cursor over the format. It stops at the first mistake.
class format_checker {
public:
    constexpr format_checker(const char *text, size_t size, const uint8_t *classes, int count)
        : text_(text), size_(size), classes_(classes), count_(count) {}

    constexpr verdict check() {
        while (at_ < size_ && found_.what == mistake::none) {
            const char now = text_[at_];
            if (now == '\0') {
                fail(mistake::nul, -1);
            } else if ((now == '{' || now == '}') && byte(1) == now) {
                at_ += 2;
            } else if (now == '}') {
                fail(mistake::brace, -1);
            } else if (now == '{') {
                at_++;
                placeholder();
            } else {
                at_++;
            }
        }
        for (int i = 0; i < count_; i++) {
            if (((used_ >> i) & 1) == 0) {
                fail(mistake::unused, i);
            }
        }
        return found_;
    }

private:
    constexpr char byte(size_t ahead = 0) const {
        return at_ + ahead < size_ ? text_[at_ + ahead] : '\0';
    }
    // Records a mistake; only the first counts. Returns false.
    constexpr bool fail(mistake what, int argument) {
        if (found_.what == mistake::none) {
            found_ = {what, argument};
        }
        return false;
    }
    static constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
    static constexpr bool is_align(char c) { return c == '<' || c == '>' || c == '^'; }
    static constexpr bool is_one_of(char c, const char *set) {
        for (; *set != '\0'; set++) {
            if (*set == c) {
                return true;
            }
        }
        return false;
    }

    // Returns the index of the argument that a placeholder, width or precision names, or -1.
    constexpr int argument() {
        int index = 0;
        const bool is_number = is_digit(byte());
        if (is_number) {
            for (; is_digit(byte()); at_++) {
                index = index > 99 ? 99 : index * 10 + (byte() - '0');
            }
        } else if (byte() == '\0') {
            return fail(mistake::brace, -1), -1;
        } else if (byte() != '}' && byte() != ':') {
            return fail(mistake::name, -1), -1;
        } else {
            index = next_++;
        }
        (is_number ? numbered_ : counted_) = true;
        if (numbered_ && counted_) {
            return fail(mistake::mixed, -1), -1;
        }
        if (index >= count_) {
            return fail(mistake::missing, index), -1;
        }
        used_ |= uint64_t{1} << index;
        return index;
    }

    constexpr void placeholder() {
        const int index = argument();
        if (index < 0) {
            return;
        }
        if (byte() == ':') {
            at_++;
            if (!specification(index)) {
                return;
            }
        }
        if (byte() == '}') {
            at_++;
        } else {
            fail(at_ >= size_ ? mistake::brace : mistake::unknown, index);
        }
    }

    // [[fill]align][sign][#][0][width][.precision][L][type]
    constexpr bool specification(int index) {
        const size_t fill = character();
        if (fill > 0 && is_align(byte(fill)) && byte() != '{' && byte() != '}') {
            at_ += fill + 1;
        } else if (is_align(byte())) {
            at_++;
        }
        const bool has_sign = take("+- ");
        const bool has_flag = take("#");
        const bool has_zero = take("0");
        if (!number(index)) {
            return false;
        }
        bool has_precision = false;
        if (take(".")) {
            has_precision = true;
            if (byte() != '{' && !is_digit(byte())) {
                return fail(mistake::unknown, index);
            }
            if (!number(index)) {
                return false;
            }
        }
        const bool is_local = take("L");
        const char type = byte() == '}' || at_ >= size_ ? '\0' : byte();
        if (type != '\0') {
            if (!is_one_of(type, "aAbBcdeEfFgGopPsxX?")) {
                return fail(mistake::unknown, index);
            }
            at_++;
        }
        return suits(index, type, has_sign || has_flag || has_zero, has_precision, is_local);
    }

    constexpr bool suits(int index, char type, bool has_flags, bool has_precision, bool is_local) {
        const uint8_t given = classes_[index];
        const char *types = "bBcdoxX";
        bool is_text = type == 'c' || type == '?' || type == 's';
        switch (given) {
        case CW_ARG_TEXT:
            types = "s?";
            is_text = true;
            break;
        case CW_ARG_POINTER:
            types = "pP";
            break;
        case CW_ARG_FLOAT:
        case CW_ARG_DOUBLE:
        case CW_ARG_LONG_DOUBLE:
            types = "aAeEfFgG";
            break;
        case CW_ARG_BOOL:
            types = "sbBdoxX";
            is_text = is_text || type == '\0';
            break;
        case CW_ARG_CHAR:
            types = "cbBdoxX?";
            is_text = is_text || type == '\0';
            break;
        default:
            break;
        }
        if (type != '\0' && !is_one_of(type, types)) {
            return fail(mistake::type, index);
        }
        const bool is_float = given == CW_ARG_FLOAT || given == CW_ARG_DOUBLE ||
                              given == CW_ARG_LONG_DOUBLE;
        if ((has_flags && (is_text || given == CW_ARG_POINTER)) ||
            (has_precision && !is_float && given != CW_ARG_TEXT) ||
            (is_local && (given == CW_ARG_TEXT || given == CW_ARG_POINTER))) {
            return fail(mistake::flag, index);
        }
        return true;
    }

    constexpr bool take(const char *set) {
        if (at_ < size_ && is_one_of(byte(), set)) {
            at_++;
            return true;
        }
        return false;
    }

    // A width or precision: digits, nothing, or the argument that holds it.
    constexpr bool number(int) {
        if (byte() != '{') {
            while (is_digit(byte())) {
                at_++;
            }
            return true;
        }
        at_++;
        const int index = argument();
        if (index < 0) {
            return false;
        }
        const uint8_t given = classes_[index];
        if (given != CW_ARG_INT && given != CW_ARG_LONG && given != CW_ARG_UINT &&
            given != CW_ARG_ULONG) {
            return fail(mistake::width, index);
        }
        return take("}") || fail(at_ >= size_ ? mistake::brace : mistake::unknown, index);
    }

    // Bytes of the UTF-8 character here.
    constexpr size_t character() const {
        const unsigned char first = static_cast<unsigned char>(byte());
        return first == 0 ? 0 : first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    }

    const char *text_;
    size_t size_;
    const uint8_t *classes_;
    int count_;
    size_t at_ = 0;
    int next_ = 0;
    bool numbered_ = false;
    bool counted_ = false;
    uint64_t used_ = 0;
    verdict found_ = {mistake::none, -1};
};

template <mistake What, int Argument> struct format_for_argument {
    static_assert(What != mistake::nul, "cordwood: the format contains a NUL");
    static_assert(What != mistake::brace,
                  "cordwood: unbalanced brace in the format; {{ and }} stand for braces");
    static_assert(What != mistake::name,
                  "cordwood: a placeholder is {}, {:spec}, {0} or {0:spec}; it has no name");
    static_assert(What != mistake::mixed, "cordwood: the format mixes {} and {0}");
    static_assert(What != mistake::missing, "cordwood: a placeholder without an argument");
    static_assert(What != mistake::unused,
                  "cordwood: an argument without a placeholder; write {} (%d is for CW_INFO)");
    static_assert(What != mistake::unknown,
                  "cordwood: no such specification: [[fill]align][sign][#][0][width][.precision]"
                  "[type]");
    static_assert(What != mistake::type,
                  "cordwood: a placeholder's type does not fit its argument, as {:d} of a text");
    static_assert(What != mistake::flag,
                  "cordwood: a sign, #, 0, L or precision that its argument cannot have");
    static_assert(What != mistake::width,
                  "cordwood: a width or precision in an argument must be an integer");
    static constexpr bool is_right = What == mistake::none;
};

template <class T> struct is_wide_character : std::false_type {};
template <> struct is_wide_character<wchar_t> : std::true_type {};
template <> struct is_wide_character<char16_t> : std::true_type {};
template <> struct is_wide_character<char32_t> : std::true_type {};
#if defined(__cpp_char8_t)
template <> struct is_wide_character<char8_t> : std::true_type {};
#endif
template <class T, class = void> struct is_wide_class : std::false_type {};
template <class T>
struct is_wide_class<T, std::void_t<typename T::traits_type>>
    : is_wide_character<typename T::value_type> {};
template <class T>
constexpr bool is_wide =
    is_wide_class<T>::value ||
    is_wide_character<
        std::remove_cv_t<std::remove_pointer_t<std::remove_all_extents_t<T>>>>::value;

// One argument of a macro, by its type without const.
template <class T> struct argument_of_type {
    static constexpr bool is_own_or_text = is_rendered<T> || is_text<T>;
    static constexpr bool is_pointer = std::is_pointer_v<T> && !is_formattable<T>;
    static_assert(is_own_or_text || !is_wide<T>,
                  "cordwood: wide characters and strings have no format; convert them to UTF-8");
    static_assert(is_own_or_text || is_wide<T> || !is_pointer,
                  "cordwood: a pointer to something; log what it points to, or for the address "
                  "static_cast<const void *>(p)");
    static_assert(is_formattable<T> || is_wide<T> || is_pointer,
                  "cordwood: this type has no format; write void cordwood_format(const T &, "
                  "cordwood::text_buffer &) in its namespace, or a cordwood::formatter<T>");
    static constexpr bool is_right = is_own_or_text || (is_formattable<T> && !is_wide<T>);
};

} // namespace detail
} // namespace cordwood
#endif
