// Lanes made by FORMAT, and the records read from them: every type of record, the order of threads,
// gaps, other boots, growth while reading, recycled files.

import CordwoodCore
import CordwoodStore
import CordwoodTestSupport
import Glibc
import XCTest

final class ReadLaneTests: XCTestCase {
    private var store = ""

    override func setUp() { store = TestFiles.directory() }
    override func tearDown() { TestFiles.remove(store) }

    func testTextRecordAsJSON() throws {
        let lane = LaneBuilder(store: store)
        lane.logger(3, "net.http")
        lane.first.chunk(thread: 1, sequence: 0, base: 100)
            .text("hello 7", at: 123_456_789, logger: 3)
        lane.write()
        let got = Drained(try lane.source())
        XCTAssertEqual(got.problems.count, 0)
        XCTAssertEqual(
            got.json,
            [
                """
                {"time":"1970-01-01T00:16:40.123456789Z","level":"INFO","logger":"net.http",\
                "message":"hello 7","pid":812,"tid":77,"kind":"log","process":"tester",\
                "service":null,"host":null,"resource":{},\
                "record_id":"070000000000000001000000000000010000000000000000"}

                """
            ])
    }

    /// Two threads that take turns, one of them with a chunk of that many bytes.
    private func byTurns(chunkBytes: Int) throws -> Drained {
        let lane = LaneBuilder(store: store)
        let segment = lane.segment(1)
        let large = segment.chunk(thread: 1, sequence: 0, base: 0)
        let small = segment.chunk(thread: 2, sequence: 0, base: 0)
        let text = String(repeating: "x", count: 1_000)
        let count = (chunkBytes - 128) / 1_016
        for number in 0..<count {
            large.text(text, at: UInt64(2 * number))
            small.text("y", at: UInt64(2 * number + 1))
        }
        XCTAssertLessThanOrEqual(large.end, chunkBytes)
        lane.write()
        return Drained(try lane.source())
    }

    /// Writers make chunks of up to 2 MiB, and other threads write at the same time.
    func testChunksOfAllSizesAreReadByTurns() throws {
        let got = try byTurns(chunkBytes: 2 << 20)
        XCTAssertEqual(got.problems.count, 0)
        XCTAssertEqual(got.json.count, 2 * ((2 << 20) - 128) / 1_016)
    }

    /// No writer of ours makes such a chunk, and rereading it for each record would never end.
    func testALargeChunkOfManyRecordsIsReported() throws {
        let got = try byTurns(chunkBytes: (2 << 20) + 4_096)
        XCTAssertEqual(got.problems.count, 1)
        XCTAssertTrue("\(got.problems)".contains("too many records"), "\(got.problems)")
    }

    func testEveryPartOfRichRecord() throws {
        let lane = LaneBuilder(store: store)
        lane.logger(1, "a")
        lane.site(
            9, line: 7, file: "a.c", function: "main", format: "order %d",
            types: [1])
        let chunk = lane.first.chunk(thread: 1, sequence: 4, base: 0)
        chunk.record(5, level: 0, fieldBytes([("user", .string("u1")), ("n", .int(5))]))
        chunk.record(6, level: 0, [UInt8](1...16) + [UInt8](1...8) + [1])
        var exception = ByteWriter()
        for text in ["T", "M", "S"] { exception.u32(UInt32(text.utf8.count)) }
        exception.text("TMS")
        var own = ByteWriter()
        own.u64(1_795_248_930_123_456_789)
        var original = ByteWriter()
        original.u64(99)
        let sections =
            section(1, Array("m\"\n\u{1}é".utf8) + [0xFF])
            + section(
                2,
                fieldBytes([
                    ("n", .int(-7)), ("d", .double(.nan)), ("b", .bool(true)),
                    ("u", .uint(.max)), ("f", .double(1.5)),
                ]))
            + section(3, [9, 0, 0, 0]) + section(6, own.bytes) + section(7, exception.bytes)
            + section(8, [3]) + section(9, original.bytes)
        chunk.record(2, at: 50, id: 1, level: 12, flags: 1, sections)
        chunk.record(5, level: 0, [0, 0])
        chunk.record(6, level: 0, [UInt8](repeating: 0, count: 25))
        chunk.record(3, at: 60, id: 1, level: 9, [9, 0, 0, 0, 7, 0, 0, 0])
        lane.write()
        let got = Drained(try lane.source())
        XCTAssertEqual(got.problems.count, 0)
        XCTAssertEqual(got.flags[0], .truncated)
        XCTAssertEqual(got.sequences, [4 << 32, 4 << 32 | 1])
        XCTAssertEqual(
            got.json[0],
            """
            {"time":"2026-11-21T08:15:30.123456789Z","level":"NOTICE+2","logger":"a",\
            "message":"m\\"\\n\\u0001é\u{FFFD}","message_base64":"bSIKAcOp/w==","pid":812,"tid":77,\
            "file":"a.c","line":7,"function":"main","fields":{"n":-7,"d":"NaN","b":true,\
            "u":18446744073709551615,"f":1.5,"user":"u1","exception.type":"T",\
            "exception.message":"M","exception.stacktrace":"S"},\
            "trace_id":"0102030405060708090a0b0c0d0e0f10","span_id":"0102030405060708",\
            "kind":"transaction","process":"tester","service":null,"host":null,"resource":{},\
            "record_id":"070000000000000001000000000000010000000400000000"}

            """)
        XCTAssertTrue(got.json[1].contains("\"message\":\"order 7\""))
        XCTAssertTrue(got.json[1].contains("\"level\":\"INFO\""))
        XCTAssertFalse(got.json[1].contains("user"))
        XCTAssertFalse(got.json[1].contains("trace_id"))
    }

