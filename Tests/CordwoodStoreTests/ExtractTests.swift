// Extracts (FORMAT §11.11): a query for severe records reads the extract alone and finds the same
// records in the same order as in the blocks. Damage to the extract or to the blocks loses nothing
// that the other still holds.

import CordwoodCore
import CordwoodTestSupport
import XCTest

@testable import CordwoodStore

final class ExtractTests: XCTestCase {
    /// A record in a hundred is severe; the last block ends with one that is not.
    private func records(_ count: Int = 4_000, severeEvery: Int = 100) -> [Staged] {
        var random = SplitMix(20_261_127)
        let thread = RecordMaker(seed: 1).threads[0]
        return (0..<count).map { index in
            var staged = Staged(thread: thread)
            staged.model = ModelRecord(RecordRef(thread: thread))
            staged.model.message = Array("order \(index) of \(random.below(1 << 30))".utf8)
            staged.model.originalLength = UInt64(staged.model.message.count)
            staged.model.monotonic = 1_000 + UInt64(index) * 10
            staged.model.written = 1 << 60 + UInt64(index) * 10
            staged.model.time = staged.model.written
            staged.model.sequence = UInt64(index)
            staged.model.level =
                index % severeEvery == severeEvery / 2 ? UInt8(17 + random.below(8)) : 9
            return staged
        }
    }

    private func severe(_ records: [Staged], _ least: UInt8 = 17) -> [ModelRecord] {
        records.map(\.model).filter { $0.level >= least }
    }

    private func footer(_ path: String) throws -> ArchiveIndex.Footer {
        try XCTUnwrap(anyFooter(path))
    }

    private func anyFooter(_ path: String) throws -> ArchiveIndex.Footer? {
        try ArchiveIndex.load(ArchiveFile(path: FilePath(path)), salvage: false).footer
    }

    private func read(
        _ path: String, level: UInt8, since: UInt64 = 0
    ) throws -> (records: [ModelRecord], problems: [ReadProblem]) {
        let source = try ArchiveSource.open(path: FilePath(path))
        var limits = RowLimits()
        limits.level = level
        limits.since = since
        source.restrict(limits)
        let found = drain(source)
        return (found.records.filter { $0.level >= level && $0.time >= since }, found.problems)
    }

    private func made(
        _ records: [Staged], in scratch: Scratch, effort: BlockEffort = .dense,
        codec: Codec = .zstd
    ) throws -> ArchiveInfo {
        try writeArchive(
            records, in: scratch, codec: codec, effort: effort, blockBytes: 16_000)
    }

    func testSevereRecordsComeFromTheExtract() throws {
        let records = records()
        for (effort, codec) in [
            (BlockEffort.dense, Codec.zstd), (.swift, .zstd), (.swift, .lz4), (.swift, .none),
        ] {
            let scratch = Scratch()
            let info = try made(records, in: scratch, effort: effort, codec: codec)
            XCTAssertGreaterThan(info.blockCount, 4)
            XCTAssertEqual(info.recordCount, UInt64(records.count))
            XCTAssertNotNil(try footer("\(info.path)").extract)
            for level in [UInt8(17), 18, 24] {
                let found = try read("\(info.path)", level: level)
                XCTAssertEqual(found.records, severe(records, level))
                XCTAssertTrue(found.problems.isEmpty)
            }
            let middle = records[records.count / 2].model.time
            XCTAssertEqual(
                try read("\(info.path)", level: 17, since: middle).records,
                severe(records).filter { $0.time >= middle })
            XCTAssertEqual(try read("\(info.path)", level: 9).records.count, records.count)
            let verified = try ArchiveVerifier.verify(path: info.path)
            XCTAssertEqual(verified.problems, [])
            XCTAssertEqual(verified.recordCount, UInt64(records.count))
        }
    }

    /// The archive begins at its first record's time, whichever records a query wants.
    func testTheArchiveBeginsWithItsFirstRecord() throws {
        let records = records()
        let scratch = Scratch()
        let info = try made(records, in: scratch)
        for isRead in [false, true] {
            let source = try ArchiveSource.open(path: info.path)
            var limits = RowLimits()
            limits.level = 17
            source.restrict(limits)
            if isRead { XCTAssertFalse(drain(source).records.isEmpty) }
            XCTAssertEqual(source.createdMonotonicNs, records[0].model.monotonic)
            XCTAssertEqual(source.process?.laneID, records[0].model.lane)
            XCTAssertEqual(source.intactBlocks?.count, info.blockCount)
        }
    }

