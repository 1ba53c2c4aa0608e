// Everything that the hot path hands over: the first record of a thread, a full chunk, a nested
// call, a forked child, records with more than text, and every refusal. Nothing here takes a lock,
// allocates from the heap or waits (except for CW_OVERFLOW_BLOCK, where waiting is safe), so any
// thread may enter at any point.
// SAFETY: the caller's bytes last for the call; blocks are never unmapped; `write` stores only what
// `makeRoom` left below the limit, while `busy` keeps the segment mapped.

import CCordwood
import CShims
import Glibc

/// The content of a record after its header. Conformers write exactly `bytes` bytes.
protocol RecordBody {
    var type: UInt8 { get }
    var flags: UInt16 { get }
    var bytes: Int { get }
    func write(to start: UnsafeMutableRawPointer)
    /// The same record, cut so that `bytes` is at most `limit`; nil if that is impossible.
    func truncated(to limit: Int) -> Self?
    /// False for one of the engine's own records (context, trace), which stats do not count.
    var isRecord: Bool { get }
}

extension RecordBody {
    var isRecord: Bool { true }
}

public enum AppendSlow {
    /// Handles refusals, and a NULL message of no bytes.
    @inline(never)
    public static func unusual(
        _ logger: LoggerBlock, _ level: UInt32, _ message: UnsafeRawPointer?, _ length: Int
    ) -> Int32 {
        let refusal = unsafe refusal(logger, level)
        guard refusal == Status.ok else { return refusal }
        guard unsafe message != nil || length == 0 else { return Status.argument }
        return unsafe text(logger, level, message, length)
    }

    /// Why a record of that level is refused, or ok.
    public static func refusal(_ logger: LoggerBlock, _ level: UInt32) -> Int32 {
        let word = unsafe cwa_load_relaxed_u32(logger)
        if level == 0 || level > 24 { return Status.level }
        if word == 0 { return Status.closed }
        return level &+ word > 255 ? Status.ok : Status.disabled
    }

    @inline(never)
    public static func text(
        _ logger: LoggerBlock, _ level: UInt32, _ message: UnsafeRawPointer?, _ length: Int
    ) -> Int32 {
        guard length >= 0, unsafe message != nil || length == 0 else { return Status.argument }
        let body = unsafe TextBody(start: message, count: length, originalLength: nil)
        return unsafe append(logger, UInt8(level), body)
    }

    /// The time of a record whose engine does not use the processor's counter.
    @inline(never)
    public static func ticks(_ engine: EngineBlock?) -> UInt64 {
        unsafe engine.map { unsafe Clock.now($0) } ?? 0
    }

    /// Preserves errno, which the host may be about to read; passes it to the body.
    static func keepingErrno(_ body: (Int32) -> Int32) -> Int32 {
        let error = errno
        defer { errno = error }
        return body(error)
    }

    static func append<Body: RecordBody>(
        _ logger: LoggerBlock, _ level: UInt8, _ body: Body
    ) -> Int32 {
        keepingErrno { _ in unsafe appendAny(logger, level, body) }
    }

    private static func appendAny<Body: RecordBody>(
        _ logger: LoggerBlock, _ level: UInt8, _ body: Body
    ) -> Int32 {
        guard let engine = unsafe logger.pointee.engine else { return Status.closed }
        var status = unsafe append(engine, identifier: logger.pointee.id, level, body)
        while status == Status.full, unsafe mayWait(engine) {
            unsafe EngineCore.wake(engine)
            ThreadIdentity.pause(microseconds: 2_000)
            status = unsafe append(engine, identifier: logger.pointee.id, level, body)
        }
        if status == Status.full { unsafe countRefused(engine) }
        if status == Status.ok, unsafe engine.pointee.echo != 0,
            let echo = unsafe cwi_process_get().pointee.echo
        {
            unsafe echo(engine)
        }
        return status
    }

