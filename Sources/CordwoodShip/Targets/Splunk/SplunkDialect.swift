// Splunk's HTTP Event Collector: `Authorization: Splunk TOKEN`, a sequence of objects. Its answer
// has a code. 0 accepts; 7, 10, 11 and 16 report a wrong setup, so the target rests, because no
// record is to blame; the others follow their HTTP status (503 again later, 400 refused). A 400 for
// one event names it (`invalid-event-number`), and Splunk has stored the events before it. We
// ignore that number, because the OpenTelemetry Collector's receiver sends it, too, but has stored
// nothing. Those events are thus stored twice after the body is halved, and never lost.

import CordwoodFormats
import CordwoodStore

struct SplunkDialect: Dialect {
    let contentType = "application/json"
    let limits: BodyLimits
    private let address: String
    private let health: String
    private let entry: SplunkEntry
    private let channel: String?

    /// The limit of Splunk Cloud.
    static let bodyBytesMax: UInt64 = 1_000_000

    init(_ options: DialectOptions) throws(UploadError) {
        let parameters = options.parameters
        try parameters.require(
            only: ["host", "source", "sourcetype", "index", "service", "channel"], kind: .splunk)
        try options.requirePost(.splunk)
        let base = try options.base(of: .splunk)
        address = base + "/services/collector/event"
        health = base + "/services/collector/health"
        entry = SplunkEntry(
            origin: Origin(service: parameters["service"], host: parameters["host"]),
            source: parameters["source"], sourceType: parameters["sourcetype"],
            index: parameters["index"])
        channel = parameters["channel"]
        limits = options.limits(BodyLimits(bytes: SplunkDialect.bodyBytesMax))
    }

    func makeEncoder(_ lines: LineRenderers) -> (any RecordEncoder)? {
        let entry = self.entry
        return EntryEncoder(.none) { entry.append($0, &$1) }
    }

    func url(_ delivery: Delivery) -> String { address }

    var probe: Probe {
        Probe(
            method: "GET", url: health, shownPath: "/services/collector/health",
            read: {
                guard let code = AnswerText.object($0.body)?["code"]?.whole else { return .foreign }
                // Fluent Bit says 200, as it does for events.
                let isHealthy = $0.httpStatus == 200 && [0, 17, 200].contains(code)
                return isHealthy ? .fine("an event collector is healthy") : .wrong("code \(code)")
            }, notLookedAt: "the token, and the index")
    }

    func headers(_ delivery: Delivery) -> [RequestHeader] {
        var headers = delivery.credentials.authorization.map { [$0] } ?? []
        if let token = delivery.credentials.token {
            headers = [RequestHeader(name: "Authorization", value: "Splunk \(token)")]
        }
        if let channel {
            headers.append(RequestHeader(name: "X-Splunk-Request-Channel", value: channel))
        }
        return headers
    }

    func isReceipt(_ outcome: TransferOutcome, _ delivery: Delivery) -> Bool {
        AnswerText.object(outcome.body)?["code"]?.whole == 0
    }

    func verdict(_ outcome: TransferOutcome, _ delivery: Delivery) -> AnswerVerdict? {
        guard let code = AnswerText.object(outcome.body)?["code"]?.whole else { return nil }
        switch outcome.httpStatus {
        // The token is missing, wrong or disabled.
        case HTTPStatus.forbidden where (1...4).contains(code): return .pause
        case 400 where [7, 10, 11, 16].contains(code): return .stray
        default: return nil
        }
    }
}