    /// Block numbers count the archive's blocks, not the extract.
    func testBlocksAreCountedWithoutTheExtract() throws {
        let records = records()
        let scratch = Scratch()
        let info = try made(records, in: scratch)
        let source = try ArchiveSource.open(path: info.path)
        let blocks = try XCTUnwrap(source.intactBlocks)
        var limits = RowLimits()
        limits.level = 17
        source.restrict(limits)
        source.begin(at: ArchiveStart(block: 3))
        let before = Int(blocks[..<3].reduce(0) { $0 + $1.recordCount })
        XCTAssertEqual(
            drain(source).records.filter { $0.level >= 17 },
            severe(Array(records[before...])))
    }

    func testDamageOnOneSideLosesNothingOfTheOther() throws {
        try full()
        let records = records()
        let scratch = Scratch()
        let info = try made(records, in: scratch)
        let whole = readAll("\(info.path)")
        let footer = try self.footer("\(info.path)")
        let start = Int(try XCTUnwrap(footer.extract).offset)
        let path = scratch.path + "/damaged"
        for at in start..<(whole.count - Int(footer.span)) {
            var bytes = whole
            bytes[at] ^= 0x10
            writeAll(bytes, path)
            let found = try read(path, level: 17)
            XCTAssertEqual(found.records, severe(records), "byte \(at - start)")
            XCTAssertTrue(found.problems.isEmpty, "\(found.problems)")
            XCTAssertFalse(
                try ArchiveVerifier.verify(path: FilePath(path)).isWhole, "byte \(at - start)")
        }
        var bytes = whole
        for offset in blockOffsets("\(info.path)") { bytes[offset + 200] ^= 1 }
        writeAll(bytes, path)
        XCTAssertEqual(try read(path, level: 17).records, severe(records))
        XCTAssertTrue(try read(path, level: 9).records.isEmpty)
        // Without a footer, the reader finds blocks by their headers and skips the extract.
        writeAll(whole[..<(whole.count - 8)], path)
        let walked = try read(path, level: 17)
        XCTAssertEqual(walked.records, severe(records))
        XCTAssertEqual(walked.problems.count, 1)
        bytes = whole
        bytes[blockOffsets("\(info.path)").last! + 9] ^= 1
        writeAll(bytes[..<(whole.count - 8)], path)
        let salvaged = try read(path, level: 1)
        XCTAssertEqual(Set(salvaged.records.map(\.sequence)).count, salvaged.records.count)
    }

    /// A footer with other side frames.
    private func footer(_ old: [UInt8], sides: [[UInt8]]) -> [UInt8] {
        let start = SkippableFrame.headerBytes
        let count = Int(littleAt(old, start + ArchiveFooter.sideCount) & 0xFFFF_FFFF)
        let kept = old.count - ArchiveFooter.trailerBytes - count * SideFrame.bytes
        var made = Array(old[..<kept]) + sides.joined()
        let bytes = made.count + ArchiveFooter.trailerBytes
        made.replaceSubrange(4..<8, with: little(UInt32(bytes - start)))
        let at = start + ArchiveFooter.sideCount
        made.replaceSubrange(at..<at + 4, with: little(UInt32(sides.count)))
        made += little(UInt32(bytes))
        made += little(made.withUnsafeBytes { checksum($0, from: start) })
        return made + old[(old.count - 8)...]
    }

    private func side(_ frame: [UInt8], _ kind: UInt32, at offset: Int) -> [UInt8] {
        little(kind) + little(frame.withUnsafeBytes { checksum($0, from: 0) })
            + little(UInt64(offset)) + little(UInt64(frame.count))
    }

