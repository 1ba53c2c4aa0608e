// The calling thread's context fields and trace ids. They are not copied into every record: a
// change writes one record into the thread's chunk, and each new chunk starts with them (FORMAT §8,
// types 5 and 6). The memory is the thread's own; no other thread reads it.
// SAFETY: `words` are bytesMax after a header of 48, from calloc, freed when the thread ends; `set`
// refuses what would not fit.

import CCordwood
import CShims

public enum ThreadContext {
    /// The most bytes of encoded fields.
    public static let bytesMax = 4_096

    /// Layout behind `cwi_tls.context`: u32 field bytes, u32 has trace, trace (32), attachments
    /// (ThreadAttachments), fields.
    private static let fieldsOffset = 48
    private static let traceOffset = 8
    static let attachmentOffset = 40

    /// Sets one field in the calling thread, or removes it if value is nil.
    package static func set(key: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>?)
        -> Int32
    {
        guard let words = unsafe words() else { return Status.memory }
        let fields = unsafe words + fieldsOffset
        let used = unsafe Int(words.load(as: UInt32.self))
        var rest = used == 0 ? 2 : used
        if used == 0 { unsafe fields.storeBytes(of: 0, as: UInt16.self) }
        if let value = unsafe value {
            let kept = unsafe rest - bytesOf(key, fields, rest)
            guard value.count <= bytesMax, key.count <= bytesMax,
                kept + 8 + key.count + value.count <= bytesMax
            else { return Status.limit }
        }
        // A handler that logs meanwhile finds no context instead of half of one.
        unsafe words.storeBytes(of: 0, as: UInt32.self)
        cwa_fence_compiler()
        rest = unsafe remove(key, fields, rest)
        if let value = unsafe value {
            let bytes = 8 + key.count + value.count
            let field = unsafe fields + rest
            unsafe field.storeBytes(of: UInt16(FieldType.string), as: UInt16.self)
            unsafe field.storeBytes(of: UInt16(key.count), toByteOffset: 2, as: UInt16.self)
            if let start = key.baseAddress {
                unsafe (field + 4).copyMemory(from: start, byteCount: key.count)
            }
            let length = unsafe field + 4 + key.count
            unsafe length.storeBytes(of: UInt32(value.count), as: UInt32.self)
            if let start = value.baseAddress {
                unsafe (length + 4).copyMemory(from: start, byteCount: value.count)
            }
            let count = unsafe fields.loadUnaligned(as: UInt16.self)
            unsafe fields.storeBytes(of: count + 1, as: UInt16.self)
            rest += bytes
        }
        unsafe store(words, rest)
        unsafe announce(RecordType.context, fields, rest)
        return Status.ok
    }

    /// Sets the trace (25 bytes, FORMAT §8.4) of the calling thread; nil removes it.
    package static func setTrace(_ trace: UnsafeRawPointer?) -> Int32 {
        guard let words = unsafe words() else { return Status.memory }
        let target = unsafe words + traceOffset
        unsafe words.storeBytes(of: 0, toByteOffset: 4, as: UInt32.self)
        cwa_fence_compiler()
        unsafe target.initializeMemory(as: UInt8.self, repeating: 0, count: 32)
        if let trace = unsafe trace {
            unsafe target.copyMemory(from: trace, byteCount: TraceLayout.bytes)
        }
        cwa_fence_compiler()
        unsafe words.storeBytes(of: trace == nil ? 0 : 1, toByteOffset: 4, as: UInt32.self)
        unsafe announce(RecordType.trace, target, TraceLayout.bytes)
        return Status.ok
    }

