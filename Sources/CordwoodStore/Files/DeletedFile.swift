// The file `deleted` of a store: which transactions were forgotten, and until when (FORMAT §2.3).
// Their records stay in segments and archives until those are removed, but are neither listed nor
// sent. A file that cannot be read stops listing and sending: forgotten records must not go out.
// Any thread, any process.

import CShims
import CordwoodCore
import CordwoodFormats

/// A moment by both clocks. Between records of one boot, the monotonic clock decides which came
/// first, even if the other clock was set meanwhile.
package struct StoreMoment: Equatable, Sendable {
    /// UTC.
    package var timeNs: UInt64
    /// Zero if not known.
    package var boot = LaneID.zero
    package var monotonicNs: UInt64 = 0

    package init(timeNs: UInt64, boot: LaneID = .zero, monotonicNs: UInt64 = 0) {
        self.timeNs = timeNs
        self.boot = boot
        self.monotonicNs = monotonicNs
    }

    package static func now(plusNs: UInt64 = 0) -> StoreMoment {
        let boot = Machine.bootID()
        Machine.readTimeNamespace()
        return StoreMoment(
            timeNs: cw_realtime_ns() &+ plusNs, boot: LaneID(high: boot.high, low: boot.low),
            monotonicNs: Machine.sharedMonotonicNs() &+ plusNs)
    }

    func isSameBoot(_ other: StoreMoment) -> Bool { boot != .zero && boot == other.boot }

    /// True if the record is not younger than this moment.
    func covers(_ record: StoreMoment) -> Bool {
        isSameBoot(record)
            ? record.monotonicNs <= monotonicNs : record.timeNs <= timeNs
    }
}

