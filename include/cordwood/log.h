/* Deferred formatting: CW_LOG and its short forms. cordwood.h includes this file. C11 and C++17.
 *
 *     CW_INFO(logger, "order %d at %f from %s", id, price, who);
 *
 * A call first checks the level. Below the threshold it evaluates nothing else. Otherwise it
 * appends the time and the raw arguments. When the statement ends, the record is as durable as
 * after cw_write. A reader makes the text later, as printf makes it in the C locale. The first call
 * at a place registers the place (format, file, line, function) once in the process.
 *
 *   - The format must be a string literal. The compiler's own -Wformat warnings apply.
 *   - The format decides what the call copies. %s copies the string, and NULL reads as "(null)". A
 *     string of CW_STRING_MAX bytes or more is cut there, and the record is marked as truncated.
 *     "%.*s" never looks beyond its precision. %p copies the pointer.
 *   - The format may use all conversions of printf except %n, also %m, "%1$d" and long double.
 *   - A call takes at most CW_ARGUMENTS_MAX arguments. More do not compile.
 *   - If a format does not fit its arguments (too few arguments, %s for a number) or contains %n,
 *     the library keeps the format unchanged, without the arguments, and cw_last_error says why.
 *   - In C, do not use the macros inside an `inline` function that is not static: the place is a
 *     static variable.
 *   - Usually the macro appends the record itself, without a call (append.h). With
 *     -DCW_APPEND_CALL each record is a call.
 *   - Any thread may use the macros. Signals: safe. Fork: safe. The statement has no value; the
 *     engine counts a failure as it does for cw_write. */
#ifndef CORDWOOD_H
#include "cordwood.h" /* which in turn includes this file */
#endif
#ifndef CORDWOOD_LOG_H
#define CORDWOOD_LOG_H

/* Removes records below this level at compile time: -DCW_MIN_LEVEL=CW_LEVEL_INFO. */
#ifndef CW_MIN_LEVEL
#define CW_MIN_LEVEL 0u
#endif

#define CW_ARGUMENTS_MAX 32
#define CW_STRING_MAX 1048576

/* ── The macros ─────────────────────────────────────────────────────────────────────────────── */

#define CW_LOG(logger, level, ...) CW_LOG_WHEN_(logger, level, 1, __VA_ARGS__)
#define CW_TRACE(logger, ...) CW_LOG(logger, CW_LEVEL_TRACE, __VA_ARGS__)
#define CW_DEBUG(logger, ...) CW_LOG(logger, CW_LEVEL_DEBUG, __VA_ARGS__)
#define CW_INFO(logger, ...) CW_LOG(logger, CW_LEVEL_INFO, __VA_ARGS__)
#define CW_NOTICE(logger, ...) CW_LOG(logger, CW_LEVEL_NOTICE, __VA_ARGS__)
#define CW_WARN(logger, ...) CW_LOG(logger, CW_LEVEL_WARN, __VA_ARGS__)
#define CW_ERROR(logger, ...) CW_LOG(logger, CW_LEVEL_ERROR, __VA_ARGS__)
#define CW_FATAL(logger, ...) CW_LOG(logger, CW_LEVEL_FATAL, __VA_ARGS__)

/* Writes the first of every n records of this place, counted over all threads. n 0 counts as 1. */
#define CW_LOG_EVERY_N(logger, level, n, ...)                                                      \
    CW_LOG_WHEN_(logger, level, cw_site_every_n(&cw_site_, (n)), __VA_ARGS__)
/* Writes at most one record of this place in ms milliseconds, over all threads. */
#define CW_LOG_EVERY_MS(logger, level, ms, ...)                                                    \
    CW_LOG_WHEN_(logger, level, cw_site_every_ms(&cw_site_, (ms)), __VA_ARGS__)

/* ── The parts of the macros: for macros and bindings, not to be called by hand ──────────────── */

/* One argument, as the call passes it. */
union cw_arg {
    uint64_t u; /* integers, sign-extended from their own type */
    double d;
    const volatile void *p;
    long double l;
    struct {
        const char *data;
        size_t length;
    } s;
};

