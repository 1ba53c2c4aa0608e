// ClickHouse over HTTP: INSERT … FORMAT JSONEachRow in the URL, rows in the body. The server treats
// one body as one block and stores all of it or nothing. Repetitions are recognised by `record_id`
// (ReplacingMergeTree), or by a token if the server supports one. Its errors have codes: bad
// credentials (193 and the like) pause the target, an unsuitable table (60 and the like) makes it
// rest, whatever the HTTP status, because no record is to blame.

import CordwoodFormats
import CordwoodStore

struct ClickHouseDialect: Dialect {
    let contentType = "application/x-ndjson"
    let limits: BodyLimits
    private let address: String
    private let ping: String
    private let origin: Origin
    private let hasToken: Bool

    /// Fewer rows and bytes than the size at which a server splits a block.
    static let bodyBytesMax: UInt64 = 64 << 20
    static let rowsMax: UInt32 = 500_000

    init(_ options: DialectOptions) throws(UploadError) {
        try options.parameters.require(
            only: ["table", "service", "host", "deduplicate"], kind: .clickhouse)
        try options.requirePost(.clickhouse)
        guard !options.url.utf8.contains(0x23) else {
            throw UploadError.argument("the url of kind clickhouse has no fragment")
        }
        ping = options.address.origin + "/ping"
        let hasQuery =
            URLText.has(options.url, "?query=") || URLText.has(options.url, "&query=")
        if let table = options.parameters["table"] {
            guard !hasQuery, ClickHouseDialect.isName(table) else {
                throw UploadError.argument(
                    "parameter 'table' is no name of a table, or the url has a query of its own")
            }
            let insert = URLText.percentEncoded("INSERT INTO \(table) FORMAT JSONEachRow")
            let separator = options.url.utf8.contains(0x3f) ? "&" : options.isBare ? "/?" : "?"
            let url = options.isBare ? options.bareURL : options.url
            address = "\(url)\(separator)query=\(insert)"
        } else {
            guard hasQuery else {
                throw UploadError.argument(
                    "kind clickhouse needs an INSERT in the url (?query=…) or parameter 'table'")
            }
            address = options.url
        }
        origin = Origin(
            service: options.parameters["service"], host: options.parameters["host"])
        hasToken = try options.flag("deduplicate") ?? false
        limits = options.limits(
            BodyLimits(
                bytes: ClickHouseDialect.bodyBytesMax, entries: ClickHouseDialect.rowsMax))
    }

    /// `table` or `database.table`, of letters, digits and `_`.
    private static func isName(_ table: String) -> Bool {
        let parts = table.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count <= 2 && table.utf8.count <= 255
            && parts.allSatisfy { part in
                guard let first = part.utf8.first, first > 0x39 else { return false }
                return part.utf8.allSatisfy(ASCII.isWordByte)
            }
    }

    func makeEncoder(_ lines: LineRenderers) -> (any RecordEncoder)? {
        let entry = ClickHouseEntry(origin: origin)
        return EntryEncoder(.none) { entry.append($0, &$1) }
    }

    func url(_ delivery: Delivery) -> String {
        hasToken ? "\(address)&insert_deduplication_token=\(delivery.id)" : address
    }

    var probe: Probe {
        Probe(
            method: "GET", url: ping, shownPath: "/ping",
            read: {
                $0.httpStatus == 200 && $0.body.starts(with: "Ok.".utf8)
                    ? .fine("a ClickHouse answers") : .foreign
            }, notLookedAt: "user, table and columns")
    }

    func headers(_ delivery: Delivery) -> [RequestHeader] {
        let credentials = delivery.credentials
        var headers: [RequestHeader] = []
        if let user = credentials.user {
            headers.append(RequestHeader(name: "X-ClickHouse-User", value: user))
        }
        if let key = credentials.password ?? credentials.token {
            headers.append(RequestHeader(name: "X-ClickHouse-Key", value: key))
        }
        return headers
    }

    func isReceipt(_ outcome: TransferOutcome, _ delivery: Delivery) -> Bool {
        outcome.httpStatus == 200
            && (outcome.body.isEmpty
                || outcome.headers.contains { $0.name.hasPrefix("x-clickhouse-") })
    }

    func verdict(_ outcome: TransferOutcome, _ delivery: Delivery) -> AnswerVerdict? {
        let code =
            outcome.header("x-clickhouse-exception-code").flatMap { UInt64($0) }
            ?? AnswerText.number(outcome.body, after: "Code: ")
        guard let code, code > 0 else { return nil }
        switch code {
        case 192, 193, 194, 497, 516: return .pause
        // Table, database, column, setting, rights.
        case 16, 60, 81, 115, 164: return .stray
        case 117 where AnswerText.has(outcome.body, "nknown field"): return .stray
        // A 200 whose headers went out before the insert failed.
        default:
            return outcome.kind == .success
                ? AnswerVerdict.retry(outcome, nowUnixMs: delivery.nowUnixMs) : nil
        }
    }
}
