// Whatever a flipped bit or a cut does to a file of a store: either every record is read as it was
// written, or a problem is told that names the file. Seeds are printed on failure.

import CordwoodCore
import CordwoodTestSupport
import Glibc
import XCTest

@testable import CordwoodStore

final class NeverSilentTests: XCTestCase {
    private let identity = AgeIdentity.generate()
    private var store = ""

    override func setUp() { store = TestFiles.directory() }
    override func tearDown() { TestFiles.remove(store) }

    private func lane(_ number: UInt64) -> LaneBuilder {
        let lane = LaneBuilder(
            store: store, name: "20261121T08153\(number)Z-81\(number)-9f3c5a0de1b27788",
            id: 100 + number)
        lane.logger(1, "app.db")
        lane.resource("service.name", "shop")
        for segmentNumber: UInt64 in 1...3 {
            let segment = lane.segment(segmentNumber)
            segment.created = segmentNumber * 10_000
            segment.state = 3
            for thread: UInt32 in 1...2 {
                for part: UInt32 in 0..<2 {
                    let at = segmentNumber * 10_000 + UInt64(part) * 100 + UInt64(thread)
                    let chunk = segment.chunk(
                        thread: thread, sequence: UInt32(segmentNumber) * 2 + part, base: at)
                    for index: UInt64 in 0..<8 {
                        chunk.record(
                            2, at: at + index, id: 1, level: index == 3 ? 17 : 9,
                            section(1, Array("lane \(number) record \(at + index)".utf8))
                                + section(2, fieldBytes([("order", .int(Int64(index)))])))
                    }
                }
            }
        }
        lane.write()
        return lane
    }

    /// Archives the lane's segments; the segments go.
    private func archive(_ lane: LaneBuilder, _ effort: BlockEffort, isEncrypted: Bool) throws {
        mkdir(store + "/archives", 0o700)
        _ = try ArchiveWriter.write(
            source: try lane.source(boot: lane.bootID, 0...3),
            covers: [
                ArchiveCover(laneID: lane.laneID, first: 0, last: 3, laneName: lane.name)
            ], archivesDirectory: FilePath(store + "/archives"), codec: .zstd, level: 3,
            now: 2_000_000_000_000, recipients: isEncrypted ? [identity.recipient] : [],
            effort: effort, blockBytes: 1_000)
        for segment in lane.segments { unlink(lane.path(segment)) }
        unlink(lane.lanePath)
    }

    private struct Seen: Equatable {
        var records: [String] = []
        var problems: [String] = []
    }

    private func options() -> ReaderOptions {
        var options = ReaderOptions()
        options.identities = [identity]
        return options
    }

    private func read() throws -> Seen {
        let reader = try StoreReader(path: store, options: options())
        var seen = Seen()
        while reader.next({ record in
            let text = String(decoding: record.message, as: UTF8.self)
            let logger = String(decoding: record.logger, as: UTF8.self)
            seen.records.append(
                "\(record.id) \(record.timeNs) \(record.level) \(logger) \(text) "
                    + "\(Array(record.sections)) \(record.thread.threadID) "
                    + "\(record.thread.name) \(record.flags.rawValue)")
        }) == .record {}
        seen.records.sort()
        seen.problems = reader.problems.map { "\($0)" }
        return seen
    }

    /// One flipped bit up to three, or a cut, in one file.
    private func damage(_ whole: [UInt8], _ random: inout SplitMix) -> [UInt8] {
        var bytes = whole
        if random.chance(6) {
            bytes.removeLast(1 + random.below(bytes.count - 1))
            return bytes
        }
        // Most of a segment is room: aim at what is written, and at the whole at times.
        let alive = whole.indices.filter { whole[$0] != 0 }
        for _ in 0..<(random.chance(2) ? 1 : 1 + random.below(3)) {
            let at = random.chance(4) ? random.below(bytes.count) : alive[random.below(alive.count)]
            bytes[at] ^= UInt8(1 << random.below(8))
        }
        return bytes
    }

