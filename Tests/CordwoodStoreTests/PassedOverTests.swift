// Readers pass over only records that they would leave out: generated archives read with options,
// against a read of everything. Counting by columns, against counting records.

import CordwoodTestSupport
import XCTest

@testable import CordwoodCore
@testable import CordwoodStore

final class PassedOverTests: XCTestCase {
    /// Every second seed has texts that resemble one another: its blocks are dense.
    private func records(_ seed: UInt64, _ count: Int, processes: Int) -> [Staged] {
        var maker = RecordMaker(seed: seed, processes: processes, threadsEach: 3)
        var records = maker.records(count)
        // A minute apart.
        for index in records.indices where seed % 5 == 1 {
            let more = UInt64(index) &* 60_000_000_000
            let isOwn = records[index].model.time != records[index].model.written
            records[index].model.monotonic &+= more
            records[index].model.written &+= more
            if !isOwn { records[index].model.time = records[index].model.written }
        }
        if seed % 2 == 0 { return records }
        for (index, like) in Staged.texts(count).enumerated() {
            records[index].model.message = like.model.message
            records[index].model.originalLength = like.model.originalLength
        }
        return records
    }

    private func archive(_ seed: UInt64, _ scratch: Scratch) throws -> ArchiveInfo {
        var random = SplitMix(seed)
        return try ArchiveWriter.write(
            source: FakeSource(records(seed, 600, processes: seed % 3 == 0 ? 2 : 1)),
            covers: [
                ArchiveCover(laneID: LaneID(high: 1, low: 2), first: 0, last: 3, laneName: "lane")
            ],
            archivesDirectory: FilePath(scratch.path), codec: Codec.allCases[random.below(3)],
            level: 1,
            now: 5, effort: seed % 2 == 0 ? .swift : .dense,
            blockBytes: 2_000 + random.below(20_000))
    }

    private func options(_ info: ArchiveInfo, _ random: inout SplitMix) -> ReaderOptions {
        var options = ReaderOptions()
        let start: UInt64 = 1_700_000_000_000_000_000
        if random.chance(2) { options.level = UInt8(random.below(25)) }
        if random.chance(3) { options.kinds = UInt32(1 + random.below(31)) }
        if random.chance(3) {
            options.logger = ["app", "app.part3", "app.part1", "none"][random.below(4)]
        }
        let span = random.chance(2) ? 1_500_000 : 18_000_000_000_000
        if random.chance(4) { options.since = start + UInt64(random.below(span)) }
        if random.chance(4) { options.until = start + UInt64(random.below(2 * span)) }
        if random.chance(3) { options.containing = Array("took \(random.below(99))".utf8) }
        return options
    }

    func testReadersSeeWhatAFilterOfAllRecordsLeaves() throws {
        var (passed, seen, dense) = (0, 0, 0)
        for seed in SplitMix.seeds(40) {
            let scratch = Scratch()
            let info = try archive(seed, scratch)
            let bytes = readAll("\(info.path)")
            dense += blockOffsets("\(info.path)").count {
                bytes[$0 + 8 + BlockHeader.effort] == BlockEffort.dense.rawValue
            }
            var random = SplitMix(seed)
            let all = try read("\(info.path)", ReaderOptions()).records
            XCTAssertEqual(all.count, 600)
            for _ in 0..<40 {
                let options = options(info, &random)
                let (given, made) = try read("\(info.path)", options)
                XCTAssertEqual(
                    given, all.filter { Self.isWanted($0, options) }, "seed \(seed) \(options)")
                seen += given.count
                passed += 600 - Int(made)
            }
        }
        XCTAssertGreaterThan(seen, 1_000)
        XCTAssertGreaterThan(passed, 50_000, "rows are passed over")
        XCTAssertGreaterThan(dense, 10, "blocks are dense")
    }

    func testCountingByColumnsCountsRecords() throws {
        var most = 0
        for seed in SplitMix.seeds(40) {
            let scratch = Scratch()
            let info = try archive(seed, scratch)
            var random = SplitMix(seed)
            for round in 0..<10 {
                let options = round == 0 ? ReaderOptions() : options(info, &random)
                let stats = try StoreInspector.stats(path: "\(info.path)", options: options)
                let records = try read("\(info.path)", options).records
                var byLevel = [UInt64](repeating: 0, count: 25)
                var hours: [UInt64: UInt64] = [:]
                var (loggers, processes): ([String: UInt64], [String: UInt64]) = ([:], [:])
                for record in records {
                    byLevel[Int(record.level)] += 1
                    hours[record.time - record.time % RecordTally.hourNs, default: 0] += 1
                    loggers[record.logger, default: 0] += 1
                    processes[record.process, default: 0] += 1
                }
                func counts<Key>(_ found: RecordCounts<Key>) -> [Key: UInt64] {
                    Dictionary(uniqueKeysWithValues: found.records.map { ($0.key, $0.count) })
                }
                XCTAssertEqual(counts(stats.hours), hours, "seed \(seed)")
                XCTAssertEqual(counts(stats.loggers), loggers, "seed \(seed)")
                XCTAssertEqual(
                    counts(stats.processes.by(\.name)), processes, "seed \(seed)")
                most = max(most, hours.count)
                XCTAssertEqual(stats.records, UInt64(records.count), "seed \(seed)")
                XCTAssertEqual(stats.recordsByLevel, byLevel, "seed \(seed)")
                XCTAssertEqual(stats.timeMin, records.map(\.time).min() ?? 0, "seed \(seed)")
                XCTAssertEqual(stats.timeMax, records.map(\.time).max() ?? 0, "seed \(seed)")
                XCTAssertEqual(stats.problems, [])
            }
        }
        XCTAssertGreaterThan(most, 5, "records are of several hours")
    }

