// The file `deleted` of a store: which transactions were forgotten, and until when (FORMAT §2.3).
// Their records stay in segments and archives until those go, but are neither listed nor sent. One
// that cannot be read stops both: what somebody wanted forgotten must not go out. Any thread, any
// process.

import CShims
import CordwoodCore
import Glibc

/// A moment by both clocks: of records of one boot the monotonic one decides which came first,
/// however the other was set meanwhile.
package struct StoreMoment: Equatable, Sendable {
    /// UTC.
    package var timeNs: UInt64
    /// Zero: not known.
    package var boot = LaneID.zero
    package var monotonicNs: UInt64 = 0

    package init(timeNs: UInt64, boot: LaneID = .zero, monotonicNs: UInt64 = 0) {
        self.timeNs = timeNs
        self.boot = boot
        self.monotonicNs = monotonicNs
    }

    /// Of a record.
    package init(_ record: borrowing RecordRef) {
        self.init(
            timeNs: record.timeNs, boot: record.thread.process.bootID,
            monotonicNs: record.monotonicNs)
    }

    package static func now(plusNs: UInt64 = 0) -> StoreMoment {
        let boot = Machine.bootID()
        return StoreMoment(
            timeNs: cw_realtime_ns() &+ plusNs, boot: LaneID(high: boot.high, low: boot.low),
            monotonicNs: cw_monotonic_ns() &+ plusNs)
    }

    func isSameBoot(_ other: StoreMoment) -> Bool { boot != .zero && boot == other.boot }

    /// Whether that is not younger.
    func covers(_ record: StoreMoment) -> Bool {
        isSameBoot(record)
            ? record.monotonicNs <= monotonicNs : record.timeNs <= timeNs
    }
}

package struct DeletedFile: Equatable, Sendable {
    package static let fileName = "deleted"
    static let temporaryName = ".deleted.new"
    package static let idsMax = 65_536
    private static let firstLine = "cordwood deleted"
    /// Deletions of all, of as many boots.
    static let allMax = 16
    /// A line has at most 127 bytes.
    private static let bytesMax = 8 << 20

    /// When all were forgotten, in this order: the last of each boot.
    package private(set) var all: [StoreMoment] = []
    package private(set) var ids: [TransactionID: StoreMoment] = [:]

    package init() {}

    /// Whether a record of that transaction and moment was forgotten.
    package func covers(_ id: TransactionID, _ record: StoreMoment) -> Bool {
        // What is younger than a deletion of its own boot is younger than those before it.
        for deletion in all.reversed() {
            if deletion.covers(record) { return true }
            if deletion.isSameBoot(record) { break }
        }
        return ids.isEmpty ? false : ids[id]?.covers(record) ?? false
    }

    /// Empty where there is no file.
    package static func read(storeDirectory: String) throws(UploadError) -> DeletedFile {
        let path = storeDirectory + "/" + fileName
        guard let bytes = try Files.read(path, bytesMax: bytesMax) else { return DeletedFile() }
        return try parse(bytes, path: path)
    }

    /// Adds what is forgotten from now on.
    /// - Parameter id: nil: all of the store.
    package static func forget(
        storeDirectory: String, id: TransactionID?, until: StoreMoment
    ) throws(UploadError) {
        // The store's own directory may be a link (StoreFile).
        let root = storeDirectory + "/."
        let lock = try Files.lockDirectory(root)
        defer { _ = lock.number }
        var file = try read(storeDirectory: storeDirectory)
        var until = until
        if let id {
            until.timeNs = max(until.timeNs, file.ids[id]?.timeNs ?? 0)
            file.ids[id] = until
            guard file.ids.count <= idsMax else {
                throw UploadError.limit("\(idsMax) deleted transactions are remembered already")
            }
        } else {
            file.forgetAll(until)
        }
        try Files.replace(
            storeDirectory + "/" + fileName, temporary: storeDirectory + "/" + temporaryName,
            directory: root, with: file.bytes)
    }

    private mutating func forgetAll(_ given: StoreMoment) {
        var until = given
        // The one of this boot, else the oldest where there are too many.
        let old = all.firstIndex { $0.boot == until.boot }
        if let index = old ?? (all.count < DeletedFile.allMax ? nil : 0) {
            let gone = all.remove(at: index).timeNs
            // What it covered of other boots stays covered.
            if old != nil { until.timeNs = max(until.timeNs, gone) }
            if old == nil { all[0].timeNs = max(all[0].timeNs, gone) }
        }
        all.append(until)
        // What was forgotten one by one before goes with all.
        ids = ids.filter { $0.value.timeNs > until.timeNs }
    }

    var bytes: [UInt8] {
        var text = "\(DeletedFile.firstLine)\nformat 1\n"
        for moment in all { text += "all \(DeletedFile.text(moment))\n" }
        for (id, moment) in ids.sorted(by: { $0.value.timeNs < $1.value.timeNs }) {
            text += "\(id.text) \(DeletedFile.text(moment))\n"
        }
        return Array(text.utf8)
    }

    private static func text(_ moment: StoreMoment) -> String {
        guard moment.boot != .zero else { return "\(moment.timeNs)" }
        let boot = [moment.boot.high, moment.boot.low].flatMap { word in
            (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(8 * $0)) }
        }
        return "\(moment.timeNs) \(ContentHash.hexText(boot)) \(moment.monotonicNs)"
    }

    /// Unknown keys are passed over.
    static func parse(_ bytes: [UInt8], path: String) throws(UploadError) -> DeletedFile {
        var file = DeletedFile()
        var format: UInt64?
        for (number, line) in bytes.split(separator: 0x0A).enumerated() {
            let text = String(decoding: line, as: UTF8.self)
            if number == 0 {
                guard text == firstLine else { break }
                continue
            }
            let parts = text.split(separator: " ")
            guard parts.count >= 2 else { continue }
            if parts[0] == "format" {
                format = UInt64(parts[1])
            } else if parts[0] == "all" {
                file.all.append(try moment(parts[1...], path, number))
                guard file.all.count <= allMax else {
                    throw UploadError.damaged("\(path): over \(allMax) deletions of all")
                }
            } else if let id = TransactionID(String(parts[0])) {
                file.ids[id] = try moment(parts[1...], path, number)
            }
        }
        guard let format else {
            throw UploadError.damaged("\(path) does not begin with '\(firstLine)' and a format")
        }
        guard format == 1 else {
            throw UploadError.version("\(path): format \(format) is newer than this library")
        }
        return file
    }

    /// A time, and its boot and monotonic time where they are known.
    private static func moment(
        _ words: ArraySlice<Substring>, _ path: String, _ line: Int
    ) throws(UploadError) -> StoreMoment {
        let words = Array(words)
        guard let ns = UInt64(words[0]) else {
            throw UploadError.damaged("\(path), line \(line + 1): no time")
        }
        guard words.count > 1 else { return StoreMoment(timeNs: ns) }
        guard words.count > 2, StoreFile.isIdentity(words[1]),
            let high = UInt64(words[1].prefix(16), radix: 16),
            let low = UInt64(words[1].suffix(16), radix: 16), let monotonic = UInt64(words[2])
        else { throw UploadError.damaged("\(path), line \(line + 1): no boot and its time") }
        return StoreMoment(
            timeNs: ns, boot: LaneID(high: high.byteSwapped, low: low.byteSwapped),
            monotonicNs: monotonic)
    }
}
