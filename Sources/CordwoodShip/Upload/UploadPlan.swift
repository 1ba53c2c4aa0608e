// A preview that sends nothing: the bodies that a target's next attempts would carry, byte for byte
// (B-SAP-10). Changes nothing in the store except for temporary files without names. Any thread.
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
        var count = 0
        for archive in work.archives {
            let state = work.snapshot.state(archive.stem, target.key)
            // An archive that cannot be opened would not be sent either.
            guard !state.isFinal, let summary = archive.summary,
                !isCovered(archive.stem),
                let lock = try? ArchiveLock(paths: paths, stem: archive.stem, target: target.key)
            else { continue }
            var planner = Planner(
                target: target, service: self, summary: summary, progress: state.progress,
                refusals: try outbox.refusals(archive.stem, target.key, state))
            do throws(UploadError) {
                let goesOn = try unsafe planner.run(lock, begin, piece)
                count += planner.count
                if !goesOn { break }
            } catch .locked {
                // None of it would be sent: it waits for a key.
                continue
            }
        }
        return count
    }
}

private struct Planner {
    let target: Target
    let service: UploadService
    let summary: ArchiveSummary
    var progress: Progress
    var refusals: PairRefusals
    var count = 0

    /// - Parameter refusals: nil: they cannot be read, so all records would be sent.
    init(
        target: Target, service: UploadService, summary: ArchiveSummary, progress: Progress,
        refusals: PairRefusals?
    ) {
        self.target = target
        self.service = service
        self.summary = summary
        self.progress = refusals == nil ? .start : progress
        self.refusals = refusals ?? .none
    }

    mutating func run(
        _ archive: borrowing ArchiveLock, _ begin: (PlannedRequest) -> Bool?,
        _ piece: (UnsafeRawBufferPointer) -> Bool
    ) throws(UploadError) -> Bool {
        guard
            let encoder = try target.dialect.makeEncoder(service.lines, store: service.paths)
        else {
            if target.encoding == .none {
                return try unsafe visit(
                    archive.stem, nil, nil, Body(archive: archive), begin, piece)
            }
            let copy = try TemporaryBody.copy(
                archive, service.paths, encoding: target.encoding, shouldStop: { false })
            guard let copy else { return false }
            return try unsafe visit(archive.stem, nil, nil, copy, begin, piece)
        }
        var parts = ArchiveParts(
            paths: service.paths, stem: archive.stem, archiveID: summary.idText,
            filter: target.filter, limits: target.dialect.limits, encoder: encoder,
            identities: service.identities)
        while true {
            let next = try parts.next(
                from: progress.done, end: progress.doubt > progress.done ? progress.doubt : nil,
                wanted: refusals, encoding: target.encoding, shouldStop: { false })
            switch consume next {
            case .stopped: return false
            case .nothing(let upTo, let isLast, _):
                if isLast { return true }
                progress = Progress(done: upTo)
            case .part(let part):
                let isWhole = part.range.first == 0 && part.isLast && refusals.round == 0
                let goesOn = try unsafe visit(
                    archive.stem, isWhole ? nil : part.range, part.entries, part.body, begin, piece)
                if !goesOn || part.isLast { return goesOn }
                progress = Progress(done: part.range.end)
            }
        }
    }

    private mutating func visit(
        _ stem: String, _ range: PartRange?, _ records: UInt32?, _ body: borrowing Body,
        _ begin: (PlannedRequest) -> Bool?, _ piece: (UnsafeRawBufferPointer) -> Bool
    ) throws(UploadError) -> Bool {
        count += 1
        let wanted = begin(
            PlannedRequest(
                archive: StorePaths.file(ofStem: stem),
                id: Delivery.id(
                    archiveID: summary.idText, range: range, round: refusals.round),
                method: target.dialect.method, contentType: target.dialect.contentType,
                encoding: target.encoding.rawValue, bytes: body.bytes, records: records))
        guard let wanted else { return true }
        guard wanted else { return false }
        var buffer = [UInt8](repeating: 0, count: CompressingSink.chunkBytes)
        var at: UInt64 = 0
        while at < body.bytes {
            let got = Files.readOnce(
                body.descriptor, into: &buffer, min(buffer.count, Int(body.bytes - at)), at: at)
            guard got > 0 else {
                throw UploadError.system(
                    call: "pread", path: stem, errno: got < 0 ? Errno.last : Errno.EIO)
            }
            at += UInt64(got)
            let goesOn = unsafe buffer.withUnsafeBytes {
                unsafe piece(UnsafeRawBufferPointer(rebasing: $0[..<got]))
            }
            if !goesOn { return false }
        }
        return true
    }
}