    /// Sets busy meanwhile, so that close does not take the lane file away.
    static func countRefused(_ engine: EngineBlock) {
        guard unsafe cwi_tls_get().pointee.helper & UInt8(CWI_HELPER_WRITES) == 0 else { return }
        let refusal = unsafe Refusal.of(engine)
        unsafe refusal.keep(engine)
        guard let thread = unsafe ThreadBlocks.enterOwn(engine) else {
            return unsafe Drops.count(engine, refusal.cause, inFile: false)
        }
        defer { unsafe cwa_store_release_u64(AppendPath.busyWord(thread), 0) }
        let isOpen = unsafe cwa_load_acquire_u32(engine) == UInt32(CWI_ENGINE_OPEN)
        unsafe Drops.count(engine, refusal.cause, inFile: isOpen)
    }

    /// CW_OVERFLOW_BLOCK waits, except in nested calls, in forked children, and on the engine's own
    /// threads, which make the room. The thread is not busy while it waits, so close and the
    /// release of segments proceed; close ends the wait.
    private static func mayWait(_ engine: EngineBlock) -> Bool {
        guard unsafe engine.pointee.overflow == UInt32(CW_OVERFLOW_BLOCK),
            unsafe !EngineCore.isForked(engine),
            unsafe cwi_tls_get().pointee.helper == 0,
            let own = unsafe ThreadBlocks.own(engine)
        else { return false }
        return unsafe cwa_load_relaxed_u64(AppendPath.busyWord(own)) == 0
    }

    /// Appends to the calling thread's block, or to a nested one if it interrupts an append. The
    /// record is kept exactly once: if the helper settles the chunk short of it, it is written
    /// again.
    static func append<Body: RecordBody>(
        _ engine: EngineBlock, identifier: UInt32, _ level: UInt8, _ body: Body
    ) -> Int32 {
        // The system calls below are cancellation points (R19).
        let cancel = cwi_disable_cancel()
        defer { cwi_restore_cancel(cancel) }
        // ORDER: acquire. Pairs with close, which stores CLOSING before it settles (A13).
        guard unsafe cwa_load_acquire_u32(engine) == UInt32(CWI_ENGINE_OPEN) else {
            return Status.closed
        }
        guard let thread = unsafe ThreadBlocks.enterOwn(engine) else { return Status.full }
        // The frame that entered must leave, whatever happens.
        defer { unsafe cwa_store_release_u64(AppendPath.busyWord(thread), 0) }
        // Check again, now that busy is set: close waits for threads that got here before it (A13).
        guard unsafe cwa_load_acquire_u32(engine) == UInt32(CWI_ENGINE_OPEN) else {
            return Status.closed
        }
        var body = body
        if unsafe body.bytes > recordBytesMax(engine) {
            guard let cut = unsafe body.truncated(to: recordBytesMax(engine)) else {
                return Status.limit
            }
            body = cut
        }
        for _ in 0..<16 {
            let status = unsafe Claim.makeRoom(thread, engine, bytes: 16 + 24 + body.bytes + 7)
            guard status == Status.ok else { return status }
            guard let (start, end) = unsafe write(thread, engine, identifier, level, body) else {
                continue
            }
            switch unsafe commit(thread, engine, start, end) {
            case .again: continue
            case .full: return Status.full
            case .kept:
                if body.isRecord { unsafe thread.pointee.records &+= 1 }
                return Status.ok
            }
        }
        return Status.full
    }

    /// The largest payload that fits in a fresh segment.
    static func recordBytesMax(_ engine: EngineBlock) -> Int {
        unsafe Int(SegmentSize.of(engine)) - SegmentHeader.bytes - ChunkHeader.bytes
            - Claim.preambleBytesMax - 64
    }

    /// The most room that `append` asks for: the record with its header, a time base, alignment.
    static func appendBytesMax(_ engine: EngineBlock) -> Int {
        unsafe recordBytesMax(engine) + 16 + 24 + 7
    }

