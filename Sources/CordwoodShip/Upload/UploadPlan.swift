// A preview that sends nothing: the bodies that a target's next attempts would carry, byte for byte
// (B-SAP-10). Changes nothing in the store. Any thread.
// SAFETY: pieces hold during the call that hands them out.

import CordwoodCore
import CordwoodStore

/// One request of the preview.
public struct PlannedRequest: Sendable {
    /// The archive's file name.
    public var archive: String
    /// The request's id.
    public var id: String
    public var method: String
    public var contentType: String
    public var encoding: String
    public var bytes: UInt64
    /// nil: the archive is sent as a file.
    public var records: UInt32?
}

extension UploadService {
    /// Visits every request that one attempt at each archive waiting for the target would make.
    /// - Parameters:
    ///   - begin: false: no more requests; nil: skip this one's bytes.
    ///   - piece: the body's bytes, in order; false: no more requests.
    /// - Returns: the number of requests.
    package func plan(
        _ target: Target, begin: (PlannedRequest) -> Bool?,
        piece: (UnsafeRawBufferPointer) -> Bool
    ) throws(UploadError) -> Int {
        let work = try work()
        let covered = covered(work.archives.map(\.stem))
        var count = 0
        for archive in work.archives {
            let state = work.snapshot.state(archive.stem, target.key)
            // An archive that cannot be opened would not be sent either.
            guard !state.isFinal, let summary = archive.summary,
                !covered.contains(archive.stem),
                let lock = try? ArchiveLock(paths: paths, stem: archive.stem, target: target.key)
            else { continue }
            var planner = Planner(
                target: target, paths: paths, identities: identities, summary: summary,
                progress: state.progress,
                refusals: try outbox.refusals(archive.stem, target.key, state), lines: lines)
            do throws(UploadError) {
                let goesOn = try planner.run(lock) { (delivery, part, body) throws(UploadError) in
                    count += 1
                    let wanted = begin(PlannedRequest(target, delivery, part, body))
                    guard let wanted else { return true }
                    guard wanted else { return false }
                    return try unsafe body.read(piece)
                }
                if !goesOn { break }
            } catch .locked {
                // None of it would be sent: it waits for a key.
                continue
            }
        }
        return count
    }
}

extension PlannedRequest {
    fileprivate init(
        _ target: Target, _ delivery: Delivery, _ part: Planner.Part, _ body: borrowing Body
    ) {
        archive = delivery.fileName
        id = delivery.id
        method = target.dialect.method
        contentType = target.dialect.contentType
        encoding = target.encoding.rawValue
        bytes = body.bytes
        records = part.records
    }
}

/// Makes the bodies of one archive for one target in the order of an attempt that succeeds.
struct Planner {
    struct Part {
        /// nil: the archive is sent as a file.
        var records: UInt32?
        /// Nothing of the archive follows.
        var isLast = true
    }

    /// False: no more requests.
    typealias Visit = (Delivery, Part, borrowing Body) throws(UploadError) -> Bool

    private let target: Target
    private let paths: StorePaths
    private let identities: [AgeIdentity]
    private let lines: LineRenderers
    private let summary: ArchiveSummary
    private var progress: Progress
    private let refusals: PairRefusals
    /// An encoding other than the target's shows the content of a body.
    var encoding: BodyEncoding
    /// Asked at least once for each chunk of a body's content.
    var shouldStop: () -> Bool = { false }

    /// - Parameter refusals: nil: they cannot be read, so all records would be sent.
    init(
        target: Target, paths: StorePaths, identities: [AgeIdentity], summary: ArchiveSummary,
        progress: Progress, refusals: PairRefusals?, lines: LineRenderers = .standard
    ) {
        self.target = target
        self.paths = paths
        self.identities = identities
        self.lines = lines
        self.summary = summary
        self.progress = refusals == nil ? .start : progress
        self.refusals = refusals ?? .none
        encoding = target.encoding
    }

    /// False: `visit` wants no more, or it was stopped.
    mutating func run(
        _ archive: borrowing ArchiveLock, _ visit: Visit
    ) throws(UploadError) -> Bool {
        guard let encoder = try target.dialect.makeEncoder(lines, store: paths) else {
            let delivery = delivery(archive.stem, nil)
            if encoding == .none {
                return try visit(delivery, Part(), Body(archive: archive))
            }
            let copy = try ArchiveCopy.body(
                archive, paths, encoding: encoding, shouldStop: shouldStop)
            guard let copy else { return false }
            return try visit(delivery, Part(), copy)
        }
        var parts = ArchiveParts(
            paths: paths, stem: archive.stem, filter: target.filter,
            limits: target.dialect.limits, encoder: encoder, identities: identities,
            hashes: target.kind == .s3, again: target.encoders(lines, paths))
        while true {
            let next = try parts.next(
                from: progress.done, end: progress.doubt > progress.done ? progress.doubt : nil,
                wanted: refusals, encoding: encoding, shouldStop: shouldStop)
            switch consume next {
            case .stopped: return false
            case .nothing(let upTo, let isLast, _):
                if isLast { return true }
                progress = Progress(done: upTo)
            case .part(let part):
                let isWhole = part.range.first == 0 && part.isLast && refusals.round == 0
                var delivery = delivery(archive.stem, isWhole ? nil : part.range)
                delivery.contentBytes = part.body.contentBytes
                delivery.entries = part.entries
                delivery.ordinals = part.ordinals
                delivery.recordIDs = part.recordIDs
                let goesOn = try visit(
                    delivery, Part(records: part.entries, isLast: part.isLast), part.body)
                if !goesOn || part.isLast { return goesOn }
                progress = Progress(done: part.range.end)
            }
        }
    }

    private func delivery(_ stem: String, _ range: PartRange?) -> Delivery {
        Delivery(
            target, summary, stem: stem, range: range, round: refusals.round, encoding: encoding,
            nowUnixMs: 0)
    }
}
