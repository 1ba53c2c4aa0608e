// What the file says once a thread has learned that the sealer fixed its chunk short of its record:
// the record is written again, so a death after that must not find it in the old chunk, too. The
// sealer's own store of the length may come late (R2).
// SAFETY: the blocks are this test's own, zeroed, and live until it ends.

import CShims
import XCTest

@testable import CordwoodCore

final class SettleTests: XCTestCase {
    private func settle(committed: UInt32, verdict: Verdict) -> (kept: Bool, final: UInt32) {
        let thread = UnsafeMutablePointer<cwi_thread>.allocate(capacity: 1)
        let segment = UnsafeMutablePointer<cwi_segment>.allocate(capacity: 1)
        let chunk = UnsafeMutableRawPointer.allocate(byteCount: 1_024, alignment: 128)
        defer {
            thread.deallocate()
            segment.deallocate()
            chunk.deallocate()
        }
        memset(thread, 0, MemoryLayout<cwi_thread>.size)
        memset(chunk, 0, 1_024)
        thread.pointee.chunk = chunk.assumingMemoryBound(to: UInt8.self)
        thread.pointee.ptr = thread.pointee.chunk + Int(committed)
        thread.pointee.segment = segment
        cwa_store_release_u64(Verdict.address(thread), verdict.word)
        chunk.storeBytes(of: committed, toByteOffset: ChunkHeader.committed, as: UInt32.self)
        let kept = Settle.own(thread)
        return (kept, chunk.load(fromByteOffset: ChunkHeader.final, as: UInt32.self))
    }

    func testARecordThatIsWrittenAgainIsGoneFromItsOldChunk() {
        let short = settle(
            committed: 400, verdict: Verdict(claim: 3, open: false, offset: 304))
        XCTAssertFalse(short.kept)
        XCTAssertEqual(short.final, 304)
    }

    func testAnOpenChunkIsSettledAtItsEnd() {
        let own = settle(committed: 400, verdict: Verdict(claim: 3, open: true, offset: 0))
        XCTAssertTrue(own.kept)
        XCTAssertEqual(own.final, 400)
    }

    /// Its mapping may be gone: nothing is stored there.
    func testAChunkThatWasSettledWhileIdleIsLeftAlone() {
        let idle = settle(
            committed: 400, verdict: Verdict(claim: 3, open: false, offset: 400))
        XCTAssertTrue(idle.kept)
        XCTAssertEqual(idle.final, 0)
    }
}
