// Lanes whose owners died in the middle of something, and what adoption makes of them.

import CordwoodCore
import CordwoodStore
import Glibc
import XCTest

final class AdoptionTests: XCTestCase {
    private var store = ""

    override func setUp() { store = TestFiles.directory() }
    override func tearDown() { TestFiles.remove(store) }

    /// The owner archived segments 0 and 1 together, and died while it used the second file again.
    func testALaneWithADeadSegmentIsAdopted() throws {
        let lane = LaneBuilder(store: store)
        lane.first.chunk(thread: 1, sequence: 0, base: 0).text("of 0", at: 1)
        for number: UInt64 in 1...2 {
            let segment = lane.segment(number)
            segment.state = number == 1 ? 3 : 1
            segment.chunk(thread: 1, sequence: UInt32(number), base: 0)
                .text("of \(number)", at: number + 1)
        }
        lane.write()
        mkdir(store + "/archives", 0o700)
        let directory = FilePath(store)
        _ = try StoreArchiver.archive(
            directory: directory, files: try StoreArchiver.files(directory, lane.name),
            segments: 0...1, form: ArchiveForm(codec: .zstd, level: 1, recipients: []),
            endsLane: false)
        unlink(lane.path(lane.segments[0]))
        lane.archivedBelow = 1
        lane.segments[0].state = 4
        lane.write()
        let summary = try StoreArchiver.archiveDead(directory: directory)
        XCTAssertEqual(summary.damage, [])
        XCTAssertEqual(try LaneFiles.names(in: directory + "/lanes"), [])
        let reader = try StoreReader(path: store)
        var messages: [String] = []
        while let record = reader.nextRecord() { messages.append(record.message) }
        XCTAssertEqual(messages, ["of 0", "of 1", "of 2"])
    }
    /// A long lane becomes several archives. An adopter may end after each of them: the next one
    /// goes on from there, and a reader in between shows each record once.
    func testALongLaneIsArchivedInPieces() throws {
        let lane = LaneBuilder(store: store)
        lane.first.chunk(thread: 1, sequence: 0, base: 0).text("of 0", at: 1)
        lane.drops = [(3, 1, 20, 40)]
        for number: UInt64 in 1...30 {
            let segment = lane.segment(number)
            segment.state = 3
            segment.created = number * 100
            segment.chunk(thread: 1, sequence: UInt32(number), base: number * 100)
                .text("of \(number)", at: number * 100 + 1)
        }
        lane.write()
        // Three of them are more than an archive takes besides the least number.
        for segment in lane.segments {
            XCTAssertEqual(truncate(lane.path(segment), 12 << 20), 0)
        }
        mkdir(store + "/archives", 0o700)
        let directory = FilePath(store)
        func messages() throws -> [String] {
            let reader = try StoreReader(path: store)
            var found: [String] = []
            while let record = reader.nextRecord() { found.append(record.message) }
            XCTAssertEqual(reader.problemCount, 0)
            return found
        }
        let all = try messages()
        XCTAssertEqual(Array(all.prefix(31)), (0...30).map { "of \($0)" })
        XCTAssertEqual(all.count, 32)
        var archives = 0
        for _ in 0..<4 {
            var asked = 0
            // Before the batch, the lane, and each archive.
            func asks() -> Bool {
                asked += 1
                return asked > 3
            }
            let summary = try StoreArchiver.archiveDead(directory: directory, shouldStop: asks)
            XCTAssertEqual(summary.damage, [])
            XCTAssertEqual(summary.archives, 1)
            archives += summary.archives
            XCTAssertEqual(try messages(), all)
            let left = try LaneFiles.names(in: directory + "/lanes").filter { $0 != lane.name }
            XCTAssertEqual(left.count { $0.hasSuffix(".sealed") }, max(0, 31 - 8 * archives))
        }
        XCTAssertEqual(archives, 4)  // Segment 0 counts as one.
        XCTAssertEqual(try LaneFiles.names(in: directory + "/lanes"), [])
    }
}
