// Status names, sentences, and the calling thread's last failure. Strings are static, or belong to
// the thread and are freed with it. A write's failure is noted only in thread-local words, because
// it may happen in a signal handler.
// SAFETY: `last_error` is bytesMax from calloc and the thread's own; writes to the host's buffer
// stay within the n that it gives.

import CCordwood
import CShims
import CordwoodCore
import CordwoodEngine
import CordwoodFormats
import CordwoodShip
import CordwoodStore
import CordwoodTrace

/// Notes a failure with its text and returns its status.
func failed(_ status: Int32, _ text: @autoclosure () -> String) -> cw_status {
    LastError.set(text())
    return status
}

func failed(_ error: CordwoodError) -> cw_status { failed(error.status, error.text) }

/// Runs a throwing body; its error becomes a status.
func status(_ body: () throws(CordwoodError) -> cw_status) -> cw_status {
    do {
        return try body()
    } catch {
        return failed(error)
    }
}

enum LastError {
    static let bytesMax = 2_048

    static func set(_ text: String) {
        let tls = unsafe cwi_tls_get()!
        guard let memory = unsafe tls.pointee.last_error ?? Memory.allocateZeroed(bytesMax) else {
            return
        }
        unsafe tls.pointee.last_error = memory
        unsafe tls.pointee.last_status = 0
        // Hosts print it, and anyone who may write to a store can name the files in it.
        var text = PlainText.oneLine(text)
        text.withUTF8 { utf8 in
            let count = min(utf8.count, bytesMax - 1)
            if let start = utf8.baseAddress {
                unsafe memory.copyMemory(from: start, byteCount: count)
            }
            unsafe memory.storeBytes(of: 0, toByteOffset: count, as: UInt8.self)
        }
        ThreadContext.registerThread()
    }

    /// The part of a failed write that the text names besides its status.
    enum Detail: UInt32 {
        case none, handle, message, string, fieldCount, fields, fieldKey, fieldValue, fieldType,
            span, format, transaction, errorCode, traceparent, place
    }

    /// In `last_detail`, above the index: the value is a length that exceeds its word.
    private static let isLong: UInt32 = 1 << 30
    private static let isSizeMax: UInt32 = 1 << 31

    /// Signals: safe. If a record found no room, the append path has noted the reason (Refusal).
    static func setWrite(
        _ status: Int32, _ value: UInt32, _ detail: Detail = .none, _ index: Int = 0
    ) -> cw_status {
        let tls = unsafe cwi_tls_get()!
        unsafe tls.pointee.last_status = status
        let isNoted =
            unsafe status == Status.full
            && tls.pointee.last_detail & 0xFF == Refusal.detail
        if isNoted { return status }
        unsafe tls.pointee.last_value = value
        unsafe tls.pointee.last_detail =
            (UInt32(truncatingIfNeeded: index) & 0x3F_FFFF) << 8 | detail.rawValue
        return status
    }

    /// The same for a length, which the host gives as a size_t.
    static func setWrite(
        _ status: Int32, length: Int, _ detail: Detail, _ index: Int = 0
    ) -> cw_status {
        let length = UInt(bitPattern: length)
        let status = setWrite(status, UInt32(clamping: length), detail, index)
        let tls = unsafe cwi_tls_get()!
        if length > UInt(UInt32.max) { unsafe tls.pointee.last_detail |= isLong }
        if length == UInt.max { unsafe tls.pointee.last_detail |= isSizeMax }
        return status
    }

