// The progress of reading, for people: records or bytes in one line of stderr, shown after a second
// and removed before anything else is printed. Silent if stderr is not a terminal, while output
// flows, and if standard output is a pipe, which may lead to a pager on that terminal. Main thread
// only; other threads may clear.

import Cordwood

enum ReadProgress {
    private static let firstSeconds = 1.0
    private static let nextSeconds = 0.2

    // SAFETY: the command's main thread alone writes; others read a flag that is false for them.
    @safe nonisolated(unsafe) private static var isShown = false
    @safe nonisolated(unsafe) private static var nextAt = now() + firstSeconds
    private static let isWanted = Machine.isTerminal(2) && FileFacts(of: 1)?.isPipe != true

    // SAFETY: as above.
    @safe nonisolated(unsafe) private static var added: UInt64 = 0

    static func update(_ records: UInt64) { show { Counted.text(records, "record") + " read" } }

    /// Adds to the number of records.
    static func add(_ records: UInt64) {
        added &+= records
        update(added)
    }

    /// `all`: counted at the start; a living program's store grows meanwhile.
    static func update(_ bytes: UInt64, of all: UInt64) {
        show { "\(UploadProgress.size(bytes)) of \(UploadProgress.size(max(all, bytes))) checked" }
    }

    private static func show(_ text: () -> String) {
        guard isWanted, now() >= nextAt else { return }
        nextAt = now() + nextSeconds
        isShown = true
        Complaint.write("\r\u{1B}[K\(text())", isProgress: true)
    }

    static func clear() {
        guard isShown else { return }
        isShown = false
        Complaint.write("\r\u{1B}[K", isProgress: true)
    }

    /// Called before output: removes the line, which returns after a second without output.
    static func restart() {
        clear()
        if isWanted { nextAt = now() + firstSeconds }
    }

    private static func now() -> Double {
        Double(Machine.monotonicNs()) / 1e9
    }
}
