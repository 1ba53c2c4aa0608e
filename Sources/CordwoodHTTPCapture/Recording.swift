// One task's exchanges, a hop of a redirection after the other, from begin to end. Told by the
// task's protocol (its work queue) and by the session's delegate (its delegate queue).
// SAFETY: everything that changes is guarded by the lock.

import Cordwood
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking

/// How an exchange went.
private struct Outcome {
    var error = ""
    var errorType = ""
    var isCancelled = false
}

final class Recording: @unchecked Sendable {
    private let lock = NSLock()
    private let engine: Engine
    private var exchange: HTTPExchange?
    /// Where the session's delegate is ours, it gets data after the protocol has finished.
    private let watcher: SessionDelegate?
    private let task: ObjectIdentifier
    private var isAnswered = false
    private var hasData = false
    private var isLoaded = false
    /// How it went, where the delegate has the last word.
    private var outcome: Outcome?
    private var began = DispatchTime.now()
    private var answered: DispatchTime?

    init?(_ engine: Engine, _ task: URLSessionTask) {
        guard let request = task.currentRequest ?? task.originalRequest else { return nil }
        self.engine = engine
        watcher = task.delegate as? SessionDelegate
        self.task = ObjectIdentifier(task)
        begin(request, nil)
        guard exchange != nil else { return nil }
        if watcher != nil { Recordings.add(task, self) }
        if let body = request.httpBody {
            sent(body)
        } else if task is URLSessionUploadTask {
            let known = KnownBody(task)
            known.parts.forEach(sent)
            if known.hidden > 0 { exchange?.requestBody(hidden: known.hidden) }
        }
    }

    deinit {
        if watcher != nil { Recordings.remove(task) }
        end(outcome ?? Outcome())
    }

    private func begin(_ request: URLRequest, _ from: String?) {
        guard let url = request.url?.absoluteString else { return }
        (isAnswered, hasData, outcome, answered) = (false, false, nil, nil)
        began = .now()
        exchange = engine.beginHTTP(
            method: request.httpMethod ?? "GET", url: url,
            headers: (request.allHTTPHeaderFields ?? [:]).map { ($0.key, $0.value) },
            redirectedFrom: from)
    }

    private func sent(_ data: Data) {
        unsafe data.withUnsafeBytes { unsafe exchange?.requestBody($0) }
    }

    /// Under the lock, or where nobody else can be.
    private func end(_ outcome: Outcome) {
        guard let exchange else { return }
        self.exchange = nil
        var timings = HTTPTimings()
        let now = DispatchTime.now().uptimeNanoseconds
        timings.duration = now &- began.uptimeNanoseconds
        if let answered { timings.receive = now &- answered.uptimeNanoseconds }
        exchange.end(
            error: outcome.error, errorType: outcome.errorType,
            isCancelled: outcome.isCancelled, timings: timings)
    }

    func answered(_ response: URLResponse) {
        guard let response = response as? HTTPURLResponse else { return }
        lock.withLock { take(response) }
    }

    private func take(_ response: HTTPURLResponse) {
        guard !isAnswered, let exchange else { return }
        isAnswered = true
        answered = .now()
        exchange.response(
            status: response.statusCode,
            headers: response.allHeaderFields.compactMap { name, value in
                guard let name = name as? String else { return nil }
                return (name, "\(value)")
            })
    }

    func received(_ data: Data) {
        lock.withLock {
            hasData = true
            unsafe data.withUnsafeBytes { unsafe exchange?.responseBody($0) }
        }
    }

    func redirected(_ response: HTTPURLResponse, _ next: URLRequest) {
        lock.withLock {
            take(response)
            let from = exchange?.id
            end(Outcome())
            begin(next, from)
        }
    }

    /// The protocol has all of it.
    func finished(_ task: URLSessionTask) {
        lock.withLock {
            if let response = task.response as? HTTPURLResponse { take(response) }
            // Of a download, or to a delegate that is not ours: nobody showed it.
            if !hasData, watcher == nil || task is URLSessionDownloadTask { hidden(task) }
            settle(Outcome())
        }
    }

