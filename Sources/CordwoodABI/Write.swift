// The write calls: the shortcut from C to the hot path.

import CCordwood
import CShims
import Cordwood
import CordwoodCore

@_cdecl("cw_write") @implementation
public func cw_write(
    _ logger: OpaquePointer!, _ level: cw_level, _ message: UnsafePointer<CChar>!, _ length: Int
) -> cw_status {
    guard let logger else { return LastError.setWrite(Status.argument, 0, .handle) }
    let result = AppendPath.text(LoggerBlock(logger), level, message, length)
    guard result < 0 else { return result }
    let isArgument = result == Status.argument
    return LastError.setWrite(
        result, isArgument ? UInt32(clamping: UInt(bitPattern: length)) : level,
        isArgument ? .message : .none)
}

/// The header's inline function for hosts that cannot inline C.
@_cdecl("cw_enabled")
public func enabledForForeignHosts(_ logger: OpaquePointer?, _ level: UInt32) -> Bool {
    guard let logger else { return false }
    return level &+ cwa_load_relaxed_u32(UnsafeRawPointer(logger)) > 255
}

@_cdecl("cw_write_record") @implementation
public func cw_write_record(
    _ logger: OpaquePointer!, _ record: UnsafePointer<cw_record>!
) -> cw_status {
    guard let logger, let record else { return LastError.setWrite(Status.argument, 0, .handle) }
    var checked = cw_record()
    let stamp = Stamped.copy(record, into: &checked)
    guard stamp == Status.ok else { return LastError.setWrite(stamp, record.pointee.struct_size) }
    let block = LoggerBlock(logger)
    let refusal = AppendSlow.refusal(block, checked.level)
    guard refusal == Status.ok else {
        return refusal < 0 ? LastError.setWrite(refusal, checked.level) : refusal
    }
    var wrong = RecordCheck.Wrong()
    let validity = RecordCheck.validity(checked, &wrong)
    guard validity == Status.ok else {
        return LastError.setWrite(validity, wrong.value, wrong.what, wrong.index)
    }
    let result = withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { trace in
        AppendSlow.rich(
            block, UInt8(checked.level), RecordCheck.body(checked, trace.baseAddress!))
    }
    return result < 0 ? LastError.setWrite(result, checked.level) : result
}

enum RecordCheck {
    static let stringBytesMax = 1 << 30

    /// What is wrong with a record, for cw_last_error.
    struct Wrong {
        var what = LastError.Detail.none
        var value: UInt32 = 0
        var index = 0
    }

    static func validity(_ record: cw_record, _ wrong: inout Wrong) -> Int32 {
        guard isValid(record.message), isValid(record.file), isValid(record.function),
            isValid(record.exception_type), isValid(record.exception_message),
            isValid(record.exception_stacktrace)
        else {
            wrong.what = .string
            return Status.argument
        }
        // A size_t arrives as a signed word: SIZE_MAX is -1 here.
        guard record.field_count >= 0, record.field_count <= FieldType.countMax else {
            wrong.what = .fieldCount
            wrong.value = UInt32(clamping: UInt(bitPattern: record.field_count))
            return Status.limit
        }
        guard record.field_count == 0 || record.fields != nil else {
            wrong.what = .fields
            wrong.value = UInt32(record.field_count)
            return Status.argument
        }
        guard record.trace_id != nil || record.span_id == nil else {
            wrong.what = .span
            return Status.argument
        }
        for i in 0..<record.field_count {
            let field = record.fields[i]
            wrong.index = i
            guard isValid(field.key), field.key.length <= 0xFFFF else {
                wrong.what = .fieldKey
                wrong.value = UInt32(clamping: UInt(bitPattern: field.key.length))
                return Status.argument
            }
            switch field.type {
            case UInt32(CW_TYPE_INT), UInt32(CW_TYPE_UINT), UInt32(CW_TYPE_DOUBLE),
                UInt32(CW_TYPE_BOOL):
                break
            case UInt32(CW_TYPE_STRING):
                guard isValid(field.value.s) else {
                    wrong.what = .fieldValue
                    wrong.value = UInt32(clamping: UInt(bitPattern: field.value.s.length))
                    return Status.argument
                }
            default:
                wrong.what = .fieldType
                wrong.value = field.type
                return Status.argument
            }
        }
        return Status.ok
    }

    private static func isValid(_ text: cw_str) -> Bool {
        text.length >= 0 && text.length <= stringBytesMax
            && (text.data != nil || text.length == 0)
    }

    /// trace: 32 bytes of the caller's that hold the trace during the append.
    static func body(_ record: cw_record, _ trace: UnsafeMutableRawPointer) -> RichBody {
        var body = RichBody()
        body.message = bytes(record.message)
        body.fields = record.fields
        body.fieldCount = Int(record.field_count)
        body.file = bytes(record.file)
        body.function = bytes(record.function)
        body.line = record.line
        body.timeNs = record.time_ns
        body.exceptionType = bytes(record.exception_type)
        body.exceptionMessage = bytes(record.exception_message)
        body.exceptionStacktrace = bytes(record.exception_stacktrace)
        if let id = record.trace_id {
            TraceBytes.fill(
                trace, id, record.span_id, UInt8(truncatingIfNeeded: record.trace_flags))
            body.trace = UnsafeRawPointer(trace)
        }
        return body
    }

    private static func bytes(_ text: cw_str) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: text.length == 0 ? nil : text.data, count: Int(text.length))
    }
}

enum TraceBytes {
    /// FORMAT §8.4.
    static func fill(
        _ target: UnsafeMutableRawPointer, _ trace: UnsafePointer<UInt8>,
        _ span: UnsafePointer<UInt8>?, _ flags: UInt8
    ) {
        target.initializeMemory(as: UInt8.self, repeating: 0, count: TraceLayout.bytes)
        target.copyMemory(from: trace, byteCount: 16)
        if let span { (target + 16).copyMemory(from: span, byteCount: 8) }
        target.storeBytes(of: flags, toByteOffset: 24, as: UInt8.self)
    }
}

@_cdecl("cw_context_set") @implementation
public func cw_context_set(
    _ key: UnsafePointer<CChar>!, _ value: UnsafePointer<CChar>!
) -> cw_status {
    guard let key, key.pointee != 0 else {
        return failed(Status.argument, "cw_context_set: no key")
    }
    func bytes(_ text: UnsafePointer<CChar>) -> UnsafeBufferPointer<UInt8> {
        UnsafeRawBufferPointer(start: text, count: CText.length(text))
            .assumingMemoryBound(to: UInt8.self)
    }
    let result = ThreadContext.set(key: bytes(key), value: value.map(bytes))
    return result == Status.ok
        ? result : failed(result, "cw_context_set: the context would exceed 4,096 bytes")
}

@_cdecl("cw_trace_set") @implementation
public func cw_trace_set(
    _ trace: UnsafePointer<UInt8>!, _ span: UnsafePointer<UInt8>!, _ flags: UInt8
) -> cw_status {
    guard let trace else {
        guard span == nil else {
            return failed(Status.argument, "cw_trace_set: a span id without a trace id")
        }
        return ThreadContext.setTrace(nil)
    }
    return withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { buffer in
        TraceBytes.fill(buffer.baseAddress!, trace, span, flags)
        return ThreadContext.setTrace(buffer.baseAddress!)
    }
}
