// Segment 0 is overwritten once archives hold it, and not before; a new journal has no archived
// segment. An engine without threads, so that the test does what they do.
// SAFETY: blocks of engines are never unmapped.

import CCordwood
import CShims
import CordwoodTestSupport
import Foundation
import XCTest

@testable import CordwoodCore

final class FirstSegmentTests: XCTestCase {
    private var folder = ""

    override func setUp() {
        folder = StorePlace.path("first")
        try? FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
    }

    override func tearDown() { try? FileManager.default.removeItem(atPath: folder) }

    private func open() throws -> (EngineBlock, LoggerBlock) {
        let lanes = Files.openKept(FilePath(folder), .directory)
        let engine = try EngineCore.open(
            EngineCore.Configuration(
                lanesDirectory: lanes, segmentBytes: 64 << 10,
                overflow: UInt32(CW_OVERFLOW_GROW), processName: Array("first".utf8),
                echoInLine: false, lanesPath: folder)
        ).get()
        let logger = try XCTUnwrap(
            EngineCore.addLogger(
                engine, name: UnsafeRawBufferPointer(start: nil, count: 0), enabled: 255))
        XCTAssertEqual(EngineCore.start(engine), Status.ok)
        return (engine, logger)
    }

    private func write(_ logger: LoggerBlock, _ text: String) {
        var text = text
        let status = text.withUTF8 { AppendPath.text(logger, 9, $0.baseAddress, $0.count) }
        XCTAssertEqual(status, Status.ok)
    }

