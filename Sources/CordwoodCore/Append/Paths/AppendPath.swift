// The hot path. It appends a record by plain stores into the calling thread's chunk of a mapped
// segment: read the clock, copy, one store-release of the chunk's committed offset. No lock, no
// system call, no allocation, no read-modify-write. Any thread may enter, even in a signal handler
// or in a forked child; every unusual case goes to AppendSlow. docs/CONCURRENCY.md has the proof.
// SAFETY: `ptr`, `limit` and `chunk` point into a segment's mapping, which the helper releases only
// when no busy thread can store there (R2); `room` bounds every store. Blocks are never unmapped.

import CShims

public typealias EngineBlock = UnsafeMutablePointer<cwi_engine>
public typealias ThreadBlock = UnsafeMutablePointer<cwi_thread>
public typealias LoggerBlock = UnsafeMutablePointer<cwi_logger>

public enum AppendPath {
    /// `cw_write`: one record of text. The caller has checked only that `logger` is not nil.
    @inlinable @inline(__always)
    public static func text(
        _ logger: LoggerBlock, _ level: UInt32, _ message: UnsafeRawPointer?, _ length: Int
    ) -> Int32 {
        // ORDER: relaxed. A threshold may take effect late; it publishes nothing (A16).
        let word = unsafe cwa_load_relaxed_u32(logger)
        guard level &+ word > 255, level &- 1 < 24, let message = unsafe message else {
            return unsafe AppendSlow.unusual(logger, level, message, length)
        }
        return unsafe put(logger, level, message, length)
    }

    @inlinable @inline(__always)
    static func put(
        _ logger: LoggerBlock, _ level: UInt32, _ message: UnsafeRawPointer, _ length: Int
    ) -> Int32 {
        guard length >= 0, let record = unsafe begin(logger, level | 1 << 8, length) else {
            return unsafe AppendSlow.text(logger, level, message, length)
        }
        unsafe (record.start + 16).copyMemory(from: message, byteCount: length)
        return unsafe commit(record, length)
            ? Status.ok : AppendSlow.text(logger, level, message, length)
    }

    /// A record with more than text, if the chunk has room. False: nothing was written, and
    /// AppendSlow must write it.
    @inline(__always)
    static func fits<Body: RecordBody>(
        _ logger: LoggerBlock, _ level: UInt8, _ body: Body, _ bytes: Int
    ) -> Bool {
        let kind = UInt32(level) | UInt32(body.type) << 8 | UInt32(body.flags) << 16
        guard let record = unsafe begin(logger, kind, bytes) else { return false }
        unsafe body.write(to: record.start + 16)
        return unsafe commit(record, bytes)
    }

    /// Begins a record of `bytes` bytes after its 16-byte header, and writes the header except for
    /// the length. `kind`: level, type and flags (FORMAT §8). nil: nothing has begun; take the slow
    /// path, or another one if `anyClock` is false and the time does not come from the counter.
    @inlinable @inline(__always)
    static func begin(
        _ logger: LoggerBlock, _ kind: UInt32, _ bytes: Int, anyClock: Bool = true
    ) -> RecordInChunk? {
        guard let thread = unsafe cwi_tls_get().pointee.current, unsafe thread.pointee.busy == 0
        else { return nil }

        unsafe cwa_store_relaxed_u64(busyWord(thread), UInt64(cwi_frame()))
        // ORDER: compiler only. A handler on this thread must see busy before anything moves (A1).
        cwa_fence_compiler()
        // After busy is set: before that, a handler may give an idle block to another engine
        // (BlockTable).
        let engine = unsafe engineWord(logger)
        let ticks: UInt64
        if unsafe engineWord(thread) == engine {
            ticks = cw_ticks_tsc()
        } else if unsafe anyClock && engineWord(thread) == engine | clockMark {
            ticks = unsafe AppendSlow.ticks(EngineBlock(bitPattern: engine))
        } else {
            unsafe cwa_store_release_u64(busyWord(thread), 0)
            return nil
        }
        // ORDER: relaxed. The limit comes last: where it is not 0, no handler has forked before,
        // and the words above are not a wiped block's. The second check below catches a stale
        // limit (A2).
        let chunk = unsafe UInt(truncatingIfNeeded: cwa_load_relaxed_u64(chunkWord(thread)))
        let ptr = unsafe UInt(truncatingIfNeeded: cwa_load_relaxed_u64(ptrWord(thread)))
        let delta = unsafe ticks &- thread.pointee.base_ticks
        cwa_fence_compiler()
        let limit = unsafe UInt(truncatingIfNeeded: cwa_load_relaxed_u64(limitWord(thread)))
        // One comparison tests both: there is room, of which a chunk has less than 4 GiB, and the
        // time fits.
        let left = limit &- ptr &- (UInt(bitPattern: bytes) &+ 24)
        guard (left | UInt(truncatingIfNeeded: delta)) >> 32 == 0 else {
            unsafe cwa_store_release_u64(busyWord(thread), 0)
            return nil
        }
        let start = unsafe UnsafeMutableRawPointer(bitPattern: ptr).unsafelyUnwrapped
        unsafe start.storeBytes(
            of: UInt32(truncatingIfNeeded: delta), toByteOffset: 4, as: UInt32.self)
        unsafe start.storeBytes(of: logger.pointee.id, toByteOffset: 8, as: UInt32.self)
        unsafe start.storeBytes(of: kind, toByteOffset: 12, as: UInt32.self)
        return unsafe RecordInChunk(
            thread: thread, chunk: UnsafeMutableRawPointer(bitPattern: chunk).unsafelyUnwrapped,
            start: start, left: Int(bitPattern: left))
    }