    func testTruncatedTextTimeBaseSkipAndUnknown() throws {
        let lane = LaneBuilder(store: store)
        let chunk = lane.first.chunk(thread: 1, sequence: 0, base: 10)
        var cut = ByteWriter()
        cut.u64(4_096)
        cut.text("begin")
        chunk.record(1, at: 20, flags: 1, cut.bytes)
        chunk.record(8, at: 20, level: 0, [1, 2, 3])
        chunk.record(200, at: 20, level: 0, [1])
        chunk.newBase(9_000_000_000)
        chunk.text("later", at: 9_000_000_007)
        chunk.newBase(500)
        chunk.text("clock went back", at: 501)
        lane.write()
        let source = try lane.source()
        let record = try XCTUnwrap(try source.advance())
        XCTAssertEqual(record.originalLength, 4_096)
        XCTAssertEqual(String(decoding: record.message, as: UTF8.self), "begin")
        let rest = Drained(source)
        XCTAssertEqual(rest.messages, ["later", "clock went back"])
        XCTAssertEqual(rest.times, [9_000_000_007, 501])
        XCTAssertEqual(rest.sequences, [1, 2])
    }

    func testGapRecordAndUnreportedDrops() throws {
        let lane = LaneBuilder(store: store)
        lane.drops = [(12, 0, 5, 900), (0, 0, 0, 0), (4, 3, 100, 2_000)]
        let chunk = lane.first.chunk(thread: 1, sequence: 0, base: 0)
        var gap = ByteWriter()
        gap.u32(0)
        gap.u32(0)
        for word: UInt64 in [0, 10, 5, 800, 0] { gap.u64(word) }
        chunk.record(7, at: 850, level: 0, gap.bytes)
        chunk.text("after", at: 1_000)
        lane.write()
        let got = Drained(try lane.source())
        XCTAssertEqual(
            got.messages, ["10 records were not kept", "after", "3 records were not kept"])
        XCTAssertTrue(
            got.json[0].contains(
                """
                "level":"WARN","logger":"Cordwood","message":"10 records were not kept"
                """), got.json[0])
        XCTAssertTrue(
            got.json[0].contains(
                """
                "fields":{"gap.records":10,"gap.first":1000000000005,"gap.last":1000000000800,\
                "gap.runs":"0:0-10"}
                """), got.json[0])
        XCTAssertTrue(got.json[0].contains("\"kind\":\"gap\""))
        XCTAssertEqual(got.times[2], 2_000)
    }

    func testThreadsMergeByTimeAndKeepTheirOwnOrder() throws {
        let lane = LaneBuilder(store: store)
        let a = lane.first.chunk(thread: 1, sequence: 0, base: 0)
        let b = lane.first.chunk(thread: 2, sequence: 0, base: 0)
        a.text("a0", at: 10).text("a1", at: 30)
        b.text("b0", at: 20).text("b1", at: 40)
        let second = lane.segment(1)
        second.created = 25
        let a2 = second.chunk(thread: 1, sequence: 1, base: 0)
        a2.text("a2", at: 29).text("a3", at: 50)
        let nested = second.chunk(thread: 2, sequence: 1, base: 0)
        nested.stream = 1
        nested.text("nested", at: 35)
        lane.write()
        let got = Drained(try lane.source())
        // a2 is stamped before a1, but its thread wrote it later.
        XCTAssertEqual(got.messages, ["a0", "b0", "a1", "a2", "nested", "b1", "a3"])
        XCTAssertEqual(Drained(try lane.source(boot: .zero, 1...1)).messages.first, "a2")
        let one = try lane.source()
        XCTAssertEqual(one.segmentNumbers, [0, 1])
    }

