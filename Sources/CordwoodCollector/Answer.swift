// One answer of the collector: a status, a JSON body, and its headers. Pure.

import Cordwood
import NIOCore
import NIOHTTP1

struct Answer: Sendable {
    var status: HTTPResponseStatus
    var body: String
    /// The reason for a refusal, in words.
    var reason = ""
    /// Why an archive that was taken was put aside.
    var asideFor: String?
    var headers: [(String, String)] = []

    /// `records`: of the archive with that id, which the client compares with its own.
    static func stored(_ id: String, records: UInt64) -> Answer {
        Answer(
            status: .ok, body: "{\"id\":\"\(id)\",\"stored\":true,\"records\":\(records)}\n")
    }

    static let healthy = Answer(status: .ok, body: "{\"status\":\"ok\"}\n")

    static func error(
        _ status: HTTPResponseStatus, _ reason: String, _ headers: [(String, String)] = []
    ) -> Answer {
        var body = Array("{\"error\":".utf8)
        JSONText.string(reason, &body)
        body += "}\n".utf8
        return Answer(
            status: status, body: String(decoding: body, as: UTF8.self), reason: reason,
            headers: headers)
    }

    static func crowded(_ reason: String, retryAfterSeconds: Int) -> Answer {
        .error(.serviceUnavailable, reason, [("Retry-After", String(retryAfterSeconds))])
    }

    static let busy = Answer.error(
        .conflict, "an archive of the same segments is being checked", [("Retry-After", "1")])

    init(_ outcome: Depot.Reception) {
        switch outcome {
        case .stored(let id, let records): self = .stored(id, records: records)
        case .aside(let id, let records, let reason):
            self = .stored(id, records: records)
            asideFor = "archive \(id): \(reason)"
        case .crowded(let reason):
            self = .error(.insufficientStorage, reason, [("Retry-After", "60")])
        case .refused(let reason): self = .error(.badRequest, reason)
        case .busy: self = .busy
        case .failed(let problem): self.init(problem)
        }
    }

    init(_ problem: FileProblem) {
        // Clients must not learn paths of this machine.
        self =
            problem.isFull
            ? .error(.insufficientStorage, "no space", [("Retry-After", "60")])
            : .error(.internalServerError, "could not store: \(Errno.text(problem.errno))")
    }

    private init(
        status: HTTPResponseStatus, body: String, reason: String = "",
        headers: [(String, String)] = []
    ) {
        self.status = status
        self.body = body
        self.reason = reason
        self.headers = headers
    }

    /// The answer to HEAD is `head` alone, which has the length of the body.
    func head(version: HTTPVersion, keepAlive: Bool) -> HTTPResponseHead {
        var fields = HTTPHeaders()
        fields.add(name: "Content-Type", value: "application/json")
        fields.add(name: "Content-Length", value: String(body.utf8.count))
        for (name, value) in headers { fields.add(name: name, value: value) }
        if !keepAlive {
            fields.add(name: "Connection", value: "close")
        } else if version == .http1_0 {
            fields.add(name: "Connection", value: "keep-alive")
        }
        return HTTPResponseHead(version: .http1_1, status: status, headers: fields)
    }
}
