// What grep prints: records that it selects, their neighbours, places, or only what matched. Holds
// as many lines as -B asks for. One thread.
// SAFETY: a line's bytes are read in the call only.

import Cordwood

struct GrepOutput: ~Copyable {
    private let form: GrepForm
    private let style: LineStyle
    private let search: GrepSearch
    private let isJSON: Bool
    /// True on a terminal, unless the text is shown as it was logged.
    private let isMarked: Bool

    private var made = GrowingBytes()
    /// Lines that were not printed, for -B: a ring.
    private var held: [[UInt8]] = []
    private var heldCount = 0
    private var place: UInt64 = 0
    /// The place of the last line that was printed.
    private var lastPlace: UInt64 = 0
    /// Neighbours that are still to come.
    private var left = 0

    init(_ form: GrepForm, _ style: LineStyle, _ search: GrepSearch) {
        self.form = form
        self.style = style
        self.search = search
        isJSON = style.isJSON
        isMarked = Output.standard.hasColor && !Output.standard.isExact && !isJSON
    }

    /// Prints to the end, or as far as -m allows. Returns how many records were selected.
    mutating func print(_ reading: Reading) -> UInt64 {
        let most = form.maxCount ?? .max
        let hasContext = !form.count && !form.onlyMatching
        let (before, after) = hasContext ? (form.before, form.after) : (0, 0)
        var found: UInt64 = 0
        var record = RecordRef()
        while found < most || left > 0, reading.next(&record) {
            place += 1
            if found < most, search.selects(record, style) {
                found += 1
                if form.count { continue }
                show(record)
                left = after
            } else if left > 0 {
                left -= 1
                part()
                let line = line(record, "-", [])
                write(line)
            } else if before > 0 {
                hold(line(record, "-", []), before)
            }
        }
        if form.count { Output.standard.append("\(found)\n") }
        return found
    }

    private mutating func show(_ record: borrowing RecordRef) {
        if form.onlyMatching {
            let text = style.shown(record)
            for range in search.ranges(in: text) {
                var line = number(":")
                unsafe text.bytes[range].withUnsafeBytes {
                    PlainText.append($0, as: style.piece, to: &line)
                }
                write(line + [0x0a])
            }
            return
        }
        part()
        for index in 0..<min(heldCount, held.count) {
            write(held[(heldCount - min(heldCount, held.count) + index) % held.count])
        }
        heldCount = 0
        held.removeAll(keepingCapacity: true)
        let marks = isMarked ? search.ranges(in: style.shown(record)) : []
        write(line(record, ":", marks))
    }

    /// Called before a group of lines that does not follow the last one.
    private mutating func part() {
        let first = place - UInt64(min(heldCount, held.count))
        if lastPlace > 0, first > lastPlace + 1, form.before > 0 || form.after > 0, !isJSON {
            write(Array("--\n".utf8))
        }
        lastPlace = place
    }

    private mutating func hold(_ line: [UInt8], _ most: Int) {
        if held.count < most { held.append(line) } else { held[heldCount % most] = line }
        heldCount += 1
    }

    private mutating func line(
        _ record: borrowing RecordRef, _ sign: Unicode.Scalar, _ marked: [Range<Int>]
    ) -> [UInt8] {
        made.removeAll()
        style.append(record, to: &made, marked: marked)
        return unsafe number(sign) + made.bytes
    }

    private func number(_ sign: Unicode.Scalar) -> [UInt8] {
        form.lineNumber ? Array("\(place)\(sign)".utf8) : []
    }

    private func write(_ line: [UInt8]) {
        unsafe line.withUnsafeBytes { Output.standard.append($0) }
    }
}
