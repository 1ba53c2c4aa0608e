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
    public static func install(
        _ engine: Engine, in configuration: URLSessionConfiguration
    ) -> URLSessionConfiguration {
        guard let copy = configuration.copy() as? URLSessionConfiguration,
            let slot = Slots.take(engine)
        else { return configuration }
        let others = (copy.protocolClasses ?? []).filter { !($0 is CaptureProtocol.Type) }
        copy.protocolClasses = [slot] + others
        return copy
    }

    /// A session of that configuration whose bodies are recorded as the host's delegate gets them,
    /// and each hop of a redirection.
    public static func session(
        _ engine: Engine, configuration: URLSessionConfiguration = .default,
        delegate: (any URLSessionDelegate)? = nil, delegateQueue: OperationQueue? = nil
    ) -> URLSession {
        let queue = delegateQueue ?? OperationQueue()
        // Without one of the host's Foundation makes its own, which has this limit.
        if delegateQueue == nil { queue.maxConcurrentOperationCount = 1 }
        return URLSession(
            configuration: install(engine, in: configuration),
            delegate: SessionDelegate(delegate, queue), delegateQueue: queue)
    }
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
