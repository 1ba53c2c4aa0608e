// How requests of URLSession failed (B-NET-3): makes a `NetworkError` from its results, and
// provides requests that throw and log one. If HTTPCapture records the session's requests, an error
// knows its exchange. Any thread or task.

import Cordwood
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension NetworkError {
    /// The error of a completion handler's or an `async` request's result; nil: the request
    /// succeeded.
    /// - Parameters:
    ///   - request: provides method and address if there is no answer.
    ///   - exchangeID: the id of the captured exchange (ExchangeNote).
    public init?(
        response: URLResponse?, data: Data?, error: (any Error)?, request: URLRequest? = nil,
        exchangeID: String? = nil
    ) {
        if let made = error as? NetworkError {
            self = made
            return
        }
        // Requests of file: and data: have no status, and this one succeeded.
        if error == nil, response != nil, !(response is HTTPURLResponse) { return nil }
        var result = NetworkResult()
        if let response = response as? HTTPURLResponse {
            result.httpStatus = Int32(clamping: response.statusCode)
            result.headers = response.allHeaderFields.compactMap { name, value in
                (name as? String).map { ($0, "\(value)") }
            }
        }
        if let error {
            let outcome = NetworkError.outcome(error)
            result.error = outcome.error
            result.errorType = outcome.errorType
        }
        // An excess byte shows that the body was longer, after a mark of three.
        result.body = (data?.prefix(NetworkResult.bodyBytesMax + 4)).map { Array($0) } ?? []
        let failing = (error as? URLError)?.failingURL
        result.url = (response?.url ?? failing ?? request?.url)?.absoluteString ?? ""
        result.method = request?.httpMethod ?? ""
        result.exchangeID = exchangeID ?? ""
        self.init(result)
    }

    /// The error of a request that threw instead of answering.
    fileprivate init(thrown error: any Error, _ request: URLRequest, _ exchangeID: String?) {
        let made = NetworkError(
            response: nil, data: nil, error: error, request: request, exchangeID: exchangeID)
        self = made ?? .unknown(RequestFailure(cause: "\(type(of: error))"))
    }

    private static func outcome(_ error: any Error) -> RequestOutcome {
        RequestOutcome(error is CancellationError ? URLError(.cancelled) : error)
    }
}

extension URLSession {
    /// Returns a 2xx answer; throws for any other result.
    /// - Parameter logger: logs a failure before it is thrown.
    public func checkedData(
        for request: URLRequest, log logger: Logger? = nil
    ) async throws(NetworkError) -> (Data, URLResponse) {
        let note = ExchangeNote()
        let failure: NetworkError
        do {
            let (data, response) = try await Context.with(exchangeNote: note) {
                try await self.data(for: request)
            }
            guard
                let refused = NetworkError(
                    response: response, data: data, error: nil, request: request,
                    exchangeID: note.id)
            else { return (data, response) }
            failure = refused
        } catch {
            failure = NetworkError(thrown: error, request, note.id)
        }
        if let logger { failure.log(to: logger) }
        throw failure
    }

    public func checkedData(
        from url: URL, log logger: Logger? = nil
    ) async throws(NetworkError) -> (Data, URLResponse) {
        try await checkedData(for: URLRequest(url: url), log: logger)
    }
}