    /// The part of a frame after the levels is not inflated, but its bytes are compared.
    func testCountingReportsEveryDamagedByte() throws {
        let scratch = Scratch()
        var maker = RecordMaker(seed: 4, processes: 1)
        let info = try ArchiveWriter.write(
            source: FakeSource(maker.records(2_000)),
            covers: [
                ArchiveCover(laneID: LaneID(high: 1, low: 2), first: 0, last: 0, laneName: "lane")
            ],
            archivesDirectory: FilePath(scratch.path), codec: .zstd, level: 1, now: 5,
            blockBytes: 1 << 20)
        XCTAssertEqual(info.blockCount, 1)
        let bytes = readAll("\(info.path)")
        for place in stride(from: 200, to: bytes.count - 200, by: bytes.count / 40) {
            var damaged = bytes
            damaged[place] ^= 4
            writeAll(damaged, "\(info.path)")
            let stats = try StoreInspector.stats(path: "\(info.path)")
            XCTAssertEqual(stats.problems.count, 1, "\(place)")
            XCTAssertEqual(stats.records, 0, "\(place)")
        }
    }

    /// Rows are passed over from where the reader is, not from the block's beginning.
    func testPassingOverBeginsAmongTheRows() throws {
        let scratch = Scratch()
        let file = try ArchiveFile(path: try archive(1, scratch).path)
        let index = try ArchiveIndex.load(file, salvage: false)
        var loader = BlockLoader()
        _ = try loader.load(index.blocks[0], of: file)
        var limits = RowLimits()
        limits.level = 13
        var seen: [[UInt64]] = []
        var made: [Int] = []
        for isPassing in [false, true] {
            var rows = BlockRecords(loader.view)
            let test = RowTest(limits, nil, nil, rows)
            var record = RecordRef()
            for _ in 0..<rows.left / 3 { XCTAssertEqual(rows.next(into: &record), .record) }
            var (times, count): ([UInt64], Int) = ([], 0)
            while true {
                if isPassing { _ = rows.pass(test) }
                guard rows.next(into: &record) == .record else { break }
                count += 1
                if record.level >= 13 { times.append(record.writtenNs) }
            }
            XCTAssertEqual(rows.left, 0)
            seen.append(times)
            made.append(count)
        }
        XCTAssertEqual(seen[0], seen[1])
        XCTAssertGreaterThan(seen[0].count, 3)
        XCTAssertLessThan(made[1], made[0] * 3 / 4)
    }

    /// Records and damage come in the same order, with and without a second thread.
    func testLoadingAheadChangesNothing() throws {
        try full()
        for seed in SplitMix.seeds(40) {
            var random = SplitMix(seed)
            let scratch = Scratch()
            let info = try ArchiveWriter.write(
                source: FakeSource(records(seed, 3_000, processes: 1)),
                covers: [
                    ArchiveCover(
                        laneID: LaneID(high: 1, low: 2), first: 0, last: 0, laneName: "lane")
                ],
                archivesDirectory: FilePath(scratch.path), codec: Codec.allCases[random.below(3)],
                level: 1,
                now: 5, effort: seed % 2 == 0 ? .swift : .dense, blockBytes: 4_000)
            XCTAssertGreaterThan(info.blockCount, 20)
            var bytes = readAll("\(info.path)")
            for _ in 0..<random.below(4) {
                bytes[500 + random.below(bytes.count * 3 / 4)] ^= UInt8(1 + random.below(255))
            }
            writeAll(bytes, "\(info.path)")
            for round in 0..<6 {
                var options = round == 0 ? ReaderOptions() : options(info, &random)
                let alone = try events("\(info.path)", options)
                options.readsAhead = true
                XCTAssertEqual(try events("\(info.path)", options), alone, "seed \(seed)")
                // Ends while blocks are being loaded.
                let reader = try StoreReader(path: "\(info.path)", options: options)
                _ = reader.nextRecord()
            }
        }
    }

    /// What a reader returns: times and texts of records, and damage between them.
    private func events(_ path: String, _ options: ReaderOptions) throws -> [String] {
        let reader = try StoreReader(path: path, options: options)
        var found: [String] = []
        while true {
            do throws(ReadProblem) {
                guard let record = try reader.advance() else { return found }
                found.append("\(record.timeNs) \(Bytes.string(record.message))")
            } catch {
                found.append("\(error)")
            }
        }
    }

    private struct Seen: Equatable {
        var time: UInt64
        var level: UInt8
        var kind: UInt8
        var sequence: UInt64
        var logger: String
        var process: String
        var message: [UInt8]
    }

    private func read(
        _ path: String, _ options: ReaderOptions
    ) throws -> (records: [Seen], made: UInt64) {
        let reader = try StoreReader(path: path, options: options)
        var found: [Seen] = []
        while let record = reader.nextRecord() {
            found.append(
                Seen(
                    time: record.time, level: record.level, kind: record.kind,
                    sequence: record.sequence, logger: record.logger, process: record.processName,
                    message: record.messageBytes))
        }
        XCTAssertEqual(reader.problemCount, 0)
        return (found, reader.given)
    }

    private static func isWanted(_ record: Seen, _ options: ReaderOptions) -> Bool {
        let logger = options.logger
        return record.level >= options.level
            && (options.kinds == 0 || options.kinds & 1 << UInt32(record.kind) != 0)
            && (logger.isEmpty || record.logger == logger || record.logger.hasPrefix(logger + "."))
            && (options.since == 0 || record.time >= options.since)
            && (options.until == 0 || record.time < options.until)
            && (options.containing.isEmpty
                || record.message.indices.contains {
                    record.message[$0...].starts(with: options.containing)
                })
    }
}
