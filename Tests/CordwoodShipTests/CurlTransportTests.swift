// How libcurl reaches a server (UPLOADS, How a server is reached): whose certificates are trusted,
// what a client reveals, what ends an exchange, what an error says and does not say.

import CCurl
import CordwoodTestSupport
import Foundation
import Glibc
import XCTest

@testable import CordwoodShip

/// What a C callback saw.
private let closings = Events()

final class CurlTransportTests: XCTestCase {
    private func authority() throws -> Authority {
        try XCTUnwrap(Authority.made, "openssl or python3 is missing")
    }

    // ── TLS ──

    func testPrivateAuthorityIsBelieved() throws {
        let made = try authority()
        let server = try FaultServer(pem: made("server.pem"))
        for host in ["127.0.0.1", "localhost"] {
            let outcome = try CurlTransport().send("https://\(host):\(server.port)/x") {
                $0.settings.caFile = made("ca.pem")
            }
            XCTAssertEqual(outcome.httpStatus, 200, outcome.cause)
        }
        XCTAssertEqual(server.requests.map(\.bytes), [7, 7])
    }

    func testOtherAuthorityIsRefused() throws {
        let made = try authority()
        let server = try FaultServer(pem: made("server.pem"))
        for file in [made("other-ca.pem"), nil] {
            let outcome = try CurlTransport().send(server.url) { $0.settings.caFile = file }
            XCTAssertEqual(outcome.kind, .requestFailed)
            XCTAssertTrue(outcome.isUnreachable)
            XCTAssertTrue(outcome.cause.lowercased().contains("certificate"), outcome.cause)
        }
        XCTAssertEqual(server.requests.count, 0)
    }

    func testCertificateOfAnotherHostIsRefused() throws {
        let made = try authority()
        let server = try FaultServer(pem: made("elsewhere.pem"))
        let outcome = try CurlTransport().send(server.url) {
            $0.settings.caFile = made("ca.pem")
        }
        XCTAssertEqual(outcome.kind, .requestFailed)
        XCTAssertTrue(outcome.isUnreachable)
        XCTAssertTrue(outcome.cause.contains("127.0.0.1"), outcome.cause)
        XCTAssertEqual(server.requests.count, 0)
    }

    func testClientCertificate() throws {
        let made = try authority()
        let server = try FaultServer(pem: made("server.pem"), authority: made("ca.pem"))
        func send(_ change: (inout TransportSettings) -> Void) throws -> TransferOutcome {
            try CurlTransport().send(server.url) {
                $0.settings.caFile = made("ca.pem")
                change(&$0.settings)
            }
        }
        let none = try send { _ in }
        XCTAssertEqual(none.kind, .requestFailed, none.cause)
        XCTAssertEqual(server.requests.count, 0)
        let two = try send {
            $0.clientCertificateFile = made("client.pem")
            $0.clientKeyFile = made("client-key.pem")
        }
        XCTAssertEqual(two.httpStatus, 200, two.cause)
        let one = try send { $0.clientCertificateFile = made("client-both.pem") }
        XCTAssertEqual(one.httpStatus, 200, one.cause)
        let locked = try send {
            $0.clientCertificateFile = made("client.pem")
            $0.clientKeyFile = made("client-locked.pem")
            $0.clientKeyPassword = "key-password"
        }
        XCTAssertEqual(locked.httpStatus, 200, locked.cause)
        let wrong = try send {
            $0.clientCertificateFile = made("client.pem")
            $0.clientKeyFile = made("client-locked.pem")
            $0.clientKeyPassword = "wrong-password"
        }
        XCTAssertEqual(wrong.kind, .requestFailed)
        XCTAssertTrue(wrong.cause.contains("client_key_file"), wrong.cause)
        XCTAssertFalse(wrong.cause.contains("wrong-password"), wrong.cause)
        let other = try send {
            $0.clientCertificateFile = made("client.pem")
            $0.clientKeyFile = made("server-key.pem")
        }
        XCTAssertEqual(other.kind, .requestFailed, "the key of another certificate")
        XCTAssertEqual(server.requests.count, 3)
    }

    // ── Time ──

    private func time(_ body: () throws -> Void) rethrows -> UInt64 {
        let begin = UploadClock.system.monotonicMs()
        try body()
        return UploadClock.system.monotonicMs() - begin
    }

