// Which blocks a thread keeps while it lives: those that one of its own appends may have found
// before a handler interrupted it (docs/CONCURRENCY.md, A35). No test from outside can stop
// handlers of handlers at each instruction, so these look at the blocks.
// SAFETY: engines and lanes are zeros that are never freed; each test has its own thread, and
// with it its own table.

import CShims
import XCTest

@testable import CordwoodCore

private func engine() -> EngineBlock {
    let engine = EngineBlock.allocate(capacity: 1)
    UnsafeMutableRawPointer(engine).initializeMemory(
        as: UInt8.self, repeating: 0, count: MemoryLayout<cwi_engine>.size)
    let lane = UnsafeMutablePointer<cwi_lane>.allocate(capacity: 1)
    UnsafeMutableRawPointer(lane).initializeMemory(
        as: UInt8.self, repeating: 0, count: MemoryLayout<cwi_lane>.size)
    engine.pointee.lane = lane
    engine.pointee.clock_kind = SegmentHeader.clockTSC
    return engine
}

private func setBusy(_ block: ThreadBlock, _ isBusy: Bool) {
    cwa_store_relaxed_u64(
        AppendPath.busyWord(block), isBusy ? UInt64(cwi_frame()) &+ (1 << 20) : 0)
}

final class BlockTableTests: XCTestCase {
    private func onThread(_ body: @escaping @Sendable () -> Void) {
        XCTAssertTrue(ThreadBlocks.makePool())
        let ended = DispatchSemaphore(value: 0)
        let thread = Thread {
            body()
            ended.signal()
        }
        thread.stackSize = 4 << 20
        thread.start()
        XCTAssertEqual(ended.wait(timeout: .now() + 60), .success)
    }

    /// An append that then looks at the nested block would settle another thread's.
    func testNestedBlocksOfAnEvictedOneStayWithTheThread() {
        onThread {
            guard let own = ThreadBlocks.own(engine()) else { return XCTFail("no block") }
            setBusy(own, true)
            guard let nested = ThreadBlocks.enter(own) else { return XCTFail("no nested block") }
            XCTAssertNotEqual(nested, own)
            setBusy(nested, false)
            setBusy(own, false)
            let others = (0..<Int(CWI_THREAD_ENGINES_MAX)).map { _ in engine() }
            let blocks = others.map { ThreadBlocks.own($0) }
            XCTAssertTrue(blocks.contains(own), "the block was not evicted")
            XCTAssertEqual(nested.pointee.state, UInt32(CWI_THREAD_OWNED))
            XCTAssertEqual(own.pointee.nested, nested)
            XCTAssertEqual(nested.pointee.own, own)
            XCTAssertEqual(nested.pointee.engine, own.pointee.engine)
        }
    }

    /// The thread is inside appends in all other engines, so the block finds no place in the table.
    func testBlockWithoutAPlaceIsNotGivenToAnotherThread() {
        onThread {
            let table = BlockTable()
            let engines = (0..<Int(CWI_THREAD_ENGINES_MAX)).map { _ in engine() }
            let blocks = engines.compactMap { ThreadBlocks.own($0) }
            guard let place = table.index(of: engines[0]), let block = table.take(place) else {
                return XCTFail("not in the table")
            }
            guard let fifth = ThreadBlocks.own(engine()) else { return XCTFail("no block") }
            let others = blocks.filter { $0 != block } + [fifth]
            for other in others { setBusy(other, true) }
            XCTAssertFalse(table.place(block, isNew: false))
            XCTAssertEqual(block.pointee.state, UInt32(CWI_THREAD_OWNED))
            XCTAssertEqual(ThreadBlocks.engine(of: block), engines[0])
            for other in others { setBusy(other, false) }
        }
    }
}
