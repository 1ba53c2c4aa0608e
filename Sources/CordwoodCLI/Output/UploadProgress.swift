// The progress of an upload, on a terminal: archives, bytes, rate and remaining time, in one line
// that is overwritten and removed at the end. Silent in a pipe. The callbacks run on the threads
// that send.

import Cordwood

/// SAFETY: the numbers are guarded by the mutex, which is never destroyed while a thread may call.
@safe final class UploadProgress: @unchecked Sendable {
    private let monitor = Monitor()
    private let store: String
    private var sizes: [String: UInt64] = [:]
    private var bytesAll: UInt64 = 0
    private var began = UploadProgress.now()
    private let isShown = Machine.isTerminal(2)
    private var bytesDone: UInt64 = 0
    private var archivesDone = 0
    private var isEnded = true

    init(_ store: String) { self.store = store }

    /// Counts the work that waits now.
    func begin() {
        guard isShown else { return }
        var sizes: [String: UInt64] = [:]
        for entry in (try? StoreSettings.queue(directory: store)) ?? [] {
            sizes[entry.archive] = entry.bytes
        }
        monitor.locked {
            self.sizes = sizes
            bytesAll = sizes.values.reduce(0, &+)
            (bytesDone, archivesDone) = (0, 0)
            began = UploadProgress.now()
            isEnded = false
        }
    }

    var callbacks: TargetCallbacks {
        var callbacks = TargetCallbacks()
        guard isShown else { return callbacks }
        callbacks.asksForRemovals = false
        callbacks.completed = { [self] archive, status, _ in
            if status == .ok { note(archive) }
        }
        return callbacks
    }

    private func note(_ archive: String) {
        monitor.locked {
            guard !isEnded else { return }
            bytesDone &+= sizes[archive] ?? 0
            archivesDone += 1
            Complaint.write("\r\u{1B}[K" + line, isProgress: true)
        }
    }

    /// Removes the line; the command's output takes its place.
    func end() {
        monitor.locked {
            isEnded = true
            if isShown && archivesDone > 0 { Complaint.write("\r\u{1B}[K", isProgress: true) }
        }
    }

    private var line: String {
        let seconds = max(UploadProgress.now() - began, 0.001)
        let rate = Double(bytesDone) / seconds
        var text = "\(archivesDone) of \(max(sizes.count, archivesDone)) archives, "
        text += "\(UploadProgress.size(bytesDone)) of \(UploadProgress.size(bytesAll)), "
        text += "\(UploadProgress.size(UInt64(rate)))/s"
        if bytesAll > bytesDone, rate > 0 {
            text += ", \(UInt64(Double(bytesAll - bytesDone) / rate) + 1) s left"
        }
        return text
    }

    static func size(_ bytes: UInt64) -> String {
        let units = ["B", "kB", "MB", "GB", "TB"]
        var value = Double(bytes)
        var unit = 0
        while value >= 999.5, unit < units.count - 1 {
            value /= 1_000
            unit += 1
        }
        let tenths = UInt64((value * 10).rounded())
        return unit == 0 || tenths >= 1_000
            ? "\((tenths + 5) / 10) \(units[unit])"
            : "\(tenths / 10).\(tenths % 10) \(units[unit])"
    }

    private static func now() -> Double {
        Double(Machine.monotonicNs()) / 1e9
    }
}
