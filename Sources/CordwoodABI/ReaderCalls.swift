// The cursor for C: a record's view points into the reader's own memory until the next call.
// SAFETY: a handle is a retained ReaderHandle from open to close, used by one thread at a time.

import CCordwood
import CordwoodCore
import CordwoodEngine
import CordwoodFormats
import CordwoodShip
import CordwoodStore
import CordwoodTrace
import Glibc

/// The object behind a cw_reader. One thread at a time.
@safe private final class ReaderHandle {
    let reader: StoreReader
    let follows: Bool
    /// Grows to the most fields seen; lent to the host until the next call.
    var fields: [cw_field] = unsafe []

    init(_ reader: StoreReader, follows: Bool) {
        self.reader = reader
        self.follows = follows
    }

    deinit {
        unsafe lent?.deallocate()
        unsafe free(name)
    }

    // SAFETY: a copy of `fields` and the name at an address that is valid until the next call.
    private var lent: UnsafeMutablePointer<cw_field>?
    private var lentCapacity = 0

    func lendFields() -> UnsafePointer<cw_field>? {
        guard unsafe !fields.isEmpty else { return nil }
        if unsafe lentCapacity < fields.count {
            unsafe lent?.deallocate()
            lentCapacity = unsafe max(16, fields.count * 2)
            unsafe lent = .allocate(capacity: lentCapacity)
        }
        for i in unsafe 0..<fields.count { unsafe lent?[i] = fields[i] }
        return unsafe lent.map { unsafe UnsafePointer($0) }
    }

    private var name: UnsafeMutablePointer<CChar>?
    private weak var namedProcess: ProcessInfo?

    func lendName(_ process: ProcessInfo) -> cw_str {
        if unsafe namedProcess !== process || name == nil {
            unsafe free(name)
            unsafe name = strdup(process.name)
            namedProcess = process
        }
        guard let name = unsafe name else { return unsafe cw_str(data: nil, length: 0) }
        return unsafe cw_str(data: name, length: CText.length(name))
    }
}

/// Size of the first version of cw_reader_options, which has grown since.
private let firstOptions =
    unsafe MemoryLayout<cw_reader_options>.offset(of: \.identity_file) ?? 0

@_cdecl("cw_reader_open") @implementation
public func cw_reader_open(
    _ directory: UnsafePointer<CChar>!, _ options: UnsafePointer<cw_reader_options>!,
    _ out: UnsafeMutablePointer<OpaquePointer?>!
) -> cw_status {
    status { () throws(CordwoodError) in
        guard let directory = unsafe directory, let out = unsafe out else {
            throw CordwoodError(Status.argument, "cw_reader_open: directory or out is NULL")
        }
        var copy = unsafe cw_reader_options()
        if let options = unsafe options {
            if let wrong = unsafe Stamped.read(options, into: &copy, least: firstOptions) {
                throw wrong
            }
        }
        let converted = try unsafe convert(copy)
        do throws(ReadProblem) {
            let path = unsafe MemoryStore.directory(for: String(cString: directory))
            let reader = try StoreReader(path: path, options: converted)
            let handle = ReaderHandle(reader, follows: converted.follow)
            unsafe out.pointee = OpaquePointer(Unmanaged.passRetained(handle).toOpaque())
        } catch {
            throw CordwoodError(error)
        }
        return Status.ok
    }
}

private func convert(_ options: cw_reader_options) throws(CordwoodError) -> ReaderOptions {
    guard unsafe options.level <= 24 else {
        throw unsafe CordwoodError(
            Status.argument, "cw_reader_options.level \(options.level) is over 24")
    }
    guard unsafe options.flags <= 3 else {
        throw unsafe CordwoodError(
            Status.argument, "cw_reader_options.flags \(options.flags) is unknown")
    }
    var result = ReaderOptions()
    result.level = unsafe UInt8(options.level)
    result.kinds = unsafe options.kinds
    result.since = unsafe options.since_ns
    result.until = unsafe options.until_ns
    result.logger = unsafe CText.string(options.logger) ?? ""
    result.identities = try AgeKeys.identities(
        unsafe CText.string(options.identity_file), option: "identity_file")
    result.follow = unsafe options.flags & UInt32(CW_READ_FOLLOW) != 0
    result.fromEnd = unsafe options.flags & UInt32(CW_READ_FROM_END) != 0
    return result
}

