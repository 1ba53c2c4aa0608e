// Several stores, and a model that knows every record's owner, time and home: lanes are written,
// copied, resumed with other content under the same ids, archived by their owners and by adopters
// (with another step of time, plain or encrypted), merged, compacted, and expire, in any order.
// Whatever stores are read together, every record comes once, as its owner's, at its time, and
// every refused record is reported once. An archive's age is that of its records, whatever time
// these name.

import CordwoodCore
import CordwoodTestSupport
import Foundation
import XCTest

@testable import CordwoodStore

final class CopiedStoresTests: XCTestCase {
    /// What identifies a record (FORMAT §7.1).
    private struct Name: Hashable {
        var lane: UInt64
        var thread: UInt32
        var chunk: UInt32
        var index: Int
    }

    private struct Event {
        var number: Int
        var thread: UInt32
        var segment: UInt64
        var time: UInt64
        /// The time that it names, UTC ns.
        var own: UInt64?
        var user: String
        var name: Name
        /// The refused records that it reports.
        var refused: Range<UInt64>?

        var level: UInt8 { number % 3 == 0 ? 17 : 9 }
    }

    /// A refused record, by the running total of its slot.
    private struct Refused: Hashable {
        var lane: UInt64
        var slot: UInt32
        var number: UInt64

        static func all(_ lane: UInt64, _ slot: UInt32, _ numbers: Range<UInt64>) -> [Refused] {
            numbers.map { Refused(lane: lane, slot: slot, number: $0) }
        }
    }

    /// A lane as one store has it.
    private struct Lane {
        var id: UInt64
        var events: [Event] = []
        /// Its owner has archived these segments.
        var archivedBelow: UInt64 = 0
        /// By slot, which is the thread: running totals.
        var refused: [UInt32: UInt64] = [:]
        var reported: [UInt32: UInt64] = [:]

        var lastSegment: UInt64 { events.last?.segment ?? 0 }
    }

    private struct Store {
        var path: String
        /// Those in lanes/.
        var lanes: [UInt64: Lane] = [:]
        var events: [Int: Event] = [:]
        /// Reported at the ends of lanes that are archived.
        var ends: Set<Refused> = []
        /// Archives that reported some are gone.
        var hasLostReports = false

        var refused: Set<Refused> {
            var all = ends
            for event in events.values {
                guard let refused = event.refused else { continue }
                all.formUnion(Refused.all(event.name.lane, event.thread, refused))
            }
            for lane in lanes.values {
                for (slot, count) in lane.refused {
                    all.formUnion(Refused.all(lane.id, slot, 0..<count))
                }
            }
            return all
        }
    }

    private let identity = AgeIdentity.generate()
    private var folder = ""
    private var random = SplitMix(1)
    private var stores: [Store] = []
    private var count = 0
    private var now: UInt64 = 0
    private static let base: UInt64 = 1_700_000_000_000_000_000

    override func setUp() { folder = TestFiles.directory() }
    override func tearDown() { TestFiles.remove(folder) }

    private func newStore() -> Store {
        let path = "\(folder)/\(stores.count)"
        for part in ["", "/lanes", "/archives"] { mkdir(path + part, 0o700) }
        return Store(path: path)
    }

    // MARK: What happens