    func testManyChunksWithHolesInRandomOrder() throws {
        var random = SplitMix(42)
        let lane = LaneBuilder(store: store)
        lane.first.state = 3
        var expected: [(UInt64, String)] = []
        var now: UInt64 = 0
        for number in 1...4 {
            let segment = lane.segment(UInt64(number))
            segment.created = now
            segment.holes = number - 1
            segment.state = number < 4 ? 3 : 1
            var open: [UInt32: ChunkBuilder] = [:]
            var next: [UInt32: UInt32] = [:]
            for _ in 0..<3_000 {
                now += UInt64.random(in: 1...1_000, using: &random)
                let thread = UInt32.random(in: 1...9, using: &random)
                if open[thread] == nil || open[thread]!.end > 3_000 {
                    let sequence = next[thread, default: UInt32(number) * 1_000]
                    next[thread] = sequence + 1
                    open[thread] = segment.chunk(thread: thread, sequence: sequence, base: now)
                }
                let message = "\(now) of \(thread)"
                open[thread]!.text(message, at: now)
                expected.append((now, message))
            }
        }
        lane.write()
        let source = try lane.source()
        let got = Drained(source)
        XCTAssertEqual(got.problems.count, 0)
        XCTAssertEqual(got.messages, expected.map(\.1))
    }

    func testArchivedBelowIsPassedOver() throws {
        let lane = LaneBuilder(store: store)
        lane.archivedBelow = 2
        lane.first.chunk(thread: 1, sequence: 0, base: 0).text("zero", at: 1)
        for number: UInt64 in 1...2 {
            lane.segment(number).chunk(thread: 1, sequence: UInt32(number), base: 0)
                .text("of \(number)", at: number)
        }
        lane.write()
        XCTAssertEqual(Drained(try lane.source()).messages, ["of 2"])
    }

    func testNameAndHeaderMustAgree() throws {
        let lane = LaneBuilder(store: store)
        let segment = lane.segment(1, generation: 3)
        segment.chunk(thread: 1, sequence: 0, base: 0).text("recycled", at: 1)
        lane.write()
        let path = lane.path(segment)
        rename(path, path.dropLast("0003.seg".count) + "0002.seg")
        let got = Drained(try lane.source())
        XCTAssertEqual(got.messages, [])
        XCTAssertEqual(got.problems.count, 1)
    }

    func testWrongChecksumIsToldOnceAndRecordsShown() throws {
        let lane = LaneBuilder(store: store)
        lane.first.state = 3
        let bad = lane.first.chunk(thread: 1, sequence: 0, base: 0)
        bad.isCRCRight = false
        bad.text("shown", at: 1)
        lane.first.chunk(thread: 1, sequence: 1, base: 0).text("whole", at: 2)
        lane.write()
        let source = try lane.source()
        let got = Drained(source)
        XCTAssertEqual(got.messages, ["shown", "whole"])
        XCTAssertEqual(got.problems.count, 1)
        XCTAssertEqual(source.damage.count, 1)
    }

    func testNewerVersionIsRefused() throws {
        let lane = LaneBuilder(store: store)
        lane.write()
        var bytes = lane.laneBytes()
        bytes[8] = 2
        TestFiles.write(bytes, to: lane.lanePath)
        XCTAssertThrowsError(try lane.source()) { error in
            guard case ReadProblem.version = error else { return XCTFail("\(error)") }
        }
    }

