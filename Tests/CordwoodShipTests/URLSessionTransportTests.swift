// The transport on Foundation's URLSession, called as the engine calls it: bodies are streamed with
// their length, answers of every kind come back, time and stops are kept, nothing is remembered.

import CordwoodTestSupport
import CordwoodURLSession
import Foundation
import Glibc
import XCTest

@testable import CordwoodShip

final class URLSessionTransportTests: XCTestCase {
    private let transport = HostTransport(URLSessionTransport())

    func testTwentyMegabytesAreStreamedWhole() throws {
        try full()
        let server = try FaultServer()
        let file = SentFile(SentFile.noise(20 << 20))
        let before = URLSessionTransportTests.residentBytes()
        let outcome = try transport.send(
            server.url + "/in/a%20b?c=d", file, method: "PUT", headers: "X-A: b\nX-B: grün")
        XCTAssertEqual(outcome.kind, .success, outcome.cause)
        let request = try XCTUnwrap(server.requests.first)
        XCTAssertEqual(request.method, "PUT")
        XCTAssertEqual(request.path, "/in/a%20b?c=d")
        XCTAssertEqual(request.headers["content-length"], "\(20 << 20)")
        XCTAssertNil(request.headers["transfer-encoding"])
        XCTAssertNil(request.headers["expect"])
        XCTAssertEqual(request.headers["x-a"], "b")
        XCTAssertEqual(request.headers["content-type"], "text/plain")
        XCTAssertTrue(server.body(1) == file.bytes)
        let grown = Int64(URLSessionTransportTests.residentBytes()) - Int64(before)
        print("20 MiB through URLSession: \(grown >> 10) KiB more resident")
    }

    func testPartOfAFile() throws {
        let server = try FaultServer()
        let file = SentFile(SentFile.noise(10_000))
        let outcome = try transport.send(server.url, file) {
            $0.body = RequestBody(descriptor: file.descriptor, offset: 1_000, count: 5_000)
        }
        XCTAssertEqual(outcome.kind, .success)
        XCTAssertEqual(server.body(1), Array(file.bytes[1_000..<6_000]))
    }

    func testRequestsWithoutABody() throws {
        let server = try FaultServer()
        for method in ["GET", "POST", "PUT"] {
            let outcome = try transport.send(server.url, method: method) { $0.body = nil }
            XCTAssertEqual(outcome.httpStatus, 200, "\(method): \(outcome.cause)")
        }
        XCTAssertEqual(server.requests.map(\.method), ["GET", "POST", "PUT"])
        XCTAssertEqual(server.requests.map(\.bytes), [0, 0, 0])
    }

    func testHeadersOfOneNameAreAllSent() throws {
        let server = try FaultServer()
        XCTAssertEqual(
            try transport.send(server.url, headers: "X-A: b\nX-A: c").httpStatus, 200)
        let value = try XCTUnwrap(server.requests.first?.headers["x-a"])
        XCTAssertEqual(value.split(separator: ",").map(String.init), ["b", "c"])
    }

