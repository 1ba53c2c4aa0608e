// What a store remembers about sending: its targets and its consent, for programs that do not write
// to it. Any thread; any process at the same time.

import CShims
import CordwoodCore
import CordwoodShip
import CordwoodStore

public enum StoreSettings {
    /// Makes a directory a store, and creates missing parents; leaves an existing store unchanged.
    public static func make(
        directory: String, consent: Consent = .granted
    ) throws(CordwoodError) {
        FileCalls.close(try Directories.openStore(directory, consent: consent).lanes)
    }

    public static func targets(directory: String) throws(CordwoodError) -> [RegisteredTarget] {
        let store = try requireStore(directory)
        do throws(UploadError) {
            return try TargetRegistry(storeDirectory: store).list()
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }

    /// Removes a target: archives no longer wait for it. Throws if no target has that name.
    public static func removeTarget(_ name: String, directory: String) throws(CordwoodError) {
        let store = try requireStore(directory)
        do throws(UploadError) {
            try TargetRegistry(storeDirectory: store).remove(name: name)
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }

    /// What waits, for which target, why and until when; oldest archive first.
    public static func queue(directory: String) throws(CordwoodError) -> [QueueEntry] {
        try onQueue(directory) { listing throws(UploadError) in try listing.list() }
    }

    /// Lets archives that failed, were refused or are paused be tried at the next occasion. nil:
    /// all.
    /// - Returns: the number of pairs of archive and target.
    public static func retry(
        archive: String?, target: String?, directory: String
    ) throws(CordwoodError) -> Int {
        try onQueue(directory) { listing throws(UploadError) in
            try listing.retry(archive: archive, target: target)
        }
    }

    /// The same for one pair, if its state is still what the caller knows. False: it has changed,
    /// or the archive is being sent.
    package static func change(
        _ change: QueueChange, archive: String, target: String, from known: PairState,
        directory: String
    ) throws(CordwoodError) -> Bool {
        try onQueue(directory) { listing throws(UploadError) in
            switch change {
            case .retry: try listing.retry(archive: archive, target: target, from: known)
            case .quarantine: try listing.quarantine(archive: archive, target: target, from: known)
            }
        } > 0
    }

    /// Quarantines an archive for a target (nil: for all): retention keeps it, and it is not sent.
    public static func quarantine(
        archive: String, target: String?, directory: String
    ) throws(CordwoodError) -> Int {
        try onQueue(directory) { listing throws(UploadError) in
            try listing.quarantine(archive: archive, target: target)
        }
    }

    /// The request of this number, from 0, that a waiting archive would make, as far as the
    /// target's registration tells. Sends nothing, takes no lock and writes nothing.
    /// - Parameters:
    ///   - isEncoded: pieces are those of the body as it is sent, else those of its content.
    ///   - begin: false: no pieces.
    ///   - piece: false: no more.
    package static func preview(
        _ number: Int, archive: String, target: String, isEncoded: Bool, directory: String,
        identities: [AgeIdentity], shouldStop: @escaping () -> Bool,
        begin: (PreviewedRequest) -> Bool, piece: ([UInt8]) -> Bool
    ) throws(CordwoodError) {
        let store = try requireStore(directory)
        do throws(UploadError) {
            try UploadPreview(
                storeDirectory: store, archive: archive, target: target,
                identities: identities
            ).make(
                number, isEncoded: isEncoded, shouldStop: shouldStop, begin: begin, piece: piece)
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }

    private static func onQueue<Result>(
        _ directory: String, _ body: (QueueListing) throws(UploadError) -> Result
    ) throws(CordwoodError) -> Result {
        let store = try requireStore(directory)
        do throws(UploadError) {
            return try body(QueueListing(storeDirectory: store))
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }

    public static func consent(directory: String) throws(CordwoodError) -> Consent {
        let store = try requireStore(directory)
        do throws(UploadError) {
            return try StoreFile.read(storeDirectory: store)?.consent ?? .pending
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }

    /// Sets the consent. Denied removes everything that is not sent yet.
    public static func setConsent(
        _ consent: Consent, directory: String
    ) throws(CordwoodError) {
        _ = try setConsent(consent, from: nil, directory: directory)
    }

    /// The same, if the consent is still what the caller knows. False: it has changed, and stays.
    package static func setConsent(
        _ consent: Consent, from known: Consent?, directory: String
    ) throws(CordwoodError) -> Bool {
        let store = try requireStore(directory)
        do throws(UploadError) {
            let file = try StoreFile.setConsent(
                storeDirectory: store, to: consent, from: known)
            guard file.consent == consent else { return false }
            guard consent == .denied else { return true }
            defer { DeadLeftovers.clear(directory: store) }
            _ = try UploadService(storeDirectory: store).removeWaiting()
            return true
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }

    /// The policy that a URL left in the store; nil: none.
    public static func policy(directory: String) throws(CordwoodError) -> StoredPolicy? {
        let store = try requireStore(directory)
        do throws(UploadError) {
            return try PolicyFile.read(storeDirectory: store).map { StoredPolicy($0) }
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }

    /// Throws if no store exists there; makes nothing.
    static func requireStore(_ directory: String) throws(CordwoodError) -> FilePath {
        let store = FilePath(opening: directory)
        do throws(UploadError) {
            if try StoreFile.read(storeDirectory: store) != nil { return store }
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
        throw CordwoodError(Status.notFound, "\(directory) is no store")
    }
}

/// What a user may ask for archives that wait.
package enum QueueChange: String, Sendable { case retry, quarantine }

/// A policy in the form that a store keeps.
public struct StoredPolicy: Sendable {
    /// `https://host:port`.
    public let origin: String
    /// When it arrived: UTC, ns.
    public let savedNs: UInt64
    public let json: [UInt8]
    /// nil: this version does not accept it.
    public let document: PolicyDocument?
    /// The reason it is not accepted.
    public let problem: String
    private let allow: PolicyAllowance

    /// The policy as it binds a program with these limits of its own: the program that keeps the
    /// file decides what is allowed. nil: no valid policy.
    package func binding(over own: RetentionLimits = .standard) -> PolicyDocument? {
        document?.allowed(by: allow, over: own, segmentBytes: Settings.segmentBytesDefault).policy
    }

    init(_ file: PolicyFile) {
        origin = file.origin
        savedNs = UInt64(clamping: file.savedUnixSeconds) &* 1_000_000_000
        json = file.json
        allow = file.allow
        do throws(UploadError) {
            document = try PolicyDocument(json: file.json)
            problem = ""
        } catch {
            document = nil
            problem = error.text
        }
    }
}
