// Standard output: bytes are gathered and written in large pieces. When the reader of a pipe has
// gone the command ends at once and quietly. Main thread only.

import Glibc

final class Output {
    // SAFETY: the command's main thread alone writes.
    @safe nonisolated(unsafe) static let standard = Output(descriptor: 1)

    private static let flushAt = 256 << 10

    let isTerminal: Bool
    /// Colours: on a terminal, unless NO_COLOR is set to anything.
    let hasColor: Bool
    /// What lines are appended to; `settle` afterwards.
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

    /// Writes when enough has gathered.
    @inline(__always)
    func settle() {
        if bytes.count >= Output.flushAt { flush() }
    }

    func append(_ text: String) {
        bytes.append(contentsOf: text.utf8)
        settle()
    }

    @safe func append(_ data: UnsafeRawBufferPointer) {
        if data.count < Output.flushAt {
            unsafe bytes.append(contentsOf: data)
            settle()
        } else {
            flush()
            write(data)
        }
    }

    func flush() {
        if bytes.isEmpty { return }
        guard isTerminal else {
            unsafe bytes.withUnsafeBytes { write($0) }
            return bytes.removeAll(keepingCapacity: true)
        }
        // The second half of a character may be still to come.
        let half = bytes.last == 0xC2
        if half { bytes.removeLast() }
        let harmless = Output.harmless(bytes)
        unsafe harmless.withUnsafeBytes { write($0) }
        bytes.removeAll(keepingCapacity: true)
        if half { bytes.append(0xC2) }
    }

    /// DEL and the control characters behind it (U+009B begins what some terminals obey) as JSON
    /// spells them; lines of text have none left.
    private static func harmless(_ bytes: [UInt8]) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(bytes.count)
        var at = 0
        while at < bytes.count {
            let byte = bytes[at]
            let next = at + 1 < bytes.count ? bytes[at + 1] : 0
            let isPair = byte == 0xC2 && (0x80...0x9F).contains(next)
            if byte == 0x7F || isPair {
                let code = isPair ? next : byte
                out += "\\u00".utf8
                for digit in [code >> 4, code & 15] {
                    out.append(digit < 10 ? 0x30 + digit : 0x57 + digit)
                }
            } else {
                out.append(byte)
            }
            at += isPair ? 2 : 1
        }
        return out
    }

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
