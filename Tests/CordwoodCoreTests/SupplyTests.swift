// What a writer does while supply is behind, and what sealing leaves in memory: an engine without
// threads, so that the test is its supply.
// SAFETY: blocks of engines are never unmapped; each mapping that is looked at is still sealed.

import CCordwood
import CShims
import Foundation
import XCTest

@testable import CordwoodCore

final class SupplyTests: XCTestCase {
    private var folder = ""
    private var segmentBytes: UInt64 = 1 << 20

    override func setUp() {
        folder = NSTemporaryDirectory() + "cordwood-supply-\(UUID().uuidString)"
        try? FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
    }

    override func tearDown() { try? FileManager.default.removeItem(atPath: folder) }

    private func open(_ overflow: UInt32) throws -> (EngineBlock, LoggerBlock) {
        let lanes = Files.openKept(FilePath(folder), .directory)
        let opened = EngineCore.open(
            EngineCore.Configuration(
                lanesDirectory: lanes, segmentBytes: segmentBytes, overflow: overflow,
                processName: Array("supply".utf8), echoInLine: false, lanesPath: folder))
        let engine = try opened.get()
        let logger = try XCTUnwrap(
            EngineCore.addLogger(
                engine, name: UnsafeRawBufferPointer(start: nil, count: 0), enabled: 255))
        XCTAssertEqual(EngineCore.start(engine), Status.ok)
        return (engine, logger)
    }

    private func close(_ engine: EngineBlock) {
        EngineCore.closeHandles(engine)
        XCTAssertTrue(EngineCore.finish(engine, left: nil))
    }

    /// Appends until another segment is current. Returns the last status.
    private func fill(_ engine: EngineBlock, _ logger: LoggerBlock) -> Int32 {
        let text = Array(repeating: UInt8(ascii: "x"), count: 1000)
        let lane = engine.pointee.lane!
        let first = Claim.current(lane)
        for _ in 0..<4 * Int(segmentBytes) / text.count {
            let status = text.withUnsafeBytes {
                AppendPath.text(logger, 9, $0.baseAddress, $0.count)
            }
            if status != Status.ok || Claim.current(lane) != first { return status }
        }
        return Status.internal
    }

    private func slowAppends(_ engine: EngineBlock) -> UInt64 { EngineCore.counts(engine).slow }

    /// Makes all of a segment ready, so that its writers neither grow it nor wake supply early.
    private static func prepare(_ engine: EngineBlock, _ segment: SegmentBlock) {
        Segments.supply(engine, engine.pointee.lane!, segment, upTo: segment.pointee.size)
    }

    /// The engine's supply, as late as it may be: it makes a spare once it is woken.
    private func supplyWhenWoken(_ engine: EngineBlock, afterMs: UInt32 = 0) -> DispatchGroup {
        let group = DispatchGroup()
        let isThere = DispatchSemaphore(value: 0)
        _ = cwa_exchange_u32(cwi_engine_wake_at(engine), 0)
        let bits = UInt(bitPattern: engine)
        group.enter()
        Thread.detachNewThread {
            defer { group.leave() }
            let engine = EngineBlock(bitPattern: bits)!
            isThere.signal()
            while cwa_load_acquire_u32(cwi_engine_wake_at(engine)) == 0 {
                ThreadIdentity.pause(microseconds: 20)
            }
            if afterMs > 0 { ThreadIdentity.pause(microseconds: afterMs * 1000) }
            let lane = engine.pointee.lane!
            guard let spare = Segments.make(engine, lane, isWhole: false) else { return }
            SupplyTests.prepare(engine, spare)
            Segments.putSpare(engine, lane, spare)
        }
        isThere.wait()
        return group
    }

