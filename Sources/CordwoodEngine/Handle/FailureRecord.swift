// The record of a request of the host's that failed (B-NET-2, B-NET-4). Its texts come from a
// server and a transport, so they pass the Redactor under the engine's rules, like those of
// captured exchanges.
// SAFETY: a logger's block and its engine's are never unmapped; rules are retained while used.

import CCordwood
import CShims
import CordwoodCore
import CordwoodFormats
import CordwoodShip
import CordwoodTrace

package enum FailureRecord {
    package struct Content {
        package var level = Level.error
        package var message = ""
        package var fields: [(String, FieldInput)] = []

        package init() {}
    }

    /// - Parameters:
    ///   - level: 0: the outcome decides.
    ///   - more: the host's additions: a message before ours, fields after ours.
    package static func write(
        _ logger: LoggerBlock, level: UInt32, _ failure: RequestFailure, _ more: RichBody
    ) -> Int32 {
        var content = Content()
        let status = unsafe make(logger, level: level, failure, &content)
        guard status == Status.ok else { return status }
        let count = content.fields.count + max(0, more.fieldCount)
        guard count <= FieldType.countMax else { return Status.limit }
        var encoded = RecordWriter.encode(content.fields)
        for index in 0..<max(0, more.fieldCount) {
            if let field = unsafe more.fields?[index] { unsafe put(field, &encoded) }
        }
        unsafe encoded.withUnsafeMutableBytes {
            unsafe $0.storeBytes(of: UInt16(count).littleEndian, as: UInt16.self)
        }
        var message = unsafe Array(more.message)
        if !message.isEmpty { message += ": ".utf8 }
        message += content.message.utf8
        return unsafe message.withUnsafeBytes { message in
            unsafe encoded.withUnsafeBytes { encoded in
                var body = more
                unsafe body.message = message
                unsafe body.encodedFields = encoded
                return unsafe AppendSlow.rich(logger, content.level.number, body)
            }
        }
    }

    /// Encodes a host's field in the form of FORMAT §8.2; the call has checked the field.
    private static func put(_ field: cw_field, _ bytes: inout [UInt8]) {
        let key = unsafe ByteText(field.key)
        bytes.append(unsafe UInt8(truncatingIfNeeded: field.type))
        bytes.append(0)
        put(UInt16(truncatingIfNeeded: key.count), &bytes)
        bytes += key.array
        switch unsafe UInt8(truncatingIfNeeded: field.type) {
        case FieldType.string:
            let text = unsafe ByteText(field.value.s)
            put(UInt32(truncatingIfNeeded: text.count), &bytes)
            bytes += text.array
        case FieldType.bool: bytes.append(unsafe field.value.b ? 1 : 0)
        default: unsafe put(field.value.u, &bytes)
        }
    }

    private static func put<T: FixedWidthInteger>(_ value: T, _ bytes: inout [UInt8]) {
        unsafe withUnsafeBytes(of: value.littleEndian) { unsafe bytes.append(contentsOf: $0) }
    }

    /// Fills `content` and returns the status that writing the record would return.
    package static func make(
        _ logger: LoggerBlock, level: UInt32, _ failure: RequestFailure, _ content: inout Content
    ) -> Int32 {
        let level = level == 0 ? UInt32(usual(failure.detail.kind).number) : level
        let refusal = unsafe AppendSlow.refusal(logger, level)
        guard refusal == Status.ok else { return refusal }
        guard let engine = unsafe logger.pointee.engine,
            let rules = unsafe HTTPCapture.rules(engine)
        else { return Status.closed }
        defer { unsafe rules.release() }
        var wash = unsafe Wash(Redactor(rules))
        var failure = failure
        // Each text alone, unchanged: after other words the Redactor does not see a secret's name.
        failure.url = wash.url(failure.url)
        failure.detail = wash.detail(failure.detail)
        content.level = Level(number: UInt8(truncatingIfNeeded: level)) ?? .error
        content.fields = fields(failure)
        let title = [failure.method, failure.url].filter { !$0.isEmpty }.joined(separator: " ")
        let words = failure.detail.text(.english)
        content.message = title.isEmpty ? words : "\(title): \(words)"
        return Status.ok
    }

    private static func usual(_ kind: OutcomeKind) -> Level {
        kind == .redirection || kind == .client ? .warn : .error
    }

    private static func fields(_ failure: RequestFailure) -> [(String, FieldInput)] {
        var fields: [(String, FieldInput)] = []
        func add(_ key: String, _ text: String) {
            if !text.isEmpty { fields.append((key, .string(text))) }
        }
        add("http.request.method", failure.method)
        add("url.full", failure.url)
        let status = failure.detail.httpStatus
        if status != 0 { fields.append(("http.status", .int(Int64(status)))) }
        add("cause", failure.detail.cause)
        for (key, value) in failure.detail.fields {
            switch value {
            case .text(let text): add(key, text)
            case .number(let number): fields.append((key, .int(number)))
            }
        }
        add("http.id", failure.exchangeID)
        return fields
    }
}

/// Runs texts through the Redactor.
private struct Wash: ~Copyable {
    private let redactor: Redactor
    private var edits = Edits()
    private var out = GrowingBytes()

    init(_ redactor: Redactor) { self.redactor = redactor }

    mutating func url(_ text: String) -> String {
        let isCut = text.utf8.count >= RequestFailure.urlBytesMax
        return run(text) { redactor, text, edits, out in
            redactor.url(text, isCut: isCut, &edits, into: &out)
        }
    }

    /// Washes the texts of server and transport, and keeps only as many details as are logged.
    mutating func detail(_ detail: FailureDetail) -> FailureDetail {
        var detail = detail
        detail.cause = line(detail.cause)
        detail.location = line(detail.location)
        guard var odata = detail.odata else { return detail }
        odata.code = line(odata.code)
        odata.message = line(odata.message)
        odata.transactionID = line(odata.transactionID)
        odata.details = Array(odata.details.prefix(FailureDetail.detailsLogged))
        for index in odata.details.indices {
            odata.details[index].code = line(odata.details[index].code)
            odata.details[index].message = line(odata.details[index].message)
            odata.details[index].property = line(odata.details[index].property)
            odata.details[index].severity = line(odata.details[index].severity)
        }
        detail.odata = odata
        return detail
    }

    private mutating func line(_ text: String) -> String {
        // A cut falls between whole characters, so it may leave up to three bytes of the limit
        // free.
        let isCut = text.utf8.count > ODataError.textBytesMax - 4
        return run(text) { redactor, text, edits, out in
            redactor.line(text, isCut: isCut, &edits, into: &out)
        }
    }

    private mutating func run(
        _ text: String,
        _ replace: (Redactor, ByteText, inout Edits, inout GrowingBytes) -> Void
    ) -> String {
        guard !text.isEmpty else { return "" }
        var text = text
        out.removeAll()
        text.withUTF8 { unsafe replace(redactor, ByteText($0.baseAddress, $0.count), &edits, &out) }
        return String(decoding: out.text.array, as: UTF8.self)
    }
}
