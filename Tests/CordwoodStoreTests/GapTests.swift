// Refused records are reported once, whatever reports overlap.

import CordwoodCore
import CordwoodTestSupport
import XCTest

@testable import CordwoodStore

final class GapTests: XCTestCase {
    /// Against a set of single records.
    func testRunsAreNewOnce() {
        for seed in SplitMix.seeds(500, core: 50) {
            var random = SplitMix(seed)
            var gaps = GapsSeen()
            var model: Set<[UInt64]> = []
            func singles(_ runs: [Gap.Run]) -> [[UInt64]] {
                runs.flatMap { run in (run.from..<run.to).map { [UInt64(run.slot), $0] } }
            }
            for _ in 0..<40 {
                let runs = (0..<Int.random(in: 1...3, using: &random)).map { _ -> Gap.Run in
                    let from = UInt64.random(in: 0...50, using: &random)
                    let to = from + UInt64.random(in: 1...15, using: &random)
                    return Gap.Run(
                        slot: UInt32.random(in: 0...1, using: &random), from: from, to: to)
                }
                let fresh = singles(gaps.note(runs))
                XCTAssertEqual(Set(fresh).count, fresh.count, "seed \(seed)")
                XCTAssertEqual(Set(fresh), Set(singles(runs)).subtracting(model), "seed \(seed)")
                model.formUnion(fresh)
            }
        }
    }

    func testWhatARecordShowsIsReadBack() throws {
        let gap = Gap(
            runs: [
                Gap.Run(slot: 0, from: 3, to: 5), Gap.Run(slot: 63, from: 0, to: UInt64.max - 1),
            ], first: 10, last: 20, causes: GapCause.diskFull.bit | GapCause.other.bit)
        var record = RecordRef()
        let text = ReadBuffer()
        gap.show(in: &record, text)
        XCTAssertEqual(Gap(record), gap)
        XCTAssertTrue(
            Bytes.string(record.message).hasSuffix(": the disk is full, the file system refuses"))
        record.kind = 0
        XCTAssertNil(Gap(record))
        XCTAssertEqual(Gap.runs(""), [])
        for runs in ["0:5-5", "0:6-5", "0:1", "x:1-2", "0:1-2-3", "0:1-2 1", "1024:0-1"] {
            XCTAssertNil(Gap.runs(runs), runs)
        }
    }
}
