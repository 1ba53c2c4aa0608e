// What the command line remembers of archives changes only the time it takes: stores read without
// it, with an empty one and with a full one give the same. Whatever is in its folder, it is used
// only if it is the user's own and whole. It contains nothing of archives that are gone or
// encrypted.

import CordwoodTestSupport
import Glibc
import XCTest

@testable import CordwoodCore
@testable import CordwoodStore

final class FactsCacheTests: XCTestCase {
    private var scratch = Scratch()
    private var store: String { scratch.path + "/store" }
    private var home: String { scratch.path + "/home" }
    private var folder: String { home + "/.cache/cordwood" }

    override func setUp() {
        scratch = Scratch()
        for name in ["store", "store/lanes", "store/archives", "home"] {
            mkdir(scratch.path + "/" + name, 0o700)
        }
    }

    private func cache(_ more: [String: String] = [:]) -> FactsCache? {
        let environment = ["HOME": home].merging(more) { $1 }
        return FactsCache.find { environment[$0] }
    }

    private var file: String? {
        DirectoryListing(FilePath(folder), hidden: true).names.first { !$0.hasPrefix(".") }
            .map { "\(folder)/\($0)" }
    }

    private func name(_ number: Int) -> String {
        let digits = TwoDigits.text(number)
        return "20261121T0815\(digits)Z-\(1_000 + number)-00000000000000\(digits)"
    }

    private func path(_ number: Int) -> String {
        let covers = [cover(number)]
        let name = ArchiveIdentity.fileName(of: covers, ArchiveIdentity.id(covers))
        return "\(store)/archives/\(name)"
    }

    private func cover(
        _ lane: Int, _ segments: ClosedRange<UInt64> = 0...1
    ) -> ArchiveCover {
        ArchiveCover(
            laneID: LaneID(high: 7, low: UInt64(lane)), first: segments.lowerBound,
            last: segments.upperBound, laneName: name(lane))
    }

    @discardableResult
    private func archive(
        _ number: Int, seed: UInt64? = nil, recipients: [AgeRecipient] = [],
        replaced: [LaneID] = [], lane: Int? = nil, covering lanes: Range<Int> = 0..<0
    ) throws -> ArchiveInfo {
        let segments = lane.map { _ in UInt64(number)...UInt64(number) } ?? 0...1
        let lane = lane ?? number
        var maker = RecordMaker(seed: seed ?? UInt64(number), processes: 1, threadsEach: 2)
        return try ArchiveWriter.write(
            source: FakeSource(maker.records(40)),
            covers: lanes.map { cover($0, segments) } + [cover(lane, segments)],
            archivesDirectory: FilePath(store + "/archives"),
            codec: .zstd, level: 1, now: 5, recipients: recipients,
            effort: number % 8 == 0 ? .dense : .swift, blockBytes: 1_500,
            replaced: replaced.map { ReplacedArchive(id: $0, recordCount: 40) })
    }

    private func fill(_ count: Int = 40) throws { for number in 0..<count { try archive(number) } }

    /// Everything that readers return: all records, the last ones, the figures.
    private func read(_ cache: FactsCache?) throws -> [String] {
        var found: [String] = []
        for last in [0, 7] {
            var options = ReaderOptions()
            options.facts = cache
            options.last = last
            let reader = try StoreReader(path: store, options: options)
            while let record = reader.nextRecord() { found.append("\(record)") }
            found += reader.problems.map { "\($0)" }
        }
        return found + (try figures(cache))
    }

    /// `stats` of everything, and with various options.
    private func figures(_ cache: FactsCache?) throws -> [String] {
        let start: UInt64 = 1_700_000_000_000_000_000
        let changes: [(inout ReaderOptions) -> Void] = [
            { _ in }, { $0.level = 1 }, { $0.level = 9 }, { $0.level = 17 }, { $0.level = 24 },
            { $0.since = start + 1 }, { $0.until = start + 20_000 },
            { ($0.since, $0.until) = (start / 2, start * 2) }, { $0.logger = "app" },
            { $0.kinds = 1 }, { $0.containing = Array("took 1".utf8) },
            { $0.conditions = [(key: "k", value: "v")] },
        ]
        return try changes.map { change in
            var options = ReaderOptions()
            options.facts = cache
            change(&options)
            return "\(try StoreInspector.stats(path: store, options: options))"
        }
    }