    /// Appends some events; each thread has a chunk of its own in a segment, and another one once
    /// the user has changed.
    private func go(_ lane: inout Lane, in store: inout Store) {
        var user = lane.events.last?.user ?? ""
        for _ in 0..<Int.random(in: 1...6, using: &random) {
            now += [1_000, 90_000, 700_000_000, 3_000_000_000].randomElement(using: &random)!
            if random.next() % 4 == 0 { user = ["", "a", "b"].randomElement(using: &random)! }
            let thread = UInt32.random(in: 1...2, using: &random)
            let segment = lane.lastSegment + (random.next() % 4 == 0 ? 1 : 0)
            let before = lane.events.last { $0.thread == thread }
            var name = Name(lane: lane.id, thread: thread, chunk: 0, index: 0)
            if let before {
                let goesOn =
                    before.segment == segment
                    && !lane.events.reversed().prefix { $0.number != before.number }.contains {
                        $0.user != before.user
                    } && before.user == user
                name.chunk = before.name.chunk + (goesOn ? 0 : 1)
                name.index = goesOn ? before.name.index + 1 : 0
            }
            var event = Event(
                number: count, thread: thread, segment: segment, time: now, user: user, name: name)
            if random.next() % 6 == 0 {
                let day: UInt64 = 86_400_000_000_000
                event.own = [0, Self.base - 40 * day, Self.base + 40 * day]
                    .randomElement(using: &random)
            }
            if random.next() % 6 == 0 { lane.refused[thread, default: 0] += random.next() % 3 + 1 }
            let (reported, refused) = (lane.reported[thread] ?? 0, lane.refused[thread] ?? 0)
            if reported < refused, random.next() % 2 == 0 {
                (event.refused, event.own) = (reported..<refused, nil)
                lane.reported[thread] = refused
            }
            count += 1
            lane.events.append(event)
            store.events[event.number] = event
        }
        write(lane, store)
    }

    @discardableResult
    private func write(_ lane: Lane, _ store: Store) -> LaneBuilder {
        let named = "20261121T081530Z-\(lane.id)-000000000000000\(lane.id)"
        for name in (try? LaneFiles.names(in: FilePath(store.path + "/lanes"))) ?? []
        where name.hasPrefix(named) && !name.hasSuffix(".lane") {
            unlink("\(store.path)/lanes/\(name)")
        }
        let builder = LaneBuilder(store: store.path, name: named, id: lane.id)
        builder.closed = 1
        builder.archivedBelow = lane.archivedBelow
        builder.drops = (0..<UInt32(3)).map { slot in
            let last = lane.events.last?.time ?? 0
            return (lane.refused[slot] ?? 0, lane.reported[slot] ?? 0, last, last)
        }
        var (segment, chunks, user) = (builder.first, [UInt32: ChunkBuilder](), "")
        segment.pairs = [(0, 0, Self.base)]
        for event in lane.events {
            if event.segment != segment.number {
                segment.state = 3
                segment = builder.segment(event.segment)
                segment.created = event.time
                segment.pairs = [(0, 0, Self.base)]
                chunks = [:]
            }
            if event.user != user {
                user = event.user
                builder.resource("user.id", user)
                chunks = [:]
            }
            var chunk = chunks[event.thread]
            if chunk == nil || event.name.index == 0 {
                chunk = segment.chunk(
                    thread: event.thread, sequence: event.name.chunk, base: event.time)
                chunk?.size = 2_048
                chunks[event.thread] = chunk
            }
            chunk?.newBase(event.time)
            if let refused = event.refused {
                var words = ByteWriter()
                words.u32(event.thread)
                words.u32(0)
                for word in [refused.lowerBound, refused.upperBound, event.time, event.time, 1] {
                    words.u64(word)
                }
                chunk?.record(7, at: event.time, level: 0, words.bytes)
            } else if let own = event.own {
                var time = ByteWriter()
                time.u64(own)
                chunk?.record(
                    2, at: event.time, level: event.level,
                    section(1, Array("\(event.number)".utf8)) + section(6, time.bytes))
            } else {
                chunk?.text("\(event.number)", at: event.time, level: event.level)
            }
        }
        builder.segments.removeAll { $0.number < lane.archivedBelow }
        builder.write()
        return builder
    }

    private func form() -> ArchiveForm {
        var form = ArchiveForm(
            codec: .zstd, level: 1, recipients: random.next() % 3 == 0 ? [identity.recipient] : [])
        form.timeStepNs = [1, 1, 1_000, 10_000].randomElement(using: &random)!
        form.method = random.next() % 2 == 0 ? .plain : .dense
        return form
    }

