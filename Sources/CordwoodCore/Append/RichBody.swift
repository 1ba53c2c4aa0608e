// A record with fields, place, trace, own time, exception or kind, encoded straight into the chunk
// from the caller's pointers (FORMAT §8.1). Nothing is copied twice, nothing comes from the heap.

import CCordwood
import CShims

public struct RichBody: RecordBody {
    public var message = UnsafeRawBufferPointer(start: nil, count: 0)
    /// SAFETY: the caller's memory, valid during the append.
    public var fields: UnsafePointer<cw_field>?
    public var fieldCount = 0
    /// Fields already encoded (FORMAT §8.2), instead of `fields`.
    public var encodedFields = UnsafeRawBufferPointer(start: nil, count: 0)
    public var file = UnsafeRawBufferPointer(start: nil, count: 0)
    public var function = UnsafeRawBufferPointer(start: nil, count: 0)
    public var line: UInt32 = 0
    /// 25 bytes (FORMAT §8.4), or nil: the thread's.
    public var trace: UnsafeRawPointer?
    public var timeNs: UInt64 = 0
    public var exceptionType = UnsafeRawBufferPointer(start: nil, count: 0)
    public var exceptionMessage = UnsafeRawBufferPointer(start: nil, count: 0)
    public var exceptionStacktrace = UnsafeRawBufferPointer(start: nil, count: 0)
    public var kind: UInt8 = 0
    var originalLength: UInt64?

    public init() {}

    var type: UInt8 { RecordType.rich }
    var flags: UInt16 { originalLength == nil ? 0 : RecordHeader.flagTruncated }

    private var hasException: Bool {
        exceptionType.count + exceptionMessage.count + exceptionStacktrace.count > 0
    }

    private var hasPlace: Bool { line != 0 || file.count > 0 || function.count > 0 }

    private var fieldBytes: Int {
        if encodedFields.count > 0 { return encodedFields.count }
        guard let fields, fieldCount > 0 else { return 0 }
        var bytes = 2
        for i in 0..<fieldCount { bytes += 4 + fields[i].key.length + valueBytes(fields[i]) }
        return bytes
    }

    private func valueBytes(_ field: cw_field) -> Int {
        switch field.type {
        case UInt32(FieldType.bool): return 1
        case UInt32(FieldType.string): return 4 + field.value.s.length
        default: return 8
        }
    }

    var bytes: Int {
        let section = SectionKind.headerBytes
        var sum = section + message.count
        let fields = fieldBytes
        if fields > 0 { sum += section + fields }
        if hasPlace { sum += section + 8 + min(file.count, 0xFFFF) + min(function.count, 0xFFFF) }
        if trace != nil { sum += section + TraceLayout.bytes }
        if timeNs != 0 { sum += section + 8 }
        if hasException {
            sum +=
                section + 12 + exceptionType.count + exceptionMessage.count
                + exceptionStacktrace.count
        }
        if kind != 0 { sum += section + 1 }
        if originalLength != nil { sum += section + 8 }
        return sum
    }

    func truncated(to limit: Int) -> RichBody? {
        var cut = self
        cut.originalLength = UInt64(message.count)
        cut.message = UnsafeRawBufferPointer(start: nil, count: 0)
        // Strings of the exception are cut with the message: the stack trace last written goes
        // first.
        if cut.bytes > limit { cut.exceptionStacktrace = cut.message }
        guard cut.bytes <= limit else { return nil }
        let room = min(message.count, limit - cut.bytes)
        cut.message = UnsafeRawBufferPointer(rebasing: message.prefix(room))
        return cut
    }

    func write(to start: UnsafeMutableRawPointer) {
        var cursor = Cursor(at: start)
        cursor.section(SectionKind.message, message.count)
        cursor.bytes(message)
        writeFields(&cursor)
        if hasPlace {
            let file = file.prefix(0xFFFF)
            let function = function.prefix(0xFFFF)
            cursor.section(SectionKind.place, 8 + file.count + function.count)
            cursor.put(line)
            cursor.put(UInt16(file.count))
            cursor.put(UInt16(function.count))
            cursor.bytes(UnsafeRawBufferPointer(rebasing: file))
            cursor.bytes(UnsafeRawBufferPointer(rebasing: function))
        }
        if let trace {
            cursor.section(SectionKind.trace, TraceLayout.bytes)
            cursor.bytes(UnsafeRawBufferPointer(start: trace, count: TraceLayout.bytes))
        }
        if timeNs != 0 {
            cursor.section(SectionKind.time, 8)
            cursor.put(timeNs)
        }
        if hasException { writeException(&cursor) }
        if kind != 0 {
            cursor.section(SectionKind.kind, 1)
            cursor.put(kind)
        }
        if let originalLength {
            cursor.section(SectionKind.originalLength, 8)
            cursor.put(originalLength)
        }
    }

    private func writeException(_ cursor: inout Cursor) {
        cursor.section(
            SectionKind.exception,
            12 + exceptionType.count + exceptionMessage.count + exceptionStacktrace.count)
        cursor.put(UInt32(exceptionType.count))
        cursor.put(UInt32(exceptionMessage.count))
        cursor.put(UInt32(exceptionStacktrace.count))
        cursor.bytes(exceptionType)
        cursor.bytes(exceptionMessage)
        cursor.bytes(exceptionStacktrace)
    }

    private func writeFields(_ cursor: inout Cursor) {
        let bytes = fieldBytes
        guard bytes > 0 else { return }
        cursor.section(SectionKind.fields, bytes)
        if encodedFields.count > 0 {
            cursor.bytes(encodedFields)
            return
        }
        guard let fields else { return }
        cursor.put(UInt16(fieldCount))
        for i in 0..<fieldCount {
            let field = fields[i]
            cursor.put(UInt8(truncatingIfNeeded: field.type))
            cursor.put(UInt8(0))
            cursor.put(UInt16(field.key.length))
            cursor.bytes(UnsafeRawBufferPointer(start: field.key.data, count: field.key.length))
            switch UInt8(truncatingIfNeeded: field.type) {
            case FieldType.bool: cursor.put(UInt8(field.value.b ? 1 : 0))
            case FieldType.string:
                cursor.put(UInt32(field.value.s.length))
                cursor.bytes(
                    UnsafeRawBufferPointer(start: field.value.s.data, count: field.value.s.length))
            default: cursor.put(field.value.u)
            }
        }
    }

    /// SAFETY: writes exactly what `bytes` counted, into room the append path made.
    private struct Cursor {
        var at: UnsafeMutableRawPointer

        mutating func put<T: FixedWidthInteger>(_ value: T) {
            at.storeBytes(of: value, as: T.self)
            at += MemoryLayout<T>.size
        }

        mutating func bytes(_ source: UnsafeRawBufferPointer) {
            guard let start = source.baseAddress, source.count > 0 else { return }
            at.copyMemory(from: start, byteCount: source.count)
            at += source.count
        }

        mutating func section(_ kind: UInt8, _ count: Int) {
            put(UInt32(kind))
            put(UInt32(count))
        }
    }
}

extension AppendSlow {
    /// A record with everything; the caller has checked pointers and lengths.
    public static func rich(_ logger: LoggerBlock, _ level: UInt8, _ body: RichBody) -> Int32 {
        append(logger, level, body)
    }
}
