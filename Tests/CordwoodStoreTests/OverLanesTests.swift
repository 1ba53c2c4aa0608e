// A lane that nobody appends to any more is read ahead, and not checked again. It reads as the same
// lane does while its process lives.

import CordwoodTestSupport
import Glibc
import XCTest

@testable import CordwoodCore
@testable import CordwoodStore

final class OverLanesTests: XCTestCase {
    private var store = ""

    override func setUp() { store = TestFiles.directory() }
    override func tearDown() { TestFiles.remove(store) }

    /// Small and large lanes; chunks of several threads, some beyond what is read ahead.
    private func make(_ seed: UInt64) throws -> LaneBuilder {
        var random = SplitMix(seed)
        let lane = LaneBuilder(store: store)
        lane.logger(1, "first")
        if Bool.random(using: &random) { lane.resource("user.id", "u\(seed)") }
        lane.first.state = Bool.random(using: &random) ? 3 : 1
        lane.first.holes = Int.random(in: 0...2, using: &random)
        let threads = UInt32.random(in: 1...3, using: &random)
        var next: [UInt32: UInt32] = [:]
        var now: UInt64 = 10
        func fill(_ segment: SegmentBuilder, _ chunks: Int) {
            for _ in 0..<chunks {
                let thread = UInt32.random(in: 1...threads, using: &random)
                let chunk = segment.chunk(
                    thread: thread, sequence: next[thread, default: 0], base: now)
                next[thread, default: 0] += 1
                chunk.isSettled = Bool.random(using: &random)
                for _ in 0..<Int.random(in: 1...40, using: &random) {
                    now += UInt64.random(in: 1...1_000, using: &random)
                    chunk.text(
                        "\(now) of \(thread)", at: now,
                        logger: UInt32.random(in: 0...2, using: &random))
                }
            }
        }
        fill(lane.first, Int.random(in: 0...12, using: &random))
        if Bool.random(using: &random) {
            let segment = lane.segment(1)
            segment.state = Bool.random(using: &random) ? 3 : 1
            fill(segment, 4)
        }
        if Bool.random(using: &random) {
            lane.drops = [(3, 1, 20, 40), (0, 0, 0, 0), (2, 2, 5, 6)]
        }
        lane.write()
        if Bool.random(using: &random) {
            var file = lane.catalogHead()
            file.raw(lane.entry(1, 2, Array("grown".utf8)))
            TestFiles.write(file.bytes, to: "\(store)/lanes/\(lane.name).catalog-1")
        }
        return lane
    }

    func testItReadsAsALivingOne() throws {
        for seed in SplitMix.seeds(400, core: 12) {
            let lane = try make(seed)
            let living = Drained(try lane.source())
            let content = try lane.source().content()
            lane.closed = 1
            lane.write()
            let over = Drained(try lane.source())
            XCTAssertEqual(over.json, living.json, "seed \(seed)")
            XCTAssertEqual(over.times, living.times, "seed \(seed)")
            XCTAssertEqual(over.sequences, living.sequences, "seed \(seed)")
            XCTAssertEqual("\(over.problems)", "\(living.problems)", "seed \(seed)")
            let now = try lane.source().content()
            XCTAssertEqual(now.seals, content.seals, "seed \(seed)")
            XCTAssertEqual(now.gap, content.gap, "seed \(seed)")
            TestFiles.remove(store)
        }
    }

    /// What is read once is not read again; of a living lane, everything is, also of one that was
    /// closed before its first segment was sealed.
    func testOnlyALivingLaneIsReadAgain() throws {
        for (closed, state): (UInt32, UInt32) in [(0, 1), (1, 1), (1, 2), (1, 3)] {
            let lane = LaneBuilder(store: store)
            lane.closed = closed
            lane.first.state = state
            let chunk = lane.first.chunk(thread: 1, sequence: 0, base: 0)
            chunk.isSettled = false
            chunk.size = 2_048
            chunk.text("one", at: 1)
            lane.write()
            let source = try lane.source()
            XCTAssertEqual(
                String(decoding: try XCTUnwrap(try source.advance()).message, as: UTF8.self),
                "one")
            chunk.text("two", at: 2)
            lane.write()
            XCTAssertEqual(
                Drained(source).messages, state == 3 ? [] : ["two"], "\(closed), \(state)")
            TestFiles.remove(store)
        }
    }

