// OData errors in XML, as SAP Gateway sends them unless JSON is requested: `<error><code/>
// <message xml:lang=""/><innererror><transactionid/><errordetails><errordetail>…`. expat parses it.
// A document type, which could define entities, ends the reading, as does too much depth. Names are
// compared without their prefix. Lives on one thread for the length of `read`.
// SAFETY: the parser is `read`'s own and is freed there; expat calls only inside XML_Parse, with
// the reader that `read` keeps alive, and its texts hold during the call, for the length it gives.

import CExpat

@safe final class ODataXML {
    private var error = ODataError()
    private var detail: ODataError.Detail?
    /// Names of the open elements.
    private var path: [String] = []
    private var text: [UInt8] = []
    private var isOther = false
    // SAFETY: used only in its own calls.
    private let parser: XML_Parser

    private init(_ parser: XML_Parser) { unsafe self.parser = parser }

    private static let depthMax = 32
    private static let textBytesMax = 64 << 10

    /// nil: not XML, or another document.
    static func read(_ bytes: [UInt8]) -> ODataError? {
        guard let parser = unsafe XML_ParserCreate(nil) else { return nil }
        defer { unsafe XML_ParserFree(parser) }
        // Not 0: expat would ask the system for a random number.
        _ = unsafe XML_SetHashSalt(parser, UInt.random(in: 1 ... .max))
        let reader = unsafe ODataXML(parser)
        unsafe XML_SetUserData(parser, Unmanaged.passUnretained(reader).toOpaque())
        unsafe XML_SetElementHandler(
            parser, { unsafe ODataXML.from($0)?.begin($1, $2) },
            { user, _ in unsafe ODataXML.from(user)?.end() })
        unsafe XML_SetCharacterDataHandler(
            parser, { unsafe ODataXML.from($0)?.add($1, count: $2) })
        unsafe XML_SetStartDoctypeDeclHandler(
            parser, { user, _, _, _, _ in unsafe ODataXML.from(user)?.stop() })
        // In pieces: after each, it is known whether the rest is needed.
        var rest = bytes[...]
        repeat {
            let piece = Array(rest.prefix(4096))
            rest = rest.dropFirst(4096)
            let status = unsafe piece.withUnsafeBytes { buffer in
                unsafe XML_Parse(
                    parser, buffer.baseAddress?.assumingMemoryBound(to: CChar.self),
                    Int32(buffer.count), rest.isEmpty ? 1 : 0)
            }
            guard status == XML_STATUS_OK, !reader.isOther else { return nil }
        } while !rest.isEmpty
        return withExtendedLifetime(reader) { reader.error }
    }

    private static func from(_ user: UnsafeMutableRawPointer?) -> ODataXML? {
        unsafe user.map { unsafe Unmanaged<ODataXML>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Stops at once: the rest of the piece may hold entities.
    private func stop() {
        isOther = true
        _ = unsafe XML_StopParser(parser, 0)
    }

    private func begin(
        _ name: UnsafePointer<CChar>?, _ attributes: UnsafeMutablePointer<UnsafePointer<CChar>?>?
    ) {
        let element = unsafe ODataXML.localName(name)
        if path.isEmpty && element != "error" { isOther = true }
        guard path.count < ODataXML.depthMax, !isOther else {
            isOther = true
            return
        }
        path.append(element)
        text = []
        if element == "errordetail" && isInside("errordetails") { detail = ODataError.Detail() }
        guard path == ["error", "message"], var next = unsafe attributes else { return }
        while let key = unsafe next.pointee, let value = unsafe (next + 1).pointee {
            if unsafe String(cString: key) == "xml:lang" {
                error.language = unsafe String(cString: value)
            }
            unsafe next += 2
        }
    }

    private func end() {
        guard let element = path.last, !isOther else { return }
        let value = ASCII.trimmed(text)
        text = []
        path.removeLast()
        if detail != nil {
            switch element {
            case "code": detail?.code = value
            case "message": detail?.message = value
            case "propertyref" where !value.isEmpty: detail?.property = value
            case "target" where detail?.property.isEmpty == true: detail?.property = value
            case "severity": detail?.severity = value
            case "errordetail":
                if let detail, error.details.count < ODataError.detailsMax {
                    error.details.append(detail)
                }
                detail = nil
            default: break
            }
        } else if path == ["error"] {
            if element == "code" { error.code = value }
            if element == "message" { error.message = value }
        } else if element == "transactionid" && isInside("innererror") {
            error.transactionID = value
        }
    }

    private func add(_ bytes: UnsafePointer<CChar>?, count: Int32) {
        guard let bytes = unsafe bytes, count > 0, !isOther,
            text.count + Int(count) <= ODataXML.textBytesMax
        else { return }
        unsafe text.append(contentsOf: UnsafeRawBufferPointer(start: bytes, count: Int(count)))
    }

    private func isInside(_ element: String) -> Bool { path.contains(element) }

    private static func localName(_ name: UnsafePointer<CChar>?) -> String {
        guard let name = unsafe name else { return "" }
        let whole = unsafe String(cString: name)
        return whole.split(separator: ":").last.map(String.init) ?? whole
    }
}
