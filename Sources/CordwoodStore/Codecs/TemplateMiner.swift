// Finds what lines have in common: cuts each one into static text and variables, and numbers equal
// static text. Passes over a line once and allocates nothing but room that grows. There are two
// ways to cut: coarse, for messages and quoted text; fine, for runs that contain digits, where only
// the digits vary. A value of one encoder.
// SAFETY: positions stay below the line's count.

import CShims
import CordwoodCore

/// The content of a variable; the numbers are those of FORMAT §11.9, templates.
enum VariableKind {
    static let run: UInt32 = 1
    static let quoted: UInt32 = 2
    static let word: UInt32 = 3
    /// Plus the form of a time.
    static let time: UInt32 = 4
}

/// Static text and variables of lines that are equal except for the variables' values.
struct MinedTemplate: BitwiseCopyable {
    var firstPiece: Int
    var firstKind: Int
    var variables: Int
    var hash: UInt64
    var rows: Int
}

/// Variables of some lines, one after another. A time is an empty slice whose count is the number.
struct MinedVariables: BitwiseCopyable {
    var firstRow: Int
    var values: Flat<Slice>
}

struct TemplateMiner {
    /// For each template, one more piece than variables.
    private(set) var pieces: Growing<Slice>
    private(set) var kinds: Growing<UInt32>
    private(set) var templates: Growing<MinedTemplate>
    /// For each template, the template of the line after its last line.
    private var following: Growing<UInt32>
    private var lastTemplate = 0
    private var lastDate = TimeForm.LastDate()
    private var lastStamp = TimeForm.LastDate()
    /// The template of each line.
    private(set) var rows: Growing<UInt32>
    /// Variables of all lines. A column that grows would leave as much behind as it holds.
    private(set) var variables: Growing<MinedVariables>
    /// The last entry of `variables`.
    private var values: Flat<Slice>
    private var used = 0
    private var linePieces: Flat<Slice>
    private var lineKinds: Flat<UInt32>
    private var lineVariables = 0
    private var marks: LineMarks
    /// Template + 1; 0: free.
    private var slots: Flat<UInt32>
    private let seed: UInt64

    /// The most variables of one line; the rest of it is static text.
    private static let lineVariablesMax = 1_000

    /// `lines`: the expected number of lines.
    init(seed: UInt64, lines: Int, _ arena: inout Arena) throws(BlockProblem) {
        self.seed = seed
        pieces = try Growing(&arena)
        kinds = try Growing(&arena)
        templates = try Growing(&arena)
        following = try Growing(&arena)
        rows = try Growing(&arena, expected: lines)
        variables = try Growing(&arena)
        values = try arena.flat(2 * Self.lineVariablesMax)
        try variables.append(MinedVariables(firstRow: 0, values: values), &arena)
        linePieces = try arena.flat(Self.lineVariablesMax + 1)
        lineKinds = try arena.flat(Self.lineVariablesMax)
        marks = try LineMarks(&arena)
        slots = try arena.flat(1_024, of: 0)
    }

    /// Makes room for the variables of one line.
    @inline(__always) private mutating func startLine(_ arena: inout Arena) throws(BlockProblem) {
        lineVariables = 0
        guard values.count &- used < Self.lineVariablesMax else { return }
        values = try arena.flat(min(values.count * 2, 64 * Self.lineVariablesMax))
        used = 0
        try variables.append(MinedVariables(firstRow: rows.count, values: values), &arena)
    }

    // MARK: cutting

