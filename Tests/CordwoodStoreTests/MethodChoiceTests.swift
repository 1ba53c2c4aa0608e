// When a block is made by method 1 as well: always where that is smaller, whatever the blocks
// around it are; seldom among blocks of an ordinary log, since it costs time.

import CordwoodCore
import XCTest

@testable import CordwoodStore

final class MethodChoiceTests: XCTestCase {
    private static let blockBytes = 640 << 10

    private var random = SplitMix(11)

    /// One block of such lines.
    private func payload(_ line: (Int, inout SplitMix) -> [UInt8]) -> Payload {
        var builder = BlockBuilder(seed: 3, target: 64 << 20)
        let thread = RecordMaker(seed: 3).threads[0]
        var bytes = 0
        var index = 0
        while bytes < Self.blockBytes {
            let text = line(index, &random)
            text.withUnsafeBytes { text in
                var record = RecordRef(thread: thread)
                record.message = text
                builder.add(record)
            }
            bytes += text.count + 1
            index += 1
        }
        return Payload(&builder)
    }

    private func ordinary(_ index: Int, _ random: inout SplitMix) -> [UInt8] {
        let time = "2026-03-01 12:\(10 + index / 600 % 50):\(10 + index / 10 % 50)"
        return Array(
            ("\(time) INFO worker-\(random.below(16)) request \(700_000 + index) of "
                + "10.0.\(random.below(4)).\(random.below(200)) took \(random.below(4_000)) us")
                .utf8)
    }

    /// Lines of many numbers, of which there are so many.
    private func repeated(_ count: Int) -> [[UInt8]] {
        (0..<count).map { _ in
            Array((0..<20).map { _ in "\(random.below(1_000_000))" }.joined(separator: " ").utf8)
        }
    }

    private func hostile() -> [(String, Payload)] {
        let few = repeated(200)
        let many = repeated(1_500)
        // Columns take little of these, and a run of them is unlike the runs before it.
        let states = (0..<600).map { _ in
            Array(
                "abcdefghijklmnopqrst".map { "stage \($0) took \(random.below(10))" }
                    .joined(separator: ", ").utf8)
        }
        let units = (0..<40).map { _ in repeated(30) }
        var unit = 0
        return [
            ("few lines in any order", payload { _, random in few[random.below(few.count)] }),
            ("many lines in any order", payload { _, random in many[random.below(many.count)] }),
            ("states in any order", payload { _, random in states[random.below(states.count)] }),
            ("the same lines in order", payload { index, _ in many[index % many.count] }),
            (
                "runs of lines in any order",
                payload { index, random in
                    if index % 30 == 0 { unit = random.below(units.count) }
                    return units[unit][index % 30]
                }
            ),
            ("bytes", payload { _, random in random.bytes(200).map { $0 | 0x10 } }),
            (
                "lines and others",
                payload { index, random in
                    index % 2 == 0
                        ? many[random.below(many.count)] : self.ordinary(index, &random)
                }
            ),
        ]
    }

    /// Bytes of the dense block, whether method 1 was thought of, and what it takes.
    private func tried(
        _ payload: Payload, _ trial: inout DenseTrial
    ) -> (dense: Int, isTried: Bool, plain: Int)? {
        payload.bytes.withUnsafeBytes { bytes in
            guard
                trial.make(
                    bytes, recordCount: payload.recordCount, headerBytes: 0, isOnly: false)
            else { return nil }
            let isTried = trial.mayBeLarger(than: bytes)
            let compressor = BlockCompressor(codec: .zstd, level: 3)!
            var frame = GrowingBytes()
            XCTAssertTrue(compressor.append(bytes, to: &frame))
            if isTried { trial.note(plain: min(frame.count, 2 * trial.storedBytes)) }
            return (trial.storedBytes, isTried, frame.count)
        }
    }

    func testNoBlockInBetweenIsLargerThanMethod1() {
        let plain = payload(ordinary)
        for (name, block) in hostile() {
            for before in [0, 1, 3] {
                var trial = DenseTrial(level: 3)!
                for _ in 0..<before { _ = tried(plain, &trial) }
                guard let found = tried(block, &trial) else { continue }
                XCTAssertTrue(
                    found.isTried || found.dense <= found.plain,
                    "\(name), after \(before): \(found.dense) bytes, \(found.plain) by method 1")
            }
        }
    }

    /// After a block that was tried, others like it in their dense form only.
    func testTrialsSayLittleOfOtherBlocks() {
        let blocks = hostile()
        for (name, first) in blocks {
            var trial = DenseTrial(level: 3)!
            guard tried(first, &trial) != nil else { continue }
            for (other, block) in blocks {
                guard let found = tried(block, &trial) else { continue }
                XCTAssertTrue(
                    found.isTried || found.dense <= found.plain,
                    "\(other) after \(name): \(found.dense) bytes, \(found.plain) by method 1")
            }
        }
    }

    func testOrdinaryBlocksAreNotTried() {
        var trial = DenseTrial(level: 3)!
        var count = 0
        for _ in 0..<6 where tried(payload(ordinary), &trial)?.isTried == true { count += 1 }
        XCTAssertLessThan(count, 2)
    }

    /// Many archives are small: a short program leaves one.
    func testTheOnlyBlockOfAnArchiveTakesFewerBytes() throws {
        let thread = RecordMaker(seed: 3).threads[0]
        let records = (0..<4_000).map { index in
            var record = Staged(thread: thread)
            record.model.message = ordinary(index, &random)
            record.model.monotonic = UInt64(index) << 20
            return record
        }
        /// Of the first block, and its bytes a record.
        func first(_ count: Int, blockBytes: Int?) throws -> (info: ArchiveInfo, each: Double) {
            let scratch = Scratch()
            let info = try ArchiveWriter.write(
                source: FakeSource(Array(records.prefix(count))), covers: [coverForTests],
                archivesDirectory: scratch.path, codec: .zstd, level: 3, now: 1, method: .dense,
                blockBytes: blockBytes)
            XCTAssertEqual(drain(try ArchiveSource.open(path: info.path)).records.count, count)
            let file = try ArchiveFile(path: info.path)
            let block = try ArchiveIndex.load(file, salvage: false).blocks[0]
            return (info, Double(block.spanBytes) / Double(block.recordCount))
        }
        let alone = try first(2_000, blockBytes: nil)
        let other = try first(4_000, blockBytes: Int(alone.info.rawBytes))
        XCTAssertEqual([alone.info.blockCount, other.info.blockCount], [1, 2])
        XCTAssertLessThan(alone.each, 0.99 * other.each)
    }

    /// Samples say nothing of so little, and method 1 costs little there.
    func testSmallBlocksAreTried() {
        var trial = DenseTrial(level: 3)!
        var maker = RecordMaker(seed: 5)
        XCTAssertEqual(tried(Payload(maker.records(60)), &trial)?.isTried, true)
    }
}
