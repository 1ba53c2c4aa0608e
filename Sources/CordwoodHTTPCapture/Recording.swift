// One task's exchanges, hop after hop of a redirection, from begin to end. The task's protocol (its
// work queue) and the session's delegate (its delegate queue) report to it.
// SAFETY: the lock guards all mutable state.

import Cordwood
import CordwoodURLSession
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking

final class Recording: @unchecked Sendable {
    private let lock = NSLock()
    private let engine: Engine
    private var exchange: HTTPExchange?
    /// If the session's delegate is ours, it gets data after the protocol has finished.
    private let watcher: SessionDelegate?
    private let task: ObjectIdentifier
    /// The context in force where the task was resumed.
    private let inForce: Context.Snapshot
    /// The URL of the exchange's first request.
    private var url = ""
    /// Number of bytes reported of a stream; nil: the stream shows none.
    private var streamed: Int? = 0
    private var isAnswered = false
    private var hasData = false
    private var isLoaded = false
    private var cached = false
    /// The result, kept until the delegate has reported the rest.
    private var outcome: RequestOutcome?
    private var began = DispatchTime.now()
    private var answered: DispatchTime?

    init?(_ engine: Engine, _ task: URLSessionTask, _ inForce: Context.Snapshot) {
        guard let request = task.currentRequest ?? task.originalRequest else { return nil }
        self.engine = engine
        self.inForce = inForce
        watcher = task.delegate as? SessionDelegate
        self.task = ObjectIdentifier(task)
        begin(request, nil)
        guard exchange != nil else { return nil }
        if watcher != nil { Recordings.add(task, self) }
        if let body = request.httpBody {
            sent(body)
            return
        }
        let known = KnownBody(task)
        known.parts.forEach(sent)
        if known.hidden > 0 { exchange?.requestBody(hidden: known.hidden) }
        if let tap = known.stream as? BodyTap {
            tap.recording = self
        } else if known.stream != nil {
            streamed = nil
        }
    }

    deinit {
        if watcher != nil { Recordings.remove(task) }
        end(outcome ?? RequestOutcome())
    }

    private func begin(_ request: URLRequest, _ from: String?) {
        guard let url = request.url?.absoluteString else { return }
        (isAnswered, hasData, outcome, answered) = (false, false, nil, nil)
        (self.url, streamed) = (url, 0)
        began = .now()
        exchange = inForce.run {
            let begun = engine.beginHTTP(
                method: request.httpMethod ?? "GET", url: url,
                headers: (request.allHTTPHeaderFields ?? [:]).map { ($0.key, $0.value) },
                redirectedFrom: from, conversation: Context.conversation)
            Context.exchangeNote?.put(begun?.id)
            return begun
        }
    }

    private func sent(_ data: Data) {
        unsafe data.withUnsafeBytes { exchange?.requestBody($0) }
    }

    /// Wraps a body's stream to observe it from now on.
    func watched(_ stream: InputStream) -> InputStream {
        let tap = stream as? BodyTap ?? BodyTap(stream)
        lock.withLock { if streamed == nil { streamed = 0 } }
        tap.recording = self
        return tap
    }

    /// Bytes of a stream. If the request is sent again, bytes read again are reported only once.
    func sent(_ bytes: UnsafeRawBufferPointer, at position: Int) {
        lock.withLock {
            let known = streamed ?? 0
            let end = position + bytes.count
            guard end > known else { return }
            streamed = end
            unsafe exchange?.requestBody(
                UnsafeRawBufferPointer(rebasing: bytes.suffix(min(end - known, bytes.count))))
        }
    }

    /// For a stream that shows nothing: Foundation's count, which it keeps for delegates.
    private func countSent(_ task: URLSessionTask) {
        guard streamed == nil, task.countOfBytesSent > 0 else { return }
        exchange?.requestBody(hidden: Int(clamping: task.countOfBytesSent))
        streamed = 0
    }

