// Many archives with few descriptors: archives that were closed meanwhile are reopened if their
// names still lead to them, and a reader returns the same.

import CShims
import CordwoodTestSupport
import Glibc
import XCTest

@testable import CordwoodCore
@testable import CordwoodStore

final class OpenFilesTests: XCTestCase {
    private let scratch = Scratch()

    private func archive(_ seed: UInt64, dense: Bool = false) throws -> String {
        var maker = RecordMaker(seed: seed, processes: 1, threadsEach: 2)
        return try ArchiveWriter.write(
            source: FakeSource(maker.records(300)),
            covers: [
                ArchiveCover(
                    laneID: LaneID(high: 1, low: seed), first: 0, last: 3, laneName: "lane\(seed)")
            ],
            archivesDirectory: FilePath(scratch.path), codec: .zstd, level: 1, now: 5,
            effort: dense ? .dense : .swift, blockBytes: 4_000
        ).path.description
    }

    /// How many descriptors of archives this process has now.
    private func opened() -> Int {
        DirectoryListing("/proc/self/fd").names.count { name in
            let target = Files.target(of: FilePath("/proc/self/fd/\(name)")) ?? ""
            return target.hasPrefix(scratch.path) && target.contains(".cwa")
        }
    }

    private func options(_ files: Int?, ahead: Bool = false) -> ReaderOptions {
        var options = ReaderOptions()
        options.room = BlockRoom(bytesMax: 1 << 20, filesMax: files)
        options.readsAhead = ahead
        return options
    }

    func testFewAreOpenAtATime() throws {
        let paths = try (0..<12).map { try archive(100 + $0, dense: $0 % 2 == 0) }
        func read(_ options: ReaderOptions, most: Int) throws -> [String] {
            let reader = try StoreReader(paths: paths, options: options)
            var found: [String] = []
            while let record = reader.nextRecord() {
                found.append("\(record)")
                if found.count % 100 == 0 { XCTAssertLessThanOrEqual(opened(), most) }
            }
            XCTAssertEqual(reader.problemCount, 0)
            return found
        }
        let whole = try read(options(100), most: 12)
        XCTAssertEqual(whole.count, 3_600)
        for ahead in [false, true] {
            for files in [1, 3] {
                // The reader's thread and the one ahead have at least one each.
                XCTAssertEqual(
                    try read(options(files, ahead: ahead), most: max(files, 2)), whole)
            }
        }
        XCTAssertEqual(opened(), 0)
    }

