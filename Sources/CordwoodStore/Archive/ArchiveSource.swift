// Reads an archive as a run of records (FORMAT §11), with one block in memory at a time. Reports
// damage in a block once and continues with the next block. One thread at a time; the descriptor
// stays open, so an archive that is deleted meanwhile is read to its end.
// SAFETY: a record's views stay valid until `advance` loads the next block.

import CordwoodCore

package final class ArchiveSource: RecordSource {
    package let info: ArchiveInfo
    /// Problems of header and footer, reported before the first record.
    private var problems: [ReadProblem]
    private let file: ArchiveFile
    private let blocks: [BlockEntry]
    private var loader = BlockLoader()
    private var records: BlockRecords?
    private var block = 0
    private var nextBlock = 0
    private var since: UInt64 = 0
    private var until: UInt64 = 0
    private var levels: UInt32 = .max
    private var firstProcess: ProcessInfo?
    private var firstMonotonic: UInt64 = 0
    private var begun = false
    private var known = false

    /// Throws `.damaged` if the file is not an archive, `.version` if it is a newer one. An
    /// encrypted archive that none of the identities opens has no records: `advance` throws
    /// `.locked` once. If the file does not even say which archive it is, this throws `.locked`.
    package static func open(
        path: String, identities: [AgeIdentity] = []
    ) throws(ReadProblem) -> ArchiveSource {
        try ArchiveSource(ArchiveFile(path: path, identities: identities))
    }

    private let text = DeferredText()

    private init(_ file: consuming ArchiveFile) throws(ReadProblem) {
        let index = try ArchiveIndex.load(file, salvage: true)
        info = index.info
        blocks = index.blocks
        problems = index.problems.reversed()
        if let locked = index.locked { problems.append(locked) }
        self.file = file
    }

    package var header: ArchiveInfo { info }

    /// Skips blocks that hold nothing in [since, until) (UTC ns; 0: open) or nothing at or above
    /// `level` (0: all). Does not filter the records of other blocks. Call before the first record.
    package func restrict(since: UInt64, until: UInt64, level: UInt8) {
        self.since = since
        self.until = until
        levels = LevelSet.atLeast(level)
    }

    /// Monotonic time of the first record; 0 if it is not known.
    package var createdMonotonicNs: UInt64 {
        begin()
        return firstMonotonic
    }

    package var process: ProcessInfo? {
        begin()
        return firstProcess
    }

    package func advance() throws(ReadProblem) -> RecordRef? {
        if let problem = problems.popLast() { throw problem }
        while true {
            switch records?.next() {
            case .record(var record):
                text.render(&record)
                return record
            case .damaged:
                records = nil
                throw .damaged("\(info.path): columns of the block at \(blocks[block].offset)")
            case .end, nil:
                records = nil
                guard try load() else { return nil }
            }
        }
    }

    /// Loads the next wanted block; false at the end.
    private func load() throws(ReadProblem) -> Bool {
        begun = true
        while nextBlock < blocks.count, !isWanted(blocks[nextBlock]) { nextBlock += 1 }
        guard nextBlock < blocks.count else { return false }
        block = nextBlock
        nextBlock += 1
        let head = try loader.load(blocks[block], of: file)
        guard let found = unsafe BlockRecords(loader.payload, recordCount: head.recordCount) else {
            throw .damaged("\(info.path): columns of the block at \(blocks[block].offset)")
        }
        records = found
        if !known { learn(found) }
        return true
    }

    private func learn(_ found: BlockRecords) {
        known = true
        firstProcess = found.dictionaries.processes.first
        var peeked = found
        if case .record(let record) = peeked.next() { firstMonotonic = record.monotonicNs }
    }

    private func isWanted(_ block: BlockEntry) -> Bool {
        (since == 0 || block.timeMax >= since) && (until == 0 || block.timeMin < until)
            && block.levels & levels != 0
    }

    /// Looks at the first block without consuming it; damage found before it is reported later.
    private func begin() {
        if begun { return }
        var met: [ReadProblem] = []
        while met.count < ArchiveLimits.problemsMax {
            do throws(ReadProblem) {
                _ = try load()
                break
            } catch {
                met.append(error)
            }
        }
        problems = met.reversed() + problems
    }
}
