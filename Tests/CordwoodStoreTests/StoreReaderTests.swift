// Whole stores: lanes beside archives, segments that are archived under a reader, single files,
// collectors' directories, statistics and verification.

import CordwoodCore
import CordwoodStore
import Glibc
import XCTest

final class StoreReaderTests: XCTestCase {
    private var store = ""

    override func setUp() { store = TestFiles.directory() }
    override func tearDown() { TestFiles.remove(store) }

    private func sample() -> LaneBuilder {
        let lane = LaneBuilder(store: store)
        lane.logger(1, "app.db")
        lane.closed = 0
        for number: UInt64 in 1...3 {
            let segment = lane.segment(number)
            segment.created = number * 100
            let chunk = segment.chunk(
                thread: 1, sequence: UInt32(number), base: number * 100)
            for index: UInt64 in 0..<3 {
                chunk.text(
                    "\(number).\(index)", at: number * 100 + index, logger: 1,
                    level: index == 2 ? 17 : 9)
            }
            if number < 3 { segment.state = 3 }
        }
        return lane
    }

    private func archive(_ lane: LaneBuilder, _ range: ClosedRange<UInt64>, in store: String? = nil)
        throws
    {
        let store = store ?? self.store
        mkdir(store, 0o700)
        mkdir(store + "/archives", 0o700)
        let source = try lane.source(boot: lane.bootID, range)
        let cover = ArchiveCover(
            laneID: lane.laneID, first: range.lowerBound, last: range.upperBound,
            laneName: lane.name, seals: try source.content().seals)
        _ = try ArchiveWriter.write(
            source: source, covers: [cover], archivesDirectory: FilePath(store + "/archives"),
            codec: .zstd, level: 3, now: 5)
    }

    /// Uses that segment's file again.
    private func recycle(_ lane: LaneBuilder, _ index: Int) {
        let other = SegmentBuilder(
            number: 9, generation: 1, laneID: lane.laneID, bootID: lane.bootID)
        TestFiles.write(other.bytes(), to: lane.path(lane.segments[index]))
    }

    private func read(_ reader: StoreReader, upTo last: String) -> [String] {
        var messages: [String] = []
        while messages.last != last, let record = reader.nextRecord() {
            messages.append(record.message)
        }
        return messages
    }

    private func all(_ reader: StoreReader) -> [String] {
        var messages: [String] = []
        while reader.next({ messages.append(String(decoding: $0.message, as: UTF8.self)) })
            == .record
        {}
        return messages
    }

    private let whole = ["1.0", "1.1", "1.2", "2.0", "2.1", "2.2", "3.0", "3.1", "3.2"]

    /// An adopter, or a child that inherited it, holds the lock of a lane whose process is gone.
    func testALockDoesNotMakeADeadProcessLive() throws {
        let lane = sample()
        let boot = Machine.bootID()
        lane.bootID = LaneID(high: boot.high, low: boot.low)
        lane.processNamespace = Machine.processNamespace()
        lane.processID = UInt32(getpid())
        lane.processStart = Machine.processStart(lane.processID)
        for isGone in [false, true] {
            if isGone { lane.processStart += 1 }
            lane.write()
            let file = open(lane.lanePath, O_RDWR)
            defer { close(file) }
            XCTAssertEqual(flock(file, LOCK_EX | LOCK_NB), 0)
            let process = try XCTUnwrap(try lane.source(boot: lane.bootID).process)
            XCTAssertEqual(LaneWatch(paths: [store]).isOver(process), isGone)
            XCTAssertEqual(
                try StoreInspector.lanes(store).map(\.state), [isGone ? .unclean : .live])
        }
    }

    func testLanesAndArchivesGiveEachRecordOnce() throws {
        let lane = sample()
        lane.write()
        XCTAssertEqual(all(try StoreReader(path: store)), whole)
        try archive(lane, 1...1)
        XCTAssertEqual(all(try StoreReader(path: store)), whole)
        try archive(lane, 2...2)
        unlink(lane.path(lane.segments[0]))
        XCTAssertEqual(all(try StoreReader(path: store)), whole)
        unlink(lane.path(lane.segments[1]))
        let reader = try StoreReader(path: store)
        XCTAssertEqual(all(reader), whole)
        XCTAssertEqual(reader.problemCount, 0)
    }

