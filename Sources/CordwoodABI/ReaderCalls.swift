// The cursor for C: a record's view points into the reader's own memory until the next call.
// SAFETY: a handle is a retained ReaderHandle from open to close, used by one thread at a time.

import CCordwood
import CordwoodCore
import CordwoodEngine
import CordwoodFormats
import CordwoodShip
import CordwoodStore
import CordwoodTrace

/// The object behind a cw_reader. One thread at a time.
@safe private final class ReaderHandle {
    let reader: StoreReader
    let follows: Bool
    /// The record of the last call. Accesses never overlap, so none is checked.
    @exclusivity(unchecked) var record = RecordRef()

    init(_ reader: StoreReader, follows: Bool) {
        self.reader = reader
        self.follows = follows
    }

    deinit { unsafe lent?.deallocate() }

    // SAFETY: this object's own memory, whose first `lentCount` fields are set; lent to the host
    // until the next call.
    private var lent: UnsafeMutablePointer<cw_field>?
    private var lentCapacity = 0
    private(set) var lentCount = 0

    /// The record's fields in C's form; nil: none.
    func lendFields(_ record: borrowing RecordRef) -> UnsafePointer<cw_field>? {
        lentCount = 0
        var fields = RecordFields(record)
        while let field = fields.next() {
            if lentCount == lentCapacity { grow() }
            unsafe lent?[lentCount] = convert(field.key, field.value)
            lentCount &+= 1
        }
        return unsafe lentCount == 0 ? nil : UnsafePointer(lent)
    }

    private func grow() {
        let capacity = max(16, lentCapacity * 2)
        let larger = UnsafeMutablePointer<cw_field>.allocate(capacity: capacity)
        if let lent = unsafe lent {
            unsafe larger.update(from: lent, count: lentCount)
            unsafe lent.deallocate()
        }
        unsafe lent = larger
        lentCapacity = capacity
    }

    private var processes: [ObjectIdentifier: LentProcess] = [:]
    private var last: LentProcess?
    private static let processesMax = 1_024

    func lend(_ process: ProcessInfo) -> LentProcess {
        if let last, last.process === process { return last }
        let known = processes[ObjectIdentifier(process)]
        // `last` lives on meanwhile, so that another process never gets its address.
        let found = known ?? LentProcess(process)
        if known == nil {
            if processes.count >= ReaderHandle.processesMax { processes.removeAll() }
            processes[ObjectIdentifier(process)] = found
        }
        last = found
        return found
    }
}

/// The name and the resource of a process in memory for the host. Retains the process, so that no
/// other one takes over its identity.
/// SAFETY: `texts` and `fields` are this object's own, filled once and freed in deinit; the fields
/// point into `texts`.
@safe private final class LentProcess {
    let process: ProcessInfo
    let name: cw_str
    private let texts: UnsafeMutableBufferPointer<CChar>
    private let fields: UnsafeMutableBufferPointer<cw_field>

    var resource: UnsafePointer<cw_field>? {
        unsafe fields.count > 0 ? UnsafePointer(fields.baseAddress) : nil
    }
    var resourceCount: Int { unsafe fields.count }

    init(_ process: ProcessInfo) {
        self.process = process
        let parts = [process.name] + process.resource.flatMap { [$0.key, $0.value] }
        let size = parts.reduce(0) { $0 + $1.utf8.count }
        let texts = UnsafeMutableBufferPointer<CChar>.allocate(capacity: size)
        var at = 0
        func place(_ text: String) -> cw_str {
            let start = at
            for byte in text.utf8 {
                unsafe texts[at] = CChar(bitPattern: byte)
                at += 1
            }
            return unsafe cw_str(
                data: texts.baseAddress.map { unsafe UnsafePointer($0 + start) },
                length: at - start)
        }
        unsafe name = place(process.name)
        let fields = UnsafeMutableBufferPointer<cw_field>.allocate(
            capacity: process.resource.count)
        for (index, attribute) in process.resource.enumerated() {
            var field = unsafe cw_field()
            unsafe field.key = place(attribute.key)
            unsafe field.type = UInt32(CW_TYPE_STRING)
            unsafe field.value.s = place(attribute.value)
            unsafe fields.initializeElement(at: index, to: field)
        }
        unsafe self.texts = texts
        unsafe self.fields = fields
    }

