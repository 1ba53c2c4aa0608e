// Decides from the head of a request whether and how it is answered: the one place with the rules
// of docs/VIEWER.md, "Who gets in". Knows no files and no sockets. Pure, except that each link
// works only once. Any thread.

import Cordwood
import enum CordwoodFormats.ASCII
import CordwoodServing
import NIOHTTP1

enum ViewerDecision: Equatable, Sendable {
    case page(String)
    /// A path below `/api/`, and the words after `?`. A change has JSON as its body.
    case api(path: String, query: String, isChange: Bool)
    /// To the page, with the cookie.
    case enter
    case refuse(Refusal)
}

struct Refusal: Equatable, Sendable {
    var status: HTTPResponseStatus
    var reason: String
    var allow: String?

    init(_ status: HTTPResponseStatus, _ reason: String, allow: String? = nil) {
        self.status = status
        self.reason = reason
        self.allow = allow
    }
}

struct ViewerCheck: Sendable {
    static let header = "X-Cordwood"
    static let linkPath = "/open/"
    static let pagePath = "/page/"
    static let apiPath = "/api/"
    /// The paths below `/api/` that change a store.
    static let changes: Set<String> = ["consent", "levels", "capture", "queue"]
    private static let hosts = ["127.0.0.1", "localhost", "[::1]"]

    let keys: Keys
    let pageNames: Set<String>
    let bodyBytesMax: Int
    /// False with `--read-only`.
    let mayChange: Bool

    /// - Parameter isOwnUser: the client's socket belongs to the user of this process.
    func decide(_ head: HTTPRequestHead, isOwnUser: Bool) -> ViewerDecision {
        guard isOwnUser else {
            return .refuse(Refusal(.forbidden, "this viewer serves the user who started it"))
        }
        guard head.version == .http1_1 else {
            return .refuse(Refusal(.httpVersionNotSupported, "HTTP/1.1 is needed"))
        }
        let hosts = head.headers["Host"]
        guard hosts.count == 1, ViewerCheck.isOurs(host: hosts[0]) else {
            return .refuse(Refusal(.misdirectedRequest, "the host is not this machine's loopback"))
        }
        if let refusal = lengthRefusal(head) { return .refuse(refusal) }
        guard head.uri.hasPrefix("/") else {
            return .refuse(Refusal(.badRequest, "the path begins with no /"))
        }
        let parts = head.uri.split(
            separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let path = String(parts[0])
        let query = parts.count > 1 ? String(parts[1]) : ""
        if path.hasPrefix(ViewerCheck.apiPath) {
            return api(head, host: hosts[0], path: path, query: query)
        }
        if path.hasPrefix(ViewerCheck.linkPath) { return link(head, path) }
        return page(head, path)
    }

    /// Called before the body arrives, since a body that is too long is not awaited. Nil: no
    /// refusal.
    func lengthRefusal(_ head: HTTPRequestHead) -> Refusal? {
        let lengths = head.headers["Content-Length"]
        if lengths.allSatisfy({ (Int($0) ?? .max) <= bodyBytesMax }) { return nil }
        return Refusal(.payloadTooLarge, "the limit is \(bodyBytesMax) bytes")
    }

    private func api(
        _ head: HTTPRequestHead, host: String, path: String, query: String
    ) -> ViewerDecision {
        guard head.headers[ViewerCheck.header] == ["1"] else {
            return .refuse(Refusal(.forbidden, "the header \(ViewerCheck.header): 1 is missing"))
        }
        guard head.headers["Sec-Fetch-Site"].allSatisfy({ $0 == "same-origin" }) else {
            return .refuse(Refusal(.forbidden, "the request comes from another site"))
        }
        guard head.headers["Origin"].allSatisfy({ $0 == "http://\(host)" }) else {
            return .refuse(Refusal(.forbidden, "the request comes from another origin"))
        }
        guard hasCookie(head.headers) else {
            return .refuse(
                Refusal(.unauthorized, "no cookie of this viewer: open a link that it prints"))
        }
        let path = String(path.dropFirst(ViewerCheck.apiPath.count))
        if head.method == .GET { return .api(path: path, query: query, isChange: false) }
        guard head.method == .POST, ViewerCheck.changes.contains(path), mayChange else {
            return .refuse(Refusal(.methodNotAllowed, "use GET", allow: "GET"))
        }
        let types = head.headers["Content-Type"]
        // Another site's form cannot send this type.
        guard types.count == 1, ViewerCheck.isJSON(types[0]) else {
            return .refuse(Refusal(.unsupportedMediaType, "send application/json"))
        }
        return .api(path: path, query: query, isChange: true)
    }

    private static func isJSON(_ type: String) -> Bool {
        let words = type.lowercased().split(separator: ";").map { $0.filter { $0 != " " } }
        return words.first == "application/json"
            && words.dropFirst().allSatisfy { $0 == "charset=utf-8" }
    }

    private func link(_ head: HTTPRequestHead, _ path: String) -> ViewerDecision {
        guard head.method == .GET else {
            return .refuse(Refusal(.methodNotAllowed, "use GET", allow: "GET"))
        }
        // A browser that prefetches would use the link up.
        guard head.headers["Sec-Purpose"].isEmpty, head.headers["Purpose"].isEmpty else {
            return .refuse(Refusal(.serviceUnavailable, "links are not opened ahead"))
        }
        let token = Array(path.utf8.dropFirst(ViewerCheck.linkPath.utf8.count))
        guard keys.use(link: token) else {
            return .refuse(
                Refusal(
                    .forbidden,
                    "this link was used before, or is older than a minute: Enter in the terminal "
                        + "of cordwood serve prints a new one"))
        }
        return .enter
    }

    private func page(_ head: HTTPRequestHead, _ path: String) -> ViewerDecision {
        var name: String?
        if path == "/" { name = "index.html" }
        if path.hasPrefix(ViewerCheck.pagePath) {
            name = String(path.dropFirst(ViewerCheck.pagePath.count))
        }
        guard let name, pageNames.contains(name) else {
            return .refuse(Refusal(.notFound, "no such path"))
        }
        guard head.method == .GET || head.method == .HEAD else {
            return .refuse(Refusal(.methodNotAllowed, "use GET", allow: "GET, HEAD"))
        }
        return .page(name)
    }

    /// `localhost`, `127.0.0.1:8080`, `[::1]:80`: any port, because `ssh -L` changes it. A name
    /// that others have pointed here (DNS rebinding) is not accepted.
    static func isOurs(host: String) -> Bool {
        let lower = host.lowercased()
        for name in hosts where lower.hasPrefix(name) {
            let rest = lower.dropFirst(name.count)
            if rest.isEmpty { return true }
            let digits = rest.dropFirst()
            return rest.hasPrefix(":") && !digits.isEmpty && digits.utf8.count <= 5
                && digits.utf8.allSatisfy { ASCII.isDigit($0) }
        }
        return false
    }

    /// Another server on this machine may have set cookies of the same name: one that is right is
    /// enough.
    private func hasCookie(_ headers: HTTPHeaders) -> Bool {
        let name = keys.cookieName
        var isFound = false
        for line in headers["Cookie"] {
            for pair in line.split(separator: ";") {
                let pair = pair.drop { $0 == " " }
                guard pair.hasPrefix(name + "=") else { continue }
                let value = Array(pair.utf8.dropFirst(name.utf8.count + 1))
                if keys.isCookie(value) { isFound = true }
            }
        }
        return isFound
    }
}
