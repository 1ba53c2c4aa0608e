// The versions of a lane's resource (FORMAT §5): each chunk has the attributes of its version,
// whatever was written later, and nobody's if a change that led there is lost.

import CordwoodCore
import CordwoodTestSupport
import XCTest

@testable import CordwoodStore

final class ResourceVersionTests: XCTestCase {
    private var store = ""

    override func setUp() { store = TestFiles.directory() }
    override func tearDown() { TestFiles.remove(store) }

    private func lane() -> LaneBuilder { LaneBuilder(store: store, boot: 5) }

    private struct Shown: Equatable {
        var text: String
        var resource: String
        var isUnverified: Bool
    }

    private func read(_ source: LaneSource) -> (records: [Shown], problems: Int) {
        var (records, problems): ([Shown], Int) = ([], 0)
        while true {
            do {
                guard let record = try source.advance() else { return (records, problems) }
                records.append(
                    Shown(
                        text: String(decoding: record.message, as: UTF8.self),
                        resource: record.thread.process.resource.map { "\($0.key)=\($0.value)" }
                            .joined(separator: ","),
                        isUnverified: record.flags.contains(.unverified)))
            } catch {
                problems += 1
            }
        }
    }

    /// With its catalog in a growth file, which has room for more.
    private func writeGrown(_ lane: LaneBuilder) {
        var grown = lane.catalogHead()
        lane.catalog.forEach { grown.raw($0) }
        lane.catalog = []
        lane.write()
        TestFiles.write(grown.bytes, to: "\(store)/lanes/\(lane.name).catalog-1")
    }

    /// Random changes, and chunks of several threads between them, in one random order.
    func testEachChunkHasItsVersion() throws {
        for seed in SplitMix.seeds(200, core: 40) {
            var random = SplitMix(seed)
            let lane = lane()
            var (model, wanted): ([(key: String, value: String)], [Shown]) = ([], [])
            var sequences: [UInt32: UInt32] = [:]
            for time in 1...UInt64.random(in: 1...60, using: &random) {
                if random.next() % 3 == 0 {
                    let key = ["a", "b", "c"].randomElement(using: &random)!
                    let value = ["", "1", "2", "3"].randomElement(using: &random)!
                    lane.resource(key, value)
                    if let place = model.firstIndex(where: { $0.key == key }) {
                        model[place].value = value
                        if value.isEmpty { model.remove(at: place) }
                    } else if !value.isEmpty {
                        model.append((key, value))
                    }
                    continue
                }
                let thread = UInt32.random(in: 1...3, using: &random)
                let sequence = sequences[thread, default: 0]
                sequences[thread] = sequence + 1
                lane.first.chunk(thread: thread, sequence: sequence, base: time)
                    .text("\(time)", at: time)
                wanted.append(
                    Shown(
                        text: "\(time)",
                        resource: model.map { "\($0.key)=\($0.value)" }.joined(separator: ","),
                        isUnverified: false))
            }
            // Entries are found wherever they lie, and may be repeated.
            lane.catalog += lane.catalog.filter { _ in random.next() % 4 == 0 }
            lane.catalog.shuffle(using: &random)
            lane.write()
            let found = read(try lane.source(boot: lane.bootID))
            XCTAssertEqual(found.records, wanted, "seed \(seed)")
            XCTAssertEqual(found.problems, 0, "seed \(seed)")
            TestFiles.remove(store)
            store = TestFiles.directory()
        }
    }

    /// A record is never shown as another user's: if a change is lost, its user is not known.
    func testALostChangeIsNobodys() throws {
        let lane = lane()
        lane.resource("user.id", "a")
        lane.first.chunk(thread: 1, sequence: 0, base: 1).text("one", at: 1)
        lane.resource("user.id", "b")
        lane.first.chunk(thread: 1, sequence: 1, base: 2).text("two", at: 2)
        lane.resource("app", "x")
        lane.first.chunk(thread: 1, sequence: 2, base: 3).text("three", at: 3)
        lane.catalog.remove(at: 1)
        lane.write()
        let wanted = [
            Shown(text: "one", resource: "user.id=a", isUnverified: false),
            Shown(text: "two", resource: "", isUnverified: true),
            Shown(text: "three", resource: "", isUnverified: true),
        ]
        let same = read(try lane.source(boot: lane.bootID))
        XCTAssertEqual(same.records, wanted)
        XCTAssertEqual(same.problems, 1)
        // A power cut loses entries; nothing is wrong then.
        let other = read(try lane.source(boot: LaneID(high: 6, low: 6)))
        XCTAssertEqual(other.records.map(\.resource), wanted.map(\.resource))
        XCTAssertEqual(other.problems, 0)
    }

    /// The writer could not store the first one, and chunks followed only the second.
    func testTheLastDefinitionOfAVersionApplies() throws {
        let lane = lane()
        lane.catalog = [lane.change(1, "user.id", "a"), lane.change(1, "user.id", "b")]
        lane.resourceVersion = 1
        lane.first.chunk(thread: 1, sequence: 0, base: 1).text("one", at: 1)
        lane.write()
        let source = try lane.source(boot: lane.bootID)
        XCTAssertEqual(read(source).records.map(\.resource), ["user.id=b"])
    }

    /// Whatever the order in which chunks name thousands of versions, finding them is quick.
    func testVersionsAreFoundInAnyOrder() throws {
        let lane = lane()
        let count = UInt16(2_500)
        for version in 1...count { lane.resource("user.id", "\(version)") }
        let segment = lane.segment(1)
        for at in 1...UInt64(count) {
            let version = at % 2 == 0 ? count - UInt16(at) + 1 : UInt16(at)
            let chunk = segment.chunk(thread: 1, sequence: UInt32(at), base: at)
            chunk.resource = version
            chunk.text("\(version)", at: at)
        }
        writeGrown(lane)
        let found = read(try lane.source(boot: lane.bootID)).records
        XCTAssertEqual(found.count, Int(count))
        XCTAssertNil(found.first { $0.resource != "user.id=\($0.text)" })
    }

    /// No writer keeps so much, and a reader makes the attributes for each version.
    func testAttributesThatExceedTheLimitAreUnknown() throws {
        let lane = lane()
        let long = String(repeating: "x", count: 40_000)
        lane.resource("a", long)
        lane.first.chunk(thread: 1, sequence: 0, base: 1).text("one", at: 1)
        lane.resource("b", long)
        lane.first.chunk(thread: 1, sequence: 1, base: 2).text("two", at: 2)
        writeGrown(lane)
        let (records, problems) = read(try lane.source(boot: lane.bootID))
        XCTAssertEqual(records.map(\.resource.count), [40_002, 0])
        XCTAssertEqual(records.map(\.isUnverified), [false, true])
        XCTAssertEqual(problems, 1)
    }

    /// A follower finds the entry when it meets the first chunk that names it.
    func testAFollowerReadsVersionsAsTheyCome() throws {
        let lane = lane()
        lane.write()
        let source = try lane.source(boot: lane.bootID)
        XCTAssertEqual(read(source).records, [])
        for round in UInt32(1)...20 {
            lane.resource("user.id", "\(round)")
            lane.first.chunk(thread: 1, sequence: round, base: UInt64(round))
                .text("\(round)", at: UInt64(round))
            lane.write()
            try source.refresh()
            let found = read(source)
            XCTAssertEqual(found.records.map(\.resource), ["user.id=\(round)"])
            XCTAssertEqual(found.problems, 0)
        }
    }
}