    /// Writes a time base if the clock asks for one, then the record, not yet committed. nil: this
    /// is a child that a handler forked after room was made.
    private static func write<Body: RecordBody>(
        _ thread: ThreadBlock, _ engine: EngineBlock, _ identifier: UInt32, _ level: UInt8,
        _ body: Body
    ) -> (UnsafeMutableRawPointer, UnsafeMutableRawPointer)? {
        guard let ptr = unsafe thread.pointee.ptr else { return nil }
        let start = UnsafeMutableRawPointer(ptr)
        var cursor = unsafe start
        let ticks = unsafe Clock.now(engine)
        if unsafe ticks < thread.pointee.base_ticks
            || ticks &- thread.pointee.base_ticks > 0xFFFF_FFFF
        {
            unsafe cursor.storeBytes(of: 24, as: UInt32.self)
            unsafe cursor.storeBytes(of: 0, toByteOffset: 4, as: UInt64.self)
            unsafe cursor.storeBytes(
                of: UInt32(RecordType.timeBase) << 8, toByteOffset: 12, as: UInt32.self)
            unsafe cursor.storeBytes(of: ticks, toByteOffset: 16, as: UInt64.self)
            unsafe thread.pointee.base_ticks = ticks
            unsafe cursor += 24
        }
        let length = 16 + body.bytes
        unsafe cursor.storeBytes(of: UInt32(length), as: UInt32.self)
        unsafe cursor.storeBytes(
            of: UInt32(truncatingIfNeeded: ticks &- thread.pointee.base_ticks), toByteOffset: 4,
            as: UInt32.self)
        unsafe cursor.storeBytes(of: identifier, toByteOffset: 8, as: UInt32.self)
        unsafe cursor.storeBytes(of: level, toByteOffset: 12, as: UInt8.self)
        unsafe cursor.storeBytes(of: body.type, toByteOffset: 13, as: UInt8.self)
        unsafe cursor.storeBytes(of: body.flags, toByteOffset: 14, as: UInt16.self)
        unsafe body.write(to: cursor + 16)
        return unsafe (start, cursor + ((length + 7) & ~7))
    }

    private enum Commit { case kept, again, full }

    /// Publishes [start, end). again: the helper settled the chunk short of the record; write it
    /// again. full: in write mode, the file refuses it.
    private static func commit(
        _ thread: ThreadBlock, _ engine: EngineBlock, _ start: UnsafeMutableRawPointer,
        _ end: UnsafeMutableRawPointer
    ) -> Commit {
        guard let header = unsafe thread.pointee.chunk, let segment = unsafe thread.pointee.segment
        else {
            return .again
        }
        let chunk = UnsafeMutableRawPointer(header)
        guard unsafe WriteThrough.segment(engine, segment, start, end - start) else {
            unsafe Refusal.note(engine, errno: errno)
            // The next record begins a new chunk, which reports this one.
            _ = unsafe Settle.own(thread)
            return .full
        }
        invariant(
            unsafe start >= chunk + ChunkHeader.bytes && end > start && (end - start) % 8 == 0
                && end - chunk <= Int(thread.pointee.chunk_bytes),
            "a record lies within its chunk")
        // ORDER: release, then compiler; as AppendPath (A4, A2).
        unsafe cwa_store_release_u32(chunk + 8, UInt32(end - chunk))
        unsafe thread.pointee.ptr = end.assumingMemoryBound(to: UInt8.self)
        Membarrier.lightFence()
        let isClosed = unsafe cwa_load_relaxed_u64(AppendPath.limitWord(thread)) == 0
        let isKept = unsafe !isClosed || Settle.own(thread, hasCommitted: true, leaves: false)
        // Busy, and the block still names the segment, so its memory and descriptor remain valid.
        let isWritten =
            unsafe isKept
            && WriteThrough.segment(engine, segment, chunk + ChunkHeader.committed, 4)
        if isKept, !isWritten { unsafe Refusal.note(engine, errno: errno) }
        if isClosed { unsafe ThreadBlocks.leaveChunk(thread) }
        guard isKept else { return .again }
        if isWritten { return .kept }
        // The file refused it: the chunk ends before the record, unless the helper has settled it
        // after the record.
        let whole = unsafe UInt32(truncatingIfNeeded: end - chunk)
        unsafe thread.pointee.ptr = start.assumingMemoryBound(to: UInt8.self)
        _ = unsafe Settle.own(thread)
        return unsafe Verdict.load(thread).offset >= whole ? .kept : .full
    }