    func testALowLimitOfDescriptorsIsEnough() throws {
        let paths = try (0..<90).map { try archive(200 + $0) }
        var old = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &old)
        // Above those that other tests have open, the lowest of which are free again.
        let others = DirectoryListing("/proc/self/fd").names.compactMap { UInt($0) }.max() ?? 0
        var low = old
        low.rlim_cur = rlim_t(others + 64)
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &low)
        defer { setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &old) }
        let reader = try StoreReader(paths: paths)
        var count = 0
        while reader.nextRecord() != nil { count += 1 }
        XCTAssertEqual(count, 90 * 300)
        XCTAssertEqual(reader.problemCount, 0)
    }

    /// Like a host that holds all of its descriptors but `free`.
    private func withDescriptors(_ free: Int, _ body: () throws -> Void) throws {
        var old = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &old)
        let highest = DirectoryListing("/proc/self/fd").names.compactMap { UInt($0) }.max() ?? 0
        var low = old
        low.rlim_cur = rlim_t(highest + 400)
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &low)
        var taken: [Int32] = []
        while case let one = open("/dev/null", O_RDONLY | O_CLOEXEC), one >= 0 { taken.append(one) }
        for _ in 0..<free { close(taken.removeLast()) }
        defer {
            taken.forEach { close($0) }
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &old)
        }
        try body()
    }

    func testAHostThatHasUsedNearlyAllDescriptorsIsReadToTheEnd() throws {
        try full()
        let count = 40
        let paths = try (0..<count).map { try archive(400 + UInt64($0), dense: $0 % 2 == 0) }
        let store = scratch.path + "/store"
        mkdir(store, 0o700)
        mkdir(store + "/archives", 0o700)
        for path in paths {
            writeAll(readAll(path), "\(store)/archives/\(path.split(separator: "/").last!)")
        }
        for free in [2, 3, 6] {
            for isAhead in [false, true] {
                for last in [0, 100] {
                    var (files, folder) = (0, 0)
                    var problems: [ReadProblem] = []
                    try withDescriptors(free) {
                        var options = ReaderOptions()
                        options.readsAhead = isAhead
                        options.last = last
                        let single = try StoreReader(paths: paths, options: options)
                        while single.nextRecord() != nil { files += 1 }
                        let whole = try StoreReader(path: store, options: options)
                        while whole.nextRecord() != nil { folder += 1 }
                        problems = single.problems + whole.problems
                    }
                    let wanted = last == 0 ? count * 300 : last
                    let what = "\(free) free, ahead \(isAhead), last \(last): \(problems)"
                    XCTAssertEqual([files, folder], [wanted, wanted], what)
                    XCTAssertEqual(problems.count, 0, what)
                }
            }
        }
    }

    func testAHostWithoutADescriptorIsToldSo() throws {
        let paths = [try archive(500), try archive(501)]
        let reader = try StoreReader(paths: paths, options: options(1))
        try withDescriptors(0) {
            for path in [paths[0], scratch.path] {
                XCTAssertThrowsError(try StoreReader(path: path)) { error in
                    XCTAssertTrue("\(error)".contains("errno: \(EMFILE)"), "\(error)")
                }
            }
            // A reader that has a descriptor is not disturbed.
            var count = 0
            while reader.nextRecord() != nil { count += 1 }
            XCTAssertEqual(count, 600)
            XCTAssertEqual(reader.problemCount, 0)
        }
    }

    /// Each holds a block in memory, but no decompressor of its own.
    func testManyArchivesAtATimeShareWhatInflates() throws {
        let count = 60
        let paths = try (0..<count).map { try archive(600 + UInt64($0)) }
        let before = mallinfo2()
        let reader = try StoreReader(paths: paths)
        for _ in 0..<(count * 100) { XCTAssertNotNil(reader.nextRecord()) }
        let after = mallinfo2()
        let taken = Int(after.uordblks + after.hblkhd) - Int(before.uordblks + before.hblkhd)
        XCTAssertLessThan(taken / count, 80_000, "bytes of an archive")
        while reader.nextRecord() != nil {}
        XCTAssertEqual(reader.problemCount, 0)
    }

    /// A lane whose file of names contains the logger of its record, and an attribute.
    private func laneWithGrownNames(_ store: String) -> (lane: LaneBuilder, names: [UInt8]) {
        for folder in ["", "/lanes", "/archives"] { mkdir(store + folder, 0o700) }
        let lane = LaneBuilder(store: store)
        lane.resource("service.name", "a")
        lane.resourceVersion = 2
        lane.first.chunk(thread: 1, sequence: 0, base: 0).text("x", at: 1, logger: 70)
        lane.write()
        var w = lane.catalogHead()
        w.raw(lane.entry(1, 70, Array("grown".utf8)))
        w.raw(lane.change(2, "user.id", "u"))
        return (lane, w.bytes)
    }

    func testNamesOfALaneAreNeverMissingSilently() throws {
        let store = scratch.path + "/lane"
        let (lane, names) = laneWithGrownNames(store)
        writeAll(names, "\(store)/lanes/\(lane.name).catalog-1")
        var lacks = 0
        for free in 0...4 {
            var shown: [String] = []
            var problems = ""
            try withDescriptors(free) {
                do {
                    let source = try lane.source()
                    let record = try XCTUnwrap(source.advance())
                    shown = record.thread.process.resource.map { "\($0.key)=\($0.value)" }
                    shown.append(String(decoding: record.logger, as: UTF8.self))
                } catch {
                    problems = "\(error)"
                }
            }
            let isWhole = shown == ["service.name=a", "user.id=u", "grown"]
            XCTAssertTrue(
                isWhole || problems.contains("errno: \(EMFILE)"),
                "\(free) free: \(shown) \(problems)")
            lacks += isWhole ? 0 : 1
        }
        XCTAssertTrue((1...3).contains(lacks), "\(lacks)")
    }

    /// Otherwise its archive would be sent and removed, and segment 0 archived once more.
    func testALaneThatCannotBeOpenedNowKeepsItsArchive() throws {
        let store = scratch.path + "/first"
        let (lane, _) = laneWithGrownNames(store)
        let lanes = LaneListing(directory: FilePath(store))
        let archive = "\(lane.name).00000000-00000000.0123456789abcdef.cwa"
        XCTAssertTrue(lanes.isCovered(archive: archive, FilePath(store)))
        try withDescriptors(0) { XCTAssertTrue(lanes.isCovered(archive: archive, FilePath(store))) }
        lane.archivedBelow = 1
        lane.write()
        XCTAssertFalse(lanes.isCovered(archive: archive, FilePath(store)))
    }

    /// The lane's file lost its header, a segment has one: the lane is neither damaged nor gone.
    func testASegmentThatCannotBeOpenedNowIsNotOneWithoutAHeader() throws {
        let store = scratch.path + "/headless"
        let (lane, _) = laneWithGrownNames(store)
        lane.segment(1).chunk(thread: 1, sequence: 1, base: 0).text("y", at: 2)
        lane.write()
        var journal = ByteWriter()
        journal.text("CWJRNL01")
        journal.u32(1)
        journal.pad(to: JournalHeader.bytes)
        writeAll(journal.bytes, "\(store)/lanes/\(lane.name).journal")
        for hasFile in [true, false] {
            if hasFile {
                writeAll([UInt8](repeating: 0, count: 65_536), lane.lanePath)
            } else {
                XCTAssertTrue(Files.remove(FilePath(lane.lanePath)))
            }
            let lost = hasFile ? "no lane header" : "errno: \(ENOENT))"
            var lacks = 0
            for free in 0...4 {
                var what = ""
                try withDescriptors(free) {
                    do {
                        let source = try lane.source()
                        while true {
                            do {
                                guard let record = try source.advance() else { break }
                                what += String(decoding: record.message, as: UTF8.self)
                            } catch {
                                let text = "\(error)"
                                if !text.contains(lost) { what += text }
                            }
                        }
                    } catch {
                        what = "\(error)"
                    }
                }
                XCTAssertTrue(
                    what == "y" || what.contains("errno: \(EMFILE)"), "\(free) free: \(what)")
                lacks += what == "y" ? 0 : 1
            }
            XCTAssertTrue((1...3).contains(lacks), "\(lacks)")
        }
    }

    func testNamesThatCameLaterAreReadOnceThereIsADescriptor() throws {
        let store = scratch.path + "/later"
        let (lane, names) = laneWithGrownNames(store)
        let source = try lane.source()
        writeAll(names, "\(store)/lanes/\(lane.name).catalog-1")
        let listed = try LaneFiles.list(store: FilePath(store)).first
        try source.refresh(files: listed)
        let record = try XCTUnwrap(source.advance())
        XCTAssertEqual(String(decoding: record.logger, as: UTF8.self), "grown")
        XCTAssertEqual(record.thread.process.resource.map(\.key), ["service.name", "user.id"])
    }

    func testWhatWasRemovedMeanwhileIsToldOnce() throws {
        for isReplaced in [false, true] {
            let paths = try (0..<2).map { try archive(300 + $0) }
            let reader = try StoreReader(paths: paths, options: options(1))
            for _ in 0..<100 { XCTAssertNotNil(reader.nextRecord()) }
            // The archive that is open now is read to its end.
            let held = DirectoryListing("/proc/self/fd").names.compactMap {
                Files.target(of: FilePath("/proc/self/fd/\($0)"))
            }.first { $0.hasPrefix(scratch.path) }
            let gone = try XCTUnwrap(paths.first { $0 != held })
            if isReplaced { writeAll(readAll(gone), gone + ".new") }
            XCTAssertTrue(Files.remove(FilePath(gone)))
            if isReplaced { XCTAssertTrue(Files.move(FilePath(gone + ".new"), to: FilePath(gone))) }
            var count = 100
            while reader.nextRecord() != nil { count += 1 }
            XCTAssertLessThan(count, 600)
            XCTAssertGreaterThanOrEqual(count, 300)
            XCTAssertEqual(reader.problemCount, 1)
            XCTAssertTrue("\(reader.problems)".contains(gone), "\(reader.problems)")
            Files.remove(FilePath(gone))
        }
    }
}
