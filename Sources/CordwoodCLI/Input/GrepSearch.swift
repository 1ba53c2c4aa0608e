// The patterns of grep, and where they match in what a line shows of a record: first the message by
// itself, so that `$` is its end, then message, fields and stack trace as one text. One thread.
// SAFETY: views are read in the call they are lent to.

import Cordwood

final class GrepSearch {
    private var patterns: [TextPattern] = []
    private let isInverted: Bool

    init(isInverted: Bool) { self.isInverted = isInverted }

    func add(_ pattern: TextPattern) { patterns.append(pattern) }

    /// The bytes that a record must show to match; nil: the patterns are not that simple.
    var literal: [UInt8]? {
        guard patterns.count == 1, case .literal(let bytes) = patterns[0] else { return nil }
        return bytes.isEmpty ? nil : bytes
    }

    /// Whether grep shows the record.
    func selects(_ record: borrowing RecordRef, _ style: LineStyle) -> Bool {
        matches(record, style) != isInverted
    }

    private func matches(_ record: borrowing RecordRef, _ style: LineStyle) -> Bool {
        for pattern in patterns where pattern.isIn(record.message) { return true }
        if record.sections.count == 0 && record.context.count == 0 { return false }
        let text = style.shown(record)
        let known = text.messageEnd
        guard text.bytes.count > known else { return false }
        return unsafe text.bytes.withUnsafeBytes { text in
            patterns.contains { $0.isIn(text, beyond: known) }
        }
    }

    /// Reads on to the first record that grep would show.
    func findsOne(in reading: Reading, _ style: LineStyle) -> Bool {
        var record = RecordRef()
        while reading.next(&record) {
            if selects(record, style) { return true }
        }
        return false
    }

    /// The matches, in whole characters: ascending, not empty, disjoint.
    func ranges(in text: TextLine.Shown) -> [Range<Int>] {
        if isInverted { return [] }
        let all = unsafe text.bytes.withUnsafeBytes { bytes in
            let message = unsafe UnsafeRawBufferPointer(rebasing: bytes[..<text.messageEnd])
            return patterns.flatMap { pattern in
                GrepSearch.ranges(of: pattern, in: bytes)
                    + GrepSearch.ranges(of: pattern, in: message)
            }
        }
        var found: [Range<Int>] = []
        for range in all.map({ whole($0, text.bytes) })
            .sorted(by: { ($0.lowerBound, $1.upperBound) < ($1.lowerBound, $0.upperBound) })
        {
            if let last = found.last, range.lowerBound < last.upperBound {
                found[found.count - 1] =
                    last.lowerBound..<max(last.upperBound, range.upperBound)
            } else {
                found.append(range)
            }
        }
        return found
    }

    @safe private static func ranges(
        of pattern: TextPattern, in text: UnsafeRawBufferPointer
    ) -> [Range<Int>] {
        var found: [Range<Int>] = []
        var at = 0
        while at <= text.count, let range = pattern.find(text, from: at) {
            if !range.isEmpty { found.append(range) }
            at = max(range.upperBound, at + 1, range.lowerBound + 1)
        }
        return found
    }

    /// Expressions match bytes; a terminal gets characters.
    private func whole(_ range: Range<Int>, _ bytes: [UInt8]) -> Range<Int> {
        let from = character(at: range.lowerBound, bytes)?.lowerBound ?? range.lowerBound
        let to = character(at: range.upperBound, bytes)?.upperBound ?? range.upperBound
        return from..<to
    }

    /// The character that an offset cuts; nil: it cuts none.
    private func character(at: Int, _ bytes: [UInt8]) -> Range<Int>? {
        func isInside(_ at: Int) -> Bool { at < bytes.count && bytes[at] & 0xC0 == 0x80 }
        guard isInside(at) else { return nil }
        var from = at
        while from > 0, at - from < 3, isInside(from) { from -= 1 }
        let size = min((~bytes[from]).leadingZeroBitCount, bytes.count - from)
        guard (2...4).contains(size), from + size > at,
            (from + 1..<from + size).allSatisfy(isInside)
        else { return nil }
        return from..<from + size
    }
}
