// Our collector: stored archives, unchanged, by POST to /v1/archives below the base URL. It answers
// an archive that it has with 2xx and stores it once. It answers 409 while it judges another one of
// the same segments, such as an earlier attempt.

import CordwoodFormats
import CordwoodStore

struct CollectorDialect: Dialect {
    private let address: String
    private let health: String
    let contentType = HTTPDialect.contentType(.archive)

    init(_ options: DialectOptions) throws(UploadError) {
        try options.parameters.require(only: [], kind: .collector)
        guard options.method == nil || options.method == "POST" else {
            throw UploadError.argument("kind collector takes method POST only")
        }
        let base = try options.base(of: .collector)
        address = base + "/v1/archives"
        health = base + "/healthz"
    }

    func makeEncoder(_ lines: LineRenderers) -> (any RecordEncoder)? { nil }

    func url(_ delivery: Delivery) -> String { address }

    var probe: Probe {
        Probe(
            method: "GET", url: health, shownPath: "/healthz",
            read: {
                let answer = AnswerText.object($0.body)
                if answer?["status"]?.string == "ok" { return .fine("a collector answers") }
                // It answers there what the next archive would get.
                return $0.httpStatus >= 500 && answer?["error"] != nil
                    ? .wrong("a collector answers, and cannot store archives") : .foreign
            }, notLookedAt: "the token, and the room it has")
    }

    /// The receipt names the archive and the number of its records, also if the collector had it
    /// before: perhaps in an archive with others.
    func isReceipt(_ outcome: TransferOutcome, _ delivery: Delivery) -> Bool {
        guard let answer = AnswerText.object(outcome.body),
            answer["id"]?.string == delivery.archiveID, answer["stored"] == .bool(true),
            let records = answer["records"]?.whole
        else { return false }
        return UInt64(exactly: records) == delivery.archiveRecords
    }
}