    func testFiltersAndRecordValues() throws {
        let lane = sample()
        lane.write()
        try archive(lane, 1...1)
        var options = ReaderOptions()
        options.level = 13
        options.logger = "app"
        let reader = try StoreReader(path: store, options: options)
        let first = try XCTUnwrap(reader.nextRecord())
        XCTAssertEqual(first.message, "1.2")
        XCTAssertEqual(first.levelName, "ERROR")
        XCTAssertEqual(first.logger, "app.db")
        XCTAssertEqual(first.processID, 812)
        XCTAssertEqual(first.threadName, "worker")
        XCTAssertEqual(all(reader), ["2.2", "3.2"])
        options = ReaderOptions()
        options.since = 1_000_000_000_000 + 201
        options.until = 1_000_000_000_000 + 301
        XCTAssertEqual(all(try StoreReader(path: store, options: options)), ["2.1", "2.2", "3.0"])
    }

    func testCollectorsDirectoryAndSingleFiles() throws {
        let lane = sample()
        lane.write()
        let other = TestFiles.directory()
        defer { TestFiles.remove(other) }
        try archive(lane, 1...2, in: other)
        XCTAssertEqual(all(try StoreReader(path: other)), Array(whole[..<6]))
        let name = try XCTUnwrap(LaneFiles.names(in: FilePath(other + "/archives")).first)
        let file = "\(other)/archives/\(name)"
        XCTAssertEqual(all(try StoreReader(path: file)), Array(whole[..<6]))
        XCTAssertEqual(
            all(try StoreReader(path: lane.path(lane.segments[2]), runningBoot: .zero)),
            Array(whole[6...]))
        XCTAssertEqual(all(try StoreReader(paths: [other, store])), whole)
    }

    func testNoStoreIsSaidSo() throws {
        let empty = store + "/empty"
        mkdir(empty, 0o700)
        for path in [empty, store + "/nothing", store + "/nothing.cwa"] {
            XCTAssertThrowsError(try StoreReader(path: path)) { error in
                guard case ReadProblem.system(_, ENOENT) = error else {
                    return XCTFail("\(path): \(error)")
                }
            }
        }
        TestFiles.write(Array("hello".utf8), to: store + "/x.cwa")
        XCTAssertThrowsError(try StoreReader(path: store + "/x.cwa")) { error in
            guard case ReadProblem.damaged = error else { return XCTFail("\(error)") }
        }
        TestFiles.write(Array("cordwood store\nformat 2\n".utf8), to: empty + "/store")
        XCTAssertThrowsError(try StoreReader(path: empty)) { error in
            guard case ReadProblem.version = error else { return XCTFail("\(error)") }
        }
        TestFiles.write(Array("cordwood store\nformat 1\n".utf8), to: empty + "/store")
        XCTAssertEqual(all(try StoreReader(path: empty)), [])
    }

    func testSegmentArchivedUnderAReaderIsReadFromTheArchive() throws {
        let lane = sample()
        lane.write()
        let reader = try StoreReader(path: store)
        XCTAssertEqual(reader.nextRecord()?.message, "1.0")
        try archive(lane, 2...2)
        // Recycled: the reader's descriptor now refers to another segment.
        recycle(lane, 1)
        let rest = all(reader)
        XCTAssertEqual(rest.sorted(), Array(whole[1...]))
        XCTAssertEqual(reader.problemCount, 0)
    }

    func testFollowing() throws {
        let lane = sample()
        lane.write()
        var options = ReaderOptions()
        options.follow = true
        let reader = try StoreReader(path: store, options: options)
        XCTAssertEqual(all(reader), whole)
        XCTAssertEqual(reader.next { _ in }, .again)
        // Archived under the follower: nothing comes twice.
        try archive(lane, 1...1)
        unlink(lane.path(lane.segments[0]))
        lane.segments[2].chunks[0].text("3.3", at: 400)
        lane.segments[2].chunks[0].text("3.4", at: 401)
        lane.segments[2].chunks[0].isSettled = true
        TestFiles.write(lane.segments[2].bytes(), to: lane.path(lane.segments[2]))
        XCTAssertEqual(all(reader), [])
        // The chunk was settled when first read, so its writer has left it.
        let next = lane.segment(4)
        next.chunk(thread: 1, sequence: 5, base: 500).text("4.0", at: 500)
        TestFiles.write(next.bytes(), to: lane.path(next))
        XCTAssertEqual(all(reader), ["4.0"])
        // A lane that begins, and one that came and went between two looks.
        let second = LaneBuilder(store: store, name: "20261121T091530Z-9-aaaabbbbccccdddd", id: 9)
        second.first.chunk(thread: 1, sequence: 0, base: 0).text("second lane", at: 600)
        second.write()
        XCTAssertEqual(all(reader), ["second lane"])
        let third = LaneBuilder(store: store, name: "20261121T101530Z-9-aaaabbbbccccdddd", id: 11)
        third.segment(1).chunk(thread: 1, sequence: 0, base: 0).text("third lane", at: 700)
        third.write()
        try archive(third, 0...1)
        unlink(third.lanePath)
        unlink(third.path(third.segments[0]))
        XCTAssertEqual(all(reader), ["third lane"])
        XCTAssertEqual(all(reader), [])
        XCTAssertEqual(reader.problemCount, 0, "\(reader.problems)")
    }