    /// How many archives a reader finds facts of.
    private func remembered(_ cache: FactsCache?) throws -> Int {
        guard let facts = cache?.facts(ofStore: FilePath(store)) else { return 0 }
        let paths = try StoreFolder.archives(FilePath(store))
        facts.begin(paths.count)
        return paths.count { facts.find($0).facts != nil }
    }

    /// Fills the cache and returns what was read.
    @discardableResult
    private func learn() throws -> [String] {
        let cold = try XCTUnwrap(cache())
        let found = try read(cold)
        cold.save()
        return found
    }

    private func bytes(_ path: String) -> [UInt8] { readAll(path) }

    // MARK: What it gives

    /// Also for archives whose first record was not needed.
    func testTimesThatTailLookedAtAreRemembered() throws {
        for number in 0..<40 { try archive(number, seed: 1, lane: 1) }
        let cold = try XCTUnwrap(cache())
        func last(_ cache: FactsCache) throws -> Int {
            var options = ReaderOptions()
            options.facts = cache
            options.last = 7
            let reader = try StoreReader(path: store, options: options)
            var count = 0
            while reader.nextRecord() != nil { count += 1 }
            return count
        }
        XCTAssertEqual(try last(cold), 7)
        cold.save()
        let facts = try XCTUnwrap(cache()?.facts(ofStore: FilePath(store)))
        facts.begin(40)
        let paths = try StoreFolder.archives(FilePath(store))
        let process = try XCTUnwrap(facts.find(paths[0]).facts?.first?.process)
        let found = try XCTUnwrap(paths.dropFirst().compactMap { facts.find($0).facts }.last)
        let block = try XCTUnwrap(found.blocks).count - 1
        let source = try ArchiveSource.open(path: found.info.path)
        let times = try XCTUnwrap(source.times(ofBlock: block, of: process, offset: 0))
        XCTAssertNil(found.first)
        XCTAssertEqual(
            found.times(ofBlock: block, of: process).map { "\($0)" }, "\(times)")
        let other = ProcessInfo(
            laneID: process.laneID, bootID: LaneID(high: 9, low: 9), processID: 0, name: "",
            createdRealtime: 0, createdMonotonic: 0, resource: [])
        XCTAssertNil(found.times(ofBlock: block, of: other))
    }

    func testAReaderFindsTheSameWithAndWithoutIt() throws {
        try fill()
        let plain = try read(nil)
        XCTAssertGreaterThan(plain.count, 1_600)
        XCTAssertEqual(try learn(), plain)
        XCTAssertEqual(try remembered(cache()), 40)
        XCTAssertEqual(try read(cache()), plain)
        // Remembered facts are those of an opened archive.
        let facts = try XCTUnwrap(cache()?.facts(ofStore: FilePath(store)))
        facts.begin(40)
        for number in 0..<40 {
            let source = try ArchiveSource.open(path: FilePath(path(number)))
            let found = try XCTUnwrap(facts.find(FilePath(path(number))).facts)
            XCTAssertEqual("\(found.info)", "\(source.header)")
            XCTAssertEqual(found.blocks, source.intactBlocks)
            XCTAssertGreaterThan(found.blocks?.count ?? 0, 1)
            XCTAssertEqual(found.first?.monotonicNs, source.createdMonotonicNs)
            XCTAssertEqual(found.first?.process.laneID, source.process?.laneID)
            XCTAssertEqual(found.first?.process.bootID, source.process?.bootID)
            XCTAssertEqual(
                found.first?.process.createdMonotonic, source.process?.createdMonotonic)
            XCTAssertEqual(found.first?.process.createdRealtime, source.process?.createdRealtime)
        }
    }