    /// What varies: runs of letters, digits and the like that contain a digit or a slash, text
    /// between quotes, times, and months before a day.
    mutating func coarse(_ line: Slice, _ arena: inout Arena) throws(BlockProblem) {
        try startLine(&arena)
        guard let base = unsafe line.start else { return try endLine(line, &arena) }
        try self.marks.set(line, &arena)
        // Copies, which no store of a piece or value can change.
        let marks = self.marks
        let (piecesOfLine, kindsOfLine) = unsafe (linePieces.base, lineKinds.base)
        let valuesOfLine = unsafe values.base + used
        var found = 0
        /// INVARIANT: there is room for one more variable of the line.
        @inline(__always) func take(_ piece: Slice, _ kind: UInt32, _ value: Slice) {
            unsafe piecesOfLine[found] = piece
            unsafe kindsOfLine[found] = kind
            unsafe valuesOfLine[found] = value
            found &+= 1
        }
        let bytes = unsafe base.assumingMemoryBound(to: UInt8.self)
        let end = line.count
        var at = 0
        var start = 0
        var hasQuotes = true
        while found < Self.lineVariablesMax {
            // The rest of words, and everything between them, is static.
            let next = marks.firstVaryingOrQuote(at)
            guard next < end else { break }
            if unsafe bytes[next] == 0x22 {
                at = next &+ 1
                guard hasQuotes else { continue }
                guard let close = unsafe closing(bytes, next) else {
                    hasQuotes = false
                    continue
                }
                if line[close &+ 1] == 0x3A {
                    // A key.
                    at = close &+ 2
                    continue
                }
                if close > at {
                    take(
                        unsafe Slice(start: base + start, count: at &- start),
                        VariableKind.quoted,
                        unsafe Slice(start: base + at, count: close &- at))
                    start = close
                }
                at = close &+ 1
                continue
            }
            var first = marks.startOfWords(next, from: at)
            var runEnd = marks.endOfWords(next)
            if marks.hasSigns, marks.hasSign(first, runEnd) {
                (first, runEnd) = aroundControls(line, first, next, runEnd)
            }
            if first == next, unsafe bytes[next] != 0x2F {
                if unsafe next > at && bytes[next &- 1] == 0x20,
                    let month = unsafe month(bytes, before: next, from: at)
                {
                    if let time = TimeForm.stamp(line, at: month, after: &lastStamp) {
                        take(
                            unsafe Slice(start: base + start, count: month &- start),
                            VariableKind.time + UInt32(time.form.code), Slice(number: time.number))
                        at = month &+ time.bytes
                        start = at
                        continue
                    }
                    // Otherwise each month has templates of its own.
                    take(
                        unsafe Slice(start: base + start, count: month &- start),
                        VariableKind.word, unsafe Slice(start: base + month, count: 3))
                    start = month &+ 3
                    if found >= Self.lineVariablesMax { break }
                }
                if let time = TimeForm.read(line, at: next, after: &lastDate) {
                    take(
                        unsafe Slice(start: base + start, count: next &- start),
                        VariableKind.time + UInt32(time.form.code), Slice(number: time.number))
                    at = next &+ time.bytes
                    start = at
                    continue
                }
            }
            var last = runEnd
            while unsafe last > first &+ 1 && bytes[last &- 1] &- 0x2D < 2 { last &-= 1 }
            take(
                unsafe Slice(start: base + start, count: first &- start), VariableKind.run,
                unsafe Slice(start: base + first, count: last &- first))
            start = last
            at = runEnd
        }
        lineVariables = found
        used &+= found
        try endLine(unsafe Slice(start: base + start, count: end &- start), &arena)
    }

    /// The start of the month in `Jun 14` or `Jun  4`, if the day begins at `day`.
    @inline(__always)
    private func month(
        _ bytes: UnsafePointer<UInt8>, before day: Int, from least: Int
    ) -> Int? {
        let blanks = unsafe day &- 2 >= least && bytes[day &- 2] == 0x20 ? 2 : 1
        let at = day &- blanks &- 3
        // Most words before a number begin with a small letter, or are longer.
        guard at >= least, unsafe bytes[at] & 0xE0 == 0x40,
            unsafe at == least || !ByteClass.isWord(bytes[at &- 1])
        else { return nil }
        let name =
            unsafe UInt32(bytes[at]) << 16 | UInt32(bytes[at &+ 1]) << 8
            | UInt32(bytes[at &+ 2])
        return TimeForm.month(named: name) == nil ? nil : at
    }

    /// Digits vary.
    mutating func fine(_ line: Slice, _ arena: inout Arena) throws(BlockProblem) {
        try startLine(&arena)
        guard let base = unsafe line.start else { return try endLine(line, &arena) }
        let bytes = unsafe base.assumingMemoryBound(to: UInt8.self)
        let end = line.count
        var at = 0
        var start = 0
        while at < end, lineVariables < Self.lineVariablesMax {
            guard unsafe bytes[at] &- 0x30 < 10 else {
                at &+= 1
                continue
            }
            let first = at
            while unsafe at < end && bytes[at] &- 0x30 < 10 { at &+= 1 }
            take(
                unsafe Slice(start: base + start, count: first &- start), VariableKind.run,
                unsafe Slice(start: base + first, count: at &- first))
            start = at
        }
        try endLine(unsafe Slice(start: base + start, count: end &- start), &arena)
    }

    /// `\n`, `\r` or `\t` as two bytes: the characters they stand for separate words.
    @inline(__always) private func isControl(_ line: Slice, _ at: Int) -> Bool {
        let next = line[at &+ 1]
        return next == 0x6E || next == 0x72 || next == 0x74
    }

    /// The part around `place` of the word bytes `first` ..< `end`, cut before and after a `\n` of
    /// two bytes. Two backslashes are one of the text.
    private func aroundControls(
        _ line: Slice, _ first: Int, _ place: Int, _ end: Int
    ) -> (first: Int, end: Int) {
        var first = first
        var at = first
        while at < end {
            if line[at] == 0x5C {
                if isControl(line, at) {
                    if at > place { return (first, at) }
                    first = at &+ 2
                }
                at &+= 1
            }
            at &+= 1
        }
        return (min(first, place), end)
    }

