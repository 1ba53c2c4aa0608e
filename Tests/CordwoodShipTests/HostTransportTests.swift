// The host's own transport: what it is given, and that whatever it does or answers is just an
// outcome (B-NET-1). Credentials, which are asked for when a server refuses the current ones.

import CordwoodStore
import Foundation
import Glibc
import XCTest

@testable import CordwoodShip

final class HostTransportTests: XCTestCase {
    func testIsGivenTheRequestAndItsBody() throws {
        let file = SentFile(SentFile.noise(300_000))
        let content = file.bytes
        let told = ToldTransport { request in
            XCTAssertEqual(try request.content(), content)
            XCTAssertEqual(try request.content(chunk: 1_000_000), content)
            XCTAssertFalse(request.isStopped)
            return UploadResponse(
                status: 201, headers: [("ETag", " \"x\" ")], body: Array("done".utf8))
        }
        let outcome = try HostTransport(told).send(
            "https://logs.example/a?b", file, method: "PUT", headers: "X-A: b")
        XCTAssertEqual(outcome.kind, .success)
        XCTAssertEqual(outcome.httpStatus, 201)
        XCTAssertEqual(outcome.header("etag"), "\"x\"")
        XCTAssertEqual(outcome.body, Array("done".utf8))
        XCTAssertEqual(outcome.bytesSent, 300_000)
        let request = try XCTUnwrap(told.seen.first)
        XCTAssertEqual(request.method, "PUT")
        XCTAssertEqual(request.url, "https://logs.example/a?b")
        XCTAssertEqual(request.bodyBytes, 300_000)
        XCTAssertEqual(request.headers.first?.name, "X-A")
        XCTAssertEqual(request.connectTimeout, .seconds(10))
        XCTAssertEqual(request.timeout, .seconds(63))
    }

    func testNonsenseIsNoAnswer() throws {
        for status in [0, -1, 1, 99, 100, 199, 600, 1000, Int.max, Int.min] {
            let outcome = try HostTransport(ToldTransport { _ in UploadResponse(status: status) })
                .send("http://h")
            XCTAssertEqual(outcome.kind, .unknown)
            XCTAssertEqual(outcome.httpStatus, 0)
            XCTAssertTrue(outcome.cause.contains("\(status)"), outcome.cause)
            XCTAssertEqual(
                AnswerVerdict.judge(
                    outcome, isCollector: false, isOnlyIfAbsent: false, isEncodingProven: true,
                    nowUnixMs: 0), .retry(.failed, delayMs: nil))
        }
    }

    func testAnswersAreCutToTheLimits() throws {
        let outcome = try HostTransport(
            ToldTransport { _ in
                UploadResponse(
                    status: 200,
                    headers: [("Long", String(repeating: "x", count: 9_000)), ("Two", "a\r\nb")]
                        + (0..<1_000).map { ("H\($0)", "v") },
                    body: [UInt8](repeating: 120, count: 6 << 20))
            }
        ).send("http://h")
        XCTAssertEqual(outcome.kind, .success)
        XCTAssertTrue(outcome.isBodyCut)
        XCTAssertEqual(outcome.body.count, 4 << 20)
        XCTAssertNil(outcome.header("long"))
        XCTAssertEqual(outcome.header("two"), "a")
        XCTAssertLessThanOrEqual(outcome.headers.count, 64)
    }

    func testWhatIsThrownIsAnOutcome() throws {
        let other = try HostTransport(ToldTransport { _ in throw ToldTransport.Refused() })
            .send("http://h/secret")
        XCTAssertEqual(other.kind, .requestFailed)
        XCTAssertEqual(other.cause, "the host's transport threw Refused")
        let named = try HostTransport(
            ToldTransport { _ in throw UploadTransportError("no\nroute", isUnreachable: true) }
        ).send("http://h/secret")
        XCTAssertEqual(named.cause, "no route")
        XCTAssertTrue(named.isUnreachable)
        XCTAssertFalse(named.isStopped)
        let proxy = try HostTransport(ToldTransport { _ in UploadResponse(status: 407) })
            .send("http://h")
        XCTAssertEqual(proxy.kind, .requestFailed)
    }