    /// Called under the lock, or while nothing else has access.
    private func end(_ outcome: RequestOutcome) {
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

    /// The header as it arrives.
    func answered(_ response: URLResponse, _ task: URLSessionTask) {
        guard let response = response as? HTTPURLResponse else { return }
        lock.withLock {
            // A redirection that is not followed is reported at its end.
            if !isAnswered, !hasData, !(300..<400).contains(response.statusCode) {
                answered = .now()
            }
            take(response, task)
        }
    }

    private func take(_ response: HTTPURLResponse, _ task: URLSessionTask) {
        guard !isAnswered, let exchange else { return }
        isAnswered = true
        var headers = response.allHeaderFields.compactMap { name, value -> (String, String)? in
            (name as? String).map { ($0, "\(value)") }
        }
        // Foundation removes the framing.
        exchange.isResponseBare = headers.contains { name, value in
            name.lowercased() == "transfer-encoding" && value.lowercased() == "chunked"
        }
        if let moved = moved(task) { headers.append((Recording.movedHeader, moved)) }
        if cached { headers.append((Recording.cachedHeader, "yes")) }
        exchange.response(status: response.statusCode, headers: headers)
    }

    /// Added to the answer's headers if Foundation followed redirections without reporting them.
    private static let movedHeader = "Cordwood-Final-Url"
    /// Added to them if the answer came from the cache.
    private static let cachedHeader = "Cordwood-From-Cache"

    /// The target of such redirections.
    private func moved(_ task: URLSessionTask) -> String? {
        guard let now = task.currentRequest?.url?.absoluteString, now != url else { return nil }
        return now
    }

    /// Called by the delegate, which also gets bodies that the protocol reported whole.
    func received(_ data: Data) {
        lock.withLock { if !isLoaded { take(data) } }
    }

    private func take(_ data: Data) {
        hasData = true
        unsafe data.withUnsafeBytes { exchange?.responseBody($0) }
    }

    func redirected(_ response: HTTPURLResponse, _ next: URLRequest, _ task: URLSessionTask) {
        lock.withLock {
            // After a challenge Foundation does not show how the request continues.
            guard let exchange, outcome == nil else { return }
            take(response, task)
            countSent(task)
            let from = exchange.id
            end(RequestOutcome())
            begin(next, from)
        }
    }

    /// The protocol has the entire answer.
    func finished(_ task: URLSessionTask) {
        lock.withLock {
            if let response = task.response as? HTTPURLResponse { take(response, task) }
            countSent(task)
            // The body of a download, or for a delegate that is not ours: nothing reported it.
            if !hasData, watcher == nil || task is URLSessionDownloadTask { hidden(task) }
            settle(RequestOutcome(), task)
        }
    }

    /// Called under the lock. An async call continues as soon as the protocol has ended, and its
    /// host may end the process then: without a body, the end is recorded before that.
    private func settle(_ outcome: RequestOutcome, _ task: URLSessionTask) {
        let hasBody = task.response.map { $0.expectedContentLength != 0 } ?? false
        guard let watcher, !isLoaded, hasBody else { return end(outcome) }
        guard self.outcome == nil else { return }
        self.outcome = outcome
        // The queue delivers the remaining data before this, and the task's end after it.
        watcher.queue.addOperation { self.lock.withLock { self.end(outcome) } }
    }

    /// For a task with a completion handler, or an answer from the cache: the entire body.
    func loaded(_ data: Data, _ task: URLSessionTask) {
        lock.withLock {
            if let response = task.response as? HTTPURLResponse { take(response, task) }
            isLoaded = true
            take(data)
        }
    }

    /// The next answer comes from the configuration's cache: the server was not asked.
    func isFromCache() {
        lock.withLock { cached = true }
    }

    private func hidden(_ task: URLSessionTask) {
        let expected = task.response?.expectedContentLength ?? -1
        let count = max(task.countOfBytesReceived, expected)
        if count > 0 { exchange?.responseBody(hidden: Int(clamping: count)) }
        hasData = true
    }

    func failed(_ error: any Error, _ task: URLSessionTask) {
        lock.withLock {
            countSent(task)
            if !hasData, task.countOfBytesReceived > 0 {
                exchange?.responseBody(hidden: Int(clamping: task.countOfBytesReceived))
                hasData = true
            }
            settle(RequestOutcome(error, at: moved(task)), task)
        }
    }

    /// The host cancelled it: the bytes that have arrived belong to the answer.
    func cancelled(_ partial: PartialAnswer, _ task: URLSessionTask) {
        lock.withLock {
            if let response = partial.response { take(response, task) }
            guard !hasData else { return }
            if let body = partial.body, !body.isEmpty {
                hasData = true
                unsafe body.withUnsafeBytes { exchange?.responseBody($0) }
            } else if partial.fileBytes > 0 {
                hasData = true
                exchange?.responseBody(hidden: partial.fileBytes)
            }
        }
        failed(URLError(.cancelled), task)
    }
}

/// Recordings of tasks whose session has our delegate, by task; their owners keep them alive.
enum Recordings {
    private struct Entry { weak var recording: Recording? }
    private static let lock = NSLock()
    // SAFETY: guarded by the lock.
    nonisolated(unsafe) private static var entries: [ObjectIdentifier: Entry] = [:]

    static func add(_ task: URLSessionTask, _ recording: Recording) {
        lock.withLock { unsafe entries[ObjectIdentifier(task)] = Entry(recording: recording) }
    }

    static func remove(_ task: ObjectIdentifier) {
        // A later task's recording may have taken this address. It is released outside the lock:
        // this may be its last reference, and its deinit calls this again.
        let later = lock.withLock { () -> Recording? in
            let found = unsafe entries[task]?.recording
            if found == nil { _ = unsafe entries.removeValue(forKey: task) }
            return found
        }
        withExtendedLifetime(later) {}
    }

    static func find(_ task: URLSessionTask) -> Recording? {
        lock.withLock { unsafe entries[ObjectIdentifier(task)]?.recording }
    }
}
#endif
