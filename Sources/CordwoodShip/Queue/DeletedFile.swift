// The file `deleted` of a store: which transactions were forgotten, and until when (FORMAT §2.3).
// Their records stay in segments and archives until those go, but are neither listed nor sent. One
// that cannot be read stops both: what somebody wanted forgotten must not go out. Any thread, any
// process.

import CordwoodCore
import Glibc

package struct DeletedFile: Equatable, Sendable {
    package static let fileName = "deleted"
    static let temporaryName = ".deleted.new"
    package static let idsMax = 65_536
    private static let firstLine = "cordwood deleted"
    /// A line is at most 73.
    private static let bytesMax = 8 << 20

    /// UTC ns; 0: not all.
    package private(set) var allNs: UInt64 = 0
    package private(set) var ids: [TransactionID: UInt64] = [:]

    package init() {}

    /// Whether a record of that transaction and time was forgotten.
    package func covers(_ id: TransactionID, timeNs: UInt64) -> Bool {
        if timeNs <= allNs { return true }
        return ids.isEmpty ? false : timeNs <= ids[id] ?? 0
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
        storeDirectory: String, id: TransactionID?, untilNs: UInt64
    ) throws(UploadError) {
        // The store's own directory may be a link (StoreFile).
        let root = storeDirectory + "/."
        let lock = try Files.lockDirectory(root)
        defer { _ = lock.number }
        var file = try read(storeDirectory: storeDirectory)
        if let id {
            file.ids[id] = max(file.ids[id] ?? 0, untilNs)
            guard file.ids.count <= idsMax else {
                throw UploadError.limit("\(idsMax) deleted transactions are remembered already")
            }
        } else {
            file.allNs = max(file.allNs, untilNs)
            // What was forgotten one by one before goes with all.
            let all = file.allNs
            file.ids = file.ids.filter { $0.value > all }
        }
        try Files.replace(
            storeDirectory + "/" + fileName, temporary: storeDirectory + "/" + temporaryName,
            directory: root, with: file.bytes)
    }

    var bytes: [UInt8] {
        var text = "\(DeletedFile.firstLine)\nformat 1\n"
        if allNs > 0 { text += "all \(allNs)\n" }
        for (id, ns) in ids.sorted(by: { $0.value < $1.value }) { text += "\(id.text) \(ns)\n" }
        return Array(text.utf8)
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
            let parts = text.split(separator: " ", maxSplits: 1)
            guard parts.count == 2 else { continue }
            if parts[0] == "format" {
                format = UInt64(parts[1])
            } else if parts[0] == "all" {
                file.allNs = try time(parts[1], path, number)
            } else if let id = TransactionID(String(parts[0])) {
                file.ids[id] = try time(parts[1], path, number)
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

    private static func time(
        _ text: Substring, _ path: String, _ line: Int
    ) throws(UploadError) -> UInt64 {
        guard let ns = UInt64(text) else {
            throw UploadError.damaged("\(path), line \(line + 1): no time")
        }
        return ns
    }
}
