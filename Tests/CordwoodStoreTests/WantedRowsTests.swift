// Few rows of blocks: a reader gets what a filter of the whole block leaves, and the rows that
// decide the order of others. Columns that it does not need are not inflated. Against the whole
// block, by seed.

import CordwoodCore
import CordwoodTestSupport
import XCTest

@testable import CordwoodStore

/// A record, and what the model lacks.
private struct Row: Equatable {
    var model: ModelRecord
    var format: [UInt8]
    var arguments: [UInt8]
    var hasSections: Bool

    init(_ record: borrowing RecordRef) {
        model = ModelRecord(copy record)
        format = Array(record.format)
        arguments = Array(record.arguments)
        hasSections = record.sections.count > 0
    }
}

/// A stored block, and what was read of it last.
private struct StoredRows: ~Copyable {
    var file: BlockFile
    var decoder = BlockDecoder()
    var buffer = RowBuffer()

    init(_ records: [Staged], _ seed: UInt64) throws {
        var block = Block(records)
        try self.init(&block, seed)
        XCTAssertEqual(try file.records(), records.map(\.model))
    }

    init(_ block: inout Block, _ seed: UInt64) throws {
        file = try BlockFile(&block, BlockEffort.allCases[Int(seed / 4 % 3)])
    }

    mutating func load(
        _ rows: WantedRows?, _ parts: BlockParts = .all
    ) throws(BlockProblem) -> LoadedRows {
        try file.load(&decoder, parts, rows: rows, into: &buffer)
    }

    func all() throws -> [Row] {
        var decoder = BlockDecoder()
        var found: [Row] = []
        try file.each(&decoder, hasTexts: false) { found.append(Row($0)) }
        return found
    }

    func rows() throws -> [Row] {
        var records = BlockRecords(buffer.view())
        var record = RecordRef()
        var found: [Row] = []
        while true {
            switch records.next(into: &record) {
            case .end: return found
            case .damaged: throw BlockProblem.damaged
            case .record:
                if record.isDeferred { record.message = record.arguments }
                found.append(Row(record))
            }
        }
    }
}

final class WantedRowsTests: XCTestCase {
    /// Whether the columns of a row match.
    private func isWanted(_ row: Row, _ rows: WantedRows) -> Bool {
        let record = row.model
        return record.level >= rows.level && rows.kinds & (1 << UInt32(record.kind)) != 0
            && rows.isLogger.map { isOf in record.logger.withUnsafeBytes { isOf($0) } } ?? true
            && (row.hasSections
                || (rows.since == 0 || record.written >= rows.since)
                    && (rows.until == 0 || record.written < rows.until))
    }

    private func expected(_ all: [Row], _ rows: WantedRows) -> (rows: [Row], wanted: Int) {
        var found: [Row] = []
        var wanted = 0
        for (index, row) in all.enumerated() {
            let isWanted = isWanted(row, rows)
            wanted += isWanted ? 1 : 0
            let next = index + 1 < all.count ? all[index + 1].model.monotonic : 0
            if isWanted || next < row.model.monotonic || index + 1 == all.count {
                found.append(row)
            }
        }
        return (found, wanted)
    }

    private func block(_ seed: UInt64) throws -> StoredRows {
        switch seed % 4 {
        case 0, 1:
            var maker = RecordMaker(seed: seed, processes: 1)
            return try StoredRows(maker.records(1 + 20 * Int(seed)), seed)
        case 2:
            var made = DeferredBlock(seed: seed, count: 1 + 120 * Int(seed))
            let stored = try StoredRows(&made.block, seed)
            XCTAssertEqual(
                try stored.all().map(\.arguments), made.records.map(\.arguments))
            return stored
        default: return try StoredRows(Staged.texts(1 + 120 * Int(seed)), seed)
        }
    }

    private func question(_ all: [Row], _ random: inout SplitMix) -> WantedRows {
        var rows = WantedRows(level: 0, kinds: .max, since: 0, until: 0, isLogger: nil)
        if random.chance(2) { rows.level = UInt8(random.below(26)) }
        if random.chance(4) { rows.kinds = UInt32(random.below(32)) }
        if random.chance(3) {
            rows.since = all[random.below(all.count)].model.written
            rows.until = rows.since + UInt64(random.below(50_000))
        }
        if random.chance(4) {
            let name = all[random.below(all.count)].model.logger
            rows.isLogger = { $0.elementsEqual(name) }
        }
        return rows
    }

    func testFewRowsAreThoseOfTheWhole() throws {
        var (few, none, shown) = (0, 0, 0)
        for seed in SplitMix.seeds(60) {
            var stored = try block(seed)
            let all = try stored.all()
            var random = SplitMix(seed)
            for _ in 0..<30 {
                let asked = question(all, &random)
                let (expected, wanted) = expected(all, asked)
                let loaded = try stored.load(asked)
                let view = stored.buffer.view()
                if loaded.isWithout {
                    XCTAssertEqual(wanted, 0, "seed \(seed)")
                    XCTAssertEqual(expected.count, 1, "seed \(seed)")
                    XCTAssertEqual(
                        (0..<view.count).map { view.time[$0] }, all.map(\.model.monotonic))
                    XCTAssertEqual(view.lastInOrder(), all.last?.model.monotonic)
                    none += 1
                    continue
                }
                let found = try stored.rows()
                if found.count == all.count {
                    XCTAssertEqual(found, all, "seed \(seed)")
                    XCTAssertGreaterThan(2 * expected.count + 1, all.count, "seed \(seed)")
                    continue
                }
                XCTAssertEqual(found, expected, "seed \(seed)")
                XCTAssertEqual(loaded.firstTime, all.first?.model.monotonic)
                few += 1
                shown += found.count
            }
        }
        XCTAssertGreaterThan(few, 100)
        XCTAssertGreaterThan(none, 10)
        XCTAssertGreaterThan(shown, 1_000)
    }