    /// Archives that a compacting command that died left beside the one that replaces them.
    func testWhatAnotherArchiveReplacesIsPassedOverFromMemory() throws {
        try fill()
        let all = try read(nil)
        let old = try (0..<3).map { try archive($0).id }
        try archive(80, seed: 3, replaced: old, covering: 0..<3)
        let plain = try read(nil)
        XCTAssertLessThan(plain.count, all.count)
        XCTAssertEqual(try learn(), plain)
        XCTAssertEqual(try remembered(cache()), 41)
        XCTAssertEqual(try read(cache()), plain)
    }

    func testADigestIsWhatARecordsCountGives() throws {
        try fill()
        try learn()
        let facts = try XCTUnwrap(cache()?.facts(ofStore: FilePath(store)))
        facts.begin(40)
        var seen = 0
        for number in 0..<40 {
            let found = try XCTUnwrap(facts.find(FilePath(path(number))).facts)
            guard let digest = found.digest else {
                XCTAssertFalse(ArchiveDigest.suffices(for: found.info))
                continue
            }
            var levels = [LevelDigest](repeating: LevelDigest(), count: 25)
            let reader = try StoreReader(path: path(number))
            while let record = reader.nextRecord() {
                let level = Int(record.level)
                levels[level].records += 1
                levels[level].timeMin = min(levels[level].timeMin, record.time)
                levels[level].timeMax = max(levels[level].timeMax, record.time)
                levels[level].seconds[record.time / 1_000_000_000, default: 0] += 1
                let logger = digest.loggers.firstIndex(of: Array(record.logger.utf8)) ?? -1
                levels[level].loggers[logger, default: 0] += 1
                levels[level].processes[0, default: 0] += 1
                seen += 1
            }
            XCTAssertEqual(digest.levels, levels, "\(number)")
            XCTAssertEqual(digest.processes.count, 1)
        }
        XCTAssertGreaterThan(seen, 200)
    }

    /// The figures come from remembered facts if the query allows.
    func testStatsAsksNoArchiveThatIsRemembered() throws {
        try fill()
        try learn()
        let wrong = try XCTUnwrap(cache())
        let facts = try XCTUnwrap(wrong.facts(ofStore: FilePath(store)))
        facts.begin(40)
        var changed: UInt64 = 0
        for number in 0..<40 {
            let found = try XCTUnwrap(facts.find(FilePath(path(number))).facts)
            guard var digest = found.digest else { continue }
            for level in digest.levels.indices where digest.levels[level].records > 0 {
                digest.levels[level].records += 1_000
                changed += 1
            }
            found.learn(digest)
        }
        XCTAssertGreaterThan(changed, 20)
        wrong.save()
        var options = ReaderOptions()
        let right = try StoreInspector.stats(path: store, options: options).records
        options.facts = cache()
        XCTAssertEqual(
            try StoreInspector.stats(path: store, options: options).records,
            right + changed * 1_000)
        options.logger = "app"
        let asked = try StoreInspector.stats(path: store, options: options).records
        options.facts = nil
        XCTAssertEqual(try StoreInspector.stats(path: store, options: options).records, asked)
    }

    func testItIsPrivateAndWrittenOnlyWithNews() throws {
        try fill()
        try learn()
        let file = try XCTUnwrap(file)
        var status = stat()
        XCTAssertEqual(stat(file, &status), 0)
        XCTAssertEqual(status.st_mode & 0o777, 0o600)
        XCTAssertEqual(stat(folder, &status), 0)
        XCTAssertEqual(status.st_mode & 0o777, 0o700)
        let before = FileFacts(at: FilePath(file))?.inode
        let warm = try XCTUnwrap(cache())
        _ = try read(warm)
        warm.save()
        XCTAssertEqual(FileFacts(at: FilePath(file))?.inode, before, "nothing is new")
        try archive(77)
        try learn()
        XCTAssertNotEqual(FileFacts(at: FilePath(file))?.inode, before)
        XCTAssertEqual(try remembered(cache()), 41)
    }