    /// Abandons a record that has begun.
    @inlinable @inline(__always)
    static func giveUp(_ record: RecordInChunk) {
        unsafe cwa_store_release_u64(busyWord(record.thread), 0)
    }

    /// Publishes the record with its `bytes`, counts it and ends the append. False: the helper has
    /// settled the chunk short of it, and it must be written again.
    @inlinable @inline(__always)
    static func commit(_ record: RecordInChunk, _ bytes: Int) -> Bool {
        let thread = unsafe record.thread
        let chunk = unsafe record.chunk
        unsafe record.start.storeBytes(
            of: UInt32(truncatingIfNeeded: bytes &+ 16), as: UInt32.self)
        let end = unsafe record.start + ((bytes &+ 23) & ~7)
        invariant(
            unsafe end - chunk
                <= Int(chunk.load(fromByteOffset: ChunkHeader.size, as: UInt32.self)),
            "a record ends within its chunk")
        // CRASH: before this store the record does not exist; after it the record is complete.
        // ORDER: release. Publishes the record's bytes to readers and to the process that finds us
        // dead. Pairs: ChunkReader, pread after the load (A4).
        unsafe cwa_store_release_u32(chunk + 8, UInt32(truncatingIfNeeded: end - chunk))
        unsafe thread.pointee.ptr = end.assumingMemoryBound(to: UInt8.self)
        // Each cache line and page of a chunk is new to this processor when the thread reaches it,
        // because the helper has filled it. Prefetching takes a third off p99.9 at 1 M/s.
        unsafe cwi_fetch_ahead(end + fetchAhead)
        // ORDER: compiler only. The helper's membarrier orders the store above and the load below
        // against its poison and its load of committed (A2).
        cwa_fence_compiler()
        if unsafe cwa_load_relaxed_u64(limitWord(thread)) == 0 {
            return unsafe AppendSlow.committed(thread)
        }
        unsafe thread.pointee.records &+= 1
        // ORDER: release. A helper that sees us idle sees our last store (A1).
        unsafe cwa_store_release_u64(busyWord(thread), 0)
        return true
    }

    /// Bytes. Covers several records, because a fetch from another processor's cache takes that
    /// long.
    @inlinable @inline(__always)
    static var fetchAhead: Int { 1024 }

    @inlinable @inline(__always)
    static func limitWord(_ thread: ThreadBlock) -> UnsafeMutableRawPointer {
        unsafe UnsafeMutableRawPointer(thread) + 8
    }

    @inlinable @inline(__always)
    static func ptrWord(_ thread: ThreadBlock) -> UnsafeMutableRawPointer {
        UnsafeMutableRawPointer(thread)
    }

    @inlinable @inline(__always)
    static func chunkWord(_ thread: ThreadBlock) -> UnsafeMutableRawPointer {
        unsafe UnsafeMutableRawPointer(thread) + 16
    }

    @inlinable @inline(__always)
    static func busyWord(_ thread: ThreadBlock) -> UnsafeMutableRawPointer {
        unsafe UnsafeMutableRawPointer(thread) + 32
    }
}

extension AppendPath {
    /// Compared as numbers: comparing pointers that may be nil takes two more instructions.
    @inlinable @inline(__always)
    static func engineWord(_ logger: LoggerBlock) -> UInt {
        unsafe UnsafeRawPointer(logger).load(fromByteOffset: 8, as: UInt.self)
    }

    /// The mark of an engine whose time does not come from the processor's counter
    /// (ThreadBlocks.mark).
    @inlinable @inline(__always)
    static var clockMark: UInt { 2 }

    /// The engine pointer, including its marks.
    @inlinable @inline(__always)
    static func engineWord(_ thread: ThreadBlock) -> UInt {
        unsafe UnsafeRawPointer(thread).load(fromByteOffset: 40, as: UInt.self)
    }
}

/// A record that has begun, in its thread's chunk. `left`: the number of bytes it may still grow
/// by.
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
