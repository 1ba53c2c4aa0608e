// The kinds of targets: the body forms and encodings that each accepts, its defaults (UPLOADS), and
// its dialect. Pure.

import CordwoodStore

package enum TargetKind: String, CaseIterable, Sendable {
    case collector, http, sap, loggly, s3, otlp, loki, elasticsearch, splunk, datadog, clickhouse
    case transactions

    /// The first is the default.
    var formats: [BodyFormat] {
        switch self {
        case .collector: [.archive]
        case .http: BodyFormat.allCases
        case .sap: [.sap]
        case .loggly: [.json, .text]
        case .s3: [.archive, .ndjson, .json, .text]
        case .otlp: [.otlpProtobuf, .otlpJSON]
        case .loki, .elasticsearch, .splunk, .datadog, .clickhouse, .transactions: [.json]
        }
    }

    /// The first is the default.
    func encodings(_ format: BodyFormat) -> [BodyEncoding] {
        switch self {
        case .collector, .loggly, .transactions: [.none]
        case .sap: [.none, .gzip]
        case .http: [.none, .gzip, .zstd, .lz4]
        case .s3 where format == .archive: [.none]
        case .s3: [.zstd, .gzip, .none]
        case .otlp: [.gzip, .none, .zstd]
        case .loki, .elasticsearch, .splunk, .datadog, .clickhouse: [.gzip, .none]
        }
    }

    /// It takes any 2xx, unless the host expects more.
    var takesExpectation: Bool { self == .http || self == .sap || self == .transactions }

    /// The default number of concurrent requests. A transaction's events must arrive in order.
    var requestsAtOnce: UInt32 { self == .transactions ? 1 : Target.requestsDefault }

    func makeDialect(_ options: DialectOptions) throws(UploadError) -> any Dialect {
        switch self {
        case .collector: try CollectorDialect(options)
        case .http: try HTTPDialect(options)
        case .sap: try SAPDialect(options)
        case .loggly: try LogglyDialect(options)
        case .loki: try LokiDialect(options)
        case .elasticsearch: try ElasticsearchDialect(options)
        case .splunk: try SplunkDialect(options)
        case .datadog: try DatadogDialect(options)
        case .clickhouse: try ClickHouseDialect(options)
        case .s3: try S3Dialect(options)
        case .otlp: try OTLPDialect(options)
        case .transactions: try TransactionsDialect(options)
        }
    }
}
