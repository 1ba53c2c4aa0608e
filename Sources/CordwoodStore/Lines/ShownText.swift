// What a line says of a record after its time, level, process and logger: the message, the fields
// and the stack trace. TextLine shows them. grep searches them as one text, which a value of this
// type holds, and has TextLine mark the matches. Pure.
// SAFETY: views are those of the record, read below their count; the value keeps a copy.

import CordwoodCore
import CordwoodFormats

extension TextLine {
    package struct Shown {
        /// The message, then ` key=value` for each field, then a newline and the stack trace.
        package var bytes: [UInt8]
        package let messageEnd: Int

        package init(_ r: borrowing RecordRef, form: TextForm) {
            bytes = unsafe Array(r.message)
            messageEnd = bytes.count
            var fields = GrowingBytes()
            let trace = Shown.appendFields(r, form, to: &fields)
            unsafe bytes.append(contentsOf: fields.bytes)
            if trace.count == 0 { return }
            bytes.append(0x0a)
            unsafe bytes.append(contentsOf: trace)
        }

        /// The fields of a line. Unless everything becomes one line, the stack trace is not among
        /// them: it is returned without trailing newlines, and goes on lines of its own.
        @safe static func appendFields(
            _ r: borrowing RecordRef, _ form: TextForm, to out: inout GrowingBytes
        ) -> UnsafeRawBufferPointer {
            let names: TextForm = form == .raw ? .raw : .oneLine
            var trace = Bytes.none
            var fields = RecordFields(r)
            while let (key, value) = fields.next() {
                if form != .oneLine, trace.count == 0, case .string(let text) = value,
                    Bytes.equal(key, Bytes.literal("exception.stacktrace"))
                {
                    unsafe trace = trimmed(text)
                    continue
                }
                out.append(0x20)
                PlainText.append(key, as: names, to: &out)
                out.append(0x3d)
                append(value, names, &out)
            }
            return unsafe trace
        }

        @safe private static func trimmed(_ text: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer
        {
            var end = text.count
            while end > 0, Bytes.u8(text, end &- 1) == 0x0a || Bytes.u8(text, end &- 1) == 0x0d {
                end &-= 1
            }
            return unsafe UnsafeRawBufferPointer(rebasing: text[..<end])
        }

        /// JSON is unchanged. Quotes strings that would not read as one word.
        private static func append(
            _ value: FieldValue, _ form: TextForm, _ out: inout GrowingBytes
        ) {
            if case .json(let text) = value {
                return PlainText.append(text, as: .oneLine, to: &out)
            }
            guard case .string(let bytes) = value else { return FieldText.append(value, to: &out) }
            let start = out.count
            let isWord =
                unsafe bytes.count > 0 && !bytes.contains { $0 <= 0x20 || $0 == 0x22 || $0 == 0x3d }
            if isWord {
                PlainText.append(bytes, as: form, to: &out)
                if out.count &- start == bytes.count { return }
                // The string contains something to escape, so its backslashes must be escaped, too.
                out.resize(start)
            }
            var quoted = GrowingBytes()
            for at in 0..<bytes.count {
                let byte = Bytes.u8(bytes, at)
                if byte == 0x22 || byte == 0x5c { quoted.append(0x5c) }
                quoted.append(byte)
            }
            out.append(0x22)
            PlainText.append(unsafe quoted.bytes, as: .oneLine, to: &out)
            if quoted.failed { out.fail() }
            out.append(0x22)
        }
    }
}

/// Ranges of a TextLine.Shown to show in another colour: ascending, not empty, apart.
struct TextMarks {
    let ranges: [Range<Int>]

    /// - Parameter start: the place of `bytes` in the text.
    @safe func append(
        _ bytes: UnsafeRawBufferPointer, at start: Int, as form: TextForm,
        to out: inout GrowingBytes
    ) {
        if ranges.isEmpty { return PlainText.append(bytes, as: form, to: &out) }
        var at = 0
        func append(to end: Int) {
            let piece = unsafe UnsafeRawBufferPointer(rebasing: bytes[at..<end])
            PlainText.append(piece, as: form, to: &out, isEnd: end == bytes.count)
            at = end
        }
        for range in ranges {
            let from = max(range.lowerBound &- start, at)
            let to = min(range.upperBound &- start, bytes.count)
            guard from < to else { continue }
            append(to: from)
            out.append("\u{1B}[1;31m")
            append(to: to)
            out.append("\u{1B}[0m")
        }
        append(to: bytes.count)
    }
}
