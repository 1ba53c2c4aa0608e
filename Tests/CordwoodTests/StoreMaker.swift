// Stores made by seed, for readers: lanes of several boots that overlap, clocks that are set,
// threads whose time steps back, events with times of their own, archives of one lane or of
// several, some of them damaged, and segments that are not archived yet.

import Cordwood
import CordwoodCore
import CordwoodStore
import CordwoodTestSupport
import Glibc

/// A store by seed.
struct StoreMaker {
    let store: String
    var random: SplitMix
    var running = LaneID.zero
    private(set) var stepsBack = false
    private var times: [UInt64] = []
    /// Segments without an archive.
    private var left: [(lane: LaneBuilder, segments: ClosedRange<UInt64>)] = []

    init(store: String, seed: UInt64) {
        self.store = store
        random = SplitMix(seed)
    }

    static func bytes(of path: String) -> Int {
        let file = open(path, O_RDONLY)
        defer { close(file) }
        return Int(lseek(file, 0, SEEK_END))
    }

    static func bytes(of word: UInt64) -> [UInt8] {
        withUnsafeBytes(of: word.littleEndian) { Array($0) }
    }

    private mutating func below(_ limit: Int) -> Int { Int(random.next() % UInt64(limit)) }
    private mutating func chance(_ percent: Int) -> Bool { below(100) < percent }

    mutating func make() throws {
        mkdir(store, 0o700)
        mkdir(store + "/archives", 0o700)
        let boots = (1...(1 + below(3))).map { LaneID(high: UInt64($0), low: 9) }
        running = boots[below(boots.count)]
        // Clocks are set, a thread's time steps back, or events have times of their own: of two at
        // once in a lane, one might hide the effect of the other.
        let oddity = below(3)
        stepsBack = oddity == 1
        for number in 1...(1 + below(5)) {
            let boot = boots[below(boots.count)]
            try lane(number, boot, oddity)
        }
        if left.count > 1, chance(50) { try archiveTogether() }
        if chance(25) { damage() }
    }

    /// One archive of the segments that several lanes have left.
    private mutating func archiveTogether() throws {
        left.sort { $0.lane.name < $1.lane.name }
        let merge = MergeSource()
        var covers: [ArchiveCover] = []
        for (lane, segments) in left {
            let source = try lane.source(boot: running, segments)
            if let process = source.process { merge.learn(process, lane: lane.name) }
            merge.add(MergeInput(lowerBound: 0, order: UInt64(covers.count)) { source })
            covers.append(
                ArchiveCover(
                    laneID: lane.laneID, first: segments.lowerBound, last: segments.upperBound,
                    laneName: lane.name))
        }
        _ = try ArchiveWriter.write(
            source: merge, covers: covers, archivesDirectory: FilePath(store + "/archives"),
            codec: .zstd, level: 1, now: 5,
            blockBytes: 100 + below(3_000))
        for (lane, segments) in left {
            for segment in lane.segments where segments.contains(segment.number) {
                unlink(lane.path(segment))
            }
            unlink(lane.lanePath)
        }
    }

    private mutating func lane(_ number: Int, _ boot: LaneID, _ oddity: Int) throws {
        let name = "20261121T08\(10 + below(40))30Z-\(800 + number)-9f3c5a0de1b2778\(number)"
        let lane = LaneBuilder(store: store, name: name, id: UInt64(number))
        lane.bootID = chance(10) ? .zero : boot
        lane.first.bootID = lane.bootID
        lane.logger(1, "app.db")
        lane.logger(2, "other")
        lane.closed = chance(50) ? 1 : 0
        let second: UInt64 = 1_000_000_000
        lane.createdMonotonic = UInt64(below(600)) * second
        let base = 1_764_000_000 * second + UInt64(boot.high) * 200 * second
        lane.createdRealtime = base + lane.createdMonotonic + UInt64(below(1_000)) * 1_000_000
        var now = lane.createdMonotonic
        var step: UInt64 = 0
        let count = 1 + below(6)
        for index in 1...count {
            if oddity == 0, chance(30) { step = UInt64(below(7_200)) * second }
            segment(
                lane, UInt64(index), &now, base + step, stepsBack: oddity == 1 && chance(40),
                ownTimes: oddity == 2)
        }
        lane.write()
        let archived = chance(50) ? count : below(count + 1)
        var from = 1
        while from <= archived {
            let to = min(archived, from + below(3))
            try archive(lane, UInt64(from)...UInt64(to))
            from = to + 1
        }
        if archived == count, chance(70) { unlink(lane.lanePath) }
        if archived < count { left.append((lane, UInt64(archived + 1)...UInt64(count))) }
    }

