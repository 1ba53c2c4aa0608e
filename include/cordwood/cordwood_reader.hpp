// Reading for C++17: a cursor over a store, and the records it shows. A part of cordwood.hpp, which
// includes it.
//
//     auto reader = cordwood::reader::open("logs");
//     if (!reader) return 1;
//     for (auto &record : *reader) std::cout << record.message() << '\n';
//
// Views borrow from the reader and are valid until its next call. A reader belongs to one thread at
// a time. As in cordwood.hpp, nothing throws by itself.
#ifndef CORDWOOD_READER_HPP
#define CORDWOOD_READER_HPP

#include <cordwood/cordwood.hpp>

#include <cstddef>
#include <iterator>
#include <string>
#include <variant>

namespace cordwood {

/// A field of a record that a reader gave. Of CW_TYPE_JSON the value is its text. Its strings are
/// valid until the reader's next call.
class field_view {
public:
    using variant = std::variant<int64_t, uint64_t, double, bool, std::string_view>;
    explicit field_view(const cw_field &raw) noexcept : raw_(&raw) {}
    std::string_view key() const noexcept { return detail::view(raw_->key); }
    uint32_t type() const noexcept { return raw_->type; }
    variant value() const noexcept {
        switch (raw_->type) {
        case CW_TYPE_INT: return raw_->value.i;
        case CW_TYPE_UINT: return raw_->value.u;
        case CW_TYPE_DOUBLE: return raw_->value.d;
        case CW_TYPE_BOOL: return raw_->value.b;
        default: return detail::view(raw_->value.s);
        }
    }

private:
    const cw_field *raw_;
};

/// The fields of a record, for range-for.
class field_range {
public:
    class iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = field_view;
        using difference_type = std::ptrdiff_t;
        using pointer = void;
        using reference = field_view;
        explicit iterator(const cw_field *at) noexcept : at_(at) {}
        field_view operator*() const noexcept { return field_view(*at_); }
        iterator &operator++() noexcept {
            ++at_;
            return *this;
        }
        bool operator==(const iterator &other) const noexcept { return at_ == other.at_; }
        bool operator!=(const iterator &other) const noexcept { return at_ != other.at_; }

    private:
        const cw_field *at_;
    };
    field_range(const cw_field *first, size_t count) noexcept : first_(first), count_(count) {}
    iterator begin() const noexcept { return iterator(first_); }
    iterator end() const noexcept { return iterator(count_ == 0 ? first_ : first_ + count_); }
    size_t size() const noexcept { return count_; }

private:
    const cw_field *first_;
    size_t count_;
};

/// A record that a reader gave. Everything it shows is valid until the reader's next call.
class record_view {
public:
    record_view() noexcept : raw_() { raw_.struct_size = sizeof raw_; }
    std::chrono::system_clock::time_point time() const noexcept {
        std::chrono::nanoseconds since(static_cast<int64_t>(raw_.time_ns));
        return std::chrono::system_clock::time_point(
            std::chrono::duration_cast<std::chrono::system_clock::duration>(since));
    }
    uint64_t time_ns() const noexcept { return raw_.time_ns; }
    cordwood::level level() const noexcept { return static_cast<cordwood::level>(raw_.level); }
    uint32_t process_id() const noexcept { return raw_.process_id; }
    uint64_t thread_id() const noexcept { return raw_.thread_id; }
    uint64_t sequence() const noexcept { return raw_.sequence; }
    std::string_view process_name() const noexcept { return detail::view(raw_.process_name); }
    std::string_view logger() const noexcept { return detail::view(raw_.logger); }
    std::string_view message() const noexcept { return detail::view(raw_.message); }
    std::string_view file() const noexcept { return detail::view(raw_.file); }
    std::string_view function() const noexcept { return detail::view(raw_.function); }
    uint32_t line() const noexcept { return raw_.line; }
    field_range fields() const noexcept { return {raw_.fields, raw_.field_count}; }
    const uint8_t *trace_id() const noexcept { return raw_.trace_id; } // 16 bytes; zero: none
    const uint8_t *span_id() const noexcept { return raw_.span_id; }   // 8 bytes; zero: none
    uint32_t kind() const noexcept { return raw_.kind; }               // CW_KIND_…
    uint32_t flags() const noexcept { return raw_.flags; }             // CW_VIEW_…
    uint64_t original_length() const noexcept { return raw_.original_length; }
    /// Attributes of the program that logs: service.name, host.name, user.id and others.
    field_range resource() const noexcept { return {raw_.resource, raw_.resource_count}; }
    /// service.name; empty: not set.
    std::string_view service() const noexcept { return attribute("service.name"); }
    /// host.name; empty: not known.
    std::string_view host() const noexcept { return attribute("host.name"); }
    /// 24 bytes: the same while the record is live, sealed or archived, in every archive.
    const uint8_t *record_id() const noexcept { return raw_.record_id; }
    /// The same as 48 hex digits, as `cordwood cat --json` shows them.
    std::string record_id_text() const {
        const char *digits = "0123456789abcdef";
        std::string text;
        text.reserve(2 * sizeof raw_.record_id);
        for (uint8_t byte : raw_.record_id) {
            text += digits[byte >> 4];
            text += digits[byte & 15];
        }
        return text;
    }
    cw_record_view &raw() noexcept { return raw_; }

private:
    std::string_view attribute(std::string_view key) const noexcept {
        for (size_t at = 0; at < raw_.resource_count; at++)
            if (detail::view(raw_.resource[at].key) == key)
                return detail::view(raw_.resource[at].value.s);
        return {};
    }
    cw_record_view raw_;
};

