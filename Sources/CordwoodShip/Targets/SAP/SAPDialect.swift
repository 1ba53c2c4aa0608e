// SAP Mobile Services' log upload (B-SAP-4, B-SAP-5): lines of SAP's form to a URL with the host's
// application and device in it. The answers follow the rule for all targets: 204 took it, 400 is a
// form it does not know, 403 says that its policy forbids uploads from here, which pauses the
// target until the policy allows it again. Only gzip by Content-Encoding, no zip: a zip container's
// directory holds what is not a record's (names, dates), so the same records would not make the
// same bytes; and every server that takes one takes plain lines.

import CordwoodFormats
import CordwoodStore

struct SAPDialect: Dialect {
    let contentType = HTTPDialect.contentType(.sap)
    let limits: BodyLimits
    private let address: String

    /// What follows scheme, host and port where the URL has nothing but those.
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

    func asksForPolicy(_ outcome: TransferOutcome) -> Bool { outcome.httpStatus == 403 }
}
