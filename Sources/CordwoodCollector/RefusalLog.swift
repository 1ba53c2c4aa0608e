// One line a refusal for whoever runs the collector, but few at a time: under an attack they would
// fill a disk. What is left out is counted and said. Any thread.

import NIOCore
import Synchronization

final class RefusalLog: Sendable {
    static let linesMax = 10
    static let window = TimeAmount.seconds(10)

    private struct Content {
        var windowBegan = NIODeadline.distantPast
        var lines = 0
        var leftOut = 0
    }

    private let notice: (@Sendable (String) -> Bool)?
    private let content = Mutex(Content())

    init(_ notice: (@Sendable (String) -> Bool)?) { self.notice = notice }

    func tell(_ peer: String, _ what: String, now: NIODeadline = .now()) {
        guard let notice else { return }
        flush(now: now)
        let isWithin = content.withLock { content in
            guard content.lines < RefusalLog.linesMax else {
                content.leftOut += 1
                return false
            }
            content.lines += 1
            return true
        }
        guard isWithin, !notice("refused \(peer): \(what)") else { return }
        content.withLock { $0.leftOut += 1 }
    }

    /// Begins a new window where it is time, or at the end, and says what the last one left out.
    func flush(now: NIODeadline = .now(), isLast: Bool = false) {
        let leftOut = content.withLock { content -> Int in
            guard isLast || now - content.windowBegan >= RefusalLog.window else { return 0 }
            defer { content = Content(windowBegan: now) }
            return content.leftOut
        }
        guard leftOut > 0, let notice, !notice("\(leftOut) more refusals") else { return }
        content.withLock { $0.leftOut += leftOut }
    }
}
