// Datadog's log intake: a JSON array with the API key in a header; 202. Its answers follow the rule
// for all targets. It has no ids: records sent twice appear twice, with the same `record_id`.

import CordwoodStore

struct DatadogDialect: Dialect {
    let contentType = "application/json"
    let limits: BodyLimits
    private let address: String
    private let entry: DatadogEntry

    static let bodyBytesMax: UInt64 = 5_000_000
    static let entriesMax: UInt32 = 1_000
    static let entryBytesMax: UInt32 = 1_000_000

    init(_ options: DialectOptions) throws(UploadError) {
        let parameters = options.parameters
        try parameters.require(
            only: ["ddsource", "ddtags", "hostname", "service"], kind: .datadog)
        try options.requirePost(.datadog)
        address = try options.base(of: .datadog) + "/api/v2/logs"
        entry = DatadogEntry(
            origin: Origin(service: parameters["service"], host: parameters["hostname"]),
            source: parameters["ddsource"], tags: parameters["ddtags"])
        limits = options.limits(
            BodyLimits(
                bytes: DatadogDialect.bodyBytesMax, entries: DatadogDialect.entriesMax,
                entryBytes: DatadogDialect.entryBytesMax))
    }

    func makeEncoder(_ lines: LineRenderers) -> (any RecordEncoder)? {
        let entry = self.entry
        return EntryEncoder(.array) { entry.append($0, &$1) }
    }

    func url(_ delivery: Delivery) -> String { address }

    var probe: Probe { .head(address) }

    func headers(_ delivery: Delivery) -> [RequestHeader] {
        guard let token = delivery.credentials.token else { return [] }
        return [RequestHeader(name: "DD-API-KEY", value: token)]
    }

    func isReceipt(_ outcome: TransferOutcome, _ delivery: Delivery) -> Bool {
        guard outcome.httpStatus == 200 || outcome.httpStatus == 202 else { return false }
        if outcome.body.isEmpty { return true }
        // A server may always send the list; one that lists errors has not taken the logs.
        return AnswerText.object(outcome.body) != nil && !AnswerContent.reportsError(outcome)
    }
}
