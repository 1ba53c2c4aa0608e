// The hot path. A record is appended by plain stores into the calling thread's chunk of a mapped
// segment: read the clock, copy, one store-release of the chunk's committed offset. No lock, no
// system call, no allocation, no read-modify-write. Any thread may enter, also in a signal handler
// and in a forked child; whatever is unusual goes to AppendSlow. docs/CONCURRENCY.md has the proof.
// SAFETY: `ptr`, `limit` and `chunk` point into a segment's mapping, which the helper releases only
// when no busy thread can store there (R2); `room` bounds every store. Blocks are never unmapped.

import CShims

public typealias EngineBlock = UnsafeMutablePointer<cwi_engine>
public typealias ThreadBlock = UnsafeMutablePointer<cwi_thread>
public typealias LoggerBlock = UnsafeMutablePointer<cwi_logger>

public enum AppendPath {
    /// `cw_write`: one record of text. The caller has checked `logger` for nil only.
    @inlinable @inline(__always)
    public static func text(
        _ logger: LoggerBlock, _ level: UInt32, _ message: UnsafeRawPointer?, _ length: Int
    ) -> Int32 {
        // ORDER: relaxed. A threshold may take effect late; nothing is published by it (A16).
        let word = unsafe cwa_load_relaxed_u32(logger)
        guard level &+ word > 255, level &- 1 < 24, let message = unsafe message else {
            return unsafe AppendSlow.unusual(logger, level, message, length)
        }
        return unsafe put(ProcessorTicks.self, logger, level, message, length)
    }

    @inlinable @inline(__always)
    static func put<Ticks: TickSource>(
        _ source: Ticks.Type, _ logger: LoggerBlock, _ level: UInt32,
        _ message: UnsafeRawPointer, _ length: Int
    ) -> Int32 {
        guard length >= 0, let record = unsafe begin(source, logger, level | 1 << 8, length) else {
            return unsafe slow(source, logger, level, message, length)
        }
        unsafe (record.start + 16).copyMemory(from: message, byteCount: length)
        return unsafe commit(record, length)
            ? Status.ok : slow(source, logger, level, message, length)
    }

    /// A record with more than text, where the chunk has room. False: it is not written, and
    /// AppendSlow is to.
    @inline(__always)
    static func fits<Ticks: TickSource, Body: RecordBody>(
        _ source: Ticks.Type, _ logger: LoggerBlock, _ level: UInt8, _ body: Body, _ bytes: Int
    ) -> Bool {
        let kind = UInt32(level) | UInt32(body.type) << 8 | UInt32(body.flags) << 16
        guard let record = unsafe begin(source, logger, kind, bytes) else { return false }
        unsafe body.write(to: record.start + 16)
        return unsafe commit(record, bytes)
    }

    /// Begins a record of `bytes` bytes behind its 16 of header, and writes the header but for the
    /// length. `kind`: level, type and flags (FORMAT §8). nil: nothing has begun; the slow path.
    @inlinable @inline(__always)
    static func begin<Ticks: TickSource>(
        _ source: Ticks.Type, _ logger: LoggerBlock, _ kind: UInt32, _ bytes: Int
    ) -> RecordInChunk? {
        guard let thread = unsafe cwi_tls_get().pointee.current, unsafe thread.pointee.busy == 0
        else { return nil }

        unsafe cwa_store_relaxed_u64(busyWord(thread), UInt64(cwi_frame()))
        // ORDER: compiler only. A handler on this thread must see busy before anything moves (A1).
        cwa_fence_compiler()
        // Behind busy: a handler may give an idle block to another engine (BlockTable).
        let engine = unsafe engineWord(logger)
        guard unsafe engineWord(thread) == Ticks.marked(engine) else {
            unsafe cwa_store_release_u64(busyWord(thread), 0)
            return nil
        }
        // ORDER: relaxed. A stale limit is caught by the second look below (A2).
        let room =
            unsafe Int(truncatingIfNeeded: cwa_load_relaxed_u64(limitWord(thread)))
            &- Int(bitPattern: thread.pointee.ptr)
        let ticks = unsafe Ticks.now(EngineBlock(bitPattern: engine))
        let delta = unsafe ticks &- thread.pointee.base_ticks
        // Both at once: there is room, and the time fits.
        let left = room &- 24 &- bytes
        guard UInt(bitPattern: left) >> 63 | UInt(delta >> 32) == 0,
            let ptr = unsafe thread.pointee.ptr, let chunk = unsafe thread.pointee.chunk
        else {
            unsafe cwa_store_release_u64(busyWord(thread), 0)
            return nil
        }
        let start = UnsafeMutableRawPointer(ptr)
        unsafe start.storeBytes(
            of: UInt32(truncatingIfNeeded: delta), toByteOffset: 4, as: UInt32.self)
        unsafe start.storeBytes(of: logger.pointee.id, toByteOffset: 8, as: UInt32.self)
        unsafe start.storeBytes(of: kind, toByteOffset: 12, as: UInt32.self)
        return unsafe RecordInChunk(
            thread: thread, chunk: UnsafeMutableRawPointer(chunk), start: start, left: left)
    }

    /// What has begun is not written after all.
    @inlinable @inline(__always)
    static func giveUp(_ record: RecordInChunk) {
        unsafe cwa_store_release_u64(busyWord(record.thread), 0)
    }

