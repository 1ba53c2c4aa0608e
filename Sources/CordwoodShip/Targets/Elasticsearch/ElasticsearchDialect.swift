// Elasticsearch's and OpenSearch's bulk interface: `create` with our own ids into an index or data
// stream, so that records sent twice are stored once. A 200 only means that the answer has each
// document's result: 409 is already stored, 429 and 5xx are sent again, 401 and 403 pause the
// target, a missing index lets it rest, the rest is refused. Compatible servers
// (VictoriaLogs, Fluent Bit) have no ids: records sent twice are stored twice, and results are
// matched by position. VictoriaLogs drops lines over 256 KiB and says 201.

import CordwoodFormats
import CordwoodStore

struct ElasticsearchDialect: Dialect {
    let contentType = "application/x-ndjson"
    let limits: BodyLimits
    private let address: String
    private let root: String
    /// Written into each action line; nil: the URL names the index, or no index is named.
    private let index: String?
    private let origin: Origin
    private let scheme: String

    /// The server takes 100 MB; bodies of more than a few megabytes bring no gain.
    static let bodyBytesMax: UInt64 = 8 << 20
    /// An answer takes 90 to 200 bytes per document. At most 4 MiB of it are read, and its tree
    /// takes ten times as much memory.
    static let documentsMax: UInt32 = 5_000
    /// Used if no index is named, as for VictoriaLogs: below its -insert.maxLineSizeBytes.
    static let entryBytesMaxWithoutIndex: UInt32 = 256_000
    static let indexDefault = "logs-cordwood-default"
    static let filter =
        "errors,items.create._id,items.create.status,items.create.error.type"

    init(_ options: DialectOptions) throws(UploadError) {
        try options.parameters.require(
            only: ["index", "index_in", "service", "host", "auth"], kind: .elasticsearch)
        try options.requirePost(.elasticsearch)
        let index = options.parameters["index"] ?? ElasticsearchDialect.indexDefault
        guard ElasticsearchDialect.isName(index) else {
            throw UploadError.argument("parameter 'index' is no name of an index")
        }
        let base = try options.baseAndQuery(of: .elasticsearch)
        var path = "/_bulk"
        var entryBytes: UInt32 = 0
        switch options.parameters["index_in"] ?? "path" {
        case "path":
            path = "/\(URLText.percentEncoded(index))/_bulk"
            self.index = nil
        case "action": self.index = index
        case "none":
            guard options.parameters["index"] == nil else {
                throw UploadError.argument("parameter 'index' has no use with index_in=none")
            }
            self.index = nil
            entryBytes = ElasticsearchDialect.entryBytesMaxWithoutIndex
        default:
            throw UploadError.argument("parameter 'index_in' must be path, action or none")
        }
        root = base.url + "/" + (base.query.map { "?\($0)" } ?? "")
        let query = base.query.map { "\($0)&" } ?? ""
        address = base.url + path + "?\(query)filter_path=\(ElasticsearchDialect.filter)"
        origin = Origin(
            service: options.parameters["service"], host: options.parameters["host"])
        switch options.parameters["auth"] ?? "apikey" {
        case "apikey": scheme = "ApiKey"
        case "bearer": scheme = "Bearer"
        default: throw UploadError.argument("parameter 'auth' is neither apikey nor bearer")
        }
        limits = options.limits(
            BodyLimits(
                bytes: ElasticsearchDialect.bodyBytesMax,
                entries: ElasticsearchDialect.documentsMax, entryBytes: entryBytes))
    }

    /// Checks Elasticsearch's own rules.
    private static func isName(_ index: String) -> Bool {
        guard let first = index.utf8.first, index.utf8.count <= 255,
            ![0x2d, 0x5f, 0x2b, 0x2e]
                .contains(first)
        else { return false }
        return index.utf8.allSatisfy {
            $0 > 0x20 && $0 != 0x7f && !($0 >= 0x41 && $0 <= 0x5a)
                && !"\\/*?\"<>|,#:".utf8.contains($0)
        }
    }