    /// A writer gives supply the time to make a spare, and takes that. On a busy machine supply may
    /// take longer than the writer waits; then the next try counts.
    func testAWriterWaitsForSupply() throws {
        for overflow in [CW_OVERFLOW_GROW, CW_OVERFLOW_BLOCK] {
            var hasWaited = false
            for _ in 0..<50 where !hasWaited {
                let (engine, logger) = try open(UInt32(overflow))
                XCTAssertEqual(fill(engine, logger), Status.ok)
                SupplyTests.prepare(engine, try XCTUnwrap(Claim.current(engine.pointee.lane!)))
                let before = slowAppends(engine)
                let supply = supplyWhenWoken(engine)
                XCTAssertEqual(fill(engine, logger), Status.ok)
                supply.wait()
                hasWaited = slowAppends(engine) == before
                close(engine)
            }
            XCTAssertTrue(hasWaited)
        }
    }

    /// The current segment of a lane that was left is sealed, and its header has a checksum.
    func testASealedSegmentGetsNoClockPair() throws {
        let (engine, logger) = try open(UInt32(CW_OVERFLOW_GROW))
        XCTAssertEqual(fill(engine, logger), Status.ok)
        let lane = try XCTUnwrap(engine.pointee.lane)
        var left = try XCTUnwrap(EngineCore.renewLane(engine, known: nil, since: 0))
        let segment = try XCTUnwrap(Claim.current(lane))
        XCTAssertTrue(Segments.hasState(segment, Segments.sealed))
        let header = UnsafeRawPointer(segment.pointee.base!)
        let crc = header.load(fromByteOffset: SegmentHeader.sealedCRC, as: UInt32.self)
        XCTAssertEqual(Sealer.sealedCRC(header), crc)
        Sealer.addClockPair(engine, lane, also: nil)
        XCTAssertEqual(Sealer.sealedCRC(header), crc)
        XCTAssertTrue(left.letGo(engine))
        close(engine)
    }

    /// The shortest time of several tries: a busy machine only adds to it.
    private func shortest(_ body: () throws -> UInt64) rethrows -> UInt64 {
        var least = UInt64.max
        for _ in 0..<50 where least >= 5_000_000 { least = min(least, try body()) }
        return least
    }

    private func fillNs(_ engine: EngineBlock, _ logger: LoggerBlock) -> UInt64 {
        let begin = cw_monotonic_ns()
        XCTAssertEqual(fill(engine, logger), Status.ok)
        return cw_monotonic_ns() - begin
    }

    /// Without supply the writer makes a segment itself, after 5 ms. The engine's own threads, for
    /// which supply may be waiting, do so at once and wake nothing before.
    func testAWriterMakesASegmentAtLast() throws {
        let (engine, logger) = try open(UInt32(CW_OVERFLOW_GROW))
        XCTAssertEqual(fill(engine, logger), Status.ok)
        let before = slowAppends(engine)
        XCTAssertGreaterThanOrEqual(fillNs(engine, logger), 5_000_000)
        XCTAssertGreaterThan(slowAppends(engine), before)
        close(engine)
    }

    /// Supply cannot have made a segment by the time the first one, which is small, is full.
    func testTheFirstSpareIsNotAwaited() throws {
        let least = try shortest {
            let (engine, logger) = try open(UInt32(CW_OVERFLOW_GROW))
            defer { close(engine) }
            return fillNs(engine, logger)
        }
        XCTAssertLessThan(least, 5_000_000)
    }

    /// Writers wait only once for supply that makes nothing.
    func testAWaitInVainIsTheLast() throws {
        let least = try shortest {
            let (engine, logger) = try open(UInt32(CW_OVERFLOW_GROW))
            defer { close(engine) }
            XCTAssertEqual(fill(engine, logger), Status.ok)
            XCTAssertEqual(fill(engine, logger), Status.ok)
            return fillNs(engine, logger)
        }
        XCTAssertLessThan(least, 5_000_000)

        let (engine, logger) = try open(UInt32(CW_OVERFLOW_GROW))
        for _ in 0..<2 { XCTAssertEqual(fill(engine, logger), Status.ok) }
        let lane = engine.pointee.lane!
        Segments.putSpare(engine, lane, try XCTUnwrap(Segments.make(engine, lane, isWhole: false)))
        XCTAssertEqual(fill(engine, logger), Status.ok)
        XCTAssertGreaterThanOrEqual(fillNs(engine, logger), 5_000_000)
        close(engine)
    }

