// What goes into an archive comes out of it, record for record and byte for byte, with every codec.
// Also what standard tools see of it, and what headers and footers say.

import CordwoodCore
import CordwoodTestSupport
import XCTest

@testable import CordwoodStore

final class ArchiveRoundTripTests: XCTestCase {
    private func check(
        _ records: [Staged], codec: Codec, level: Int32, seed: UInt64,
        effort: BlockEffort = .swift
    ) throws {
        let scratch = Scratch()
        let info = try writeArchive(
            records, in: scratch, codec: codec, level: level, effort: effort)
        let source = try ArchiveSource.open(path: info.path)
        let read = drain(source)
        XCTAssertEqual(read.problems.count, 0, "\(read.problems) seed \(seed)")
        XCTAssertEqual(read.records.count, records.count, "seed \(seed)")
        for (index, pair) in zip(read.records, records).enumerated()
        where pair.0 != pair.1.model {
            XCTFail("record \(index), seed \(seed), \(codec): \(pair.0) is not \(pair.1.model)")
            return
        }
        let verified = try ArchiveVerifier.verify(path: info.path)
        XCTAssertTrue(verified.isWhole, "\(verified.problems) seed \(seed)")
        XCTAssertEqual(verified.recordCount, UInt64(records.count))
        let peeked = try ArchiveInfo.peek(path: info.path)
        for other in [peeked, source.info, source.header] { same(info, other) }
        XCTAssertEqual(scratch.names.count, 1, "no .part is left")
    }

    private func same(_ left: ArchiveInfo, _ right: ArchiveInfo) {
        XCTAssertEqual(left.id, right.id)
        XCTAssertEqual(left.covers, right.covers)
        XCTAssertEqual(left.createdRealtime, right.createdRealtime)
        XCTAssertEqual(left.recordCount, right.recordCount)
        XCTAssertEqual(left.timeMin, right.timeMin)
        XCTAssertEqual(left.timeMax, right.timeMax)
        XCTAssertEqual(left.rawBytes, right.rawBytes)
        XCTAssertEqual(left.fileBytes, right.fileBytes)
        XCTAssertEqual(left.blockCount, right.blockCount)
        XCTAssertEqual(left.levels, right.levels)
        XCTAssertEqual(left.kinds, right.kinds)
        XCTAssertEqual(left.path, right.path)
    }

    func testRandomRecordsComeBackEqual() throws {
        for seed in UInt64(1)...sized(1, 4, 4) {
            for codec in Codec.allCases {
                var maker = RecordMaker(seed: seed)
                try check(maker.records(1 + 3_000 * Int(seed)), codec: codec, level: 1, seed: seed)
            }
            var maker = RecordMaker(seed: seed)
            try check(
                maker.records(3_000), codec: .zstd, level: 0, seed: seed, effort: .dense)
        }
    }

    /// Only the time of writing is rounded: order, ids and events' own times stay.
    func testATimeStepRoundsTimesDown() throws {
        for (seed, step) in [(UInt64(1), UInt64(100)), (2, 7), (3, 10_000)] {
            for effort in BlockEffort.allCases {
                var maker = RecordMaker(seed: seed)
                let records = maker.records(2_000)
                let scratch = Scratch()
                let info = try writeArchive(
                    records, in: scratch, effort: effort, timeStepNs: step)
                let read = drain(try ArchiveSource.open(path: info.path))
                XCTAssertEqual(read.problems.count, 0)
                XCTAssertEqual(read.records.count, records.count)
                for (found, staged) in zip(read.records, records) {
                    var wanted = staged.model
                    let late = wanted.monotonic % step
                    if wanted.time == wanted.written { wanted.time -= late }
                    wanted.monotonic -= late
                    wanted.written -= late
                    guard found == wanted else {
                        return XCTFail("seed \(seed), step \(step): \(found), not \(wanted)")
                    }
                }
                let verified = try ArchiveVerifier.verify(path: info.path)
                XCTAssertTrue(verified.isWhole, "\(verified.problems)")
            }
        }
    }

    func testEveryLevelOfEveryCodec() throws {
        for level in Int32(0)...19 {
            var maker = RecordMaker(seed: 100)
            let records = maker.records(50)
            try check(records, codec: .zstd, level: level, seed: 100)
            try check(records, codec: .lz4, level: level, seed: 100)
        }
    }

    func testManyThreadsAndProcesses() throws {
        try full()
        var maker = RecordMaker(seed: 9, processes: 40, threadsEach: 60)
        try check(maker.records(20_000), codec: .zstd, level: 1, seed: 9)
    }

    func testMoreThreadsThanOneBlockNames() throws {
        try full()
        var maker = RecordMaker(seed: 10, processes: 2, threadsEach: 40_000)
        var records: [Staged] = []
        for thread in maker.threads {
            var staged = maker.record()
            staged.thread = thread
            staged.model.lane = thread.process.laneID
            staged.model.processName = thread.process.name
            staged.model.resource = thread.process.resource.flatMap { [$0.key, $0.value] }
            staged.model.serial = thread.serial
            staged.model.threadID = thread.threadID
            staged.model.threadName = thread.name
            records.append(staged)
        }
        try check(records, codec: .lz4, level: 1, seed: 10)
    }