    func testRequestThatIsOverIsDead() throws {
        let told = ToldTransport { _ in UploadResponse(status: 200) }
        _ = try HostTransport(told).send("http://h")
        let request = try XCTUnwrap(told.seen.first)
        XCTAssertTrue(request.isStopped)
        XCTAssertThrowsError(try request.content()) {
            XCTAssertEqual(($0 as? UploadTransportError)?.text, "the request is over")
        }
    }

    func testStopIsToldAndIsNoFailure() throws {
        var asked = 0
        let told = ToldTransport { request in
            eventually("it is told") { request.isStopped }
            var buffer = [UInt8](repeating: 0, count: 8)
            XCTAssertThrowsError(
                try buffer.withUnsafeMutableBytes {
                    try request.readBody(at: 0, into: $0)
                })
            throw ToldTransport.Refused()
        }
        let outcome = try HostTransport(told).send(
            "http://h",
            ticks: Ticks {
                asked += 1
                return asked > 5 ? .stop : .go
            })
        XCTAssertTrue(outcome.isStopped)
        let before = try HostTransport(told).send("http://h", ticks: Ticks { .stop })
        XCTAssertTrue(before.isStopped)
        XCTAssertEqual(told.seen.count, 1)
    }

    func testByteRateHoldsUntilSomebodyWaits() throws {
        let file = SentFile(SentFile.noise(400_000))
        let told = ToldTransport { request in
            XCTAssertEqual(try request.content().count, 400_000)
            return UploadResponse(status: 200)
        }
        func seconds(_ tick: TransferTick, rate: UInt64) throws -> Double {
            let begin = UploadClock.system.monotonicMs()
            _ = try HostTransport(told).send("http://h", file, ticks: Ticks { tick }) {
                $0.bytesPerSecond = rate
            }
            return Double(UploadClock.system.monotonicMs() - begin) / 1_000
        }
        XCTAssertGreaterThan(try seconds(.go, rate: 1_000_000), 0.1)
        XCTAssertLessThan(try seconds(.goUnlimited, rate: 4_000), 50, "held it would be 100")
    }

    func testRedirectionsWithinTheOriginAreFollowed() throws {
        let told = ToldTransport { request in
            switch request.url {
            case "http://h/a": UploadResponse(status: 307, headers: [("location", "/b")])
            case "http://h/b": UploadResponse(status: 308, headers: [("Location", "//evil/c")])
            default: UploadResponse(status: 500)
            }
        }
        let outcome = try HostTransport(told).send("http://h/a")
        XCTAssertEqual(outcome.httpStatus, 308)
        XCTAssertEqual(told.seen.map(\.url), ["http://h/a", "http://h/b"])
        let circle = ToldTransport { _ in
            UploadResponse(status: 307, headers: [("Location", "/again")])
        }
        XCTAssertEqual(try HostTransport(circle).send("http://h").kind, .redirection)
        XCTAssertEqual(circle.seen.count, 6)
    }

    func testReadingFromOtherThreadsWhileItEndsIsSafe() throws {
        let file = SentFile(SentFile.noise(1 << 20))
        let work = DispatchGroup()
        for _ in 0..<50 {
            let told = ToldTransport { request in
                for _ in 0..<4 {
                    DispatchQueue.global().async(group: work) {
                        var buffer = [UInt8](repeating: 0, count: 4_096)
                        for offset in 0..<100 {
                            _ = request.isStopped
                            let got = buffer.withUnsafeMutableBytes {
                                try? request.readBody(at: UInt64(offset * 4_096), into: $0)
                            }
                            guard got != nil else { return }
                        }
                    }
                }
                return UploadResponse(status: 200)
            }
            XCTAssertEqual(try HostTransport(told).send("http://h", file).httpStatus, 200)
        }
        XCTAssertEqual(work.wait(timeout: .now() + 30), .success)
    }
}