    private mutating func segment(
        _ lane: LaneBuilder, _ number: UInt64, _ now: inout UInt64, _ toUTC: UInt64,
        stepsBack: Bool, ownTimes: Bool
    ) {
        let segment = lane.segment(number)
        segment.state = 3
        segment.created = now
        segment.pairs = [(0, 0, toUTC)]
        // Gaps between records, from microseconds to seconds.
        let gap = UInt64([3_000, 90_000_000, 400_000_000, 1_500_000_000][below(4)])
        var end = now
        for thread in 1...UInt32(1 + below(3)) {
            var at = now + UInt64(below(1_000_000))
            let chunk = segment.chunk(
                thread: thread, sequence: UInt32(number), base: at)
            for index in 0..<below(60) {
                at += random.next() % gap
                if stepsBack, chance(4) { at -= min(at - lane.createdMonotonic, 40 * gap) }
                chunk.newBase(at)
                let logger = UInt32(below(3))
                let level = UInt8(below(40) == 0 ? 17 : 1 + below(12))
                let long = String(repeating: "x", count: below(80))
                let text = "\(lane.processID) \(number).\(thread).\(index) \(long)"
                if ownTimes {
                    let earlier = at &+ toUTC - UInt64(below(2_000)) * 1_000_000_000
                    chunk.record(
                        2, at: at, id: logger, level: level,
                        section(1, Array(text.utf8)) + section(6, StoreMaker.bytes(of: earlier)))
                } else {
                    chunk.text(text, at: at, logger: logger, level: level)
                }
                times.append(at &+ toUTC)
                end = max(end, at)
            }
        }
        // Sealing adds a pair later than every record (FORMAT §9).
        segment.pairs.append((end + 1, end + 1, end + 1 + toUTC))
        // The next segment begins before this one's last records, or a while later.
        now = chance(60) ? end : end - min(end - now, UInt64(below(3_000)) * 1_000_000)
        if chance(20) { now += UInt64(below(30)) * 1_000_000_000 }
    }

    private mutating func archive(_ lane: LaneBuilder, _ range: ClosedRange<UInt64>) throws {
        let cover = ArchiveCover(
            laneID: lane.laneID, first: range.lowerBound, last: range.upperBound,
            laneName: lane.name)
        let source = try lane.source(boot: running, range)
        _ = try ArchiveWriter.write(
            source: source, covers: [cover], archivesDirectory: FilePath(store + "/archives"),
            codec: chance(50) ? .zstd : .lz4, level: 1, now: 5,
            effort: range.lowerBound % 2 == 0 ? .dense : .swift, blockBytes: 100 + below(3_000))
        for segment in lane.segments where range.contains(segment.number) {
            unlink(lane.path(segment))
        }
    }

    /// One archive is cut, or one of its bytes is changed.
    private mutating func damage() {
        let names = ((try? LaneFiles.names(in: FilePath(store + "/archives"))) ?? []).sorted()
        guard !names.isEmpty else { return }
        let path = "\(store)/archives/\(names[below(names.count)])"
        let size = StoreMaker.bytes(of: path)
        if chance(50) {
            truncate(path, off_t(below(size)))
            return
        }
        let file = open(path, O_RDWR)
        var byte: UInt8 = 0
        let at = off_t(chance(40) ? size - 1 - below(min(size, 60)) : below(size))
        pread(file, &byte, 1, at)
        byte ^= UInt8(1 + below(255))
        pwrite(file, &byte, 1, at)
        close(file)
    }

    mutating func filter() -> ReaderOptions {
        var options = ReaderOptions()
        if chance(50) { options.level = [5, 10, 17][below(3)] }
        if chance(30) { options.logger = ["app", "other", "nobody"][below(3)] }
        if chance(30), let time = times.randomElement(using: &random) { options.since = time }
        if chance(30), let time = times.randomElement(using: &random) { options.until = time }
        if chance(10) { options.kinds = 1 << UInt32(below(3)) }
        let queries = ["-logger:app", "level>=10 level<17", "kind:log OR level>=17", "i:e -7"]
        if chance(20) { options.query = try? Query(queries[below(queries.count)]) }
        return options
    }
}