    func testConnectTimeout() throws {
        let silent = SilentPort()
        let spent = try time {
            let outcome = try CurlTransport().send("https://127.0.0.1:\(silent.port)") {
                $0.settings.connectTimeoutMs = 300
            }
            XCTAssertEqual(outcome.kind, .requestFailed)
            XCTAssertTrue(outcome.isUnreachable, outcome.cause)
            XCTAssertTrue(outcome.cause.contains("timeout"), outcome.cause)
            XCTAssertFalse(outcome.isStopped)
        }
        XCTAssertTrue((300..<9_000).contains(spent), "\(spent) ms")
    }

    func testTimeoutOfTheWhole() throws {
        let server = try FaultServer(#"[{"action":"hang"}]"#)
        let spent = try time {
            let outcome = try CurlTransport().send(server.url) {
                $0.settings.requestTimeoutMs = 400
            }
            XCTAssertEqual(outcome.kind, .requestFailed)
            XCTAssertFalse(outcome.isUnreachable)
            XCTAssertTrue(outcome.cause.contains("imed out"), outcome.cause)
        }
        XCTAssertTrue((390..<25_000).contains(spent), "\(spent) ms")
    }

    private func stalls(below bytesPerSecond: UInt32) throws {
        let server = try FaultServer(#"[{"action":"stall"}]"#)
        let file = SentFile(SentFile.noise(8 << 20))
        let spent = try time {
            let outcome = try CurlTransport().send(server.url, file) {
                $0.settings.stallBytesPerSecond = bytesPerSecond
                $0.settings.stallSeconds = 1
            }
            XCTAssertEqual(outcome.kind, .requestFailed)
            XCTAssertTrue(outcome.cause.contains("slow"), outcome.cause)
            XCTAssertLessThan(outcome.bytesSent, UInt64(file.bytes.count))
        }
        XCTAssertTrue((1_000..<25_000).contains(spent), "\(spent) ms")
    }

    /// libcurl takes the mean speed of the last five seconds. A limit above what the sockets take
    /// at the start makes the stall count from there, not five seconds later.
    func testStalledBody() throws {
        XCTAssertEqual(TransportSettings().stallBytesPerSecond, 1)
        try stalls(below: 1 << 30)
    }

    /// By default only a body that stands still is below the limit.
    func testStalledBodyByDefault() throws {
        try full()
        try stalls(below: TransportSettings().stallBytesPerSecond)
    }

    func testStopBreaksOffWithinATick() throws {
        let server = try FaultServer(#"[{"action":"hang"}]"#)
        var asked = 0
        let spent = try time {
            let outcome = try CurlTransport().send(
                server.url,
                ticks: Ticks {
                    asked += 1
                    return asked > 3 ? .stop : .go
                })
            XCTAssertTrue(outcome.isStopped)
        }
        XCTAssertLessThan(spent, 25_000)
    }

    // ── What is sent and taken ──

    func testRequestIsSentAsItIs() throws {
        let server = try FaultServer()
        let outcome = try CurlTransport().send(
            server.url + "/a%20b?c=d", method: "PUT",
            headers: "X-Empty:\nX-Colon: a: b")
        XCTAssertEqual(outcome.httpStatus, 200)
        let request = try XCTUnwrap(server.requests.first)
        XCTAssertEqual(request.method, "PUT")
        XCTAssertEqual(request.path, "/a%20b?c=d")
        XCTAssertEqual(request.headers["content-length"], "7")
        XCTAssertEqual(request.headers["x-empty"], "")
        XCTAssertEqual(request.headers["x-colon"], "a: b")
        XCTAssertNil(request.headers["expect"])
        XCTAssertNil(request.headers["accept"])
        XCTAssertNil(request.headers["transfer-encoding"])
    }

    func testValuesBeyondASCIIAreSentByteForByte() throws {
        let server = try FaultServer()
        _ = try CurlTransport().send(server.url, headers: "X-Colour: grün")
        // The server reads headers as Latin-1.
        let value = try XCTUnwrap(server.requests.first?.headers["x-colour"])
        XCTAssertEqual(value.unicodeScalars.map { UInt8($0.value) }, Array("grün".utf8))
    }

    func testAnswerOfAGigabyteIsCut() throws {
        try full()
        let server = try FaultServer(#"[{"body_bytes":1073741824}]"#)
        let outcome = try CurlTransport().send(server.url)
        XCTAssertEqual(outcome.kind, .success)
        XCTAssertTrue(outcome.isBodyCut)
        XCTAssertEqual(outcome.body.count, 4 << 20)
    }

    func testRefusalWhoseBodyIsCutIsAnAnswer() throws {
        let server = try FaultServer(
            """
            [{"action":"half","status":503,"headers":{"Retry-After":"7"}},
             {"action":"half","status":401}, {"action":"half","status":413}, {"action":"half"}]
            """)
        let busy = try CurlTransport().send(server.url)
        XCTAssertEqual(busy.httpStatus, 503, busy.cause)
        XCTAssertEqual(busy.kind, .server)
        XCTAssertEqual(busy.header("retry-after"), "7")
        XCTAssertTrue(busy.isBodyCut)
        XCTAssertEqual(try CurlTransport().send(server.url).httpStatus, 401)
        XCTAssertEqual(try CurlTransport().send(server.url).httpStatus, 413)
        XCTAssertEqual(try CurlTransport().send(server.url).kind, .requestFailed, "a cut 2xx")
    }

    func testAnswerWhoseHeadIsBrokenIsNone() throws {
        let broken = [
            "HTTP/1.1 200 OK", "HTTP/1.1 200 OK\\r\\n", "HTTP/1.1 200 OK\\r\\nContent-Le",
            "HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n",
            "HTTP/1.1 100 Continue\\r\\n\\r\\nHTTP/1.1 200 OK\\r\\nDate: x",
            "HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\nContent-Length: 3\\r\\n\\r\\nok!",
        ]
        let whole = [
            "HTTP/1.1 200 OK\\r\\n\\r\\n", "HTTP/1.1 200 OK\\nContent-Length: 2\\n\\nok",
            "HTTP/1.1 100 Continue\\r\\n\\r\\nHTTP/1.1 200 OK\\r\\n\\r\\nok",
            "HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\nContent-Length: 2\\r\\n\\r\\nok",
        ]
        let answers = (broken + whole).map { "{\"action\":\"raw\",\"text\":\"\($0)\"}" }
        let server = try FaultServer("[\(answers.joined(separator: ","))]")
        for text in broken + whole {
            let outcome = try CurlTransport().send(server.url)
            XCTAssertEqual(
                outcome.kind, whole.contains(text) ? .success : .requestFailed, text)
            XCTAssertNotEqual(outcome.cause, "No error", text)
        }
    }

    func testWhatWeBrokeOffIsNoAnswer() {
        let exchange = CurlExchange(
            TransferRequest(
                method: "POST", url: "http://h", headers: [], body: nil,
                settings: TransportSettings()), easy: nil, tick: { .stop })
        let outcome = exchange.outcome(
            CurlFacts(
                code: CURLE_ABORTED_BY_CALLBACK, detail: "", status: 503, connectStatus: 0,
                isBegun: true))
        XCTAssertEqual(outcome.kind, .requestFailed)
        XCTAssertTrue(outcome.isStopped)
    }

    func testProxyOfTheEnvironmentKeepsItsPassword() throws {
        let server = try FaultServer()
        defer { unsetenv("http_proxy") }
        for proxy in [
            "http://user:s3cret@[bad", "gopher://user:s3cret@127.0.0.1:9", "s3cret://127.0.0.1:9",
            "http://user:s3cret@127.0.0.1:none", "http://user:s3cret@ bad",
        ] {
            setenv("http_proxy", proxy, 1)
            let outcome = try CurlTransport().send(server.url)
            XCTAssertEqual(outcome.kind, .requestFailed, proxy)
            XCTAssertFalse(outcome.cause.contains("s3cret"), outcome.cause)
            XCTAssertFalse(outcome.cause.isEmpty, proxy)
        }
    }

    // ── The end of a session ──

    func testSIGPIPEOfAClosingSessionStaysHere() throws {
        let server = try FaultServer()
        XCTAssertEqual(cwi_curl_load(), 0)
        var session = cwi_curl_session()
        XCTAssertEqual(cwi_curl_session_open(&session), 0)
        let easy = session.easy
        // libcurl closes its sockets through this, at the latest with the session.
        let close: @convention(c) (UnsafeMutableRawPointer?, Int32) -> Int32 = { _, descriptor in
            var blocked = sigset_t()
            pthread_sigmask(SIG_BLOCK, nil, &blocked)
            let isHeld = sigismember(&blocked, SIGPIPE) == 1
            closings.add(isHeld ? "held" : "open")
            if isHeld { pthread_kill(pthread_self(), SIGPIPE) }
            return Glibc.close(descriptor)
        }
        XCTAssertEqual(
            cwi_curl_set_text(
                easy, CURLOPT_CLOSESOCKETFUNCTION,
                unsafeBitCast(close, to: UnsafePointer<CChar>.self)),
            CURLE_OK)
        cwi_curl_set_text(easy, CURLOPT_URL, server.url)
        cwi_curl_set_text(easy, CURLOPT_PROXY, "")
        XCTAssertEqual(
            cwi_curl_set_callbacks(
                easy, { _, _, _, _ in 0 }, { _, _, _ in CURL_SEEKFUNC_OK },
                { _, size, count, _ in size * count }, { _, size, count, _ in size * count }, nil),
            CURLE_OK)
        XCTAssertEqual(cwi_curl_run(&session, { _ in true }, nil), CURLE_OK)
        let before = closings.all.count
        cwi_curl_session_close(&session)
        XCTAssertEqual(closings.all.dropFirst(before), ["held"])
        var pending = sigset_t()
        sigpending(&pending)
        XCTAssertEqual(sigismember(&pending, SIGPIPE), 0, "it was taken off")
    }

    func testOneTransportSendsToManyWithItsConnectionsKept() throws {
        let transport = try CurlTransport()
        let server = try FaultServer(#"[{"status":401},{"status":503}]"#)
        XCTAssertEqual(try transport.send(server.url).httpStatus, 401)
        XCTAssertEqual(try transport.send(server.url).httpStatus, 503)
        XCTAssertEqual(try transport.send(server.url).httpStatus, 200)
        XCTAssertEqual(server.connections, 1)
    }

    func testProxyOfTheEnvironmentIsNotUsedWhereItIsEmpty() throws {
        let server = try FaultServer()
        setenv("http_proxy", "http://127.0.0.1:9", 1)
        defer { unsetenv("http_proxy") }
        let through = try CurlTransport().send(server.url)
        XCTAssertEqual(through.kind, .requestFailed)
        let direct = try CurlTransport().send(server.url) { $0.settings.proxy = "" }
        XCTAssertEqual(direct.httpStatus, 200, direct.cause)
        // A named proxy is used, whatever no_proxy says.
        setenv("no_proxy", "127.0.0.1", 1)
        defer { unsetenv("no_proxy") }
        let named = try CurlTransport().send(server.url) {
            $0.settings.proxy = "http://127.0.0.1:9"
        }
        XCTAssertEqual(named.kind, .requestFailed)
        XCTAssertTrue(named.isUnreachable)
    }

    func testRefusalOfAProxyIsNotTheServers() throws {
        // A server that answers 407 stands in for a proxy of plain HTTP.
        let proxy = try FaultServer(#"[{"status":407}]"#)
        let outcome = try CurlTransport().send("http://logs.example/x") {
            $0.settings.proxy = "http://127.0.0.1:\(proxy.port)"
            $0.settings.proxyAuthentication = "somebody:proxy-secret"
        }
        XCTAssertEqual(outcome.kind, .requestFailed)
        XCTAssertEqual(outcome.httpStatus, 0)
        XCTAssertTrue(outcome.isUnreachable)
        XCTAssertFalse(outcome.cause.contains("proxy-secret"))
        let seen = try XCTUnwrap(proxy.requests.first?.headers["proxy-authorization"])
        XCTAssertEqual(seen, "Basic " + Data("somebody:proxy-secret".utf8).base64EncodedString())
    }

    func testHTTP2WithoutTLSIsAskedFor() throws {
        // The server speaks 1.1 only: what matters is that no 1.1 request was sent.
        let server = try FaultServer()
        let outcome = try CurlTransport().send(server.url) {
            $0.settings.httpVersion = .http2
            $0.settings.requestTimeoutMs = 1_000
        }
        XCTAssertNotEqual(outcome.httpStatus, 200)
    }

    func testThisLibcurlHasWhatTheSettingsNeed() throws {
        var settings = TransportSettings()
        settings.httpVersion = .http2
        settings.proxy = "socks5h://127.0.0.1:1"
        settings.proxyAuthentication = "a:b"
        XCTAssertNoThrow(try CurlTransport.check(settings, isTLS: true))
        XCTAssertNoThrow(try CurlTransport.check(settings, isTLS: false))
    }
}