    func testLargeMessages() throws {
        var maker = RecordMaker(seed: 11)
        var records = maker.records(500)
        for index in [0, 7, 8, 300] {
            let message = maker.random.bytes(1 << 20)
            records[index].model.message = message
            records[index].model.originalLength = UInt64(message.count)
            records[index].storedSections = []
            records[index].model.sections = [:]
            records[index].model.flags = 0
            records[index].model.time = records[index].model.written
        }
        for codec in Codec.allCases { try check(records, codec: codec, level: 1, seed: 11) }
    }

    func testExtremeNumbers() throws {
        var maker = RecordMaker(seed: 12)
        var records = maker.records(400)
        let extremes: [UInt64] = [0, 1, .max, .max - 1, 1 << 63, (1 << 63) - 1, 0x7f, 0x80]
        for index in records.indices {
            records[index].model.monotonic = extremes[maker.random.below(8)]
            records[index].model.sequence = extremes[maker.random.below(8)]
            let moved = records[index].model.sections[6] != nil
            records[index].model.written = extremes[maker.random.below(8)]
            if !moved { records[index].model.time = records[index].model.written }
            records[index].model.level = UInt8(maker.random.below(25))
            records[index].model.kind &= 7
        }
        try check(records, codec: .zstd, level: 1, seed: 12)
    }

    func testNoRecordsStillRecordsTheCovers() throws {
        try check([], codec: .zstd, level: 1, seed: 0)
        let scratch = Scratch()
        let info = try writeArchive([], in: scratch)
        XCTAssertEqual(info.blockCount, 0)
        XCTAssertEqual(try ArchiveInfo.peek(path: info.path).covers, [coverForTests])
        XCTAssertNil(try ArchiveSource.open(path: info.path).process)
    }

    /// Another implementation of FORMAT §11, and every fact that makes another archive.
    func testNameAndIdAreFunctionsOfTheContent() throws {
        let scratch = Scratch()
        var cover = coverForTests
        cover.seals = [SegmentSeal(number: 3, digest: LaneID(high: 7, low: 8))]
        cover.gap = 9
        let info = try makeArchive([], in: scratch.path, covers: [cover], codec: .none)
        let expected = shell(
            "python3 -c \"import hashlib,struct,uuid;print(uuid.UUID(bytes=hashlib.sha256("
                + "b'cordwood archive 1'+struct.pack('<I3QI2Q',0,1,2,9,1,7,8)).digest()[:16]))\"")
        if expected.status == 0 {
            XCTAssertEqual(info.idText + "\n", String(decoding: expected.output, as: UTF8.self))
        }
        let digits = info.idText.filter { $0 != "-" }.prefix(16)
        XCTAssertEqual(
            scratch.names,
            ["20261121T081530Z-812-9f3c5a0de1b27788.00000003-00000005.\(digits).cwa"])
        XCTAssertEqual(try ArchiveInfo.peek(path: info.path, seals: true).covers, [cover])
        var same = cover
        (same.first, same.last, same.laneName) = (2, 9, "copy")
        XCTAssertEqual(ArchiveIdentity.id([same]), info.id)
        var others: Set = [info.id]
        func differs(_ change: (inout ArchiveCover) -> Void) {
            var other = cover
            change(&other)
            others.insert(ArchiveIdentity.id([other]))
        }
        differs { $0.laneID.low = 3 }
        differs { $0.gap = 8 }
        differs { $0.seals = [] }
        differs { $0.seals[0].digest.low = 9 }
        differs { $0.seals.append($0.seals[0]) }
        others.insert(ArchiveIdentity.id([cover], lostPlaces: 1))
        others.insert(ArchiveIdentity.id([cover, cover]))
        let member = ReplacedArchive(id: info.id, recordCount: 5)
        others.insert(ArchiveIdentity.id([cover], replaced: [member]))
        others.insert(ArchiveIdentity.id([cover], replaced: [member, member]))
        // Of another lane, with the same name: a collector has both, under two names.
        var strange = cover
        strange.laneID.low = 3
        others.insert(ArchiveIdentity.id([strange], replaced: [member]))
        XCTAssertEqual(others.count, 11)
    }

    func testOwnNameSeveralCoversAndBadNames() throws {
        let scratch = Scratch()
        var other = coverForTests
        other.laneName = "other"
        (other.first, other.last, other.seals) = (.max, .max, [])
        let source = FakeSource([])
        let info = try ArchiveWriter.write(
            source: source, covers: [coverForTests, other],
            archivesDirectory: FilePath(scratch.path),
            name: "joined.cwa", codec: .none, level: 0, now: 1)
        XCTAssertEqual(try ArchiveInfo.peek(path: info.path).covers, [coverForTests, other])
        for name in ["", "..", ".x", "a/b", "a\0b", String(repeating: "x", count: 300)] {
            XCTAssertThrowsError(
                try ArchiveWriter.write(
                    source: source, covers: [coverForTests],
                    archivesDirectory: FilePath(scratch.path),
                    name: name, codec: .none, level: 0, now: 1), name)
        }
        XCTAssertThrowsError(
            try ArchiveWriter.write(
                source: source, covers: [], archivesDirectory: FilePath(scratch.path), codec: .none,
                level: 0,
                now: 1))
        XCTAssertEqual(scratch.names, ["joined.cwa"])
    }

