// A lane that the engine leaves for one in another directory, and a directory that is not found
// again: an engine without threads.
// SAFETY: blocks of engines are never unmapped.

import CCordwood
import CShims
import Foundation
import Synchronization
import XCTest

@testable import CordwoodCore

final class ElsewhereTests: XCTestCase {
    private var folder = ""

    override func setUp() {
        folder = NSTemporaryDirectory() + "cordwood-elsewhere-\(UUID().uuidString)"
        for name in ["a", "b"] {
            try? FileManager.default.createDirectory(
                atPath: folder + "/" + name, withIntermediateDirectories: true)
        }
    }

    override func tearDown() { try? FileManager.default.removeItem(atPath: folder) }

    private func descriptor(_ name: String) -> Int32 {
        Files.openKept(FilePath(folder + "/" + name), .directory)
    }

    private func names(_ name: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder + "/" + name)) ?? []).sorted()
    }

    private func open(memory: Int32 = -1) throws -> (EngineBlock, LoggerBlock) {
        let opened = EngineCore.open(
            EngineCore.Configuration(
                lanesDirectory: descriptor("a"), segmentBytes: 1 << 20,
                overflow: UInt32(CW_OVERFLOW_GROW), processName: Array("elsewhere".utf8),
                echoInLine: false, memoryDirectory: memory, lanesPath: folder + "/a"))
        let engine = try opened.get()
        let logger = try XCTUnwrap(
            EngineCore.addLogger(
                engine, name: UnsafeRawBufferPointer(start: nil, count: 0), enabled: 255))
        XCTAssertEqual(EngineCore.start(engine), Status.ok)
        return (engine, logger)
    }

    private func close(_ engine: EngineBlock, left: LeftLane? = nil) {
        EngineCore.closeHandles(engine)
        XCTAssertTrue(EngineCore.finish(engine, left: left))
    }

    /// Appends until another segment is current.
    private func fill(_ engine: EngineBlock, _ logger: LoggerBlock) throws {
        let text = Array(repeating: UInt8(ascii: "x"), count: 1000)
        let lane = try XCTUnwrap(engine.pointee.lane)
        let first = Claim.current(lane)
        for _ in 0..<4000 where Claim.current(lane) == first {
            let status = text.withUnsafeBytes {
                AppendPath.text(logger, 9, $0.baseAddress, $0.count)
            }
            XCTAssertEqual(status, Status.ok)
        }
        XCTAssertNotEqual(Claim.current(lane), first)
    }

    /// A look during a rename reads a path that leads nowhere by then. One that gives up at that
    /// makes records be refused, or go on elsewhere.
    func testADirectoryIsFoundWhileItIsRenamed() throws {
        let file = Glibc.open(folder + "/a/x.lane", O_RDWR | O_CREAT, 0o600)
        XCTAssertEqual(ftruncate(file, 4096), 0)
        let memory = mmap(nil, 4096, PROT_READ, MAP_SHARED, file, 0)
        XCTAssertNotEqual(memory, MAP_FAILED)
        defer { munmap(memory, 4096) }
        Glibc.close(file)
        let facts = try XCTUnwrap(FileFacts(at: FilePath(folder + "/a")))
        let isOver = Atomic(false), turns = Atomic(0), ended = DispatchSemaphore(value: 0)
        let home = folder
        Thread.detachNewThread {
            var name = home + "/a"
            while !isOver.load(ordering: .relaxed) {
                let next = home + "/a-\(turns.wrappingAdd(1, ordering: .relaxed).newValue)"
                guard rename(name, next) == 0 else { break }
                name = next
            }
            ended.signal()
        }
        var looks: [Int32: Int] = [:]
        while turns.load(ordering: .relaxed) < 20_000 {
            let found = MappedFiles.directory(levels: 1, facts.device, facts.inode)
            looks[min(found, 0), default: 0] += 1
            FileCalls.close(found)
        }
        isOver.store(true, ordering: .relaxed)
        ended.wait()
        XCTAssertNil(looks[-1], "\(looks)")
        XCTAssertGreaterThan(looks[0] ?? 0, 0, "\(looks)")
    }

    /// A thread that is still inside the old lane, with or without a spare, gets no segment.
    func testALeftLaneMakesNoSegmentElsewhere() throws {
        for hasSpare in [false, true] {
            tearDown()
            setUp()
            let (engine, logger) = try open()
            try fill(engine, logger)
            let old = try XCTUnwrap(engine.pointee.lane)
            if hasSpare {
                Segments.putSpare(
                    engine, old, try XCTUnwrap(Segments.make(engine, old, isWhole: false)))
            }
            var left = try XCTUnwrap(
                EngineCore.renewLane(engine, known: nil, since: 0, lanesDirectory: descriptor("b")))
            for number in [ENOSPC, ENOENT] {
                let status = Segments.publishNext(engine, old, after: Claim.current(old), nil)
                XCTAssertEqual(status, Status.full)
                // A refusal that was under way does not end the mark.
                Segments.refuse(engine, old, errno: number)
                Segments.refuseNames(engine, old, errno: number)
            }
            try fill(engine, logger)
            XCTAssertTrue(left.letGo(engine))
            XCTAssertEqual(Set(names("b").compactMap { $0.split(separator: ".").first }).count, 1)
            close(engine)
        }
    }

    /// If the new lane cannot be made, the old one goes on in its own directory.
    func testALaneThatCannotBeMadeChangesNothing() throws {
        let (engine, logger) = try open()
        let gone = descriptor("b")
        XCTAssertEqual(rmdir(folder + "/b"), 0)
        XCTAssertNil(EngineCore.renewLane(engine, known: nil, since: 0, lanesDirectory: gone))
        XCTAssertFalse(FileCalls.isNameless(Descriptors.lanes(engine)))
        try fill(engine, logger)
        try fill(engine, logger)
        XCTAssertGreaterThan(names("a").filter { $0.hasSuffix(".seg") }.count, 1)
        close(engine)
    }

    /// Segments in memory stay where the links in the former directory lead, or go with these.
    func testSegmentsInMemoryStayInTheirStore() throws {
        for (known, isLast) in [(nil, false), (nil, true), (0, false), (0, true)]
            as [(UInt64?, Bool)]
        {
            tearDown()
            setUp()
            let memory = MemorySegments.openFolder()
            try XCTSkipIf(memory < 0, "no memory file system")
            let (engine, logger) = try open(memory: memory)
            let lane = try XCTUnwrap(engine.pointee.lane)
            for _ in 0..<2 {
                let spare = try XCTUnwrap(
                    Segments.make(engine, lane, inMemory: true, isWhole: true))
                Segments.putSpare(engine, lane, spare)
                try fill(engine, logger)
            }
            let links = names("a").filter {
                Files.target(of: FilePath(folder + "/a/" + $0)) != nil
            }
            XCTAssertEqual(links.count, 2)
            let files = links.compactMap { Files.target(of: FilePath(folder + "/a/" + $0)) }
            var left = try XCTUnwrap(
                EngineCore.renewLane(
                    engine, known: known, since: 0, lanesDirectory: descriptor("b")))
            if isLast {
                close(engine, left: left)
            } else {
                XCTAssertTrue(left.letGo(engine))
            }
            for file in files {
                XCTAssertEqual(FileManager.default.fileExists(atPath: file), known == nil, file)
                unlink(file)
            }
            XCTAssertEqual(names("b").filter { $0.contains("seal") || $0.contains("spare") }, [])
            if !isLast { close(engine) }
        }
    }

    /// Neither what begins anew nor a second loss of the descriptor acknowledges the first one.
    func testALossWaitsToBeAcknowledged() throws {
        let path = folder + "/a"
        let directory = try XCTUnwrap(OpenDirectory(path))
        XCTAssertFalse(directory.isElsewhere)
        FileCalls.close(directory.descriptor)
        XCTAssertEqual(rename(path, path + ".old"), 0)
        XCTAssertEqual(mkdir(path, 0o700), 0)
        XCTAssertTrue(directory.isElsewhere)
        let losses = directory.losses
        XCTAssertTrue(directory.beginAnew())
        XCTAssertTrue(directory.isElsewhere)
        FileCalls.close(directory.descriptor)
        XCTAssertTrue(directory.isElsewhere)
        directory.acknowledge(losses)
        XCTAssertFalse(directory.isElsewhere)
        FileCalls.close(directory.descriptor)
        XCTAssertFalse(directory.isElsewhere)
        FileCalls.close(directory.descriptor)
        XCTAssertEqual(rename(path, path + ".older"), 0)
        XCTAssertEqual(mkdir(path, 0o700), 0)
        directory.acknowledge(losses)
        XCTAssertTrue(directory.isElsewhere)
    }
}
