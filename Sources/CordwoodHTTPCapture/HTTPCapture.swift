// Captures what Foundation's URLSession sends and receives, in the engine's store, for hosts that
// make sessions of their own configuration. Outside the core, which has no Foundation. Any thread.
// On Linux the request goes on in Foundation's own URLProtocol, with the host's own task: settings,
// delegate, completion handlers, uploads and downloads are those of a session without it.

import Cordwood
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking

public enum HTTPCapture {
    /// A copy of the configuration whose sessions record their http and https requests where
    /// capture is on. What sessions with a delegate receive is counted and not shown, and a
    /// redirection is one exchange, from the first URL to the last answer: `session` shows them.
    /// Without an engine (its store could not be opened) it is the configuration: requests go on.
    public static func install(
        _ engine: Engine?, in configuration: URLSessionConfiguration
    ) -> URLSessionConfiguration {
        guard let engine, let copy = configuration.copy() as? URLSessionConfiguration,
            let slot = Slots.take(engine)
        else { return configuration }
        let others = (copy.protocolClasses ?? []).filter { !($0 is CaptureProtocol.Type) }
        copy.protocolClasses = [slot] + others
        if let cache = copy.urlCache, !(cache is CallersCache) {
            copy.urlCache = CallersCache(cache)
        }
        return copy
    }

    /// A session of that configuration whose bodies are recorded as the host's delegate gets them,
    /// and each hop of a redirection. Without an engine it is the host's own.
    public static func session(
        _ engine: Engine?, configuration: URLSessionConfiguration = .default,
        delegate: (any URLSessionDelegate)? = nil, delegateQueue: OperationQueue? = nil
    ) -> URLSession {
        guard let engine else {
            return URLSession(
                configuration: configuration, delegate: delegate, delegateQueue: delegateQueue)
        }
        let queue = delegateQueue ?? OperationQueue()
        // Without one of the host's Foundation makes its own, which has this limit.
        if delegateQueue == nil { queue.maxConcurrentOperationCount = 1 }
        return URLSession(
            configuration: install(engine, in: configuration),
            delegate: SessionDelegate(delegate, queue), delegateQueue: queue)
    }

    /// The engine that the closure opens; nil where it throws: `report` is told once (by default a
    /// line of NSLog), and what takes the engine lets all requests pass.
    public static func engine(
        report: (any Error) -> Void = { NSLog("%@", "Cordwood.HTTP: not captured: \($0)") },
        _ open: () throws -> Engine
    ) -> Engine? {
        do { return try open() } catch {
            report(error)
            return nil
        }
    }

    /// The request with the headers of what is in force here: `traceparent`, `X-Transaction-Id`
    /// and the conversation's ("": none). Those that it has stay.
    public static func propagated(
        _ request: URLRequest,
        conversationHeader: String = HTTPCaptureOptions.conversationHeaderDefault
    ) -> URLRequest {
        var request = request
        let wanted = [
            (conversationHeader, Context.conversation), ("traceparent", Context.trace?.traceparent),
            (Transaction.header, Context.transactionID),
        ]
        for (name, value) in wanted where !name.isEmpty {
            guard let value, request.value(forHTTPHeaderField: name) == nil,
                value.utf8.allSatisfy({ (0x20...0x7e).contains($0) })
            else { continue }
            request.setValue(value, forHTTPHeaderField: name)
        }
        return request
    }

    /// The stream for `httpBodyStream` whose bytes are recorded as they are sent; it reads as the
    /// one given. `session` does this to streams of `needNewBodyStream` itself.
    public static func body(_ stream: InputStream) -> InputStream { BodyTap(stream) }
}

/// Foundation is told of classes alone: which engine a session's requests go to is in the class. A
/// class an engine, of which there are `digits` squared.
enum Slots {
    private static let digits: [any Digit.Type] = [
        D0.self, D1.self, D2.self, D3.self, D4.self, D5.self, D6.self, D7.self,
    ]
    // SAFETY: guarded by the lock.
    nonisolated(unsafe) private static var engines: [(slot: CaptureProtocol.Type, engine: Engine)] =
        []
    private static let lock = NSLock()

    /// The engine's class; nil: there are no more.
    static func take(_ engine: Engine) -> CaptureProtocol.Type? {
        lock.withLock { () -> CaptureProtocol.Type? in
            if let known = unsafe engines.first(where: { $0.engine === engine }) {
                return known.slot
            }
            let next = unsafe engines.count
            guard next < digits.count * digits.count else { return nil }
            let made = digits[next / digits.count].slot(digits[next % digits.count])
            unsafe engines.append((made, engine))
            return made
        }
    }

    static func engine(_ slot: CaptureProtocol.Type) -> Engine? {
        lock.withLock { unsafe engines.first { $0.slot == slot }?.engine }
    }
}

private protocol Digit: SendableMetatype {}

extension Digit {
    static func slot(_ second: any Digit.Type) -> CaptureProtocol.Type { second.behind(Self.self) }
    static func behind<A: Digit>(_: A.Type) -> CaptureProtocol.Type { Slot<A, Self>.self }
}

private enum D0: Digit {}
private enum D1: Digit {}
private enum D2: Digit {}
private enum D3: Digit {}
private enum D4: Digit {}
private enum D5: Digit {}
private enum D6: Digit {}
private enum D7: Digit {}

private final class Slot<A: Digit, B: Digit>: CaptureProtocol {}
#endif
