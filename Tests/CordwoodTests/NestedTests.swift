// Appends of signal handlers amid appends of the same thread, as the thread block sees them: `busy`
// is set and the frame lies below. Chunks are numbered across all streams of a thread, each depth
// has its own stream, and a follower misses none (FORMAT §6.2).
// SAFETY: one thread; its block stays its own for the whole test.

import CShims
import Cordwood
import CordwoodEngine
import CordwoodStore
import XCTest

@testable import CordwoodCore

final class NestedTests: XCTestCase {
    private var store = ""

    override func setUp() { store = TestFiles.directory() }
    override func tearDown() { TestFiles.remove(store) }

    /// Runs `body` like handlers that interrupt `depth` nested appends.
    private func interrupted(_ depth: Int, _ body: () -> Void) {
        var blocks: [ThreadBlock] = []
        var next = cwi_tls_get().pointee.current
        for _ in 0..<depth {
            guard let block = next else { return XCTFail("no append to interrupt so deep") }
            blocks.append(block)
            next = block.pointee.nested
        }
        // A frame above this one: a running append, not an abandoned one.
        for block in blocks {
            cwa_store_relaxed_u64(AppendPath.busyWord(block), UInt64(cwi_frame()) + (64 << 10))
        }
        body()
        for block in blocks { cwa_store_release_u64(AppendPath.busyWord(block), 0) }
    }

    private func options() -> EngineOptions {
        var options = EngineOptions()
        options.segmentBytes = 64 << 10
        return options
    }

    func testChunksAreNumberedAcrossStreams() throws {
        let engine = try Engine(directory: store, options: options())
        let log = engine.logger("nested")
        let text = String(repeating: "x", count: 700)
        var sent = 0
        for _ in 0..<40 {
            for depth in 0...3 {
                interrupted(depth) { log.info("\(depth) \(text)") }
                sent += 1
            }
        }
        let reader = try StoreReader(path: store)
        var found: [String: Int] = [:]
        while let record = reader.nextRecord() {
            found["\(record.threadID) \(record.sequence)", default: 0] += 1
        }
        XCTAssertEqual(reader.problems.count, 0)
        XCTAssertEqual(found.values.reduce(0, +), sent)
        XCTAssertEqual(found.filter { $0.value > 1 }, [:], "a sequence twice in one thread")
        XCTAssertTrue(try engine.close())
        let archived = try StoreReader(path: store)
        var numbers: Set<String> = []
        while let record = archived.nextRecord() {
            numbers.insert("\(record.threadID) \(record.sequence)")
        }
        XCTAssertEqual(numbers.count, sent)
    }

    /// A handler's chunk goes on after a deeper handler has begun its own.
    func testFollowerMissesNoDepth() throws {
        let engine = try Engine(directory: store, options: options())
        let log = engine.logger("nested")
        var follow = ReaderOptions()
        follow.follow = true
        let reader = try StoreReader(path: store, options: follow)
        var found: Set<String> = []
        var wanted: Set<String> = []
        for round in 0..<4 {
            for depth in [0, 1, 2, 3, 1, 0, 2] {
                let message = "\(round) \(depth) \(wanted.count)"
                interrupted(depth) { log.info("\(message)") }
                wanted.insert(message)
            }
            // Young records wait for those of slower threads.
            for _ in 0..<10_000 where found.count < wanted.count {
                while let record = reader.nextRecord() { found.insert(record.message) }
                if found.count < wanted.count { usleep(2_000) }
            }
            XCTAssertEqual(found, wanted)
        }
        XCTAssertTrue(try engine.close())
    }
}
