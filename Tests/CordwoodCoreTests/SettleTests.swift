// Settling, step by step, in the test's own memory: states that the interleaving walker found
// (docs/CONCURRENCY.md, What is walked) and at which no test from outside can stop.
// SAFETY: one thread; the chunk and the blocks are allocated here and outlive every call.

import CShims
import XCTest

@testable import CordwoodCore

final class SettleTests: XCTestCase {
    private let bytes = 4_096
    private var base = UnsafeMutableRawPointer.allocate(byteCount: 4_096, alignment: 64)
    private var thread = cwi_thread()
    private var segment = cwi_segment()

    override func setUp() {
        base.initializeMemory(as: UInt8.self, repeating: 0, count: bytes)
        segment = cwi_segment()
        segment.base = base.assumingMemoryBound(to: UInt8.self)
        segment.size = UInt64(bytes)
        segment.salt = 77
    }

    override func tearDown() { base.deallocate() }

    /// A thread that has committed `committed` bytes and meets that verdict.
    private func own(_ verdict: Verdict, committed: Int) -> Bool {
        thread = cwi_thread()
        thread.busy = 1
        thread.salt = 77
        thread.chunk_bytes = UInt32(bytes)
        thread.chunk = segment.base
        thread.ptr = segment.base + committed
        thread.verdict = verdict.word
        return withUnsafeMutablePointer(to: &segment) { segment in
            thread.segment = segment
            return withUnsafeMutablePointer(to: &thread) {
                Settle.own($0, hasCommitted: true)
            }
        }
    }

    private var final: UInt32 { base.load(fromByteOffset: ChunkHeader.final, as: UInt32.self) }

    /// The helper fixed a length short of the record and was stopped before it wrote it. The owner
    /// writes it before appending the record again, or a kill would leave the record twice.
    func testShortLengthIsWrittenBeforeTheRecordIsAppendedAgain() {
        XCTAssertFalse(own(Verdict(claim: 3, open: false, offset: 160), committed: 200))
        XCTAssertEqual(final, 160)
        XCTAssertNil(thread.chunk)
        XCTAssertNil(thread.ptr)
    }

    /// If the helper's length covers everything, the mapping may be gone: nothing is stored.
    func testSettledChunkIsNotTouched() {
        XCTAssertTrue(own(Verdict(claim: 3, open: false, offset: 200), committed: 200))
        XCTAssertEqual(final, 0)
    }

    func testOwnerSettlesAtItsEnd() {
        XCTAssertTrue(own(Verdict(claim: 3, open: true, offset: 0), committed: 200))
        XCTAssertEqual(final, 200)
        XCTAssertEqual(Verdict(word: thread.verdict).offset, 200)
        XCTAssertFalse(Verdict(word: thread.verdict).isOpen)
    }

    /// The helper, in its turn, writes the same length.
    func testHelperWritesTheSameLength() {
        XCTAssertFalse(own(Verdict(claim: 3, open: false, offset: 160), committed: 200))
        thread.chunk = segment.base
        withUnsafeMutablePointer(to: &segment) { segment in
            withUnsafeMutablePointer(to: &thread) { Settle.forced($0, in: segment) }
        }
        XCTAssertEqual(final, 160)
    }
}