@_cdecl("cw_reader_next") @implementation
public func cw_reader_next(
    _ handle: OpaquePointer!, _ out: UnsafeMutablePointer<cw_record_view>!
) -> cw_status {
    guard let handle = unsafe handle, let out = unsafe out else {
        return failed(Status.argument, "cw_reader_next: a pointer is NULL")
    }
    let size = unsafe Int(out.pointee.struct_size)
    guard unsafe size >= MemoryLayout<cw_record_view>.size else {
        return unsafe failed(
            Status.structSize,
            Stamped.text(
                Status.structSize, "cw_record_view", out.pointee.struct_size,
                MemoryLayout<cw_record_view>.size))
    }
    let reader = unsafe Unmanaged<ReaderHandle>.fromOpaque(UnsafeRawPointer(handle))
        .takeUnretainedValue()
    do throws(ReadProblem) {
        guard let record = try reader.reader.advance() else {
            return reader.follows ? Status.again : Status.end
        }
        unsafe fill(out, record, reader, UInt32(size))
        return Status.ok
    } catch {
        return failed(CordwoodError(error))
    }
}

private func text(_ bytes: UnsafeRawBufferPointer) -> cw_str {
    unsafe cw_str(data: bytes.baseAddress?.assumingMemoryBound(to: CChar.self), length: bytes.count)
}

private func fill(
    _ out: UnsafeMutablePointer<cw_record_view>, _ record: RecordRef, _ reader: ReaderHandle,
    _ size: UInt32
) {
    var view = unsafe cw_record_view()
    unsafe view.struct_size = size
    unsafe view.time_ns = record.timeNs
    unsafe view.level = UInt32(record.level)
    unsafe view.process_id = record.thread.process.processID
    unsafe view.thread_id = UInt64(record.thread.threadID)
    unsafe view.sequence = record.sequence
    unsafe view.logger = text(record.logger)
    unsafe view.message = text(record.message)
    unsafe view.file = text(record.file)
    unsafe view.function = text(record.function)
    unsafe view.line = record.line
    unsafe reader.fields.removeAll(keepingCapacity: true)
    var fields = RecordFields(record)
    while let field = fields.next() { unsafe reader.fields.append(convert(field.key, field.value)) }
    unsafe view.fields = reader.lendFields()
    unsafe view.field_count = reader.fields.count
    if record.trace.count >= TraceLayout.bytes, let start = record.trace.baseAddress {
        unsafe withUnsafeMutableBytes(of: &view.trace_id) {
            unsafe $0.copyMemory(from: .init(start: start, count: 16))
        }
        unsafe withUnsafeMutableBytes(of: &view.span_id) {
            unsafe $0.copyMemory(from: .init(start: start + 16, count: 8))
        }
        unsafe view.trace_flags = UInt32(record.trace[24])
    }
    unsafe view.kind = UInt32(record.kind)
    unsafe view.flags = UInt32(record.flags.rawValue)
    if !UTF8Scan.isValid(record.message) { unsafe view.flags |= UInt32(CW_VIEW_NOT_UTF8) }
    unsafe view.original_length = record.originalLength
    unsafe view.process_name = reader.lendName(record.thread.process)
    unsafe out.pointee = view
}

private func convert(_ key: UnsafeRawBufferPointer, _ value: FieldValue) -> cw_field {
    var field = unsafe cw_field()
    unsafe field.key = text(key)
    switch value {
    case .int(let value):
        unsafe field.type = UInt32(CW_TYPE_INT)
        unsafe field.value.i = value
    case .uint(let value):
        unsafe field.type = UInt32(CW_TYPE_UINT)
        unsafe field.value.u = value
    case .double(let value):
        unsafe field.type = UInt32(CW_TYPE_DOUBLE)
        unsafe field.value.d = value
    case .bool(let value):
        unsafe field.type = UInt32(CW_TYPE_BOOL)
        unsafe field.value.b = value
    case .string(let value):
        unsafe field.type = UInt32(CW_TYPE_STRING)
        unsafe field.value.s = text(value)
    }
    return unsafe field
}

@_cdecl("cw_reader_close") @implementation
public func cw_reader_close(_ handle: UnsafeMutablePointer<OpaquePointer?>!) -> cw_status {
    guard let handle = unsafe handle else {
        return failed(Status.argument, "cw_reader_close: reader is NULL")
    }
    guard let reader = unsafe handle.pointee else { return Status.ok }
    unsafe Unmanaged<ReaderHandle>.fromOpaque(UnsafeRawPointer(reader)).release()
    unsafe handle.pointee = nil
    return Status.ok
}