final class CredentialKeeperTests: XCTestCase {
    private struct Broken: Error {}
    private let old = Credentials(token: "old")
    private let new = Credentials(token: "new")

    private func keeper(_ ask: AskCredentials?) -> CredentialKeeper {
        CredentialKeeper(old, target: "t", ask: ask)
    }

    func testNewOnesAreKept() {
        let keeper = keeper { query in
            XCTAssertEqual(query.target, "t")
            XCTAssertEqual(query.challenge, "Bearer realm=x")
            return Credentials(token: "new")
        }
        XCTAssertEqual(
            keeper.renew(old, challenge: "Bearer realm=x") { false }, .renewed(new, isAsked: true))
        XCTAssertEqual(keeper.current, new)
        // A request that was sent with the old ones needs no new question.
        XCTAssertEqual(keeper.renew(old, challenge: nil) { false }, .renewed(new, isAsked: false))
    }

    func testNoneTheSameAndNonsenseAreNone() {
        XCTAssertEqual(keeper(nil).renew(old, challenge: nil) { false }, .none(cause: nil))
        XCTAssertEqual(keeper { _ in nil }.renew(old, challenge: nil) { false }, .none(cause: nil))
        let same = keeper { _ in Credentials(token: "old") }
        XCTAssertEqual(same.renew(old, challenge: nil) { false }, .none(cause: nil))
        let empty = keeper { _ in Credentials(token: "", user: "", password: "") }
        XCTAssertEqual(empty.renew(old, challenge: nil) { false }, .none(cause: nil))
        let broken = keeper { _ in throw Broken() }
        XCTAssertEqual(
            broken.renew(old, challenge: nil) { false },
            .none(cause: "the credentials callback threw Broken"))
        let wrong = keeper { _ in Credentials(token: "a\nb") }
        guard case .none(let cause?) = wrong.renew(old, challenge: nil, isStopped: { false }) else {
            return XCTFail("nonsense was taken")
        }
        XCTAssertTrue(cause.hasPrefix("auth_token"))
        XCTAssertEqual(wrong.current, old)
    }

    func testManyAtOnceAskOnce() {
        for isGiven in [true, false] {
            let asked = Events()
            let waiting = Events()
            // The answer comes once all others wait for it.
            let keeper = keeper { _ in
                asked.add("asked")
                eventually("seven wait") { Set(waiting.all).count == 7 }
                return isGiven ? Credentials(token: "new") : nil
            }
            let work = DispatchGroup()
            let (old, new) = (old, new)
            for number in 0..<8 {
                work.enter()
                Thread.detachNewThread {
                    let renewal = keeper.renew(old, challenge: nil) {
                        waiting.add("\(number)")
                        return false
                    }
                    switch renewal {
                    case .renewed(let credentials, _):
                        XCTAssertTrue(isGiven)
                        XCTAssertEqual(credentials, new)
                    case .none: XCTAssertFalse(isGiven)
                    }
                    work.leave()
                }
            }
            XCTAssertEqual(work.wait(timeout: .now() + 30), .success)
            XCTAssertEqual(asked.all.count, 1)
        }
    }

    func testWhoWaitsIsStopped() {
        let begun = DispatchSemaphore(value: 0)
        let end = DispatchSemaphore(value: 0)
        let keeper = keeper { _ in
            begun.signal()
            end.wait()
            return nil
        }
        let old = old
        DispatchQueue.global().async { _ = keeper.renew(old, challenge: nil) { false } }
        begun.wait()
        XCTAssertEqual(keeper.renew(old, challenge: nil) { true }, .none(cause: nil))
        end.signal()
    }
}
