// Many archives at once: a reader without room for their blocks holds pieces of them, and one that
// needs no order reads one after another. Both return what a reader with enough room returns,
// damage included.

import CordwoodTestSupport
import XCTest

@testable import CordwoodCore
@testable import CordwoodStore

final class BlockPiecesTests: XCTestCase {
    private func archive(
        _ seed: UInt64, _ scratch: Scratch, records: Int = 900, damage: Int = 0
    ) throws -> ArchiveInfo {
        var random = SplitMix(seed)
        var maker = RecordMaker(seed: seed, processes: seed % 3 == 0 ? 2 : 1, threadsEach: 3)
        let info = try ArchiveWriter.write(
            source: FakeSource(maker.records(records)),
            covers: [
                ArchiveCover(
                    laneID: LaneID(high: 1, low: seed), first: 0, last: 3, laneName: "lane\(seed)")
            ],
            archivesDirectory: FilePath(scratch.path), codec: Codec.allCases[random.below(3)],
            level: 1,
            now: 5, effort: seed % 2 == 0 ? .swift : .dense,
            blockBytes: 5_000 + random.below(60_000))
        guard damage > 0 else { return info }
        var bytes = readAll("\(info.path)")
        for _ in 0..<damage {
            bytes[500 + random.below(bytes.count * 3 / 4)] ^= UInt8(1 + random.below(255))
        }
        writeAll(bytes, "\(info.path)")
        return info
    }

    private func options(_ random: inout SplitMix) -> ReaderOptions {
        var options = ReaderOptions()
        if random.chance(2) { options.level = UInt8(random.below(25)) }
        if random.chance(3) { options.logger = ["app", "app.part3", "none"][random.below(3)] }
        if random.chance(3) { options.containing = Array("took \(random.below(99))".utf8) }
        options.readsAhead = random.chance(2)
        return options
    }

    /// Every record in full, and damage where it is met.
    private func events(
        _ paths: [String], _ options: ReaderOptions, room: Int? = nil
    ) throws -> [String] {
        var options = options
        let made = room.map { BlockRoom(bytesMax: $0) }
        options.room = made
        var found: [String] = []
        try {
            let reader = try StoreReader(paths: paths, options: options)
            while true {
                do throws(ReadProblem) {
                    guard let record = try reader.advance() else { return }
                    found.append("\(Record(record))")
                } catch {
                    found.append("\(error)")
                }
            }
        }()
        XCTAssertEqual(made?.held ?? 0, 0, "everything was let go of")
        return found
    }

    func testPiecesGiveWhatBlocksGive() throws {
        try full()
        var all = 0
        for seed in SplitMix.seeds(16) {
            let scratch = Scratch()
            var random = SplitMix(seed)
            let infos = try (0..<3).map {
                try archive(seed &* 7 &+ UInt64($0), scratch, damage: seed % 4 == 0 ? 2 : 0)
            }
            for round in 0..<6 {
                let options = round == 0 ? ReaderOptions() : options(&random)
                let whole = try events(infos.map(\.path.description), options)
                for room in [0, random.below(100_000)] {
                    XCTAssertEqual(
                        try events(infos.map(\.path.description), options, room: room), whole,
                        "seed \(seed), round \(round), \(room) bytes")
                }
                all += whole.count
            }
        }
        XCTAssertGreaterThan(all, 15_000)
    }

    /// A block is decoded four times at most, and the largest piece is a third of it.
    func testPiecesAreFewAndSmall() {
        for count in [1, 15, 16, 17, 100, 1_000, 65_537] {
            var pieces = BlockPieces(recordCount: count)
            var (next, decodes) = (0, 0)
            repeat {
                let rows = pieces.take(from: next)
                XCTAssertEqual(rows.lowerBound, next)
                XCTAssertFalse(rows.isEmpty)
                XCTAssertLessThanOrEqual(rows.count, max(16, count / 3 + 1))
                if decodes == 0 { XCTAssertLessThanOrEqual(rows.count, max(16, count / 32)) }
                next = rows.upperBound
                decodes += 1
            } while !pieces.isLast
            XCTAssertEqual(next, count)
            XCTAssertLessThanOrEqual(decodes, 4)
        }
    }

    /// Rows that a search steps over are not in a piece.
    func testASearchHoldsLittle() throws {
        let scratch = Scratch()
        let path = try archive(5, scratch, records: 20_000).path
        var options = ReaderOptions()
        options.containing = Array("took 1".utf8)
        let room = BlockRoom(bytesMax: 0)
        options.room = room
        let reader = try StoreReader(path: "\(path)", options: options)
        XCTAssertNotNil(reader.nextRecord())
        XCTAssertLessThan(room.held, 30_000)
        XCTAssertGreaterThan(room.held, 0)
    }

    func testWithoutOrderTheSameRecordsCome() throws {
        try full()
        for seed in SplitMix.seeds(20) {
            let scratch = Scratch()
            var random = SplitMix(seed)
            let infos = try (0..<4).map {
                try archive(seed &* 7 &+ UInt64($0), scratch, damage: seed % 2 == 0 ? 2 : 0)
            }
            for _ in 0..<4 {
                var options = options(&random)
                let ordered = try events(infos.map(\.path.description), options)
                options.isUnordered = true
                let given = try events(infos.map(\.path.description), options)
                XCTAssertEqual(given.sorted(), ordered.sorted(), "seed \(seed)")
                // Damage comes after the records, as in an ordered read.
                let isDamage = { (event: String) in event.hasPrefix("damaged(") }
                XCTAssertEqual(
                    given.suffix(ordered.count(where: isDamage)),
                    ordered.filter(isDamage)[...], "seed \(seed)")
            }
        }
    }

    /// One archive after another: what a reader holds does not grow with their number.
    func testWithoutOrderOneArchiveIsHeld() throws {
        let scratch = Scratch()
        let paths = try (1...30).map { try archive(UInt64($0), scratch, records: 200).path }
        func most(_ isUnordered: Bool) throws -> Int {
            var options = ReaderOptions()
            options.isUnordered = isUnordered
            let room = BlockRoom(bytesMax: 1 << 30)
            options.room = room
            let reader = try StoreReader(paths, options: options)
            var most = 0
            while reader.nextRecord() != nil { most = max(most, room.held) }
            return most
        }
        XCTAssertLessThan(try most(true), try most(false) / 5)
    }

    /// Also if blocks are only counted and no record comes.
    func testAReadThatIsLeftEndsBeforeTheNextBlock() throws {
        let scratch = Scratch()
        let infos = try (1...9).map { try archive(UInt64($0), scratch, records: 200) }
        func counted(asks most: Int) throws -> (records: UInt64, asked: Int, reader: StoreReader) {
            var options = ReaderOptions()
            options.isUnordered = true
            let tally = FacetTally(hasHistogram: true, hasFacets: true)
            options.count(by: tally)
            let reader = try StoreReader(infos.map(\.path), options: options)
            var asked = 0
            reader.shouldStop = {
                asked += 1
                return asked > most
            }
            XCTAssertNil(reader.nextRecord())
            return (tally.matched, asked, reader)
        }
        let whole = try counted(asks: .max)
        XCTAssertEqual(whole.records, infos.reduce(0) { $0 + $1.recordCount })
        XCTAssertFalse(whole.reader.isStopped)
        for most in [0, 1, 3] {
            let left = try counted(asks: most)
            XCTAssertEqual(left.asked, most + 1)
            XCTAssertEqual(left.records == 0, most == 0)
            XCTAssertLessThan(left.records, whole.records)
            XCTAssertTrue(left.reader.isStopped)
        }
    }
}