    func testProcessAndFirstTimeAreKnownBeforeTheFirstRecord() throws {
        var maker = RecordMaker(seed: 13)
        let records = maker.records(100)
        let scratch = Scratch()
        let source = try ArchiveSource.open(path: writeArchive(records, in: scratch).path)
        XCTAssertEqual(source.process?.laneID, records[0].model.lane)
        XCTAssertEqual(source.createdMonotonicNs, records[0].model.monotonic)
        XCTAssertEqual(drain(source).records, records.map(\.model))
        XCTAssertEqual(source.process?.laneID, records[0].model.lane)
    }

    func testRestrictPassesOverBlocksOnly() throws {
        let thread = RecordMaker(seed: 14).threads[0]
        var records: [Staged] = []
        for index in 0..<8 {
            var staged = Staged(thread: thread)
            staged.model = ModelRecord()
            staged.model.message = Array(repeating: 0x61, count: 1 << 20)
            staged.model.originalLength = 1 << 20
            staged.model.monotonic = UInt64(index)
            staged.model.written = UInt64(100 * (index + 1))
            staged.model.time = staged.model.written
            staged.model.level = UInt8(index * 3)
            records.append(staged)
        }
        let scratch = Scratch()
        let info = try writeArchive(records, in: scratch)
        XCTAssertEqual(info.blockCount, 8)
        func times(_ since: UInt64, _ until: UInt64, _ level: UInt8) throws -> [UInt64] {
            let source = try ArchiveSource.open(path: info.path)
            var limits = RowLimits()
            limits.since = since
            limits.until = until
            limits.level = level
            source.restrict(limits)
            return drain(source).records.map(\.time)
        }
        XCTAssertEqual(try times(0, 0, 0).count, 8)
        XCTAssertEqual(try times(300, 500, 0), [300, 400])
        // A record of level 0 has no level and is never passed over.
        XCTAssertEqual(try times(0, 0, 13), [100, 600, 700, 800])
        XCTAssertEqual(try times(900, 0, 0), [])
    }

    func testHugeRecordsAreCutToFitABlock() throws {
        var maker = RecordMaker(seed: 15)
        var staged = maker.record()
        staged.model.message = Array(repeating: 0x78, count: 70 << 20)
        staged.model.originalLength = 70 << 20
        staged.storedSections =
            [7, 0, 0, 0] + little(UInt32(20 << 20)) + [UInt8](repeating: 1, count: 20 << 20)
            + [6, 0, 0, 0] + little(UInt32(8)) + little(UInt64(77))
        staged.model.time = 77
        let scratch = Scratch()
        let info = try writeArchive([maker.record(), staged, maker.record()], in: scratch)
        let read = drain(try ArchiveSource.open(path: info.path))
        XCTAssertEqual(read.records.count, 3)
        XCTAssertEqual(read.records[1].message.count, ArchiveLimits.messageMax)
        XCTAssertEqual(read.records[1].originalLength, 70 << 20)
        XCTAssertEqual(read.records[1].flags & 1, 1)
        XCTAssertEqual(read.records[1].time, 77)
        XCTAssertTrue(try ArchiveVerifier.verify(path: info.path).isWhole)
    }

    func testAnArchiveOfAnArchiveIsEqual() throws {
        var maker = RecordMaker(seed: 16)
        let records = maker.records(5_000)
        let first = Scratch()
        let second = Scratch()
        let info = try writeArchive(records, in: first, codec: .lz4)
        let again = try ArchiveWriter.write(
            source: ArchiveSource.open(path: info.path), covers: info.covers,
            archivesDirectory: FilePath(second.path), codec: .zstd, level: 3, now: 1)
        XCTAssertEqual(
            drain(try ArchiveSource.open(path: again.path)).records, records.map(\.model))
    }

    func testStandardToolsOpenIt() throws {
        var maker = RecordMaker(seed: 17)
        var records = maker.records(30_000)
        records[29_000].model.message = Array("a needle in the hay".utf8)
        records[29_000].model.originalLength = 19
        records[29_000].model.flags = 0
        for (codec, tool) in [(Codec.zstd, "zstd"), (.lz4, "lz4"), (.none, "cat")] {
            guard shell("command -v \(tool)").status == 0 else { continue }
            let scratch = Scratch()
            let info = try writeArchive(records, in: scratch, codec: codec)
            XCTAssertGreaterThan(info.blockCount, 1)
            let open = tool == "cat" ? "cat" : "\(tool) -dc"
            let found = shell("\(open) '\(info.path)' | grep -a '^a needle in the hay$'")
            XCTAssertEqual(found.status, 0, tool)
            if tool != "cat" {
                XCTAssertEqual(shell("\(tool) -t '\(info.path)' 2>&1").status, 0, tool)
            }
        }
    }
}
