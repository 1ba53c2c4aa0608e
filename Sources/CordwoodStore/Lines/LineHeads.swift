// The parts of lines that come again and again: what a line says of a level and a logger, and of a
// thread. Lines of every form keep them as bytes that are ready. One thread at a time.

import CordwoodCore

struct LineHeads {
    private struct Name {
        /// Held, so that no other thread has the same identity.
        var thread: ThreadInfo?
        var identity: ObjectIdentifier?
        /// No record's at first.
        var level = UInt8.max
        var logger = ShortKey()
        var text = ReadyBytes()
    }

    private struct Writer {
        var thread: ThreadInfo?
        var identity: ObjectIdentifier?
        var start = ReadyBytes()
        var end: [UInt8] = []
    }

    private static let most = 64
    private var names: [Name] = []
    private var writers: [Writer] = []
    private let isKept: Bool
    private let hasThread: Bool

    /// - Parameters:
    ///   - isKept: false: only one line is made, and nothing is found.
    ///   - hasThread: what is kept of a level and a logger also names the thread.
    init(isKept: Bool, hasThread: Bool = false) {
        self.isKept = isKept
        self.hasThread = hasThread
    }

    // MARK: Of a level and a logger

    /// False: there is no text for that record.
    @inline(__always)
    func append(_ r: borrowing RecordRef, to bytes: inout GrowingBytes) -> Bool {
        guard !names.isEmpty, let logger = ShortKey(r.logger) else { return false }
        let place = place(r, logger)
        guard names[place].level == r.level, names[place].logger == logger,
            !hasThread || names[place].identity == ObjectIdentifier(r.thread)
        else { return false }
        bytes.append(names[place].text)
        return true
    }

    @inline(__always)
    private func place(_ r: borrowing RecordRef, _ logger: ShortKey) -> Int {
        let thread = hasThread ? Int(r.thread.threadID) &* 5 : 0
        return (logger.hash ^ Int(r.level) ^ thread) & (LineHeads.most - 1)
    }

    @safe mutating func keep(_ r: borrowing RecordRef, _ text: UnsafeRawBufferPointer?) {
        guard isKept, let logger = ShortKey(r.logger), let text = unsafe text,
            let ready = ReadyBytes(text)
        else { return }
        if names.isEmpty { names = Array(repeating: Name(), count: LineHeads.most) }
        let thread = hasThread ? r.thread : nil
        names[place(r, logger)] = Name(
            thread: thread, identity: thread.map(ObjectIdentifier.init), level: r.level,
            logger: logger, text: ready)
    }

    // MARK: Of a thread

    /// Where the texts for that thread are; less than 0: nowhere.
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