    /// The first segment of a file grows with its writers. If they fill one before supply has made
    /// the next, the next is allocated and filled before it is current, so that no writer waits for
    /// the file system under the lock of a file that all store to.
    func testASegmentThatIsMadeLateIsWhole() throws {
        let (engine, logger) = try open(UInt32(CW_OVERFLOW_GROW))
        let lane = engine.pointee.lane!
        XCTAssertEqual(fill(engine, logger), Status.ok)
        let first = try XCTUnwrap(Claim.current(lane))
        XCTAssertLessThan(Segments.ready(first), segmentBytes)
        XCTAssertEqual(fill(engine, logger), Status.ok)
        let second = try XCTUnwrap(Claim.current(lane))
        XCTAssertEqual(second.pointee.ready, segmentBytes)
        XCTAssertEqual(second.pointee.populated, segmentBytes)
        close(engine)
    }

    private func faults(_ body: () -> Void) -> Int {
        var (before, after) = (rusage(), rusage())
        getrusage(1, &before)  // RUSAGE_THREAD
        body()
        getrusage(1, &after)
        return after.ru_minflt - before.ru_minflt
    }

    /// Pages come in large pieces if the file system has them: the header's page, which is touched
    /// first, must not bring in those around it one by one.
    func testAWholeSegmentHasFewFaults() throws {
        segmentBytes = 8 << 20
        let (engine, _) = try open(UInt32(CW_OVERFLOW_GROW))
        defer { close(engine) }
        let lane = engine.pointee.lane!
        let spare = try XCTUnwrap(Segments.make(engine, lane, isWhole: true))
        let found = faults { Segments.fill(engine, lane, spare, upTo: segmentBytes) }
        Segments.putSpare(engine, lane, spare)

        let plain = FileCalls.openKept(folder + "/plain", .newReadWrite)
        defer { FileCalls.close(plain) }
        XCTAssertEqual(FileCalls.allocate(plain, offset: 0, bytes: segmentBytes), 0)
        let base = try XCTUnwrap(Mapping.file(plain, offset: 0, bytes: Int(segmentBytes)))
        defer { Mapping.release(base, bytes: Int(segmentBytes)) }
        let step = 256 << 10
        let least = faults {
            for at in stride(from: 0, to: Int(segmentBytes), by: step) {
                _ = FileCalls.writeZeros(plain, offset: UInt64(at), bytes: UInt64(step))
                _ = Mapping.populate(base + at, bytes: step)
            }
        }
        XCTAssertLessThan(found, least + 512)
    }

    /// The name of an archived segment stays until nothing maps it.
    func testASealedSegmentIsMappedUntilItIsReleased() throws {
        let (engine, logger) = try open(UInt32(CW_OVERFLOW_GROW))
        defer { close(engine) }
        for _ in 0..<3 { XCTAssertEqual(fill(engine, logger), Status.ok) }
        XCTAssertFalse(EngineCore.isMapped(engine, 1...2))  // not sealed yet: not for archives
        XCTAssertEqual(
            EngineCore.sealRetired(engine, all: false).map(\.number).filter { $0 > 0 }, [1, 2])
        XCTAssertTrue(EngineCore.isMapped(engine, 1...2))
        XCTAssertFalse(EngineCore.isMapped(engine, 3...9))
        EngineCore.releaseQuiet(engine)
        XCTAssertFalse(EngineCore.isMapped(engine, 1...2))
    }

    /// At full rate several segments are filled between two looks.
    func testTheRateCountsWholeSegments() {
        let size: UInt64 = 16 << 20
        var supply = Supply()
        supply.measure(.init(segment: 1, size: size, used: 0), now: 1_000_000_000)
        supply.measure(.init(segment: 5, size: size, used: size / 2), now: 1_100_000_000)
        XCTAssertEqual(supply.bytesPerSecond, 45 * size)
        // A look right after a roll does not mean a lower rate.
        supply.measure(.init(segment: 6, size: size, used: 0), now: 1_110_000_000)
        XCTAssertEqual(supply.bytesPerSecond, 50 * size)
        // Another lane begins.
        supply.measure(.init(segment: 0, size: size, used: 1 << 10), now: 1_120_000_000)
        XCTAssertLessThan(supply.bytesPerSecond, 50 * size)
    }

