// The collector with real archives: what our own writer made is taken byte for byte, and one
// changed byte anywhere is not.

import Cordwood
import CordwoodCore
import Foundation
import XCTest

@testable import CordwoodCollector
@testable import CordwoodStore

final class RealArchiveTests: CollectorCase {
    private let lane = LaneID(high: 1, low: 2)

    private func make(_ messages: [String]) throws -> MadeArchive {
        let records = messages.enumerated().map {
            MadeArchive.Record(lane: lane, sequence: UInt64($0), message: $1)
        }
        return try MadeArchive(
            records, [MadeArchive.cover(lane, CollectorCase.lane, 1, 2)], in: directory + "-made")
    }

    private func send(_ bytes: [UInt8], key: String, to client: RawClient) -> Int? {
        client.send(post("", key: key, length: bytes.count))
        client.send(bytes)
        return client.answer()?.status
    }

    func testStoresWhatOurWriterMade() throws {
        let made = try make((0..<5000).map { "message \($0)" })
        let client = try RawClient(port: try start(inspector: .cordwood))
        XCTAssertEqual(send(made.bytes, key: made.id, to: client), 200)
        let path = "\(directory)/archives/\(made.name)"
        XCTAssertEqual(try Data(contentsOf: URL(fileURLWithPath: path)), Data(made.bytes))
        collector?.stop()
        let second = try RawClient(port: try start(inspector: .cordwood))
        XCTAssertEqual(send([1, 2, 3], key: made.id, to: second), 400)
        XCTAssertEqual(send(made.bytes, key: made.id, to: second), 200)
        XCTAssertEqual(stored(), [made.name])
    }

    func testRefusesEveryDamage() throws {
        let made = try make(["one", "two", "three"])
        let client = try RawClient(port: try start(inspector: .cordwood))
        for index in made.bytes.indices {
            var bytes = made.bytes
            bytes[index] ^= 0x10
            XCTAssertEqual(send(bytes, key: made.id, to: client), 400, "byte \(index)")
        }
        for length in stride(from: 1, to: made.bytes.count, by: 7) {
            let cut = Array(made.bytes[..<length])
            XCTAssertEqual(send(cut, key: made.id, to: client), 400, "\(length) bytes")
        }
        XCTAssertEqual(stored(), [])
    }

    /// An archive that was made later reports more refused records at the end of the lane.
    func testRefusedRecordsAreComparedByTheirTotals() throws {
        let seal = SegmentSeal(number: 1, digest: LaneID(high: 5, low: 6))
        func path(_ gap: ClosedRange<UInt64>) throws -> String {
            var cover = MadeArchive.cover(lane, CollectorCase.lane, 1, 1, seals: [seal])
            cover.gap = gap.upperBound - gap.lowerBound
            let run = Gap.Run(slot: 0, from: gap.lowerBound, to: gap.upperBound)
            let made = try MadeArchive(
                [
                    MadeArchive.Record(lane: lane, sequence: 0, message: "one"),
                    MadeArchive.Record(lane: lane, sequence: 1, message: "", gap: [run]),
                ], [cover], in: directory + "-made")
            let path = "\(directory)/\(gap.lowerBound)-\(gap.upperBound)"
            try Data(made.bytes).write(to: URL(fileURLWithPath: path))
            return path
        }
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true)
        let (few, more, others) = (try path(0...3), try path(0...5), try path(2...9))
        XCTAssertEqual(try StoredArchive.relation(of: more, toStored: few), .superset)
        XCTAssertEqual(try StoredArchive.relation(of: few, toStored: more), .known)
        for (new, old) in [(others, few), (few, others)] {
            guard case .contradiction = try StoredArchive.relation(of: new, toStored: old) else {
                return XCTFail(new)
            }
        }
    }

    /// The same name and replaced archives, of another lane: both are stored.
    func testAMergedArchiveWithAnothersNameIsStoredBesideIt() throws {
        let seal = SegmentSeal(number: 1, digest: LaneID(high: 5, low: 6))
        let client = try RawClient(port: try start(inspector: .cordwood))
        let replaced = [ReplacedArchive(id: LaneID(high: 7, low: 8), recordCount: 1)]
        for lane in [LaneID(high: 3, low: 4), lane] {
            let made = try MadeArchive(
                [MadeArchive.Record(lane: lane, sequence: 0, message: "one")],
                [MadeArchive.cover(lane, CollectorCase.lane, 1, 1, seals: [seal])],
                replaced: replaced, in: directory + "-made")
            XCTAssertEqual(send(made.bytes, key: made.id, to: client), 200)
            XCTAssertTrue(stored().contains(made.name))
        }
        XCTAssertEqual(stored().count, 2)
    }

    /// A block with a process of a lane that no cover names is refused.
    func testLanesOfBlocksAreCovered() throws {
        let other = LaneID(high: 3, low: 4)
        let made = try MadeArchive(
            [MadeArchive.Record(lane: lane, sequence: 0, message: "one")],
            [MadeArchive.cover(other, CollectorCase.lane, 1, 2)], in: directory + "-made")
        let client = try RawClient(port: try start(inspector: .cordwood))
        XCTAssertEqual(send(made.bytes, key: made.id, to: client), 400)
        XCTAssertEqual(stored(), [])
        // Where it lies in a store, it is not merged with others.
        let folder = directory + "/archives/"
        XCTAssertTrue(
            FileManager.default.createFile(
                atPath: folder + made.name, contents: Data(made.bytes)))
        for segment in [3, 4] as [UInt64] {
            let record = MadeArchive.Record(lane: lane, sequence: segment, message: "more")
            let cover = MadeArchive.cover(lane, CollectorCase.lane, segment, segment)
            let honest = try MadeArchive([record], [cover], in: directory + "-made")
            XCTAssertEqual(send(honest.bytes, key: honest.id, to: client), 200)
        }
        let summary = try StoreCompactor.compact(directory: FilePath(directory), ageSeconds: 0)
        XCTAssertEqual([summary.archivesIn, summary.archivesOut], [2, 1])
        XCTAssertTrue(stored().contains(made.name))
    }
}
