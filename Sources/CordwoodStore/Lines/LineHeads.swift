// The recurring parts of lines: what a line says of a level, a logger and a thread, and of a place
// in the source. Lines of every form keep them as ready bytes. Records from blocks of archives are
// recognised by the numbers of their names; other records are compared. One thread at a time.

import CordwoodCore

struct LineHeads {
    private struct Name {
        /// Retained, so that no other thread takes over the identity.
        var thread: ThreadInfo?
        var identity: ObjectIdentifier?
        /// Initially a level that no record has.
        var level = UInt8.max
        var logger = ShortKey()
        var text = ReadyBytes()
    }

    private struct NumberedName {
        var text = ReadyBytes()
        /// Made of the record's names number and its level; 0: unused.
        var key: UInt64 = 0
    }

    private struct Place {
        /// The record's format number; 0: unused.
        var number: UInt64 = 0
        var text: [UInt8] = []
    }

    private struct Writer {
        var thread: ThreadInfo?
        var identity: ObjectIdentifier?
        var start = ReadyBytes()
        var end: [UInt8] = []
    }

    private static let most = 64
    private static let namesMost = 256
    private static let numberedMost = 512
    private var names: [Name] = []
    private var numbered: [NumberedName] = []
    private var places: [Place] = []
    private var writers: [Writer] = []
    private let isKept: Bool
    private let hasThread: Bool

    /// - Parameters:
    ///   - isKept: false: only one line is made, and nothing is kept.
    ///   - hasThread: what is kept of a level and a logger also names the thread.
    init(isKept: Bool, hasThread: Bool = false) {
        self.isKept = isKept
        self.hasThread = hasThread
    }

    // MARK: Of a level and a logger

    /// False: no text is kept for that record.
    @inline(__always)
    mutating func append(_ r: borrowing RecordRef, to bytes: inout GrowingBytes) -> Bool {
        if !numbered.isEmpty, r.namesNumber > 0 {
            let (key, place) = LineHeads.numbered(r)
            if numbered[place].key == key {
                bytes.append(numbered[place].text)
                return true
            }
        }
        return names.isEmpty ? false : find(r, to: &bytes)
    }

    /// By level and logger themselves, not by number.
    @inline(never)
    private mutating func find(_ r: borrowing RecordRef, to bytes: inout GrowingBytes) -> Bool {
        guard let logger = ShortKey(r.logger) else { return false }
        let place = place(r, logger)
        guard names[place].level == r.level, names[place].logger == logger,
            !hasThread || names[place].identity == ObjectIdentifier(r.thread)
        else { return false }
        bytes.append(names[place].text)
        number(r, names[place].text)
        return true
    }

    @inline(__always)
    private static func numbered(_ r: borrowing RecordRef) -> (key: UInt64, place: Int) {
        // A level takes five bits; most levels are among a few.
        let place = r.namesNumber &* 4 &+ UInt64(r.level &>> 2)
        return (
            r.namesNumber &<< 5 | UInt64(r.level & 31),
            Int(truncatingIfNeeded: place & UInt64(numberedMost - 1))
        )
    }

    private mutating func number(_ r: borrowing RecordRef, _ text: ReadyBytes) {
        if r.namesNumber == 0 { return }
        if numbered.isEmpty {
            numbered = Array(repeating: NumberedName(), count: LineHeads.numberedMost)
        }
        let (key, place) = LineHeads.numbered(r)
        numbered[place] = NumberedName(text: text, key: key)
    }

    private func place(_ r: borrowing RecordRef, _ logger: ShortKey) -> Int {
        let thread = hasThread ? UInt64(r.thread.threadID) : 0
        let mixed = UInt64(truncatingIfNeeded: logger.hash) ^ UInt64(r.level) &<< 32 ^ thread &<< 40
        return Int((mixed &* 0x9E37_79B9_7F4A_7C15) &>> 56)
    }

    @safe mutating func keep(_ r: borrowing RecordRef, _ text: UnsafeRawBufferPointer?) {
        guard isKept, let logger = ShortKey(r.logger), let text = unsafe text,
            let ready = ReadyBytes(text)
        else { return }
        if names.isEmpty { names = Array(repeating: Name(), count: LineHeads.namesMost) }
        let thread = hasThread ? r.thread : nil
        names[place(r, logger)] = Name(
            thread: thread, identity: thread.map(ObjectIdentifier.init), level: r.level,
            logger: logger, text: ready)
        number(r, ready)
    }

    // MARK: Of a place in the source

    /// False: no text is kept for the place of that deferred record.
    @inline(__always)
    func appendPlace(_ r: borrowing RecordRef, to bytes: inout GrowingBytes) -> Bool {
        if places.isEmpty || r.formatNumber == 0 { return false }
        let place = Int(truncatingIfNeeded: r.formatNumber & UInt64(LineHeads.most - 1))
        guard places[place].number == r.formatNumber else { return false }
        unsafe places[place].text.withUnsafeBytes { bytes.append(text: $0) }
        return true
    }

    @safe mutating func keepPlace(_ r: borrowing RecordRef, _ text: UnsafeRawBufferPointer?) {
        guard isKept, r.formatNumber > 0, let text = unsafe text else { return }
        if places.isEmpty { places = Array(repeating: Place(), count: LineHeads.most) }
        let place = Int(truncatingIfNeeded: r.formatNumber & UInt64(LineHeads.most - 1))
        places[place] = unsafe Place(number: r.formatNumber, text: Array(text))
    }

    // MARK: Of a thread

    /// Where the texts of that thread are kept; less than 0: nowhere.
    @inline(__always)
    func find(_ thread: ThreadInfo) -> Int {
        if writers.isEmpty { return -1 }
        let place = Int(thread.threadID) & (LineHeads.most - 1)
        return writers[place].identity == ObjectIdentifier(thread) ? place : -1
    }

    @inline(__always)
    func appendStart(_ place: Int, to bytes: inout GrowingBytes) {
        bytes.append(writers[place].start)
    }

    @inline(__always)
    func appendEnd(_ place: Int, to bytes: inout GrowingBytes) {
        unsafe writers[place].end.withUnsafeBytes { bytes.append($0) }
    }

    @safe mutating func keep(
        _ thread: ThreadInfo, _ start: UnsafeRawBufferPointer?, _ end: [UInt8]
    ) {
        guard isKept, let start = unsafe start, let ready = ReadyBytes(start) else { return }
        if writers.isEmpty { writers = Array(repeating: Writer(), count: LineHeads.most) }
        writers[Int(thread.threadID) & (LineHeads.most - 1)] = Writer(
            thread: thread, identity: ObjectIdentifier(thread), start: ready, end: end)
    }
}