    func testFollowingGivesNothingTwice() throws {
        let lane = LaneBuilder(store: store)
        lane.closed = 0
        let chunk = lane.first.chunk(thread: 1, sequence: 0, base: 0)
        chunk.isSettled = false
        chunk.size = 8_192
        chunk.text("one", at: 1)
        lane.write()
        let source = try lane.source()
        XCTAssertEqual(Drained(source).messages, ["one"])
        XCTAssertEqual(Drained(source).messages, [])
        chunk.text("two", at: 2)
        lane.logger(5, "late.name")
        chunk.text("named", at: 3, logger: 5)
        lane.write()
        XCTAssertEqual(Drained(source).messages, [])
        try source.refresh()
        let more = Drained(source)
        XCTAssertEqual(more.messages, ["two", "named"])
        XCTAssertTrue(more.json[1].contains("late.name"))
        chunk.isSettled = true
        lane.first.chunk(thread: 2, sequence: 0, base: 0).text("other thread", at: 4)
        let next = lane.segment(1)
        next.chunk(thread: 1, sequence: 1, base: 0).text("next segment", at: 5)
        lane.write()
        try source.refresh()
        XCTAssertEqual(Drained(source).messages, ["other thread", "next segment"])
        // Sealing sets the checksums of chunks that were read.
        lane.first.state = 3
        lane.write()
        try source.refresh()
        let sealed = Drained(source)
        XCTAssertEqual(sealed.messages, [])
        XCTAssertEqual(sealed.problems.map { "\($0)" }, [])
    }

    func testHoldKeepsYoungRecordsBack() throws {
        let lane = LaneBuilder(store: store)
        lane.first.chunk(thread: 1, sequence: 0, base: 0).text("old", at: 10).text("young", at: 50)
        lane.write()
        let source = try lane.source()
        source.holdAfter = 20
        XCTAssertEqual(Drained(source).messages, ["old"])
        let slow = lane.first.chunk(thread: 2, sequence: 0, base: 0)
        slow.text("slow thread", at: 40)
        lane.write()
        try source.refresh()
        source.holdAfter = 60
        XCTAssertEqual(Drained(source).messages, ["slow thread", "young"])
    }

    /// A lane whose first chunk is open, that chunk, and a source that has read it.
    private func cutLater(
        _ texts: (String, UInt64)...
    ) throws -> (LaneBuilder, ChunkBuilder, LaneSource) {
        let lane = LaneBuilder(store: store)
        let chunk = lane.first.chunk(thread: 1, sequence: 0, base: 0)
        chunk.isSettled = false
        for (text, at) in texts { chunk.text(text, at: at) }
        lane.write()
        let source = try lane.source()
        XCTAssertEqual(Drained(source).messages, texts.map(\.0))
        return (lane, chunk, source)
    }

    /// The sealer's verdict was short of what the writer committed: the writer appends again.
    func testRecordAppendedAgainIsGivenOnce() throws {
        let (lane, chunk, source) = try cutLater(("kept", 1), ("again", 2))
        chunk.cut(by: 24)
        lane.segment(1).chunk(thread: 1, sequence: 1, base: 0).text("again", at: 2)
            .text("new", at: 3)
        lane.write()
        try source.refresh()
        XCTAssertEqual(Drained(source).messages, ["new"])
        XCTAssertEqual(Drained(try lane.source()).messages, ["kept", "again", "new"])
    }

    /// The chunk of the copy was settled short of it, too.
    func testRecordAppendedTwiceAgainIsGivenOnce() throws {
        let (lane, first, source) = try cutLater(("again", 2))
        first.cut(by: 24)
        let second = lane.segment(1).chunk(thread: 1, sequence: 1, base: 0)
        second.isSettled = false
        second.text("again", at: 2)
        lane.write()
        try source.refresh()
        XCTAssertEqual(Drained(source).messages, [])
        second.cut(by: 24)
        lane.segment(2).chunk(thread: 1, sequence: 2, base: 0).text("again", at: 2)
            .text("new", at: 3)
        lane.write()
        try source.refresh()
        XCTAssertEqual(Drained(source).messages, ["new"])
        XCTAssertEqual(Drained(try lane.source()).messages, ["again", "new"])
    }

    /// A record was loaded, and its chunk settled short of it before it was returned. Its copy is
    /// in the next chunk, which may be in an archive by then.
    func testRecordCutOffBeforeItIsGivenIsLeftToItsCopy() throws {
        let lane = LaneBuilder(store: store)
        let chunk = lane.first.chunk(thread: 1, sequence: 0, base: 0)
        chunk.isSettled = false
        chunk.text("kept", at: 1).text("again", at: 30)
        lane.write()
        let source = try lane.source()
        source.holdAfter = 20
        XCTAssertEqual(Drained(source).messages, ["kept"])
        chunk.cut(by: 24)
        lane.write()
        try source.refresh()
        source.holdAfter = 100
        XCTAssertEqual(Drained(source).messages, [])
        lane.segment(1).chunk(thread: 1, sequence: 1, base: 0).text("again", at: 31)
            .text("again", at: 32)
        lane.write()
        try source.refresh()
        XCTAssertEqual(Drained(source).messages, ["again", "again"])
    }

