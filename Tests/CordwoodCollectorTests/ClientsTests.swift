// Two clients and random archives, plain and encrypted, that claim each other's lanes, names,
// covers and records, against a model: whatever was taken is there as it was sent, once, or lies
// aside byte for byte; and a lane has records of one client only. The collector restarts, and the
// store is compacted, in between.

import Cordwood
import CordwoodCore
import CordwoodTestSupport
import Foundation
import XCTest

@testable import CordwoodCollector
@testable import CordwoodStore

final class ClientsTests: CollectorCase {
    private struct Lane {
        var id: LaneID
        var name: String
        var home: UInt32
        var isEncrypted: Bool
        var segment: UInt64 = 0
        var sequence: UInt64 = 0
        /// Archives that the lane's own client made, in order.
        var made: [Int] = []
    }

    private struct Piece {
        var archive: MadeArchive
        var records: [MadeArchive.Record]
        var by: UInt32
        /// Made by the lane's own client.
        var isHonest = false
        var isRefused = false

        /// Whether one of them says that it has records of the other.
        func claims(_ other: Piece) -> Bool {
            let (info, others) = (archive.info, other.archive.info)
            let seals = Set(info.covers.flatMap(\.seals))
            return info.replaced.contains { $0.id == others.id }
                || others.replaced.contains { $0.id == info.id }
                || !seals.isDisjoint(with: others.covers.flatMap(\.seals))
        }

        func overlaps(_ other: Piece) -> Bool {
            let segments = LaneRanges(archive.info.covers)
            return other.archive.info.covers.contains {
                LaneRanges.have(segments.lanes[$0.laneID] ?? [], anyOf: $0.first...$0.last)
            }
        }
    }

    private let identity = AgeIdentity.generate()
    private var random = SplitMix(0)
    private var disguises = SplitMix(0)
    private var lanes: [Lane] = []
    private var pieces: [Piece] = []
    private var depot: Depot?
    private var owners: [LaneID: UInt32] = [:]
    /// Archives that were taken into the store.
    private var accepted: [Piece] = []
    /// Messages of these, and of those that were there already.
    private var taken: Set<String> = []
    /// Those that each client has sent, whoever made them.
    private var sent: [UInt32: Set<String>] = [:]
    private var counts: [String: Int] = [:]
    private var number = 0

    func testEachClientsRecordsAreAsItSentThem() throws {
        for seed in SplitMix.seeds(36, core: 2) {
            for clients in [2, 1] as [UInt32] { try run(seed, clients: clients) }
        }
        for what in ["stored", "aside", "known", "refused", "compacted", "disguised", "covering"] {
            XCTAssertGreaterThan(counts[what] ?? 0, 0, what)
        }
    }

    private func run(_ seed: UInt64, clients: UInt32) throws {
        random = SplitMix(seed &* 2 &+ UInt64(clients))
        disguises = SplitMix(~seed)
        (lanes, pieces, accepted, owners, taken, sent) = ([], [], [], [:], [], [:])
        directory = StorePlace.path("clients")
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let what = "seed \(seed), \(clients) clients"
        for home in [1, 2] as [UInt32] {
            for _ in 0..<3 {
                let random = random.next()
                lanes.append(
                    Lane(
                        id: LaneID(high: random, low: UInt64(home)),
                        name: "20261121T081530Z-\(lanes.count + 1)-\(Hex.text(random))",
                        home: home, isEncrypted: self.random.chance(3)))
            }
        }
        try restart(clients)
        for _ in 0..<sized(80, 120, 120) {
            try submit(try make(), clients, what)
            // Of its own dice: what happens otherwise is the same with and without.
            swap(&random, &disguises)
            if random.chance(10), let piece = try disguised() { try submit(piece, clients, what) }
            if random.chance(10) {
                for piece in try covering() { try submit(piece, clients, what) }
            }
            swap(&random, &disguises)
            if random.chance(20) { try restart(clients) }
            if random.chance(40) { try compact() }
            if random.chance(20) { try check(clients, what) }
        }
        try restart(clients)
        try check(clients, what)
        try compact()
        try check(clients, what + ", compacted")
        depot = nil
    }

    private func restart(_ clients: UInt32) throws {
        depot = nil
        depot = try Depot(CollectorOptions(directory: directory), inspector: .cordwood)
        let tokens = (0..<clients).map { [Array("token-\($0)".utf8)] }
        XCTAssertEqual(try depot?.senders.learn(tokens), clients == 1 ? [1] : [1, 2])
    }

