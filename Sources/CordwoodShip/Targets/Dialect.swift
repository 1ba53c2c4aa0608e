// How one kind of server is talked to: where requests go, what a body may hold, what an answer
// means. One conformer a kind, one file each; UploadAttempt knows none of them by name. Values:
// any thread.

import CordwoodStore

/// What a server is to be sent: one part of one archive.
struct Delivery: Sendable {
    /// Tells this part from every other for ever: the archive's id, or that and the range of
    /// records. The same on every attempt.
    var id: String
    /// `8-4-4-4-12` lowercase hex digits.
    var archiveID: String
    /// nil: the whole archive.
    var range: PartRange?
    var fileName: String
    var encoding: BodyEncoding
    var credentials: Credentials
    var nowUnixMs: UInt64
    /// Of the body, before compression.
    var contentBytes: UInt64 = 0
    /// Records in the body; 0: an archive as it is.
    var entries: UInt32 = 0
    /// Theirs, in the body's order.
    var ordinals: [Range<UInt64>] = []
    /// The body has no encoding, or the server has taken this one before.
    var isEncodingProven = false
    /// Known where the dialect asks for it.
    var origin = ArchiveOrigin()

    /// `<archive id>`, or `<archive id>.<first>-<last>`, with `-r<round>` where it is sent anew by
    /// hand: the range is an old one's, and the body need not be.
    static func id(archiveID: String, range: PartRange?, round: UInt32 = 0) -> String {
        guard let range else { return archiveID }
        let id = "\(archiveID).\(range.first)-\(range.end - 1)"
        return round == 0 ? id : id + "-r\(round)"
    }
}

protocol Dialect: Sendable {
    var method: String { get }
    var contentType: String { get }
    /// The same, where it does not depend on the encoding.
    func contentType(_ delivery: Delivery) -> String
    /// `.init()`: archives go whole.
    var limits: BodyLimits { get }

    /// Requests name where an archive comes from.
    var needsOrigin: Bool { get }

    /// nil: archives go as they are.
    func makeEncoder(_ lines: LineRenderers) -> (any RecordEncoder)?

    /// The same for the records of a store, which may say what must not go.
    func makeEncoder(
        _ lines: LineRenderers, store: StorePaths
    ) throws(UploadError) -> (any RecordEncoder)?

    func url(_ delivery: Delivery) -> String

    /// Beside those that every request has; authentication among them.
    func headers(_ delivery: Delivery) -> [RequestHeader]

    /// Sends a body by one exchange or several; gives the outcome that decides. `request` is
    /// complete but for what only the body can tell.
    func send(
        _ request: TransferRequest, _ delivery: Delivery, _ body: borrowing Body,
        _ perform: (TransferRequest) -> TransferOutcome
    ) throws(UploadError) -> TransferOutcome

    /// One harmless request, for who sets a target up.
    var probe: Probe { get }

    /// `request` is complete but for what only this kind knows.
    func sendProbe(
        _ request: TransferRequest, _ delivery: Delivery,
        _ perform: (TransferRequest) -> TransferOutcome
    ) throws(UploadError) -> TransferOutcome

    /// Whether a 2xx is this protocol's own, and says that the body is there. Asked before
    /// `verdict`, and not at all about HTML pages.
    func isReceipt(_ outcome: TransferOutcome, _ delivery: Delivery) -> Bool

    /// What an answer means where that differs from the rule for every target; nil: it does not.
    func verdict(_ outcome: TransferOutcome, _ delivery: Delivery) -> AnswerVerdict?

    /// The answer says that the server's policy forbids this: the policy should be read again
    /// (B-SAP-9).
    func asksForPolicy(_ outcome: TransferOutcome) -> Bool
}

extension Dialect {
    var method: String { "POST" }
    func contentType(_ delivery: Delivery) -> String { contentType }
    var limits: BodyLimits { BodyLimits() }
    var needsOrigin: Bool { false }

    func makeEncoder(
        _ lines: LineRenderers, store: StorePaths
    ) throws(UploadError) -> (any RecordEncoder)? {
        makeEncoder(lines)
    }

    func headers(_ delivery: Delivery) -> [RequestHeader] {
        delivery.credentials.authorization.map { [$0] } ?? []
    }

    func send(
        _ request: TransferRequest, _ delivery: Delivery, _ body: borrowing Body,
        _ perform: (TransferRequest) -> TransferOutcome
    ) throws(UploadError) -> TransferOutcome {
        perform(request)
    }

    func sendProbe(
        _ request: TransferRequest, _ delivery: Delivery,
        _ perform: (TransferRequest) -> TransferOutcome
    ) throws(UploadError) -> TransferOutcome {
        perform(request)
    }

    func isReceipt(_ outcome: TransferOutcome, _ delivery: Delivery) -> Bool { true }

    func verdict(_ outcome: TransferOutcome, _ delivery: Delivery) -> AnswerVerdict? { nil }

    func asksForPolicy(_ outcome: TransferOutcome) -> Bool { false }
}

/// What a dialect is made of: the host's options, checked as far as all kinds have them.
struct DialectOptions {
    var url: String
    var address: WebAddress
    var format: BodyFormat
    var encoding: BodyEncoding
    /// nil: the kind's own.
    var method: String?
    var headers: [RequestHeader]
    var parameters: Parameters
    /// The host's; 0: the kind's own.
    var limits: BodyLimits

    /// The kind's limits, tightened by the host's.
    func limits(_ own: BodyLimits) -> BodyLimits {
        func least(_ a: UInt64, _ b: UInt64) -> UInt64 { a == 0 ? b : b == 0 ? a : min(a, b) }
        return BodyLimits(
            bytes: least(own.bytes, limits.bytes),
            entries: UInt32(clamping: least(UInt64(own.entries), UInt64(limits.entries))),
            entryBytes: UInt32(clamping: least(UInt64(own.entryBytes), UInt64(limits.entryBytes))))
    }
}
