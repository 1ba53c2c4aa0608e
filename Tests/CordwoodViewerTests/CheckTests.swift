// Who gets in: the table of docs/VIEWER.md, one request per row.

import NIOCore
import NIOHTTP1
import XCTest

@testable import CordwoodViewer

final class CheckTests: XCTestCase {
    private let keys = Keys(linkTimeoutMs: 60_000)
    private lazy var check = ViewerCheck(
        keys: keys, pageNames: ["index.html", "app.js"], bodyBytesMax: 64 << 10, mayChange: true)

    override func setUp() { keys.setPort(4600) }

    private var cookie: String { "\(keys.cookieName)=\(keys.cookie)" }

    private func head(
        _ method: HTTPMethod, _ uri: String, _ headers: [(String, String)],
        version: HTTPVersion = .http1_1
    ) -> HTTPRequestHead {
        HTTPRequestHead(version: version, method: method, uri: uri, headers: HTTPHeaders(headers))
    }

    private func status(_ head: HTTPRequestHead, isOwnUser: Bool = true) -> UInt {
        switch check.decide(head, isOwnUser: isOwnUser) {
        case .refuse(let refusal): refusal.status.code
        case .enter: 303
        case .page, .api: 200
        }
    }

    /// The headers of a request of the page.
    private var good: [(String, String)] {
        [
            ("Host", "127.0.0.1:4600"), ("X-Cordwood", "1"), ("Cookie", cookie),
            ("Sec-Fetch-Site", "same-origin"), ("Origin", "http://127.0.0.1:4600"),
        ]
    }

    private func with(_ name: String, _ values: [String]) -> [(String, String)] {
        good.filter { $0.0 != name } + values.map { (name, $0) }
    }

    func testHeadersOfTheAPI() {
        let table: [(name: String, values: [String], status: UInt)] = [
            ("Host", ["127.0.0.1:4600"], 200), ("Host", [], 421), ("Host", ["evil.example"], 421),
            ("Host", ["127.0.0.1:4600", "127.0.0.1:4600"], 421),
            ("Host", ["127.0.0.1.evil.example"], 421), ("Host", ["localhost.evil"], 421),
            ("Host", ["127.0.0.1:"], 421), ("Host", ["127.0.0.1:80x"], 421),
            ("Host", ["127.0.0.1:123456"], 421), ("Host", ["[::2]"], 421),
            ("Host", ["127.0.0.2"], 421), ("Host", [""], 421),
            ("X-Cordwood", [], 403), ("X-Cordwood", ["0"], 403), ("X-Cordwood", ["1", "1"], 403),
            ("Sec-Fetch-Site", [], 200), ("Sec-Fetch-Site", ["cross-site"], 403),
            ("Sec-Fetch-Site", ["same-site"], 403), ("Sec-Fetch-Site", ["none"], 403),
            ("Sec-Fetch-Site", ["same-origin", "cross-site"], 403),
            ("Origin", [], 200), ("Origin", ["null"], 403), ("Origin", ["http://evil"], 403),
            ("Origin", ["https://127.0.0.1:4600"], 403), ("Origin", ["http://127.0.0.1"], 403),
            ("Origin", ["http://127.0.0.1:4601"], 403), ("Origin", ["http://localhost:4600"], 403),
            ("Cookie", [], 401), ("Cookie", ["\(keys.cookieName)="], 401),
            ("Cookie", [cookie + "0"], 401), ("Cookie", [String(cookie.dropLast())], 401),
            ("Cookie", ["other=\(keys.cookie)"], 401), ("Cookie", ["x\(cookie)"], 401),
            ("Cookie", ["a=b; \(cookie); c=d"], 200), ("Cookie", ["a=b", cookie], 200),
            ("Cookie", ["\(keys.cookieName)=no; \(cookie)"], 200),
            ("Content-Length", ["65536"], 200), ("Content-Length", ["65537"], 413),
            ("Content-Length", ["x"], 413),
        ]
        for (name, values, wanted) in table {
            let request = head(.GET, "/api/store", with(name, values))
            XCTAssertEqual(status(request), wanted, "\(name): \(values)")
        }
    }

    func testChangesAreJSON() {
        let json = ("Content-Type", "application/json")
        for path in ["consent", "levels", "capture", "queue"] {
            XCTAssertEqual(status(head(.POST, "/api/\(path)", good + [json])), 200, path)
        }
        for path in ["store", "query", "settings", "consent/x", "nothing"] {
            XCTAssertEqual(status(head(.POST, "/api/\(path)", good + [json])), 405, path)
        }
        let table: [(types: [String], status: UInt)] = [
            ([], 415), (["text/plain"], 415), (["application/json", "application/json"], 415),
            (["text/plain; charset=application/json"], 415), (["application/jsonx"], 415),
            (["application/json; charset=latin1"], 415), (["Application/JSON; charset=UTF-8"], 200),
        ]
        for (types, wanted) in table {
            let request = head(
                .POST, "/api/consent", good + types.map { ("Content-Type", $0) })
            XCTAssertEqual(status(request), wanted, "\(types)")
        }
        for (name, values) in [("Origin", ["null"]), ("Cookie", []), ("X-Cordwood", [])] {
            let request = head(.POST, "/api/consent", with(name, values) + [json])
            XCTAssertGreaterThan(status(request), 400, name)
        }
        let closed = ViewerCheck(
            keys: keys, pageNames: [], bodyBytesMax: 64 << 10, mayChange: false)
        guard
            case .refuse(let refusal) = closed.decide(
                head(.POST, "/api/consent", good + [json]), isOwnUser: true)
        else { return XCTFail("a viewer that is read-only takes changes") }
        XCTAssertEqual(refusal.status, .methodNotAllowed)
    }

