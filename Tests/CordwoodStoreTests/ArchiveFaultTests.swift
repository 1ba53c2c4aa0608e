// Archives that are damaged, cut, forged or cannot be written: no trap, no endless loop, bounded
// memory, and every whole block stays readable. Seeds are printed on failure.

import CShims
import CZstd
import CordwoodCore
import CordwoodTestSupport
import Glibc
import XCTest

@testable import CordwoodStore

final class ArchiveFaultTests: XCTestCase {
    private func open(_ bytes: [UInt8], _ path: String) -> (
        records: [ModelRecord], problems: [ReadProblem]
    )? {
        writeAll(bytes, path)
        do {
            return drain(try ArchiveSource.open(path: FilePath(path)), limit: 200_000)
        } catch {
            return nil
        }
    }

    func testByteFlipsAndCutsNeverTrap() throws {
        for codec in Codec.allCases {
            var maker = RecordMaker(seed: 21)
            let scratch = Scratch()
            let records = maker.records(60)
            let info = try writeArchive(records, in: scratch, codec: codec)
            let whole = readAll("\(info.path)")
            let path = scratch.path + "/damaged"
            for seed in SplitMix.seeds(1_500, core: 60) {
                var random = SplitMix(seed ^ UInt64(codec.rawValue) << 32)
                var bytes = whole
                for _ in 0..<(1 + random.below(3)) {
                    let at = random.below(bytes.count)
                    bytes[at] ^= UInt8(1 << random.below(8))
                }
                if random.chance(4) { bytes.removeLast(random.below(bytes.count)) }
                if random.chance(8) { bytes += random.bytes(random.below(64)) }
                let read = open(bytes, path)
                if let read, bytes != whole, read.problems.isEmpty {
                    // Only reserved bytes and words that are never read may change unnoticed.
                    XCTAssertEqual(
                        read.records, records.map(\.model), "seed \(seed) \(codec)")
                }
                if bytes != whole, let checked = try? ArchiveVerifier.verify(path: FilePath(path)) {
                    XCTAssertFalse(checked.isWhole, "seed \(seed) \(codec)")
                }
                _ = try? ArchiveInfo.peek(path: FilePath(path))
            }
        }
    }

    /// Damage that no checksum shows: flips in the columns, with checksums made to match.
    func testForgedColumnsNeverTrap() throws {
        var maker = RecordMaker(seed: 22)
        let scratch = Scratch()
        let info = try writeArchive(maker.records(60), in: scratch, codec: .none)
        let whole = readAll("\(info.path)")
        let head = try XCTUnwrap(blockOffsets("\(info.path)").first)
        let first = head + BlockHeader.frameBytes
        let size = Int(littleAt(whole, head + 8 + BlockHeader.storedBytes))
        let facts = BlockFacts(recordCount: 60, size: Int(info.rawBytes), codec: .none)
        let path = scratch.path + "/forged"
        var shown = 0
        for seed in SplitMix.seeds(6_000, core: 400) {
            var random = SplitMix(seed)
            var block = BlockFile(facts, Array(whole[first..<first + size]))
            for _ in 0..<(1 + random.below(4)) {
                let at = random.below(random.chance(2) ? size : 200)
                block.bytes[at] = random.chance(3) ? 0xff : UInt8(truncatingIfNeeded: random.next())
            }
            block.repair()
            var bytes = whole
            bytes.replaceSubrange(first..<first + size, with: block.bytes)
            reseal(&bytes, block: head, stored: size)
            let read = try XCTUnwrap(open(bytes, path), "seed \(seed)")
            XCTAssertTrue(read.records.count <= 60, "seed \(seed)")
            XCTAssertTrue(read.records.count == 60 || read.problems.count > 0, "seed \(seed)")
            shown += read.problems.isEmpty ? 1 : 0
            _ = try? ArchiveVerifier.verify(path: FilePath(path))
        }
        XCTAssertGreaterThan(shown, 5, "changed records that are whole")
    }