package struct DeletedFile: Equatable, Sendable {
    package static let fileName = "deleted"
    package static let idsMax = 65_536
    private static let firstLine = "cordwood deleted"
    /// The most deletions of everything; there is one per boot.
    static let allMax = 16
    /// A line has at most 127 bytes.
    private static let bytesMax = 8 << 20

    /// Deletions of everything, in this order: the last one of each boot.
    package private(set) var all: [StoreMoment] = []
    /// For each transaction, the last deletion of each boot in which it was forgotten.
    package private(set) var ids: [TransactionID: [StoreMoment]] = [:]

    package init() {}

    /// Whether a record of that transaction and moment was forgotten.
    package func covers(_ id: TransactionID, _ record: StoreMoment) -> Bool {
        // A record younger than a deletion of its own boot is younger than all earlier deletions.
        for deletion in all.reversed() {
            if deletion.covers(record) { return true }
            if deletion.isSameBoot(record) { break }
        }
        guard !ids.isEmpty, let deletions = ids[id] else { return false }
        return deletions.contains { $0.covers(record) }
    }

    /// Empty if there is no file.
    package static func read(storeDirectory: FilePath) throws(UploadError) -> DeletedFile {
        let path = storeDirectory + "/" + fileName
        guard let bytes = try StoreFiles.read(path, bytesMax: bytesMax) else {
            return DeletedFile()
        }
        return try parse(bytes, path: path)
    }

    /// Adds a deletion that takes effect now.
    /// - Parameter id: nil: everything in the store.
    package static func forget(
        storeDirectory: FilePath, id: TransactionID?, until: StoreMoment
    ) throws(UploadError) {
        let lock = try StoreFiles.lockStore(storeDirectory)
        defer { _ = lock.number }
        var file = try read(storeDirectory: storeDirectory)
        if let id {
            try file.forget(id, until)
        } else {
            file.forgetAll(until)
        }
        try StoreFiles.replace(fileName, inStore: storeDirectory, with: file.bytes)
    }

    private mutating func forget(
        _ id: TransactionID, _ given: StoreMoment
    ) throws(UploadError) {
        var until = given
        var deletions = ids[id] ?? []
        if let old = deletions.firstIndex(where: { $0.boot == until.boot }) {
            until.timeNs = max(until.timeNs, deletions.remove(at: old).timeNs)
        }
        ids[id] = deletions + [until]
        if idLines > DeletedFile.idsMax { dropOldest() }
        guard idLines <= DeletedFile.idsMax else {
            throw UploadError.limit(
                "\(DeletedFile.idsMax) deletions of transactions are remembered already")
        }
    }

    private var idLines: Int { ids.values.reduce(0) { $0 + $1.count } }

    /// Drops deletions of earlier boots whose times a deletion of everything covers.
    private mutating func dropOldest() {
        guard let last = all.last else { return }
        keepIDs { $0.boot == last.boot || $0.timeNs > last.timeNs }
    }

    private mutating func keepIDs(_ isKept: (StoreMoment) -> Bool) {
        ids = ids.compactMapValues { deletions in
            let kept = deletions.filter(isKept)
            return kept.isEmpty ? nil : kept
        }
    }

    private mutating func forgetAll(_ given: StoreMoment) {
        var until = given
        // Replaces the deletion of this boot, or the oldest one if there are too many.
        let old = all.firstIndex { $0.boot == until.boot }
        if let index = old ?? (all.count < DeletedFile.allMax ? nil : 0) {
            let gone = all.remove(at: index).timeNs
            // Whatever it covered of other boots stays covered.
            if old != nil { until.timeNs = max(until.timeNs, gone) }
            if old == nil { all[0].timeNs = max(all[0].timeNs, gone) }
        }
        all.append(until)
        // A deletion of everything replaces earlier deletions of single transactions. Some stay: if
        // the clock ran ahead, only a deletion in the same boot can tell that a record is older.
        keepIDs {
            $0.timeNs > until.timeNs || $0.boot != until.boot && $0.boot != .zero
        }
    }

    var bytes: [UInt8] {
        let single = ids.flatMap { id, deletions in deletions.map { (id, $0) } }
            .sorted { $0.1.timeNs < $1.1.timeNs }
        return KeyValueFile.bytes(
            DeletedFile.firstLine,
            all.map { "all \(DeletedFile.text($0))" }
                + single.map { "\($0.text) \(DeletedFile.text($1))" })
    }

    private static func text(_ moment: StoreMoment) -> String {
        guard moment.boot != .zero else { return "\(moment.timeNs)" }
        return "\(moment.timeNs) \(Hex.text(moment.boot.bytes)) \(moment.monotonicNs)"
    }

    /// Ignores unknown keys.
    static func parse(_ bytes: [UInt8], path: FilePath) throws(UploadError) -> DeletedFile {
        var file = DeletedFile()
        let read = try KeyValueFile(bytes, firstLine: firstLine, path: path)
        for (index, line) in read.lines.enumerated() where !line.value.isEmpty {
            if line.key == "all" {
                file.all.append(try moment(line.value, path, index + 2))
                guard file.all.count <= allMax else {
                    throw UploadError.damaged("\(path): over \(allMax) deletions of all")
                }
            } else if let id = TransactionID(String(line.key)) {
                file.ids[id, default: []].append(try moment(line.value, path, index + 2))
            }
        }
        return file
    }

    /// A time, with its boot and monotonic time if they are known.
    private static func moment(
        _ text: Substring, _ path: FilePath, _ line: Int
    ) throws(UploadError) -> StoreMoment {
        let words = text.split(separator: " ")
        guard let first = words.first, let ns = UInt64(first) else {
            throw UploadError.damaged("\(path), line \(line): no time")
        }
        guard words.count > 1 else { return StoreMoment(timeNs: ns) }
        guard words.count > 2, let boot = LaneID(hex: words[1]), let monotonic = UInt64(words[2])
        else { throw UploadError.damaged("\(path), line \(line): no boot and its time") }
        return StoreMoment(timeNs: ns, boot: boot, monotonicNs: monotonic)
    }
}
