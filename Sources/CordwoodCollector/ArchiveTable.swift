// The archives that are stored, and those being judged: which segments of which lanes they have,
// and whose lanes these are. The only place that decides what an archive has to be compared with.
// Built at start from the headers in the directory. Any thread; the lock is held for table
// operations only, never across a file operation.

import Cordwood
import Synchronization

final class ArchiveTable: Sendable {
    struct Rival: Sendable {
        var number: UInt64
        var name: String
        var bytes: UInt64
    }

    enum Entrance {
        /// Another archive that has some of its segments is being judged.
        case busy
        /// A lane of another client's; and the stored archive with the same id.
        case foreign(LaneID, owner: UInt32, twin: Rival?)
        /// `settle` or `leave` must follow. Stored archives that have some of its segments, that
        /// with its id first; and the lanes that are not yet the sender's.
        case entered(UInt64, rivals: [Rival], claims: Set<LaneID>)
    }

    private struct Archive {
        var id: LaneID
        /// nil: it is being judged.
        var name: String?
        /// To inflate.
        var bytes: UInt64
        var client: UInt32
    }

    private struct Cover {
        var archive: UInt64
        var range: ClosedRange<UInt64>
        /// Whose share it counts against.
        var client: UInt32
    }

    private struct Lane {
        var covers: [Cover] = []
        /// nil: nobody is known to have sent it.
        var owner: UInt32?
    }

    private struct Content {
        var archives: [UInt64: Archive] = [:]
        var names: Set<String> = []
        var lanes: [LaneID: Lane] = [:]
        var coverCount = 0
        /// Covers of each client.
        var shares: [UInt32: Int] = [:]
        var last: UInt64 = 0

        /// Removes the covers of archives that are gone.
        mutating func covers(of lane: LaneID) -> [Cover] {
            guard let covers = lanes[lane]?.covers else { return [] }
            let left = covers.filter { archives[$0.archive] != nil }
            if left.count < covers.count {
                lanes[lane]?.covers = left
                coverCount -= covers.count - left.count
                for cover in covers where archives[cover.archive] == nil {
                    shares[cover.client, default: 0] -= 1
                }
            }
            return left
        }

        mutating func add(_ archive: Archive, _ segments: LaneRanges) -> UInt64 {
            last += 1
            archives[last] = archive
            if let name = archive.name { names.insert(name) }
            for (lane, ranges) in segments.lanes {
                let owner = archive.name == nil ? archive.client : lanes[lane]?.owner
                let client = owner ?? 0
                lanes[lane, default: Lane()].covers += ranges.map {
                    Cover(archive: last, range: $0, client: client)
                }
                coverCount += ranges.count
                shares[client, default: 0] += ranges.count
            }
            return last
        }

        func rival(_ number: UInt64) -> Rival? {
            archives[number].map { Rival(number: number, name: $0.name ?? "", bytes: $0.bytes) }
        }
    }

    /// Of all covers, what one of several clients may have once half of them are taken.
    private static let sharesMin = 8
    /// Each archive of a lane is compared with all of its covers.
    static let laneCoversMax = 65_536

    private let content = Mutex(Content())
    private let coversMax: Int

    init(coversMax: Int) { self.coversMax = coversMax }

    func enter(_ facts: ArchiveFacts, _ key: LaneID, from client: UInt32, _ senders: Senders)
        -> Entrance
    {
        content.withLock { content in
            var found: Set<UInt64> = []
            var claims: Set<LaneID> = []
            var foreign: (LaneID, UInt32)?
            // An id is made of lanes (FORMAT §11): an archive that has it has one of these.
            var twin: UInt64?
            for (lane, ranges) in facts.segments.lanes {
                let covers = content.covers(of: lane)
                for cover in covers {
                    if content.archives[cover.archive]?.id == key { twin = cover.archive }
                    if LaneRanges.have(ranges, anyOf: cover.range) { found.insert(cover.archive) }
                }
                let owner = content.lanes[lane]?.owner
                switch senders.right(of: client, to: owner) {
                case .own: break
                case .open:
                    claims.insert(lane)
                    // The first client to send a lane owns it.
                    let others = covers.compactMap { content.archives[$0.archive] }
                    if others.contains(where: { $0.name == nil && $0.client != client }) {
                        return .busy
                    }
                case .another: foreign = foreign ?? (lane, owner ?? 0)
                }
            }
            if let twin { found.remove(twin) }
            let rivals = ((twin.map { [$0] } ?? []) + found.sorted()).compactMap {
                content.rival($0)
            }
            if twin != nil, rivals.first?.name.isEmpty == true { return .busy }
            if let foreign {
                return .foreign(
                    foreign.0, owner: foreign.1, twin: twin == nil ? nil : rivals.first)
            }
            if rivals.contains(where: { $0.name.isEmpty }) { return .busy }
            let archive = Archive(id: key, name: nil, bytes: facts.rawBytes, client: client)
            let number = content.add(archive, facts.segments)
            return .entered(number, rivals: rivals, claims: claims)
        }
    }

