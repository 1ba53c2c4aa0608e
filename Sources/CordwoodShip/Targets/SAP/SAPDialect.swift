// SAP Mobile Services' log upload (B-SAP-4, B-SAP-5): lines of SAP's form to a URL that contains
// the host's application and device. The answers follow the rule for all targets: 204 accepts the
// body, 400 rejects its form, 403 says that the policy forbids uploads from here, which pauses the
// target until the policy allows it again. Compresses only with gzip by Content-Encoding, never
// zip: the directory of a zip container holds names and dates, so the same records would not make
// the same bytes. Every server that accepts zip also accepts plain lines.

import CordwoodFormats
import CordwoodStore

struct SAPDialect: Dialect {
    let contentType = HTTPDialect.contentType(.sap)
    let limits: BodyLimits
    private let address: String

    /// The path to append to a URL of only scheme, host and port.
    static let pathDefault =
        "/mobileservices/application/{app}/clientlogs/v1/runtime/log/application/{appId}"
        + "?deviceId={deviceId}"

    init(_ options: DialectOptions) throws(UploadError) {
        try options.parameters.require(
            only: ["application", "application_id", "device_id"], kind: .sap)
        try options.requirePost(.sap)
        var url = options.isBare ? options.bareURL + SAPDialect.pathDefault : options.url
        let application = options.parameters["application"]
        let values = [
            ("{app}", "application", application),
            ("{appId}", "application_id", options.parameters["application_id"] ?? application),
            ("{deviceId}", "device_id", options.parameters["device_id"]),
        ]
        for (mark, name, value) in values {
            let filled = HTTPDialect.fill(url, mark, URLText.percentEncoded(value ?? ""))
            guard filled == url || value?.isEmpty == false else {
                throw UploadError.argument("the url has \(mark): parameter '\(name)' is needed")
            }
            url = filled
        }
        address = url
        limits = options.limits(BodyLimits())
    }

    func makeEncoder(_ lines: LineRenderers) -> (any RecordEncoder)? {
        HTTPDialect.makeEncoder(.sap, lines)
    }

    func url(_ delivery: Delivery) -> String { address }

    var probe: Probe { .head(address) }

    /// The policy forbids uploads from here, whatever their content.
    func verdict(_ outcome: TransferOutcome, _ delivery: Delivery) -> AnswerVerdict? {
        outcome.httpStatus == HTTPStatus.forbidden ? .pause : nil
    }

    func asksForPolicy(_ outcome: TransferOutcome) -> Bool {
        outcome.httpStatus == HTTPStatus.forbidden
    }
}