    /// The owner archives the next of its sealed segments and goes on.
    private func archive(_ lane: inout Lane, in store: Store) throws {
        guard lane.archivedBelow < lane.lastSegment else { return }
        let last = UInt64.random(in: lane.archivedBelow...(lane.lastSegment - 1), using: &random)
        let files = try XCTUnwrap(
            try LaneFiles.list(store: FilePath(store.path)).first {
                $0.lane.hasSuffix("\(lane.id)")
            })
        _ = try StoreArchiver.archive(
            directory: FilePath(store.path), files: files, segments: lane.archivedBelow...last,
            form: form(), endsLane: false)
        lane.archivedBelow = last + 1
        write(lane, store)
    }

    private func adopt(_ store: inout Store) throws {
        let form = form()
        let summary = try StoreArchiver.archiveDead(
            directory: FilePath(store.path), codec: form.codec, level: form.level,
            method: form.method,
            timeStepNs: form.timeStepNs, recipients: form.recipients)
        XCTAssertEqual(summary.damage, [])
        for lane in store.lanes.values {
            for (slot, count) in lane.refused {
                let reported = lane.reported[slot] ?? 0
                store.ends.formUnion(Refused.all(lane.id, slot, reported..<count))
            }
        }
        XCTAssertEqual(try LaneFiles.names(in: FilePath(store.path + "/lanes")), [])
        store.lanes = [:]
    }

    /// What `cp -an` does, with or without the lanes.
    private func merge(_ from: Store, into store: inout Store) throws {
        let copies = FileManager.default
        for name in try LaneFiles.names(in: FilePath(from.path + "/archives")) {
            try? copies.copyItem(
                atPath: "\(from.path)/archives/\(name)", toPath: "\(store.path)/archives/\(name)")
        }
        for (number, event) in from.events where !isInLanes(event, from) {
            store.events[number] = event
        }
        store.ends.formUnion(from.ends)
        store.hasLostReports = store.hasLostReports || from.hasLostReports
        guard random.next() % 2 == 0 else { return }
        for (id, lane) in from.lanes where store.lanes[id] == nil {
            store.lanes[id] = lane
            write(lane, store)
            for event in lane.events where event.segment >= lane.archivedBelow {
                store.events[event.number] = event
            }
        }
    }

    /// It is in no archive of the store.
    private func isInLanes(_ event: Event, _ store: Store) -> Bool {
        guard let found = archived[store.path] else { return true }
        guard let refused = event.refused else { return !found.events.contains(event.number) }
        return !found.refused.isSuperset(
            of: Refused.all(event.name.lane, event.thread, refused))
    }

    /// What the archives of each store have.
    private var archived: [String: (events: Set<Int>, refused: Set<Refused>)] = [:]

    private func noteArchived() throws {
        for store in stores {
            var options = ReaderOptions()
            options.identities = [identity]
            let paths = try LaneFiles.names(in: FilePath(store.path + "/archives")).map {
                "\(store.path)/archives/\($0)"
            }
            guard !paths.isEmpty else {
                archived[store.path] = nil
                continue
            }
            let reader = try StoreReader(paths: paths, options: options)
            var (events, refused): (Set<Int>, Set<Refused>) = ([], [])
            while let record = reader.nextRecord() {
                events.insert(Int(record.message) ?? -1)
                let id = record.recordID.description
                let lane = UInt64(id.prefix(16), radix: 16)!.byteSwapped
                for case ("gap.runs", .string(let text)) in record.fields {
                    for run in try XCTUnwrap(Gap.runs(text)) {
                        refused.formUnion(Refused.all(lane, run.slot, run.from..<run.to))
                    }
                }
            }
            archived[store.path] = (events, refused)
        }
    }

