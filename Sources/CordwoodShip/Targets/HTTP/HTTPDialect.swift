// Any HTTP endpoint: the host gives method, URL and headers; `{id}` and `{name}` in the URL stand
// for the request's id and the archive's file name (B-ROLL-1). Bodies are complete archives unless
// the host limits them.

import CordwoodStore

struct HTTPDialect: Dialect {
    let method: String
    let contentType: String
    let limits: BodyLimits
    private let template: String
    private let format: BodyFormat
    private let isFlat: Bool

    init(_ options: DialectOptions) throws(UploadError) {
        try options.parameters.require(only: ["fields"], kind: .http)
        isFlat = try HTTPDialect.isFlat(options)
        method = options.method ?? "POST"
        template = options.url
        format = options.format
        let isOTLP = [.otlpProtobuf, .otlpJSON].contains(options.format)
        limits = isOTLP ? try OTLPDialect.limits(options) : options.limits(BodyLimits())
        contentType = HTTPDialect.contentType(options.format)
    }

    func makeEncoder(_ lines: LineRenderers) -> (any RecordEncoder)? {
        HTTPDialect.makeEncoder(
            format, lines, isFlat: isFlat, entryBytesMax: Int(limits.entryBytes))
    }

    func url(_ delivery: Delivery) -> String {
        let url = HTTPDialect.fill(template, "{id}", delivery.id)
        return HTTPDialect.fill(url, "{name}", delivery.fileName)
    }

    /// A name begins with what the archive covers and with its id; parts of an archive share it.
    func isAddressOfBody(_ delivery: Delivery) -> Bool {
        template.holds("{id}") || delivery.range == nil && template.holds("{name}")
    }

    var probe: Probe {
        .head(HTTPDialect.fill(HTTPDialect.fill(template, "{id}", "test"), "{name}", "test"))
    }

    // ── Shared with other kinds ──

    static func contentType(_ format: BodyFormat) -> String {
        switch format {
        case .archive: "application/vnd.cordwood.archive"
        case .ndjson: "application/x-ndjson"
        case .text, .sap: "text/plain; charset=utf-8"
        case .json, .otlpJSON: "application/json"
        case .otlpProtobuf: "application/x-protobuf"
        }
    }

    /// Whether all fields of a record are one string (`fields=text`).
    static func isFlat(_ options: DialectOptions) throws(UploadError) -> Bool {
        switch options.parameters["fields"] {
        case nil, "object": return false
        case "text" where options.format == .ndjson: return true
        case "text": throw UploadError.argument("parameter 'fields' is for format ndjson")
        default: throw UploadError.argument("parameter 'fields' is neither object nor text")
        }
    }

    static func makeEncoder(
        _ format: BodyFormat, _ lines: LineRenderers, isFlat: Bool = false,
        entryBytesMax: Int = OTLPEncoder.entryBytesMax
    ) -> (any RecordEncoder)? {
        switch format {
        case .archive: nil
        case .ndjson where isFlat:
            EntryEncoder(.none) { JSONLine.appendFlat($0, mark: Cut.mark(of: $0), to: &$1) }
        case .ndjson: EntryEncoder(.none, lines.json)
        case .text: EntryEncoder(.none, lines.text)
        case .sap: EntryEncoder(.none, CommonEntries.sap)
        case .json: EntryEncoder(.array, CommonEntries.json)
        case .otlpProtobuf: OTLPEncoder(.protobuf, entryBytesMax: entryBytesMax)
        case .otlpJSON: OTLPEncoder(.json, entryBytesMax: entryBytesMax)
        }
    }

    static func fill(_ text: String, _ mark: String, _ value: String) -> String {
        var result = ""
        var rest = text[...]
        while let open = rest.firstIndex(of: "{") {
            result += rest[..<open]
            rest = rest[open...]
            if rest.hasPrefix(mark) {
                result += value
                rest = rest.dropFirst(mark.count)
            } else {
                result.append(rest.removeFirst())
            }
        }
        return result + rest
    }
}