    func testAHostsReadersHaveNone() throws {
        try fill()
        XCTAssertNil(ReaderOptions().facts)
        _ = try read(nil)
        XCTAssertEqual(DirectoryListing(FilePath(home), hidden: true).names, [])
    }

    func testASmallStoreHasNone() throws {
        try fill()
        try learn()
        for number in 20..<40 { unlink(path(number)) }
        let plain = try read(nil)
        XCTAssertEqual(try learn(), plain)
        XCTAssertNil(file, "nothing stays of archives that are gone")
    }

    // MARK: What it must not believe

    func testEveryDamagedByteMeansThatThereIsNothing() throws {
        try fill(32)
        let plain = try learn()
        let file = try XCTUnwrap(file)
        let good = bytes(file)
        var places = Array(0..<40) + Array(good.count - 8..<good.count)
        places += stride(from: 40, to: good.count - 8, by: good.count / 150)
        for place in places {
            var damaged = good
            damaged[place] ^= 1 << UInt8(place % 8)
            overwrite(file, damaged)
            XCTAssertEqual(try remembered(cache()), 0, "\(place)")
        }
        for size in stride(from: 0, to: good.count, by: good.count / 50) {
            overwrite(file, Array(good[..<size]))
            XCTAssertEqual(try remembered(cache()), 0, "\(size) bytes")
        }
        XCTAssertEqual(try learn(), plain)
        XCTAssertEqual(try remembered(cache()), 32, "it was made anew")
    }

    /// A checksum is no proof: the content is parsed as if it were hostile.
    func testHostileContentIsParsedAndRefused() throws {
        try fill(32)
        try learn()
        let file = try XCTUnwrap(file)
        let good = bytes(file)
        var refused = 0
        for seed in SplitMix.seeds(400) {
            var random = SplitMix(seed)
            var damaged = Array(good.dropLast(4))
            for _ in 0...random.below(3) {
                damaged[32 + random.below(damaged.count - 32)] = UInt8(random.below(256))
            }
            let crc = damaged.withUnsafeBytes { checksum($0, from: 0) }
            withUnsafeBytes(of: crc.littleEndian) { damaged += Array($0) }
            overwrite(file, damaged)
            if try remembered(cache()) < 32 { refused += 1 }
        }
        XCTAssertGreaterThan(refused, 20)
    }

    private func overwrite(_ path: String, _ bytes: [UInt8]) { writeAll(bytes, path) }

    func testAnotherStoreAnotherOwnerOrOpenModesMeanThatThereIsNothing() throws {
        try fill(32)
        try learn()
        let file = try XCTUnwrap(file)
        XCTAssertEqual(try remembered(cache()), 32)
        chmod(file, 0o644)
        XCTAssertEqual(try remembered(cache()), 0, "others may read it")
        chmod(file, 0o600)
        XCTAssertEqual(try remembered(cache()), 32)
        chmod(folder, 0o750)
        XCTAssertNil(cache(), "others may look into the folder")
        chmod(folder, 0o700)
        if geteuid() == 0 {
            chown(file, 12_345, 12_345)
            XCTAssertEqual(try remembered(cache()), 0, "another's file")
            chown(file, 0, 0)
            chown(folder, 12_345, 12_345)
            XCTAssertNil(cache(), "another's folder")
            chown(folder, 0, 0)
        }
        rename(file, scratch.path + "/elsewhere")
        symlink(scratch.path + "/elsewhere", file)
        XCTAssertEqual(try remembered(cache()), 0, "a link")
        unlink(file)
        mkfifo(file, 0o600)
        XCTAssertEqual(try remembered(cache()), 0, "a pipe")
        unlink(file)
        rename(scratch.path + "/elsewhere", file)
        XCTAssertEqual(try remembered(cache()), 32)
        rename(folder, scratch.path + "/folder")
        symlink(scratch.path + "/folder", folder)
        XCTAssertNil(cache(), "a link to a folder")
    }

