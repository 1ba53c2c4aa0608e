// Refused records that a lane reports: those of a thread's gap record, or what the reader finds at
// the end of the lane (FORMAT §3.2, §8.6). Two copies of a lane may report the same ones: the drop
// slots and their running totals tell which.
// SAFETY: views of a record last as long as it is lent.

import CordwoodCore

struct Gap: Equatable {
    /// Refused records of a drop slot: its running totals before and after.
    struct Run: Equatable {
        var slot: UInt32
        var from: UInt64
        var to: UInt64
    }

    /// More slots than any lane has.
    static let slotsMax = 1_024

    var runs: [Run] = []
    /// UTC ns.
    var first: UInt64 = 0
    var last: UInt64 = 0
    var causes: UInt64 = 0

    static func count(_ runs: [Run]) -> UInt64 { runs.reduce(0) { $0 &+ ($1.to &- $1.from) } }

    init(runs: [Run], first: UInt64, last: UInt64, causes: UInt64) {
        (self.runs, self.first, self.last, self.causes) = (runs, first, last, causes)
    }

    /// What a record says that `show` filled. nil: another one.
    init?(_ record: borrowing RecordRef) {
        guard record.kind == RecordRef.gapKind else { return nil }
        var fields = RecordFields(record)
        while let (key, value) = fields.next() {
            switch value {
            case .uint(let time) where Bytes.equal(key, Bytes.literal("gap.first")): first = time
            case .uint(let time) where Bytes.equal(key, Bytes.literal("gap.last")): last = time
            case .string(let text) where Bytes.equal(key, Bytes.literal("gap.runs")):
                runs = Gap.runs(Bytes.string(text)) ?? []
            case .string(let names) where Bytes.equal(key, Bytes.literal("gap.causes")):
                let names = Bytes.string(names).split(separator: " ").map(String.init)
                for cause in GapCause.allCases where names.contains("\(cause.name)") {
                    causes |= cause.bit
                }
            default: break
            }
        }
        guard !runs.isEmpty else { return nil }
    }

    /// nil: another text.
    static func runs(_ text: String) -> [Run]? {
        var runs: [Run] = []
        for word in text.split(separator: " ") {
            let parts = word.split(whereSeparator: { $0 == ":" || $0 == "-" })
            guard parts.count == 3, let slot = UInt32(parts[0]), slot < slotsMax,
                let from = UInt64(parts[1]), let to = UInt64(parts[2]), from < to,
                runs.count < slotsMax
            else { return nil }
            runs.append(Run(slot: slot, from: from, to: to))
        }
        return runs
    }

    /// Fills in everything but the times and the id. `text` holds what the record shows.
    func show(in record: inout RecordRef, _ text: ReadBuffer) {
        text.clear()
        let count = Gap.count(runs)
        var message = Array(String(count).utf8)
        message.append(
            contentsOf: (count == 1 ? " record was not kept" : " records were not kept").utf8)
        let known = GapCause.allCases.filter { causes & $0.bit != 0 }
        var fields: [UInt8] = [known.isEmpty ? 4 : 5, 0]
        Gap.append(&fields, "gap.records", count)
        Gap.append(&fields, "gap.first", first)
        Gap.append(&fields, "gap.last", last)
        Gap.append(
            &fields, "gap.runs",
            runs.map { "\($0.slot):\($0.from)-\($0.to)" }.joined(separator: " "))
        if !known.isEmpty {
            let words = known.map { "\($0.words)" }.joined(separator: ", ")
            message.append(contentsOf: ": \(words)".utf8)
            Gap.append(&fields, "gap.causes", known.map { "\($0.name)" }.joined(separator: " "))
        }
        var sections: [UInt8] = [SectionKind.fields, 0, 0, 0]
        let bytes = UInt32(truncatingIfNeeded: fields.count)
        unsafe withUnsafeBytes(of: bytes.littleEndian) { unsafe sections.append(contentsOf: $0) }
        sections.append(contentsOf: fields)
        unsafe message.withUnsafeBytes { text.append($0) }
        unsafe sections.withUnsafeBytes { text.append($0) }
        record.message = unsafe Bytes.slice(text.bytes, 0, message.count) ?? Bytes.none
        record.sections =
            unsafe Bytes.slice(text.bytes, message.count, sections.count) ?? Bytes.none
        record.originalLength = UInt64(message.count)
        record.kind = RecordRef.gapKind
        record.level = 13
        record.logger = Bytes.literal("Cordwood")
    }

    private static func append(_ fields: inout [UInt8], _ key: String, _ value: UInt64) {
        fields.append(contentsOf: [FieldType.uint, 0, UInt8(key.utf8.count), 0])
        fields.append(contentsOf: key.utf8)
        unsafe withUnsafeBytes(of: value.littleEndian) { unsafe fields.append(contentsOf: $0) }
    }

    private static func append(_ fields: inout [UInt8], _ key: String, _ value: String) {
        fields.append(contentsOf: [FieldType.string, 0, UInt8(key.utf8.count), 0])
        fields.append(contentsOf: key.utf8)
        let count = UInt32(truncatingIfNeeded: value.utf8.count)
        unsafe withUnsafeBytes(of: count.littleEndian) { unsafe fields.append(contentsOf: $0) }
        fields.append(contentsOf: value.utf8)
    }
}

/// The refused records of a lane that were reported.
struct GapsSeen {
    /// Reports of one slot follow one another: more are of damaged files, and the first ones are
    /// forgotten.
    private static let piecesMax = 64

    /// By slot: what was reported, as pieces that do not overlap.
    private var seen: [UInt32: [Range<UInt64>]] = [:]

    /// Notes those runs. Returns what of them is new.
    mutating func note(_ runs: [Gap.Run]) -> [Gap.Run] {
        runs.flatMap { run -> [Gap.Run] in
            var pieces = seen[run.slot] ?? []
            var left = [run.from..<run.to]
            for known in pieces where known.overlaps(run.from..<run.to) {
                left = left.flatMap { piece in
                    [
                        piece.clamped(to: 0..<known.lowerBound),
                        piece.clamped(to: known.upperBound..<UInt64.max),
                    ].filter { !$0.isEmpty }
                }
            }
            for piece in left {
                // A thread's reports follow one another.
                if let last = pieces.last, last.upperBound == piece.lowerBound {
                    pieces[pieces.count - 1] = last.lowerBound..<piece.upperBound
                } else {
                    pieces.append(piece)
                }
            }
            if pieces.count > GapsSeen.piecesMax {
                pieces.removeFirst(pieces.count - GapsSeen.piecesMax)
            }
            seen[run.slot] = pieces
            return left.map { Gap.Run(slot: run.slot, from: $0.lowerBound, to: $0.upperBound) }
        }
    }
}
