// The protocol of one kind of server: where requests go, what a body may hold, what an answer
// means. Each kind has one conformer in a file of its own; UploadAttempt knows none of them by
// name. Values: any thread.

import CordwoodStore

/// One part of one archive, for delivery to a server.
struct Delivery: Sendable {
    /// A permanent, unique id of this part: the archive's id, or the archive's id with the range of
    /// records. The same on every attempt.
    var id: String
    /// `8-4-4-4-12` lowercase hex digits.
    var archiveID: String
    var archiveRecords: UInt64 = 0
    /// nil: the whole archive.
    var range: PartRange?
    var fileName: String
    var encoding: BodyEncoding
    var credentials: Credentials
    var nowUnixMs: UInt64
    /// Size of the body before compression.
    var contentBytes: UInt64 = 0
    /// Number of records in the body; 0: an archive sent as a file.
    var entries: UInt32 = 0
    /// The records' ordinals, in the body's order.
    var ordinals: [Range<UInt64>] = []
    /// Their ids, likewise, if answers name them.
    var recordIDs: [RecordID] = []
    /// The body has no encoding, or the server has accepted this encoding before.
    var isEncodingProven = false
    /// Set if the dialect asks for it.
    var origin = ArchiveOrigin()

    /// `<archive id>`, or `<archive id>.<first>-<last>`, with `-r<round>` for a retry by hand,
    /// which repeats an old range but may have a different body.
    static func id(archiveID: String, range: PartRange?, round: UInt32 = 0) -> String {
        guard let range else { return archiveID }
        let id = "\(archiveID).\(range.first)-\(range.end - 1)"
        return round == 0 ? id : id + "-r\(round)"
    }
}

protocol Dialect: Sendable {
    var method: String { get }
    var contentType: String { get }
    /// The content type, for dialects in which it does not depend on the encoding.
    func contentType(_ delivery: Delivery) -> String
    /// `.init()`: archives are sent as a whole.
    var limits: BodyLimits { get }

    /// Requests name the origin of an archive.
    var needsOrigin: Bool { get }

    /// Whether what the server has under the request's address can only be this body, so that 412
    /// for `If-None-Match: *` is a receipt.
    func isAddressOfBody(_ delivery: Delivery) -> Bool

    /// nil: archives are sent unchanged.
    func makeEncoder(_ lines: LineRenderers) -> (any RecordEncoder)?

    /// An encoder for the records of a store, which may exclude some of them.
    func makeEncoder(
        _ lines: LineRenderers, store: StorePaths
    ) throws(UploadError) -> (any RecordEncoder)?

    func url(_ delivery: Delivery) -> String

    /// Headers besides those of every request; includes authentication.
    func headers(_ delivery: Delivery) -> [RequestHeader]

    /// Sends a body in one or several exchanges and returns the decisive outcome. `request` is
    /// complete except for headers that depend on the body.
    func send(
        _ request: TransferRequest, _ delivery: Delivery, _ body: borrowing Body,
        _ perform: (TransferRequest) -> TransferOutcome
    ) throws(UploadError) -> TransferOutcome

    /// One harmless request, for setting up a target.
    var probe: Probe { get }

    /// `request` is complete except for parts that only this kind knows.
    func sendProbe(
        _ request: TransferRequest, _ delivery: Delivery,
        _ perform: (TransferRequest) -> TransferOutcome
    ) throws(UploadError) -> TransferOutcome

    /// Whether a 2xx is of this protocol and confirms the body. Called before `verdict`, and never
    /// for pages (AnswerContent). Kinds without a protocol take any other body without an error.
    func isReceipt(_ outcome: TransferOutcome, _ delivery: Delivery) -> Bool

    /// The meaning of an answer if it differs from the rule for every target; nil: it does not.
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
    func isAddressOfBody(_ delivery: Delivery) -> Bool { true }

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

    func isReceipt(_ outcome: TransferOutcome, _ delivery: Delivery) -> Bool {
        !AnswerContent.reportsError(outcome)
    }

    func verdict(_ outcome: TransferOutcome, _ delivery: Delivery) -> AnswerVerdict? { nil }

    func asksForPolicy(_ outcome: TransferOutcome) -> Bool { false }
}

/// The input of a dialect: the host's options after the checks that all kinds share.
struct DialectOptions {
    var url: String
    var address: WebAddress
    var format: BodyFormat
    var encoding: BodyEncoding
    /// nil: the kind's default.
    var method: String?
    var headers: [RequestHeader]
    var parameters: Parameters
    /// The host's limits; 0: the kind's default.
    var limits: BodyLimits

    /// The kind's limits, tightened by the host's limits.
    func limits(_ own: BodyLimits) -> BodyLimits {
        func least(_ a: UInt64, _ b: UInt64) -> UInt64 { a == 0 ? b : b == 0 ? a : min(a, b) }
        return BodyLimits(
            bytes: least(own.bytes, limits.bytes),
            entries: UInt32(clamping: least(UInt64(own.entries), UInt64(limits.entries))),
            entryBytes: UInt32(clamping: least(UInt64(own.entryBytes), UInt64(limits.entryBytes))))
    }
}