    /// Copies the text, cut to n bytes with its NUL; returns its full length.
    static func copy(_ buffer: UnsafeMutablePointer<CChar>?, _ n: Int) -> Int {
        // A size_t beyond the signed range means no limit.
        let n = n < 0 ? Int.max : n
        let tls = unsafe cwi_tls_get()!
        if unsafe tls.pointee.last_status == 0 {
            guard let memory = unsafe tls.pointee.last_error else {
                if let buffer = unsafe buffer, n > 0 { unsafe buffer[0] = 0 }
                return 0
            }
            let length = unsafe Memory.length(memory.assumingMemoryBound(to: CChar.self))
            if let buffer = unsafe buffer, n > 0 {
                let count = min(length, n - 1)
                unsafe UnsafeMutableRawPointer(buffer).copyMemory(from: memory, byteCount: count)
                unsafe buffer[count] = 0
            }
            return length
        }
        var line = unsafe Line(buffer: buffer, capacity: n)
        let detail = unsafe tls.pointee.last_detail
        if unsafe tls.pointee.last_status == Status.full, detail & 0xFF == Refusal.detail {
            unsafe writeRefusal(
                Refusal(word: tls.pointee.last_value), Int(detail >> 8), &line)
        } else {
            unsafe writeFailure(
                tls.pointee.last_status, tls.pointee.last_value,
                Detail(rawValue: detail & 0xFF) ?? .none, detail >> 8 & 0x3F_FFFF,
                detail & isSizeMax != 0
                    ? "SIZE_MAX"
                    : detail & isLong != 0 ? "over 4294967295" : nil, &line)
        }
        return line.end()
    }

    /// The reason a record was not kept: the cause, the limit's number, the place. index: of the
    /// engine.
    private static func writeRefusal(_ refusal: Refusal, _ index: Int, _ line: inout Line) {
        let table = unsafe cwi_process_engines_at(cwi_process_get()!)
        // ORDER: acquire. An engine in the table is complete; blocks are never unmapped (A15).
        let word = index < Int(CWI_ENGINES_MAX) ? unsafe cwa_load_acquire_u64(table + index * 8) : 0
        let engine = unsafe UnsafeMutablePointer<cwi_engine>(bitPattern: UInt(word))
        line.add(refusal.cause.words)
        switch refusal.cause {
        case .fileLimit:
            line.add(": RLIMIT_FSIZE is ")
            line.add(cw_file_size_limit())
        case .descriptors:
            if refusal.number == Errno.EMFILE {
                line.add(": RLIMIT_NOFILE is ")
                line.add(cw_descriptor_limit())
            }
        case .storeQuota:
            if let engine = unsafe engine {
                line.add(": quota_bytes is ")
                unsafe line.add(engine.pointee.quota_bytes)
            }
        case .notReady:
            line.add(", and the engine does not wait for one")
        case .diskFull, .diskQuota, .memory, .permission, .other: break
        }
        if refusal.number != 0 {
            line.add(" (")
            line.add(errno: refusal.number)
            line.add(")")
        }
        if let engine = unsafe engine {
            let start = unsafe UnsafeRawPointer(cwi_engine_lanes_path_at(engine))
            let path = unsafe start.assumingMemoryBound(to: CChar.self)
            if unsafe path[0] != 0 {
                line.add(", in ")
                unsafe line.add(path: path)
            }
        }
        line.add("; the record was not kept, and is counted")
    }

    /// length: words for a value that exceeds its word.
    private static func writeFailure(
        _ status: Int32, _ value: UInt32, _ detail: Detail, _ index: UInt32,
        _ length: StaticString?, _ line: inout Line
    ) {
        func addLength() {
            if let length { line.add(length) } else { line.add(value) }
        }
        switch detail {
        case .none:
            line.add(Sentences.of(status).text)
            switch status {
            case Status.level:
                line.add(": ")
                line.add(value)
            case Status.structSize, Status.structTail:
                line.add(": cw_record.struct_size is ")
                line.add(value)
            default: break
            }
        case .handle: line.add("the logger or the record is NULL")
        case .message:
            line.add(
                length == nil
                    ? "the message is NULL, with length "
                    : "the message is too long: its length is "
            )
            addLength()
        case .string:
            line.add(RecordCheck.stringName(index))
            line.add(" of the record is NULL or over 1 GiB, with length ")
            addLength()
        case .fieldCount:
            line.add("field_count ")
            addLength()
            line.add(" is over 4096")
        case .fields:
            line.add("fields is NULL with field_count ")
            addLength()
        case .span: line.add("span_id without trace_id")
        case .transaction: line.add("the transaction or where to write to is NULL")
        case .errorCode: line.add("err_desc is given without err_code")
        case .traceparent: line.add("a pointer is NULL, or the text is no W3C traceparent")
        case .format:
            line.add("the format of CW_LOG in line ")
            line.add(value)
            line.add(" does not fit its arguments, or has %n; its records hold it as it stands")
        case .place:
            line.add("the format in line ")
            line.add(value)
            line.add(
                " does not fit its arguments: it names one that is not there, or shows one as ")
            line.add("what it is not; its records hold both")
        case .fieldKey, .fieldValue, .fieldType:
            line.add("field ")
            line.add(index)
            line.add(
                detail == .fieldType
                    ? " has type "
                    : detail == .fieldKey
                        ? " has a key that is NULL or over 65535 bytes, with length "
                        : " has a value that is NULL or over 1 GiB, with length ")
            addLength()
        }
    }

