// The write calls: the shortcut from C to the hot path.
// SAFETY: the record's pointers are the host's during the call; RecordCheck has looked at NULL and
// lengths of all of them before RichBody follows one.

import CCordwood
import CShims
import CordwoodCore
import CordwoodEngine
import CordwoodFormats
import CordwoodShip
import CordwoodStore
import CordwoodTrace

@_cdecl("cw_write") @implementation
public func cw_write(
    _ logger: OpaquePointer!, _ level: cw_level, _ message: UnsafePointer<CChar>!, _ length: Int
) -> cw_status {
    guard let logger = unsafe logger else { return LastError.setWrite(Status.argument, 0, .handle) }
    let result = unsafe AppendPath.text(LoggerBlock(logger), level, message, length)
    guard result < 0 else { return result }
    return result == Status.argument
        ? LastError.setWrite(result, length: length, .message)
        : LastError.setWrite(result, level)
}

@_cdecl("cw_site_write") @implementation
public func cw_site_write(
    _ logger: OpaquePointer!, _ level: cw_level, _ site: UnsafeMutablePointer<cw_site>!,
    _ arguments: UnsafePointer<cw_arg>!
) -> cw_status {
    guard let logger = unsafe logger, let site = unsafe site, let arguments = unsafe arguments
    else { return LastError.setWrite(Status.argument, 0, .handle) }
    // ORDER: relaxed. Only tells whether a plan existed; DeferredPath loads it again (A21).
    let isFirst = unsafe SitePlan(word: cwa_load_relaxed_u64(UnsafeRawPointer(site))) == nil
    let result = unsafe DeferredPath.write(LoggerBlock(logger), level, site, arguments)
    if isFirst, result == Status.ok, unsafe DeferredSlow.isRefused(site) {
        return unsafe LastError.setWrite(
            Status.argument, site.pointee.line,
            site.pointee.style == UInt32(CW_STYLE_BRACES) ? .place : .format)
    }
    return result < 0 ? LastError.setWrite(result, level) : result
}

@_cdecl("cw_append_settled") @implementation
public func cw_append_settled(_ block: UnsafeMutablePointer<cw_append_block>!) -> Bool {
    unsafe AppendSlow.settledKept(
        UnsafeMutableRawPointer(block).assumingMemoryBound(to: cwi_thread.self))
}

@_cdecl("cw_site_text") @implementation
public func cw_site_text(
    _ logger: OpaquePointer!, _ level: cw_level, _ site: UnsafeMutablePointer<cw_site>!,
    _ text: UnsafePointer<CChar>!, _ length: UInt32
) -> cw_status {
    guard unsafe text != nil || length == 0 else {
        return LastError.setWrite(Status.argument, length, .message)
    }
    guard let site = unsafe site, let list = unsafe site.pointee.arguments,
        unsafe list[0] == CW_ARG_TEXT, unsafe list[1] == CW_ARG_NONE
    else { return LastError.setWrite(Status.argument, 0, .handle) }
    var argument = unsafe cw_arg()
    unsafe argument.s.data = text
    unsafe argument.s.length = Int(length)
    return unsafe cw_site_write(logger, level, site, &argument)
}

@_cdecl("cw_place_write") @implementation
public func cw_place_write(
    _ logger: OpaquePointer!, _ level: cw_level, _ place: UnsafePointer<cw_site>!,
    _ arguments: UnsafePointer<cw_arg>!
) -> cw_status {
    guard let logger = unsafe logger, let place = unsafe place, let arguments = unsafe arguments
    else { return LastError.setWrite(Status.argument, 0, .handle) }
    let result = unsafe DeferredPath.place(LoggerBlock(logger), level, place, arguments)
    if result == Status.argument {
        return unsafe LastError.setWrite(result, place.pointee.line, .place)
    }
    return result < 0 ? LastError.setWrite(result, level) : result
}