    /// Publishes the record with its `bytes`, counts it and ends the append. False: the helper has
    /// settled the chunk short of it, and it is to be written again.
    @inlinable @inline(__always)
    static func commit(_ record: RecordInChunk, _ bytes: Int) -> Bool {
        let thread = unsafe record.thread
        let chunk = unsafe record.chunk
        unsafe record.start.storeBytes(
            of: UInt32(truncatingIfNeeded: bytes &+ 16), as: UInt32.self)
        let end = unsafe record.start + ((bytes &+ 23) & ~7)
        // CRASH: before this store the record does not exist, after it it is whole.
        // ORDER: release. Publishes the record's bytes to readers and to whoever finds us dead.
        // Pairs: ChunkReader, pread after the load (A4).
        unsafe cwa_store_release_u32(chunk + 8, UInt32(truncatingIfNeeded: end - chunk))
        unsafe thread.pointee.ptr = end.assumingMemoryBound(to: UInt8.self)
        // Each line of a chunk, and each page, is new to this processor when it is reached: the
        // helper has filled it. A third off p99.9 at 1 M/s.
        unsafe cwi_fetch_ahead(end + fetchAhead)
        // ORDER: compiler only. The helper's membarrier makes the store above and the load below
        // ordered against its poison and its look at committed (A2).
        cwa_fence_compiler()
        if unsafe cwa_load_relaxed_u64(limitWord(thread)) == 0,
            unsafe !AppendSlow.settledKept(thread)
        {
            return false
        }
        unsafe thread.pointee.records &+= 1
        // ORDER: release. The helper that sees us idle sees our last store (A1).
        unsafe cwa_store_release_u64(busyWord(thread), 0)
        return true
    }

    @inlinable @inline(__always)
    static func slow<Ticks: TickSource>(
        _ source: Ticks.Type, _ logger: LoggerBlock, _ level: UInt32,
        _ message: UnsafeRawPointer, _ length: Int
    ) -> Int32 {
        Ticks.isProcessor
            ? unsafe AppendSlow.text(logger, level, message, length)
            : unsafe AppendSlow.anyText(logger, level, message, length)
    }

    /// Bytes; several records, for a fetch from another processor's cache takes as long.
    @inlinable @inline(__always)
    static var fetchAhead: Int { 1024 }

    @inlinable @inline(__always)
    static func limitWord(_ thread: ThreadBlock) -> UnsafeMutableRawPointer {
        unsafe UnsafeMutableRawPointer(thread) + 8
    }

    @inlinable @inline(__always)
    static func busyWord(_ thread: ThreadBlock) -> UnsafeMutableRawPointer {
        unsafe UnsafeMutableRawPointer(thread) + 32
    }
}

extension AppendPath {
    /// As numbers: to compare pointers that may be nil takes two instructions more.
    @inlinable @inline(__always)
    static func engineWord(_ logger: LoggerBlock) -> UInt {
        unsafe UnsafeRawPointer(logger).load(fromByteOffset: 8, as: UInt.self)
    }

    /// With the mark of its clock.
    @inlinable @inline(__always)
    static func engineWord(_ thread: ThreadBlock) -> UInt {
        unsafe UnsafeRawPointer(thread).load(fromByteOffset: 40, as: UInt.self)
    }
}

/// A record that has begun, in its thread's chunk. `left`: bytes that it may grow by.
@usableFromInline
@unsafe struct RecordInChunk {
    @usableFromInline let thread: ThreadBlock
    @usableFromInline let chunk: UnsafeMutableRawPointer
    @usableFromInline let start: UnsafeMutableRawPointer
    @usableFromInline let left: Int

    @inlinable @inline(__always)
    init(
        thread: ThreadBlock, chunk: UnsafeMutableRawPointer, start: UnsafeMutableRawPointer,
        left: Int
    ) {
        unsafe self.thread = thread
        unsafe self.chunk = chunk
        unsafe self.start = start
        unsafe self.left = left
    }
}

/// Where a record's time comes from (FORMAT §4). A thread's block names its engine with a mark, so
/// that the hot path's one comparison also answers which clock it is.
public protocol TickSource {
    static var isProcessor: Bool { get }
    static func marked(_ engine: UInt) -> UInt
    static func now(_ engine: EngineBlock?) -> UInt64
}

/// The processor's time-stamp counter: no mark, the hot path proper.
public enum ProcessorTicks: TickSource {
    @inlinable @inline(__always) public static var isProcessor: Bool { true }
    @inlinable @inline(__always)
    public static func marked(_ engine: UInt) -> UInt { engine }
    @inlinable @inline(__always)
    public static func now(_ engine: EngineBlock?) -> UInt64 { cw_ticks_tsc() }
}

/// One of the system's clocks: the coarse one of CW_FLAG_COARSE_CLOCK, or the monotonic one where
/// the counter cannot be trusted. The same path, entered by way of AppendSlow.
public enum SystemTicks: TickSource {
    /// Bit of a block's engine pointer (ThreadBlocks.mark).
    static var mark: UInt { 2 }
    public static var isProcessor: Bool { false }
    public static func marked(_ engine: UInt) -> UInt { engine | mark }
    public static func now(_ engine: EngineBlock?) -> UInt64 {
        unsafe engine.map { unsafe Clock.now($0) } ?? 0
    }

    /// True where the calling thread's block in that logger's engine has this mark and no other.
    static func has(_ logger: LoggerBlock) -> Bool {
        guard let thread = unsafe cwi_tls_get().pointee.current else { return false }
        let engine = unsafe AppendPath.engineWord(logger)
        return unsafe engine != 0 && AppendPath.engineWord(thread) == marked(engine)
    }
}