/* The argument's type in the source. */
enum {
    CW_ARG_NONE = 0, /* ends a list */
    CW_ARG_INT = 1,  /* up to 32 bits */
    CW_ARG_LONG = 2, /* 64 bits */
    CW_ARG_DOUBLE = 3,
    CW_ARG_LONG_DOUBLE = 4,
    CW_ARG_POINTER = 5,
    CW_ARG_BOOL = 6, /* this and the types below: for CW_STYLE_BRACES only */
    CW_ARG_CHAR = 7,
    CW_ARG_UINT = 8,
    CW_ARG_ULONG = 9,
    CW_ARG_FLOAT = 10, /* as a double */
    CW_ARG_TEXT = 11,  /* cw_arg.s */
    CW_ARG_STRING = 12 /* char *, as CW_ARG_POINTER; for CW_STYLE_PRINTF only */
};

/* The syntax of a format: printf's, or std::format's. */
enum { CW_STYLE_PRINTF = 0, CW_STYLE_BRACES = 2 };

/* One place in the source. It has static storage, and every member that does not describe it is
 * zero. */
struct cw_site {
    const void *plan; /* belongs to the library; NULL: not registered */
    const char *format;
    const char *file;
    const char *function;
    const uint8_t *arguments; /* CW_ARG_…, ended by CW_ARG_NONE */
    uint32_t line;
    uint32_t count; /* CW_LOG_EVERY_N */
    uint64_t next_ns; /* CW_LOG_EVERY_MS */
    uint32_t style;   /* CW_STYLE_… */
    uint32_t inlined; /* belongs to the library (append.h); 0: every record is a call */
};

/* Returns true for the 1st, n+1st, … call. Signals: safe. */
static inline bool cw_site_every_n(cw_site *site, uint32_t n) {
    return __atomic_fetch_add(&site->count, 1, __ATOMIC_RELAXED) % (n ? n : 1) == 0;
}

#if defined(__GNUC__)
#define CW_PRINTF_(f, a) __attribute__((format(printf, f, a)))
#else
#define CW_PRINTF_(f, a)
#endif

/* Never runs: it lets the compiler compare the format with the arguments. */
CW_PRINTF_(1, 2) static inline void cw_check_format(const char *format, ...) { (void)format; }

#define CW_LOG_WHEN_(logger, level, condition, ...)                                                \
    do {                                                                                           \
        cw_logger *const cw_logger_ = (logger);                                                    \
        const cw_level cw_level_ = (level);                                                        \
        if (cw_level_ + 1u > CW_MIN_LEVEL && cw_enabled(cw_logger_, cw_level_)) {                  \
            static const uint8_t cw_types_[] = {CW_EACH_(CW_TYPE_OF_, __VA_ARGS__) CW_ARG_NONE};   \
            static cw_site cw_site_ = {                                                            \
                0, CW_FIRST_(__VA_ARGS__, 0), __FILE__, __func__, cw_types_, __LINE__, 0, 0, 0, 0};\
            if (condition) { CW_APPEND_(__VA_ARGS__) }                                             \
            if (0) cw_check_format(__VA_ARGS__);                                                   \
        }                                                                                          \
    } while (0)
#define CW_FIRST_(first, ...) first

static inline cw_arg cw_arg_u(uint64_t v) {
    cw_arg a;
    a.u = v;
    return a;
}
static inline cw_arg cw_arg_i(int64_t v) { return cw_arg_u((uint64_t)v); }
static inline cw_arg cw_arg_u4(uint64_t v) { return cw_arg_u(v); }
static inline cw_arg cw_arg_u8(uint64_t v) { return cw_arg_u(v); }
static inline cw_arg cw_arg_i4(int64_t v) { return cw_arg_i(v); }
static inline cw_arg cw_arg_i8(int64_t v) { return cw_arg_i(v); }
static inline cw_arg cw_arg_d(double v) {
    cw_arg a;
    a.d = v;
    return a;
}
static inline cw_arg cw_arg_l(long double v) {
    cw_arg a;
    a.l = v;
    return a;
}
static inline cw_arg cw_arg_p(const volatile void *v) {
    cw_arg a;
    a.p = v;
    return a;
}