    /// Writes text into the host's buffer, without the heap.
    @safe private struct Line {
        let buffer: UnsafeMutablePointer<CChar>?
        let capacity: Int
        var length = 0

        init(buffer: UnsafeMutablePointer<CChar>?, capacity: Int) {
            unsafe self.buffer = buffer
            self.capacity = capacity
        }

        private mutating func add(byte: UInt8) {
            if let buffer = unsafe buffer, capacity > 0, length < capacity - 1 {
                unsafe buffer[length] = CChar(bitPattern: byte)
            }
            length += 1
        }

        mutating func add(_ text: StaticString) {
            for i in 0..<text.utf8CodeUnitCount { unsafe add(byte: text.utf8Start[i]) }
        }

        mutating func add(path text: UnsafePointer<CChar>) {
            var at = 0
            while unsafe text[at] != 0 {
                unsafe add(byte: UInt8(bitPattern: text[at]))
                at += 1
            }
        }

        /// Adds its name if it is one for which records are refused.
        mutating func add(errno number: Int32) {
            switch number {
            case Errno.ENOSPC: add("ENOSPC")
            case Errno.EDQUOT: add("EDQUOT")
            case Errno.EFBIG: add("EFBIG")
            case Errno.EMFILE: add("EMFILE")
            case Errno.ENFILE: add("ENFILE")
            case Errno.ENOMEM: add("ENOMEM")
            case Errno.EAGAIN: add("EAGAIN")
            case Errno.EIO: add("EIO")
            case Errno.EROFS: add("EROFS")
            case Errno.EACCES: add("EACCES")
            case Errno.EPERM: add("EPERM")
            case Errno.ENOENT: add("ENOENT")
            default:
                add("errno ")
                add(UInt32(bitPattern: number))
            }
        }

        mutating func add(_ value: UInt32) { add(UInt64(value)) }

        mutating func add(_ value: UInt64) {
            var divisor: UInt64 = 1
            while value / divisor >= 10 { divisor *= 10 }
            while divisor > 0 {
                add(byte: UInt8(48 + value / divisor % 10))
                divisor /= 10
            }
        }

        func end() -> Int {
            if let buffer = unsafe buffer, capacity > 0 {
                unsafe buffer[min(length, capacity - 1)] = 0
            }
            return length
        }
    }
}