/// Selects the records to read: `reader_options().level(level::warn).logger("app.db")`.
class reader_options {
public:
    reader_options() : raw_() { raw_.struct_size = sizeof raw_; }
    reader_options &level(cordwood::level least) noexcept {
        raw_.level = static_cast<uint32_t>(least);
        return *this;
    }
    /// A set of 1u << CW_KIND_…; 0: all.
    reader_options &kinds(uint32_t set) noexcept {
        raw_.kinds = set;
        return *this;
    }
    reader_options &since(std::chrono::system_clock::time_point inclusive) noexcept {
        raw_.since_ns = detail::nanoseconds(inclusive);
        return *this;
    }
    reader_options &until(std::chrono::system_clock::time_point exclusive) noexcept {
        raw_.until_ns = detail::nanoseconds(exclusive);
        return *this;
    }
    reader_options &logger(std::string name) {
        logger_ = std::move(name);
        return *this;
    }
    reader_options &follow(bool from_end = false) noexcept {
        raw_.flags = CW_READ_FOLLOW | (from_end ? uint32_t{CW_READ_FROM_END} : 0u);
        return *this;
    }
    /// The file of age identities that open encrypted archives.
    reader_options &identity_file(std::string path) {
        identity_file_ = std::move(path);
        return *this;
    }
    /// A condition that records must also meet (docs/QUERY.md): `level>=warn order=7 "timed out"`.
    reader_options &query(std::string query) {
        query_ = std::move(query);
        return *this;
    }
    cw_reader_options &raw() noexcept {
        raw_.query = detail::text_or_null(query_);
        raw_.logger = detail::text_or_null(logger_);
        raw_.identity_file = detail::text_or_null(identity_file_);
        return raw_;
    }

private:
    cw_reader_options raw_;
    std::string logger_;
    std::string identity_file_;
    std::string query_;
};

/// A cursor over a store, a segment or an archive. Threads: one at a time. `for (auto &record :
/// *reader) …` ends after the last record (status() is CW_END) or at an error (status() says
/// which). When following, it ends also when there is nothing more yet (CW_AGAIN): loop again
/// later. The loop skips and counts damaged places and encrypted archives that no identity opens.
class reader {
public:
    [[nodiscard]] static result<reader> open(const std::string &path,
                                             reader_options which = {}) noexcept {
        reader made;
        cordwood::status answer = cw_reader_open(path.c_str(), &which.raw(), &made.handle_);
        return {answer, std::move(made)};
    }

    reader() noexcept = default;
    reader(reader &&other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)), status_(other.status_),
          damaged_(other.damaged_), encrypted_(other.encrypted_) {}
    reader &operator=(reader &&other) noexcept {
        std::swap(handle_, other.handle_);
        std::swap(status_, other.status_);
        std::swap(damaged_, other.damaged_);
        std::swap(encrypted_, other.encrypted_);
        return *this;
    }
    ~reader() { cw_reader_close(&handle_); }

    /// Gives the next record. Returns CW_OK, CW_END, CW_AGAIN or an error: CW_E_DAMAGED once per
    /// damaged place, CW_E_ENCRYPTED once per archive that no identity opens. Call again after
    /// these two.
    cordwood::status next(record_view &out) noexcept {
        status_ = cw_reader_next(handle_, &out.raw());
        damaged_ += status_.code() == CW_E_DAMAGED ? 1U : 0U;
        encrypted_ += status_.code() == CW_E_ENCRYPTED ? 1U : 0U;
        return status_;
    }
    /// The status of the last call.
    cordwood::status status() const noexcept { return status_; }
    /// The number of damaged places so far.
    uint64_t damaged() const noexcept { return damaged_; }
    /// The number of encrypted archives so far that no identity opens.
    uint64_t encrypted() const noexcept { return encrypted_; }

    class iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = record_view;
        using difference_type = std::ptrdiff_t;
        using pointer = const record_view *;
        using reference = const record_view &;
        iterator() noexcept = default;
        explicit iterator(reader *source) noexcept : source_(source) { ++*this; }
        reference operator*() const noexcept { return view_; }
        pointer operator->() const noexcept { return &view_; }
        iterator &operator++() noexcept {
            cordwood::status answer;
            do {
                answer = source_->next(view_);
            } while (answer.code() == CW_E_DAMAGED || answer.code() == CW_E_ENCRYPTED);
            source_ = answer ? source_ : nullptr;
            return *this;
        }
        bool operator==(const iterator &other) const noexcept { return source_ == other.source_; }
        bool operator!=(const iterator &other) const noexcept { return source_ != other.source_; }

    private:
        cordwood::reader *source_ = nullptr;
        record_view view_;
    };
    iterator begin() noexcept { return iterator(this); }
    iterator end() const noexcept { return iterator(); }

private:
    cw_reader *handle_ = nullptr;
    cordwood::status status_;
    uint64_t damaged_ = 0;
    uint64_t encrypted_ = 0;
};

} // namespace cordwood

#endif