    private func check(_ files: [String], rounds: UInt64, core: UInt64) throws {
        let whole = try read()
        XCTAssertEqual(whole.problems, [])
        XCTAssertEqual(whole.records.count, 4 * 96)
        let counted = try StoreInspector.stats(path: store, options: options())
        XCTAssertEqual(counted.records, 4 * 96)
        for seed in SplitMix.seeds(rounds, core: core) {
            var random = SplitMix(seed)
            let file = files[random.below(files.count)]
            let bytes = readAll(file)
            let damaged = damage(bytes, &random)
            TestFiles.write(damaged, to: file)
            defer { TestFiles.write(bytes, to: file) }
            let seen = try read()
            if seen.records != whole.records {
                XCTAssertNotEqual(seen.problems, [], "seed \(seed): \(file) is read in silence")
            }
            let stats = try StoreInspector.stats(path: store, options: options())
            if stats.records != 4 * 96 {
                XCTAssertNotEqual(
                    stats.problems + stats.encrypted, [], "seed \(seed): \(file) is counted so")
            }
        }
    }

    func testArchives() throws {
        try archive(lane(1), .swift, isEncrypted: false)
        try archive(lane(2), .dense, isEncrypted: false)
        try archive(lane(3), .dense, isEncrypted: true)
        _ = lane(4)
        let files = try StoreFolder.archives(FilePath(store))
        XCTAssertEqual(files.count, 3)
        try check(files.map(\.description), rounds: 500, core: 30)
    }

    func testSealedSegments() throws {
        let lanes = (1...4).map { lane(UInt64($0)) }
        let files = lanes.flatMap { lane in lane.segments.map { lane.path($0) } }
        try check(files.map(\.description), rounds: 500, core: 30)
    }

    /// Any bit of a sealed segment's header that its checksum covers, its clock pairs among them.
    func testHeadersOfSealedSegments() throws {
        let lanes = (1...4).map { lane(UInt64($0)) }
        let segment = try XCTUnwrap(lanes[0].segments.first)
        let file = lanes[0].path(segment)
        let bytes = readAll(file)
        let covered = Array(0..<112) + Array(384..<408) + Array(512..<640) + [2_000, 4_095]
        for at in covered where at % sized(3, 1, 1) == 0 || at > 1_000 {
            for bit in sized([at % 8], [at % 8, (at + 3) % 8], Array(0..<8)) {
                var flipped = bytes
                flipped[at] ^= UInt8(1 << bit)
                TestFiles.write(flipped, to: file)
                let seen = try read()
                XCTAssertTrue(
                    seen.problems.contains { $0.contains("\(file)") }, "bit \(bit) of byte \(at)")
            }
        }
    }

    /// Any bit of an archive's header: the records are read all the same.
    func testHeaders() throws {
        try archive(lane(1), .dense, isEncrypted: false)
        for number: UInt64 in 2...4 { _ = lane(number) }
        let whole = try read()
        let file = try XCTUnwrap(StoreFolder.archives(FilePath(store)).first)
        let bytes = readAll("\(file)")
        let end = 8 + Int(UInt32(truncatingIfNeeded: littleAt(bytes, 4)))
        for at in stride(from: 0, to: end, by: sized(3, 1, 1)) {
            for bit in sized([at % 8], [at % 8, (at + 3) % 8], Array(0..<8)) {
                var flipped = bytes
                flipped[at] ^= UInt8(1 << bit)
                TestFiles.write(flipped, to: "\(file)")
                let seen = try read()
                XCTAssertEqual(seen.records, whole.records, "bit \(bit) of byte \(at)")
                XCTAssertTrue(
                    seen.problems.contains { $0.contains("\(file)") }, "bit \(bit) of byte \(at)")
            }
        }
    }
}
