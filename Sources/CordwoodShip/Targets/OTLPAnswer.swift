// What an OTLP receiver answers: an ExportLogsServiceResponse, which may say that some records were
// refused for good (partialSuccess), or a google.rpc.Status. In protobuf or in JSON, as the request
// was, or not at all. It comes from outside, bounded: what does not parse says nothing. Pure.

struct OTLPAnswer: Equatable {
    /// Of the request's records; the receiver will not take them another time either.
    var rejected: UInt32 = 0
    /// For people; bounded, without control characters.
    var message = ""

    static let messageBytesMax = 300
    private static let bytesMax = 64 << 10

    /// Whether it is an ExportLogsServiceResponse: nothing, or one field that may be there. Some
    /// receivers answer in the other form than they were asked in, and do not say so.
    static func isResponse(_ body: [UInt8], isJSON: Bool) -> Bool {
        if body.isEmpty { return true }
        if isJSON || body.first == UInt8(ascii: "{") {
            guard let value = json(body), case .object = value else { return false }
            return value.members.allSatisfy { $0.key == "partialSuccess" }
        }
        return ProtobufBytes.isMessage(body) { $0 == 1 }
    }

    /// An answer with 2xx.
    static func success(_ body: [UInt8], isJSON: Bool) -> OTLPAnswer {
        if isJSON {
            let partial = json(body)?["partialSuccess"]
            return OTLPAnswer(
                rejected: count(partial?["rejectedLogRecords"]),
                message: shown(Array((partial?["errorMessage"]?.string ?? "").utf8)))
        }
        guard let partial = bytes(1, in: body) else { return OTLPAnswer() }
        var rejected: UInt32 = 0
        for case (1, .number(let count)) in ProtobufBytes.fields(partial) {
            // A negative number is none.
            rejected = count > UInt64(Int64.max) ? 0 : UInt32(clamping: count)
        }
        return OTLPAnswer(rejected: rejected, message: shown(bytes(2, in: partial) ?? []))
    }

    /// Any other answer: a Status.
    static func failure(_ body: [UInt8], isJSON: Bool) -> String {
        guard isJSON else { return shown(bytes(2, in: body) ?? []) }
        return shown(Array((json(body)?["message"]?.string ?? "").utf8))
    }

    private static func bytes(_ number: UInt64, in message: [UInt8]) -> [UInt8]? {
        var found: [UInt8]?
        let fields = ProtobufBytes.fields(Array(message.prefix(bytesMax)))
        for case (number, .bytes(let bytes)) in fields { found = bytes }
        return found
    }

    private static func json(_ body: [UInt8]) -> JSONValue? {
        body.isEmpty ? nil : try? JSONValue.parse(body, bytesMax: bytesMax)
    }

    /// A 64-bit number is a string in proto3's JSON, and a number with those who do not know that.
    private static func count(_ value: JSONValue?) -> UInt32 {
        guard let number = value?.string.flatMap({ Int64($0) }) ?? value?.whole else { return 0 }
        return UInt32(clamping: number)
    }

    static func shown(_ text: [UInt8]) -> String {
        let plain = text.prefix(messageBytesMax).map { $0 < 0x20 || $0 == 0x7F ? 0x20 : $0 }
        return String(decoding: plain, as: UTF8.self)
    }
}