@_cdecl("cw_site_every_ms") @implementation
public func cw_site_every_ms(_ site: UnsafeMutablePointer<cw_site>!, _ ms: UInt32) -> Bool {
    guard let site = unsafe site else { return false }
    let now = cw_coarse_ns()
    let word =
        unsafe UnsafeMutableRawPointer(site) + MemoryLayout<cw_site>.offset(of: \.next_ns)!
    // ORDER: relaxed, then the CAS's own. One caller in each interval wins; nothing depends on it.
    let next = unsafe cwa_load_relaxed_u64(word)
    return unsafe now >= next && cwa_cas_u64(word, next, now &+ UInt64(ms) &* 1_000_000)
}

/// The header's inline function for hosts that cannot inline C.
@_cdecl("cw_enabled")
public func enabledForForeignHosts(_ logger: OpaquePointer?, _ level: UInt32) -> Bool {
    guard let logger = unsafe logger else { return false }
    return unsafe level &+ cwa_load_relaxed_u32(UnsafeRawPointer(logger)) > 255
}

@_cdecl("cw_write_record") @implementation
public func cw_write_record(
    _ logger: OpaquePointer!, _ record: UnsafePointer<cw_record>!
) -> cw_status {
    guard let logger = unsafe logger, let record = unsafe record else {
        return LastError.setWrite(Status.argument, 0, .handle)
    }
    if unsafe FieldsPath.write(LoggerBlock(logger), record) { return Status.ok }
    var checked = unsafe cw_record()
    let stamp = unsafe Stamped.copy(record, into: &checked)
    guard stamp == Status.ok else {
        return unsafe LastError.setWrite(stamp, record.pointee.struct_size)
    }
    let block = unsafe LoggerBlock(logger)
    let refusal = unsafe AppendSlow.refusal(block, checked.level)
    guard refusal == Status.ok else {
        return unsafe refusal < 0 ? LastError.setWrite(refusal, checked.level) : refusal
    }
    var wrong = RecordCheck.Wrong()
    let validity = unsafe RecordCheck.validity(checked, &wrong)
    guard validity == Status.ok else {
        return LastError.setWrite(validity, length: wrong.value, wrong.what, wrong.index)
    }
    let result = unsafe withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { trace in
        unsafe AppendSlow.rich(
            block, UInt8(checked.level), RecordCheck.body(checked, trace.baseAddress!))
    }
    return unsafe result < 0 ? LastError.setWrite(result, checked.level) : result
}

enum RecordCheck {
    static let stringBytesMax = 1 << 30

    /// Describes the problem with a record, for cw_last_error.
    struct Wrong {
        var what = LastError.Detail.none
        var value = 0
        var index = 0
    }

    /// The strings of a record, in the order in which `validity` looks at them.
    static func stringName(_ index: UInt32) -> StaticString {
        switch index {
        case 0: "message"
        case 1: "file"
        case 2: "function"
        case 3: "exception_type"
        case 4: "exception_message"
        default: "exception_stacktrace"
        }
    }

    private static func string(_ record: cw_record, _ index: Int) -> cw_str {
        switch index {
        case 0: unsafe record.message
        case 1: unsafe record.file
        case 2: unsafe record.function
        case 3: unsafe record.exception_type
        case 4: unsafe record.exception_message
        default: unsafe record.exception_stacktrace
        }
    }

    static func validity(_ record: cw_record, _ wrong: inout Wrong) -> Int32 {
        for index in 0..<6 {
            let text = unsafe string(record, index)
            guard unsafe isValid(text) else {
                wrong.what = .string
                wrong.index = index
                wrong.value = unsafe text.length
                return Status.argument
            }
        }
        // A size_t arrives as a signed word: SIZE_MAX is -1 here.
        guard unsafe record.field_count >= 0, unsafe record.field_count <= FieldType.countMax else {
            wrong.what = .fieldCount
            wrong.value = unsafe record.field_count
            return Status.limit
        }
        guard unsafe record.field_count == 0 || record.fields != nil else {
            wrong.what = .fields
            wrong.value = unsafe record.field_count
            return Status.argument
        }
        guard unsafe record.trace_id != nil || record.span_id == nil else {
            wrong.what = .span
            return Status.argument
        }
        for i in unsafe 0..<record.field_count {
            let field = unsafe record.fields[i]
            wrong.index = i
            guard unsafe isValid(field.key), unsafe field.key.length <= 0xFFFF else {
                wrong.what = .fieldKey
                wrong.value = unsafe field.key.length
                return Status.argument
            }
            switch unsafe field.type {
            case UInt32(CW_TYPE_INT), UInt32(CW_TYPE_UINT), UInt32(CW_TYPE_DOUBLE),
                UInt32(CW_TYPE_BOOL):
                break
            case UInt32(CW_TYPE_STRING), UInt32(CW_TYPE_JSON):
                guard unsafe isValid(field.value.s) else {
                    wrong.what = .fieldValue
                    wrong.value = unsafe field.value.s.length
                    return Status.argument
                }
            default:
                wrong.what = .fieldType
                wrong.value = unsafe Int(field.type)
                return Status.argument
            }
        }
        return Status.ok
    }