    /// Under the lock.
    private func settle(_ outcome: Outcome) {
        guard let watcher, !isLoaded else { return end(outcome) }
        guard self.outcome == nil else { return }
        self.outcome = outcome
        // The queue has what it will yet tell of data before this, and the task's end behind it.
        watcher.queue.addOperation { self.lock.withLock { self.end(outcome) } }
    }

    /// Of a task with a completion handler: all of it.
    func loaded(_ data: Data) {
        lock.withLock { isLoaded = true }
        received(data)
    }

    private func hidden(_ task: URLSessionTask) {
        let expected = task.response?.expectedContentLength ?? -1
        let count = max(task.countOfBytesReceived, expected)
        if count > 0 { exchange?.responseBody(hidden: Int(clamping: count)) }
        hasData = true
    }

    func failed(_ error: any Error) {
        lock.withLock { settle(Recording.outcome(error)) }
    }

    private static func outcome(_ error: any Error) -> Outcome {
        var outcome = Outcome()
        guard let error = error as? URLError else {
            outcome.error = "\(error)"
            outcome.errorType = "\(type(of: error))"
            return outcome
        }
        (outcome.errorType, outcome.error) = words(error.code)
        outcome.isCancelled = error.code == .cancelled
        return outcome
    }

    /// Foundation's own texts are empty here.
    private static func words(_ code: URLError.Code) -> (type: String, text: String) {
        switch code {
        case .cancelled: return ("cancelled", "cancelled")
        case .timedOut: return ("timeout", "timed out")
        case .cannotFindHost, .dnsLookupFailed: return ("dns", "cannot find the host")
        case .cannotConnectToHost: return ("connect", "cannot connect to the host")
        case .networkConnectionLost: return ("connection", "the connection was lost")
        case .badServerResponse: return ("response", "no whole answer")
        case .httpTooManyRedirects: return ("redirects", "too many redirections")
        case .secureConnectionFailed, .serverCertificateUntrusted, .serverCertificateHasBadDate,
            .serverCertificateHasUnknownRoot, .serverCertificateNotYetValid,
            .clientCertificateRejected, .clientCertificateRequired:
            return ("tls", "URLError \(code.rawValue)")
        default: return ("URLError", "URLError \(code.rawValue)")
        }
    }
}

/// Recordings of tasks whose session has our delegate, by task; kept by whom they belong to.
enum Recordings {
    private struct Entry { weak var recording: Recording? }
    private static let lock = NSLock()
    // SAFETY: guarded by the lock.
    nonisolated(unsafe) private static var entries: [ObjectIdentifier: Entry] = [:]

    static func add(_ task: URLSessionTask, _ recording: Recording) {
        lock.withLock { unsafe entries[ObjectIdentifier(task)] = Entry(recording: recording) }
    }

    static func remove(_ task: ObjectIdentifier) {
        lock.withLock {
            // A later task may stand where that one stood.
            guard unsafe entries[task]?.recording == nil else { return }
            _ = unsafe entries.removeValue(forKey: task)
        }
    }

    static func find(_ task: URLSessionTask) -> Recording? {
        lock.withLock { unsafe entries[ObjectIdentifier(task)]?.recording }
    }
}

/// The body of an upload task, which Foundation does not publish: read from what the task shows of
/// itself. Where it shows nothing, or a stream, it is empty.
private struct KnownBody {
    private(set) var parts: [Data] = []
    /// Of a file: bytes behind those.
    private(set) var hidden = 0
    private static let fileBytesMax = 64 << 10

    init(_ task: URLSessionTask) {
        let mirrors = sequence(first: Mirror(reflecting: task), next: { $0.superclassMirror })
        guard let body = mirrors.lazy.flatMap(\.children).first(where: { $0.label == "knownBody" }),
            let some = Mirror(reflecting: body.value).children.first?.value,
            let content = Mirror(reflecting: some).children.first?.value
        else { return }
        if let data = content as? DispatchData {
            parts = data.regions.map { Data($0) }
        } else if let url = content as? URL, let file = try? FileHandle(forReadingFrom: url) {
            let first = (try? file.read(upToCount: KnownBody.fileBytesMax)) ?? Data()
            parts = [first]
            hidden = Int(clamping: (try? file.seekToEnd()) ?? 0) - first.count
        }
    }
}
#endif