    /// The record was returned before its chunk was settled short of it; a gap record comes first.
    func testGapBeforeTheCopyIsGiven() throws {
        let (lane, chunk, source) = try cutLater(("again", 1))
        chunk.cut(by: 24)
        var gap = ByteWriter()
        gap.u32(0)
        gap.u32(0)
        for word: UInt64 in [0, 10, 1, 2, 0] { gap.u64(word) }
        let next = lane.segment(1).chunk(thread: 1, sequence: 1, base: 0)
        next.record(7, at: 0, level: 0, gap.bytes)
        next.text("again", at: 3).text("new", at: 4)
        lane.write()
        try source.refresh()
        XCTAssertEqual(Drained(source).messages, ["10 records were not kept", "new"])
    }

    /// A record that was cut off and then refused, or abandoned by longjmp, has no copy: the next
    /// record of its thread is another one.
    func testRecordThatWasNotAppendedAgainTakesNoOtherAway() throws {
        let (lane, chunk, source) = try cutLater(("kept", 1), ("refused", 2))
        chunk.cut(by: 24)
        lane.segment(1).chunk(thread: 1, sequence: 1, base: 0).text("next", at: 3)
            .text("refused", at: 4)
        lane.write()
        try source.refresh()
        XCTAssertEqual(Drained(source).messages, ["next", "refused"])
    }

    func testRecycledFileIsLostNotMisread() throws {
        let lane = LaneBuilder(store: store)
        let segment = lane.segment(1)
        for index in 0..<3 {
            segment.chunk(thread: 1, sequence: UInt32(index), base: UInt64(index) * 10)
                .text("first \(index)", at: UInt64(index) * 10)
                .text("second \(index)", at: UInt64(index) * 10 + 1)
        }
        lane.write()
        let source = try lane.source()
        let record = try XCTUnwrap(try source.advance())
        XCTAssertEqual(String(decoding: record.message, as: UTF8.self), "first 0")
        let other = SegmentBuilder(
            number: 9, generation: 1, laneID: lane.laneID, bootID: lane.bootID)
        other.chunk(thread: 1, sequence: 9, base: 0).text("stranger", at: 5)
        TestFiles.write(other.bytes(), to: lane.path(segment))
        let rest = Drained(source)
        XCTAssertEqual(rest.messages, ["second 0"])
        XCTAssertEqual(source.lostSegments, [1])
        XCTAssertTrue(source.covers(thread: 1, sequence: 1))
        XCTAssertFalse(source.covers(thread: 1, sequence: 1 << 32))
        XCTAssertFalse(source.covers(thread: 1, sequence: 9 << 32))
    }

    /// Their clock is lost, so they have the time of their file, live and archived: they are not
    /// removed for their age.
    func testRecordsWithoutAClockAreAsOldAsTheirFile() throws {
        let lane = LaneBuilder(store: store, boot: 5)
        lane.first.state = 3
        let sealed = lane.segment(1)
        sealed.state = 3
        sealed.pairs = []
        sealed.chunk(thread: 1, sequence: 1, base: 40_000_000_000_000).text(
            "unverified", at: 40_000_000_001_000)
        lane.write()
        mkdir(store + "/archives", 0o700)
        func look(_ what: String) throws {
            let record = try XCTUnwrap(try StoreReader(path: store).nextRecord(), what)
            XCTAssertEqual(record.message, "unverified", what)
            let age = Int64(time(nil)) - Int64(record.time / 1_000_000_000)
            XCTAssertTrue((-1...60).contains(age), "\(what): \(age) s old")
        }
        try look("live")
        _ = try StoreArchiver.archiveDead(directory: FilePath(store))
        XCTAssertEqual(try LaneFiles.names(in: FilePath(store + "/lanes")), [])
        try look("archived")
    }

