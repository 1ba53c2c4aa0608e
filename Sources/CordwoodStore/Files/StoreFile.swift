// The file `store`: identity and consent of a store (FORMAT §2.1). Read by everyone, made by
// whoever opens the store first, changed by consent alone. Keys that are not known are kept as
// they stand. Creating and updating hold the lock of the store's directory, so that two processes
// that open a new store at once agree on one identity. Any thread.

import CordwoodFormats
import Glibc

public enum Consent: UInt32, Sendable {
    case granted = 0
    case pending = 1
    case denied = 2

    public var word: String {
        switch self {
        case .granted: return "granted"
        case .pending: return "pending"
        case .denied: return "denied"
        }
    }

    init?(word: Substring) {
        switch word {
        case "granted": self = .granted
        case "pending": self = .pending
        case "denied": self = .denied
        default: return nil
        }
    }
}

package struct StoreFile: Equatable, Sendable {
    package static let fileName = "store"
    static let temporaryName = ".store.new"
    static let firstLine = "cordwood store"
    static let formatMax: UInt64 = 1

    /// 32 hex digits.
    package private(set) var id: String
    package private(set) var consent: Consent
    /// UTC, `YYYY-MM-DDThh:mm:ssZ`.
    package private(set) var created: String
    /// Unknown bits: readable, but not to be written.
    package private(set) var compat: UInt64
    /// Lines with other keys, in their order.
    private var others: [String]

    /// nil: there is none yet.
    package static func read(storeDirectory: String) throws(UploadError) -> StoreFile? {
        let path = storeDirectory + "/" + fileName
        guard let bytes = try Files.read(path) else { return nil }
        return try parse(String(decoding: bytes, as: UTF8.self), path: path)
    }

    /// Reads the file, or makes it with this id and consent where there is none.
    /// - Parameter idBytes: 16 random bytes.
    package static func open(
        storeDirectory: String, consent: Consent, idBytes: (UInt64, UInt64),
        createdUnixSeconds: Int64
    ) throws(UploadError) -> StoreFile {
        if let found = try read(storeDirectory: storeDirectory) { return found }
        let lock = try Files.lockDirectory(Self.root(storeDirectory))
        defer { _ = lock.number }
        if let found = try read(storeDirectory: storeDirectory) { return found }
        let made = StoreFile(
            id: Hex.text(idBytes.0) + Hex.text(idBytes.1), consent: consent,
            created: Times.text(seconds: createdUnixSeconds), compat: 0, others: [])
        try made.write(storeDirectory: storeDirectory)
        return made
    }

    /// Stores another consent and gives what now stands in the file.
    package static func setConsent(
        storeDirectory: String, to consent: Consent
    ) throws(UploadError) -> StoreFile {
        let lock = try Files.lockDirectory(Self.root(storeDirectory))
        defer { _ = lock.number }
        guard var file = try read(storeDirectory: storeDirectory) else {
            throw UploadError.notFound("\(storeDirectory)/\(fileName) does not exist")
        }
        if file.consent == consent { return file }
        guard file.compat == 0 else {
            throw UploadError.version("\(storeDirectory) was written by a newer version")
        }
        file.consent = consent
        try file.write(storeDirectory: storeDirectory)
        return file
    }

    static func parse(_ text: String, path: String) throws(UploadError) -> StoreFile {
        var lines = text.split(separator: "\n", omittingEmptySubsequences: true)[...]
        guard lines.popFirst() == Substring(firstLine) else {
            throw UploadError.damaged("\(path) does not begin with '\(firstLine)'")
        }
        var file = StoreFile(id: "", consent: .granted, created: "", compat: 0, others: [])
        var format: UInt64?
        var incompat: UInt64 = 0
        var consent: Consent?
        for line in lines {
            let parts = line.split(separator: " ", maxSplits: 1)
            let value = parts.count == 2 ? parts[1] : ""
            switch parts.first {
            case "format": format = UInt64(value)
            case "compat": file.compat = UInt64(value) ?? UInt64.max
            case "incompat": incompat = UInt64(value) ?? UInt64.max
            case "id": file.id = String(value)
            case "created": file.created = String(value)
            case "consent": consent = Consent(word: value)
            default: file.others.append(String(line))
            }
        }
        guard let format else { throw UploadError.damaged("\(path) has no format") }
        guard format <= formatMax, incompat == 0 else {
            throw UploadError.version("\(path): format \(format) is newer than this library")
        }
        guard isIdentity(file.id) else { throw UploadError.damaged("\(path) has no valid id") }
        // A word that cannot be read must never count as permission.
        file.consent = consent ?? .pending
        return file
    }

    var text: String {
        var lines = [
            StoreFile.firstLine, "format \(StoreFile.formatMax)", "compat \(compat)", "incompat 0",
            "id \(id)", "created \(created)", "consent \(consent.word)",
        ]
        lines += others
        return lines.joined(separator: "\n") + "\n"
    }

    private func write(storeDirectory: String) throws(UploadError) {
        try Files.replace(
            storeDirectory + "/" + StoreFile.fileName,
            temporary: storeDirectory + "/" + StoreFile.temporaryName,
            directory: Self.root(storeDirectory), with: Array(text.utf8))
    }

    /// The store's own directory may be a link: whoever names the store has chosen it. What is in
    /// it may not.
    private static func root(_ storeDirectory: String) -> String { storeDirectory + "/." }

    static func isIdentity(_ id: some StringProtocol) -> Bool {
        id.utf8.count == 32
            && id.utf8.allSatisfy { ASCII.hex($0) < 16 && !ASCII.isUpper($0) }
    }
}