    func makeEncoder(_ lines: LineRenderers) -> (any RecordEncoder)? {
        let entry = ElasticsearchEntry(origin: origin, index: index)
        return EntryEncoder(.none, isAnsweredByID: true) { entry.append($0, &$1) }
    }

    func url(_ delivery: Delivery) -> String { address }

    var probe: Probe {
        Probe(
            method: "GET", url: root, shownPath: "/",
            read: {
                guard $0.httpStatus == 200, let answer = AnswerText.object($0.body),
                    let version = answer["version"]
                else { return .foreign }
                let number = version["number"]?.string.map { " \($0)" } ?? ""
                let flavor = version["distribution"]?.string ?? version["build_flavor"]?.string
                let name = flavor.map { " (\($0))" } ?? ""
                return .fine("Elasticsearch's interface\(number)\(name)")
            }, notLookedAt: "whether the index takes documents")
    }

    func headers(_ delivery: Delivery) -> [RequestHeader] {
        guard let token = delivery.credentials.token else {
            return delivery.credentials.authorization.map { [$0] } ?? []
        }
        return [RequestHeader(name: "Authorization", value: "\(scheme) \(token)")]
    }

    /// The outcome gives the reason for refused documents.
    func send(
        _ request: TransferRequest, _ delivery: Delivery, _ body: borrowing Body,
        _ perform: (TransferRequest) -> TransferOutcome
    ) throws(UploadError) -> TransferOutcome {
        var outcome = perform(request)
        // Most answers have no error and need no second reading.
        guard outcome.kind == .success, AnswerText.has(outcome.body, "true") else {
            return outcome
        }
        let secrets = SentSecrets(request, also: delivery.credentials.secrets)
        guard let answer = BulkAnswer(secrets.cleaned(outcome.body), delivery),
            !answer.reasons.isEmpty
        else { return outcome }
        outcome.cause += ": " + answer.reasons.joined(separator: ", ")
        return outcome
    }

    /// The verdict reads each document's result.
    func isReceipt(_ outcome: TransferOutcome, _ delivery: Delivery) -> Bool { true }

    func verdict(_ outcome: TransferOutcome, _ delivery: Delivery) -> AnswerVerdict? {
        guard outcome.kind == .success else { return nil }
        let again = AnswerVerdict.retry(outcome, nowUnixMs: delivery.nowUnixMs)
        // An answer without the documents' results proves nothing.
        guard let answer = BulkAnswer(outcome.body, delivery) else {
            return .stray
        }
        // Documents that were created get 409 next time; no part is given up.
        if answer.isForbidden { return answer.hasNoIndex ? .stray : .pause }
        // All were refused for one reason; sending halves will show whose fault it is.
        if answer.refusesAll { return .refuse }
        let refused = Refused(
            count: UInt32(clamping: answer.refused.count), ordinals: answer.refused)
        guard !answer.again.isEmpty else { return .sent(refused) }
        guard case .retry(let reason, let delayMs) = again else { return again }
        // The server took none, which proves nothing: one request at a time tries again.
        if answer.again.count == Int(delivery.entries) {
            let isBusy = answer.isBusy && reason == .failed && delayMs == nil
            return .retry(isBusy ? .busy : reason, delayMs: delayMs)
        }
        return .partly(
            again: answer.again, refused, reason, delayMs: delayMs)
    }
}

/// The result of each document of one request.
struct BulkAnswer: Equatable {
    /// Ordinals of the records that the server could not take now.
    private(set) var again: Set<UInt64> = []
    /// Some of them because of overload: 429, 503.
    private(set) var isBusy = false
    /// Ordinals of the records that the server will never take.
    private(set) var refused: [UInt64] = []
    /// The index is missing, read-only, or not ours: no document is to blame.
    private(set) var isForbidden = false
    /// Only the index is at fault.
    private(set) var hasNoIndex = false
    /// Every document was refused for the same reason.
    private(set) var refusesAll = false
    /// Statuses and types of errors; those that pause the target come first.
    private(set) var reasons: [String] = []

