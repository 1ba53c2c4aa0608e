// What identifies records and their origin: ids (FORMAT §7.1) and resources, the same whichever
// file a record is read from.

import CordwoodCore
import CordwoodTestSupport
import Glibc
import XCTest

@testable import CordwoodStore

final class RecordIDTests: XCTestCase {
    private var store = ""

    override func setUp() { store = TestFiles.directory() }
    override func tearDown() { TestFiles.remove(store) }

    private func ids(_ source: any RecordSource) throws -> [String: String] {
        var found: [String: String] = [:]
        while let record = try source.advance() {
            let text = String(decoding: record.message, as: UTF8.self)
            let old = found.updateValue("\(record.id)", forKey: text)
            XCTAssertNil(old, text)
        }
        return found
    }

    func testTextAndOrder() throws {
        let lane = LaneID(high: 0x0807_0605_0403_0201, low: 0x100F_0E0D_0C0B_0A09)
        let id = RecordID(lane: lane, threadSerial: 0xAABB, sequence: 1 << 40 | 7)
        XCTAssertEqual("\(id)", "0102030405060708090a0b0c0000aabb0000010000000007")
        XCTAssertEqual(RecordID("\(id)"), id)
        XCTAssertNil(RecordID("\(id)00"))
        XCTAssertNil(RecordID(String(repeating: "g", count: 48)))
        var bytes: [UInt8] = []
        id.forEachByte { bytes.append($0) }
        XCTAssertEqual(bytes, Array(1...12) + [0, 0, 0xAA, 0xBB, 0, 0, 1, 0, 0, 0, 0, 7])
        XCTAssertLessThan(id, RecordID(lane: lane, threadSerial: 0xAABB, sequence: 1 << 40 | 8))
        XCTAssertLessThan(id, RecordID(lane: lane, threadSerial: 0xAABC, sequence: 0))
        XCTAssertNotEqual(id, RecordID(lane: .zero, threadSerial: 0xAABB, sequence: 1 << 40 | 7))
        var random = SplitMix(5)
        for _ in 0..<1_000 {
            let any = RecordID(
                lane: LaneID(high: random.next(), low: random.next()),
                threadSerial: .random(in: 0 ... .max, using: &random), sequence: random.next())
            var text = ""
            any.forEachByte { text += ($0 < 16 ? "0" : "") + String($0, radix: 16) }
            XCTAssertEqual("\(any)", text)
            XCTAssertEqual(RecordID(text), any)
        }
    }

    /// Two lanes: live, then archived one by one, then merged into one archive and through a merge
    /// of the files.
    func testSameInEveryFile() throws {
        var live: [String: String] = [:]
        var sealed: [(ArchiveCover, ArchiveInfo)] = []
        mkdir(store + "/archives", 0o700)
        for number in 0..<2 {
            let lane = LaneBuilder(
                store: store, name: "20261121T081530Z-81\(number)-9f3c5a0de1b2778\(number)",
                id: UInt64(7 + number))
            lane.drops = [(5, 2, 5, 900)]
            lane.first.chunk(thread: 1, sequence: 0, base: 0).text("a\(number)", at: 10)
                .text("b\(number)", at: 20)
            lane.first.chunk(thread: 2, sequence: 0, base: 0).text("c\(number)", at: 10)
            lane.first.state = 3
            let second = lane.segment(1)
            second.created = 25
            second.chunk(thread: 1, sequence: 1, base: 0).text("d\(number)", at: 30)
            lane.write()
            let found = try ids(try lane.source())
            XCTAssertEqual(found.count, 5)
            let part = lane.source
            let cover = ArchiveCover(
                laneID: lane.laneID, first: 0, last: 1, laneName: lane.name)
            let info = try ArchiveWriter.write(
                source: try part(.zero, nil), covers: [cover],
                archivesDirectory: FilePath(store + "/archives"), codec: .zstd, level: 1, now: 42)
            XCTAssertEqual(try ids(ArchiveSource.open(path: info.path)), found)
            for (text, id) in found { live["\(number) \(text)"] = id }
            sealed.append((cover, info))
        }
        XCTAssertEqual(Set(live.values).count, 10)
        let merge = MergeSource()
        for (order, (_, info)) in sealed.enumerated() {
            merge.add(
                MergeInput(lowerBound: 0, order: UInt64(order)) {
                    () throws(ReadProblem) -> (any RecordSource)? in
                    try ArchiveSource.open(path: info.path)
                })
        }
        let merged = try ArchiveWriter.write(
            source: merge, covers: sealed.map(\.0),
            archivesDirectory: FilePath(store + "/archives"),
            codec: .zstd, level: 1, now: 42)
        var found: Set<String> = []
        let source = try ArchiveSource.open(path: merged.path)
        while let record = try source.advance() { found.insert("\(record.id)") }
        XCTAssertEqual(found, Set(live.values))
    }

