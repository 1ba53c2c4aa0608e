// Makes the text of records, and the names of their files, safe to show: on a terminal, through a
// pipe, in a file that is shown later. Control characters, characters that reverse lines, and bytes
// that are not UTF-8 never come through: `\x1b` stands for a byte, `\u2028` for a character beyond
// ASCII. A backslash in the text itself stays single; JSON distinguishes the two. Pure.
// SAFETY: views are read below their count and not kept.

import CordwoodCore
import CordwoodFormats

/// How much of its own form a text keeps.
public enum TextForm: Sendable {
    /// Keeps lines and tabs: every line but the first begins with `PlainText.continuation`.
    case lines
    /// Keeps neither: the text becomes one line.
    case oneLine
    /// Keeps everything, for users who ask for it.
    case raw
}

public enum PlainText {
    /// No record begins with this, so no text can pass for a record.
    public static let continuation: StaticString = "    | "

    /// - Parameter isEnd: the text ends with `bytes`; no line follows a newline there.
    @safe public static func append(
        _ bytes: UnsafeRawBufferPointer, as form: TextForm, to out: inout [UInt8],
        isEnd: Bool = true
    ) {
        var text = GrowingBytes()
        append(bytes, as: form, to: &text, isEnd: isEnd)
        unsafe out.append(contentsOf: text.bytes)
    }

    @safe @inline(__always)
    package static func append(
        _ bytes: UnsafeRawBufferPointer, as form: TextForm, to out: inout GrowingBytes,
        isEnd: Bool = true
    ) {
        guard form != .raw else { return out.append(bytes) }
        // Most texts are only printable ASCII.
        let shown = out.append(printable: bytes)
        if shown < bytes.count { appendRest(bytes, from: shown, form, isEnd, &out) }
    }

    @safe @inline(never)
    private static func appendRest(
        _ bytes: UnsafeRawBufferPointer, from start: Int, _ form: TextForm, _ isEnd: Bool,
        _ out: inout GrowingBytes
    ) {
        var at = start
        while at < bytes.count {
            let run = at
            at = plainEnd(bytes, at)
            if run < at { out.append(unsafe UnsafeRawBufferPointer(rebasing: bytes[run..<at])) }
            guard at < bytes.count else { return }
            at &+= appendPiece(bytes, at, form, isEnd, &out)
        }
    }

    public static func oneLine(_ text: String) -> String {
        var text = text
        var out: [UInt8] = []
        text.withUTF8 { append(UnsafeRawBufferPointer($0), as: .oneLine, to: &out) }
        return String(decoding: out, as: UTF8.self)
    }

    /// JSON made safe for a terminal: characters that a terminal obeys become JSON escapes, so the
    /// meaning stays the same. Of the ASCII control characters, JSON contains only newlines.
    public static func json(_ bytes: [UInt8]) -> [UInt8] {
        var out = GrowingBytes()
        unsafe bytes.withUnsafeBytes { bytes in
            var at = 0
            while at < bytes.count {
                let run = at
                at = plainEnd(bytes, at)
                out.append(unsafe UnsafeRawBufferPointer(rebasing: bytes[run..<at]))
                guard at < bytes.count else { break }
                switch piece(bytes, at) {
                case .control(let scalar, let size) where scalar >= 0x7F:
                    escape(scalar, &out)
                    at &+= size
                default:
                    out.append(Bytes.u8(bytes, at))
                    at &+= 1
                }
            }
        }
        return unsafe Array(out.bytes)
    }

    /// The number of bytes at the end that may begin something that `json` looks for.
    public static func unfinished(_ bytes: [UInt8]) -> Int {
        guard let last = bytes.last else { return 0 }
        if last == 0xC2 || last == 0xD8 || last == 0xE2 { return 1 }
        let isSecond = last == 0x80 || last == 0x81
        return isSecond && bytes.dropLast().last == 0xE2 ? 2 : 0
    }

    /// True for characters that terminals obey, that end a line for other programs, or that reverse
    /// a line.
    public static func isControl(_ scalar: UInt32) -> Bool {
        switch scalar {
        case 0..<0x20, 0x7F..<0xA0, 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }

    // ── Pieces ──

    private enum Piece {
        /// That many bytes, unchanged.
        case plain(Int)
        case control(UInt32, Int)
        /// Not UTF-8.
        case stray(Int)
    }

    @safe private static func piece(_ bytes: UnsafeRawBufferPointer, _ at: Int) -> Piece {
        let first = UInt32(Bytes.u8(bytes, at))
        if first < 0x80 { return isControl(first) ? .control(first, 1) : .plain(1) }
        let size = UTF8Scan.length(bytes, at)
        guard size > 0 else { return .stray(-size) }
        guard size < 4 else { return .plain(4) }
        // Two bytes carry 5 and 6 bits, three carry 4, 6 and 6.
        var scalar = first & (size == 2 ? 0x1F : 0x0F)
        for next in 1..<size { scalar = scalar << 6 | UInt32(Bytes.u8(bytes, at &+ next) & 0x3F) }
        return isControl(scalar) ? .control(scalar, size) : .plain(size)
    }

    /// The first byte from `start` on that is not shown unchanged.
    @safe static func plainEnd(_ bytes: UnsafeRawBufferPointer, _ start: Int) -> Int {
        var at = start
        while at < bytes.count {
            if bytes.count &- at >= 8, isPrintable(Bytes.u64(bytes, at)) {
                at &+= 8
            } else if case .plain(let size) = piece(bytes, at) {
                at &+= size
            } else {
                break
            }
        }
        return at
    }

    /// True if all eight bytes are between space and tilde.
    private static func isPrintable(_ word: UInt64) -> Bool {
        let below = word &- 0x2020_2020_2020_2020
        let above = word &+ 0x0101_0101_0101_0101
        return (word | below | above) & 0x8080_8080_8080_8080 == 0
    }

    /// Appends a piece that is not shown unchanged; returns the number of bytes consumed.
    @safe private static func appendPiece(
        _ bytes: UnsafeRawBufferPointer, _ at: Int, _ form: TextForm, _ isEnd: Bool,
        _ out: inout GrowingBytes
    ) -> Int {
        switch piece(bytes, at) {
        case .plain(let size): return size
        case .stray(let size):
            for next in 0..<size { escape(UInt32(Bytes.u8(bytes, at &+ next)), &out, isByte: true) }
            return size
        case .control(let scalar, let size):
            switch scalar {
            case 0x09 where form == .lines: out.append(0x09)
            // No line follows the last newline.
            case 0x0A where form == .lines && (at &+ 1 < bytes.count || !isEnd):
                out.append(0x0A)
                out.append(continuation)
            case 0x09: out.append("\\t")
            case 0x0A: out.append("\\n")
            case 0x0D: out.append("\\r")
            default: escape(scalar, &out, isByte: scalar < 0x80)
            }
            return size
        }
    }

    private static func escape(_ code: UInt32, _ out: inout GrowingBytes, isByte: Bool = false) {
        out.append(isByte ? "\\x" : "\\u")
        for digit in stride(from: isByte ? 4 : 12, through: 0, by: -4) {
            out.append(ASCII.hexDigit(UInt8(truncatingIfNeeded: code >> UInt32(digit) & 15)))
        }
    }
}