    deinit {
        unsafe texts.deallocate()
        unsafe fields.deallocate()
    }
}

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
            if let wrong = unsafe Stamped.read(options, into: &copy) { throw wrong }
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
    if let query = unsafe CText.string(options.query) {
        do throws(QueryError) {
            result.query = try Query(query)
        } catch {
            throw CordwoodError(Status.argument, "cw_reader_options.query, \(error)")
        }
    }
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
    guard unsafe Stamped.fits(size, cw_record_view.self) else {
        let known = unsafe MemoryLayout<cw_record_view>.size
        return unsafe failed(
            Status.structSize,
            Stamped.text(
                size < known ? Status.structSize : Status.structTail, "cw_record_view",
                out.pointee.struct_size, known))
    }
    let reader = unsafe Unmanaged<ReaderHandle>.fromOpaque(UnsafeRawPointer(handle))
        .takeUnretainedValue()
    do throws(ReadProblem) {
        guard try unsafe reader.reader.advance(into: &reader.record) else {
            return reader.follows ? Status.again : Status.end
        }
        unsafe reader.fill(out, UInt32(size))
        return Status.ok
    } catch {
        return failed(CordwoodError(error))
    }
}

private func text(_ bytes: UnsafeRawBufferPointer) -> cw_str {
    unsafe cw_str(data: bytes.baseAddress?.assumingMemoryBound(to: CChar.self), length: bytes.count)
}

extension ReaderHandle {
    /// Reads the record in place: passing it on would copy it.
    func fill(_ out: UnsafeMutablePointer<cw_record_view>, _ size: UInt32) {
        var view = unsafe cw_record_view()
        let thread = unsafe record.thread
        unsafe view.struct_size = size
        unsafe view.time_ns = record.timeNs
        unsafe view.level = UInt32(record.level)
        unsafe view.process_id = thread.process.processID
        unsafe view.thread_id = UInt64(thread.threadID)
        unsafe view.sequence = record.sequence
        unsafe view.logger = text(record.logger)
        let message = unsafe record.message
        unsafe view.message = text(message)
        unsafe view.file = text(record.file)
        unsafe view.function = text(record.function)
        unsafe view.line = record.line
        if unsafe record.sections.count > 0 || record.context.count > 0 {
            unsafe view.fields = lendFields(record)
            unsafe view.field_count = lentCount
        }
        let trace = unsafe record.trace
        if trace.count >= TraceLayout.bytes, let start = trace.baseAddress {
            unsafe withUnsafeMutableBytes(of: &view.trace_id) {
                unsafe $0.copyMemory(from: .init(start: start, count: 16))
            }
            unsafe withUnsafeMutableBytes(of: &view.span_id) {
                unsafe $0.copyMemory(from: .init(start: start + 16, count: 8))
            }
            unsafe view.trace_flags = UInt32(trace[24])
        }
        unsafe view.kind = UInt32(record.kind)
        unsafe view.flags = UInt32(record.flags.rawValue)
        if !UTF8Scan.isValid(message) { unsafe view.flags |= UInt32(CW_VIEW_NOT_UTF8) }
        unsafe view.original_length = record.originalLength
        let process = lend(thread.process)
        unsafe view.process_name = process.name
        unsafe view.resource = process.resource
        unsafe view.resource_count = process.resourceCount
        let id = unsafe RecordID(
            lane: thread.process.laneID, threadSerial: thread.serial, sequence: record.sequence
        ).bytes
        unsafe withUnsafeMutableBytes(of: &view.record_id) {
            unsafe $0.storeBytes(of: id, as: (UInt64, UInt64, UInt64).self)
        }
        unsafe Stamped.write(view, to: out, size: Int(size))
    }
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
    case .json(let value):
        unsafe field.type = UInt32(CW_TYPE_JSON)
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
