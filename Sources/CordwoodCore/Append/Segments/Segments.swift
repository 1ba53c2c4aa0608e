// Makes, grows and publishes segments. The helper does so ahead of time; if no spare is ready, a
// writer does it in line. So everything here is lock-free, avoids the heap, and uses only system
// calls that a signal handler may make. docs/CONCURRENCY.md, A5, A6, A10, A11.
// SAFETY: `base` maps `size` bytes from MAKING until the helper's grace period after SEALED; slots
// lie in the engine's block, at most CWI_SEGMENTS_MAX. Every store lies below `ready`, or in the
// header page.

import CCordwood
import CShims
import Glibc

package enum Segments {
    static var open: UInt32 { UInt32(CWI_SEGMENT_OPEN) }
    static var free: UInt32 { UInt32(CWI_SEGMENT_FREE) }
    static var making: UInt32 { UInt32(CWI_SEGMENT_MAKING) }
    static var spare: UInt32 { UInt32(CWI_SEGMENT_SPARE) }
    static var sealing: UInt32 { UInt32(CWI_SEGMENT_SEALING) }
    static var sealed: UInt32 { UInt32(CWI_SEGMENT_SEALED) }

    static func ready(_ segment: SegmentBlock) -> UInt64 {
        unsafe cwa_load_acquire_u64(readyWord(segment))
    }

    static func stateWord(_ segment: SegmentBlock) -> UnsafeMutableRawPointer {
        unsafe cwi_segment_state_at(segment)
    }

    static func hasState(
        _ segment: SegmentBlock, _ one: UInt32, _ other: UInt32 = .max
    ) -> Bool {
        let state = unsafe cwa_load_acquire_u32(stateWord(segment))
        return state == one || state == other
    }

    private static func readyWord(_ segment: SegmentBlock) -> UnsafeMutableRawPointer {
        unsafe cwi_segment_ready_at(segment)
    }

    /// Initial size of a file; it grows fourfold from there.
    static let firstBytes: UInt64 = 64 << 10

    static func table(_ engine: EngineBlock) -> SegmentBlock {
        let start = unsafe cwi_engine_segments_at(engine)
        return unsafe start.assumingMemoryBound(to: cwi_segment.self)
    }

    static func forEach(_ engine: EngineBlock, _ body: (SegmentBlock) -> Void) {
        let table = unsafe table(engine)
        for i in 0..<Int(CWI_SEGMENTS_MAX) { unsafe body(table + i) }
    }

    /// Makes the bytes below `upTo` safe to store to. thread nil: called by the helper, ahead of
    /// time.
    static func grow(
        _ engine: EngineBlock, _ lane: LaneBlock, _ segment: SegmentBlock, upTo: UInt64,
        _ thread: ThreadBlock?
    ) -> Bool {
        // ORDER: acquire. Once `ready` covers them, the file's blocks exist (A6).
        var ready = unsafe cwa_load_acquire_u64(readyWord(segment))
        guard ready < upTo else { return true }
        if unsafe isRefused(lane) { return false }
        if unsafe thread != nil {
            if unsafe engine.pointee.overflow == UInt32(CW_OVERFLOW_DROP) {
                // Without this, the helper never supplies a chunk larger than its reserve.
                unsafe cwa_store_relaxed_u64(wantedWord(lane), upTo)
                unsafe EngineCore.wake(engine)
                return false
            }
        }
        unsafe thread?.pointee.slow_appends &+= 1
        let quadrupled = min(ready &* 4, ready &+ (4 << 20))
        var target = unsafe min(segment.pointee.size, max(upTo, quadrupled))
        let offset = unsafe segment.pointee.file_offset
        // In a child that a handler forks in here, the descriptor's number means another file.
        var mask = sigset_t()
        if unsafe thread != nil { unsafe cwi_block_signals(&mask) }
        defer { if unsafe thread != nil { unsafe cwi_restore_signals(&mask) } }
        errno = 0
        guard unsafe Descriptors.regain(engine, lane, segment) else {
            unsafe refuse(engine, lane, errno: errno)
            return false
        }
        while true {
            let error = unsafe FileCalls.allocate(
                segment.pointee.fd, offset: offset &+ ready, bytes: target &- ready)
            if error == 0 { break }
            if target > upTo {
                target = upTo
                continue
            }
            unsafe refuse(engine, lane, errno: error)
            errno = error
            return false
        }
        // CRASH: the file is longer than `ready` says, and the new part is empty.
        // Raise the readers' bound first: as soon as the writers' word is raised, another thread
        // may claim beyond the old one and be killed with us.
        guard let base = unsafe segment.pointee.base else { return false }
        let header = unsafe UnsafeMutableRawPointer(base) + SegmentHeader.ready
        var shown = unsafe cwa_load_relaxed_u64(header)
        while shown < target {
            if unsafe cwa_cas_u64(header, shown, target) { break }
            shown = unsafe cwa_load_relaxed_u64(header)
        }
        while ready < target {
            if unsafe cwa_cas_u64(readyWord(segment), ready, target) { break }
            ready = unsafe cwa_load_acquire_u64(readyWord(segment))
        }
        return true
    }

    /// Replaces the lane's current segment if it still is `old`. Returns a status.
    static func publishNext(
        _ engine: EngineBlock, _ lane: LaneBlock, after old: SegmentBlock?, _ thread: ThreadBlock?
    ) -> Int32 {
        let oldWord = UInt64(UInt(bitPattern: old))
        guard unsafe cwa_load_acquire_u64(Lanes.currentWord(lane)) == oldWord else {
            return Status.ok
        }
        if unsafe thread != nil, unsafe isHopeless(engine, lane) { return Status.full }
        unsafe awaitSupply(engine, lane, oldWord, thread)
        // A handler that jumped out of here would leak a slot, a file and a descriptor.
        var mask = sigset_t()
        unsafe cwi_block_signals(&mask)
        defer { unsafe cwi_restore_signals(&mask) }
        // Held until the segment is published, so that no other thread makes one meanwhile.
        defer { _ = unsafe cwa_cas_u32(makerWord(lane), cw_gettid(), 0) }
        var next: SegmentBlock?
        var naming = Naming.nameless
        // Spares whose files have lost their names are useless: they are dropped one after the
        // other, and finally a new one is made.
        for _ in 0...Int(CWI_SPARES_MAX) where naming == .nameless {
            unsafe next = takeSpare(lane) ?? makeForWriter(engine, lane, oldWord, thread)
            guard let taken = unsafe next, let old = unsafe old else { break }
            unsafe naming = number(engine, lane, taken, after: old, oldWord, waits(thread))
            guard naming == .nameless else { break }
            unsafe dropNameless(engine, lane, taken)
            unsafe next = nil
        }
        guard let next = unsafe next, naming == .named else {
            if let next = unsafe next { unsafe putSpare(engine, lane, next) }
            if unsafe cwa_load_acquire_u64(Lanes.currentWord(lane)) != oldWord { return Status.ok }
            if unsafe !isRefused(lane) { unsafe EngineCore.wake(engine) }
            return Status.full
        }
        invariant(
            unsafe hasState(next, spare) && next.pointee.number > (old?.pointee.number ?? 0),
            "a spare with a higher number becomes current")
        unsafe writeFirstPair(engine, next)
        guard unsafe WriteThrough.header(engine, next) else {
            unsafe refuseNames(engine, lane, errno: errno)
            unsafe destroy(engine, lane, next)
            return Status.full
        }
        // CRASH: a segment with a name and without chunks: it reads as empty.
        // ORDER: release. Claims on it may begin as soon as it is current (A5, A10).
        unsafe cwa_store_release_u32(stateWord(next), open)
        if unsafe !cwa_cas_u64(Lanes.currentWord(lane), oldWord, UInt64(UInt(bitPattern: next))) {
            // A sealing or flushing thread may be looking at it, so it is unmapped like a sealed
            // one.
            unsafe unlinkFile(engine, lane, next)
            unsafe next.pointee.retired = 1
            unsafe cwa_store_release_u32(stateWord(next), sealed)
        }
        unsafe EngineCore.wake(engine)
        return Status.ok
    }

    /// Makes a segment when no spare is ready. nil: none can be made, or another segment is current
    /// now.
    private static func makeForWriter(
        _ engine: EngineBlock, _ lane: LaneBlock, _ oldWord: UInt64, _ thread: ThreadBlock?
    ) -> SegmentBlock? {
        // Another thread took the last spare meanwhile.
        if unsafe thread != nil, unsafe engine.pointee.overflow == UInt32(CW_OVERFLOW_DROP) {
            unsafe EngineCore.wake(engine)
            return nil
        }
        unsafe thread?.pointee.slow_appends &+= 1
        return unsafe makeInLine(engine, lane, oldWord, thread)
    }

    /// The result of naming a spare. nameless: its file has no name any more, so it is useless.
    /// refused: another segment is current now, or the directory refuses; it is still a spare.
    private enum Naming { case named, nameless, refused }

    /// Gives a spare its number and name. Numbers are taken by CAS, so no two segments share a
    /// name. A thread that finds a number taken lets its taker publish; if that thread is stopped,
    /// it takes the next number.
    private static func number(
        _ engine: EngineBlock, _ lane: LaneBlock, _ next: SegmentBlock, after old: SegmentBlock,
        _ oldWord: UInt64, _ waits: Bool
    ) -> Naming {
        let word = unsafe cwi_lane_numbered_at(lane)
        var turn = Turn()
        while true {
            let taken = unsafe cwa_load_acquire_u64(word)
            let isFree = unsafe !waits || taken <= old.pointee.number
            if turn.hasCome(word: taken, isFree: isFree) {
                let number = unsafe max(taken, old.pointee.number) &+ 1
                // ORDER: acquire-release. Exactly one thread gets the number (A10).
                guard unsafe cwa_cas_u64(word, taken, number) else { continue }
                guard let base = unsafe next.pointee.base else { return .refused }
                unsafe next.pointee.number = number
                unsafe UnsafeMutableRawPointer(base).storeBytes(
                    of: number, toByteOffset: SegmentHeader.number, as: UInt64.self)
                // CRASH: the file records its number before it has the name; it holds nothing until
                // it is current.
                let error =
                    unsafe WriteThrough.header(engine, next)
                    ? renameSpare(engine, lane, next) : errno
                if error == 0 { return .named }
                unsafe next.pointee.number = 0
                if error == ENOENT { return .nameless }
                unsafe refuseNames(engine, lane, errno: error)
                return .refused
            }
            guard unsafe cwa_load_acquire_u64(Lanes.currentWord(lane)) == oldWord else {
                return .refused
            }
            turn.pause()
        }
    }

    /// Returns 0 or an errno.
    private static func renameSpare(
        _ engine: EngineBlock, _ lane: LaneBlock, _ segment: SegmentBlock
    ) -> Int32 {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) { buffer in
            unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) { finalBuffer in
                var spareName = unsafe NameBuffer(buffer)
                unsafe addSpareName(&spareName, lane, segment.pointee.spare_id)
                var name = unsafe NameBuffer(finalBuffer)
                unsafe addFileName(&name, lane, segment, sealed: false)
                let directory = unsafe Descriptors.lanes(engine)
                if unsafe isElsewhere(lane) { return EBADF }
                let renamed = unsafe renameat(
                    directory, spareName.pointer, directory, name.pointer)
                return renamed == 0 ? 0 : errno
            }
        }
    }

    static func takeSpare(_ lane: LaneBlock) -> SegmentBlock? {
        for i in 0..<Int(CWI_SPARES_MAX) {
            // ORDER: acquire-release. One taker gets the spare, along with its words (A11).
            guard unsafe cwa_load_relaxed_u64(Lanes.spareWord(lane, i)) != 0 else { continue }
            let word = unsafe cwa_exchange_u64(Lanes.spareWord(lane, i), 0)
            if word != 0 { return unsafe SegmentBlock(bitPattern: UInt(word)) }
        }
        return nil
    }

    /// The spare that will be taken next.
    static func nextSpare(_ lane: LaneBlock) -> SegmentBlock? {
        for i in 0..<Int(CWI_SPARES_MAX) {
            // ORDER: acquire. Once its pointer is visible, so are its words (A11).
            let word = unsafe cwa_load_acquire_u64(Lanes.spareWord(lane, i))
            if word != 0 { return unsafe SegmentBlock(bitPattern: UInt(word)) }
        }
        return nil
    }

    static func putSpare(_ engine: EngineBlock, _ lane: LaneBlock, _ segment: SegmentBlock) {
        invariant(
            unsafe hasState(segment, spare) && segment.pointee.number == 0,
            "a spare has no number yet")
        let word = UInt64(UInt(bitPattern: segment))
        // ORDER: relaxed. A hint (A12).
        unsafe cwa_store_relaxed_u32(lateWord(lane), 0)
        for i in 0..<Int(CWI_SPARES_MAX)
        where unsafe cwa_cas_u64(Lanes.spareWord(lane, i), 0, word) {
            return
        }
        unsafe destroy(engine, lane, segment)
    }

    static func spareCount(_ lane: LaneBlock) -> Int {
        // A loop: without optimization a closure takes a lock of the runtime, in a handler, too.
        var count = 0
        for index in 0..<Int(CWI_SPARES_MAX)
        where unsafe cwa_load_relaxed_u64(Lanes.spareWord(lane, index)) != 0 {
            count += 1
        }
        return count
    }

    /// Makes a segment file with its header and maps it; its state becomes SPARE. nil: no slot,
    /// space or descriptor.
    /// inMemory: allocates all of it at once on the memory file system. isWhole: allocates all of
    /// it at once, for writers that will fill it soon. Growing it under them would hold the file's
    /// lock for as long as the file system looks for blocks: 10 ms and more on a busy disk.
    static func make(
        _ engine: EngineBlock, _ lane: LaneBlock, inMemory: Bool = false, isWhole: Bool,
        isNested: Bool = false
    ) -> SegmentBlock? {
        guard unsafe isNested || hasFreeSlot(engine), let slot = unsafe newSlot(engine, lane) else {
            return nil
        }
        // Segments in memory do not count as files of the store.
        let bytes = unsafe slot.pointee.size
        guard unsafe inMemory || Quota.take(engine, bytes: bytes) else {
            unsafe cwa_store_release_u32(stateWord(slot), free)
            return nil
        }
        let made = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) { buffer in
            var name = unsafe NameBuffer(buffer)
            unsafe addSpareName(&name, lane, slot.pointee.spare_id)
            return unsafe makeFile(engine, lane, slot, name.pointer, inMemory, isWhole)
        }
        guard made == 0 else {
            unsafe Quota.giveBack(engine, bytes: inMemory ? 0 : bytes)
            unsafe cwa_store_release_u32(stateWord(slot), free)
            // If memory is full, the disk may still have room.
            if !inMemory { unsafe refuse(engine, lane, errno: made) }
            return nil
        }
        return unsafe slot
    }

    static func takeSlot(_ engine: EngineBlock) -> SegmentBlock? {
        let table = unsafe table(engine)
        for i in 0..<Int(CWI_SEGMENTS_MAX)
        where unsafe cwa_cas_u32(stateWord(table + i), free, making) {
            return unsafe table + i
        }
        return nil
    }

    /// A slot for a file of the present size in lanes/, which has no number yet: numbers are given
    /// at publication, so that they follow time.
    static func newSlot(_ engine: EngineBlock, _ lane: LaneBlock) -> SegmentBlock? {
        guard let slot = unsafe takeSlot(engine) else { return nil }
        unsafe slot.pointee.number = 0
        unsafe slot.pointee.spare_id = Machine.random()
        unsafe slot.pointee.generation = 1
        unsafe slot.pointee.salt = Machine.random()
        unsafe slot.pointee.size = SegmentSize.of(engine)
        unsafe slot.pointee.in_lane = 0
        unsafe slot.pointee.lane = unsafe lane
        unsafe slot.pointee.file_offset = 0
        unsafe slot.pointee.retired = 0
        unsafe slot.pointee.lost = 0
        unsafe slot.pointee.memory_id = 0
        return unsafe slot
    }

    /// Returns 0 or an errno.
    private static func makeFile(
        _ engine: EngineBlock, _ lane: LaneBlock, _ slot: SegmentBlock,
        _ name: UnsafePointer<CChar>, _ inMemory: Bool, _ isWhole: Bool
    ) -> Int32 {
        // A child lets go of everything that it finds in the slot, so no child may be forked before
        // the slot is filled. If a writer makes the segment, its signals are blocked (publishNext).
        cwi_fork_gate_enter()
        let descriptor =
            unsafe inMemory
            ? MemorySegments.create(engine, slot, name)
            : FileCalls.openKept(name, in: Descriptors.lanes(engine), .newReadWrite)
        // CRASH: a spare, complete or not: readers ignore its name, adopters remove it.
        let refused = descriptor < 0 ? errno : 0
        if descriptor >= 0 { unsafe Descriptors.note(slot, descriptor) }
        cwi_fork_gate_leave()
        guard descriptor >= 0 else { return refused }
        var ready = unsafe inMemory || isWhole ? slot.pointee.size : firstBytes
        var error = unsafe WriteThrough.allocate(engine, descriptor, bytes: ready, isFirst: false)
        if error != 0, !inMemory, ready > firstBytes {
            // The disk may still have room for a part of it.
            ready = firstBytes
            error = unsafe WriteThrough.allocate(engine, descriptor, bytes: ready, isFirst: false)
        }
        // Brings the header page into memory. A fault for an absent page would also read its
        // neighbours, as single pages, which make each later fault small.
        if error == 0, !inMemory, unsafe !WriteThrough.isOn(engine) {
            let bytes = UInt64(SegmentHeader.bytes)
            _ = FileCalls.writeZeros(descriptor, offset: 0, bytes: bytes)
        }
        guard error == 0, let base = unsafe map(engine, slot, descriptor),
            unsafe Mapping.populate(base, bytes: SegmentHeader.bytes)
        else {
            let refused = error == 0 ? errno : error
            unsafe undo(engine, slot, name)
            return refused
        }
        unsafe slot.pointee.ready = unsafe WriteThrough.isOn(engine) ? slot.pointee.size : ready
        unsafe slot.pointee.populated =
            unsafe WriteThrough.isOn(engine) ? slot.pointee.size : UInt64(SegmentHeader.bytes)
        unsafe writeHeader(engine, lane, slot)
        guard unsafe WriteThrough.header(engine, slot) else {
            let refused = errno
            unsafe undo(engine, slot, name)
            return refused
        }
        unsafe cwa_store_release_u32(stateWord(slot), spare)
        return 0
    }

    static func map(
        _ engine: EngineBlock, _ slot: SegmentBlock, _ descriptor: Int32
    ) -> UnsafeMutableRawPointer? {
        cwi_fork_gate_enter()
        defer { cwi_fork_gate_leave() }
        let base = unsafe WriteThrough.memory(engine, descriptor, bytes: Int(slot.pointee.size))
        unsafe slot.pointee.base = unsafe base?.assumingMemoryBound(to: UInt8.self)
        return unsafe base
    }

    private static func undo(
        _ engine: EngineBlock, _ slot: SegmentBlock, _ name: UnsafePointer<CChar>
    ) {
        unsafe letGo(slot)
        unsafe MemorySegments.remove(engine, slot)
        unsafe FileCalls.remove(name, in: Descriptors.lanes(engine))
    }

    /// Writes the header (FORMAT §6.1). The magic comes last: a file without it was still being
    /// made.
    static func writeHeader(_ engine: EngineBlock, _ lane: LaneBlock, _ slot: SegmentBlock) {
        let header = unsafe UnsafeMutableRawPointer(slot.pointee.base)!
        unsafe header.storeBytes(of: 1, toByteOffset: SegmentHeader.version, as: UInt32.self)
        unsafe header.storeBytes(
            of: UInt32(SegmentHeader.bytes), toByteOffset: SegmentHeader.headerBytes,
            as: UInt32.self)
        unsafe header.storeBytes(
            of: lane.pointee.id.0, toByteOffset: SegmentHeader.laneID, as: UInt64.self)
        unsafe header.storeBytes(
            of: lane.pointee.id.1, toByteOffset: SegmentHeader.laneID + 8, as: UInt64.self)
        unsafe header.storeBytes(
            of: engine.pointee.boot_id.0, toByteOffset: SegmentHeader.bootID, as: UInt64.self)
        unsafe header.storeBytes(
            of: engine.pointee.boot_id.1, toByteOffset: SegmentHeader.bootID + 8, as: UInt64.self)
        unsafe header.storeBytes(
            of: slot.pointee.number, toByteOffset: SegmentHeader.number, as: UInt64.self)
        unsafe header.storeBytes(
            of: slot.pointee.generation, toByteOffset: SegmentHeader.generation, as: UInt32.self)
        unsafe header.storeBytes(
            of: engine.pointee.clock_kind, toByteOffset: SegmentHeader.clockKind, as: UInt32.self)
        unsafe header.storeBytes(
            of: slot.pointee.salt, toByteOffset: SegmentHeader.salt, as: UInt64.self)
        unsafe header.storeBytes(
            of: slot.pointee.size, toByteOffset: SegmentHeader.size, as: UInt64.self)
        let tsc = unsafe engine.pointee.clock_kind == SegmentHeader.clockTSC
        unsafe header.storeBytes(
            of: tsc ? engine.pointee.ticks_per_second : 1_000_000_000,
            toByteOffset: SegmentHeader.ticksPerSecond, as: UInt64.self)
        unsafe header.storeBytes(
            of: UInt64(SegmentHeader.bytes), toByteOffset: SegmentHeader.allocated, as: UInt64.self)
        unsafe header.storeBytes(
            of: slot.pointee.ready, toByteOffset: SegmentHeader.ready, as: UInt64.self)
        unsafe header.storeBytes(of: 0, toByteOffset: SegmentHeader.end, as: UInt64.self)
        unsafe header.storeBytes(of: 0, toByteOffset: SegmentHeader.sealedRealtime, as: UInt64.self)
        unsafe writeFirstPair(engine, slot)
        // ORDER: release. A reused file is open only with its new salt (R11).
        unsafe cwa_store_release_u32(header + SegmentHeader.state, SegmentHeader.stateOpen)
        unsafe cwa_store_release_u64(header, SegmentHeader.magicValue)
    }

    /// Writes the first clock pair, taken anew when a spare is published: no record is older.
    private static func writeFirstPair(_ engine: EngineBlock, _ slot: SegmentBlock) {
        guard let base = unsafe slot.pointee.base else { return }
        let header = UnsafeMutableRawPointer(base)
        let sample = unsafe ClockSample.take(engine)
        unsafe header.storeBytes(
            of: sample.monotonic, toByteOffset: SegmentHeader.createdMonotonic, as: UInt64.self)
        unsafe ClockPairs.store(sample, at: header + SegmentHeader.clockPairs)
        unsafe cwa_store_release_u32(header + SegmentHeader.clockCount, 1)
    }

    /// `<lane>.<number>-<generation>.seg` or `.sealed`
    static func addFileName(
        _ name: inout NameBuffer, _ lane: LaneBlock, _ segment: SegmentBlock, sealed: Bool
    ) {
        unsafe Lanes.addName(&name, lane)
        name.add(".")
        unsafe name.add(decimal: segment.pointee.number, digits: 8)
        name.add("-")
        unsafe name.add(decimal: UInt64(segment.pointee.generation), digits: 4)
        name.add(sealed ? ".sealed" : ".seg")
    }

    /// `.<lane>.spare-<random>`; readers ignore it.
    static func addSpareName(_ name: inout NameBuffer, _ lane: LaneBlock, _ id: UInt64) {
        name.add(".")
        unsafe Lanes.addName(&name, lane)
        name.add(".spare-")
        name.add(hex: id)
    }

    /// Renames a sealed segment to a spare's name. False: the directory refuses.
    static func renameToSpare(
        _ engine: EngineBlock, _ lane: LaneBlock, _ segment: SegmentBlock, _ id: UInt64
    ) -> Bool {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) { buffer in
            unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) { spareBuffer in
                var name = unsafe NameBuffer(buffer)
                unsafe addFileName(&name, lane, segment, sealed: true)
                var spareName = unsafe NameBuffer(spareBuffer)
                unsafe addSpareName(&spareName, lane, id)
                let directory = unsafe Descriptors.lanes(engine)
                return unsafe renameat(directory, name.pointer, directory, spareName.pointer) == 0
            }
        }
    }

    /// Removes a segment that was never current.
    static func destroy(_ engine: EngineBlock, _ lane: LaneBlock, _ segment: SegmentBlock) {
        unsafe unlinkFile(engine, lane, segment)
        unsafe releaseMapping(segment)
    }

    private static func unlinkFile(
        _ engine: EngineBlock, _ lane: LaneBlock, _ segment: SegmentBlock
    ) {
        unsafe MemorySegments.remove(engine, segment)
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) { buffer in
            var name = unsafe NameBuffer(buffer)
            if unsafe segment.pointee.number == 0 {
                unsafe addSpareName(&name, lane, segment.pointee.spare_id)
            } else {
                unsafe addFileName(&name, lane, segment, sealed: false)
            }
            unsafe unlinkat(Descriptors.lanes(engine), name.pointer, 0)
        }
    }

    /// Unmaps the segment and frees the slot. Only after a grace period, or if it was never
    /// published.
    static func releaseMapping(_ segment: SegmentBlock) {
        invariant(
            unsafe !hasState(segment, open, sealing),
            "a segment that threads may write to stays mapped")
        unsafe letGo(segment)
        unsafe cwa_store_release_u32(stateWord(segment), free)
    }

    /// Unmaps and closes. No child may be forked halfway: it would keep the mapping, and with it
    /// the deleted file, or would find here a descriptor number that belongs to the host by then.
    private static func letGo(_ segment: SegmentBlock) {
        cwi_fork_gate_enter()
        let base = unsafe segment.pointee.base
        unsafe segment.pointee.base = nil
        cwa_fence_compiler()
        if unsafe segment.pointee.in_lane == 0, let base = unsafe base {
            unsafe Mapping.release(
                UnsafeMutableRawPointer(base), bytes: Int(segment.pointee.size))
        }
        cwi_fork_gate_leave()
        // A child closes the number only if it still refers to this file.
        if unsafe segment.pointee.in_lane == 0 {
            unsafe Descriptors.close(
                segment.pointee.fd, segment.pointee.device, segment.pointee.inode)
        }
        unsafe segment.pointee.fd = -1
    }
}