    /// How often the file with that end has the word.
    private func count(_ word: String, in end: String) throws -> Int {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder)
        let name = try XCTUnwrap(names.first { $0.hasSuffix(end) && !$0.hasPrefix(".") })
        var rest = try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\(name)"))[...]
        var count = 0
        while let place = rest.range(of: Data(word.utf8)) {
            count += 1
            rest = rest[place.upperBound...]
        }
        return count
    }

    private func state() throws -> UInt32 {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder)
        let name = try XCTUnwrap(names.first { $0.hasSuffix(".lane") })
        let bytes = try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\(name)"))
        return UInt32(bytes[LaneHeader.segmentOffsetValue + SegmentHeader.state])
    }

    func testOverwrittenOnceItIsArchived() throws {
        let (engine, logger) = try open()
        for _ in 0..<100 { write(logger, "planted") }
        XCTAssertEqual(EngineCore.roll(engine), Status.ok)
        XCTAssertEqual(EngineCore.sealRetired(engine, all: false).map(\.number), [0])
        write(logger, "later")
        XCTAssertEqual(EngineCore.clearFirst(engine), .done)
        XCTAssertEqual(try count("planted", in: ".lane"), 100)
        let name = EngineCore.laneName(engine)
        XCTAssertEqual(EngineCore.markArchived(engine, of: name, below: 1), 0)

        // A thread that is still inside the segment keeps it.
        let lane = engine.pointee.lane!
        let first = lane.pointee.first!
        let thread = ThreadBlocks.known(engine)!
        let current = cwa_load_relaxed_u64(ThreadBlocks.segmentWord(thread))
        cwa_store_relaxed_u64(
            ThreadBlocks.segmentWord(thread), UInt64(UInt(bitPattern: first)))
        cwa_store_relaxed_u64(AppendPath.busyWord(thread), 1)
        XCTAssertEqual(EngineCore.clearFirst(engine), .waits)
        XCTAssertEqual(try count("planted", in: ".lane"), 100)
        cwa_store_relaxed_u64(AppendPath.busyWord(thread), 0)
        cwa_store_relaxed_u64(ThreadBlocks.segmentWord(thread), current)

        XCTAssertEqual(EngineCore.clearFirst(engine), .overwritten)
        XCTAssertEqual(try count("planted", in: ".lane"), 0)
        XCTAssertEqual(try state(), SegmentHeader.stateDead)
        XCTAssertTrue(EngineCore.syncCleared(engine, of: name))
        EngineCore.markCleared(engine, of: "another")
        XCTAssertEqual(EngineCore.clearFirst(engine), .overwritten)
        EngineCore.markCleared(engine, of: name)
        XCTAssertEqual(EngineCore.clearFirst(engine), .done)
        XCTAssertEqual(try count("later", in: ".seg"), 1)
        XCTAssertEqual(
            try FileManager.default.attributesOfItem(atPath: "\(folder)/\(name).lane")[.size]
                as? Int, LaneHeader.fileBytesValue)
        close(engine)
    }

    func testAFileThatWasCutDoesNotGrow() throws {
        let (engine, logger) = try open()
        write(logger, "planted")
        XCTAssertEqual(EngineCore.roll(engine), Status.ok)
        _ = EngineCore.sealRetired(engine, all: false)
        let name = EngineCore.laneName(engine)
        XCTAssertEqual(EngineCore.markArchived(engine, of: name, below: 1), 0)
        let path = "\(folder)/\(name).lane"
        XCTAssertEqual(truncate(path, 40_000), 0)
        XCTAssertEqual(EngineCore.clearFirst(engine), .overwritten)
        XCTAssertEqual(
            try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int, 40_000)
        XCTAssertEqual(try count("planted", in: ".lane"), 0)
        close(engine)
    }

    /// Segment 0 stays mapped once an archive holds it.
    func testANewJournalHasNoArchivedSegment() throws {
        let (engine, logger) = try open()
        write(logger, "planted")
        XCTAssertEqual(EngineCore.roll(engine), Status.ok)
        _ = EngineCore.sealRetired(engine, all: false)
        write(logger, "later")
        for waiting in [Set<UInt64>([0]), []] {
            let writer = JournalWriter()
            let guards = JournalGuards(
                copying: { $0(waiting) }, syncing: { _ in SyncedFiles() })
            XCTAssertEqual(writer.flush(engine, guards), 0)
            XCTAssertEqual(try count("planted", in: ".journal"), waiting.count)
            XCTAssertEqual(try count("later", in: ".journal"), 1)
        }
        close(engine)
    }

    /// What is synced as a file stays so, whatever becomes of the journal.
    func testANewJournalSyncsNoFileAgain() throws {
        let (engine, logger) = try open()
        write(logger, "planted")
        XCTAssertEqual(EngineCore.roll(engine), Status.ok)
        _ = EngineCore.sealRetired(engine, all: false)
        // Segments that are sealed and not mapped.
        var waiting = Set<UInt64>(100..<120).union([0])
        var synced: [UInt64] = []
        let writer = JournalWriter()
        let guards = JournalGuards(
            copying: { $0(waiting) },
            syncing: {
                synced += $0
                return SyncedFiles()
            })
        XCTAssertEqual(writer.flush(engine, guards), 0)
        XCTAssertEqual(synced.sorted(), Array(100..<120))
        waiting.remove(0)
        XCTAssertEqual(writer.renew(engine, guards), 0)
        XCTAssertEqual(try count("planted", in: ".journal"), 0)
        waiting.insert(120)
        XCTAssertEqual(writer.flush(engine, guards), 0)
        XCTAssertEqual(synced.sorted(), Array(100...120))
        close(engine)
    }

    /// A host may close descriptors that it does not know.
    func testARenewalNeedsNoDescriptor() throws {
        let (engine, logger) = try open()
        write(logger, "planted")
        XCTAssertEqual(EngineCore.roll(engine), Status.ok)
        _ = EngineCore.sealRetired(engine, all: false)
        let writer = JournalWriter()
        var waiting: Set<UInt64> = [0]
        let guards = JournalGuards(copying: { $0(waiting) }, syncing: { _ in SyncedFiles() })
        XCTAssertEqual(writer.flush(engine, guards), 0)
        XCTAssertEqual(try count("planted", in: ".journal"), 1)
        let closed = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").filter {
            let target = try? FileManager.default.destinationOfSymbolicLink(
                atPath: "/proc/self/fd/\($0)")
            return target?.hasPrefix(folder) == true && target?.hasSuffix("journal") == true
                && Glibc.close(Int32($0) ?? -1) == 0
        }
        XCTAssertEqual(closed.count, 1)
        waiting = []
        XCTAssertEqual(writer.renew(engine, guards), 0)
        XCTAssertEqual(try count("planted", in: ".journal"), 0)
        close(engine)
    }

    private func close(_ engine: EngineBlock) {
        EngineCore.closeHandles(engine)
        XCTAssertTrue(EngineCore.finish(engine, left: nil))
    }
}
