// A cursor over stores and single files, merged by time; within a thread the order is exact. Reads
// beside running writers and archivers, which do not notice it. One thread at a time.

import CordwoodCore

public enum ReadStatus: Sendable {
    case record
    /// No more records; never returned while following.
    case end
    /// Following, and nothing is there now: wait a little (5 ms or more) and call again.
    case again
}

public final class StoreReader {
    /// Problems kept as text; the rest are only counted.
    private static let problemsMax = 1_000

    public let options: ReaderOptions
    /// Problems found, in order. Iteration continued after each.
    public private(set) var problems: [ReadProblem] = []
    public private(set) var problemCount = 0
    /// Records shown that no sync had covered before the machine went down.
    public private(set) var unverifiedCount = 0

    private let filter: RecordFilter
    private let merge: MergeSource
    private var views: [StoreView] = []
    /// Reported by the next `advance`.
    private var pending: [ReadProblem] = []

    /// Store directories or single files (.cwa, .seg, .sealed, .lane), in any mix. Throws if one of
    /// them does not exist, is not one of our files, or has a newer format.
    public init(
        paths: [String], options: ReaderOptions = ReaderOptions(), runningBoot: LaneID? = nil
    ) throws(ReadProblem) {
        self.options = options
        filter = options.filter
        merge = MergeSource()
        let boot = runningBoot ?? BootID.running()
        merge.onEnd = { [weak self] source in
            for view in self?.views ?? [] { view.ended(source) }
        }
        for (index, path) in paths.enumerated() {
            let order = UInt64(index) << 52
            if StoreFolder.isDirectory(path) {
                views.append(
                    try StoreView(
                        path: path, options: options, merge: merge, order: order,
                        runningBoot: boot
                    ) { [weak self] problem in self?.pending.append(problem) })
            } else {
                try addFile(path, order, boot)
            }
        }
    }

    public convenience init(
        path: String, options: ReaderOptions = ReaderOptions(), runningBoot: LaneID? = nil
    ) throws(ReadProblem) {
        try self.init(paths: [path], options: options, runningBoot: runningBoot)
    }

    private func addFile(_ path: String, _ order: UInt64, _ boot: LaneID) throws(ReadProblem) {
        let source: any RecordSource
        if path.hasSuffix(".seg") || path.hasSuffix(".sealed") || path.hasSuffix(".lane") {
            source = try SegmentFileSource.open(path: path, runningBoot: boot)
        } else {
            let archive = try ArchiveSource.open(path: path, identities: options.identities)
            archive.restrict(since: options.since, until: options.until, level: options.level)
            source = archive
        }
        if let process = source.process { merge.learn(process, lane: path) }
        merge.add(MergeInput(lowerBound: 0, order: order) { source })
    }

    /// The next record that passes the filter; nil at the end, or while following when there is
    /// nothing now. Throws once per damaged place: call again for the records after it. The
    /// record's bytes stay valid until the next call.
    public func advance() throws(ReadProblem) -> RecordRef? {
        if let record = try scan() { return record }
        if options.follow {
            for view in views { view.poll() }
            merge.poll { ($0 as? RestOfArchive)?.isDone ?? false }
            return try scan()
        }
        for view in views where view.recover() { return try advance() }
        return nil
    }

    private func scan() throws(ReadProblem) -> RecordRef? {
        while true {
            if !pending.isEmpty { throw note(pending.removeFirst()) }
            let found: RecordRef?
            do throws(ReadProblem) { found = try merge.advance() } catch { throw note(error) }
            guard var record = found else { return nil }
            if options.follow, merge.isLate { record.flags.insert(.late) }
            guard filter.matches(record) else { continue }
            if record.flags.contains(.unverified) { unverifiedCount &+= 1 }
            return record
        }
    }

    private func note(_ problem: ReadProblem) -> ReadProblem {
        problemCount &+= 1
        if problems.count < StoreReader.problemsMax { problems.append(problem) }
        return problem
    }

    /// Passes the next record to `body`; damage goes to `problems` and is skipped.
    public func next<E: Error>(_ body: (RecordRef) throws(E) -> Void) throws(E) -> ReadStatus {
        guard let record = skippingProblems() else { return options.follow ? .again : .end }
        try body(record)
        return .record
    }

    /// The next record as a value of its own; nil at the end, or while following when there is
    /// nothing now.
    public func nextRecord() -> Record? {
        skippingProblems().map { Record($0) }
    }

    private func skippingProblems() -> RecordRef? {
        while true {
            do throws(ReadProblem) { return try advance() } catch { continue }
        }
    }
}