    func testFollowedSegmentThatIsRecycledIsReadOnFromTheArchive() throws {
        let lane = sample()
        lane.segments[2].chunks[0].isSettled = false
        lane.write()
        var options = ReaderOptions()
        options.follow = true
        let reader = try StoreReader(path: store, options: options)
        XCTAssertEqual(all(reader), whole)
        lane.segments[2].chunks[0].text("3.3", at: 304)
        lane.segments[2].chunks[0].isSettled = true
        lane.segments[2].chunk(thread: 2, sequence: 0, base: 305).text("3.4", at: 305)
        lane.write()
        try archive(lane, 3...3)
        recycle(lane, 2)
        XCTAssertEqual(all(reader), ["3.3", "3.4"])
        XCTAssertEqual(all(reader), [])
    }

    /// A segment is lost while it is read, and more of its thread follows.
    func testSegmentLostInTheMiddleIsGivenBeforeWhatFollows() throws {
        for follow in [false, true] {
            TestFiles.remove(store)
            mkdir(store, 0o700)
            let lane = sample()
            lane.segments[2].state = 3
            lane.segments[2].chunk(thread: 1, sequence: 4, base: 300).text("3.3", at: 350)
            let next = lane.segment(4)
            next.chunk(thread: 1, sequence: 5, base: 400).text("4.0", at: 400)
            lane.write()
            var options = ReaderOptions()
            options.follow = follow
            let reader = try StoreReader(path: store, options: options)
            let messages = read(reader, upTo: "3.1")
            try archive(lane, 3...3)
            recycle(lane, 2)
            XCTAssertEqual(messages + all(reader), whole + ["3.3", "4.0"], "follow \(follow)")
            XCTAssertEqual(all(reader), [])
        }
    }

    /// A thread went on in a chunk that had been read to its end; the chunk was archived and its
    /// file used again before the reader looked once more.
    func testWhatWasAddedToALostChunkIsGivenBeforeWhatFollows() throws {
        for follow in [false, true] {
            TestFiles.remove(store)
            mkdir(store, 0o700)
            let lane = sample()
            let chunk = lane.segments[2].chunks[0]
            chunk.isSettled = false
            lane.segment(4).chunk(thread: 1, sequence: 4, base: 400).text("4.0", at: 400)
            lane.write()
            var options = ReaderOptions()
            options.follow = follow
            let reader = try StoreReader(path: store, options: options)
            let messages = read(reader, upTo: "3.2")
            chunk.text("3.3", at: 350)
            chunk.isSettled = true
            lane.write()
            try archive(lane, 3...3)
            recycle(lane, 2)
            XCTAssertEqual(messages + all(reader), whole + ["3.3", "4.0"], "follow \(follow)")
            XCTAssertEqual(all(reader), [])
        }
    }

    /// An archive is not needed when it is found, since its segment is still there, but is needed
    /// when the segment is lost later.
    func testArchiveThatWasNotNeededIsReadOnceItsSegmentIsLost() throws {
        let lane = sample()
        lane.segment(4).chunk(thread: 1, sequence: 4, base: 400).text("4.0", at: 400)
        lane.segments[2].chunk(thread: 1, sequence: 5, base: 500).text("3.3", at: 500)
        lane.write()
        let reader = try StoreReader(path: store, options: ReaderOptions())
        var messages = read(reader, upTo: "1.1")
        try archive(lane, 2...2)
        try archive(lane, 3...3)
        recycle(lane, 1)
        messages += read(reader, upTo: "3.1")
        recycle(lane, 2)
        messages += all(reader)
        XCTAssertEqual(messages.sorted(), (whole + ["3.3", "4.0"]).sorted())
        XCTAssertEqual(Set(messages).count, messages.count)
    }