    /// Archives whose newest record was written before a moment are removed.
    private func expire(_ at: Int) throws {
        var store = stores[at]
        defer { stores[at] = store }
        let sorted = store.events.values.sorted { $0.number < $1.number }
        guard let bound = sorted.randomElement(using: &random)?.time else { return }
        var options = ReaderOptions()
        options.identities = [identity]
        for name in try LaneFiles.names(in: FilePath(store.path + "/archives")) {
            let path = "\(store.path)/archives/\(name)"
            let file = try ArchiveFile(path: FilePath(path), identities: [identity])
            let written = try ArchiveIndex.load(file, salvage: false).info.writtenNs
            let reader = try StoreReader(paths: [path], options: options)
            var times: [UInt64] = []
            while let record = reader.nextRecord() {
                if record.kind == RecordRef.gapKind {
                    times.append(record.time - Self.base)
                } else if let event = store.events[Int(record.message) ?? -1] {
                    times.append(event.time)
                }
            }
            let newest = Self.base + (times.max() ?? 0)
            XCTAssertTrue(
                (newest - 10_000...newest + 10_000).contains(written),
                "\(name): \(written), not \(newest)")
            guard written < Self.base + bound else { continue }
            unlink(path)
            store.hasLostReports = true
        }
        try noteArchived()
        for event in sorted where isInLanes(event, store) {
            let lane = store.lanes[event.name.lane]
            let isLive = lane?.events.contains {
                $0.number == event.number && $0.segment >= lane!.archivedBelow
            }
            if isLive != true { store.events[event.number] = nil }
        }
    }

    private func happen() throws {
        let at = Int.random(in: 0..<stores.count, using: &random)
        switch random.next() % 13 {
        case 0...3:
            let id =
                stores[at].lanes.keys.sorted().randomElement(using: &random)
                ?? UInt64(1 + random.next() % 3) + UInt64(stores.count) * 10
            var lane = stores[at].lanes[id] ?? Lane(id: id)
            guard lane.events.isEmpty == (stores[at].lanes[id] == nil) else { return }
            if lane.events.isEmpty,
                stores.contains(where: { $0.events.values.contains { $0.name.lane == id } })
            {
                return
            }
            go(&lane, in: &stores[at])
            stores[at].lanes[id] = lane
        case 4, 5:
            guard let id = stores[at].lanes.keys.sorted().randomElement(using: &random) else {
                return
            }
            try archive(&stores[at].lanes[id]!, in: stores[at])
        case 6: try adopt(&stores[at])
        case 7:
            _ = try StoreCompactor.compact(
                directory: FilePath(stores[at].path), ageSeconds: 0, identities: [identity])
        case 8: try expire(at)
        case 9, 10:
            guard stores.count < 4 else { return }
            var copy = newStore()
            let path = copy.path
            copy = stores[at]
            copy.path = path
            for part in ["lanes", "archives"] {
                for name in try LaneFiles.names(in: FilePath("\(stores[at].path)/\(part)")) {
                    try FileManager.default.copyItem(
                        atPath: "\(stores[at].path)/\(part)/\(name)",
                        toPath: "\(copy.path)/\(part)/\(name)")
                }
            }
            stores.append(copy)
        default:
            let other = Int.random(in: 0..<stores.count, using: &random)
            guard other != at else { return }
            try noteArchived()
            try merge(stores[other], into: &stores[at])
        }
    }

    // MARK: What is read

