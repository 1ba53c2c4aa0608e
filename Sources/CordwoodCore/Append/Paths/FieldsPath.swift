// The usual record of a binding: a text, its place and a few short fields, written straight from
// the caller's struct (FORMAT §8.1, the bytes that RichBody writes). This path refuses everything
// else, which takes RichBody: long or odd values, JSON, trace ids, an exception, a time of its own,
// and faulty records. Any thread may enter, as in AppendPath.
// SAFETY: a pointer is followed only after its length and NULL were checked, and room and copy use
// the same words; the memory is the caller's during the call.

import CCordwood
import CShims

public enum FieldsPath {
    private static let fieldsMax = 16
    private static let bytesMax = 0xFFFF

    /// True: kept. False: nothing was written.
    @inline(never)
    public static func write(_ logger: LoggerBlock, _ record: UnsafePointer<cw_record>) -> Bool {
        let level = unsafe record.pointee.level
        // ORDER: relaxed. As in AppendPath.text (A16).
        guard unsafe record.pointee.struct_size == UInt32(MemoryLayout<cw_record>.size),
            level &- 1 < 24, unsafe level &+ cwa_load_relaxed_u32(logger) > 255,
            unsafe isPlain(record)
        else { return false }
        let (message, file) = unsafe (record.pointee.message, record.pointee.file)
        let (function, line) = unsafe (record.pointee.function, record.pointee.line)
        guard unsafe isShort(message), unsafe isShort(file), unsafe isShort(function) else {
            return false
        }
        let count = unsafe record.pointee.field_count
        guard let fields = unsafe record.pointee.fields, count > 0, count <= fieldsMax else {
            return false
        }
        return unsafe withUnsafeTemporaryAllocation(of: cw_field.self, capacity: fieldsMax) {
            let copies = unsafe $0.baseAddress.unsafelyUnwrapped
            var fieldBytes = 2
            for index in 0..<count {
                let field = unsafe fields[index]
                let bytes = unsafe valueBytes(field)
                guard unsafe isShort(field.key), bytes > 0 else { return false }
                unsafe copies[index] = unsafe field
                unsafe fieldBytes &+= 4 &+ field.key.length &+ bytes
            }
            let placeBytes = unsafe 8 &+ file.length &+ function.length
            let hasPlace = line != 0 || placeBytes > 8
            let bytes =
                unsafe 16 &+ message.length &+ fieldBytes &+ (hasPlace ? 8 &+ placeBytes : 0)
            guard
                let begun = unsafe AppendPath.begin(
                    logger, level | UInt32(RecordType.rich) << 8, bytes)
            else { return false }
            var cursor = unsafe FieldsCursor(at: begun.start + 16)
            unsafe cursor.section(SectionKind.message, message.length)
            unsafe cursor.put(message)
            cursor.section(SectionKind.fields, fieldBytes)
            cursor.put(UInt16(truncatingIfNeeded: count))
            for index in 0..<count { unsafe cursor.put(copies[index]) }
            if hasPlace {
                cursor.section(SectionKind.place, placeBytes)
                cursor.put(line)
                unsafe cursor.put(UInt16(truncatingIfNeeded: file.length))
                unsafe cursor.put(UInt16(truncatingIfNeeded: function.length))
                unsafe cursor.put(file)
                unsafe cursor.put(function)
            }
            return unsafe AppendPath.commit(begun, bytes)
        }
    }

    @inline(__always)
    private static func isPlain(_ record: UnsafePointer<cw_record>) -> Bool {
        let exception =
            unsafe record.pointee.exception_type.length | record.pointee.exception_message.length
            | record.pointee.exception_stacktrace.length
        return unsafe exception == 0 && record.pointee.time_ns == 0
            && record.pointee.trace_id == nil && record.pointee.span_id == nil
    }

    @inline(__always)
    private static func isShort(_ text: cw_str) -> Bool {
        unsafe UInt(bitPattern: text.length) <= UInt(bytesMax)
            && (text.data != nil || text.length == 0)
    }

    /// 0: not a value of this path.
    @inline(__always)
    private static func valueBytes(_ field: cw_field) -> Int {
        switch unsafe field.type {
        case UInt32(FieldType.int), UInt32(FieldType.uint), UInt32(FieldType.double): 8
        case UInt32(FieldType.bool): 1
        case UInt32(FieldType.string):
            unsafe isShort(field.value.s) ? 4 &+ field.value.s.length : 0
        default: 0
        }
    }
}

/// SAFETY: writes exactly what was counted above, into room the append path made.
@safe private struct FieldsCursor {
    private var at: UnsafeMutableRawPointer

    @inline(__always)
    init(at: UnsafeMutableRawPointer) { unsafe self.at = unsafe at }

    @inline(__always)
    mutating func put<Value: FixedWidthInteger>(_ value: Value) {
        unsafe at.storeBytes(of: value, as: Value.self)
        unsafe at += MemoryLayout<Value>.size
    }

    @inline(__always)
    mutating func section(_ kind: UInt8, _ count: Int) {
        put(UInt32(kind))
        put(UInt32(truncatingIfNeeded: count))
    }

    @inline(__always)
    mutating func put(_ text: cw_str) {
        guard let data = unsafe text.data else { return }
        unsafe FewBytes.copy(at, UnsafeRawPointer(data), text.length)
        unsafe at += text.length
    }

    mutating func put(_ field: cw_field) {
        unsafe put(UInt8(truncatingIfNeeded: field.type))
        put(StringForm.text)
        unsafe put(UInt16(truncatingIfNeeded: field.key.length))
        unsafe put(field.key)
        if unsafe field.type == UInt32(FieldType.string) {
            unsafe put(UInt32(truncatingIfNeeded: field.value.s.length))
            unsafe put(field.value.s)
        } else if unsafe field.type == UInt32(FieldType.bool) {
            unsafe put(field.value.b ? 1 as UInt8 : 0)
        } else {
            unsafe put(field.value.u)
        }
    }
}
