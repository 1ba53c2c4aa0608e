// What capture leaves unchanged: the requests that the server gets, the delegate's calls, the
// configuration's cache. Compares a plain session with a captured one.

import Cordwood
import CordwoodHTTPCapture
import Foundation
import XCTest

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

final class CaptureParityTests: CaptureCase {
    private func captured() throws -> [CapturedExchange] {
        let reader = try ExchangeReader(path: store)
        var found: [CapturedExchange] = []
        while let next = try reader.advance() { found.append(next) }
        return found.filter { !$0.isOpen }
    }

    private func cached(_ one: CapturedExchange) -> String? {
        one.response.headers.first { $0.name == "Cordwood-From-Cache" }?.value
    }

    /// The headers that the last hop gets from a session made by the closure.
    private func arrived(
        _ path: String, cookies: Bool, _ make: (URLSessionConfiguration) -> URLSession
    ) async throws -> [String: String] {
        let mine = configuration()
        mine.httpShouldSetCookies = cookies
        mine.httpAdditionalHeaders = ["X-More": "of the session"]
        var request = URLRequest(url: url(path))
        request.setValue("of the request", forHTTPHeaderField: "X-Own")
        let (body, _) = try await make(mine).data(for: request)
        var found = try XCTUnwrap(JSONSerialization.jsonObject(with: body) as? [String: String])
        // Foundation keeps cookies in no order.
        found["Cookie"] = found["Cookie"]?.components(separatedBy: "; ").sorted()
            .joined(separator: "; ")
        return found
    }

    func testARedirectionGoesOnAsWithoutCapture() async throws {
        let engine = self.engine
        let login = "/redirect?cookie=sid%3Dpeer-1%3B%20Path%3D/&to="
        let twice = login + "/redirect%3Fcookie%3Dmore%253D2%26to%3D/headers"
        // No delegate, one without a method for redirections, and one with it.
        let hosts: [(any URLSessionDelegate)?] = [nil, Bystander(), Listener()]
        for (path, cookies) in [(login + "/headers", true), (twice, true), (twice, false)] {
            for host in hosts {
                let alone = try await arrived(path, cookies: cookies) {
                    URLSession(configuration: $0, delegate: host, delegateQueue: nil)
                }
                let seen = try await arrived(path, cookies: cookies) {
                    HTTPCapture.session(engine, configuration: $0, delegate: host)
                }
                let installed = try await arrived(path, cookies: cookies) {
                    URLSession(
                        configuration: HTTPCapture.install(engine, in: $0), delegate: host,
                        delegateQueue: nil)
                }
                XCTAssertEqual(seen, alone, path)
                XCTAssertEqual(installed, alone, path)
                XCTAssertEqual(alone["X-More"], "of the session")
                if !(host is Listener), cookies {
                    XCTAssertEqual(alone["Cookie"]?.contains("sid=peer-1"), true, path)
                }
            }
        }
    }

    /// An answer from the cache is marked, whole and recorded once, with and without a delegate.
    func testAnAnswerFromTheCacheIsMarked() async throws {
        let mine = configuration()
        let cache = try XCTUnwrap(mine.urlCache)
        let request = URLRequest(url: url("/json?kept"))
        let head = try XCTUnwrap(
            HTTPURLResponse(
                url: url("/json?kept"), statusCode: 200, httpVersion: "HTTP/1.1",
                headerFields: ["Content-Type": "text/plain", "Cache-Control": "max-age=600"]))
        cache.storeCachedResponse(
            CachedURLResponse(response: head, data: Data("kept".utf8)), for: request)
        let installed = URLSession(configuration: HTTPCapture.install(engine, in: mine))
        let (body, _) = try await installed.data(for: request)
        XCTAssertEqual(String(decoding: body, as: UTF8.self), "kept")
        let listener = Listener()
        let watched = HTTPCapture.session(engine, configuration: mine, delegate: listener)
        watched.dataTask(with: request).resume()
        await fulfillment(of: [listener.ended], timeout: 30)
        XCTAssertEqual(listener.received, 4)
        let (asked, _) = try await installed.data(from: url("/headers"))
        XCTAssertNotEqual(String(decoding: asked, as: UTF8.self), "kept")
        let found = try captured()
        XCTAssertEqual(found.map(cached), ["yes", "yes", nil])
        for one in found.prefix(2) {
            XCTAssertEqual(one.response.body.map { String(decoding: $0, as: UTF8.self) }, "kept")
            XCTAssertEqual(one.response.bodyBytes, 4)
        }
    }