    /// Under CW_OVERFLOW_BLOCK the writer waits longer, for a supply that is 100 ms late.
    func testAWriterThatBlocksWaitsLonger() throws {
        let (engine, logger) = try open(UInt32(CW_OVERFLOW_BLOCK))
        let supply = supplyWhenWoken(engine, afterMs: 100)
        XCTAssertEqual(fill(engine, logger), Status.ok)
        supply.wait()
        let lane = engine.pointee.lane!
        SupplyTests.prepare(engine, try XCTUnwrap(Claim.current(lane)))
        XCTAssertEqual(Segments.spareCount(lane), 0)  // the writer has taken it
        let before = slowAppends(engine)
        let next = supplyWhenWoken(engine, afterMs: 100)
        XCTAssertEqual(fill(engine, logger), Status.ok)
        next.wait()
        XCTAssertEqual(slowAppends(engine), before)
        close(engine)
    }

    /// A crowd fills small segments faster than a sleep ends: writers do not wait for supply.
    func testSmallSegmentsAreNotAwaited() throws {
        segmentBytes = 64 << 10
        let (engine, logger) = try open(UInt32(CW_OVERFLOW_BLOCK))
        let begin = cw_monotonic_ns()
        for _ in 0..<4 { XCTAssertEqual(fill(engine, logger), Status.ok) }
        XCTAssertLessThan(cw_monotonic_ns() - begin, 4_000_000_000)
        close(engine)
    }

    /// Slots that look full and unsealed, with this many bytes in total.
    private func unsealed(_ engine: EngineBlock, bytes: UInt64) throws -> [SegmentBlock] {
        try (0..<bytes >> 24).map { _ in
            let slot = try XCTUnwrap(Segments.takeSlot(engine))
            slot.pointee.size = 16 << 20
            cwa_store_release_u32(Segments.stateWord(slot), Segments.open)
            return slot
        }
    }

    private func release(_ slots: [SegmentBlock]) {
        for slot in slots { cwa_store_release_u32(Segments.stateWord(slot), Segments.free) }
    }

    /// Writers no longer wait for supply here, after one wait in vain. From 64 MiB on, a writer
    /// waits for sealing.
    func testAWriterWaitsForSealing() throws {
        let (engine, logger) = try open(UInt32(CW_OVERFLOW_GROW))
        for _ in 0..<2 { XCTAssertEqual(fill(engine, logger), Status.ok) }
        let few = try unsealed(engine, bytes: 48 << 20)
        XCTAssertLessThan(shortest { fillNs(engine, logger) }, 5_000_000)
        release(few)
        let many = try unsealed(engine, bytes: 64 << 20)
        XCTAssertGreaterThanOrEqual(fillNs(engine, logger), 20_000_000)
        release(many)
        close(engine)
    }

    /// Segments kept for reuse, those that wait for sealing and spares share 128 MiB.
    func testWhatWaitsForSealingTakesFromWhatIsKept() {
        func wanted(_ ring: Int, spares: Int, unsealed: UInt64, _ bytes: UInt64) -> Int {
            Recycling.wanted(
                ring: ring, spares: spares, unsealedBytes: unsealed, segmentBytes: bytes)
        }
        let size: UInt64 = 16 << 20
        XCTAssertEqual(wanted(8, spares: 0, unsealed: 0, size), 8)
        XCTAssertEqual(wanted(8, spares: 3, unsealed: 0, size), 5)
        XCTAssertEqual(wanted(8, spares: 2, unsealed: 4 * size, size), 2)
        XCTAssertEqual(wanted(8, spares: 4, unsealed: 4 * size, size), 0)
        XCTAssertEqual(wanted(8, spares: 5, unsealed: 4 * size, size), 0)
        XCTAssertEqual(wanted(8, spares: 0, unsealed: 20 * size, size), 0)
        XCTAssertEqual(wanted(2, spares: 0, unsealed: 4 * size, size), 2)
        XCTAssertEqual(wanted(8, spares: 1, unsealed: 64 << 20, 64 << 10), 7)
        XCTAssertEqual(wanted(8, spares: 0, unsealed: 0, 1 << 30), 0)
    }

