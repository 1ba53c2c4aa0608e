// When a block is also made by method 1: always if that is smaller, whatever the blocks around it;
// seldom among blocks of an ordinary log, since it costs time.

import CordwoodCore
import CordwoodTestSupport
import XCTest

@testable import CordwoodStore

final class MethodChoiceTests: XCTestCase {
    private static let blockBytes = 640 << 10

    private var random = SplitMix(11)

    /// One block of such lines.
    private func payload(_ line: (Int, inout SplitMix) -> [UInt8]) -> Payload {
        var builder = Block(seed: 3, target: 64 << 20)
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

    /// That many lines of many numbers.
    private func repeated(_ count: Int) -> [[UInt8]] {
        (0..<count).map { _ in
            Array((0..<20).map { _ in "\(random.below(1_000_000))" }.joined(separator: " ").utf8)
        }
    }

    private func hostile() -> [(String, Payload)] {
        let few = repeated(200)
        let many = repeated(1_500)
        // Columns make these small, and a run of them is unlike the runs before it.
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

    /// The size of the dense block, whether method 1 was tried, and its size by method 1.
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

    /// After a tried block, blocks that resemble it only in their dense form.
    func testTrialsSayLittleOfOtherBlocks() throws {
        try full()
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
        let words = ["postgres", "client", "common", "server", "python", "dev", "ssl", "crypto"]
        let packages = (0..<900).map { index in
            let name = (0...2).map { _ in words[random.below(8)] }.joined(separator: "-")
            return "lib\(name)\(index % 7):amd64 \(random.below(3)).\(random.below(40))-1deb12u1"
        }
        let states = ["half-installed", "unpacked", "half-configured", "installed"]
        let records = (0..<2_000).map { index in
            var record = Staged(thread: thread)
            let package = packages[(index / 4 + random.below(8)) % 900]
            record.model.message = Array("status \(states[index % 4]) \(package)".utf8)
            record.model.monotonic = UInt64(index) << 20
            return record
        }
        let scratch = Scratch()
        let info = try ArchiveWriter.write(
            source: FakeSource(records), covers: [coverForTests],
            archivesDirectory: FilePath(scratch.path),
            codec: .zstd, level: 3, now: 1, method: .dense)
        XCTAssertEqual(drain(try ArchiveSource.open(path: info.path)).records.count, 2_000)
        let file = try ArchiveFile(path: info.path)
        let blocks = try ArchiveIndex.load(file, salvage: false).blocks
        XCTAssertEqual(blocks.count, 1)
        var loader = BlockLoader()
        _ = try loader.load(blocks[0], of: file)
        var trial = DenseTrial(level: 3)!
        XCTAssertTrue(
            trial.make(loader.payload, recordCount: 2_000, headerBytes: 0, isOnly: false))
        let stored = Int(blocks[0].spanBytes) - BlockHeader.frameBytes
        XCTAssertLessThan(stored * 100, trial.storedBytes * 97)
    }

    /// Samples say nothing about so few bytes, and method 1 costs little for them.
    func testSmallBlocksAreTried() {
        var trial = DenseTrial(level: 3)!
        var maker = RecordMaker(seed: 5)
        XCTAssertEqual(tried(Payload(maker.records(60)), &trial)?.isTried, true)
    }
}
