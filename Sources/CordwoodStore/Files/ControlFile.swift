// The file `control` of a store: requests from outside to running programs. They say whether
// programs capture HTTP exchanges, and at which levels they log. Text (FORMAT §2.4), replaced as a
// whole, so a reader finds the old or the new file. Engines check now and then whether it is a
// different file, then read it; a file that cannot be read changes nothing. Any thread, any
// process.

import CordwoodCore

public struct ControlFile: Equatable, Sendable {
    public struct Level: Equatable, Sendable {
        /// A dotted name; "" is the root.
        public var prefix: String
        /// 1…24, or 255 for off.
        public var number: UInt8
    }

    public static let fileName = "control"
    private static let firstLine = "cordwood control"
    public static let levelsMax = 4_096
    public static let prefixBytesMax = 255

    /// nil: the host decides.
    public var http: Bool?
    /// In file order; the last entry of a prefix wins.
    public var levels: [Level] = []

    public init() {}

    /// nil: there is no such file.
    package static func read(storeDirectory: FilePath) throws(UploadError) -> ControlFile? {
        let path = storeDirectory + "/" + fileName
        guard let bytes = try StoreFiles.read(path, isObeyed: true) else { return nil }
        return try parse(bytes, path: path)
    }

    /// Changes the file, or makes it. Concurrent changes happen one after the other. A file that
    /// cannot be read is left untouched: a later version may have written it.
    package static func change(
        storeDirectory: FilePath, _ body: (inout ControlFile) -> Void
    ) throws(UploadError) {
        _ = try change(storeDirectory: storeDirectory, if: { _ in true }, body)
    }

    /// The same, if the file still says what the caller knows. False: it does not, and stays
    /// unchanged.
    package static func change(
        storeDirectory: FilePath, if isKnown: (ControlFile) -> Bool,
        _ body: (inout ControlFile) -> Void
    ) throws(UploadError) -> Bool {
        let lock = try StoreFiles.lockStore(storeDirectory)
        defer { _ = lock.number }
        var file = try read(storeDirectory: storeDirectory) ?? ControlFile()
        guard isKnown(file) else { return false }
        body(&file)
        guard file.levels.count <= levelsMax else {
            throw .limit("over \(levelsMax) level prefixes")
        }
        try StoreFiles.replace(fileName, inStore: storeDirectory, with: file.bytes)
        return true
    }

    /// nil removes the prefix's line.
    public mutating func setLevel(_ prefix: String, _ number: UInt8?) {
        levels.removeAll { $0.prefix == prefix }
        if let number { levels.append(Level(prefix: prefix, number: number)) }
    }

    /// False: the prefix cannot be written in a line.
    public static func isPrefix(_ text: String) -> Bool {
        text.utf8.count <= prefixBytesMax && text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }

    var bytes: [UInt8] {
        let http = http.map { ["http \($0 ? "on" : "off")"] } ?? []
        let levels = levels.map { "level \($0.number) \($0.prefix)" }
        return KeyValueFile.bytes(ControlFile.firstLine, http + levels)
    }

    static func parse(_ bytes: [UInt8], path: FilePath) throws(UploadError) -> ControlFile {
        var file = ControlFile()
        for line in try KeyValueFile(bytes, firstLine: firstLine, path: path).lines {
            switch line.key {
            case "http":
                guard line.value == "on" || line.value == "off" else {
                    throw UploadError.damaged(
                        "\(path): '\(shown(line.text))' is neither on nor off")
                }
                file.http = line.value == "on"
            case "level":
                guard let level = level(line.value) else {
                    throw UploadError.damaged(
                        "\(path): '\(shown(line.text))' is no 'level <1…24 or 255> <prefix>'")
                }
                file.setLevel(level.prefix, level.number)
            // A later version's line.
            default: break
            }
        }
        guard file.levels.count <= levelsMax else {
            throw UploadError.damaged("\(path) has over \(levelsMax) levels")
        }
        return file
    }

    /// `<number> <prefix>`; without a prefix it means the root.
    private static func level(_ text: Substring) -> Level? {
        let parts = text.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
        guard let word = parts.first, let number = UInt8(word),
            (1...24).contains(number) || number == 255
        else { return nil }
        let prefix = parts.count == 2 ? String(parts[1]) : ""
        return isPrefix(prefix) ? Level(prefix: prefix, number: number) : nil
    }

    private static func shown(_ line: String) -> String {
        String(
            line.unicodeScalars.prefix(60).map { scalar in
                scalar.value < 0x20 || scalar.value == 0x7F ? "?" : Character(scalar)
            })
    }

    /// Identifies the file as far as one system call can; nil if it does not exist.
    public struct Stamp: Equatable, Sendable {
        var inode: UInt64
        var modifiedNs: UInt64
        var changedNs: UInt64
        var bytes: UInt64
    }

    package static func stamp(storeDirectory: FilePath) -> Stamp? {
        guard let file = FileFacts(at: storeDirectory + "/" + fileName) else { return nil }
        return Stamp(
            inode: file.inode, modifiedNs: file.modifiedNs, changedNs: file.changedNs,
            bytes: file.bytes)
    }
}
