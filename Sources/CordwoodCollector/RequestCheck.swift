// Decides from the head of a request how to handle it, before accepting a byte of its body. Knows
// headers and limits, no files and no sockets. Any thread.

import Cordwood
import CordwoodServing
import NIOHTTP1
import Synchronization

enum RequestDecision: Sendable {
    /// Accept the body; the key is the id that the client gave, if any. The sender lacks its
    /// address.
    case receive(key: String?, length: UInt64, Sender)
    /// Only a trusted client is given time to finish an unwanted body.
    case answer(Answer, isTrusted: Bool)
}

final class RequestCheck: Sendable {
    static let archivesPath = "/v1/archives"
    static let healthPath = "/healthz"

    private let options: CollectorOptions
    private let tokens: Tokens
    private let refused = Mutex(0)

    init(_ options: CollectorOptions, tokens: Tokens) {
        self.options = options
        self.tokens = tokens
    }

    /// - Parameter problem: what kept the last archive from the disk; nil: archives are stored.
    func decide(_ head: HTTPRequestHead, problem: FileProblem?) -> RequestDecision {
        let path = head.uri.prefix { $0 != "?" }
        let client = client(head.headers)
        let isTrusted = client != nil
        let answer: Answer
        switch (path, head.method) {
        case (RequestCheck.archivesPath[...], .POST):
            guard let client else {
                answer = .error(
                    .unauthorized, "token missing or wrong", [("WWW-Authenticate", "Bearer")])
                break
            }
            return upload(head.headers, Sender(client: client, store: mark(head.headers)))
        case (RequestCheck.archivesPath[...], _):
            answer = .error(.methodNotAllowed, "use POST", [("Allow", "POST")])
        case (RequestCheck.healthPath[...], .GET), (RequestCheck.healthPath[...], .HEAD):
            answer = problem.map { Answer($0) } ?? .healthy
        case (RequestCheck.healthPath[...], _):
            answer = .error(.methodNotAllowed, "use GET or HEAD", [("Allow", "GET, HEAD")])
        default: answer = .error(.notFound, "no such path")
        }
        return .answer(answer, isTrusted: isTrusted)
    }

    private func upload(_ headers: HTTPHeaders, _ sender: Sender) -> RequestDecision {
        func refuse(_ answer: Answer) -> RequestDecision { .answer(answer, isTrusted: true) }
        if isRefusedForTest() {
            let seconds = String(options.retryAfterSeconds)
            return refuse(
                .error(.serviceUnavailable, "refused on request", [("Retry-After", seconds)]))
        }
        let lengths = headers[canonicalForm: "Content-Length"]
        guard let text = lengths.first else {
            return refuse(.error(.lengthRequired, "Content-Length is required"))
        }
        guard lengths.count == 1, let length = UInt64(text), length > 0 else {
            return refuse(.error(.badRequest, "Content-Length is not a positive number"))
        }
        guard length <= options.archiveBytesMax else {
            let limit = options.archiveBytesMax
            return refuse(.error(.payloadTooLarge, "the limit is \(limit) bytes"))
        }
        switch headers["Idempotency-Key"].count {
        case 0: return .receive(key: nil, length: length, sender)
        case 1:
            guard let key = RequestCheck.key(headers["Idempotency-Key"][0]) else { fallthrough }
            return .receive(key: key, length: length, sender)
        default: return refuse(.error(.badRequest, "Idempotency-Key is not one quoted UUID"))
        }
    }

    /// `"8-4-4-4-12"`, with or without the quotes; as lowercase.
    static func key(_ value: String) -> String? {
        var text = value[...]
        if text.hasPrefix("\""), text.hasSuffix("\""), text.utf8.count >= 2 {
            text = text.dropFirst().dropLast()
        }
        let lower = text.lowercased()
        let parts = lower.utf8.split(separator: 0x2d, omittingEmptySubsequences: false)
        guard parts.map(\.count) == [8, 4, 4, 4, 12], Hex.bytes(parts.joined()) != nil else {
            return nil
        }
        return lower
    }

    /// The number of the client whose token it is, 0 if none is needed; nil: it has none.
    private func client(_ headers: HTTPHeaders) -> UInt32? {
        if tokens.isOpen { return 0 }
        let values = headers["Authorization"]
        guard values.count == 1, values[0].utf8.count > 7,
            values[0].prefix(7).lowercased() == "bearer "
        else { return nil }
        return tokens.client(Array(values[0].utf8.dropFirst(7)))
    }

    /// Some clients say which store sends.
    private func mark(_ headers: HTTPHeaders) -> String {
        let values = headers["Cordwood-Upload"]
        guard values.count == 1, values[0].utf8.count == 16, Hex.bytes(values[0].utf8) != nil else {
            return "-"
        }
        return values[0]
    }

    private func isRefusedForTest() -> Bool {
        refused.withLock { count in
            guard count < options.refuseFirst else { return false }
            count += 1
            return true
        }
    }
}
