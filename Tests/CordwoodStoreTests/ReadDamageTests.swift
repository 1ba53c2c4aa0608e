// Thousands of damaged stores: whatever their bytes, the reader ends, never traps, and never reads
// outside its buffers. A failure is a crash; the seed names the case.

import CordwoodCore
import CordwoodStore
import CordwoodTestSupport
import Glibc
import XCTest

final class ReadDamageTests: XCTestCase {
    private func sample(_ store: String) -> LaneBuilder {
        let lane = LaneBuilder(store: store, boot: 3)
        lane.logger(1, "net.http")
        lane.site(2, line: 5, file: "f.c", function: "g", format: "x %d")
        lane.resource("service.name", "s")
        lane.drops = [(5, 1, 10, 20)]
        lane.first.state = 3
        let segments = [lane.first, lane.segment(1), lane.segment(2)]
        segments[1].state = 3
        segments[2].pairs = [(0, 0, 1_000), (500, 490, 1_500), (9_000, 9_010, 20_000)]
        for (index, segment) in segments.enumerated() {
            for thread in UInt32(1)...3 {
                let chunk = segment.chunk(
                    thread: thread, sequence: UInt32(index), base: UInt64(index) * 1_000)
                let at = UInt64(index) * 1_000 + UInt64(thread)
                chunk.record(5, level: 0, fieldBytes([("c", .string("context"))]))
                chunk.record(6, level: 0, [UInt8](1...25))
                chunk.text("plain", at: at, logger: 1)
                chunk.newBase(at + 3)
                let exception: [UInt8] = [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 65, 66, 67]
                chunk.record(
                    2, at: at + 5, id: 1,
                    section(1, Array("rich".utf8))
                        + section(2, fieldBytes([("k", .double(2.5)), ("s", .string("v"))]))
                        + section(3, [2, 0, 0, 0])
                        + section(4, [7, 0, 0, 0, 2, 0, 1, 0, 97, 98, 99])
                        + section(7, exception) + section(8, [2]))
                chunk.record(7, at: at + 6, level: 0, [UInt8](repeating: 1, count: 40))
                chunk.isSettled = index < 2
            }
        }
        lane.write()
        return lane
    }

    private func read(_ lane: LaneBuilder, boot: UInt64) {
        let boot = LaneID(high: boot, low: boot)
        guard let source = try? lane.source(boot: boot) else { return }
        _ = Drained(source, limit: 200_000)
        try? source.refresh()
        _ = Drained(source, limit: 200_000)
    }

    private func mutate(_ bytes: [UInt8], _ alive: [Int], _ random: inout SplitMix) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<Int.random(in: 1...6, using: &random) {
            guard let spot = alive.randomElement(using: &random) else { break }
            let at = min(spot + Int.random(in: 0...3, using: &random), bytes.count - 1)
            switch Int.random(in: 0..<5, using: &random) {
            case 0: bytes[at] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            case 1: bytes[at] = 0xFF
            case 2: bytes[at] = UInt8.random(in: 0...255, using: &random)
            case 3:
                for index in at..<min(at + 8, bytes.count) { bytes[index] = 0xFF }
            default:
                for index in at..<min(at + 4, bytes.count) { bytes[index] = 0 }
            }
        }
        if Int.random(in: 0..<8, using: &random) == 0 {
            bytes.removeLast(Int.random(in: 0...bytes.count, using: &random))
        }
        return bytes
    }

    func testMutatedFilesNeverTrapOrLoop() {
        let store = TestFiles.directory()
        defer { TestFiles.remove(store) }
        let lane = sample(store)
        let files = [lane.lanePath] + lane.segments.map { lane.path($0) }
        let whole = [lane.laneBytes()] + lane.segments.map { $0.bytes() }
        // Most of a file is zero: aim at the other bytes and their neighbours.
        let alive = whole.map { bytes in bytes.indices.filter { bytes[$0] != 0 } }
        for seed in SplitMix.seeds(4_000) {
            var random = SplitMix(seed)
            let index = Int(seed) % files.count
            TestFiles.write(mutate(whole[index], alive[index], &random), to: files[index])
            read(lane, boot: seed % 2 == 0 ? 3 : 4)
            TestFiles.write(whole[index], to: files[index])
        }
    }

    func testMutatedRecordsNeverTrapOrLoop() {
        let store = TestFiles.directory()
        defer { TestFiles.remove(store) }
        let lane = sample(store)
        let segment = lane.segments[1]
        let whole = segment.bytes()
        let from = segment.offset(of: 0) + 128
        for seed in SplitMix.seeds(6_000) {
            var random = SplitMix(seed ^ 0xBEEF)
            var bytes = whole
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                bytes[from + Int.random(in: 0..<500, using: &random)] = UInt8.random(
                    in: 0...255, using: &random)
            }
            TestFiles.write(bytes, to: lane.path(segment))
            guard
                let source = try? SegmentFileSource.open(
                    path: FilePath(lane.path(segment)), runningBoot: lane.bootID)
            else { continue }
            _ = Drained(source, limit: 200_000)
        }
    }

    func testMutatedJournalNeverTraps() {
        let store = TestFiles.directory()
        defer { TestFiles.remove(store) }
        let lane = sample(store)
        let path = "\(store)/lanes/\(lane.name).journal"
        let segment = lane.segments[1].bytes()
        let at = lane.segments[1].offset(of: 0)
        for seed in SplitMix.seeds(2_000) {
            var random = SplitMix(seed)
            var w = ByteWriter()
            w.text("CWJRNL01")
            w.u32(1)
            w.pad(to: 32)
            w.u64(5)
            w.pad(to: 64)
            for _ in 0..<3 {
                // Checksums are right, contents are not.
                let start = w.bytes.count
                let count = Int.random(in: 0...300, using: &random)
                w.u64(5)
                w.u32(UInt32(112 + count))
                w.u32(0)
                w.u32(UInt32.random(in: 0...5, using: &random))
                w.u32(0)
                w.u64(UInt64.random(in: 0...4, using: &random))
                w.u64(UInt64(at + Int.random(in: 0...1, using: &random) * 1_024))
                w.u32(UInt32.random(in: 0...300, using: &random))
                w.u32(Bool.random(using: &random) ? UInt32(128 + count) : .max)
                w.raw(Array(segment[at..<(at + 64)]))
                w.raw(Array(segment[(at + 128)..<(at + 128 + count)]))
                ByteWriter.put(slowCRC(w.bytes[(start + 16)...]), at: start + 12, in: &w.bytes)
                while w.bytes.count % 8 != 0 { w.u8(0) }
            }
            TestFiles.write(w.bytes, to: path)
            read(lane, boot: 4)
        }
    }

    func testEveryTruncationOfASegment() {
        let store = TestFiles.directory()
        defer { TestFiles.remove(store) }
        let lane = sample(store)
        let segment = lane.segments[0]
        let whole = segment.bytes()
        var length = 0
        while length < 8_192 {
            TestFiles.write(Array(whole[..<length]), to: lane.path(segment))
            read(lane, boot: 3)
            length += 37
        }
    }
}