    /// Helpers of a lane that was closed early overwrite segment 0, once an archive has it.
    func testALaneThatWasClosedEarlyIsChecked() throws {
        let lane = LaneBuilder(store: store)
        lane.closed = LaneHeader.closedEarly
        lane.first.state = SegmentHeader.stateSealed
        lane.first.chunk(thread: 1, sequence: 0, base: 0).text("one", at: 1)
        lane.write()
        let source = try lane.source()
        let file = open(lane.lanePath, O_RDWR)
        XCTAssertTrue(
            Leftovers.overwrite(
                file, segmentAt: UInt64(LaneHeader.segmentOffsetValue),
                bytes: UInt64(LaneHeader.segmentBytesValue)))
        close(file)
        let got = Drained(source)
        XCTAssertEqual(got.messages, [])
        XCTAssertEqual("\(got.problems)", "[]")
        XCTAssertEqual(source.lostSegments, [0])
    }

    /// A copy of a process that is gone may go on with its lane, so a follower looks again.
    func testAFollowerReadsALaneOfADeadProcessAgain() throws {
        let boot = BootID.running()
        for follows in [false, true] {
            let lane = LaneBuilder(store: store)
            lane.bootID = boot
            lane.first.bootID = boot
            lane.processID = 2_000_000_000
            lane.processNamespace = Machine.processNamespace()
            let chunk = lane.first.chunk(thread: 1, sequence: 0, base: 0)
            chunk.isSettled = false
            chunk.size = 2_048
            chunk.text("one", at: 1)
            lane.write()
            let files = try StoreArchiver.files(FilePath(store), lane.name)
            let source = try LaneSource(files: files, follows: follows, pool: OpenFiles())
            XCTAssertEqual(source.head?.hasEnded, true)
            XCTAssertTrue(try source.advance() != nil)
            chunk.text("two", at: 2)
            lane.write()
            XCTAssertEqual(Drained(source).messages, follows ? ["two"] : [])
            TestFiles.remove(store)
        }
    }

    /// A file that was cut is damage, whoever wrote to it last.
    func testACutLaneFileIsReported() throws {
        let lane = LaneBuilder(store: store)
        lane.closed = 1
        lane.first.state = 3
        lane.first.chunk(thread: 1, sequence: 0, base: 0).text("one", at: 1)
        lane.write()
        XCTAssertEqual(truncate(lane.lanePath, 21_000), 0)
        let got = Drained(try lane.source())
        XCTAssertEqual(got.messages, ["one"])
        XCTAssertTrue("\(got.problems)".contains("cut off"), "\(got.problems)")
    }

    /// What its owner knows of its sealed segments is what a listing finds.
    func testSealedSegmentsAreFoundByTheirNames() throws {
        let lane = LaneBuilder(store: store)
        var sealed = [SealedSegment(number: 0, generation: 0)]
        for number: UInt64 in 1...5 {
            let segment = lane.segment(number, generation: number == 4 ? 12_345 : UInt32(number))
            // A rename may have failed.
            segment.state = number == 2 ? 1 : 3
            sealed.append(SealedSegment(number: number, generation: segment.generation))
        }
        lane.write()
        unlink(lane.path(lane.segments[2]))
        let directory = FilePath(store)
        let listed = try StoreArchiver.files(directory, lane.name)
        let known = LaneFiles(lane: lane.name, store: directory, sealed: sealed, first: true)
        func text(_ files: LaneFiles) -> [String] {
            files.segments.map { "\($0.number) \($0.generation) \($0.isSealed) \($0.path)" }
        }
        XCTAssertEqual(text(known), text(listed))
        XCTAssertEqual(known.segments.map(\.number), [1, 2, 4, 5])
        XCTAssertEqual(known.hasLaneFile, listed.hasLaneFile)
    }

    func testAListingKnowsItsSegments() throws {
        let lane = LaneBuilder(store: store)
        for number in stride(from: UInt64(3), to: 400, by: 7) { lane.segment(number).state = 3 }
        lane.write()
        let listed = LaneListing(directory: FilePath(store)).lanes[lane.name]
        let found = try XCTUnwrap(listed)
        let numbers = Set(lane.segments.map(\.number))
        XCTAssertEqual(found.segments.count, numbers.count)
        for first: UInt64 in 0...401 {
            for length: UInt64 in [0, 1, 5, 6, 7, 300] {
                let range = first...first + length
                XCTAssertEqual(
                    found.hasSegment(in: range), numbers.contains(where: range.contains),
                    "\(range)")
            }
        }
    }

    func testWhatIsWantedNextDoesNotOverflow() {
        let plan = EndPlan([], wanted: 1, options: ReaderOptions()) { _ in 0 }
        XCTAssertEqual(plan.more(than: 5), 20)
        XCTAssertEqual(plan.more(than: 1 << 62), .max)
    }
}