    func testForgedHeadersNeverTrapOrAllocate() throws {
        var maker = RecordMaker(seed: 23)
        let scratch = Scratch()
        for codec in Codec.allCases {
            let info = try writeArchive(maker.records(60), in: scratch, codec: codec)
            let whole = readAll("\(info.path)")
            let head = try XCTUnwrap(blockOffsets("\(info.path)").first) + 8
            let stored = Int(littleAt(whole, head + BlockHeader.storedBytes))
            let path = scratch.path + "/forged"
            let before = peakMemory()
            for claim in [UInt64.max, 1 << 63, 1 << 40, 65 << 20, 64 << 20, 63 << 20, 0, 1] {
                for field in [BlockHeader.rawBytes, BlockHeader.storedBytes] {
                    var bytes = whole
                    bytes.replaceSubrange((head + field)..<(head + field + 8), with: little(claim))
                    resealHeader(&bytes, head)
                    XCTAssertEqual(open(bytes, path)?.records.count, 0)
                }
                var bytes = whole
                let at = head + BlockHeader.recordCount
                let count = UInt32(truncatingIfNeeded: claim)
                bytes.replaceSubrange(at..<(at + 4), with: little(count))
                resealHeader(&bytes, head)
                XCTAssertNotNil(open(bytes, path))
            }
            XCTAssertGreaterThan(stored, 0)
            XCTAssertLessThan(peakMemory() - before, 200 << 20)
        }
    }

    func testAnInflatingBombIsRefused() throws {
        // A frame of zeros that claims less than it holds, and one that claims more.
        var zeros = GrowingBytes()
        _ = zeros.claim(32 << 20)
        memset(zeros.base, 0, zeros.count)
        let room = UnsafeMutableRawPointer.allocate(byteCount: (32 << 20) + 1, alignment: 16)
        defer { room.deallocate() }
        for codec in [Codec.zstd, .lz4] {
            var frame = GrowingBytes()
            if codec == .lz4 {
                XCTAssertTrue(codec.append(zeros.bytes, level: 1, to: &frame))
            } else {
                let bound = ZSTD_compressBound(zeros.count)
                XCTAssertTrue(frame.reserve(bound))
                frame.resize(ZSTD_compress(frame.base, bound, zeros.base, zeros.count, 1))
            }
            var decompressor = BlockDecompressor()
            for raw in [0, 1, 1 << 20, (32 << 20) - 1, (32 << 20) + 1] {
                XCTAssertFalse(
                    decompressor.inflate(frame.bytes, codec: codec, raw: raw, into: room), "\(raw)")
            }
            XCTAssertTrue(
                decompressor.inflate(frame.bytes, codec: codec, raw: 32 << 20, into: room))
        }
    }

    func testEachDamagedBlockLeavesTheOthers() throws {
        try full()
        let records = RecordMaker.largeBlocks(seed: 24, count: 4, others: 60)
        for codec in Codec.allCases {
            let scratch = Scratch()
            let info = try writeArchive(records, in: scratch, codec: codec)
            let whole = readAll("\(info.path)")
            let offsets = blockOffsets("\(info.path)")
            XCTAssertEqual(offsets.count, 4)
            for footerToo in [false, true] {
                for (index, offset) in offsets.enumerated() {
                    // In the frame's header, the block's header, the payload's frame, the payload.
                    for place in [0, 3, 8, 20, 50, 136, 140, 5_000] {
                        var bytes = whole
                        bytes[offset + place] ^= 0x10
                        if footerToo { bytes[bytes.count - 1] ^= 1 }
                        let read = try XCTUnwrap(open(bytes, scratch.path + "/damaged"))
                        let kept = records.enumerated().filter { $0.offset / 61 != index }
                        let what = "\(codec) block \(index) byte \(place) footer \(footerToo)"
                        // The walk without a footer may meet the same damage twice.
                        XCTAssertTrue((1...(footerToo ? 4 : 1)).contains(read.problems.count), what)
                        XCTAssertTrue(read.records == kept.map(\.element.model), what)
                    }
                }
            }
        }
    }

