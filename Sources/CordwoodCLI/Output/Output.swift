// Standard output: collects bytes and writes them in large pieces. When the reader of a pipe has
// gone, the command ends at once and quietly. Main thread only.

import Cordwood

final class Output {
    // SAFETY: only the command's main thread writes.
    @safe nonisolated(unsafe) static let standard = Output(descriptor: 1)

    private static let flushAt = 256 << 10
    /// The size of a pipe for long output: writer and reader then wait less for each other. Linux
    /// allows all users this much.
    private static let pipeBytes: Int32 = 1 << 20

    let isTerminal: Bool
    /// Colours: on a terminal, unless NO_COLOR is set to anything.
    let hasColor: Bool
    /// Exact bytes were requested: a terminal gets them, too.
    var isExact = false
    /// Lines are appended to it; call `settle` afterwards.
    var bytes: GrowingBytes {
        _read { yield unsafe collected }
        _modify { yield unsafe &collected }
    }
    /// Used by the main thread only, so its accesses need no check.
    @exclusivity(unchecked) private var collected = GrowingBytes()
    private var array: [UInt8] = []
    /// Something was written.
    private var isBegun = false
    private let descriptor: Int32

    private init(descriptor: Int32) {
        self.descriptor = descriptor
        isTerminal = Machine.isTerminal(descriptor)
        let unwanted = Machine.environment("NO_COLOR")?.isEmpty == false
        let dumb = Machine.environment("TERM") == "dumb"
        hasColor = isTerminal && !unwanted && !dumb
        _ = bytes.reserve(Output.flushAt * 2)
    }

    /// Writes once enough has collected.
    @inline(__always)
    func settle() {
        if bytes.count >= Output.flushAt { flush() }
    }

    func append(_ text: String) {
        var text = text
        text.withUTF8 { bytes.append(UnsafeRawBufferPointer($0)) }
        settle()
    }

    /// Writes what the closure appends to an array.
    func put(_ append: (inout [UInt8]) -> Void) {
        append(&array)
        unsafe array.withUnsafeBytes { bytes.append($0) }
        array.removeAll(keepingCapacity: true)
        settle()
    }

    @safe func append(_ data: UnsafeRawBufferPointer) {
        if data.count < Output.flushAt || isFiltered {
            bytes.append(data)
            settle()
        } else {
            flush()
            write(data)
        }
    }

    func flush() {
        if bytes.count == 0, !bytes.failed { return }
        ReadProgress.restart()
        if bytes.failed { fail(Errno.ENOMEM) }
        guard isFiltered else {
            write(unsafe bytes.bytes)
            return bytes.removeAll()
        }
        var text = unsafe Array(bytes.bytes)
        bytes.removeAll()
        // The rest of a character may still come.
        let rest = text.suffix(PlainText.unfinished(text))
        unsafe rest.withUnsafeBytes { bytes.append($0) }
        text.removeLast(rest.count)
        unsafe PlainText.json(text).withUnsafeBytes { write($0) }
    }

    /// Nobody can read what is written from now on.
    var isAbandoned: Bool { Files.isHungUp(descriptor) }

    /// Text is already filtered; JSON may contain control codes that terminals obey.
    private var isFiltered: Bool { isTerminal && !isExact }

    @safe private func write(_ data: UnsafeRawBufferPointer) {
        var done = 0
        if !isBegun, data.count >= Output.flushAt { Files.widenPipe(descriptor, Output.pipeBytes) }
        isBegun = true
        while done < data.count {
            let count = unsafe Files.writeOnce(
                descriptor, UnsafeRawBufferPointer(rebasing: data[done...]))
            if count > 0 {
                done += count
            } else if Errno.last == Errno.EAGAIN {
                Files.isWritable(descriptor, timeoutMs: -1)
            } else if Errno.last == Errno.EPIPE {
                Signals.exit(Exit.fine.rawValue)
            } else if Errno.last != Errno.EINTR {
                fail(Errno.last)
            }
        }
    }

    private func fail(_ error: Int32) -> Never {
        Complaint.tell("cannot write: \(Errno.text(error))")
        Signals.exit(Exit.failed.rawValue)
    }
}
