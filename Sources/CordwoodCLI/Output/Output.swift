// Standard output: collects bytes and writes them in large pieces. When the reader of a pipe has
// gone, the command ends at once and quietly. Main thread only.

import Cordwood
import Glibc

final class Output {
    // SAFETY: only the command's main thread writes.
    @safe nonisolated(unsafe) static let standard = Output(descriptor: 1)

    private static let flushAt = 256 << 10

    let isTerminal: Bool
    /// Colours: on a terminal, unless NO_COLOR is set to anything.
    let hasColor: Bool
    /// Exact bytes were requested: a terminal gets them, too.
    var isExact = false
    /// Lines are appended to it; call `settle` afterwards.
    var bytes: [UInt8] = []
    private let descriptor: Int32

    private init(descriptor: Int32) {
        self.descriptor = descriptor
        isTerminal = isatty(descriptor) == 1
        let unwanted = unsafe getenv("NO_COLOR").map { unsafe $0.pointee != 0 } ?? false
        let dumb = unsafe getenv("TERM").map { unsafe String(cString: $0) == "dumb" } ?? false
        hasColor = isTerminal && !unwanted && !dumb
        bytes.reserveCapacity(Output.flushAt * 2)
    }

    /// Writes once enough has collected.
    @inline(__always)
    func settle() {
        if bytes.count >= Output.flushAt { flush() }
    }

    func append(_ text: String) {
        bytes.append(contentsOf: text.utf8)
        settle()
    }

    @safe func append(_ data: UnsafeRawBufferPointer) {
        if data.count < Output.flushAt || isFiltered {
            unsafe bytes.append(contentsOf: data)
            settle()
        } else {
            flush()
            write(data)
        }
    }

    func flush() {
        if bytes.isEmpty { return }
        ReadProgress.restart()
        guard isFiltered else {
            unsafe bytes.withUnsafeBytes { write($0) }
            return bytes.removeAll(keepingCapacity: true)
        }
        // The rest of a character may still come.
        let rest = Array(bytes.suffix(PlainText.unfinished(bytes)))
        bytes.removeLast(rest.count)
        let harmless = PlainText.json(bytes)
        unsafe harmless.withUnsafeBytes { write($0) }
        bytes.removeAll(keepingCapacity: true)
        bytes += rest
    }

    /// Text is already filtered; JSON may contain control codes that terminals obey.
    private var isFiltered: Bool { isTerminal && !isExact }

    @safe private func write(_ data: UnsafeRawBufferPointer) {
        var done = 0
        while done < data.count {
            let count = unsafe Glibc.write(descriptor, data.baseAddress! + done, data.count - done)
            if count > 0 {
                done += count
            } else if errno == EAGAIN {
                var wait = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                unsafe poll(&wait, 1, -1)
            } else if errno == EPIPE {
                exit(Exit.fine.rawValue)
            } else if errno != EINTR {
                unsafe Complaint.tell("cannot write: \(String(cString: strerror(errno)))")
                exit(Exit.failed.rawValue)
            }
        }
    }
}