    /// Foundation has undone the framing: what looks like framing belongs to the body.
    func testABodyThatLooksFramedIsWhole() async throws {
        let session = HTTPCapture.session(engine, configuration: configuration())
        let (body, _) = try await session.data(from: url("/chunk-lines"))
        XCTAssertEqual(String(decoding: body, as: UTF8.self), "4\r\nwiki\r\n0\r\n\r\n")
        let found = try captured()
        XCTAssertEqual(found.map { $0.response.body.map { Data($0) } }, [body])
        XCTAssertEqual(found[0].response.bodyBytes, UInt64(body.count))
    }

    /// The body of a task with a handler counts once, even if the session has a delegate.
    func testAHandlersBodyCountsOnce() async throws {
        for host in [nil, Listener()] {
            let session = HTTPCapture.session(
                engine, configuration: configuration(), delegate: host)
            let (body, _) = try await session.data(from: url("/download?bytes=3000000"))
            XCTAssertEqual(body.count, 3_000_000)
        }
        XCTAssertEqual(try captured().map(\.response.bodyBytes), [3_000_000, 3_000_000])
    }

    /// The host answers a challenge as without capture. The refusal is recorded; Foundation shows
    /// neither the request that follows nor its result.
    func testAChallengeIsAnsweredAsWithoutCapture() async throws {
        let (host, engine) = (Credentials(), self.engine)
        let plain = URLSession(configuration: configuration(), delegate: host, delegateQueue: nil)
        let alone = await get(plain, url("/basic"))
        let seen = await get(
            HTTPCapture.session(engine, configuration: configuration(), delegate: host),
            url("/basic"))
        XCTAssertEqual(alone.status, 200)
        XCTAssertEqual(seen, alone)
        XCTAssertEqual(try captured().map(\.status), [401])
    }

    func testAWebSocketsDelegateIsTold() throws {
        let host = Sockets()
        let session = HTTPCapture.session(
            engine, configuration: configuration(), delegate: host)
        let address = try XCTUnwrap(URL(string: "ws://127.0.0.1:1/"))
        let task = session.webSocketTask(with: address)
        let told = try XCTUnwrap(session.delegate as? any URLSessionWebSocketDelegate)
        told.urlSession(session, webSocketTask: task, didOpenWithProtocol: "chat")
        told.urlSession(
            session, webSocketTask: task, didCloseWith: .goingAway, reason: Data("bye".utf8))
        XCTAssertEqual(host.calls, ["open chat", "close 1001 bye"])
    }

    /// Tasks end and are recorded concurrently, while later tasks take their place.
    func testTasksThatEndWhileOthersBegin() async throws {
        let session = HTTPCapture.session(engine, configuration: configuration())
        let address = url("/empty")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<25 { _ = try await session.data(from: address) }
                }
            }
            try await group.waitForAll()
        }
        XCTAssertEqual(try captured().count, 200)
    }

    /// Each engine has its own class, however many engines there are.
    func testManyEngines() async throws {
        var classes: Set<ObjectIdentifier> = []
        for number in 0..<70 {
            let place = store + "-\(number)"
            let one = try Engine(directory: place)
            let made = HTTPCapture.install(one, in: configuration()).protocolClasses ?? []
            classes.insert(ObjectIdentifier(try XCTUnwrap(made.first)))
            _ = try one.close()
            try FileManager.default.removeItem(atPath: place)
        }
        XCTAssertEqual(classes.count, 70)
        _ = await get(
            URLSession(configuration: HTTPCapture.install(engine, in: configuration())),
            url("/json?last"))
        XCTAssertEqual(try captured().map(\.url), [base + "/json?last"])
    }
}

/// A host's delegate that is not told of redirections.
private final class Bystander: NSObject, URLSessionDelegate {}

private final class Credentials: NSObject, URLSessionTaskDelegate {
    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler:
            @escaping @Sendable (
                URLSession.AuthChallengeDisposition, URLCredential?
            ) -> Void
    ) {
        completionHandler(
            .useCredential, URLCredential(user: "u", password: "p", persistence: .none))
    }
}

private final class Sockets: NSObject, URLSessionWebSocketDelegate, @unchecked Sendable {
    var calls: [String] = []

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didOpenWithProtocol name: String?
    ) {
        calls.append("open \(name ?? "")")
    }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith code: URLSessionWebSocketTask.CloseCode, reason: Data?
    ) {
        calls.append("close \(code.rawValue) \(String(decoding: reason ?? Data(), as: UTF8.self))")
    }
}
