// Grafana Loki's push interface: JSON with streams, 204. A 400 may mean that Loki stored some lines
// and refused others (too old, too long). If it says so, the part counts as taken, with that many
// refused lines, which are kept. An error about a stream means that none of its lines was stored,
// without their number, so it is not a success. Loki merges records sent twice: same stream, time
// and text.

import CordwoodFormats
import CordwoodStore

struct LokiDialect: Dialect {
    let contentType = "application/json"
    let limits: BodyLimits
    private let address: String
    private let tenant: String?
    private let origin: Origin
    private let labels: [(name: String, value: String)]
    private let hasMetadata: Bool

    /// Loki's components take 4 MB from each other, and 4 MB/s from a tenant.
    static let bodyBytesMax: UInt64 = 1 << 20
    /// A smaller body could not hold one line with its labels and metadata.
    static let bodyBytesMin: UInt64 = 32 << 10
    static let labelsMax = 10

    init(_ options: DialectOptions) throws(UploadError) {
        try options.parameters.require(
            only: ["tenant", "service", "labels", "metadata"], kind: .loki)
        try options.requirePost(.loki)
        address = try options.base(of: .loki) + "/loki/api/v1/push"
        limits = options.limits(BodyLimits(bytes: LokiDialect.bodyBytesMax))
        guard limits.bytes >= LokiDialect.bodyBytesMin else {
            throw UploadError.argument(
                "kind loki needs bodies of at least \(LokiDialect.bodyBytesMin) bytes")
        }
        tenant = options.parameters["tenant"]
        origin = Origin(service: options.parameters["service"])
        labels = try LokiDialect.labels(options.parameters["labels"] ?? "")
        hasMetadata = try options.flag("metadata") ?? true
    }

    /// `name=value,…`
    private static func labels(
        _ text: String
    ) throws(UploadError) -> [(name: String, value: String)] {
        var labels: [(name: String, value: String)] = []
        for part in text.split(separator: ",") {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(pair[0])
            guard pair.count == 2, isName(name), !labels.contains(where: { $0.name == name }),
                name != "service_name", name != "level", pair[1].utf8.count <= 1_000
            else {
                throw UploadError.argument(
                    "parameter 'labels' is not name=value,…, with names of letters, digits and _")
            }
            labels.append((name, String(pair[1])))
        }
        guard labels.count <= labelsMax else {
            throw UploadError.argument("parameter 'labels' holds more than \(labelsMax)")
        }
        return labels
    }

    private static func isName(_ name: String) -> Bool {
        guard let first = name.utf8.first, first > 0x39 else { return false }
        return name.utf8.allSatisfy(ASCII.isWordByte)
    }

    func makeEncoder(_ lines: LineRenderers) -> (any RecordEncoder)? {
        LokiEncoder(origin: origin, labels: labels, hasMetadata: hasMetadata)
    }

    func url(_ delivery: Delivery) -> String { address }

    var probe: Probe {
        Probe(
            method: "POST", url: address, shownPath: "/loki/api/v1/push",
            content: Array("{\"streams\":[]}".utf8),
            read: {
                // Some servers report that it is empty, which is what the probe intended.
                let isEmptyPush = AnswerText.has($0.body, "at least one valid stream")
                return isEmptyPush || $0.httpStatus == 204
                    ? .fine("a Loki takes an empty push") : .foreign
            }, notLookedAt: "its limits, and how old a record may be")
    }

    func headers(_ delivery: Delivery) -> [RequestHeader] {
        var headers = delivery.credentials.authorization.map { [$0] } ?? []
        if let tenant { headers.append(RequestHeader(name: "X-Scope-OrgID", value: tenant)) }
        return headers
    }

    func isReceipt(_ outcome: TransferOutcome, _ delivery: Delivery) -> Bool {
        switch outcome.httpStatus {
        case 204: return true
        case 200: return outcome.body.isEmpty || LokiDialect.isGreptimeReceipt(outcome.body)
        default: return false
        }
    }

    /// GreptimeDB's Loki interface reports its number of rows, as for an INSERT.
    private static func isGreptimeReceipt(_ body: [UInt8]) -> Bool {
        guard let answer = AnswerText.object(body), answer["output"] != nil else { return false }
        return answer["error"] == nil && (answer["code"] == nil || answer["code"]?.whole == 0)
    }

    func verdict(_ outcome: TransferOutcome, _ delivery: Delivery) -> AnswerVerdict? {
        switch outcome.httpStatus {
        case 400:
            // The server has no room for metadata: the host has to set `metadata=off`.
            if AnswerText.has(outcome.body, "structured metadata, but this feature is disallowed") {
                return .stray
            }
            guard let refused = LokiDialect.refused(outcome.body) else { return .stray }
            guard refused > 0 else { return nil }
            return .sent(Refused(count: UInt32(clamping: refused)))
        case 500:
            // One component reports another's limit.
            let isTooLarge = AnswerText.has(outcome.body, "message larger than max")
            return isTooLarge ? .shrink : nil
        default: return nil
        }
    }

    /// The number of lines it rejected after parsing the body; 0: none; nil: some of its counts are
    /// streams. Its distributor says `2 errors like: …; 1 errors like: …`, and omits the count for
    /// a single error. An ingester names lines and then says `total ignored: 3 out of 5`. Of
    /// several streams only the last one answers, so there may be more.
    private static func refused(_ body: [UInt8]) -> UInt64? {
        var sum = AnswerText.number(body, after: "total ignored: ") ?? 0
        for group in AnswerText.groups(body, " errors like: ") {
            guard isAboutLines(group.text) else { return nil }
            sum &+= group.number
        }
        if sum > 0 { return sum }
        return isAboutLines(body) ? 1 : 0
    }

    private static func isAboutLines(_ body: [UInt8]) -> Bool {
        let faults: [StaticString] = [
            "timestamp too old", "timestamp too new", "too far behind", "out of order",
            "max entry size", "structured metadata too large",
            "too many structured metadata labels",
        ]
        return faults.contains { AnswerText.has(body, $0) }
    }
}