    func testHostsAnyPort() {
        for host in ["127.0.0.1", "localhost", "LOCALHOST:9", "[::1]", "[::1]:65535"] {
            let origin = [("Host", host), ("Origin", "http://\(host)")]
            let headers = good.filter { !["Host", "Origin"].contains($0.0) } + origin
            XCTAssertEqual(status(head(.GET, "/api/store", headers)), 200, host)
            XCTAssertEqual(status(head(.GET, "/", [("Host", host)])), 200, host)
        }
    }

    func testMethodsAndPaths() {
        let all: [HTTPMethod] = [.GET, .HEAD, .POST, .PUT, .DELETE, .OPTIONS, .TRACE, .PATCH]
        for method in all {
            let isRead = method == .GET || method == .HEAD
            XCTAssertEqual(status(head(method, "/", good)), isRead ? 200 : 405, "\(method)")
            XCTAssertEqual(
                status(head(method, "/api/store", good)), method == .GET ? 200 : 405, "\(method)")
            XCTAssertEqual(
                status(head(method, "/open/x", good)), method == .GET ? 403 : 405, "\(method)")
        }
        for path in [
            "/page/", "/page/x.js", "/page/../page.c", "/page/app.js/", "/page/%61pp.js", "//",
            "/index.html", "/api", "/favicon.ico",
        ] {
            XCTAssertEqual(status(head(.GET, path, good)), 404, path)
        }
        XCTAssertEqual(status(head(.GET, "/page/app.js?x", good)), 200)
        XCTAssertEqual(status(head(.GET, "http://127.0.0.1:4600/", good)), 400)
        XCTAssertEqual(status(head(.OPTIONS, "*", good)), 400)
        XCTAssertEqual(status(head(.GET, "/", good, version: .http1_0)), 505)
    }

    func testThePageNeedsNoCookieAndTheHostCounts() {
        XCTAssertEqual(status(head(.GET, "/", [("Host", "localhost:1")])), 200)
        XCTAssertEqual(status(head(.GET, "/", [("Host", "evil.example")])), 421)
    }

    func testAnotherUserGetsNothing() {
        let link = "/open/" + keys.makeLink()
        for path in ["/", "/page/app.js", "/api/store", link] {
            XCTAssertEqual(status(head(.GET, path, good), isOwnUser: false), 403, path)
        }
        // The link is still good.
        XCTAssertEqual(status(head(.GET, link, good)), 303)
    }

    func testLinksWorkOnceAndInTime() {
        let first = keys.makeLink()
        XCTAssertEqual(first.utf8.count, 32)
        XCTAssertEqual(status(head(.GET, "/open/\(first)", [("Host", "localhost")])), 303)
        XCTAssertEqual(status(head(.GET, "/open/\(first)", [("Host", "localhost")])), 403)
        XCTAssertEqual(status(head(.GET, "/open/", [("Host", "localhost")])), 403)
        let ahead = [("Host", "localhost"), ("Sec-Purpose", "prefetch")]
        let second = keys.makeLink()
        XCTAssertEqual(status(head(.GET, "/open/\(second)", ahead)), 503)
        XCTAssertEqual(status(head(.GET, "/open/\(second)", [("Host", "evil")])), 421)
        XCTAssertEqual(status(head(.GET, "/open/\(second)", [("Host", "localhost")])), 303)
        let began = NIODeadline.now()
        let late = Array(keys.makeLink(now: began).utf8)
        XCTAssertFalse(keys.use(link: late, now: began + .seconds(60)))
        let inTime = Array(keys.makeLink(now: began).utf8)
        XCTAssertTrue(keys.use(link: inTime, now: began + .seconds(59)))
    }

    func testOldLinksGiveWay() {
        let first = Array(keys.makeLink().utf8)
        for _ in 0..<Keys.linksMax { _ = keys.makeLink() }
        XCTAssertFalse(keys.use(link: first))
    }

    func testUsersOfSockets() {
        let table = Array(
            """
              sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid
               0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1 0 7 1 f
               1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  7 0 9 1 f
               2: 0100007F:C351 0100007F:1F90 06 00000000:00000000 00:00000000 00000000  0 0 0 1 f
               3: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  8 0 9 1 f

            """.utf8)
        func find(_ client: Int) throws -> UInt32? {
            let local = PeerUser.name(of: try SocketAddress(ipAddress: "127.0.0.1", port: client))
            let remote = PeerUser.name(of: try SocketAddress(ipAddress: "127.0.0.1", port: 8080))
            return PeerUser.find(
                in: table, local: try XCTUnwrap(local), remote: try XCTUnwrap(remote))
        }
        XCTAssertEqual(try find(50_000), 7)
        // No process owns the socket any more: the number would be root's.
        XCTAssertNil(try find(50_001))
        XCTAssertNil(try find(50_002))
        XCTAssertEqual(
            PeerUser.name(of: try SocketAddress(ipAddress: "::1", port: 80)),
            "00000000000000000000000001000000:0050")
    }
}
