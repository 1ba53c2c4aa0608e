// Writes a record from parts that are known only at run time, for handlers of other logging
// interfaces. The record carries the task's context as well.
// SAFETY: the views point into strings and arrays that their closures hold until the append has
// copied them; a context's memory lives until its owner is released.

import CShims
import CordwoodCore
import CordwoodStore

extension Logger {
    /// The lowest level that is written; `.off`: no level is.
    public var threshold: Level {
        // ORDER: relaxed. As for isEnabled (A16).
        let word = unsafe cwa_load_relaxed_u32(block)
        return word > 1 ? Level(number: UInt8(clamping: 256 - min(word, 255))) ?? .off : .off
    }

    /// Writes one record, whatever the threshold is. Returns the header's status.
    @discardableResult
    public func record(
        _ level: Level, message: String, fields: [(String, FieldInput)] = [],
        error: (any Error)? = nil, file: String = "", function: String = "", line: UInt32 = 0
    ) -> Int32 {
        guard unsafe cwa_load_relaxed_u32(block) != 0 else { return Status.closed }
        guard level.number >= 1, level.number <= 24 else { return Status.level }
        var (message, file, function) = (message, file, function)
        var type = error.map { String(describing: Swift.type(of: $0)) } ?? ""
        var text = error.map { "\($0)" } ?? ""
        return unsafe withContext(fields) { encoded, trace in
            message.withUTF8 { message in
                file.withUTF8 { file in
                    function.withUTF8 { function in
                        type.withUTF8 { type in
                            text.withUTF8 { text in
                                var body = RichBody()
                                unsafe body.message = UnsafeRawBufferPointer(message)
                                unsafe body.encodedFields = encoded
                                unsafe body.trace = trace
                                unsafe body.file = UnsafeRawBufferPointer(file)
                                unsafe body.function = UnsafeRawBufferPointer(function)
                                body.line = line
                                unsafe body.exceptionType = UnsafeRawBufferPointer(type)
                                unsafe body.exceptionMessage = UnsafeRawBufferPointer(text)
                                return unsafe AppendSlow.rich(block, level.number, body)
                            }
                        }
                    }
                }
            }
        }
    }

    /// Calls body with the record's fields, followed by those of the context, and the context's
    /// trace.
    private func withContext(
        _ fields: [(String, FieldInput)],
        _ body: (UnsafeRawBufferPointer, UnsafeRawPointer?) -> Int32
    ) -> Int32 {
        var view = unsafe cwi_context_view()
        guard let take = unsafe cwi_context_taker(), let owner = unsafe take(&view) else {
            guard fields.count <= FieldType.countMax else { return Status.limit }
            return unsafe RecordWriter.encode(fields).withUnsafeBytes { unsafe body($0, nil) }
        }
        defer { unsafe cwi_context_let_go(owner) }
        let rest = unsafe UnsafeRawBufferPointer(start: view.fields, count: Int(view.field_bytes))
        // The context's fields in the form of FORMAT §8.2; the record's own field of the same key
        // overrides.
        var counted: [UInt8] = unsafe withUnsafeBytes(of: UInt16(view.field_count)) {
            unsafe Array($0)
        }
        unsafe counted.append(contentsOf: rest)
        var all = fields
        let own = Set(fields.map(\.0))
        unsafe counted.withUnsafeBytes {
            var context = FieldIterator($0)
            while let (key, value) = context.next() {
                let key = unsafe String(decoding: key, as: UTF8.self)
                if !own.contains(key) { all.append((key, FieldInput(value))) }
            }
        }
        guard all.count <= FieldType.countMax else { return Status.limit }
        return unsafe RecordWriter.encode(all).withUnsafeBytes {
            unsafe body($0, view.has_trace != 0 ? view.trace : nil)
        }
    }
}

extension FieldInput {
    init(_ value: FieldValue) {
        switch value {
        case .int(let number): self = .int(number)
        case .uint(let number): self = .uint(number)
        case .double(let number): self = .double(number)
        case .bool(let flag): self = .bool(flag)
        case .string(let bytes): self = unsafe .string(String(decoding: bytes, as: UTF8.self))
        case .json(let bytes): self = unsafe .json(String(decoding: bytes, as: UTF8.self))
        }
    }
}
