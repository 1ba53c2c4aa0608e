// /api/tail: records as they are written, until the client goes. A screen shows only so many:
// further ones are counted, and are in the list when it is scrolled to. One thread per job.

import Cordwood

struct TailJob: Sendable {
    private static let batchMs: UInt64 = 50
    private static let rowsPerSecond = 2_000
    private static let clockMs: UInt64 = 10_000
    /// The number of searches for the record to follow from, and the time between two.
    private static let looksMax = 40
    private static let lookMs: UInt64 = 50
    /// Records between two readings of the clock.
    private static let recordsMax = 256

    private let options: ViewerOptions
    private let selected: Selected
    private let from: RecordKey?
    /// The client had no record to name, and wants all.
    private let isFromFirst: Bool

    init(
        _ options: ViewerOptions, _ selected: Selected, _ parameters: URLParameters
    ) throws(Rejection) {
        self.options = options
        self.selected = selected
        let text = parameters["from"]
        isFromFirst = text == "first"
        from = if let text, !isFromFirst { try ViewerAPI.key(text) } else { nil }
    }

    private static func nowMs() -> UInt64 { Machine.monotonicNs() / 1_000_000 }

    /// The timing of what is sent.
    private struct Pace {
        var second: UInt64
        var rows = 0
        var skipped = 0
        var sent: UInt64 = 0
        var clock: UInt64 = 0

        init(_ now: UInt64) { second = now }
    }

    func run(_ stream: LineStream) -> Reply? {
        do throws(Rejection) {
            for _ in 0..<TailJob.looksMax {
                let look = try Look(options, try asked(stream), stream)
                follow(look, stream)
                // The record exists, but is so young that a following reader holds it back: a
                // slower thread may still write an older one.
                guard look.reader.isMissing, !stream.hasBegun, stream.pause(ms: TailJob.lookMs)
                else { return nil }
            }
            throw Rejection(.notFound, "no record has this key")
        } catch {
            return error.reply
        }
    }

    private func asked(_ stream: LineStream) throws(Rejection) -> ReaderOptions {
        let facts = options.remembersFacts ? FactsCache.find() : nil
        var asked = selected.readerOptions(options, facts)
        asked.follow = true
        guard let from else {
            asked.fromEnd = !isFromFirst
            return asked
        }
        let (record, look) = try Look.find(from, options, facts, stream)
        let isApart = withExtendedLifetime(look) { !selected.matches(record) }
        asked.window = RecordWindow(
            around: from.id, timeNs: from.timeNs, before: 0, after: nil, isApart: isApart)
        return asked
    }

    private func follow(_ look: Look, _ stream: LineStream) {
        let row = RowJSON()
        var pace = Pace(TailJob.nowMs())
        var out: [UInt8] = []
        var told: Set<String> = []
        var record = RecordRef()
        var seen = 0
        while !stream.isOver {
            if look.next(&record) {
                if record.id != from?.id {
                    if pace.rows < TailJob.rowsPerSecond {
                        pace.rows += 1
                        row.appendLine(record, to: &out)
                    } else {
                        pace.skipped += 1
                    }
                }
                seen += 1
                let isFull = out.count >= LineStream.bytesMax / 4
                guard seen % TailJob.recordsMax == 0 || isFull else { continue }
                tick(&pace, &out)
                if isFull || TailJob.nowMs() >= pace.sent + TailJob.batchMs {
                    guard send(&pace, &out, stream) else { return }
                }
                continue
            }
            if look.reader.isMissing { return }
            tick(&pace, &out)
            look.appendProblems(told: &told, to: &out)
            if !out.isEmpty, !send(&pace, &out, stream) { return }
            look.reader.wait()
        }
    }

    private func tick(_ pace: inout Pace, _ out: inout [UInt8]) {
        let now = TailJob.nowMs()
        if now >= pace.second + 1_000 {
            if pace.skipped > 0 { out += "{\"skipped\":\(pace.skipped)}\n".utf8 }
            (pace.second, pace.rows, pace.skipped) = (now, 0, 0)
        }
        if pace.clock == 0 || now >= pace.clock + TailJob.clockMs {
            pace.clock = now
            out += "{\"now_ns\":\"\(Machine.realtimeNs())\"}\n".utf8
        }
    }

    /// Sends no sooner than the screen needs it. False: over.
    private func send(_ pace: inout Pace, _ out: inout [UInt8], _ stream: LineStream) -> Bool {
        let now = TailJob.nowMs()
        let due = pace.sent + TailJob.batchMs
        if now < due, !stream.pause(ms: due - now) { return false }
        pace.sent = TailJob.nowMs()
        return stream.send(&out)
    }
}
