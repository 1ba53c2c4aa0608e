// Writes one line per refusal for the operator, but only a few at a time: an attack would otherwise
// fill a disk. Omitted lines are counted and reported. Any thread.

import NIOCore
import Synchronization

package final class RefusalLog: Sendable {
    package static let linesMax = 10
    package static let window = TimeAmount.seconds(10)

    private struct Content {
        var windowBegan = NIODeadline.distantPast
        var lines = 0
        var leftOut = 0
    }

    private let notice: (@Sendable (String) -> Bool)?
    private let content = Mutex(Content())

    package init(_ notice: (@Sendable (String) -> Bool)?) { self.notice = notice }

    package func tell(
        _ peer: String, _ what: String, did: String = "refused", now: NIODeadline = .now()
    ) {
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
        guard isWithin, !notice("\(did) \(peer): \(what)") else { return }
        content.withLock { $0.leftOut += 1 }
    }

    /// Begins a new window if it is time, or at the end, and reports what the last one omitted.
    package func flush(now: NIODeadline = .now(), isLast: Bool = false) {
        let leftOut = content.withLock { content -> Int in
            guard isLast || now - content.windowBegan >= RefusalLog.window else { return 0 }
            defer { content = Content(windowBegan: now) }
            return content.leftOut
        }
        guard leftOut > 0, let notice, !notice("\(leftOut) more refusals") else { return }
        content.withLock { $0.leftOut += leftOut }
    }
}
