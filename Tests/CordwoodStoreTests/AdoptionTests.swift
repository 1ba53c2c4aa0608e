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
}
