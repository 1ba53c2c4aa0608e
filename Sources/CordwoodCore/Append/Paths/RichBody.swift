// A record with fields, place, trace, own time, exception or kind, encoded straight into the chunk
// from the caller's pointers (FORMAT §8.1). Nothing is copied twice or allocated from the heap.
// SAFETY: all pointers are the caller's and stay valid during the append; `write` fills exactly the
// `bytes` that the append path made room for.

import CCordwood
import CShims

@safe public struct RichBody: RecordBody {
    public var message = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    /// SAFETY: the caller's memory, valid during the append.
    public var fields: UnsafePointer<cw_field>?
    public var fieldCount = 0
    /// Already encoded fields (FORMAT §8.2), instead of `fields`.
    public var encodedFields = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    public var file = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    public var function = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    public var line: UInt32 = 0
    /// 25 bytes (FORMAT §8.4); nil uses the thread's.
    public var trace: UnsafeRawPointer?
    public var timeNs: UInt64 = 0
    public var exceptionType = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    public var exceptionMessage = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    public var exceptionStacktrace = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    public var kind: UInt8 = 0
    var originalLength: UInt64?
    /// The number of bytes cut from the last of `fields`, a string.
    private var lastCutBytes = 0

    public init() {}

    var type: UInt8 { RecordType.rich }
    var flags: UInt16 { originalLength == nil ? 0 : RecordHeader.flagTruncated }

    private var hasException: Bool {
        unsafe exceptionType.count + exceptionMessage.count + exceptionStacktrace.count > 0
    }

    private var hasPlace: Bool { unsafe line != 0 || file.count > 0 || function.count > 0 }

    private var fieldBytes: Int {
        if unsafe encodedFields.count > 0 { return unsafe encodedFields.count }
        guard let fields = unsafe fields, fieldCount > 0 else { return 0 }
        var bytes = 2
        for i in 0..<fieldCount { unsafe bytes += 4 + fields[i].key.length + valueBytes(fields[i]) }
        return bytes - lastCutBytes
    }

    private func valueBytes(_ field: cw_field) -> Int {
        switch unsafe field.type {
        case UInt32(FieldType.bool): return 1
        case UInt32(FieldType.string), JSONCheck.fieldType: return unsafe 4 + field.value.s.length
        default: return 8
        }
    }

    private func isString(_ field: cw_field) -> Bool {
        unsafe field.type == UInt32(FieldType.string) || field.type == JSONCheck.fieldType
    }

    var bytes: Int {
        let section = SectionKind.headerBytes
        var sum = unsafe section + message.count
        let fields = fieldBytes
        if fields > 0 { sum += section + fields }
        if hasPlace {
            unsafe sum += section + 8 + min(file.count, 0xFFFF) + min(function.count, 0xFFFF)
        }
        if unsafe trace != nil { sum += section + TraceLayout.bytes }
        if timeNs != 0 { sum += section + 8 }
        if hasException {
            unsafe sum +=
                section + 12 + exceptionType.count + exceptionMessage.count
                + exceptionStacktrace.count
        }
        if kind != 0 { sum += section + 1 }
        if originalLength != nil { sum += section + 8 }
        return sum
    }

    func truncated(to limit: Int) -> RichBody? {
        var cut = self
        cut.originalLength = unsafe UInt64(message.count)
        unsafe cut.message = UnsafeRawBufferPointer(start: nil, count: 0)
        // The strings of the exception are cut along with the message: the stack trace, written
        // last, goes first.
        if cut.bytes > limit { unsafe cut.exceptionStacktrace = cut.message }
        // If the fields would take all the room, the message keeps half of it.
        if cut.bytes > limit { unsafe cut.cutFields(to: limit - min(message.count, limit / 2)) }
        guard cut.bytes <= limit else { return nil }
        let room = unsafe min(message.count, limit - cut.bytes)
        unsafe cut.message = UnsafeRawBufferPointer(rebasing: message.prefix(room))
        return cut
    }

    /// Keeps the first fields, as many as fit, and cuts a string that is too large.
    private mutating func cutFields(to limit: Int) {
        guard let fields = unsafe fields, unsafe encodedFields.count == 0 else { return }
        let all = fieldCount
        fieldCount = 0
        var room = limit - bytes - SectionKind.headerBytes - 2
        while fieldCount < all {
            let field = unsafe fields[fieldCount]
            let wanted = unsafe 4 + field.key.length + valueBytes(field)
            let excess = wanted - room
            if excess > 0 {
                guard unsafe isString(field), unsafe excess < field.value.s.length
                else { return }
                lastCutBytes = excess
            }
            fieldCount += 1
            room -= wanted
            if excess > 0 { return }
        }
    }

