// Printers of lines recognize names, places and formats of archives by numbers: they print the
// lines of printers without that memory, whatever the block and the archive.

import CordwoodTestSupport
import XCTest

@testable import CordwoodCore
@testable import CordwoodStore

final class LineHeadsTests: XCTestCase {
    private let scratch = Scratch()

    /// Many blocks, of one process or several, some of them dense.
    private func archive(_ seed: UInt64) throws -> ArchiveSource {
        var maker = RecordMaker(seed: seed, processes: 2, threadsEach: 3)
        let source: any RecordSource =
            seed % 3 == 0
            ? FakeSource(maker.records(300))
            : AskedRecords(count: 300, processes: Int(seed % 3), random: SplitMix(seed))
        let cover = ArchiveCover(
            laneID: LaneID(high: 1, low: seed), first: 0, last: 3, laneName: "lane\(seed)")
        let path = try ArchiveWriter.write(
            source: source, covers: [cover], archivesDirectory: FilePath(scratch.path),
            codec: .zstd,
            level: 1, now: 5, effort: seed % 2 == 0 ? .dense : .swift, blockBytes: 4_000
        ).path
        return try ArchiveSource.open(path: path)
    }

    func testLinesOfOneOwnerAreThoseByThemselves() throws {
        let lines = TextLines(utc: true, color: false, origin: .all)
        let (json, rows, text) = (JSONLines(), CSVLines(), DeferredText())
        var (deferred, places) = (0, 0)
        for seed in SplitMix.seeds(48) {
            let source = try archive(seed)
            while let record = try source.advance() {
                var (one, other): ([UInt8], [UInt8]) = ([], [])
                lines.append(record, to: &one)
                TextLine.append(record, to: &other, utc: true, color: false, origin: .all)
                XCTAssertEqual(one, other, "seed \(seed)")
                (one, other) = ([], [])
                json.append(record, to: &one)
                JSONLine.append(record, to: &other)
                XCTAssertEqual(one, other, "seed \(seed)")
                var row = GrowingBytes()
                other = []
                rows.append(record, to: &row)
                CSVLine.append(record, to: &other)
                XCTAssertEqual(Array(row.bytes), other, "seed \(seed)")
                guard record.isDeferred else { continue }
                var again = record
                again.formatNumber = 0
                text.render(&again)
                XCTAssertEqual(Array(again.message), Array(record.message), "seed \(seed)")
                deferred += 1
                places += record.line > 0 ? 1 : 0
            }
        }
        XCTAssertGreaterThan(deferred, 500)
        XCTAssertGreaterThan(places, 100)
    }

    func testANumberMeansOneThing() throws {
        var names: [UInt64: [String]] = [:]
        var formats: [UInt64: [String]] = [:]
        for seed in SplitMix.seeds(24) {
            let source = try archive(seed)
            while let record = try source.advance() {
                let thread = record.thread
                let name = [
                    "\(thread.process.laneID)", "\(thread.serial)", Bytes.string(record.logger),
                ]
                XCTAssertGreaterThan(record.namesNumber, 0)
                XCTAssertEqual(names.updateValue(name, forKey: record.namesNumber) ?? name, name)
                XCTAssertEqual(record.formatNumber > 0, record.isDeferred)
                guard record.isDeferred else { continue }
                let format = [
                    Bytes.string(record.format), "\(Array(record.argumentTypes))",
                    Bytes.string(record.file), "\(record.line)",
                ]
                XCTAssertEqual(
                    formats.updateValue(format, forKey: record.formatNumber) ?? format, format)
            }
        }
        XCTAssertGreaterThan(formats.count, 20)
    }
}