    /// Whether an archive that has entered, with these claims, may be stored. A client with a lane
    /// may go on with it, until it has its share of a table that is half full: then it would take
    /// the room of others.
    func hasRoom(
        _ number: UInt64, _ facts: ArchiveFacts, claims: Set<LaneID>, _ senders: Senders
    ) -> Bool {
        content.withLock { content in
            let isFree =
                claims.isEmpty
                || content.lanes.count <= coversMax && content.coverCount <= coversMax
            let lanes = facts.segments.lanes.keys
            guard isFree,
                lanes.allSatisfy({
                    content.lanes[$0]?.covers.count ?? 0 <= ArchiveTable.laneCoversMax
                })
            else { return false }
            if content.coverCount <= coversMax / 2 { return true }
            let share = senders.sum(content.shares, of: content.archives[number]?.client ?? 0)
            let sharesMin = senders.areSeveral ? ArchiveTable.sharesMin : 1
            return share <= max(1, coversMax / sharesMin)
        }
    }

    /// What has to be inflated at most to compare one with all that have segments of it.
    func comparedBytes(_ facts: ArchiveFacts) -> UInt64 {
        content.withLock { content in
            var found: Set<UInt64> = []
            for (lane, ranges) in facts.segments.lanes {
                for cover in content.covers(of: lane)
                where LaneRanges.have(ranges, anyOf: cover.range) {
                    found.insert(cover.archive)
                }
            }
            return found.reduce(0) { $0 &+ facts.rawBytes &+ (content.archives[$1]?.bytes ?? 0) }
        }
    }

    /// False if the name belongs to another archive. INVARIANT: called before the rename, so
    /// that a rename never replaces another archive.
    func reserve(name: String) -> Bool {
        content.withLock { $0.names.insert(name).inserted }
    }

    func cancel(name: String) {
        content.withLock { _ = $0.names.remove(name) }
    }

    /// The archive is stored under its name, which is reserved, and the lanes are the client's.
    func settle(_ number: UInt64, name: String, claims: Set<LaneID>) {
        content.withLock { content in
            guard let archive = content.archives[number] else { return }
            content.archives[number]?.name = name
            for lane in claims { content.lanes[lane, default: Lane()].owner = archive.client }
        }
    }

    /// Forgets the archive unless it was settled.
    func leave(_ number: UInt64, _ facts: ArchiveFacts) {
        content.withLock { content in
            guard content.archives[number]?.name == nil else { return }
            content.archives[number] = nil
            for lane in facts.segments.lanes.keys where content.covers(of: lane).isEmpty {
                if content.lanes[lane]?.owner == nil { content.lanes[lane] = nil }
            }
        }
    }

    /// An archive that lies in the folder.
    func add(_ facts: ArchiveFacts, _ key: LaneID, name: String) {
        content.withLock {
            if $0.names.contains(name) { return }
            let archive = Archive(id: key, name: name, bytes: facts.rawBytes, client: 0)
            _ = $0.add(archive, facts.segments)
        }
    }

    func own(_ lane: LaneID, _ client: UInt32) {
        content.withLock { $0.lanes[lane, default: Lane()].owner = client }
    }

    /// The archives that are stored.
    var stored: [Rival] {
        content.withLock { content in
            content.archives.keys.compactMap { content.rival($0) }.filter { !$0.name.isEmpty }
        }
    }

    /// Forgets covers of archives that are gone, and if lanes take half of the limit, those without
    /// an archive.
    func tidyUp() {
        content.withLock { content in
            for lane in Array(content.lanes.keys) { _ = content.covers(of: lane) }
            if content.lanes.count > coversMax / 2 {
                content.lanes = content.lanes.filter { !$0.value.covers.isEmpty }
            }
        }
    }

    func has(name: String) -> Bool { content.withLock { $0.names.contains(name) } }

    /// The file is gone (retention, an operator): the id is new again.
    func forget(_ rival: Rival) {
        content.withLock { content in
            // Another one may have its name by now.
            guard content.archives.removeValue(forKey: rival.number) != nil else { return }
            content.names.remove(rival.name)
        }
    }
}