    func testAnArchiveThatWasReplacedIsLookedAtAnew() throws {
        try fill(32)
        try learn()
        // The same name, size and times, but another file.
        var status = stat()
        XCTAssertEqual(stat(path(3), &status), 0)
        let size = bytes(path(3)).count
        unlink(path(3))
        try archive(3, seed: 999)
        truncate(path(3), off_t(size))
        let times = [status.st_atim, status.st_mtim]
        utimensat(AT_FDCWD, path(3), times, 0)
        XCTAssertEqual(try remembered(cache()), 31)
        XCTAssertEqual(try read(cache()), try read(nil))
        // The same file, but other bytes.
        XCTAssertEqual(stat(path(4), &status), 0)
        var other = bytes(path(4))
        other[other.count / 2] ^= 1
        other[20] ^= 1
        writeAll(other, path(4))
        utimensat(AT_FDCWD, path(4), [status.st_atim, status.st_mtim], 0)
        XCTAssertEqual(try remembered(cache()), 30)
        XCTAssertEqual(try read(cache()), try read(nil))
    }

    func testAnArchiveThatContradictsIsRight() throws {
        try fill(32)
        let first = try XCTUnwrap(cache())
        let facts = try XCTUnwrap(first.facts(ofStore: FilePath(store)))
        let paths = try StoreFolder.archives(FilePath(store))
        facts.begin(paths.count)
        for path in paths {
            let source = try ArchiveSource.open(path: path)
            var info = source.header
            info.recordCount += 1
            facts.note(path, facts.find(path).key, info, source.intactBlocks)
        }
        first.save()
        XCTAssertEqual(try remembered(cache()), 32)
        let second = try XCTUnwrap(cache())
        let given = try read(nil)
        let count = given.count - (try figures(nil).count)
        XCTAssertEqual(
            try read(second).prefix(count), given.prefix(count), "the archives are read")
        second.save()
        let third = try XCTUnwrap(cache()?.facts(ofStore: FilePath(store)))
        third.begin(paths.count)
        for path in paths {
            let found = third.find(path).facts?.info.recordCount ?? 40
            XCTAssertEqual(found, 40, "what was wrong is forgotten, or was made anew")
        }
    }

    // MARK: What must not be in it

    func testNothingIsKeptOfWhatIsGone() throws {
        try fill(50)
        try learn()
        let lane = Array(name(7).utf8)
        func isKept() throws -> Bool {
            let all = bytes(try XCTUnwrap(file))
            return all.indices.contains { all[$0...].starts(with: lane) }
        }
        XCTAssertTrue(try isKept())
        unlink(path(7))
        try learn()
        XCTAssertFalse(try isKept())
        XCTAssertEqual(try remembered(cache()), 49)
    }

    func testNothingIsKeptOfEncryptedAndDamagedArchives() throws {
        try fill(32)
        let key = AgeIdentity.generate()
        for number in 60..<64 { try archive(number, recipients: [key.recipient]) }
        var cut = bytes(path(5))
        cut.removeLast(20)
        writeAll(cut, path(5))
        for identities in [[], [key]] {
            let made = try XCTUnwrap(cache())
            var options = ReaderOptions()
            options.facts = made
            options.identities = identities
            let reader = try StoreReader(path: store, options: options)
            while reader.nextRecord() != nil {}
            XCTAssertGreaterThan(reader.problemCount, 0)
            made.save()
            XCTAssertEqual(try remembered(cache()), 31)
            let all = bytes(try XCTUnwrap(file))
            for number in [5, 60, 61, 62, 63] {
                let lane = Array(name(number).utf8)
                XCTAssertFalse(all.indices.contains { all[$0...].starts(with: lane) })
            }
        }
    }

    // MARK: Where it can be