    private func compact() throws {
        let summary = try StoreCompactor.compact(
            directory: FilePath(directory), ageSeconds: 0, identities: [identity])
        XCTAssertEqual(summary.damage.filter { !isOfDisguise($0) }, [])
        counts["compacted", default: 0] += summary.archivesOut
    }

    private func isOfDisguise(_ problem: String) -> Bool {
        problem.hasSuffix("the archive inside is not the one described outside")
    }

    // MARK: Making

    private func make() throws -> Piece {
        let by = UInt32(1 + random.below(2))
        switch random.below(8) {
        case 0...2: return try honest(by)
        case 3: return try merged(by) ?? honest(by)
        case 4:
            // Again, perhaps by the other one.
            guard !pieces.isEmpty else { return try honest(by) }
            var piece = pieces[random.below(pieces.count)]
            piece.by = by
            return piece
        default: return try forged(by)
        }
    }

    private func seals(_ segments: ClosedRange<UInt64>) -> [SegmentSeal] {
        segments.map {
            SegmentSeal(number: $0, digest: LaneID(high: random.next(), low: random.next()))
        }
    }

    private func records(
        _ lane: Lane, _ by: UInt32, from sequence: UInt64, _ count: Int
    ) -> [MadeArchive.Record] {
        (0..<count).map {
            number += 1
            return MadeArchive.Record(
                lane: lane.id, sequence: sequence + UInt64($0), message: "\(by) \(number)")
        }
    }

    private func piece(
        _ records: [MadeArchive.Record], _ covers: [ArchiveCover], _ by: UInt32,
        replaced: [ReplacedArchive] = [], encrypted: Bool
    ) throws -> Piece {
        let archive = try MadeArchive(
            records, covers, replaced: replaced, recipients: encrypted ? [identity.recipient] : [],
            in: directory + "-made")
        return Piece(archive: archive, records: records, by: by)
    }

    private func honest(_ by: UInt32) throws -> Piece {
        let index = (by == 1 ? 0 : 3) + random.below(3)
        let lane = lanes[index]
        let last = lane.segment + UInt64(random.below(2))
        let records = records(lane, by, from: lane.sequence, 1 + random.below(4))
        let cover = MadeArchive.cover(
            lane.id, lane.name, lane.segment, last, seals: seals(lane.segment...last))
        var made = try piece(records, [cover], by, encrypted: lane.isEncrypted)
        made.isHonest = true
        lanes[index].segment = last + 1
        lanes[index].sequence += UInt64(records.count)
        lanes[index].made.append(pieces.count)
        // Some are merged before they are sent.
        guard random.chance(3) else {
            pieces.append(made)
            return made
        }
        pieces.append(made)
        return try merged(by) ?? made
    }

    private func merged(_ by: UInt32) throws -> Piece? {
        let lane = lanes[(by == 1 ? 0 : 3) + random.below(3)]
        guard lane.made.count > 1 else { return nil }
        let start = random.below(lane.made.count - 1)
        let members = lane.made[start...start + 1].map { pieces[$0] }
        var cover = members[0].archive.info.covers[0]
        let next = members[1].archive.info.covers[0]
        cover.last = next.last
        cover.seals += next.seals
        var made = try piece(
            members.flatMap(\.records), [cover], by, replaced: replaced(members),
            encrypted: lane.isEncrypted)
        made.isHonest = true
        pieces.append(made)
        return made
    }

    private func replaced(_ members: [Piece]) -> [ReplacedArchive] {
        members.map {
            ReplacedArchive(
                id: $0.archive.info.id, recordCount: $0.archive.info.recordCount)
        }
    }

