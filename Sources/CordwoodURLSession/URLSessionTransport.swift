// Uploads through Foundation's URLSession, for hosts that prefer its settings (system proxies,
// keychain certificates, their own delegate) to libcurl. Outside the core, which does not use
// Foundation. One session serves all requests of a target; each call waits for its own task. Bodies
// are streamed from the archive's file. Nothing is cached, no cookie is kept, and no redirection is
// followed here (HostTransport follows the permitted ones). Any thread.

import Cordwood
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

public final class URLSessionTransport: UploadTransport {
    private let session: URLSession
    private let exchanges = Exchanges()
    private static let restSeconds = 0.05

    /// - Parameter change: adapts the session's configuration, which starts as an ephemeral one
    ///   without cookies, cache and credential storage.
    public init(_ change: (URLSessionConfiguration) -> Void = { _ in }) {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpCookieStorage = nil
        configuration.httpCookieAcceptPolicy = .never
        configuration.httpShouldSetCookies = false
        configuration.urlCache = nil
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.urlCredentialStorage = nil
        change(configuration)
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        session = URLSession(
            configuration: configuration, delegate: exchanges, delegateQueue: queue)
    }

    deinit { session.finishTasksAndInvalidate() }

    public func send(_ request: UploadRequest) throws -> UploadResponse {
        guard let url = URL(string: request.url) else {
            throw UploadTransportError("URLSession does not take the URL")
        }
        var made = URLRequest(url: url)
        made.httpMethod = request.method
        made.cachePolicy = .reloadIgnoringLocalCacheData
        made.httpShouldHandleCookies = false
        // Both ends have a timeout; the session's is the later one, so that ours decides.
        made.timeoutInterval = request.timeout / .seconds(1) + 5
        for (name, value) in request.headers { made.addValue(value, forHTTPHeaderField: name) }
        // Foundation refuses a GET with a stream, even an empty one.
        if request.bodyBytes > 0 { URLSessionTransport.stream(request, &made) }
        let task = session.dataTask(with: made)
        let exchange = exchanges.begin(task, request)
        defer { exchanges.end(task) }
        task.resume()
        return try wait(task, exchange, request)
    }

    private static func stream(_ request: UploadRequest, _ made: inout URLRequest) {
        made.httpBodyStream = BodyStream(request)
        made.setValue(String(request.bodyBytes), forHTTPHeaderField: "Content-Length")
        #if canImport(FoundationNetworking)
        // Otherwise a stream is sent in chunks, which many servers refuse. A blank value makes
        // Foundation's libcurl send neither chunks nor the header.
        made.setValue(" ", forHTTPHeaderField: "Transfer-Encoding")
        #endif
    }

    private func wait(
        _ task: URLSessionTask, _ exchange: Exchange, _ request: UploadRequest
    ) throws -> UploadResponse {
        let end = Date(timeIntervalSinceNow: request.timeout / .seconds(1))
        while true {
            if let result = exchange.wait(seconds: URLSessionTransport.restSeconds) {
                return try result.get()
            }
            let isLate = Date() >= end
            if isLate || request.isStopped {
                task.cancel()
                throw UploadTransportError(isLate ? "timed out" : "broken off")
            }
        }
    }
}

/// Exchanges under way, by task.
/// SAFETY: `running` is guarded by the lock.
private final class Exchanges: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    private let lock = NSLock()
    private var running: [Int: Exchange] = [:]

    func begin(_ task: URLSessionTask, _ request: UploadRequest) -> Exchange {
        let exchange = Exchange(request)
        lock.withLock { running[task.taskIdentifier] = exchange }
        return exchange
    }

    func end(_ task: URLSessionTask) {
        _ = lock.withLock { running.removeValue(forKey: task.taskIdentifier) }
    }

    private func find(_ task: URLSessionTask) -> Exchange? {
        lock.withLock { running[task.taskIdentifier] }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        completionHandler(find(task).map { BodyStream($0.request) })
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        if find(dataTask)?.receive(data) == false { dataTask.cancel() }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
        find(task)?.complete(task.response as? HTTPURLResponse, error)
    }
}

/// One request. The sending thread waits; the delegate's thread signals it.
/// SAFETY: the condition's lock guards everything.
private final class Exchange: @unchecked Sendable {
    let request: UploadRequest
    private let condition = NSCondition()
    private var received: [UInt8] = []
    private var isFull = false
    private var result: Result<UploadResponse, UploadTransportError>?

    /// One byte more than is kept, so that a longer body is seen to be cut.
    private static let bodyBytesMax = (4 << 20) + 1

    init(_ request: UploadRequest) { self.request = request }

    /// false: the body is full.
    func receive(_ data: Data) -> Bool {
        condition.withLock {
            received += data.prefix(Exchange.bodyBytesMax - received.count)
            isFull = received.count >= Exchange.bodyBytesMax
            return !isFull
        }
    }

    func complete(_ response: HTTPURLResponse?, _ error: (any Error)?) {
        condition.withLock {
            // For a refusal, status and headers are enough.
            if let response, error == nil || isFull || response.statusCode >= 300 {
                result = .success(Exchange.answer(response, received))
            } else {
                result = .failure(Exchange.failure(error))
            }
            condition.signal()
        }
    }

    /// nil: no result yet.
    func wait(seconds: Double) -> Result<UploadResponse, UploadTransportError>? {
        condition.withLock {
            if result == nil { _ = condition.wait(until: Date(timeIntervalSinceNow: seconds)) }
            return result
        }
    }

    private static func answer(_ response: HTTPURLResponse, _ body: [UInt8]) -> UploadResponse {
        var answer = UploadResponse(status: response.statusCode, body: body)
        for (name, value) in response.allHeaderFields {
            guard let name = name as? String, let value = value as? String else { continue }
            answer.headers.append((name, value))
        }
        return answer
    }

    /// Foundation's own texts name the URL.
    private static func failure(_ error: (any Error)?) -> UploadTransportError {
        guard let error = error as? URLError else {
            return UploadTransportError("URLSession gave no answer")
        }
        switch error.code {
        case .cannotFindHost:
            return UploadTransportError("cannot find the host", isUnreachable: true)
        case .cannotConnectToHost:
            return UploadTransportError("cannot connect to the host", isUnreachable: true)
        case .notConnectedToInternet:
            return UploadTransportError("not connected to the internet", isUnreachable: true)
        case .secureConnectionFailed, .serverCertificateUntrusted, .serverCertificateHasBadDate,
            .serverCertificateHasUnknownRoot, .serverCertificateNotYetValid,
            .clientCertificateRejected, .clientCertificateRequired:
            return UploadTransportError(
                "TLS: URLError \(error.code.rawValue)", isUnreachable: true)
        case .timedOut: return UploadTransportError("timed out")
        default: return UploadTransportError("URLError \(error.code.rawValue)")
        }
    }
}
