// OData errors in JSON. Version 2 (SAP Gateway): `{"error": {"code", "message": {"lang", "value"},
// "innererror": {"transactionid", "errordetails": […]}}}`; version 3 calls the object
// `odata.error`; version 4 has the message as a string, `details` with `target`, and SAP's terms as
// annotations whose prefix differs from server to server (`@SAP__common.TransactionId`). Pure.

enum ODataJSON {
    static func read(_ bytes: [UInt8]) -> ODataError? {
        guard let text = try? JSONValue.parse(bytes, bytesMax: ODataError.bodyBytesMax),
            let object = text["error"] ?? text["odata.error"], case .object = object
        else { return nil }
        var error = ODataError()
        error.code = word(object["code"])
        if case .object? = object["message"] {
            error.message = word(object["message"]?["value"])
            error.language = word(object["message"]?["lang"])
        } else {
            error.message = word(object["message"])
        }
        let inner = object["innererror"]
        let places = [inner, inner?["ErrorDetails"], inner?["errordetails"], object]
        for place in places where error.transactionID.isEmpty {
            error.transactionID = place.map { term("transactionid", of: $0) } ?? ""
        }
        error.details = details(object["details"]) + details(inner?["errordetails"])
        return error
    }

    /// A list, or an object whose `errordetail` is a list or a single detail, as in the XML.
    private static func details(_ value: JSONValue?) -> [ODataError.Detail] {
        guard let value else { return [] }
        if case .object = value, let inner = value["errordetail"] {
            if case .object = inner { return [detail(inner)] }
            return details(inner)
        }
        return value.elements.prefix(ODataError.detailsMax).compactMap {
            if case .object = $0 { return detail($0) }
            return nil
        }
    }

    private static func detail(_ value: JSONValue) -> ODataError.Detail {
        var detail = ODataError.Detail()
        detail.code = word(value["code"])
        detail.message = word(value["message"]?["value"] ?? value["message"])
        detail.property = word(value["propertyref"])
        if detail.property.isEmpty { detail.property = word(value["target"]) }
        detail.severity = word(value["severity"])
        if detail.severity.isEmpty {
            detail.severity = severity(term("numericseverity", of: value))
        }
        return detail
    }

    /// The value of a key that equals the term, or ends in it after a point, in any case.
    private static func term(_ term: String, of value: JSONValue) -> String {
        for member in value.members {
            let key = member.key.lowercased()
            if key == term || key.hasSuffix("." + term) { return word(member.value) }
        }
        return ""
    }

    /// The vocabulary's numbers: 1 success, 2 information, 3 warning, 4 error.
    private static func severity(_ number: String) -> String {
        switch number {
        case "1": "success"
        case "2": "info"
        case "3": "warning"
        case "4": "error"
        default: ""
        }
    }

    /// Codes are strings; some services depart from the standard and send numbers.
    private static func word(_ value: JSONValue?) -> String {
        switch value {
        case .string(let text): text
        case .integer(let number): String(number)
        default: ""
        }
    }
}