    /// All rows from a time on, if they are few.
    func testRowsFromATimeOnAreTheEndOfTheWhole() throws {
        var few = 0
        for seed in SplitMix.seeds(40) {
            var stored = try block(seed)
            let all = try stored.all()
            for start in all.map(\.model.monotonic).suffix(9) {
                let loaded = try stored.load(WantedRows(start: start))
                let found = try stored.rows()
                let first = all.firstIndex { $0.model.monotonic >= start } ?? all.count
                if found.count == all.count { continue }
                XCTAssertEqual(found, Array(all[first...]), "seed \(seed)")
                XCTAssertEqual(loaded.firstTime, all.first?.model.monotonic)
                few += 1
            }
        }
        XCTAssertGreaterThan(few, 50)
    }

    /// Rows of several processes are not ordered by their times alone.
    func testBlocksOfSeveralProcessesAreWhole() throws {
        var maker = RecordMaker(seed: 3, processes: 2)
        var stored = try StoredRows(maker.records(300), 3)
        let all = try stored.all()
        let rows = WantedRows(level: 24, kinds: .max, since: 0, until: 0, isLogger: nil)
        XCTAssertFalse(try stored.load(rows).isWithout)
        XCTAssertEqual(try stored.rows(), all)
    }

    /// Columns that are not needed may be damaged: a read of the whole block reports it.
    func testColumnsThatAreNotNeededAreNotInflated() throws {
        var texts = Staged.texts(4_000)
        for index in texts.indices {
            texts[index].model.monotonic = UInt64(index) + 1
            texts[index].model.written = UInt64(index) + 1
            texts[index].model.time = UInt64(index) + 1
            texts[index].model.level = 9
        }
        var stored = try StoredRows(texts, 1)
        stored.file.bytes[stored.file.bytes.count - 1] ^= 1
        var rows = WantedRows(level: 17, kinds: .max, since: 0, until: 0, isLogger: nil)
        XCTAssertTrue(try stored.load(rows).isWithout, "no row has the level")
        rows.level = 0
        XCTAssertThrowsError(try stored.load(rows))
        XCTAssertNoThrow(try stored.load(nil, ArchiveDigest.parts))
        XCTAssertThrowsError(try stored.load(nil))
    }

    /// The columns that are asked for, and no plane of a message.
    func testPartsAreThoseOfTheWhole() throws {
        for seed in SplitMix.seeds(40) {
            var stored = try block(seed)
            let all = try stored.all()
            var whole = RowBuffer()
            try stored.file.load(&stored.decoder, into: &whole)
            let tally = FacetTally(hasHistogram: true, hasFacets: true)
            for parts in [.times, ArchiveDigest.parts, tally.parts] as [BlockParts] {
                _ = try stored.load(nil, parts)
                let (view, one) = (stored.buffer.view(), whole.view())
                XCTAssertEqual(view.count, all.count)
                XCTAssertEqual(view.messages.count, 0)
                XCTAssertEqual(view.dictionaries.threads.count, one.dictionaries.threads.count)
                for row in 0..<view.count {
                    XCTAssertEqual(view.time[row], one.time[row])
                    XCTAssertEqual(view.offset[row], one.offset[row])
                    if !parts.columns.has(.kind) { continue }
                    XCTAssertEqual(view.kind[row], one.kind[row])
                    XCTAssertEqual(view.level[row], one.level[row])
                    XCTAssertEqual(view.thread[row], one.thread[row])
                    XCTAssertEqual(view.logger[row], one.logger[row])
                    if parts.columns.has(.format) {
                        XCTAssertEqual(view.format[row], one.format[row])
                    }
                }
                whole.clear()
                try stored.file.load(&stored.decoder, into: &whole)
            }
            whole.clear()
        }
    }

    /// A digest's sections are those with times, whatever else there is.
    func testADigestSeesEveryTime() throws {
        for seed in 0..<UInt64(40) {
            var stored = try block(seed)
            _ = try stored.load(nil)
            let whole = times(stored.buffer.view())
            _ = try stored.load(nil, ArchiveDigest.parts)
            XCTAssertEqual(times(stored.buffer.view()), whole, "seed \(seed)")
        }
    }

    private func times(_ view: BlockView) -> [UInt64?] {
        (0..<view.count).map { row in
            var walk = SectionWalk(view.sections(row))
            var time: UInt64?
            while let (kind, body, _) = walk.next() {
                if kind == SectionKind.time { time = body.word(0, UInt64.self) }
            }
            return time
        }
    }
}