    /// The quote that closes the one at `at`; a backslash hides the byte after it.
    @inline(__always)
    private func closing(_ bytes: UnsafePointer<UInt8>, _ at: Int) -> Int? {
        var next = marks.firstSign(at &+ 1)
        while next < marks.count {
            if unsafe bytes[next] == 0x22 { return next }
            next = marks.firstSign(next &+ 2)
        }
        return nil
    }

    /// INVARIANT: there is room for one more variable of the line.
    @inline(__always)
    private mutating func take(_ piece: Slice, _ kind: UInt32, _ value: Slice) {
        unsafe linePieces.base[lineVariables] = piece
        unsafe lineKinds.base[lineVariables] = kind
        lineVariables &+= 1
        unsafe values.base[used] = value
        used &+= 1
    }

    // MARK: the table

    // SAFETY: a line has at most `lineVariablesMax` variables and one piece more; a template's
    // pieces and kinds were appended when it was.
    private mutating func endLine(_ rest: Slice, _ arena: inout Arena) throws(BlockProblem) {
        let count = lineVariables
        let linePieces = unsafe self.linePieces.base
        let lineKinds = unsafe self.lineKinds.base
        unsafe linePieces[count] = rest
        // What followed the last line's template before often follows it again.
        if templates.count > 0 {
            let number = Int(following[lastTemplate])
            if isLine(number) { return try endLine(in: number, &arena) }
        }
        var hash = seed
        for index in 0..<count {
            hash = unsafe SliceTable.hash(linePieces[index], hash &+ UInt64(lineKinds[index]))
        }
        hash = SliceTable.hash(rest, hash)
        let mask = slots.count &- 1
        var slot = Int(truncatingIfNeeded: hash) & mask
        while slots[slot] != 0 {
            let number = Int(slots[slot]) &- 1
            if templates[number].hash == hash, isLine(number) {
                following[lastTemplate] = UInt32(number)
                return try endLine(in: number, &arena)
            }
            slot = (slot &+ 1) & mask
        }
        let number = templates.count
        slots[slot] = UInt32(number + 1)
        try templates.append(
            MinedTemplate(
                firstPiece: pieces.count, firstKind: kinds.count, variables: count,
                hash: hash, rows: 0), &arena)
        try following.append(UInt32(number), &arena)
        following[lastTemplate] = UInt32(number)
        for index in 0...count { unsafe try pieces.append(linePieces[index], &arena) }
        for index in 0..<count { unsafe try kinds.append(lineKinds[index], &arena) }
        try endLine(in: number, &arena)
        if templates.count * 2 > slots.count { try growSlots(&arena) }
    }

    @inline(__always)
    private mutating func endLine(in number: Int, _ arena: inout Arena) throws(BlockProblem) {
        lastTemplate = number
        unsafe templates.base[number].rows &+= 1
        try rows.append(UInt32(truncatingIfNeeded: number), &arena)
    }

    @inline(__always) private func isLine(_ number: Int) -> Bool {
        let template = unsafe templates.base[number]
        let count = lineVariables
        guard template.variables == count else { return false }
        let known = unsafe pieces.base + template.firstPiece
        let knownKinds = unsafe kinds.base + template.firstKind
        let linePieces = unsafe self.linePieces.base
        let lineKinds = unsafe self.lineKinds.base
        var differ: UInt32 = 0
        for index in 0..<count { unsafe differ |= knownKinds[index] ^ lineKinds[index] }
        guard differ == 0 else { return false }
        for index in 0...count
        where unsafe !known[index].isSame(linePieces[index]) {
            return false
        }
        return true
    }

    /// The part of a line that a template was made of, from its first piece to its last: the pieces
    /// lie one after another in it.
    func line(of template: MinedTemplate) -> Slice {
        let first = pieces[template.firstPiece]
        let last = pieces[template.firstPiece &+ template.variables]
        guard let start = unsafe first.start, let end = unsafe last.start else { return first }
        return unsafe Slice(start: start, count: end - start + last.count)
    }

    /// Whether two templates have the same variables.
    func hasSameKinds(_ one: Int, _ other: Int) -> Bool {
        let (first, second) = (templates[one], templates[other])
        guard first.variables == second.variables else { return false }
        for index in 0..<first.variables
        where kinds[first.firstKind &+ index] != kinds[second.firstKind &+ index] {
            return false
        }
        return true
    }

    private mutating func growSlots(_ arena: inout Arena) throws(BlockProblem) {
        slots = try arena.flat(slots.count * 4, of: 0)
        let mask = slots.count &- 1
        for number in 0..<templates.count {
            var slot = Int(truncatingIfNeeded: templates[number].hash) & mask
            while slots[slot] != 0 { slot = (slot &+ 1) & mask }
            slots[slot] = UInt32(number + 1)
        }
    }
}

