// Captured URLSession requests: every kind of task is recorded exactly once and ends for the host
// as without capture. Against Tests/TestSupport/http_peer.py in its own process.

import Cordwood
import CordwoodHTTPCapture
import CordwoodTestSupport
import Foundation
import XCTest

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

final class HTTPCaptureTests: CaptureCase {
    private static let big = 20 << 20

    func testTasksWithACompletionHandler() async throws {
        let paths = [
            "/json", "/odata", "/gzip", "/chunked", "/empty", "/download?bytes=3000000", "/hang",
            "/close",
        ]
        let plain = URLSession(configuration: configuration())
        for path in paths {
            let mine = configuration(timeoutS: path == "/hang" ? 1 : 60)
            let captured = URLSession(configuration: HTTPCapture.install(engine, in: mine))
            let alone = await get(URLSession(configuration: mine), url(path))
            let seen = await get(captured, url(path))
            XCTAssertEqual(seen, alone, path)
        }
        let found = try await exchanges()
        XCTAssertEqual(found.map { $0["url.full"] ?? "" }, paths.map { base + $0 })
        XCTAssertEqual(
            found.map { $0["http.response.status_code"] },
            ["200", "403", "200", "200", "204", "200", nil, nil])
        XCTAssertEqual(found[1]["odata.code"], "SY/530")
        XCTAssertEqual(found[3]["http.response.body"], found[0]["http.response.body"])
        let unpacked = await get(plain, url("/gzip")).body ?? Data()
        XCTAssertEqual(found[2]["http.response.body"], String(decoding: unpacked, as: UTF8.self))
        XCTAssertGreaterThan(unpacked.count, 3_000)
        XCTAssertEqual(found[5]["http.response.body.size"], "3000000")
        XCTAssertEqual(found[6]["error.type"], "timeout")
        XCTAssertNotNil(found[7]["error.type"])
    }

    func testTLSThatFails() async throws {
        let pem = store + ".pem"
        let make = Process()
        make.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        make.arguments =
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj"]
            + ["/CN=localhost", "-keyout", pem, "-out", pem + ".crt"]
        make.standardError = FileHandle.nullDevice
        try make.run()
        make.waitUntilExit()
        XCTAssertEqual(make.terminationStatus, 0)
        let both = try Data(contentsOf: URL(fileURLWithPath: pem))
        try (both + Data(contentsOf: URL(fileURLWithPath: pem + ".crt")))
            .write(to: URL(fileURLWithPath: pem))
        defer { for end in ["", ".crt"] { unlink(pem + end) } }
        let peer = try Peer(certificate: pem)
        let untrusted = URL(string: peer.url + "/json")!
        let plain = URLSession(configuration: configuration())
        let captured = URLSession(
            configuration: HTTPCapture.install(engine, in: configuration()))
        let alone = await get(plain, untrusted)
        let seen = await get(captured, untrusted)
        XCTAssertEqual(seen, alone)
        XCTAssertNotNil(alone.error)
        let found = try await exchanges()
        XCTAssertEqual(found.map { $0["url.full"] }, [untrusted.absoluteString])
        XCTAssertNil(found.first?["http.response.status_code"])
        // Foundation on Linux has no error code for this one, only libcurl's words.
        XCTAssertEqual(found.first?["error.type"], "tls")
        let told = found.first?["error.message"] ?? ""
        XCTAssertTrue(told.contains("certificate"), told)
    }

    func testRedirections() async throws {
        for session in [
            HTTPCapture.session(engine, configuration: configuration()),
            HTTPCapture.session(engine, configuration: configuration(), delegate: Listener()),
        ] {
            let answer = await get(session, url("/redirect?to=/json"))
            XCTAssertEqual(answer.status, 200)
        }
        let found = try await exchanges()
        XCTAssertEqual(
            found.map { $0["http.response.status_code"] }, ["302", "200", "302", "200"])
        XCTAssertEqual(found[1]["http.redirected_from"], found[0]["http.id"])
        XCTAssertEqual(found[3]["http.redirected_from"], found[2]["http.id"])
    }

    func testADelegateThatRefusesARedirection() async throws {
        let listener = Listener()
        listener.follows = false
        let session = HTTPCapture.session(
            engine, configuration: configuration(), delegate: listener)
        session.dataTask(with: url("/redirect")).resume()
        await fulfillment(of: [listener.ended], timeout: 30)
        XCTAssertEqual(listener.status, 302)
        let found = try await exchanges()
        XCTAssertEqual(found.map { $0["http.response.status_code"] }, ["302"])
    }