/* CW_EACH_(m, format, a, b, …): m(2, a) m(1, b) …, without the format. */
#define CW_EACH_(m, ...) CW_PICK_(__VA_ARGS__,\
    CW_MANY_, CW_MANY_, CW_MANY_, CW_MANY_, CW_MANY_, CW_MANY_, CW_MANY_, CW_MANY_, CW_MANY_,      \
    CW_MANY_, CW_MANY_, CW_MANY_, CW_MANY_, CW_MANY_, CW_MANY_, CW_MANY_, CW_MANY_, CW_MANY_,      \
    CW_MANY_, CW_MANY_, CW_MANY_, CW_MANY_, CW_MANY_, CW_MANY_, CW_MANY_, CW_MANY_, CW_MANY_,      \
    CW_MANY_, CW_MANY_, CW_MANY_, CW_MANY_, CW_MANY_, CW_EACH_32_, CW_EACH_31_, CW_EACH_30_,       \
    CW_EACH_29_, CW_EACH_28_, CW_EACH_27_, CW_EACH_26_, CW_EACH_25_, CW_EACH_24_, CW_EACH_23_,     \
    CW_EACH_22_, CW_EACH_21_, CW_EACH_20_, CW_EACH_19_, CW_EACH_18_, CW_EACH_17_, CW_EACH_16_,     \
    CW_EACH_15_, CW_EACH_14_, CW_EACH_13_, CW_EACH_12_, CW_EACH_11_, CW_EACH_10_, CW_EACH_9_,      \
    CW_EACH_8_, CW_EACH_7_, CW_EACH_6_, CW_EACH_5_, CW_EACH_4_, CW_EACH_3_, CW_EACH_2_,            \
    CW_EACH_1_, CW_EACH_0_, 0)(m, __VA_ARGS__)
#define CW_PICK_(\
    p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17, p18, p19,      \
    p20, p21, p22, p23, p24, p25, p26, p27, p28, p29, p30, p31, p32, p33, p34, p35, p36, p37,      \
    p38, p39, p40, p41, p42, p43, p44, p45, p46, p47, p48, p49, p50, p51, p52, p53, p54, p55,      \
    p56, p57, p58, p59, p60, p61, p62, p63, p64, n, ...) n
/* With more than CW_ARGUMENTS_MAX arguments the compiler complains about this name. */
#define CW_MANY_(m, ...) cordwood_takes_at_most_32_arguments,
#define CW_EACH_0_(m, f)
#define CW_EACH_1_(m, f, a) m(1, a)
#define CW_EACH_2_(m, f, a, ...) m(2, a) CW_EACH_1_(m, f, __VA_ARGS__)
#define CW_EACH_3_(m, f, a, ...) m(3, a) CW_EACH_2_(m, f, __VA_ARGS__)
#define CW_EACH_4_(m, f, a, ...) m(4, a) CW_EACH_3_(m, f, __VA_ARGS__)
#define CW_EACH_5_(m, f, a, ...) m(5, a) CW_EACH_4_(m, f, __VA_ARGS__)
#define CW_EACH_6_(m, f, a, ...) m(6, a) CW_EACH_5_(m, f, __VA_ARGS__)
#define CW_EACH_7_(m, f, a, ...) m(7, a) CW_EACH_6_(m, f, __VA_ARGS__)
#define CW_EACH_8_(m, f, a, ...) m(8, a) CW_EACH_7_(m, f, __VA_ARGS__)
#define CW_EACH_9_(m, f, a, ...) m(9, a) CW_EACH_8_(m, f, __VA_ARGS__)
#define CW_EACH_10_(m, f, a, ...) m(10, a) CW_EACH_9_(m, f, __VA_ARGS__)
#define CW_EACH_11_(m, f, a, ...) m(11, a) CW_EACH_10_(m, f, __VA_ARGS__)
#define CW_EACH_12_(m, f, a, ...) m(12, a) CW_EACH_11_(m, f, __VA_ARGS__)
#define CW_EACH_13_(m, f, a, ...) m(13, a) CW_EACH_12_(m, f, __VA_ARGS__)
#define CW_EACH_14_(m, f, a, ...) m(14, a) CW_EACH_13_(m, f, __VA_ARGS__)
#define CW_EACH_15_(m, f, a, ...) m(15, a) CW_EACH_14_(m, f, __VA_ARGS__)
#define CW_EACH_16_(m, f, a, ...) m(16, a) CW_EACH_15_(m, f, __VA_ARGS__)
#define CW_EACH_17_(m, f, a, ...) m(17, a) CW_EACH_16_(m, f, __VA_ARGS__)
#define CW_EACH_18_(m, f, a, ...) m(18, a) CW_EACH_17_(m, f, __VA_ARGS__)
#define CW_EACH_19_(m, f, a, ...) m(19, a) CW_EACH_18_(m, f, __VA_ARGS__)
#define CW_EACH_20_(m, f, a, ...) m(20, a) CW_EACH_19_(m, f, __VA_ARGS__)
#define CW_EACH_21_(m, f, a, ...) m(21, a) CW_EACH_20_(m, f, __VA_ARGS__)
#define CW_EACH_22_(m, f, a, ...) m(22, a) CW_EACH_21_(m, f, __VA_ARGS__)
#define CW_EACH_23_(m, f, a, ...) m(23, a) CW_EACH_22_(m, f, __VA_ARGS__)
#define CW_EACH_24_(m, f, a, ...) m(24, a) CW_EACH_23_(m, f, __VA_ARGS__)
#define CW_EACH_25_(m, f, a, ...) m(25, a) CW_EACH_24_(m, f, __VA_ARGS__)
#define CW_EACH_26_(m, f, a, ...) m(26, a) CW_EACH_25_(m, f, __VA_ARGS__)
#define CW_EACH_27_(m, f, a, ...) m(27, a) CW_EACH_26_(m, f, __VA_ARGS__)
#define CW_EACH_28_(m, f, a, ...) m(28, a) CW_EACH_27_(m, f, __VA_ARGS__)
#define CW_EACH_29_(m, f, a, ...) m(29, a) CW_EACH_28_(m, f, __VA_ARGS__)
#define CW_EACH_30_(m, f, a, ...) m(30, a) CW_EACH_29_(m, f, __VA_ARGS__)
#define CW_EACH_31_(m, f, a, ...) m(31, a) CW_EACH_30_(m, f, __VA_ARGS__)
#define CW_EACH_32_(m, f, a, ...) m(32, a) CW_EACH_31_(m, f, __VA_ARGS__)