/// Which bytes of one line belong to words, vary, or are quotes and backslashes: one bit each.
/// SAFETY: every map has a word for each 64 bytes of the line, and one of zeros after them.
@safe struct LineMarks {
    private var words: Flat<UInt64>
    private var varying: Flat<UInt64>
    private var signs: Flat<UInt64>
    private var blocks = 0
    /// Bytes of the line.
    private(set) var count = 0
    private(set) var hasSigns = false

    init(_ arena: inout Arena) throws(BlockProblem) {
        words = try arena.flat(64)
        varying = try arena.flat(64)
        signs = try arena.flat(64)
    }

    mutating func set(_ line: Slice, _ arena: inout Arena) throws(BlockProblem) {
        guard let start = unsafe line.start else { return }
        count = line.count
        blocks = (count &+ 63) &>> 6
        if blocks >= words.count {
            words = try arena.flat(blocks * 2)
            varying = try arena.flat(blocks * 2)
            signs = try arena.flat(blocks * 2)
        }
        hasSigns = unsafe cwi_word_marks(
            start.assumingMemoryBound(to: UInt8.self), count, words.base, varying.base, signs.base)
    }

    /// The first one from `at` on, or at least `count`; likewise below.
    @inline(__always) func firstVaryingOrQuote(_ at: Int) -> Int {
        guard at < count else { return at }
        var block = at &>> 6
        var bits = quotesAndVarying(block) &>> UInt64(at & 63)
        if bits != 0 { return at &+ bits.trailingZeroBitCount }
        repeat {
            block &+= 1
            if block >= blocks { return count }
            bits = quotesAndVarying(block)
        } while bits == 0
        return block &<< 6 &+ bits.trailingZeroBitCount
    }

    @inline(__always) private func quotesAndVarying(_ block: Int) -> UInt64 {
        unsafe varying.base[block] | signs.base[block] & ~words.base[block]
    }

    @inline(__always) func firstSign(_ at: Int) -> Int {
        guard at < count else { return at }
        var block = at &>> 6
        var bits = unsafe signs.base[block] &>> UInt64(at & 63)
        if bits != 0 { return at &+ bits.trailingZeroBitCount }
        repeat {
            block &+= 1
            if block >= blocks { return count }
            bits = unsafe signs.base[block]
        } while bits == 0
        return block &<< 6 &+ bits.trailingZeroBitCount
    }

    /// The first non-word byte after the word byte at `at`.
    @inline(__always) func endOfWords(_ at: Int) -> Int {
        var block = at &>> 6
        var bits = unsafe ~words.base[block] &>> UInt64(at & 63)
        if bits != 0 { return at &+ bits.trailingZeroBitCount }
        repeat {
            block &+= 1
            bits = unsafe ~words.base[block]
        } while bits == 0
        return block &<< 6 &+ bits.trailingZeroBitCount
    }

    /// The first byte of the words that contain the byte at `at`, or `least` if they begin before
    /// it.
    @inline(__always) func startOfWords(_ at: Int, from least: Int) -> Int {
        var block = at &>> 6
        var bits = unsafe ~words.base[block] & ((1 &<< UInt64(at & 63)) &- 1)
        while bits == 0 {
            if block &<< 6 <= least { return least }
            block &-= 1
            bits = unsafe ~words.base[block]
        }
        return max(block &<< 6 &+ 64 &- bits.leadingZeroBitCount, least)
    }

    @inline(__always) func isWord(_ at: Int) -> Bool {
        unsafe words.base[at &>> 6] &>> UInt64(at & 63) & 1 != 0
    }

    /// The first word byte after the non-word byte at `at`.
    @inline(__always) func startOfWords(behind at: Int) -> Int {
        var block = at &>> 6
        var bits = unsafe words.base[block] &>> UInt64(at & 63)
        if bits != 0 { return at &+ bits.trailingZeroBitCount }
        repeat {
            block &+= 1
            if block >= blocks { return count }
            bits = unsafe words.base[block]
        } while bits == 0
        return block &<< 6 &+ bits.trailingZeroBitCount
    }

    @inline(__always) func hasSign(_ from: Int, _ to: Int) -> Bool { firstSign(from) < to }
}

enum ByteClass {
    /// One bit for each of the bytes below 64 and below 128; all others belong to words.
    private static let wordsLow: UInt64 = 0x03FF_E878_0000_0000
    private static let wordsHigh: UInt64 = 0x47FF_FFFE_97FF_FFFF

    @inline(__always) static func isWord(_ byte: UInt8) -> Bool {
        if byte >= 0x80 { return true }
        let set = byte < 64 ? wordsLow : wordsHigh
        return set &>> UInt64(byte & 63) & 1 != 0
    }
}