    /// The clock of a segment says more in the archive than when the segment was read: by time
    /// alone, what follows would come first.
    func testArchivedPartOfAFollowedLaneComesBeforeWhatFollows() throws {
        let lane = sample()
        lane.segments[2].chunks[0].isSettled = false
        lane.write()
        var options = ReaderOptions()
        options.follow = true
        let reader = try StoreReader(path: store, options: options)
        XCTAssertEqual(all(reader), whole)
        lane.segments[2].chunks[0].text("3.3", at: 410)
        lane.segments[2].chunks[0].isSettled = true
        lane.segment(4).chunk(thread: 1, sequence: 4, base: 400).text("4.0", at: 400)
        lane.write()
        try archive(lane, 3...3)
        recycle(lane, 2)
        XCTAssertEqual(all(reader), ["3.3", "4.0"])
        XCTAssertEqual(all(reader), [])
    }

    /// A record was returned from a chunk that was then settled short of it. Its copy is archived
    /// before the follower has seen the copy's segment.
    func testFollowedRecordAppendedAgainIntoAnArchiveIsGivenOnce() throws {
        let lane = sample()
        let chunk = lane.segments[2].chunks[0]
        chunk.isSettled = false
        lane.write()
        var options = ReaderOptions()
        options.follow = true
        let reader = try StoreReader(path: store, options: options)
        XCTAssertEqual(all(reader), whole)
        chunk.cut(by: 24)
        let next = lane.segment(4)
        next.chunk(thread: 1, sequence: 4, base: 302).text("3.2", at: 303, logger: 1, level: 17)
            .text("3.2", at: 304, logger: 1, level: 17)
        lane.write()
        try archive(lane, 3...4)
        for segment in lane.segments[2...] { unlink(lane.path(segment)) }
        XCTAssertEqual(all(reader), ["3.2"])
        XCTAssertEqual(all(reader), [])
        XCTAssertEqual(reader.problemCount, 0, "\(reader.problems)")
    }

    func testFollowingFromTheEnd() throws {
        let lane = sample()
        lane.segments[2].chunks[0].isSettled = false
        lane.write()
        try archive(lane, 1...1)
        var options = ReaderOptions()
        options.follow = true
        options.fromEnd = true
        let reader = try StoreReader(path: store, options: options)
        XCTAssertEqual(all(reader), [])
        lane.segments[2].chunks[0].text("new", at: 310, logger: 1)
        lane.write()
        XCTAssertEqual(all(reader), ["new"])
        XCTAssertEqual(all(reader), [])
    }

    func testYoungRecordsOfThisBootWaitForSlowThreads() throws {
        let boot = BootID.running()
        guard boot != .zero else { throw XCTSkip("no boot id") }
        let lane = LaneBuilder(store: store, boot: 1)
        lane.bootID = boot
        lane.first.bootID = boot
        let chunk = lane.first.chunk(thread: 1, sequence: 0, base: 0)
        chunk.isSettled = false
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        let ns = UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
        chunk.newBase(ns - 1_000_000_000)
        chunk.text("old", at: ns - 1_000_000_000)
        chunk.newBase(ns + 3_600_000_000_000)
        chunk.text("young", at: ns + 3_600_000_000_000)
        lane.write()
        var options = ReaderOptions()
        options.follow = true
        XCTAssertEqual(all(try StoreReader(path: store, options: options)), ["old"])
        XCTAssertEqual(all(try StoreReader(path: store)), ["old", "young"])
    }

    func testStatsAndVerify() throws {
        let lane = sample()
        lane.write()
        let clean = LaneBuilder(store: store, name: "20261121T091530Z-9-aaaabbbbccccdddd", id: 9)
        clean.closed = 1
        clean.write()
        try archive(lane, 1...1)
        unlink(lane.path(lane.segments[0]))
        let stats = try StoreInspector.stats(directory: store)
        XCTAssertEqual(stats.records, 9)
        XCTAssertEqual(stats.recordsByLevel[9], 6)
        XCTAssertEqual(stats.recordsByLevel[17], 3)
        XCTAssertEqual(stats.archives, 1)
        XCTAssertEqual(stats.timeMin, 1_000_000_000_100)
        XCTAssertEqual(stats.timeMax, 1_000_000_000_302)
        XCTAssertEqual(stats.lanes.map(\.state), [.unclean, .closed])
        XCTAssertEqual(stats.problems, [])

        var report = try StoreInspector.verify(directory: store)
        XCTAssertTrue(report.isWhole, "\(report.problems)")
        XCTAssertEqual(report.records, 9)
        XCTAssertEqual(report.unclean.map(\.name), [lane.name])

        let fd = open(lane.lanePath, O_RDWR)
        XCTAssertEqual(flock(fd, LOCK_EX), 0)
        XCTAssertEqual(try StoreInspector.verify(directory: store).lanes[0].state, .live)
        close(fd)

        lane.segments[1].chunks[0].isCRCRight = false
        TestFiles.write(lane.segments[1].bytes(), to: lane.path(lane.segments[1]))
        report = try StoreInspector.verify(directory: store)
        XCTAssertEqual(report.problems.count, 1)
        XCTAssertEqual(report.records, 9)
        let reader = try StoreReader(path: store)
        XCTAssertEqual(all(reader), whole)
        XCTAssertEqual(reader.problemCount, 1)

        // Its records are in an archive now, so the rest of the file no longer matters.
        try archive(lane, 2...2)
        report = try StoreInspector.verify(directory: store)
        XCTAssertEqual(report.problems, [])
        XCTAssertEqual(report.records, 9)
        XCTAssertEqual(report.archives, 2)
    }

