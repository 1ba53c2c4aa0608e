// Splits a file or a pipe into lines without holding more than one line: bytes between newlines,
// exactly as they are. One thread.
// SAFETY: `buffer` is freed in deinit and moved by `fill` only; 0 ≤ start ≤ scanned ≤ end ≤ its
// count, and a piece is read only where there is room for one.

import Cordwood

@safe struct LineReader: ~Copyable {
    @safe enum Line {
        case whole(UnsafeRawBufferPointer)
        /// The last line, without a newline after it.
        case unended(UnsafeRawBufferPointer)
        /// The beginning of a line beyond the limit; the rest is skipped.
        case cut(UnsafeRawBufferPointer, length: Int)
    }

    private static let pieceBytes = 256 << 10

    private let descriptor: Int32
    private let limit: Int
    private let reading: (Bool) -> Void
    private var buffer: UnsafeMutableRawBufferPointer
    /// Not returned yet: [start, end). [start, scanned) contains no newline.
    private var start = 0
    private var end = 0
    private var scanned = 0
    private var isAtEnd = false

    /// `reading`: called before each read(2) with true, and after it with false.
    init(descriptor: Int32, limit: Int, reading: @escaping (Bool) -> Void) {
        self.descriptor = descriptor
        self.limit = limit
        self.reading = reading
        unsafe buffer = .allocate(byteCount: LineReader.pieceBytes * 4, alignment: 16)
    }

    deinit { unsafe buffer.deallocate() }

    /// The bytes are valid until the next call. nil: the end. Throws errno.
    mutating func next() throws(ReadFailure) -> Line? {
        while true {
            if let newline = find() {
                let line = unsafe slice(start, newline)
                start = newline + 1
                scanned = start
                guard line.count > limit else { return unsafe .whole(line) }
                return unsafe .cut(
                    UnsafeRawBufferPointer(rebasing: line[..<limit]), length: line.count)
            }
            scanned = end
            if end - start > limit { return try cut() }
            if isAtEnd {
                guard end > start else { return nil }
                let line = unsafe slice(start, end)
                start = end
                return unsafe .unended(line)
            }
            try fill()
        }
    }

    private func slice(_ from: Int, _ to: Int) -> UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(rebasing: buffer[from..<to])
    }

    private func find() -> Int? {
        guard scanned < end, let base = unsafe buffer.baseAddress else { return nil }
        guard let found = unsafe Memory.find(10, in: base + scanned, end - scanned) else {
            return nil
        }
        return unsafe found - UnsafeRawPointer(base)
    }

    private mutating func fill() throws(ReadFailure) {
        if start > 0 {
            unsafe buffer.baseAddress!.copyMemory(
                from: buffer.baseAddress! + start, byteCount: end - start)
            end -= start
            scanned -= start
            start = 0
        }
        // Two: `cut` needs one after the limit, wherever in the first one the limit falls.
        if unsafe buffer.count - end < LineReader.pieceBytes * 2 {
            let larger = unsafe UnsafeMutableRawBufferPointer.allocate(
                byteCount: buffer.count * 2, alignment: 16)
            unsafe larger.copyMemory(from: slice(0, end))
            unsafe buffer.deallocate()
            unsafe buffer = larger
        }
        end += try read(into: end)
    }

    private mutating func read(into offset: Int) throws(ReadFailure) -> Int {
        let piece = unsafe UnsafeMutableRawBufferPointer(
            rebasing: buffer[offset..<(offset + LineReader.pieceBytes)])
        reading(true)
        let count = unsafe Files.readNext(descriptor, into: piece)
        reading(false)
        guard count >= 0 else { throw ReadFailure(errno: Errno.last) }
        isAtEnd = count == 0
        return count
    }

    /// INVARIANT: [start, start + limit) is returned and stays in place. The bytes after it contain
    /// no newline and are overwritten while reading on to the end of the line.
    private mutating func cut() throws(ReadFailure) -> Line {
        let head = unsafe slice(start, start + limit)
        var length = end - start
        let scratch = start + limit
        while true {
            let count = try read(into: scratch)
            if count == 0 { break }
            if let found = unsafe Memory.find(10, in: buffer.baseAddress! + scratch, count) {
                let newline = unsafe found - UnsafeRawPointer(buffer.baseAddress!)
                length += newline - scratch
                start = newline + 1
                end = scratch + count
                scanned = start
                return unsafe .cut(head, length: length)
            }
            length += count
        }
        start = 0
        end = 0
        scanned = 0
        return unsafe .cut(head, length: length)
    }
}

struct ReadFailure: Error {
    let errno: Int32
}