    func testTheEnginesOwnThreadsDoNotWait() throws {
        cwi_tls_get().pointee.helper = UInt8(CWI_HELPER_THREAD)
        defer { cwi_tls_get().pointee.helper = 0 }
        // A wait would take 5 ms each time.
        let least = try shortest {
            let (engine, logger) = try open(UInt32(CW_OVERFLOW_GROW))
            defer { close(engine) }
            XCTAssertEqual(fill(engine, logger), Status.ok)
            let before = slowAppends(engine)
            let took = fillNs(engine, logger)
            XCTAssertGreaterThan(slowAppends(engine), before)
            return took
        }
        XCTAssertLessThan(least, 5_000_000)
    }

    func testDropDoesNotWait() throws {
        let (engine, logger) = try open(UInt32(CW_OVERFLOW_DROP))
        XCTAssertEqual(fill(engine, logger), Status.full)
        XCTAssertEqual(slowAppends(engine), 0)
        close(engine)
    }

    /// How much of a mapping counts as this process's memory.
    private func residentKiB(_ base: UnsafeMutableRawPointer) throws -> Int {
        let start = String(UInt(bitPattern: base), radix: 16) + "-"
        let file = Files.openKept("/proc/self/smaps", .read)
        defer { FileCalls.close(file) }
        var content: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 65536)
        while true {
            let got = part.withUnsafeMutableBytes { Files.readNext(file, into: $0) }
            if got <= 0 { break }
            content += part[..<got]
        }
        let lines = String(decoding: content, as: UTF8.self).split(separator: "\n")
        let at = try XCTUnwrap(lines.firstIndex { $0.hasPrefix(start) })
        let line = try XCTUnwrap(lines[at...].first { $0.hasPrefix("Rss:") })
        return try XCTUnwrap(Int(line.split(separator: " ")[1]))
    }

    /// Sealed segments that are not kept for reuse leave the process's memory; the records stay.
    func testSealedPagesAreLetGoOf() throws {
        let (engine, logger) = try open(UInt32(CW_OVERFLOW_GROW))
        XCTAssertEqual(fill(engine, logger), Status.ok)
        let lane = engine.pointee.lane!
        let segment = try XCTUnwrap(Claim.current(lane))
        XCTAssertEqual(fill(engine, logger), Status.ok)
        let base = UnsafeMutableRawPointer(try XCTUnwrap(segment.pointee.base))
        let number = segment.pointee.number
        XCTAssertTrue(EngineCore.isSealingDue(engine))
        XCTAssertTrue(EngineCore.sealRetired(engine, all: false).contains { $0.number == number })
        XCTAssertFalse(EngineCore.isSealingDue(engine))
        XCTAssertGreaterThan(try residentKiB(base), 512)
        let end = Int(segment.pointee.sealed_end)
        let before = Array(UnsafeRawBufferPointer(start: base, count: end))

        // Worth keeping: nothing changes.
        cwa_store_relaxed_u32(Recycling.ringWord(engine), 8)
        EngineCore.letPagesGo(engine)
        XCTAssertGreaterThan(try residentKiB(base), 512)
        XCTAssertTrue(Recycling.mayServe(engine, segment))
        EngineCore.letPagesGo(engine, keptBelow: number + 1)
        EngineCore.releaseQuiet(engine, keptBelow: number + 1)
        XCTAssertGreaterThan(try residentKiB(base), 512)

        // Not quiet: a thread is busy there.
        cwa_store_relaxed_u32(Recycling.ringWord(engine), 0)
        let thread = try XCTUnwrap(ThreadBlocks.own(engine))
        let word = UInt64(UInt(bitPattern: segment))
        let named = cwa_load_acquire_u64(ThreadBlocks.segmentWord(thread))
        cwa_store_release_u64(ThreadBlocks.segmentWord(thread), word)
        cwa_store_release_u64(AppendPath.busyWord(thread), 1)
        EngineCore.letPagesGo(engine)
        XCTAssertGreaterThan(try residentKiB(base), 512)
        cwa_store_release_u64(AppendPath.busyWord(thread), 0)
        cwa_store_release_u64(ThreadBlocks.segmentWord(thread), named)

        // Worth keeping, but its archive is far away.
        cwa_store_relaxed_u32(Recycling.ringWord(engine), 8)
        EngineCore.letPagesGo(engine, keptBelow: number)
        XCTAssertEqual(try residentKiB(base), 0)
        XCTAssertFalse(Recycling.mayServe(engine, segment))
        XCTAssertEqual(Array(UnsafeRawBufferPointer(start: base, count: end)), before)

        EngineCore.releaseQuiet(engine, keptBelow: number)
        XCTAssertNil(segment.pointee.base)
        close(engine)
    }

    // MARK: Files that were unmapped before their archive was there

    /// A sealed segment that is no longer mapped: its number, its name, and its slot, which may
    /// have another file by now.
    private func unmapped(
        _ engine: EngineBlock, _ logger: LoggerBlock
    ) throws -> (number: UInt64, path: String, slot: SegmentBlock) {
        XCTAssertEqual(fill(engine, logger), Status.ok)
        let segment = try XCTUnwrap(Claim.current(engine.pointee.lane!))
        let number = segment.pointee.number
        Segments.supply(engine, engine.pointee.lane!, segment, upTo: segment.pointee.size)
        XCTAssertEqual(fill(engine, logger), Status.ok)
        XCTAssertEqual(EngineCore.sealRetired(engine, all: false).last?.number, number)
        cwa_store_relaxed_u32(Recycling.ringWord(engine), 8)
        XCTAssertFalse(
            EngineCore.recycleUnmapped(engine, number: number, generation: 1),
            "its mapping is still there")
        cwa_store_relaxed_u32(Recycling.ringWord(engine), 0)
        EngineCore.releaseQuiet(engine, keptBelow: 0)
        XCTAssertNil(segment.pointee.base)
        let name = try XCTUnwrap(
            FileManager.default.contentsOfDirectory(atPath: folder).first {
                $0.hasSuffix("\(number)-0001.sealed")
            })
        return (number, folder + "/" + name, segment)
    }

    private func freeSlots(_ engine: EngineBlock) -> Int {
        var count = 0
        Segments.forEach(engine) { if Segments.hasState($0, Segments.free) { count += 1 } }
        return count
    }

    /// It becomes the next segment, as another generation.
    func testAnUnmappedFileIsUsedAgain() throws {
        let (engine, logger) = try open(UInt32(CW_OVERFLOW_GROW))
        defer { close(engine) }
        XCTAssertEqual(fill(engine, logger), Status.ok)
        let lane = engine.pointee.lane!
        let (number, path, _) = try unmapped(engine, logger)
        let file = try XCTUnwrap(FileFacts(at: FilePath(path)))
        XCTAssertFalse(
            EngineCore.recycleUnmapped(engine, number: number, generation: 1),
            "at this rate nothing is kept")
        cwa_store_relaxed_u32(Recycling.ringWord(engine), 8)
        let begin = ClockSample.take(engine).monotonic
        XCTAssertTrue(EngineCore.recycleUnmapped(engine, number: number, generation: 1))
        XCTAssertNil(FileFacts(at: FilePath(path)))
        XCTAssertEqual(Segments.spareCount(lane), 1)
        XCTAssertFalse(
            EngineCore.recycleUnmapped(engine, number: number, generation: 1), "it is gone")

        let last = try XCTUnwrap(Claim.current(lane)).pointee.number
        let slow = slowAppends(engine)
        XCTAssertEqual(fill(engine, logger), Status.ok)
        let next = try XCTUnwrap(Claim.current(lane))
        XCTAssertEqual(next.pointee.number, last + 1)
        XCTAssertEqual(next.pointee.generation, 2)
        XCTAssertEqual(slowAppends(engine), slow, "nothing is made or grown")
        XCTAssertTrue(try XCTUnwrap(FileFacts(of: next.pointee.fd)).isSameFile(as: file))
        let base = UnsafeRawPointer(try XCTUnwrap(next.pointee.base))
        XCTAssertGreaterThanOrEqual(
            base.load(fromByteOffset: SegmentHeader.createdMonotonic, as: UInt64.self), begin)
        XCTAssertEqual(
            base.load(fromByteOffset: SegmentHeader.state, as: UInt32.self),
            SegmentHeader.stateOpen)
    }

    /// No more files than supply would make segments: they count as the host's memory.
    func testFewUnmappedFilesAreUsedAgain() throws {
        let (engine, logger) = try open(UInt32(CW_OVERFLOW_GROW))
        defer { close(engine) }
        XCTAssertEqual(fill(engine, logger), Status.ok)
        let files = try (0..<5).map { _ in try unmapped(engine, logger) }
        cwa_store_relaxed_u32(Recycling.ringWord(engine), 8)
        XCTAssertEqual(
            files.map { EngineCore.recycleUnmapped(engine, number: $0.number, generation: 1) },
            [true, true, true, true, false])
    }

    /// A file that a reader has open, that is another one, or that is not all in memory stays as it
    /// is and takes no slot.
    func testAnUnmappedFileIsLeftAlone() throws {
        let (engine, logger) = try open(UInt32(CW_OVERFLOW_GROW))
        defer { close(engine) }
        XCTAssertEqual(fill(engine, logger), Status.ok)
        let (number, path, _) = try unmapped(engine, logger)
        cwa_store_relaxed_u32(Recycling.ringWord(engine), 8)
        let before = try Data(contentsOf: URL(fileURLWithPath: path))
        let slots = freeSlots(engine)
        func isLeft(_ why: String, _ generation: UInt32 = 1) throws {
            let content = try Data(contentsOf: URL(fileURLWithPath: path))
            XCTAssertFalse(
                EngineCore.recycleUnmapped(engine, number: number, generation: generation), why)
            XCTAssertEqual(try Data(contentsOf: URL(fileURLWithPath: path)), content, why)
            XCTAssertEqual(freeSlots(engine), slots, why)
        }
        try isLeft("another generation", 2)

        let reader = Files.openKept(FilePath(path), .read)
        XCTAssertEqual(flock(reader, LOCK_SH), 0)
        try isLeft("a reader")
        FileCalls.close(reader)

        let other = FileHandle(forUpdatingAtPath: path)!
        for offset in [
            SegmentHeader.laneID, SegmentHeader.laneID + 8, SegmentHeader.number,
            SegmentHeader.generation,
        ] {
            other.seek(toFileOffset: UInt64(offset))
            other.write(Data([~before[offset]]))
            try isLeft("another file, by byte \(offset)")
            other.seek(toFileOffset: UInt64(offset))
            other.write(Data([before[offset]]))
        }
        other.truncateFile(atOffset: UInt64(before.count + 4096))
        try isLeft("another size")
        other.truncateFile(atOffset: UInt64(before.count - 4096))
        try isLeft("cut")
        other.truncateFile(atOffset: UInt64(before.count))
        other.seek(toFileOffset: UInt64(before.count - 4096))
        other.write(before.suffix(4096))
        other.closeFile()

        // A file system in memory keeps its pages.
        let file = Files.openKept(FilePath(path), .readWrite)
        XCTAssertEqual(fsync(file), 0)
        XCTAssertEqual(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), 0)
        let base = try XCTUnwrap(Mapping.file(file, offset: 0, bytes: before.count))
        let isResident = Mapping.isResident(base, bytes: before.count)
        Mapping.release(base, bytes: before.count)
        FileCalls.close(file)
        if !isResident {
            XCTAssertFalse(
                EngineCore.recycleUnmapped(engine, number: number, generation: 1), "not in memory")
            XCTAssertEqual(freeSlots(engine), slots)
            // Reads it again.
            XCTAssertEqual(try Data(contentsOf: URL(fileURLWithPath: path)), before)
        }
        XCTAssertTrue(EngineCore.recycleUnmapped(engine, number: number, generation: 1))
    }
}