    func testOtherBootBelievesChecksumsAndJournal() throws {
        let lane = LaneBuilder(store: store, boot: 5)
        lane.first.state = 3
        lane.first.pairs = [(1, 1, 1_000_000_000_001)]  // of ticks 0: lost with the power
        lane.first.chunk(thread: 1, sequence: 0, base: 0).text("sealed", at: 1)
        let live = lane.segment(1)
        live.pairs = lane.first.pairs
        let chunk = live.chunk(thread: 1, sequence: 1, base: 0)
        chunk.isSettled = false
        chunk.text("flushed", at: 2)
        let covered = chunk.end
        chunk.text("not flushed", at: 3)
        lane.write()
        var torn = live.bytes()
        let at = live.offset(of: 0)
        let frame = Array(torn[at..<(at + covered)])
        for index in (at + 128)..<(at + covered) { torn[index] = 0 }
        TestFiles.write(torn, to: lane.path(live))

        var w = ByteWriter()
        w.text("CWJRNL01")
        w.u32(1)
        w.u32(0)
        w.u64(lane.laneID.high)
        w.u64(lane.laneID.low)
        w.u64(0xABCD)
        w.pad(to: 64)
        let start = w.bytes.count
        w.u64(0xABCD)
        w.u32(UInt32(112 + covered - 128))
        w.u32(0)
        w.u32(1)
        w.u32(0)
        w.u64(1)
        w.u64(UInt64(at))
        w.u32(128)
        w.u32(UInt32(covered))
        w.raw(Array(frame[0..<64]))
        w.raw(Array(frame[128...]))
        ByteWriter.put(slowCRC(w.bytes[(start + 16)...]), at: start + 12, in: &w.bytes)
        TestFiles.write(w.bytes, to: "\(store)/lanes/\(lane.name).journal")

        let got = Drained(try lane.source(boot: LaneID(high: 6, low: 6)))
        XCTAssertEqual(got.messages, ["sealed", "flushed", "not flushed"])
        XCTAssertEqual(got.flags, [[], [], .unverified])
        // Without the segment's chunk header, only the journal still has what was flushed.
        for index in at..<torn.count { torn[index] = 0 }
        TestFiles.write(torn, to: lane.path(live))
        let alone = Drained(try lane.source(boot: LaneID(high: 6, low: 6)))
        XCTAssertEqual(alone.messages, ["sealed", "flushed"])
        XCTAssertEqual(alone.flags, [[], []])
    }

    func testOtherBootWithoutJournalIsUnverified() throws {
        let lane = LaneBuilder(store: store, boot: 5)
        lane.first.chunk(thread: 1, sequence: 0, base: 0).text("maybe", at: 1)
        lane.write()
        XCTAssertEqual(
            Drained(try lane.source(boot: LaneID(high: 6, low: 6))).flags, [.unverified])
        XCTAssertEqual(Drained(try lane.source(boot: lane.bootID)).flags, [[]])
    }

    func testResourceAndCatalogGrowth() throws {
        let lane = LaneBuilder(store: store)
        lane.resource("service.name", "a")
        lane.resource("user.id", "u")
        lane.resource("service.name", "b")
        lane.resource("user.id", "")
        lane.write()
        var w = lane.catalogHead()
        w.pad(to: CatalogHeader.bytes + 32)  // a hole: its writer died before it stored the entry
        w.raw(lane.entry(1, 70, Array("grown".utf8)))
        TestFiles.write(w.bytes, to: "\(store)/lanes/\(lane.name).catalog-1")
        lane.first.chunk(thread: 1, sequence: 0, base: 0).text("x", at: 1, logger: 70)
        lane.write()
        let source = try lane.source()
        let record = try XCTUnwrap(try source.advance())
        XCTAssertEqual(String(decoding: record.logger, as: UTF8.self), "grown")
        XCTAssertEqual(
            record.thread.process.resource.map { "\($0.key)=\($0.value)" },
            ["service.name=b"])
    }

    func testSingleFiles() throws {
        let lane = LaneBuilder(store: store)
        lane.logger(1, "n")
        lane.first.chunk(thread: 1, sequence: 0, base: 0).text("zero", at: 1, logger: 1)
        let segment = lane.segment(1)
        segment.chunk(thread: 1, sequence: 1, base: 0).text("one", at: 2, logger: 1)
        lane.write()
        let first = Drained(
            try SegmentFileSource.open(path: FilePath(lane.lanePath), runningBoot: .zero))
        XCTAssertEqual(first.messages, ["zero"])
        let path = lane.path(segment)
        let second = Drained(try SegmentFileSource.open(path: FilePath(path), runningBoot: .zero))
        XCTAssertEqual(second.messages, ["one"])
        XCTAssertTrue(second.json[0].contains("\"logger\":\"n\""))
        unlink(lane.lanePath)
        let third = Drained(try SegmentFileSource.open(path: FilePath(path), runningBoot: .zero))
        XCTAssertEqual(third.messages, ["one"])
        XCTAssertTrue(third.json[0].contains("\"pid\":812"))
    }
}