/// Names and sentences of every status, including unknown numbers.
enum Sentences {
    static func of(_ status: Int32) -> (name: StaticString, text: StaticString) {
        switch Int(status) {
        case CW_OK: return ("CW_OK", "done")
        case CW_DISABLED:
            return ("CW_DISABLED", "the level is below the logger's; nothing was written")
        case CW_END: return ("CW_END", "nothing more: no record, or nothing waits to be uploaded")
        case CW_AGAIN: return ("CW_AGAIN", "nothing now; call again later")
        case CW_E_ARGUMENT: return ("CW_E_ARGUMENT", "a pointer, length or enum is not valid")
        case CW_E_LEVEL: return ("CW_E_LEVEL", "a level is outside 1…24")
        case CW_E_STRUCT_SIZE: return ("CW_E_STRUCT_SIZE", "struct_size is too small")
        case CW_E_STRUCT_TAIL:
            return ("CW_E_STRUCT_TAIL", "struct_size is larger than known and its tail is not zero")
        case CW_E_CLOSED: return ("CW_E_CLOSED", "the engine of this handle was closed")
        case CW_E_NO_DIRECTORY:
            return ("CW_E_NO_DIRECTORY", "no directory was given and CORDWOOD_DIR is not set")
        case CW_E_NOT_DIRECTORY:
            return (
                "CW_E_NOT_DIRECTORY",
                "something that is no directory stands where the store should be"
            )
        case CW_E_NOT_FOUND: return ("CW_E_NOT_FOUND", "no such file, store, target or archive")
        case CW_E_PERMISSION: return ("CW_E_PERMISSION", "the system refused access")
        case CW_E_IO: return ("CW_E_IO", "a read, write or sync failed")
        case CW_E_FULL:
            return (
                "CW_E_FULL",
                "no room: disk full, or a quota or limit reached (records not kept are counted)"
            )
        case CW_E_MEMORY: return ("CW_E_MEMORY", "memory, threads or descriptors ran out")
        case CW_E_LIMIT: return ("CW_E_LIMIT", "a documented limit would be exceeded")
        case CW_E_TIMEOUT:
            return (
                "CW_E_TIMEOUT",
                "time ran out; flushing and archiving go on, an upload is broken off and goes again"
            )
        case CW_E_BUSY: return ("CW_E_BUSY", "the same operation is already running")
        case CW_E_VERSION:
            return ("CW_E_VERSION", "a store or file of a newer, incompatible format")
        case CW_E_DAMAGED:
            return ("CW_E_DAMAGED", "damaged data; the rest of the store is still readable")
        case CW_E_CONSENT: return ("CW_E_CONSENT", "the store has no consent to upload")
        case CW_E_NO_TARGET: return ("CW_E_NO_TARGET", "no target was added")
        case CW_E_UPLOAD: return ("CW_E_UPLOAD", "something was not uploaded")
        case CW_E_UNSUPPORTED: return ("CW_E_UNSUPPORTED", "this build or platform cannot do it")
        case CW_E_EXISTS: return ("CW_E_EXISTS", "a target of that name is already added")
        case CW_E_INTERNAL:
            return ("CW_E_INTERNAL", "a broken invariant inside the library; please report")
        case CW_E_ENCRYPTED:
            return ("CW_E_ENCRYPTED", "an archive is encrypted, and no identity opens it")
        case CW_E_NOT_ENABLED:
            return ("CW_E_NOT_ENABLED", "a policy has switched uploading off")
        default: return ("CW_E_UNKNOWN", "an unknown status number")
        }
    }

    static func pointer(_ text: StaticString) -> UnsafePointer<CChar> {
        unsafe UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
    }
}

@_cdecl("cw_status_name") @implementation
public func cw_status_name(_ status: cw_status) -> UnsafePointer<CChar>! {
    unsafe Sentences.pointer(Sentences.of(status).name)
}

@_cdecl("cw_strerror") @implementation
public func cw_strerror(_ status: cw_status) -> UnsafePointer<CChar>! {
    unsafe Sentences.pointer(Sentences.of(status).text)
}

@_cdecl("cw_last_error") @implementation
public func cw_last_error(_ buffer: UnsafeMutablePointer<CChar>!, _ n: Int) -> Int {
    unsafe LastError.copy(buffer, buffer == nil ? 0 : n)
}

@_cdecl("cw_version") @implementation
public func cw_version() -> UInt32 {
    UInt32(CW_VERSION_MAJOR) << 16 | UInt32(CW_VERSION_MINOR) << 8 | UInt32(CW_VERSION_PATCH)
}

@_cdecl("cw_version_string") @implementation
public func cw_version_string() -> UnsafePointer<CChar>! { unsafe Sentences.pointer("0.1.0") }
