// The error that an OData service or SAP Gateway puts into the body of a 4xx or 5xx, read from JSON
// of versions 2, 3 and 4 and from the XML of version 2, which SAP Gateway sends unless JSON is
// requested. Other bodies contain no such error. Pure.

public struct ODataError: Equatable, Sendable {
    public struct Detail: Equatable, Sendable {
        public var code = ""
        public var message = ""
        /// The part of the request that this concerns: `Team/Team_Identifier`.
        public var property = ""
        /// `info`, `warning`, `error`, or a word of the server's own.
        public var severity = ""

        public init() {}
    }

    public var code = ""
    public var message = ""
    /// Of the message: `en`.
    public var language = ""
    /// Finds the request in the server's own logs.
    public var transactionID = ""
    public var details: [Detail] = []

    public init() {}

    package static let bodyBytesMax = 256 << 10
    static let detailsMax = 64
    package static let textBytesMax = 4096

    /// nil: the body is not such an error.
    package init?(body: [UInt8], contentLanguage: String) {
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        let bytes = body.starts(with: mark) ? Array(body.dropFirst(3)) : body
        guard bytes.count <= ODataError.bodyBytesMax,
            let first = bytes.first(where: { $0 != 0x20 && !(0x09...0x0D).contains($0) })
        else { return nil }
        let read: ODataError?
        switch first {
        case UInt8(ascii: "{"): read = ODataJSON.read(bytes)
        case UInt8(ascii: "<"): read = ODataXML.read(bytes)
        default: read = nil
        }
        guard var error = read, !error.code.isEmpty || !error.message.isEmpty else { return nil }
        if error.language.isEmpty { error.language = contentLanguage }
        self = error.bounded
    }

    private var bounded: ODataError {
        var error = self
        error.code = ODataError.cut(code)
        error.message = ODataError.cut(message)
        error.language = ODataError.cut(language)
        error.transactionID = ODataError.cut(transactionID)
        error.details = details.prefix(ODataError.detailsMax).map {
            var detail = $0
            detail.code = ODataError.cut(detail.code)
            detail.message = ODataError.cut(detail.message)
            detail.property = ODataError.cut(detail.property)
            detail.severity = ODataError.cut(detail.severity)
            return detail
        }
        return error
    }

    /// Cuts the text to the limit, between characters.
    package static func cut(_ text: String) -> String {
        guard text.utf8.count > textBytesMax else { return text }
        var end = text.utf8.index(text.startIndex, offsetBy: textBytesMax)
        while end.samePosition(in: text.unicodeScalars) == nil, end > text.startIndex {
            end = text.utf8.index(before: end)
        }
        return String(text[..<end])
    }
}