    func write(to start: UnsafeMutableRawPointer) {
        var cursor = unsafe BodyCursor(at: start)
        unsafe cursor.section(SectionKind.message, message.count)
        unsafe cursor.bytes(message)
        writeFields(&cursor)
        if hasPlace {
            let fileBytes = unsafe min(file.count, 0xFFFF)
            let functionBytes = unsafe min(function.count, 0xFFFF)
            cursor.section(SectionKind.place, 8 + fileBytes + functionBytes)
            cursor.put(line)
            cursor.put(UInt16(truncatingIfNeeded: fileBytes))
            cursor.put(UInt16(truncatingIfNeeded: functionBytes))
            unsafe cursor.bytes(
                UnsafeRawBufferPointer(start: file.baseAddress, count: fileBytes))
            unsafe cursor.bytes(
                UnsafeRawBufferPointer(start: function.baseAddress, count: functionBytes))
        }
        if let trace = unsafe trace {
            cursor.section(SectionKind.trace, TraceLayout.bytes)
            unsafe cursor.bytes(UnsafeRawBufferPointer(start: trace, count: TraceLayout.bytes))
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

    private func writeException(_ cursor: inout BodyCursor) {
        unsafe cursor.section(
            SectionKind.exception,
            12 + exceptionType.count + exceptionMessage.count + exceptionStacktrace.count)
        unsafe cursor.put(UInt32(exceptionType.count))
        unsafe cursor.put(UInt32(exceptionMessage.count))
        unsafe cursor.put(UInt32(exceptionStacktrace.count))
        unsafe cursor.bytes(exceptionType)
        unsafe cursor.bytes(exceptionMessage)
        unsafe cursor.bytes(exceptionStacktrace)
    }

    private func writeFields(_ cursor: inout BodyCursor) {
        let bytes = fieldBytes
        guard bytes > 0 else { return }
        cursor.section(SectionKind.fields, bytes)
        if unsafe encodedFields.count > 0 {
            unsafe cursor.bytes(encodedFields)
            return
        }
        guard let fields = unsafe fields else { return }
        cursor.put(UInt16(fieldCount))
        for i in 0..<fieldCount {
            let field = unsafe fields[i]
            let isString = unsafe isString(field)
            let cut = i == fieldCount - 1 ? lastCutBytes : 0
            let text = unsafe UnsafeRawBufferPointer(
                start: field.value.s.data, count: isString ? field.value.s.length - cut : 0)
            // A text that was cut is no longer JSON, and a host may call other text JSON by
            // mistake.
            let isJSON =
                unsafe field.type == JSONCheck.fieldType && cut == 0 && JSONCheck.isValid(text)
            unsafe cursor.put(isString ? FieldType.string : UInt8(truncatingIfNeeded: field.type))
            cursor.put(isJSON ? StringForm.json : StringForm.text)
            unsafe cursor.put(UInt16(field.key.length))
            unsafe cursor.bytes(
                UnsafeRawBufferPointer(start: field.key.data, count: field.key.length))
            if isString {
                cursor.put(UInt32(text.count))
                cursor.bytes(text)
            } else if unsafe field.type == UInt32(FieldType.bool) {
                unsafe cursor.put(UInt8(field.value.b ? 1 : 0))
            } else {
                unsafe cursor.put(field.value.u)
            }
        }
    }
}

extension AppendSlow {
    /// A record with all parts; the caller has checked pointers and lengths.
    public static func rich(_ logger: LoggerBlock, _ level: UInt8, _ body: RichBody) -> Int32 {
        let bytes = body.bytes
        let isKept = unsafe AppendPath.fits(logger, level, body, bytes)
        return unsafe isKept ? Status.ok : append(logger, level, body)
    }
}

/// SAFETY: writes exactly what a body's `bytes` counted, into room the append path made.
@safe struct BodyCursor {
    var at: UnsafeMutableRawPointer

    mutating func put<T: FixedWidthInteger>(_ value: T) {
        unsafe at.storeBytes(of: value, as: T.self)
        unsafe at += MemoryLayout<T>.size
    }

    @safe mutating func bytes(_ source: UnsafeRawBufferPointer) {
        guard let start = source.baseAddress, source.count > 0 else { return }
        unsafe at.copyMemory(from: start, byteCount: source.count)
        unsafe at += source.count
    }

    mutating func section(_ kind: UInt8, _ count: Int) {
        put(UInt32(kind))
        put(UInt32(count))
    }
}