    /// The value of that key in the calling thread, or nil. Valid until the next `set`.
    static func value(of key: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8>? {
        guard let words = unsafe cwi_tls_get().pointee.context else { return nil }
        let used = unsafe Int(words.load(as: UInt32.self))
        let fields = unsafe words + fieldsOffset
        var at = 2
        while at < used {
            let keyCount = unsafe Int(fields.loadUnaligned(fromByteOffset: at + 2, as: UInt16.self))
            let valueCount = unsafe Int(
                fields.loadUnaligned(fromByteOffset: at + 4 + keyCount, as: UInt32.self))
            let start = unsafe UnsafeRawPointer(fields + at + 4)
            if keyCount == key.count,
                unsafe UnsafeRawBufferPointer(start: start, count: keyCount).elementsEqual(key)
            {
                return unsafe UnsafeRawBufferPointer(
                    start: start + keyCount + 4, count: valueCount
                ).assumingMemoryBound(to: UInt8.self)
            }
            at += 8 + keyCount + valueCount
        }
        return nil
    }

    /// The calling thread's trace, 25 bytes, or nil.
    static var trace: UnsafeRawPointer? {
        guard let words = unsafe cwi_tls_get().pointee.context,
            unsafe words.load(fromByteOffset: 4, as: UInt32.self) != 0
        else { return nil }
        return unsafe UnsafeRawPointer(words + traceOffset)
    }

    /// Copies the calling thread's trace (25 bytes, FORMAT §8.4). False: it has none.
    package static func copyTrace(to target: UnsafeMutableRawPointer) -> Bool {
        guard let words = unsafe cwi_tls_get().pointee.context,
            unsafe words.load(fromByteOffset: 4, as: UInt32.self) != 0
        else { return false }
        unsafe target.copyMemory(from: words + traceOffset, byteCount: TraceLayout.bytes)
        return true
    }

    static func release(_ tls: UnsafeMutablePointer<cwi_tls>) {
        if let words = unsafe tls.pointee.context { unsafe ThreadAttachments.freeAll(words) }
        unsafe Memory.free(tls.pointee.context)
        unsafe tls.pointee.context = nil
        unsafe Memory.free(tls.pointee.last_error)
        unsafe tls.pointee.last_error = nil
    }

    /// The room that the preamble of this thread's next chunk takes.
    static var preambleBytes: Int {
        guard let words = unsafe cwi_tls_get().pointee.context else { return 0 }
        return unsafe 16 + 8 + Int(words.load(as: UInt32.self)) + 48
    }

    /// Writes the context and trace records at the start of a chunk; returns the new end.
    static func writePreamble(_ start: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer {
        guard let words = unsafe cwi_tls_get().pointee.context else { return unsafe start }
        var end = unsafe start
        let used = unsafe Int(words.load(as: UInt32.self))
        if used > 2 { unsafe end = write(end, RecordType.context, words + fieldsOffset, used) }
        if unsafe words.load(fromByteOffset: 4, as: UInt32.self) != 0 {
            unsafe end = write(end, RecordType.trace, words + traceOffset, TraceLayout.bytes)
        }
        return unsafe end
    }

    private static func write(
        _ start: UnsafeMutableRawPointer, _ type: UInt8, _ payload: UnsafeRawPointer, _ count: Int
    ) -> UnsafeMutableRawPointer {
        unsafe start.storeBytes(of: UInt32(RecordHeader.bytes + count), as: UInt32.self)
        unsafe start.storeBytes(of: 0, toByteOffset: 4, as: UInt64.self)
        unsafe start.storeBytes(of: UInt32(type) << 8, toByteOffset: 12, as: UInt32.self)
        unsafe (start + RecordHeader.bytes).copyMemory(from: payload, byteCount: count)
        return unsafe start + ((RecordHeader.bytes + count + 7) & ~7)
    }

    /// The calling thread's words, made on first use.
    static func words() -> UnsafeMutableRawPointer? {
        let tls = unsafe cwi_tls_get()!
        if let words = unsafe tls.pointee.context { return unsafe words }
        guard let words = unsafe Memory.allocateZeroed(fieldsOffset + bytesMax) else { return nil }
        unsafe tls.pointee.context = words
        registerThread()
        return unsafe words
    }

    /// True if the process has a key for per-thread memory. Not tied to the first open: a call that
    /// fails without any engine leaves its text behind, and until a key is made, our key's number
    /// is that of the host's first one.
    static let isPrepared = unsafe cwi_tls_prepare({ unsafe ThreadBlocks.threadExits($0) }) == 0

    /// Makes sure that the calling thread's memory is freed with the thread.
    package static func registerThread() {
        let tls = unsafe cwi_tls_get()!
        guard unsafe tls.pointee.registered == 0, isPrepared else { return }
        unsafe tls.pointee.registered = 1
        cwi_tls_register()
    }

    private static func store(_ words: UnsafeMutableRawPointer, _ used: Int) {
        cwa_fence_compiler()
        unsafe words.storeBytes(of: UInt32(used), as: UInt32.self)
    }

    /// Bytes of that key's field; 0: no such field.
    private static func bytesOf(
        _ key: UnsafeBufferPointer<UInt8>, _ fields: UnsafeMutableRawPointer, _ used: Int
    ) -> Int {
        var at = 2
        while at < used {
            let keyCount = unsafe Int(fields.loadUnaligned(fromByteOffset: at + 2, as: UInt16.self))
            let valueCount = unsafe Int(
                fields.loadUnaligned(fromByteOffset: at + 4 + keyCount, as: UInt32.self))
            let bytes = 8 + keyCount + valueCount
            if keyCount == key.count,
                unsafe keyCount == 0
                    || Memory.isSame(fields + at + 4, key.baseAddress!, keyCount)
            {
                return bytes
            }
            at += bytes
        }
        return 0
    }

    /// Removes that key's field; returns the bytes that are left.
    private static func remove(
        _ key: UnsafeBufferPointer<UInt8>, _ fields: UnsafeMutableRawPointer, _ used: Int
    ) -> Int {
        var at = 2
        while at < used {
            let keyCount = unsafe Int(fields.loadUnaligned(fromByteOffset: at + 2, as: UInt16.self))
            let valueCount = unsafe Int(
                fields.loadUnaligned(fromByteOffset: at + 4 + keyCount, as: UInt32.self))
            let bytes = 8 + keyCount + valueCount
            if keyCount == key.count,
                unsafe keyCount == 0
                    || Memory.isSame(fields + at + 4, key.baseAddress!, keyCount)
            {
                unsafe (fields + at).copyMemory(
                    from: fields + at + bytes, byteCount: used - at - bytes)
                let count = unsafe fields.loadUnaligned(as: UInt16.self)
                unsafe fields.storeBytes(of: count - 1, as: UInt16.self)
                return used - bytes
            }
            at += bytes
        }
        return used
    }

    /// Tells every engine that this thread logs to. If a record cannot be written now, the next
    /// chunk still starts with the new value.
    private static func announce(_ type: UInt8, _ payload: UnsafeRawPointer, _ count: Int) {
        let tls = unsafe cwi_tls_get()!
        unsafe tell(tls.pointee.current, type, payload, count)
        unsafe tell(tls.pointee.others.0, type, payload, count)
        unsafe tell(tls.pointee.others.1, type, payload, count)
        unsafe tell(tls.pointee.others.2, type, payload, count)
    }

    private static func tell(
        _ block: ThreadBlock?, _ type: UInt8, _ payload: UnsafeRawPointer, _ count: Int
    ) {
        guard let block = unsafe block, let engine = unsafe ThreadBlocks.engine(of: block) else {
            return
        }
        var nested = unsafe block.pointee.nested
        while let inner = unsafe nested {
            unsafe inner.pointee.context_stale = 1
            unsafe nested = inner.pointee.nested
        }
        guard unsafe block.pointee.chunk != nil else { return }
        _ = unsafe AppendSlow.append(
            engine, identifier: 0, 0, RawBody(type: type, start: payload, count: count))
    }
}