    /// Readers skip a side frame of a kind that they do not know; verifying compares its checksum.
    func testSideFramesOfOtherKinds() throws {
        let records = records()
        let scratch = Scratch()
        let info = try made(records, in: scratch)
        let whole = readAll("\(info.path)")
        let known = try self.footer("\(info.path)")
        let extract = try XCTUnwrap(known.extract)
        let end = whole.count - Int(known.span)
        let content = [UInt8]("of another kind".utf8)
        let other = little(SkippableFrame.magicValue) + little(UInt32(content.count)) + content
        let sides = [
            side(Array(whole[Int(extract.offset)..<end]), extract.kind, at: Int(extract.offset)),
            side(other, 77, at: end),
        ]
        let path = scratch.path + "/other"
        for (damaged, isWhole) in [(false, true), (true, false)] {
            var bytes = whole[..<end] + other
            if damaged { bytes[end + SkippableFrame.headerBytes] ^= 1 }
            writeAll(bytes + footer(Array(whole[end...]), sides: sides), path)
            let found = try read(path, level: 17)
            XCTAssertEqual(found.records, severe(records))
            XCTAssertEqual(found.problems.count, 0)
            XCTAssertEqual(try read(path, level: 1).records.count, records.count)
            let verified = try ArchiveVerifier.verify(path: FilePath(path))
            XCTAssertEqual(verified.isWhole, isWhole, "\(verified.problems)")
        }
        // Without a footer.
        writeAll(Array(whole[..<end] + other), path)
        XCTAssertEqual(try read(path, level: 1).records.count, records.count)
        // In a place, or of a size, that cannot be.
        for wrong in [
            side(other, 77, at: end - 1), side(other, 77, at: end + 1),
            little(UInt32(77)) + little(UInt32(0)) + little(UInt64(end)) + little(UInt64.max),
            little(UInt32(77)) + little(UInt32(0)) + little(UInt64(end)) + little(UInt64(7)),
        ] {
            let bytes = whole[..<end] + other
            writeAll(bytes + footer(Array(whole[end...]), sides: [sides[0], wrong]), path)
            XCTAssertNil(try anyFooter(path))
        }
        let many = Array(repeating: sides[0], count: ArchiveLimits.sidesMax + 1)
        writeAll(whole[..<end] + footer(Array(whole[end...]), sides: many), path)
        XCTAssertNil(try anyFooter(path))
    }

    /// Verifying reports an extract that disagrees with the blocks.
    func testVerifyingComparesTheExtract() throws {
        let scratch = Scratch()
        let others = Scratch()
        let info = try made(records(), in: scratch)
        let other = try made(records(severeEvery: 90), in: others)
        func parts(_ path: String) throws -> (blocks: [UInt8], extract: [UInt8], footer: [UInt8]) {
            let (bytes, footer) = (readAll(path), try self.footer(path))
            let end = bytes.count - Int(footer.span)
            let start = Int(try XCTUnwrap(footer.extract).offset)
            return (Array(bytes[..<start]), Array(bytes[start..<end]), Array(bytes[end...]))
        }
        let (mine, theirs) = (try parts("\(info.path)"), try parts("\(other.path)"))
        let footer = footer(
            mine.footer,
            sides: [side(theirs.extract, SideFrame.kindExtract, at: mine.blocks.count)])
        let path = scratch.path + "/other"
        writeAll(mine.blocks + theirs.extract + footer, path)
        let found = try ArchiveVerifier.verify(path: FilePath(path))
        XCTAssertEqual(found.problemCount, 1, "\(found.problems)")
        XCTAssertTrue(found.problems.first?.contains("records of the extract") == true)
    }

    func testWhatHasNoExtract() throws {
        let usual = records()
        var old = usual
        old.swapAt(2_000, 2_001)
        let cases: [(String, [Staged])] = [
            ("none is severe", usual.filter { $0.model.level < 17 }),
            ("many are severe", records(severeEvery: 50)),
            ("one is older than the one before it", old),
            ("few blocks", Array(usual.prefix(600))),
        ]
        for (what, records) in cases {
            let scratch = Scratch()
            let info = try made(records, in: scratch)
            XCTAssertEqual(try footer("\(info.path)").sides, [], what)
            XCTAssertEqual(try read("\(info.path)", level: 17).records, severe(records), what)
        }
        let scratch = Scratch()
        var covers = [coverForTests]
        covers.append(
            ArchiveCover(
                laneID: LaneID(high: 1, low: 3), first: 0, last: 0,
                laneName: "20261121T081530Z-813-9f3c5a0de1b27789"))
        let info = try ArchiveWriter.write(
            source: FakeSource(usual), covers: covers, archivesDirectory: FilePath(scratch.path),
            codec: .zstd, level: 1, now: 42,
            effort: .dense, blockBytes: 16_000)
        XCTAssertEqual(try footer("\(info.path)").sides, [], "two covers")
    }
}