    /// The hot path committed and then found its limit gone. True: the record is kept, and the
    /// thread is still busy. False: the record must be written again, and the thread is idle.
    @inline(never)
    public static func settledKept(_ thread: ThreadBlock) -> Bool {
        if unsafe Settle.own(thread, hasCommitted: true) { return true }
        unsafe cwa_store_release_u64(AppendPath.busyWord(thread), 0)
        return false
    }

    /// Ends such an append like AppendPath.commit.
    @inline(never)
    public static func committed(_ thread: ThreadBlock) -> Bool {
        guard unsafe settledKept(thread) else { return false }
        unsafe thread.pointee.records &+= 1
        // ORDER: release. As in AppendPath.commit (A1).
        unsafe cwa_store_release_u64(AppendPath.busyWord(thread), 0)
        return true
    }
}

/// A record of text (FORMAT §8, type 1).
@safe struct TextBody: RecordBody {
    var start: UnsafeRawPointer?
    var count: Int
    var originalLength: UInt64?

    var type: UInt8 { RecordType.text }
    var flags: UInt16 { originalLength == nil ? 0 : RecordHeader.flagTruncated }
    var bytes: Int { originalLength == nil ? count : count + 8 }

    func write(to target: UnsafeMutableRawPointer) {
        var target = unsafe target
        if let originalLength {
            unsafe target.storeBytes(of: originalLength, as: UInt64.self)
            unsafe target += 8
        }
        if let start = unsafe start, count > 0 {
            unsafe target.copyMemory(from: start, byteCount: count)
        }
    }

    func truncated(to limit: Int) -> TextBody? {
        guard limit > 8 else { return nil }
        return unsafe TextBody(
            start: start, count: min(count, limit - 8), originalLength: UInt64(count))
    }
}

/// Raw bytes of one of the engine's own record types: context, trace, gap.
@safe struct RawBody: RecordBody {
    var type: UInt8
    var start: UnsafeRawPointer?
    var count: Int

    var flags: UInt16 { 0 }
    var bytes: Int { count }
    var isRecord: Bool { false }

    func write(to target: UnsafeMutableRawPointer) {
        if let start = unsafe start, count > 0 {
            unsafe target.copyMemory(from: start, byteCount: count)
        }
    }

    func truncated(to limit: Int) -> RawBody? { nil }
}

package enum Clock {
    /// The time of the engine's next record: ticks of its clock (FORMAT §4), or the held ones.
    static func now(_ engine: EngineBlock) -> UInt64 {
        // ORDER: relaxed. A thread that sees it late takes the time itself (A41).
        let held = unsafe cwa_load_relaxed_u64(cwi_engine_held_ticks_at(engine))
        return held == 0 ? unsafe read(engine) : held
    }

    /// Gives the following records the present time, until `letGo`. Only in an engine that was
    /// opened for it (`holdsTime`).
    package static func hold(_ engine: EngineBlock) {
        guard unsafe engine.pointee.holds_time != 0 else { return }
        unsafe cwa_store_relaxed_u64(cwi_engine_held_ticks_at(engine), read(engine))
    }

    package static func letGo(_ engine: EngineBlock) {
        unsafe cwa_store_relaxed_u64(cwi_engine_held_ticks_at(engine), 0)
    }

    private static func read(_ engine: EngineBlock) -> UInt64 {
        switch unsafe engine.pointee.clock_kind {
        case SegmentHeader.clockTSC: return cw_ticks_tsc()
        case SegmentHeader.clockCoarse: return cw_coarse_ns()
        default: return cw_monotonic_ns()
        }
    }
}