    private func forged(_ by: UInt32) throws -> Piece {
        guard let victim = pieces.randomElement(using: &random) else { return try honest(by) }
        let mine = lanes[(by == 1 ? 0 : 3) + random.below(3)]
        let other = lanes[random.below(lanes.count)]
        let encrypted = random.chance(3)
        let covers = victim.archive.info.covers
        guard let cover = covers.first, let lane = lanes.first(where: { $0.id == cover.laneID })
        else { return try honest(by) }
        let count = random.chance(2) ? victim.records.count : 1 + random.below(4)
        let sequence = victim.records.first?.sequence ?? 0
        let junk = records(lane, by, from: sequence, count)
        var made: Piece
        switch random.below(8) {
        case 0:  // A lane, perhaps one that nobody has sent yet.
            made = try piece(
                records(other, by, from: other.sequence, count),
                [
                    MadeArchive.cover(
                        other.id, other.name, other.segment, other.segment + 1,
                        seals: seals(other.segment...other.segment + 1))
                ], by, encrypted: encrypted)
        case 1:  // Says that it replaces, and covers something else.
            made = try piece(
                records(mine, by, from: mine.sequence + 1000, count),
                [MadeArchive.cover(mine.id, mine.name, 1000, 1000, seals: seals(1000...1000))], by,
                replaced: replaced([victim]), encrypted: encrypted)
        case 2:  // Covers it as well, and has junk of it, or nothing.
            let own = records(mine, by, from: mine.sequence + 2000, 1)
            made = try piece(
                random.chance(2) ? own : own + junk,
                [MadeArchive.cover(mine.id, mine.name, 2000, 2000, seals: seals(2000...2000))]
                    + covers, by, replaced: replaced([victim]), encrypted: encrypted)
        case 3:  // Its id.
            made = try piece(
                junk, covers, by,
                replaced: victim.archive.info.replaced, encrypted: encrypted)
        case 4:  // Its name.
            let id = LaneID(high: random.next(), low: 9)
            let fresh = Lane(id: id, name: lane.name, home: by, isEncrypted: false)
            made = try piece(
                records(fresh, by, from: sequence, count),
                [
                    MadeArchive.cover(
                        id, lane.name, cover.first, cover.last,
                        seals: seals(cover.first...cover.last))
                ], by, encrypted: encrypted)
        case 5:  // Its segments, and more.
            var wide = cover
            wide.last += 1
            wide.seals += seals(wide.last...wide.last)
            made = try piece(junk, [wide], by, encrypted: encrypted)
        case 6:  // Some of its segments.
            var narrow = cover
            narrow.seals = [cover.seals[0]]
            made = try piece(junk, [narrow], by, encrypted: encrypted)
        default:  // Records of a lane that it does not cover.
            // Encrypted, nobody without the key would know.
            let cover = MadeArchive.cover(
                mine.id, mine.name, 3000, 3000, seals: seals(3000...3000))
            made = try piece(junk, [cover], by, encrypted: false)
            made.isRefused = mine.id != lane.id
        }
        return made
    }

    /// An encrypted archive of a lane of its own, which says inside that it has what another
    /// client has sent.
    private func disguised() throws -> Piece? {
        guard let victim = pieces.randomElement(using: &random) else { return nil }
        let by = UInt32(1 + random.below(2))
        let id = LaneID(high: random.next(), low: 7)
        let own = Lane(
            id: id, name: "20261121T081530Z-9-\(Hex.text(id.high))", home: by, isEncrypted: true)
        let made = records(own, by, from: 0, 1)
        let cover = MadeArchive.cover(id, own.name, 0, 0, seals: seals(0...0))
        let outside = try MadeArchive(made, [cover], in: directory + "-made")
        let inside = try MadeArchive(
            made, [cover] + victim.archive.info.covers,
            replaced: random.chance(2) ? replaced([victim]) : [], in: directory + "-made")
        counts["disguised", default: 0] += 1
        return Piece(
            archive: inside.disguised(as: outside, to: identity.recipient), records: made, by: by)
    }

    /// Archives that claim what is of others where nobody would look: by seals of segments that
    /// they do not cover, which another one joins to these, or by a cover without segments.
    private func covering() throws -> [Piece] {
        guard let victim = pieces.randomElement(using: &random),
            let theirs = victim.archive.info.covers.first
        else { return [] }
        let by = UInt32(1 + random.below(2))
        let id = LaneID(high: random.next(), low: 5)
        let name = "20261121T081530Z-9-\(Hex.text(id.high))"
        let own = Lane(id: id, name: name, home: by, isEncrypted: random.chance(3))
        var made: [Piece] = []
        if random.chance(2) {
            let far = theirs.last + 1 + UInt64(random.below(3))
            let cover = MadeArchive.cover(
                theirs.laneID, theirs.laneName, far, far, seals: theirs.seals + seals(far...far))
            made.append(
                try piece(junk(theirs.laneID, by), [cover], by, encrypted: own.isEncrypted))
            let bridge = MadeArchive.cover(
                theirs.laneID, theirs.laneName, theirs.last, far, seals: seals(far...far))
            made.append(try piece(junk(theirs.laneID, by), [bridge], by, encrypted: false))
        } else {
            let first = theirs.first + 1
            let none = MadeArchive.cover(theirs.laneID, theirs.laneName, first, first - 1)
            made.append(
                try piece(
                    records(own, by, from: 0, 1) + junk(theirs.laneID, by),
                    [MadeArchive.cover(id, name, 0, 0, seals: seals(0...0)), none], by,
                    encrypted: own.isEncrypted))
        }
        made[0].isRefused = true
        counts["covering", default: 0] += 1
        return made
    }

