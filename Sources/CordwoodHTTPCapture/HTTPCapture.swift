// Captures the traffic of Foundation's URLSession in the engine's store, for hosts that make
// sessions with a configuration of their own. Outside the core, which does not use Foundation. Any
// thread. On Linux the request continues in Foundation's own URLProtocol, with the host's own task:
// settings, delegate, completion handlers, uploads and downloads work as in a session without it.

import Cordwood
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking

public enum HTTPCapture {
    /// A copy of the configuration whose sessions record their http and https requests while
    /// capture is on. In sessions with a delegate, received bodies are counted but not shown, and a
    /// redirection is one exchange, from the first URL to the last answer; `session` shows both.
    /// Without an engine (its store could not be opened) returns the configuration unchanged.
    public static func install(
        _ engine: Engine?, in configuration: URLSessionConfiguration
    ) -> URLSessionConfiguration {
        guard let engine, let copy = configuration.copy() as? URLSessionConfiguration
        else { return configuration }
        let others = (copy.protocolClasses ?? []).filter { !($0 is CaptureProtocol.Type) }
        copy.protocolClasses = [Slots.take(engine)] + others
        if let cache = copy.urlCache, !(cache is CallersCache) {
            copy.urlCache = CallersCache(cache)
        }
        return copy
    }

    /// A session with that configuration that records bodies as the host's delegate gets them, and
    /// each hop of a redirection. Without an engine it is an ordinary session.
    public static func session(
        _ engine: Engine?, configuration: URLSessionConfiguration = .default,
        delegate: (any URLSessionDelegate)? = nil, delegateQueue: OperationQueue? = nil
    ) -> URLSession {
        guard let engine else {
            return URLSession(
                configuration: configuration, delegate: delegate, delegateQueue: delegateQueue)
        }
        let queue = delegateQueue ?? OperationQueue()
        // If the host gives no queue, Foundation makes its own, which has this limit.
        if delegateQueue == nil { queue.maxConcurrentOperationCount = 1 }
        return URLSession(
            configuration: install(engine, in: configuration),
            delegate: SessionDelegate(delegate, queue), delegateQueue: queue)
    }

    /// The engine that the closure opens; nil if it throws. `report` is then called once (by
    /// default it writes a line with NSLog), and functions that take the engine let all requests
    /// pass.
    public static func engine(
        report: (any Error) -> Void = { NSLog("%@", "Cordwood.HTTP: not captured: \($0)") },
        _ open: () throws -> Engine
    ) -> Engine? {
        do { return try open() } catch {
            report(error)
            return nil
        }
    }

    /// The request with headers for the context in force: `traceparent`, `X-Transaction-Id` and the
    /// conversation header ("": none). Headers that it already has stay.
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

    /// Wraps a stream for `httpBodyStream` so that its bytes are recorded as they are sent; it
    /// reads like the original. `session` itself wraps the streams of `needNewBodyStream`.
    public static func body(_ stream: InputStream) -> InputStream { BodyTap(stream) }
}

/// Foundation only takes classes, so the class determines the engine of a session's requests. There
/// is one class per engine, permanently: a configuration may hold it after the engine is closed,
/// and must not record in another's store.
enum Slots {
    // SAFETY: guarded by the lock.
    nonisolated(unsafe) private static var slots: [ObjectIdentifier: CaptureProtocol.Type] = [:]
    nonisolated(unsafe) private static var engines: [ObjectIdentifier: Engine] = [:]
    private static let lock = NSLock()

    /// The engine's class.
    static func take(_ engine: Engine) -> CaptureProtocol.Type {
        lock.withLock { () -> CaptureProtocol.Type in
            if let known = unsafe slots[ObjectIdentifier(engine)] { return known }
            let made = unsafe slot(engines.count)
            unsafe slots[ObjectIdentifier(engine)] = made
            unsafe engines[ObjectIdentifier(made)] = engine
            return made
        }
    }

    static func engine(_ slot: CaptureProtocol.Type) -> Engine? {
        lock.withLock { unsafe engines[ObjectIdentifier(slot)] }
    }

    /// The class of a number: its binary digits, the highest outermost, are the class's parameter.
    private static func slot(_ number: Int) -> CaptureProtocol.Type {
        var (left, digits): (Int, any Digits.Type) = (number, None.self)
        while left > 0 {
            digits = left % 2 == 0 ? digits.zero : digits.one
            left /= 2
        }
        return digits.slot
    }
}

private protocol Digits: SendableMetatype {}

extension Digits {
    static var zero: any Digits.Type { Zero<Self>.self }
    static var one: any Digits.Type { One<Self>.self }
    static var slot: CaptureProtocol.Type { Slot<Self>.self }
}

private enum None: Digits {}
private enum Zero<Rest: Digits>: Digits {}
private enum One<Rest: Digits>: Digits {}

private final class Slot<Number: Digits>: CaptureProtocol {}
#endif