    private func compare(
        _ what: String, level: UInt8 = 0, _ change: (inout ReaderOptions) -> Void = { _ in }
    ) throws {
        var chosen = stores.filter { _ in Bool.random(using: &random) }
        if chosen.isEmpty { chosen = [stores[0]] }
        let expected = chosen.reduce(into: [Int: Event]()) { all, store in
            all.merge(store.events.filter { $0.value.refused == nil }) { first, _ in first }
        }
        let refused = chosen.reduce(into: Set<Refused>()) { $0.formUnion($1.refused) }
        var reported: UInt64 = 0
        var options = ReaderOptions()
        options.identities = [identity]
        options.level = level
        change(&options)
        let reader = try StoreReader(paths: chosen.map(\.path), options: options)
        var seen: Set<Int> = []
        while let record = reader.nextRecord() {
            if record.kind == RecordRef.gapKind {
                let count = try XCTUnwrap(UInt64(record.message.prefix { $0 != " " }), what)
                XCTAssertEqual(record.fields.first?.value, .uint(count), what)
                reported += count
                continue
            }
            let number = try XCTUnwrap(Int(record.message), what)
            guard let event = expected[number] else {
                return XCTFail("\(what): \(number) is not of these stores")
            }
            XCTAssertTrue(seen.insert(number).inserted, "\(what): \(number) comes twice")
            let user = record.resource.first { $0.key == "user.id" }?.value ?? ""
            XCTAssertEqual(user, event.user, "\(what): the user of \(number)")
            let off = Int64(record.time) - Int64(event.own ?? Self.base + event.time)
            XCTAssertTrue(
                (event.own == nil ? -10_000...0 : 0...0).contains(off),
                "\(what): \(number) is \(off) ns off")
            XCTAssertFalse(record.flags.contains(.unverified), "\(what): \(number)")
        }
        let wanted = expected.filter { $0.value.level >= level }.keys
        let missing = Set(wanted).symmetricDifference(seen)
        XCTAssertEqual(missing, [], "\(what): missing")
        if level == 0, !chosen.contains(where: \.hasLostReports) {
            XCTAssertEqual(Int(reported), refused.count, "\(what): refused records")
        }
        let clones = expected.count - Set(expected.values.map(\.name)).count
        for problem in reader.problems {
            XCTAssertTrue(
                clones > 0 && "\(problem)".contains("different records have one id"),
                "\(what): \(problem)")
        }
    }

    /// The older record of an id is forgotten first, and its clone by itself.
    func testACloneIsForgottenByItself() {
        let lane = LaneID(high: 1, low: 1)
        let seen = RecordsSeen([lane: SharedLane(name: "lane")], isOrdered: true)
        let (first, second) = (seen.part(), seen.part())
        let process = ProcessInfo(
            laneID: lane, bootID: .zero, processID: 1, name: "", createdRealtime: 0,
            createdMonotonic: 0, resource: [])
        let thread = ThreadInfo(process: process, serial: 1, threadID: 1, name: "")
        func note(_ text: StaticString, _ sequence: UInt64, ms: UInt64, _ part: Int)
            -> RecordsSeen.Found
        {
            var record = RecordRef(thread: thread)
            record.message = Bytes.literal(text)
            record.sequence = sequence
            record.monotonicNs = ms * 1_000_000
            record.writtenNs = record.monotonicNs
            return seen.note(record, of: part)
        }
        XCTAssertEqual(note("one", 0, ms: 1_000, first), .new)
        XCTAssertEqual(note("other", 0, ms: 2_500, second), .clone)
        XCTAssertEqual(note("other", 0, ms: 2_500, second), .new)
        for (sequence, ms) in [(UInt64(1), UInt64(4_000)), (2, 4_100), (3, 4_200)] {
            XCTAssertEqual(note("a", sequence * 2, ms: ms, first), .new)
            XCTAssertEqual(note("b", sequence * 2 + 1, ms: ms, second), .new)
        }
        XCTAssertEqual(note("other", 0, ms: 2_500, first), .known)
    }

    func testEveryRecordComesOnceAsItsOwners() throws {
        for seed in SplitMix.seeds(400, core: 25) {
            random = SplitMix(seed)
            (stores, count, now, archived) = ([], 0, 1_000, [:])
            stores = [newStore()]
            for step in 0..<Int.random(in: 4...24, using: &random) {
                try happen()
                try compare("seed \(seed), step \(step)")
                try compare("seed \(seed), step \(step), unordered") { $0.isUnordered = true }
                try compare("seed \(seed), step \(step), severe", level: 17)
                guard testRun?.totalFailureCount == 0 else { return }
            }
            TestFiles.remove(folder)
            folder = TestFiles.directory()
        }
    }
}
