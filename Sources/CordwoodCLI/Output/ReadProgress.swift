// How far reading is, for people: a count in one line of stderr, shown after a second and removed
// before anything else is printed. Silent if stderr is not a terminal, while output flows, and if
// standard output is a pipe, which may lead to a pager on that terminal. Main thread only; other
// threads may clear.

import Glibc

enum ReadProgress {
    /// Records between two looks at the clock.
    static let step: UInt64 = 1 << 14
    private static let firstSeconds = 1.0
    private static let nextSeconds = 0.2

    // SAFETY: the command's main thread alone writes; others read a flag that is false for them.
    @safe nonisolated(unsafe) private static var isShown = false
    @safe nonisolated(unsafe) private static var nextAt = now() + firstSeconds
    private static let isWanted = isatty(2) == 1 && !isPipe(1)

    static func update(_ records: UInt64) {
        guard isWanted, now() >= nextAt else { return }
        nextAt = now() + nextSeconds
        isShown = true
        Complaint.write("\r\u{1B}[K\(records) records read", isProgress: true)
    }

    static func clear() {
        guard isShown else { return }
        isShown = false
        Complaint.write("\r\u{1B}[K", isProgress: true)
    }

    /// Output comes: the line goes, and returns after a second without any.
    static func restart() {
        clear()
        if isWanted { nextAt = now() + firstSeconds }
    }

    private static func isPipe(_ descriptor: Int32) -> Bool {
        var status = stat()
        return unsafe fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO
    }

    private static func now() -> Double {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
