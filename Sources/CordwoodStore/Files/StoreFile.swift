// The file `store`: identity and consent of a store (FORMAT §2.1). Every program reads it; the
// first program to open the store makes it, and only consent changes it. Unknown keys are kept
// unchanged. Creating and updating hold the lock of the store's directory, so two processes that
// open a new store at once agree on one identity. Any thread.

import CordwoodCore
import CordwoodFormats

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
    static let firstLine = "cordwood store"

    /// 32 hex digits.
    package private(set) var id: String
    package private(set) var consent: Consent
    /// UTC, `YYYY-MM-DDThh:mm:ssZ`.
    package private(set) var created: String
    /// With unknown bits, the store may be read but not written.
    package private(set) var compat: UInt64
    /// Lines with other keys, in their order.
    private var others: [String]

    /// nil: there is no store file yet.
    package static func read(storeDirectory: FilePath) throws(UploadError) -> StoreFile? {
        let path = storeDirectory + "/" + fileName
        guard let bytes = try StoreFiles.read(path, isObeyed: true) else { return nil }
        return try parse(bytes, path: path)
    }

    /// Reads the file, or makes it with this id and consent if it is missing.
    /// - Parameter idBytes: 16 random bytes.
    package static func open(
        storeDirectory: FilePath, consent: Consent, idBytes: (UInt64, UInt64),
        createdUnixSeconds: Int64
    ) throws(UploadError) -> StoreFile {
        if let found = try read(storeDirectory: storeDirectory) { return found }
        let lock = try StoreFiles.lockStore(storeDirectory)
        defer { _ = lock.number }
        if let found = try read(storeDirectory: storeDirectory) { return found }
        let made = StoreFile(
            id: Hex.text(idBytes.0) + Hex.text(idBytes.1), consent: consent,
            created: Times.text(seconds: createdUnixSeconds), compat: 0, others: [])
        try made.write(storeDirectory: storeDirectory)
        return made
    }

    /// Stores another consent and returns the updated file.
    /// - Parameter known: the consent that the caller expects; if it differs, the file stays
    /// unchanged. nil: anything.
    package static func setConsent(
        storeDirectory: FilePath, to consent: Consent, from known: Consent? = nil
    ) throws(UploadError) -> StoreFile {
        let lock = try StoreFiles.lockStore(storeDirectory)
        defer { _ = lock.number }
        guard var file = try read(storeDirectory: storeDirectory) else {
            throw UploadError.notFound("\(storeDirectory)/\(fileName) does not exist")
        }
        if file.consent == consent || file.consent != known ?? file.consent { return file }
        guard file.compat == 0 else {
            throw UploadError.version("\(storeDirectory) was written by a newer version")
        }
        file.consent = consent
        try file.write(storeDirectory: storeDirectory)
        return file
    }

    static func parse(_ bytes: [UInt8], path: FilePath) throws(UploadError) -> StoreFile {
        let read = try KeyValueFile(bytes, firstLine: firstLine, path: path)
        var file = StoreFile(id: "", consent: .granted, created: "", compat: 0, others: [])
        var incompat: UInt64 = 0
        var consent: Consent?
        for line in read.lines {
            switch line.key {
            case "format": break
            case "compat": file.compat = UInt64(line.value) ?? UInt64.max
            case "incompat": incompat = UInt64(line.value) ?? UInt64.max
            case "id": file.id = String(line.value)
            case "created": file.created = String(line.value)
            case "consent": consent = Consent(word: line.value)
            default: file.others.append(line.text)
            }
        }
        guard incompat == 0 else {
            throw UploadError.version("\(path): format \(read.format) is newer than this library")
        }
        guard isIdentity(file.id) else { throw UploadError.damaged("\(path) has no valid id") }
        // An unreadable word must never count as permission.
        file.consent = consent ?? .pending
        return file
    }

    var bytes: [UInt8] {
        let known = [
            "compat \(compat)", "incompat 0", "id \(id)", "created \(created)",
            "consent \(consent.word)",
        ]
        return KeyValueFile.bytes(StoreFile.firstLine, known + others)
    }

    private func write(storeDirectory: FilePath) throws(UploadError) {
        try StoreFiles.replace(StoreFile.fileName, inStore: storeDirectory, with: bytes)
    }

    static func isIdentity(_ id: some StringProtocol) -> Bool {
        id.utf8.count == 32
            && id.utf8.allSatisfy { ASCII.hex($0) < 16 && !ASCII.isUpper($0) }
    }
}
