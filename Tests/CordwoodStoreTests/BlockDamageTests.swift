// Archives of several dense blocks that are damaged or cannot be written: what is read was written,
// damage is reported, and nothing is left of an archive that failed.

import CShims
import CordwoodCore
import CordwoodTestSupport
import Glibc
import XCTest

@testable import CordwoodStore

final class BlockDamageTests: XCTestCase {
    private func archive(_ records: [Staged], in scratch: Scratch) throws -> ArchiveInfo {
        try writeArchive(records, in: scratch, effort: .dense, blockBytes: 6_000)
    }

    func testFlipsNeverShowOtherRecords() throws {
        let scratch = Scratch()
        let records = Staged.texts(900)
        let info = try archive(records, in: scratch)
        let whole = readAll("\(info.path)")
        let offsets = blockOffsets("\(info.path)")
        XCTAssertGreaterThan(offsets.count, 4)
        for offset in offsets {
            XCTAssertEqual(whole[offset + 8 + BlockHeader.effort], BlockEffort.dense.rawValue)
        }
        let wanted = records.map(\.model)
        let path = scratch.path + "/damaged"
        for seed in SplitMix.seeds(10_000, core: 200) {
            var random = SplitMix(seed)
            var bytes = whole
            let at = random.below(bytes.count)
            bytes[at] ^= UInt8(1 << random.below(8))
            writeAll(bytes, path)
            guard let source = try? ArchiveSource.open(path: FilePath(path)) else { continue }
            let read = drain(source, limit: 20_000)
            if read.problems.isEmpty {
                XCTAssertEqual(read.records, wanted, "seed \(seed)")
                continue
            }
            // What is left is unchanged and in order.
            var next = wanted[...]
            for record in read.records {
                guard let found = next.firstIndex(of: record) else {
                    return XCTFail("seed \(seed): a record that was not written")
                }
                next = next[(found + 1)...]
            }
        }
    }

    func testDamageOfABlockIsOfThatBlockOnly() throws {
        let records = Staged.texts(3_000)
        let scratch = Scratch()
        let info = try writeArchive(
            records, in: scratch, effort: .dense, blockBytes: 64 << 10)
        let whole = readAll("\(info.path)")
        let offsets = blockOffsets("\(info.path)")
        XCTAssertGreaterThan(offsets.count, 3)
        var counts: [Int] = []
        for offset in offsets {
            XCTAssertEqual(whole[offset + 8 + BlockHeader.effort], BlockEffort.dense.rawValue)
            counts.append(Int(UInt32(littleAt(whole, offset + 36) & 0xFFFF_FFFF)))
        }
        XCTAssertEqual(counts.reduce(0, +), records.count)
        XCTAssertEqual(drain(try ArchiveSource.open(path: info.path)).records, records.map(\.model))
        let path = scratch.path + "/damaged"
        for index in offsets.indices {
            let before = counts[..<index].reduce(0, +)
            var kept = records.map(\.model)
            kept.removeSubrange(before..<before + counts[index])
            for place in [20, 50, 136, 145, 160, 170, 400, 2_000] {
                var bytes = whole
                bytes[offsets[index] + place] ^= 0x10
                writeAll(bytes, path)
                let read = drain(try ArchiveSource.open(path: FilePath(path)))
                XCTAssertEqual(read.problems.count, 1, "block \(index) byte \(place)")
                XCTAssertTrue(read.records == kept, "block \(index) byte \(place)")
            }
        }
    }

    func testAFullDiskLeavesNothing() throws {
        let scratch = Scratch()
        let records = Staged.texts(9_000)
        signal(SIGXFSZ, SIG_IGN)
        var old = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &old)
        for limit: rlim_t in [0, 100, 4_096, 9_000] {
            var low = rlimit(rlim_cur: limit, rlim_max: old.rlim_max)
            setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &low)
            let failed = Result { try archive(records, in: scratch) }
            setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &old)
            XCTAssertThrowsError(try failed.get(), "\(limit)") {
                guard case ArchiveError.system("write", _, EFBIG) = $0 else {
                    return XCTFail("\($0)")
                }
            }
            XCTAssertEqual(scratch.names, [])
        }
        let info = try archive(records, in: scratch)
        XCTAssertEqual(try ArchiveInfo.peek(path: info.path).recordCount, 9_000)
    }
}