    func testWithoutAFolderThereIsNone() throws {
        XCTAssertNil(cache(["CORDWOOD_CACHE": "off"]))
        XCTAssertNil(FactsCache.find { _ in nil }, "no HOME")
        XCTAssertNil(FactsCache.find { ["XDG_CACHE_HOME": "cache", "HOME": ""][$0] })
        try fill(32)
        let plain = try read(nil)
        // Not writable, and not a folder.
        for folder in ["/proc/self/nothing", "/dev/null"] {
            let made = try XCTUnwrap(cache(["XDG_CACHE_HOME": folder]))
            XCTAssertEqual(try read(made), plain)
            made.save()
            XCTAssertEqual(try remembered(cache(["XDG_CACHE_HOME": folder])), 0)
        }
        let made = try XCTUnwrap(cache(["XDG_CACHE_HOME": scratch.path + "/xdg"]))
        XCTAssertNil(FileFacts(at: FilePath(scratch.path + "/xdg")), "nothing to write yet")
        XCTAssertEqual(try read(made), plain)
        made.save()
        XCTAssertEqual(try remembered(cache(["XDG_CACHE_HOME": scratch.path + "/xdg"])), 32)
        XCTAssertEqual(DirectoryListing(FilePath(home), hidden: true).names, [])
    }

    func testAFullDiskLeavesNothingBehind() throws {
        try fill(32)
        let full = try XCTUnwrap(cache())
        let found = try read(full)
        signal(SIGXFSZ, SIG_IGN)
        // RLIMIT_FSIZE, whose name is a macro.
        let fileSize = __rlimit_resource_t(1)
        var limit = rlimit()
        getrlimit(fileSize, &limit)
        var small = limit
        small.rlim_cur = 1_000
        setrlimit(fileSize, &small)
        full.save()
        setrlimit(fileSize, &limit)
        XCTAssertEqual(DirectoryListing(FilePath(folder), hidden: true).names, [])
        XCTAssertEqual(try read(cache()), found)
    }

    func testTwoCommandsAtOnce() throws {
        try full()
        try fill(32)
        let plain = try read(nil)
        for _ in 0..<5 {
            let caches = try (0..<4).map { _ in try XCTUnwrap(cache()) }
            for each in caches { XCTAssertEqual(try read(each), plain) }
            Threads.all(caches) { $0.save() }
            XCTAssertEqual(DirectoryListing(FilePath(folder), hidden: true).names.count, 1)
            XCTAssertEqual(try remembered(cache()), 32)
            unlink(try XCTUnwrap(file))
        }
    }

    func testOldFilesAndThoseOfKilledCommandsGo() throws {
        try fill(32)
        try learn()
        func make(_ name: String, daysOld: Int) {
            writeAll([1], "\(folder)/\(name)")
            let time = timespec(tv_sec: Glibc.time(nil) - daysOld * 86_400, tv_nsec: 0)
            utimensat(AT_FDCWD, "\(folder)/\(name)", [time, time], 0)
        }
        make("1-1.facts", daysOld: 91)
        make("1-2.facts", daysOld: 80)
        make(".1-3.facts.5-6", daysOld: 1)
        make(".1-4.facts.7-8", daysOld: 0)
        make("other", daysOld: 400)
        for number in 0..<80 { make("2-\(number).facts", daysOld: 10) }
        try archive(90)
        try learn()
        let names = Set(DirectoryListing(FilePath(folder), hidden: true).names)
        XCTAssertFalse(names.contains("1-1.facts"))
        XCTAssertFalse(names.contains("1-2.facts"), "64 stay")
        XCTAssertFalse(names.contains(".1-3.facts.5-6"))
        XCTAssertTrue(names.contains(".1-4.facts.7-8"))
        XCTAssertTrue(names.contains("other"))
        XCTAssertEqual(names.count { $0.hasSuffix(".facts") }, 64)
        XCTAssertEqual(try remembered(cache()), 33)
    }
}

private enum TwoDigits {
    static func text(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
}

private enum Threads {
    /// Runs each on its own thread.
    static func all<Item: Sendable>(_ items: [Item], _ body: @escaping @Sendable (Item) -> Void) {
        let monitor = Monitor()
        let done = Counter()
        for item in items {
            _ = EngineThread.start("facts") {
                body(item)
                monitor.locked {
                    done.count += 1
                    monitor.notify()
                }
            }
        }
        monitor.locked {
            while done.count < items.count { _ = monitor.wait(until: Deadline(nil)) }
        }
    }

    private final class Counter: @unchecked Sendable { var count = 0 }
}