    func testDamagedHeaderAndLostFooterLeaveTheBlocks() throws {
        let records = RecordMaker.largeBlocks(seed: 25, count: 2, others: 60)
        let scratch = Scratch()
        let info = try writeArchive(records, in: scratch)
        let whole = readAll("\(info.path)")
        let path = scratch.path + "/damaged"

        var bytes = whole
        bytes[40] ^= 1
        var read = try XCTUnwrap(open(bytes, path))
        XCTAssertEqual(read.records.count, records.count)
        XCTAssertEqual(read.problems.count, 1)
        XCTAssertThrowsError(try ArchiveInfo.peek(path: FilePath(path)))

        bytes[bytes.count - 20] ^= 1
        read = try XCTUnwrap(open(bytes, path))
        XCTAssertEqual(read.records.count, records.count)
        XCTAssertEqual(read.problems.count, 2)

        let second = blockOffsets("\(info.path)")[1]
        for cut in [second, second + 1, second + 140, second + 10_000] {
            read = try XCTUnwrap(open(Array(whole[0..<cut]), path))
            XCTAssertEqual(read.records.count, 61, "cut at \(cut)")
            XCTAssertEqual(try ArchiveInfo.peek(path: FilePath(path)).blockCount, 1)
        }
    }

    func testNewerFilesAndBlocksArePassedOver() throws {
        let records = RecordMaker.largeBlocks(seed: 26, count: 2, others: 60)
        let scratch = Scratch()
        let info = try writeArchive(records, in: scratch)
        let whole = readAll("\(info.path)")
        let path = scratch.path + "/newer"
        for (field, value) in [(ArchiveHeader.version, UInt8(2)), (ArchiveHeader.incompat, 4)] {
            var bytes = whole
            bytes[8 + field] = value
            let size = Int(UInt32(truncatingIfNeeded: littleAt(whole, 4)))
            var content = Array(bytes[8..<(8 + size)])
            content.replaceSubrange(60..<64, with: [0, 0, 0, 0])
            let crc = content.withUnsafeBytes { cwi_crc32c(0, $0.baseAddress, $0.count) }
            bytes.replaceSubrange(68..<72, with: little(crc))
            writeAll(bytes, path)
            for call in [
                { _ = try ArchiveSource.open(path: FilePath(path)) },
                { _ = try ArchiveInfo.peek(path: FilePath(path)) },
                { _ = try ArchiveVerifier.verify(path: FilePath(path)) },
            ] {
                XCTAssertThrowsError(try call()) {
                    guard case ReadProblem.version = $0 else { return XCTFail("\($0)") }
                }
            }
        }
        for (field, value) in [(BlockHeader.incompat, UInt8(1)), (BlockHeader.codec, 3)] {
            var bytes = whole
            let head = blockOffsets("\(info.path)")[0] + 8
            bytes[head + field] = value
            resealHeader(&bytes, head)
            for footerToo in [false, true] {
                if footerToo { bytes[bytes.count - 1] ^= 1 }
                let read = try XCTUnwrap(open(bytes, path))
                XCTAssertEqual(read.records.count, 61)
                let newer = read.problems.filter { if case .version = $0 { true } else { false } }
                XCTAssertEqual(newer.count, 1)
            }
        }
        // An effort says nothing about how a block is read.
        for (field, value) in [(BlockHeader.compat, UInt8(1)), (BlockHeader.effort, 9)] {
            var bytes = whole
            bytes[blockOffsets("\(info.path)")[0] + 8 + field] = value
            resealHeader(&bytes, blockOffsets("\(info.path)")[0] + 8)
            XCTAssertEqual(open(bytes, path)?.problems.count, 0)
            XCTAssertEqual(open(bytes, path)?.records.count, records.count)
        }
    }

    func testWhatIsNoArchiveIsSaidSo() throws {
        let scratch = Scratch()
        let path = scratch.path + "/x"
        for bytes in [[], [1], [UInt8](repeating: 0, count: 5_000), Array("CWARCH01".utf8)] {
            writeAll(bytes, path)
            XCTAssertThrowsError(try ArchiveSource.open(path: FilePath(path))) {
                guard case ReadProblem.damaged = $0 else { return XCTFail("\($0)") }
            }
        }
        XCTAssertThrowsError(try ArchiveSource.open(path: FilePath(scratch.path + "/none"))) {
            guard case ReadProblem.system(_, ENOENT) = $0 else { return XCTFail("\($0)") }
        }
        XCTAssertThrowsError(try ArchiveSource.open(path: FilePath(scratch.path)))
        symlink(path, scratch.path + "/link")
        XCTAssertThrowsError(try ArchiveSource.open(path: FilePath(scratch.path + "/link")))
    }

