// The cursor for C: a record's view points into the reader's own memory until the next call.

import CCordwood
import Cordwood
import CordwoodCore
import Glibc

/// What a cw_reader is. One thread at a time.
private final class ReaderHandle {
    let reader: StoreReader
    let follows: Bool
    /// Grows to the most fields seen; lent to the host until the next call.
    var fields: [cw_field] = []

    init(_ reader: StoreReader, follows: Bool) {
        self.reader = reader
        self.follows = follows
    }

    deinit {
        lent?.deallocate()
        free(name)
    }

    // SAFETY: a copy of `fields` and the name at an address that holds until the next call.
    private var lent: UnsafeMutablePointer<cw_field>?
    private var lentCapacity = 0

    func lendFields() -> UnsafePointer<cw_field>? {
        guard !fields.isEmpty else { return nil }
        if lentCapacity < fields.count {
            lent?.deallocate()
            lentCapacity = max(16, fields.count * 2)
            lent = .allocate(capacity: lentCapacity)
        }
        for (i, field) in fields.enumerated() { lent?[i] = field }
        return lent.map { UnsafePointer($0) }
    }

    private var name: UnsafeMutablePointer<CChar>?
    private weak var namedProcess: ProcessInfo?

    func lendName(_ process: ProcessInfo) -> cw_str {
        if namedProcess !== process || name == nil {
            free(name)
            name = strdup(process.name)
            namedProcess = process
        }
        guard let name else { return cw_str(data: nil, length: 0) }
        return cw_str(data: name, length: CText.length(name))
    }
}

@_cdecl("cw_reader_open") @implementation
public func cw_reader_open(
    _ directory: UnsafePointer<CChar>!, _ options: UnsafePointer<cw_reader_options>!,
    _ out: UnsafeMutablePointer<OpaquePointer?>!
) -> cw_status {
    status { () throws(CordwoodError) in
        guard let directory, let out else {
            throw CordwoodError(Status.argument, "cw_reader_open: directory or out is NULL")
        }
        var copy = cw_reader_options()
        if let options {
            let stamp = Stamped.copy(options, into: &copy)
            guard stamp == Status.ok else {
                throw CordwoodError(
                    stamp,
                    Stamped.text(
                        stamp, "cw_reader_options", options.pointee.struct_size,
                        MemoryLayout<cw_reader_options>.size))
            }
        }
        let converted = try convert(copy)
        do throws(ReadProblem) {
            let path = MemoryStore.directory(for: String(cString: directory))
            let reader = try StoreReader(path: path, options: converted)
            let handle = ReaderHandle(reader, follows: converted.follow)
            out.pointee = OpaquePointer(Unmanaged.passRetained(handle).toOpaque())
        } catch {
            throw CordwoodError(error)
        }
        return Status.ok
    }
}

private func convert(_ options: cw_reader_options) throws(CordwoodError) -> ReaderOptions {
    guard options.level <= 24 else {
        throw CordwoodError(Status.argument, "cw_reader_options.level \(options.level) is over 24")
    }
    guard options.flags <= 3 else {
        throw CordwoodError(Status.argument, "cw_reader_options.flags \(options.flags) is unknown")
    }
    var result = ReaderOptions()
    result.level = UInt8(options.level)
    result.kinds = options.kinds
    result.since = options.since_ns
    result.until = options.until_ns
    result.logger = CText.string(options.logger) ?? ""
    result.follow = options.flags & UInt32(CW_READ_FOLLOW) != 0
    result.fromEnd = options.flags & UInt32(CW_READ_FROM_END) != 0
    return result
}

@_cdecl("cw_reader_next") @implementation
public func cw_reader_next(
    _ handle: OpaquePointer!, _ out: UnsafeMutablePointer<cw_record_view>!
) -> cw_status {
    guard let handle, let out else {
        return failed(Status.argument, "cw_reader_next: a pointer is NULL")
    }
    let size = Int(out.pointee.struct_size)
    guard size >= MemoryLayout<cw_record_view>.size else {
        return failed(
            Status.structSize,
            Stamped.text(
                Status.structSize, "cw_record_view", out.pointee.struct_size,
                MemoryLayout<cw_record_view>.size))
    }
    let reader = Unmanaged<ReaderHandle>.fromOpaque(UnsafeRawPointer(handle)).takeUnretainedValue()
    do throws(ReadProblem) {
        guard let record = try reader.reader.advance() else {
            return reader.follows ? Status.again : Status.end
        }
        fill(out, record, reader, UInt32(size))
        return Status.ok
    } catch {
        return failed(CordwoodError(error))
    }
}

private func text(_ bytes: UnsafeRawBufferPointer) -> cw_str {
    cw_str(data: bytes.baseAddress?.assumingMemoryBound(to: CChar.self), length: bytes.count)
}

private func fill(
    _ out: UnsafeMutablePointer<cw_record_view>, _ record: RecordRef, _ reader: ReaderHandle,
    _ size: UInt32
) {
    var view = cw_record_view()
    view.struct_size = size
    view.time_ns = record.timeNs
    view.level = UInt32(record.level)
    view.process_id = record.thread.process.processID
    view.thread_id = UInt64(record.thread.threadID)
    view.sequence = record.sequence
    view.logger = text(record.logger)
    view.message = text(record.message)
    view.file = text(record.file)
    view.function = text(record.function)
    view.line = record.line
    reader.fields.removeAll(keepingCapacity: true)
    var fields = RecordFields(record)
    while let field = fields.next() { reader.fields.append(convert(field.key, field.value)) }
    view.fields = reader.lendFields()
    view.field_count = reader.fields.count
    if record.trace.count >= TraceLayout.bytes, let start = record.trace.baseAddress {
        withUnsafeMutableBytes(of: &view.trace_id) {
            $0.copyMemory(from: .init(start: start, count: 16))
        }
        withUnsafeMutableBytes(of: &view.span_id) {
            $0.copyMemory(from: .init(start: start + 16, count: 8))
        }
        view.trace_flags = UInt32(record.trace[24])
    }
    view.kind = UInt32(record.kind)
    view.flags = UInt32(record.flags.rawValue)
    if !UTF8Scan.isValid(record.message) { view.flags |= UInt32(CW_VIEW_NOT_UTF8) }
    view.original_length = record.originalLength
    view.process_name = reader.lendName(record.thread.process)
    out.pointee = view
}

private func convert(_ key: UnsafeRawBufferPointer, _ value: FieldValue) -> cw_field {
    var field = cw_field()
    field.key = text(key)
    switch value {
    case .int(let value):
        field.type = UInt32(CW_TYPE_INT)
        field.value.i = value
    case .uint(let value):
        field.type = UInt32(CW_TYPE_UINT)
        field.value.u = value
    case .double(let value):
        field.type = UInt32(CW_TYPE_DOUBLE)
        field.value.d = value
    case .bool(let value):
        field.type = UInt32(CW_TYPE_BOOL)
        field.value.b = value
    case .string(let value):
        field.type = UInt32(CW_TYPE_STRING)
        field.value.s = text(value)
    }
    return field
}

@_cdecl("cw_reader_close") @implementation
public func cw_reader_close(_ handle: UnsafeMutablePointer<OpaquePointer?>!) -> cw_status {
    guard let handle else { return failed(Status.argument, "cw_reader_close: reader is NULL") }
    guard let reader = handle.pointee else { return Status.ok }
    Unmanaged<ReaderHandle>.fromOpaque(UnsafeRawPointer(reader)).release()
    handle.pointee = nil
    return Status.ok
}