    /// FORMAT §3.2: records refused since then make another report, with another id.
    func testGapThatTheReaderMakes() throws {
        let lane = LaneBuilder(store: store)
        lane.drops = [(12, 10, 5, 900), (0, 0, 0, 0), (4, 3, 100, 2_000)]
        lane.first.chunk(thread: 1, sequence: 0, base: 0).text("before", at: 1)
        lane.write()
        let gap = "3 records were not kept"
        let first = try ids(try lane.source())[gap]
        XCTAssertEqual(first, "070000000000000001000000000000000000000d00000010")
        XCTAssertEqual(try ids(try lane.source())[gap], first)
        lane.drops[0] = (13, 11, 5, 900)
        lane.write()
        XCTAssertNotEqual(try ids(try lane.source())[gap], first)
    }

    /// A host names its service after opening the store; a reader may already be there.
    func testResourceSetWhileFollowed() throws {
        let lane = LaneBuilder(store: store)
        lane.resource("host.name", "h\"1")
        lane.resource("os.type", "linux")
        let chunk = lane.first.chunk(thread: 1, sequence: 0, base: 0)
        chunk.isSettled = false
        chunk.size = 8_192
        chunk.text("one", at: 1)
        lane.write()
        let source = try lane.source()
        let before = Drained(source)
        XCTAssertTrue(
            before.json[0].contains(
                #""service":null,"host":"h\"1","resource":{"os.type":"linux"},"record_id":""#),
            before.json[0])
        lane.logger(3, "made.since")
        lane.resource("service.name", "shop")
        lane.resource("user.id", "u1")
        chunk.text("two", at: 2)
        chunk.isSettled = true
        lane.first.chunk(thread: 1, sequence: 1, base: 0).text("three", at: 3)
        lane.write()
        try source.refresh()
        let after = Drained(source)
        XCTAssertEqual(after.messages, ["two", "three"])
        XCTAssertTrue(after.json[0].contains(#""service":null"#), after.json[0])
        XCTAssertTrue(
            after.json[1].contains(
                #""service":"shop","host":"h\"1","resource":{"os.type":"linux","user.id":"u1"},"#),
            after.json[1])
    }

    func testTextSaysTheHostWhereItIsAnother() throws {
        let here = try XCTUnwrap(Machine.words()?.host)
        for (number, host) in ["web-17", here, "", "\u{1B}[2J\nforged"].enumerated() {
            let lane = LaneBuilder(store: "\(store)/\(number)")
            if !host.isEmpty { lane.resource("host.name", host) }
            lane.resource("service.name", "shop")
            lane.first.chunk(thread: 1, sequence: 0, base: 0).text("hello", at: 1)
            lane.write()
            let source = try lane.source()
            let record = try XCTUnwrap(try source.advance())
            func line(_ origin: TextOrigin) -> String {
                var out: [UInt8] = []
                TextLine.append(record, to: &out, utc: true, color: false, origin: origin)
                return String(String(decoding: out, as: UTF8.self).dropFirst(31))
            }
            let id = "070000000000000001000000000000010000000000000000"
            let shown = host.isEmpty ? "" : PlainText.oneLine(host) + " "
            XCTAssertFalse(shown.utf8.contains { $0 < 0x20 })
            XCTAssertEqual(line(.none), "tester[812:77] hello\n")
            XCTAssertEqual(
                line(.elsewhere), (host == here ? "" : shown) + "tester[812:77] hello\n")
            XCTAssertEqual(line(.all), "\(shown)shop/tester[812:77] hello [\(id)]\n")
        }
    }
}
