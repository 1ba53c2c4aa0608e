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
        guard let engine, let copy = configuration.copy() as? URLSessionConfiguration
        else { return configuration }
        let others = (copy.protocolClasses ?? []).filter { !($0 is CaptureProtocol.Type) }
        copy.protocolClasses = [Slots.take(engine)] + others
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
/// class an engine, for good: a configuration may hold it when the engine is closed, and must not
/// record in another's store.
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

    /// Of a number: its binary digits, the highest outermost, are the class's parameter.
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
