// Failures of the host's own requests (docs/HTTP.md). A part of cordwood.hpp, which includes it.
//
//     cordwood::network_result ended;
//     ended.http_status = 403;
//     ended.body = answer;
//     if (auto error = cordwood::network_error::from(ended)) {
//         error.log(log);
//         std::puts(error.text("de").c_str());
//     }
//
// As in cordwood.hpp, only allocations throw. A host that wants to throw an error may: `throw
// std::move(error);`.
#ifndef CORDWOOD_HPP
#include <cordwood/cordwood.hpp> // which in turn includes this file
#endif
#ifndef CORDWOOD_NETWORK_HPP
#define CORDWOOD_NETWORK_HPP

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cordwood {

/// A finished request, as the host knows it: cw_network_result. The host owns the memory of the
/// views.
struct network_result {
    int32_t http_status = 0;
    std::vector<http_header> headers;
    std::string_view body;
    std::string_view error;
    std::string_view error_type;
    std::string_view method;
    std::string_view url;
    /// The id that http_exchange::id() or cw_http_id gave.
    std::string exchange_id;
};

/// How a request failed; empty if it succeeded (or memory ran out). An upload_error with method,
/// url and exchange_id of the request. It needs no engine until it is logged.
class network_error : public upload_error {
public:
    network_error() noexcept = default;
    /// Takes ownership of an error that cw_network_error_from gave.
    explicit network_error(const cw_network_error *taken) noexcept : upload_error(taken) {}

    static network_error from(const network_result &ended) {
        std::vector<cw_http_header> headers = detail::borrow_headers(ended.headers);
        cw_network_result result{};
        result.struct_size = sizeof result;
        result.http_status = ended.http_status < 0 ? 0 : ended.http_status;
        result.headers = headers.data();
        result.header_count = headers.size();
        result.body = detail::borrow(ended.body);
        result.error = detail::borrow(ended.error);
        result.error_type = detail::borrow(ended.error_type);
        result.method = detail::borrow(ended.method);
        result.url = detail::borrow(ended.url);
        result.exchange_id = ended.exchange_id.empty() ? nullptr : ended.exchange_id.c_str();
        const cw_network_error *made = nullptr;
        cw_network_error_from(&result, &made);
        return network_error(made);
    }

    /// Writes a record of the error: cw_network_error_log, with the place of the call. message
    /// precedes ours.
    cordwood::status log(const logger &to, std::string_view message = {}, fields with = {},
                         site where = site::current()) const noexcept {
        cw_record more = {};
        more.message = detail::borrow(message);
        more.fields = with.begin();
        more.field_count = with.size();
        more.file = detail::borrow(where.file);
        more.function = detail::borrow(where.function);
        more.line = where.line;
        return log(to, more);
    }
    /// Writes a record with level, ids, time and the rest. The call sets struct_size.
    cordwood::status log(const logger &to, cw_record more) const noexcept {
        more.struct_size = sizeof more;
        return cw_network_error_log(to.handle(), *this ? &**this : nullptr, &more);
    }
};

} // namespace cordwood
#endif
