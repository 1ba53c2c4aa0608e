// The common form of a store's small text files (FORMAT §2): a first line that names the kind of
// file, then lines `key value`, `format` among them; replaced as a whole. Any thread.

import CordwoodCore

package struct KeyValueFile {
    package struct Line {
        /// Up to the first space; empty if the line holds nothing but spaces.
        package let key: Substring
        package let value: Substring
        /// Key and value, unchanged.
        package let text: String
    }

    static let formatMax: UInt64 = 1

    /// All lines but the first.
    package let lines: [Line]
    package let format: UInt64

    package init(
        _ bytes: some Collection<UInt8>, firstLine: String, path: FilePath
    ) throws(UploadError) {
        let all = KeyValueFile.lines(bytes)
        guard all.first?.text == firstLine else {
            throw .damaged("\(path) does not begin with '\(firstLine)'")
        }
        lines = Array(all.dropFirst())
        let last = lines.last { $0.key == "format" }
        guard let last, let format = UInt64(last.value) else {
            throw .damaged("\(path) has no format")
        }
        guard format <= KeyValueFile.formatMax else {
            throw .version("\(path): format \(format) is newer than this library")
        }
        self.format = format
    }

    /// Skips empty lines.
    static func lines(_ bytes: some Collection<UInt8>) -> [Line] {
        bytes.split(separator: 0x0A).map { line in
            let text = String(decoding: line, as: UTF8.self)
            let parts = text.split(separator: " ", maxSplits: 1)
            return Line(
                key: parts.first ?? "", value: parts.count == 2 ? parts[1] : "", text: text)
        }
    }

    package static func bytes(_ firstLine: String, _ lines: [String]) -> [UInt8] {
        Array(([firstLine, "format \(formatMax)"] + lines + [""]).joined(separator: "\n").utf8)
    }
}

/// A store's own directory may be a link: the user who names the store has chosen it. Files inside
/// it may not be links.
extension StoreFiles {
    package static func lockStore(
        _ directory: FilePath, waitNs: UInt64 = lockWaitNs
    ) throws(UploadError) -> FileDescriptor {
        try lockDirectory(directory + "/.", waitNs: waitNs)
    }

    /// Replaces a file of the store. The caller holds a lock that keeps others away from it.
    package static func replace(
        _ name: String, inStore directory: FilePath, with bytes: [UInt8]
    ) throws(UploadError) {
        try replace(
            directory + "/\(name)", temporary: directory + "/.\(name).new",
            directory: directory + "/.", with: bytes)
    }
}