#include "append.h"

#ifndef __cplusplus

#define CW_TYPE_OF_(i, v) CW_CLASS_OF_(v),
#define CW_CLASS_OF_(v)                                                                            \
    _Generic((v), _Bool: CW_ARG_INT, char: CW_ARG_INT, signed char: CW_ARG_INT,                    \
             unsigned char: CW_ARG_INT, short: CW_ARG_INT, unsigned short: CW_ARG_INT,             \
             int: CW_ARG_INT, unsigned: CW_ARG_INT, long: CW_ARG_LONG, unsigned long: CW_ARG_LONG, \
             long long: CW_ARG_LONG, unsigned long long: CW_ARG_LONG, float: CW_ARG_DOUBLE,        \
             double: CW_ARG_DOUBLE, long double: CW_ARG_LONG_DOUBLE, char *: CW_STRING_CLASS_,     \
             const char *: CW_STRING_CLASS_, default: CW_ARG_POINTER)
/* f: the beginning of the names of functions for each type; string: the whole name for char *. */
#define CW_FOR_TYPE_(v, f, string)                                                                 \
    _Generic((v), _Bool: f##u4, char: f##i4, signed char: f##i4, unsigned char: f##u4,             \
             short: f##i4, unsigned short: f##u4, int: f##i4, unsigned: f##u4, long: f##i8,        \
             unsigned long: f##u8, long long: f##i8, unsigned long long: f##u8, float: f##d,       \
             double: f##d, long double: f##l, char *: string, const char *: string, default: f##p)
#define CW_VALUE_OF_(i, v) CW_FOR_TYPE_(v, cw_arg_, cw_arg_p)(v),

#if CW_APPEND_INLINE_
/* Each argument is evaluated, and each string measured, before the append begins. */
#define CW_APPEND_(...)                                                                            \
    CW_EACH_(CW_KEEP_, __VA_ARGS__)                                                                \
    const size_t cw_bytes_ = 0 CW_EACH_(CW_BYTES_, __VA_ARGS__);                                   \
    cw_append cw_append_;                                                                          \
    bool cw_is_kept_ = cw_append_begin(&cw_append_, cw_logger_, cw_level_, &cw_site_, cw_bytes_);  \
    if (CW_LIKELY_(cw_is_kept_)) {                                                                 \
        CW_EACH_(CW_PUT_, __VA_ARGS__)                                                             \
        cw_is_kept_ = cw_append_end(&cw_append_, cw_bytes_);                                       \
    }                                                                                              \
    if (!CW_LIKELY_(cw_is_kept_)) {                                                                \
        cw_arg cw_arguments_[sizeof cw_types_];                                                    \
        CW_EACH_(CW_SET_, __VA_ARGS__)                                                             \
        (void)cw_append_slow_(cw_logger_, cw_level_, &cw_site_, cw_arguments_, cw_append_.block);  \
    }
/* The comma turns arrays into pointers. */
#define CW_KEEP_(i, v)                                                                             \
    const __typeof__((void)0, (v)) cw_value_##i##_ = (v);                                          \
    const size_t cw_length_##i##_ =                                                                \
        CW_CLASS_OF_(cw_value_##i##_) != CW_ARG_STRING                                             \
            ? 0                                                                                    \
            : cw_append_length(&cw_site_, _Generic(cw_value_##i##_, char *: cw_value_##i##_,       \
                                          const char *: cw_value_##i##_, default: ""));
#define CW_BYTES_(i, v) +CW_SIZE_(CW_CLASS_OF_(cw_value_##i##_)) + cw_length_##i##_
#define CW_SIZE_(c) ((c) == CW_ARG_INT || (c) == CW_ARG_STRING ? 4u : 8u)
#define CW_PUT_(i, v)                                                                              \
    CW_FOR_TYPE_(cw_value_##i##_, cw_put_, cw_put_s)                                               \
    (&cw_append_, cw_value_##i##_, cw_length_##i##_);
#define CW_SET_(i, v)                                                                              \
    cw_arguments_[sizeof cw_types_ - 1 - i] =                                                      \
        CW_FOR_TYPE_(cw_value_##i##_, cw_arg_, cw_arg_p)(cw_value_##i##_);
#define CW_STRING_CLASS_ CW_ARG_STRING

#else
#define CW_APPEND_(...)                                                                            \
    const cw_arg cw_arguments_[] = {CW_EACH_(CW_VALUE_OF_, __VA_ARGS__) cw_arg_u(0)};              \
    (void)cw_site_write(cw_logger_, cw_level_, &cw_site_, cw_arguments_);
#define CW_STRING_CLASS_ CW_ARG_POINTER
#endif

#else /* C++ */

#define CW_TYPE_OF_(i, v) cw_type_of<decltype(v)>::value,
#define CW_APPEND_(...) cw_log_at(cw_logger_, cw_level_, cw_site_, __VA_ARGS__);
#if CW_APPEND_INLINE_
#define CW_STRING_CLASS_ CW_ARG_STRING
#define CW_FORM_ cw_with_append_1
#else
#define CW_STRING_CLASS_ CW_ARG_POINTER
#define CW_FORM_ cw_with_calls
#endif

} /* extern "C" */

/* Objects that are compiled in different ways do not share templates. */
inline namespace CW_FORM_ {

template <class T> struct cw_type_of {
    static_assert(__is_enum(T), "CW_LOG takes what printf takes: numbers, pointers, C strings");
    static constexpr uint8_t value = sizeof(T) > 4 ? CW_ARG_LONG : CW_ARG_INT;
};
template <uint8_t V> struct cw_type_is { static constexpr uint8_t value = V; };
template <> struct cw_type_of<bool> : cw_type_is<CW_ARG_INT> {};
template <> struct cw_type_of<char> : cw_type_is<CW_ARG_INT> {};
template <> struct cw_type_of<signed char> : cw_type_is<CW_ARG_INT> {};
template <> struct cw_type_of<unsigned char> : cw_type_is<CW_ARG_INT> {};
template <> struct cw_type_of<wchar_t> : cw_type_is<CW_ARG_INT> {};
template <> struct cw_type_of<char16_t> : cw_type_is<CW_ARG_INT> {};
template <> struct cw_type_of<char32_t> : cw_type_is<CW_ARG_INT> {};
template <> struct cw_type_of<short> : cw_type_is<CW_ARG_INT> {};
template <> struct cw_type_of<unsigned short> : cw_type_is<CW_ARG_INT> {};
template <> struct cw_type_of<int> : cw_type_is<CW_ARG_INT> {};
template <> struct cw_type_of<unsigned> : cw_type_is<CW_ARG_INT> {};
template <> struct cw_type_of<long> : cw_type_is<CW_ARG_LONG> {};
template <> struct cw_type_of<unsigned long> : cw_type_is<CW_ARG_LONG> {};
template <> struct cw_type_of<long long> : cw_type_is<CW_ARG_LONG> {};
template <> struct cw_type_of<unsigned long long> : cw_type_is<CW_ARG_LONG> {};
template <> struct cw_type_of<float> : cw_type_is<CW_ARG_DOUBLE> {};
template <> struct cw_type_of<double> : cw_type_is<CW_ARG_DOUBLE> {};
template <> struct cw_type_of<long double> : cw_type_is<CW_ARG_LONG_DOUBLE> {};
template <> struct cw_type_of<decltype(nullptr)> : cw_type_is<CW_ARG_POINTER> {};
template <class T> struct cw_type_of<T *> : cw_type_is<CW_ARG_POINTER> {};
template <> struct cw_type_of<char *> : cw_type_is<CW_STRING_CLASS_> {};
template <> struct cw_type_of<const char *> : cw_type_is<CW_STRING_CLASS_> {};
template <class T, size_t N> struct cw_type_of<T[N]> : cw_type_of<T *> {};
template <class T, size_t N> struct cw_type_of<const T[N]> : cw_type_of<const T *> {};
template <class T> struct cw_type_of<const T> : cw_type_of<T> {};
template <class T> struct cw_type_of<volatile T> : cw_type_of<T> {};
template <class T> struct cw_type_of<const volatile T> : cw_type_of<T> {};

template <class T> struct cw_type_of<T &> : cw_type_of<T> {};
template <class T> struct cw_type_of<T &&> : cw_type_of<T> {};

template <class T> inline cw_arg cw_value_of(T v) {
    if constexpr (cw_type_of<T>::value == CW_ARG_DOUBLE)
        return cw_arg_d(static_cast<double>(v));
    else if constexpr (cw_type_of<T>::value == CW_ARG_LONG_DOUBLE)
        return cw_arg_l(v);
    else if constexpr (cw_type_of<T>::value == CW_ARG_INT || cw_type_of<T>::value == CW_ARG_LONG)
        return cw_arg_i(static_cast<int64_t>(v)); /* a zero-extended unsigned stays one */
    else
        return cw_arg_p(v);
}

#if CW_APPEND_INLINE_
template <class T> CW_INLINED_ size_t cw_length_of(const cw_site &site, T v) {
    (void)site;
    if constexpr (cw_type_of<T>::value == CW_ARG_STRING)
        return cw_append_length(&site, v);
    else
        return 0;
}
template <class T> constexpr size_t cw_size_of() {
    constexpr uint8_t type = cw_type_of<T>::value;
    return type == CW_ARG_INT || type == CW_ARG_STRING ? 4 : 8;
}
template <class T> CW_INLINED_ void cw_put_value(cw_append *record, T v, size_t length) {
    constexpr uint8_t type = cw_type_of<T>::value;
    if constexpr (type == CW_ARG_STRING)
        cw_put_s(record, v, length);
    else if constexpr (type == CW_ARG_INT)
        cw_put_i4(record, static_cast<int64_t>(v), length);
    else if constexpr (type == CW_ARG_LONG)
        cw_put_i8(record, static_cast<int64_t>(v), length);
    else if constexpr (type == CW_ARG_DOUBLE)
        cw_put_d(record, static_cast<double>(v), length);
    else if constexpr (type == CW_ARG_LONG_DOUBLE)
        cw_put_l(record, v, length);
    else
        cw_put_p(record, v, length);
}
#endif

/* The arguments, evaluated: numbers and pointers. */
template <class... T>
__attribute__((always_inline)) inline void cw_log_values(cw_logger *logger, cw_level level,
                                                         cw_site &site, T... v) {
#if CW_APPEND_INLINE_
    const size_t lengths[] = {cw_length_of(site, v)..., 0};
    size_t bytes = (size_t{0} + ... + cw_size_of<T>()), at = 0;
    for (size_t length : lengths) bytes += length;
    cw_append record;
    if (CW_LIKELY_(cw_append_begin(&record, logger, level, &site, bytes))) {
        (void)at, (void)(..., cw_put_value(&record, v, lengths[at++]));
        if (CW_LIKELY_(cw_append_end(&record, bytes))) return;
    }
    cw_arg arguments[sizeof...(v) + 1];
    at = 0;
    (void)(..., (arguments[at++] = cw_value_of(v)));
    (void)cw_append_slow_(logger, level, &site, arguments, record.block);
#else
    const cw_arg arguments[] = {cw_value_of(v)..., cw_arg_u(0)};
    (void)cw_site_write(logger, level, &site, arguments);
#endif
}
template <class T> __attribute__((always_inline)) inline T cw_value_itself(const T &v) { return v; }
template <class T> __attribute__((always_inline)) inline T cw_value_itself(const volatile T &v) {
    return v;
}
template <class T, size_t N>
__attribute__((always_inline)) inline const T *cw_value_itself(const T (&v)[N]) {
    return v;
}
template <class Format, class... T>
__attribute__((always_inline)) inline void cw_log_at(cw_logger *logger, cw_level level,
                                                     cw_site &site, const Format &,
                                                     const T &...v) {
    cw_log_values(logger, level, site, cw_value_itself(v)...);
}

} /* namespace */

extern "C" {

#endif
#endif /* CORDWOOD_LOG_H */