    /// After another boot: what no sync covered, in lanes and in archives made of them.
    func testVerifyCountsWhatIsUnverified() throws {
        let boot = BootID.running()
        guard boot != .zero else { throw XCTSkip("no boot id") }
        let lane = sample()
        lane.bootID = LaneID(high: 5, low: 5)
        for segment in lane.segments + [lane.first] { segment.bootID = lane.bootID }
        lane.write()
        var report = try StoreInspector.verify(directory: store)
        XCTAssertTrue(report.isWhole, "\(report.problems)")
        XCTAssertEqual(report.records, 9)
        XCTAssertEqual(report.unverified, 9)
        let source = try lane.source(boot: boot, 3...3)
        let cover = ArchiveCover(
            laneID: lane.laneID, first: 3, last: 3, laneName: lane.name,
            seals: try source.content().seals)
        _ = try ArchiveWriter.write(
            source: source, covers: [cover], archivesDirectory: FilePath(archives()), codec: .zstd,
            level: 3,
            now: 5)
        report = try StoreInspector.verify(directory: store)
        XCTAssertTrue(report.isWhole, "\(report.problems)")
        XCTAssertEqual(report.records, 9)
        XCTAssertEqual(report.unverified, 9)
        let path = try XCTUnwrap(glob(archives()).first)
        XCTAssertEqual(try StoreInspector.verify(file: path).unverified, 3)
    }

    private func archives() -> String {
        mkdir(store + "/archives", 0o700)
        return store + "/archives"
    }

    private func glob(_ directory: String) -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        return names.map { directory + "/" + $0 }
    }

    func testManyLanes() throws {
        for id in UInt64(1)...300 {
            let lane = LaneBuilder(
                store: store, name: "20261121T0815\(10 + id % 50)Z-\(id)-\(id)", id: id)
            lane.first.chunk(thread: 1, sequence: 0, base: 0).text("of \(id)", at: 10_000 - id)
            lane.write()
        }
        let reader = try StoreReader(path: store)
        let got = all(reader)
        XCTAssertEqual(got, (1...300).reversed().map { "of \($0)" })
        XCTAssertEqual(reader.problemCount, 0)
    }

    /// Processes that began in the same second and log at the same times, as with a coarse clock:
    /// what else is read does not change the order of their records.
    func testEqualTimesComeInOneOrder() throws {
        for pid in [1210, 1200, 1220, 1205] {
            let lane = LaneBuilder(
                store: store, name: "20261121T081530Z-\(pid)-9f3c5a0de1b27788", id: UInt64(pid))
            let chunk = lane.first.chunk(thread: 1, sequence: 0, base: 100)
            for index in UInt64(0)..<60 {
                chunk.text(
                    "\(pid) \(index)", at: 100 + index / 7,
                    level: (index * 31 + UInt64(pid)) % 5 == 0 ? 17 : 9)
            }
            lane.write()
            if pid % 20 == 0 { try archive(lane, 0...0) }
        }
        var expected: [String] = []
        for time in 0..<9 {
            for pid in [1200, 1205, 1210, 1220] {
                expected += (0..<60).filter { $0 / 7 == time }.map { "\(pid) \($0)" }
            }
        }
        XCTAssertEqual(all(try StoreReader(path: store)), expected)
        var options = ReaderOptions()
        options.level = 17
        let errors = expected.filter {
            let numbers = $0.split(separator: " ").map { Int($0) ?? 0 }
            return (numbers[1] * 31 + numbers[0]) % 5 == 0
        }
        XCTAssertEqual(all(try StoreReader(path: store, options: options)), errors)
        options = ReaderOptions()
        for count in [1, 10, 50] {
            options.last = count
            XCTAssertEqual(
                all(try StoreReader(path: store, options: options)),
                expected.suffix(count))
        }
    }
}
