// The host's condition for an answer that confirms a body, for servers whose 2xx alone is not
// enough: `status:202;header:X-Stored=yes;body:accepted`, all of them. Pure.

import CordwoodStore

struct Expectation: Equatable, Sendable {
    private enum Condition: Equatable, Sendable {
        case status(Int32)
        /// The name in lower case; without a value, any value will do.
        case header(String, String?)
        /// Occurs anywhere in the answer.
        case body([UInt8])
    }

    private let conditions: [Condition]
    private static let conditionsMax = 16

    init(_ text: String) throws(UploadError) {
        var found: [Condition] = []
        for part in text.split(separator: ";") {
            let pair = part.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            let value = pair.count == 2 ? String(pair[1]) : ""
            let word = pair[0].drop { $0 == " " }
            switch word {
            case "status":
                guard let status = Int32(value), (200...299).contains(status) else {
                    throw Expectation.problem("status '\(value.prefix(40))' is no 2xx")
                }
                found.append(.status(status))
            case "header":
                let header = value.split(
                    separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                guard let name = header.first, !name.isEmpty else {
                    throw Expectation.problem("header has no name")
                }
                found.append(
                    .header(name.lowercased(), header.count == 2 ? String(header[1]) : nil))
            case "body":
                guard !value.isEmpty else { throw Expectation.problem("body has no text") }
                found.append(.body(Array(value.utf8)))
            default:
                throw Expectation.problem(
                    "unknown condition '\(word.prefix(40))'; known: status, header, body")
            }
        }
        guard !found.isEmpty, found.count <= Expectation.conditionsMax else {
            throw Expectation.problem("1 to \(Expectation.conditionsMax) conditions")
        }
        conditions = found
    }

    /// It looks into the body, and so can tell an answer from a page.
    var readsBody: Bool {
        conditions.contains { if case .body = $0 { true } else { false } }
    }

    private static func problem(_ text: String) -> UploadError { .argument("expect: \(text)") }

    func isMet(by outcome: TransferOutcome) -> Bool {
        conditions.allSatisfy { condition in
            switch condition {
            case .status(let status): outcome.httpStatus == status
            case .header(let name, let value):
                outcome.headers.contains { $0.name == name && (value == nil || $0.value == value) }
            case .body(let text): AnswerText.has(outcome.body, text)
            }
        }
    }
}