    func testAFileOfBlockStartsIsWalkedInLinearTime() throws {
        let scratch = Scratch()
        let start =
            little(SkippableFrame.magicValue) + little(UInt32(128)) + little(BlockHeader.magicValue)
        var bytes: [UInt8] = []
        for _ in 0..<(4 << 20) / 16 { bytes += start }
        XCTAssertNil(open(bytes, scratch.path + "/x"))
    }

    func testDamageOfTheSourceIsCollected() throws {
        var maker = RecordMaker(seed: 27)
        let records = maker.records(100)
        let scratch = Scratch()
        let info = try writeArchive(
            records, in: scratch,
            problems: [0: .damaged("a"), 50: .damaged("b"), 100: .damaged("c")])
        XCTAssertEqual(info.damage, ["a", "b", "c"])
        XCTAssertEqual(info.damageCount, 3)
        XCTAssertEqual(info.recordCount, 100)
        for problem in [ReadProblem.version("newer"), .system("read", errno: EIO)] {
            let other = Scratch()
            XCTAssertThrowsError(try writeArchive(records, in: other, problems: [70: problem])) {
                guard case ArchiveError.source = $0 else { return XCTFail("\($0)") }
            }
            XCTAssertEqual(other.names, [])
        }
    }

    func testWriteFailuresLeaveNothing() throws {
        var maker = RecordMaker(seed: 28)
        let records = maker.records(5_000)
        XCTAssertThrowsError(
            try ArchiveWriter.write(
                source: FakeSource(records), covers: [coverForTests],
                archivesDirectory: "/nonexistent/archives", codec: .zstd, level: 1, now: 0)
        ) {
            guard case ArchiveError.system(_, "/nonexistent/archives", ENOENT) = $0 else {
                return XCTFail("\($0)")
            }
        }
        let scratch = Scratch()
        signal(SIGXFSZ, SIG_IGN)
        var old = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &old)
        for limit: rlim_t in [0, 1, 100, 4_096, 50_000] {
            var low = rlimit(rlim_cur: limit, rlim_max: old.rlim_max)
            setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &low)
            let failed = Result { try writeArchive(records, in: scratch) }
            setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &old)
            XCTAssertThrowsError(try failed.get(), "\(limit)") {
                guard case ArchiveError.system("write", _, EFBIG) = $0 else {
                    return XCTFail("\($0)")
                }
            }
            XCTAssertEqual(scratch.names, [])
        }
        // The rename cannot replace a directory of that name.
        mkdir(scratch.path + "/" + nameForTests, 0o700)
        XCTAssertThrowsError(try writeArchive(records, in: scratch))
        XCTAssertEqual(scratch.names, [nameForTests])
    }

    func testAnOldPartIsReplacedAndLinksAreNotFollowed() throws {
        let scratch = Scratch()
        let part = scratch.path + "/" + ArchiveIdentity.rangeName(of: [coverForTests]) + ".part"
        writeAll([1, 2, 3], scratch.path + "/victim")
        symlink(scratch.path + "/victim", part)
        let info = try writeArchive([], in: scratch)
        XCTAssertEqual(readAll(scratch.path + "/victim"), [1, 2, 3])
        var status = stat()
        stat("\(info.path)", &status)
        XCTAssertEqual(status.st_mode & 0o777, 0o600)
        XCTAssertEqual(scratch.names.count, 2)
        var maker = RecordMaker(seed: 29)
        XCTAssertEqual(try writeArchive(maker.records(5), in: scratch).recordCount, 5)
        XCTAssertEqual(try ArchiveInfo.peek(path: info.path).recordCount, 5)
    }

    // ── Helpers ──

    /// Makes the checksums of a block's header match again.
    private func reseal(_ bytes: inout [UInt8], block: Int, stored: Int) {
        let frame = block + BlockHeader.frameBytes
        let sum = bytes.withUnsafeBytes {
            checksum(UnsafeRawBufferPointer(rebasing: $0[frame..<(frame + stored)]), from: 0)
        }
        let at = block + 8 + BlockHeader.storedCRC
        bytes.replaceSubrange(at..<(at + 4), with: little(sum))
        resealHeader(&bytes, block + 8)
    }
}