    private static func isValid(_ text: cw_str) -> Bool {
        unsafe text.length >= 0 && text.length <= stringBytesMax
            && (text.data != nil || text.length == 0)
    }

    /// trace: 32 bytes of the caller's that hold the trace during the append.
    static func body(_ record: cw_record, _ trace: UnsafeMutableRawPointer) -> RichBody {
        var body = RichBody()
        unsafe body.message = bytes(record.message)
        unsafe body.fields = record.fields
        body.fieldCount = unsafe Int(record.field_count)
        unsafe body.file = bytes(record.file)
        unsafe body.function = bytes(record.function)
        body.line = unsafe record.line
        body.timeNs = unsafe record.time_ns
        unsafe body.exceptionType = bytes(record.exception_type)
        unsafe body.exceptionMessage = bytes(record.exception_message)
        unsafe body.exceptionStacktrace = bytes(record.exception_stacktrace)
        if let id = unsafe record.trace_id {
            unsafe TraceBytes.fill(
                trace, id, record.span_id, UInt8(truncatingIfNeeded: record.trace_flags))
            unsafe body.trace = UnsafeRawPointer(trace)
        }
        return body
    }

    private static func bytes(_ text: cw_str) -> UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(
            start: text.length == 0 ? nil : text.data, count: Int(text.length))
    }
}

enum TraceBytes {
    /// FORMAT §8.4.
    static func fill(
        _ target: UnsafeMutableRawPointer, _ trace: UnsafePointer<UInt8>,
        _ span: UnsafePointer<UInt8>?, _ flags: UInt8
    ) {
        unsafe target.initializeMemory(as: UInt8.self, repeating: 0, count: TraceLayout.bytes)
        unsafe target.copyMemory(from: trace, byteCount: 16)
        if let span = unsafe span { unsafe (target + 16).copyMemory(from: span, byteCount: 8) }
        unsafe target.storeBytes(of: flags, toByteOffset: 24, as: UInt8.self)
    }
}

@_cdecl("cw_context_set") @implementation
public func cw_context_set(
    _ key: UnsafePointer<CChar>!, _ value: UnsafePointer<CChar>!
) -> cw_status {
    guard let key = unsafe key, unsafe key.pointee != 0 else {
        return failed(Status.argument, "cw_context_set: no key")
    }
    func bytes(_ text: UnsafePointer<CChar>) -> UnsafeBufferPointer<UInt8> {
        unsafe UnsafeRawBufferPointer(start: text, count: CText.length(text))
            .assumingMemoryBound(to: UInt8.self)
    }
    let result = unsafe ThreadContext.set(key: bytes(key), value: value.map(bytes))
    return result == Status.ok
        ? result : failed(result, "cw_context_set: the context would exceed 4,096 bytes")
}

@_cdecl("cw_trace_set") @implementation
public func cw_trace_set(
    _ trace: UnsafePointer<UInt8>!, _ span: UnsafePointer<UInt8>!, _ flags: UInt8
) -> cw_status {
    guard let trace = unsafe trace else {
        guard unsafe span == nil else {
            return failed(Status.argument, "cw_trace_set: a span id without a trace id")
        }
        return unsafe ThreadContext.setTrace(nil)
    }
    return unsafe withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { buffer in
        unsafe TraceBytes.fill(buffer.baseAddress!, trace, span, flags)
        return unsafe ThreadContext.setTrace(buffer.baseAddress!)
    }
}
