// The names of a body's content and of its compression on the wire. Pure.

package enum BodyFormat: String, CaseIterable, Sendable {
    case archive, ndjson, text, sap, json
    case otlpProtobuf = "otlp-protobuf"
    case otlpJSON = "otlp-json"
}

package enum BodyEncoding: String, CaseIterable, Sendable {
    case none, gzip, zstd, lz4

    /// The encoding to try if a server refuses this one.
    var simpler: BodyEncoding? {
        switch self {
        case .zstd, .lz4: .gzip
        case .gzip: BodyEncoding.none
        case .none: nil
        }
    }
}