    private func junk(_ lane: LaneID, _ by: UInt32) -> [MadeArchive.Record] {
        let lane = Lane(id: lane, name: "", home: by, isEncrypted: false)
        return records(lane, by, from: 1_000_000 + 4 * UInt64(number), 1)
    }

    // MARK: Sending and reading

    private func archives() -> [String] { stored().filter { $0.hasSuffix(".cwa") } }

    private func submit(_ piece: Piece, _ clients: UInt32, _ what: String) throws {
        let depot = try XCTUnwrap(depot)
        let file = try depot.admit()
        try piece.archive.bytes.withUnsafeBytes { try depot.append($0, to: file) }
        let client = clients == 1 ? 1 : piece.by
        let key = random.chance(2) ? piece.archive.id : nil
        let before = archives()
        sent[client, default: []].formUnion(piece.records.map(\.message))
        let outcome = depot.take(file, key: key, from: Sender(client: client))
        let covers = piece.archive.info.covers
        switch outcome {
        case .stored(let id, let records):
            XCTAssertEqual(id, piece.archive.id, what)
            XCTAssertEqual(records, UInt64(piece.records.count), what)
            let isNew = archives() != before
            counts[isNew ? "stored" : "known", default: 0] += 1
            if isNew {
                for cover in covers where owners[cover.laneID] == nil {
                    owners[cover.laneID] = client
                }
                accepted.append(piece)
            }
            taken.formUnion(piece.records.map(\.message))
            XCTAssertFalse(piece.isRefused, what)
        case .aside(_, _, let reason):
            counts["aside", default: 0] += 1
            let folder = directory + "/quarantine"
            let kept = try FileManager.default.contentsOfDirectory(atPath: folder).contains {
                FileManager.default.contents(atPath: "\(folder)/\($0)")
                    == Data(piece.archive.bytes)
            }
            XCTAssertTrue(kept, "\(what): put aside, and not there: \(reason)")
            // What is true is put aside only if the lane is another client's, or if its own client
            // said something else of these segments, or something that nobody without the key can
            // judge.
            let isOwn = covers.allSatisfy { [nil, client].contains(owners[$0.laneID]) }
            if piece.isHonest, isOwn {
                let others = accepted.filter {
                    !$0.isHonest || $0.archive.info.isEncrypted || piece.archive.info.isEncrypted
                }
                let own = others.filter { clients == 1 || $0.by == client }
                XCTAssertTrue(others.contains { $0.claims(piece) }, "\(what): \(reason)")
                XCTAssertTrue(own.contains { $0.overlaps(piece) }, "\(what): \(reason)")
            }
        case .refused(let reason):
            counts["refused", default: 0] += 1
            XCTAssertTrue(piece.isRefused, "\(what): \(reason)")
        default: XCTFail("\(what): \(outcome)")
        }
    }

    private func check(_ clients: UInt32, _ what: String) throws {
        var options = ReaderOptions()
        options.identities = [identity]
        let reader = try StoreReader(path: directory, options: options)
        var seen: [String: Int] = [:]
        var strangers: [String] = []
        while true {
            let status = reader.next { record in
                let message = String(decoding: record.message, as: UTF8.self)
                seen[message, default: 0] += 1
                let owner = owners[record.thread.process.laneID] ?? 0
                if sent[owner]?.contains(message) != true { strangers.append(message) }
            }
            guard case .record = status else { break }
        }
        XCTAssertEqual(strangers, [], "\(what): records in lanes of others")
        let missing = taken.filter { seen[$0] == nil }
        XCTAssertEqual(missing.sorted(), [], "\(what): taken, and not there")
        let invented = seen.keys.filter { !taken.contains($0) }
        XCTAssertEqual(invented.sorted(), [], "\(what): there, and not taken")
        XCTAssertEqual(seen.filter { $0.value > 1 }.keys.sorted(), [], "\(what): twice")
        let report = try StoreInspector.verify(directory: directory, identities: [identity])
        XCTAssertEqual(report.problems.filter { !isOfDisguise($0) }, [], what)
    }
}
