// The heads of answers. Headers on all of them limit what a browser may do with an answer, and keep
// other sites from it. Pure.

import Cordwood
import NIOCore
import NIOHTTP1

struct Reply: Sendable {
    var status: HTTPResponseStatus
    var headers: [(String, String)]
    var body: ByteBuffer
    /// For the operator.
    var reason = ""

    /// Only our own files run as scripts, text never becomes markup, nothing is sent elsewhere.
    static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        + "img-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        + "require-trusted-types-for 'script'"

    private static let always = [
        ("Content-Security-Policy", policy), ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"), ("Cross-Origin-Opener-Policy", "same-origin"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
    ]

    static func refused(_ refusal: Refusal) -> Reply {
        .error(refusal.status, refusal.reason, allow: refusal.allow)
    }

    /// - Parameter column: the place in the query, in characters.
    static func error(
        _ status: HTTPResponseStatus, _ reason: String, column: Int? = nil, allow: String? = nil,
        retryAfter: Int? = nil
    ) -> Reply {
        var body = Array("{\"error\":".utf8)
        JSONText.string(reason, &body)
        body += ",\"column\":\(column.map(String.init) ?? "null")}\n".utf8
        var reply = json(body, status: status)
        reply.reason = reason
        if let allow { reply.headers.append(("Allow", allow)) }
        if let retryAfter { reply.headers.append(("Retry-After", String(retryAfter))) }
        return reply
    }

    static func json(_ body: [UInt8], status: HTTPResponseStatus = .ok) -> Reply {
        Reply(
            status: status,
            headers: [("Content-Type", "application/json"), ("Cache-Control", "no-store")],
            body: ByteBuffer(bytes: body))
    }

    /// Lines of JSON, whose number is not known in advance.
    static let lines = Reply(
        status: .ok,
        headers: [("Content-Type", "application/x-ndjson"), ("Cache-Control", "no-store")],
        body: ByteBuffer())

    /// A file to download, without its bytes. A browser that shows it anyway runs none of it.
    static func file(_ name: String, type: String) -> Reply {
        Reply(
            status: .ok,
            headers: [
                ("Content-Type", type), ("Cache-Control", "no-store"),
                ("Content-Disposition", "attachment; filename=\"\(name)\""),
                ("Content-Security-Policy", "sandbox; default-src 'none'"),
            ],
            body: ByteBuffer())
    }

    /// Redirects to the page, and sets the cookie.
    static func enter(cookieName: String, value: String) -> Reply {
        let cookie = "\(cookieName)=\(value); Path=/; HttpOnly; SameSite=Strict"
        return Reply(
            status: .seeOther,
            headers: [("Location", "/"), ("Set-Cookie", cookie), ("Cache-Control", "no-store")],
            body: ByteBuffer())
    }

    /// - Parameter known: the tags that the browser has.
    static func page(_ file: PageFile, isHead: Bool, known: [String]) -> Reply {
        // Checked again each time: the next version of the program has other files.
        var headers = [("ETag", file.tag), ("Cache-Control", "no-cache")]
        let tags = known.flatMap { $0.split(separator: ",") }
        if tags.contains(where: { $0.drop { $0 == " " } == file.tag }) {
            return Reply(status: .notModified, headers: headers, body: ByteBuffer())
        }
        headers.append(("Content-Type", file.type))
        var reply = Reply(status: .ok, headers: headers, body: file.bytes)
        if isHead {
            reply.headers.append(("Content-Length", String(file.bytes.readableBytes)))
            reply.body = ByteBuffer()
        }
        return reply
    }

    /// - Parameter isStream: pieces follow, in chunks.
    func head(keepAlive: Bool, isStream: Bool) -> HTTPResponseHead {
        var fields = HTTPHeaders(Reply.always + headers)
        if !isStream, status != .notModified, !fields.contains(name: "Content-Length") {
            fields.add(name: "Content-Length", value: String(body.readableBytes))
        }
        if !keepAlive { fields.add(name: "Connection", value: "close") }
        return HTTPResponseHead(version: .http1_1, status: status, headers: fields)
    }
}