    func testADelegateGetsDataAsItComes() async throws {
        let listener = Listener()
        let session = HTTPCapture.session(
            engine, configuration: configuration(), delegate: listener)
        session.dataTask(with: url("/download?bytes=\(HTTPCaptureTests.big)")).resume()
        await fulfillment(of: [listener.ended], timeout: 30)
        XCTAssertEqual(listener.received, HTTPCaptureTests.big)
        XCTAssertGreaterThan(listener.pieces, 100)
        let found = try await exchanges()
        XCTAssertEqual(found.count, 1)
        XCTAssertEqual(found[0]["http.response.body.size"], "\(HTTPCaptureTests.big)")
        XCTAssertEqual(found[0]["http.response.body"]?.utf8.count, 64 << 10)
    }

    /// Installed in the configuration alone: sizes and errors are known, the bytes are not shown.
    func testADelegateThatIsNotOurs() async throws {
        let listener = Listener()
        let session = URLSession(
            configuration: HTTPCapture.install(engine, in: configuration()), delegate: listener,
            delegateQueue: nil)
        session.dataTask(with: url("/download?bytes=100000")).resume()
        await fulfillment(of: [listener.ended], timeout: 30)
        XCTAssertEqual(listener.received, 100_000)
        let found = try await exchanges()
        XCTAssertEqual(found.map { $0["http.response.body.size"] }, ["100000"])
        XCTAssertEqual(found[0]["http.response.body.note"]?.contains("not shown"), true)
    }

    func testUploads() async throws {
        let session = URLSession(
            configuration: HTTPCapture.install(engine, in: configuration()))
        var request = URLRequest(url: url("/upload"))
        request.httpMethod = "POST"
        request.timeoutInterval = 30
        let data = Data(repeating: UInt8(ascii: "u"), count: HTTPCaptureTests.big)
        let file = URL(fileURLWithPath: store + "/body")
        try data.write(to: file)
        let bodies = [
            try await session.upload(for: request, from: data).0,
            try await session.upload(for: request, fromFile: file).0,
            try await {
                request.httpBody = data
                return try await session.data(for: request).0
            }(),
        ]
        for body in bodies {
            let seen = try JSONSerialization.jsonObject(with: body) as? [String: Any]
            XCTAssertEqual(seen?["bytes"] as? Int, HTTPCaptureTests.big)
        }
        let found = try await exchanges()
        XCTAssertEqual(found.count, 3)
        for one in found {
            XCTAssertEqual(one["http.request.body.size"], "\(HTTPCaptureTests.big)")
            XCTAssertEqual(one["http.request.body"]?.utf8.count, 64 << 10)
        }
    }

    func testDownloads() async throws {
        let listener = Listener()
        let watched = HTTPCapture.session(
            engine, configuration: configuration(), delegate: listener)
        watched.downloadTask(with: url("/download?bytes=200000")).resume()
        await fulfillment(of: [listener.ended], timeout: 30)
        XCTAssertEqual(listener.fileBytes, 200_000)
        let plain = URLSession(
            configuration: HTTPCapture.install(engine, in: configuration()))
        let (file, _) = try await plain.download(from: url("/download?bytes=300000"))
        XCTAssertEqual(try Data(contentsOf: file).count, 300_000)
        let found = try await exchanges()
        XCTAssertEqual(found.map { $0["http.response.body.size"] }, ["200000", "300000"])
    }

    func testCancelled() async throws {
        let listener = Listener()
        let session = HTTPCapture.session(
            engine, configuration: configuration(), delegate: listener)
        let task = session.dataTask(with: url("/drip?seconds=20"))
        listener.onData = { task.cancel() }
        task.resume()
        await fulfillment(of: [listener.ended], timeout: 30)
        XCTAssertEqual((listener.error as? URLError)?.code, .cancelled)
        let found = try await exchanges()
        XCTAssertEqual(found.count, 1)
        XCTAssertEqual(found[0]["http.cancelled"], "true")
        XCTAssertEqual(found[0]["http.response.status_code"], "200")
    }

    func testOffCapturesNothing() async throws {
        let session = URLSession(
            configuration: HTTPCapture.install(engine, in: configuration()))
        try engine.setHTTPCapture(HTTPCaptureOptions())
        let answer = await get(session, url("/json"))
        XCTAssertEqual(answer.status, 200)
        let found = try await exchanges()
        XCTAssertEqual(found.count, 0)
    }

    func testEachEngineGetsItsOwn() async throws {
        let other = StorePlace.path("http")
        let second = try Engine(directory: other)
        defer {
            _ = try? second.close()
            try? FileManager.default.removeItem(atPath: other)
        }
        var options = HTTPCaptureOptions()
        options.isEnabled = true
        try second.setHTTPCapture(options)
        let once = HTTPCapture.install(engine, in: configuration())
        let again = HTTPCapture.install(engine, in: once)
        XCTAssertEqual(once.protocolClasses?.count, again.protocolClasses?.count)
        _ = await get(URLSession(configuration: again), url("/json?first"))
        let moved = HTTPCapture.install(second, in: again)
        _ = await get(URLSession(configuration: moved), url("/json?second"))
        let found = try await exchanges()
        XCTAssertEqual(found.map { $0["url.full"] }, [base + "/json?first"])
    }
}