    func testRefusalWhoseBodyIsCutIsAnAnswer() throws {
        let server = try FaultServer(
            #"[{"action":"half","status":503,"headers":{"Retry-After":"7"}}]"#)
        let busy = try transport.send(server.url)
        XCTAssertEqual(busy.httpStatus, 503, busy.cause)
        XCTAssertEqual(busy.header("retry-after"), "7")
    }

    func testAnswersComeBack() throws {
        let server = try FaultServer(
            """
            [{"status":503,"headers":{"Retry-After":"7"},"body":"later"},
             {"status":401,"headers":{"WWW-Authenticate":"Bearer realm=\\"x\\""}},
             {"status":302,"headers":{"Location":"/elsewhere"}},
             {"status":200,"body_bytes":8388608}, {"status":204}]
            """)
        let busy = try transport.send(server.url)
        XCTAssertEqual(busy.httpStatus, 503)
        XCTAssertEqual(busy.header("retry-after"), "7")
        XCTAssertEqual(busy.body, Array("later".utf8))
        let refused = try transport.send(server.url)
        XCTAssertEqual(refused.httpStatus, 401)
        XCTAssertEqual(refused.header("www-authenticate"), "Bearer realm=\"x\"")
        XCTAssertEqual(try transport.send(server.url).httpStatus, 302)
        let long = try transport.send(server.url)
        XCTAssertEqual(long.httpStatus, 200, long.cause)
        XCTAssertTrue(long.isBodyCut)
        XCTAssertEqual(long.body.count, 4 << 20)
        XCTAssertEqual(try transport.send(server.url).httpStatus, 204)
        XCTAssertEqual(server.requests.count, 5)
    }

    func testRedirectionsWithinTheOriginAlone() throws {
        let elsewhere = try FaultServer()
        let server = try FaultServer(
            """
            [{"status":307,"headers":{"Location":"/b"}},
             {"status":308,"headers":{"Location":"\(elsewhere.url)/c"}}]
            """)
        let outcome = try transport.send(server.url + "/a")
        XCTAssertEqual(outcome.httpStatus, 308)
        XCTAssertEqual(server.requests.map(\.path), ["/a", "/b"])
        XCTAssertEqual(server.requests.map(\.bytes), [7, 7])
        XCTAssertEqual(elsewhere.requests.count, 0)
    }

    func testCookiesAreNotKept() throws {
        let server = try FaultServer(#"[{"headers":{"Set-Cookie":"a=b; Path=/"}}]"#)
        for _ in 0..<2 { XCTAssertEqual(try transport.send(server.url).httpStatus, 200) }
        XCTAssertNil(server.requests.last?.headers["cookie"])
    }

    func testFailuresAreOutcomes() throws {
        let silent = SilentPort(queue: nil)
        let nobody = try transport.send("http://127.0.0.1:\(silent.port)/secret")
        XCTAssertEqual(nobody.kind, .requestFailed)
        XCTAssertTrue(nobody.isUnreachable, nobody.cause)
        XCTAssertFalse(nobody.cause.contains("secret"))
        let server = try FaultServer(#"[{"action":"drop"},{"action":"half"}]"#)
        XCTAssertEqual(try transport.send(server.url).kind, .requestFailed)
        XCTAssertEqual(try transport.send(server.url).kind, .requestFailed)
        let made = try XCTUnwrap(Authority.made)
        let strange = try FaultServer(pem: made("server.pem"))
        let refused = try transport.send(strange.url)
        XCTAssertEqual(refused.kind, .requestFailed)
        XCTAssertEqual(strange.requests.count, 0)
    }

    func testTimeIsKept() throws {
        let server = try FaultServer(#"[{"action":"hang"},{"action":"stall"}]"#)
        let begin = UploadClock.system.monotonicMs()
        let hung = try transport.send(server.url) { $0.settings.requestTimeoutMs = 400 }
        XCTAssertEqual(hung.cause, "timed out")
        var asked = 0
        let file = SentFile(SentFile.noise(8 << 20))
        let stopped = try transport.send(
            server.url, file,
            ticks: Ticks {
                asked += 1
                return asked > 3 ? .stop : .go
            })
        XCTAssertTrue(stopped.isStopped)
        XCTAssertLessThan(UploadClock.system.monotonicMs() - begin, 25_000)
        XCTAssertEqual(try transport.send(server.url).httpStatus, 200, "and goes on")
    }

    func testSeveralAtOnce() throws {
        try full()
        let server = try FaultServer()
        let (url, host) = (server.url, URLSessionTransport())
        let work = DispatchGroup()
        let good = Events()
        for number in 0..<8 {
            work.enter()
            // Not on Dispatch's threads, which URLSession works on: it adds one a second.
            Thread.detachNewThread {
                let file = SentFile(SentFile.noise(100_000 + number))
                let outcome = try? HostTransport(host).send(url, file)
                if outcome?.kind == .success { good.add("") }
                work.leave()
            }
        }
        XCTAssertEqual(work.wait(timeout: .now() + 60), .success)
        XCTAssertEqual(good.all.count, 8)
        XCTAssertEqual(Set(server.requests.map(\.bytes)), Set((0..<8).map { 100_000 + $0 }))
    }

    private static func residentBytes() -> Int {
        let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
        return (text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 4_096
    }
}