    private static let reasonsMax = 3
    private static let typeBytesMax = 64
    /// 400s that concern the index, or the cluster's number of shards.
    private static let indexFaults = [
        "validation_exception", "invalid_index_name_exception", "index_closed_exception",
    ]

    /// nil: not the answer to a bulk request.
    init?(_ body: [UInt8], _ delivery: Delivery) {
        guard let answer = AnswerText.object(body), case .bool(let hasErrors) = answer["errors"]
        else { return nil }
        let isKnown = !delivery.ordinals.isEmpty
        var items: [JSONValue] = []
        if let member = answer["items"] {
            guard case .array(let elements) = member else { return nil }
            items = elements
            // A server that names documents names all of them: the others are not there.
            guard !isKnown || items.count == delivery.entries else { return nil }
        }
        // If some failed, the answer must say which.
        guard !hasErrors || !items.isEmpty else { return nil }
        var named: Set<UInt64> = []
        let ordinals = Array(delivery.ordinals.joined())
        let hasPlaces = items.count == delivery.entries && items.count == ordinals.count
        for (place, item) in items.enumerated() {
            guard let result = item.members.first?.value, let status = result["status"]?.whole
            else { return nil }
            // Reports success and names no document.
            if !hasErrors, (200...299).contains(status), result["_id"] == nil { continue }
            guard
                let ordinal = BulkAnswer.ordinal(
                    result, delivery, ordinals, place: hasPlaces ? place : nil),
                !isKnown || delivery.ordinals.contains(where: { $0.contains(ordinal) }),
                named.insert(ordinal).inserted
            else { return nil }
            let isIndexFault =
                status == 404
                || status == 400
                    && BulkAnswer.indexFaults.contains(result["error"]?["type"]?.string ?? "")
            switch status {
            case 200...299, 409: break
            case 401, 403,
                _ where isIndexFault:
                if !isForbidden { reasons = [] }
                hasNoIndex = (hasNoIndex || !isForbidden) && isIndexFault
                isForbidden = true
                note(status, result["error"])
            case 408, 429, 500...599:
                again.insert(ordinal)
                if AnswerVerdict.isOverload(status) { isBusy = true }
                if !isForbidden { note(status, result["error"]) }
            case 300...499:
                refused.append(ordinal)
                if !isForbidden { note(status, result["error"]) }
            default: return nil
            }
        }
        refusesAll = isKnown && refused.count == delivery.entries && reasons.count == 1
    }

    /// Finds the record by the document's id, which must be ours, or by position if there is no id.
    private static func ordinal(
        _ result: JSONValue, _ delivery: Delivery, _ ordinals: [UInt64], place: Int?
    ) -> UInt64? {
        guard let id = result["_id"]?.string, !id.isEmpty else { return place.map { ordinals[$0] } }
        guard let recordID = RecordID(id) else { return nil }
        let ids = delivery.recordIDs
        guard ids.count == ordinals.count else { return nil }
        if let place, ids[place] == recordID { return ordinals[place] }
        return ids.firstIndex(of: recordID).map { ordinals[$0] }
    }

    private mutating func note(_ status: Int64, _ error: JSONValue?) {
        let type = (error?["type"]?.string ?? "").utf8.prefix(BulkAnswer.typeBytesMax).map {
            $0 > 0x20 && $0 < 0x7f ? $0 : 0x3f
        }
        let reason =
            type.isEmpty ? "\(status)" : "\(status) \(String(decoding: type, as: UTF8.self))"
        guard reasons.count < BulkAnswer.reasonsMax, !reasons.contains(reason) else { return }
        reasons.append(reason)
    }
}
