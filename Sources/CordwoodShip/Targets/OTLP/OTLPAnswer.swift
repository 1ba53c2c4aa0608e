// The answer of an OTLP receiver: an ExportLogsServiceResponse, which may report that some records
// were refused for good (partial success), or a google.rpc.Status. It may be JSON or protobuf,
// regardless of the request and the answer's type: OpenObserve labels protobuf as JSON; Quickwit
// answers protobuf with JSON, in the names of the .proto file, which proto3's JSON allows besides
// its own. So the content decides. It is external input, bounded by the transport. Pure.

import CordwoodFormats

struct OTLPAnswer: Equatable {
    /// The number of refused records of the request; the receiver will not take them later either.
    var rejected: UInt32 = 0
    /// For people; unchanged.
    var message = ""

    static let messageBytesMax = 300

    init(rejected: UInt32 = 0, message: String = "") {
        self.rejected = rejected
        self.message = message
    }

    /// Parses a 2xx: empty, or with its one optional field. nil: it is not a response.
    init?(_ body: [UInt8]) {
        if let object = AnswerText.object(body) {
            let names = ["partialSuccess", "partial_success"]
            guard object.members.allSatisfy({ names.contains($0.key) }) else { return nil }
            let partial = OTLPAnswer.member(names, of: object)
            rejected = OTLPAnswer.count(
                OTLPAnswer.member(["rejectedLogRecords", "rejected_log_records"], of: partial))
            message =
                OTLPAnswer.member(["errorMessage", "error_message"], of: partial)?.string ?? ""
            return
        }
        guard ProtobufBytes.isMessage(body, { $0 == 1 }) else { return nil }
        let partial = OTLPAnswer.bytes(1, in: body) ?? []
        for case (1, .number(let count)) in ProtobufBytes.fields(partial) {
            // A negative number counts as none.
            rejected = count > UInt64(Int64.max) ? 0 : UInt32(clamping: count)
        }
        message = String(decoding: OTLPAnswer.bytes(2, in: partial) ?? [], as: UTF8.self)
    }

    /// The message of a Status, which any other answer may be; unchanged; empty: none.
    static func failure(_ body: [UInt8]) -> String {
        if let object = AnswerText.object(body) { return object["message"]?.string ?? "" }
        return String(decoding: bytes(2, in: body) ?? [], as: UTF8.self)
    }

    /// One short line.
    static func shown(_ text: String) -> String {
        let plain = text.utf8.prefix(messageBytesMax).map { $0 < 0x20 || $0 == 0x7F ? 0x20 : $0 }
        return String(decoding: plain, as: UTF8.self)
    }

    private static func member(_ names: [String], of value: JSONValue?) -> JSONValue? {
        value?.members.first { names.contains($0.key) }?.value
    }

    private static func bytes(_ number: UInt64, in message: [UInt8]) -> [UInt8]? {
        var found: [UInt8]?
        for case (number, .bytes(let bytes)) in ProtobufBytes.fields(message) { found = bytes }
        return found
    }

    /// A 64-bit number is a string in proto3's JSON; some implementations send a number.
    private static func count(_ value: JSONValue?) -> UInt32 {
        guard let number = value?.string.flatMap({ Int64($0) }) ?? value?.whole else { return 0 }
        return UInt32(clamping: number)
    }
}
