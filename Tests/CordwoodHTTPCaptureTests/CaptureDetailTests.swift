// What the record of a captured URLSession request contains beside method, status and bodies: the
// caller's ids, phases, error messages, streams, cancelled tasks; and what never gets in.

import Cordwood
import CordwoodHTTPCapture
import CordwoodTestSupport
import Foundation
import XCTest

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

final class CaptureDetailTests: CaptureCase {
    /// The store's exchanges that have ended, as `cordwood http` reads them.
    private func captured() throws -> [CapturedExchange] {
        let reader = try ExchangeReader(path: store)
        var found: [CapturedExchange] = []
        while let next = try reader.advance() { found.append(next) }
        return found.filter { !$0.isOpen }
    }

    private func one(_ path: String) throws -> CapturedExchange {
        try XCTUnwrap(captured().first { $0.url == base + path }, "\(path) is not in the store")
    }

    private func text(_ message: CapturedExchange.Message) -> String {
        String(decoding: message.body ?? [], as: UTF8.self)
    }

    private var installed: URLSession {
        URLSession(configuration: HTTPCapture.install(engine, in: configuration()))
    }

    private var uncached: URLSession {
        let without = configuration()
        without.urlCache = nil
        return URLSession(configuration: HTTPCapture.install(engine, in: without))
    }

    // MARK: Ids

    func testIdsOfTheCallerFollowIntoEveryKindOfTask() async throws {
        let listener = Listener()
        let watched = HTTPCapture.session(
            engine, configuration: configuration(), delegate: listener)
        let (installed, uncached) = (self.installed, self.uncached)
        let upload = { (path: String) -> URLRequest in
            var request = URLRequest(url: self.url(path))
            request.httpMethod = "POST"
            return request
        }
        let file = URL(fileURLWithPath: store + "/body")
        try Data("file".utf8).write(to: file)
        let id = try await engine.transaction(17) { checkout -> String in
            _ = try await installed.data(from: url("/json?async"))
            _ = try await uncached.data(from: url("/json?uncached"))
            _ = try await installed.upload(for: upload("/upload?data"), from: Data([1]))
            _ = try await installed.upload(for: upload("/upload?file"), fromFile: file)
            _ = try await installed.download(from: url("/download?bytes=9"))
            _ = await get(installed, url("/json?handler"))
            _ = try await watched.data(from: url("/redirect?to=/json%3Fhop"))
            watched.dataTask(with: url("/json?delegate")).resume()
            return checkout.id
        }
        await fulfillment(of: [listener.ended], timeout: 30)
        _ = try await installed.data(from: url("/json?outside"))
        let found = try captured()
        XCTAssertEqual(found.count, 10)
        let trace = String(id.suffix(36).lowercased().filter { $0 != "-" })
        for one in found where !one.url.hasSuffix("outside") {
            XCTAssertEqual(one.transaction, id, one.url)
            XCTAssertEqual(one.traceID, trace, one.url)
        }
        let outside = try one("/json?outside")
        XCTAssertEqual(outside.transaction, "")
        XCTAssertNil(outside.traceID)
    }

    /// Many at once, on URLSession's queues, each with its own ids and fields.
    func testConcurrentTasksKeepTheirOwnIds() async throws {
        let (session, base) = (installed, self.base)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<60 {
                let address = try XCTUnwrap(URL(string: "\(base)/json?n=\(number)"))
                group.addTask {
                    try await Context.with(["shop": number]) {
                        try await Context.withConversation("talk-\(number)") { _ in
                            _ = try await session.data(from: address)
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        let found = try await exchanges()
        XCTAssertEqual(found.count, 60)
        for one in found {
            let number = one["url.full"]?.split(separator: "=").last.map(String.init)
            XCTAssertEqual(one["shop"], number)
            XCTAssertEqual(one["http.conversation"], "talk-\(number ?? "")")
        }
    }

    func testPropagatedHeaders() async throws {
        let session = installed
        try await engine.transaction(17) { checkout in
            try await Context.withConversation { conversation in
                var request = URLRequest(url: url("/headers"))
                request.setValue("mine", forHTTPHeaderField: "X-Transaction-Id")
                let kept = HTTPCapture.propagated(request)
                XCTAssertEqual(kept.value(forHTTPHeaderField: "X-Transaction-Id"), "mine")
                request.setValue(nil, forHTTPHeaderField: "X-Transaction-Id")
                let sent = HTTPCapture.propagated(request)
                let (body, _) = try await session.data(for: sent)
                let seen = try JSONSerialization.jsonObject(with: body) as? [String: String]
                let told = Dictionary(
                    (seen ?? [:]).map { ($0.key.lowercased(), $0.value) },
                    uniquingKeysWith: { $1 })
                XCTAssertEqual(told["x-transaction-id"], checkout.id)
                XCTAssertEqual(told["traceparent"], checkout.traceparent)
                XCTAssertEqual(told["x-conversation-id"], conversation)
            }
        }
        let alone = HTTPCapture.propagated(URLRequest(url: url("/headers")))
        XCTAssertEqual(alone.allHTTPHeaderFields ?? [:], [:])
    }

    /// The host's cache is read, filled and emptied as without capture.
    func testTheHostsCacheIsUsed() async throws {
        let mine = configuration()
        let cache = try XCTUnwrap(mine.urlCache)
        let copy = HTTPCapture.install(engine, in: mine)
        let response = CachedURLResponse(
            response: URLResponse(
                url: url("/json"), mimeType: nil, expectedContentLength: 4, textEncodingName: nil),
            data: Data("kept".utf8))
        let request = URLRequest(url: url("/json"))
        copy.urlCache?.storeCachedResponse(response, for: request)
        XCTAssertEqual(cache.cachedResponse(for: request)?.data, Data("kept".utf8))
        copy.urlCache?.memoryCapacity = 12_345_678
        XCTAssertEqual(cache.memoryCapacity, 12_345_678)
        copy.urlCache?.removeAllCachedResponses()
        XCTAssertNil(cache.cachedResponse(for: request))
    }

    // MARK: Phases, errors, cancelling

    /// The receive phase is recorded if Foundation says when the header came, and only then.
    func testThePhaseOfReceiving() async throws {
        let listener = Listener()
        let watched = HTTPCapture.session(
            engine, configuration: configuration(), delegate: listener)
        // The header may be seen late on a busy machine, which shortens the rest by as much.
        watched.dataTask(with: url("/trickle?seconds=2")).resume()
        await fulfillment(of: [listener.ended], timeout: 60)
        let seen = try one("/trickle?seconds=2")
        XCTAssertGreaterThan(try XCTUnwrap(seen.phases.receive), 300_000_000)
        XCTAssertLessThanOrEqual(try XCTUnwrap(seen.phases.receive), seen.duration ?? 0)
        _ = try await installed.data(from: url("/trickle?seconds=0.3"))
        let whole = try one("/trickle?seconds=0.3")
        XCTAssertNil(whole.phases.receive)
        XCTAssertGreaterThan(try XCTUnwrap(whole.duration), 250_000_000)
    }

    func testErrorsByTheirWords() async throws {
        let session = installed
        for address in ["http://127.0.0.1:1/", "http://no-such-host.invalid/", base + "/short"] {
            _ = await get(session, URL(string: address)!)
        }
        let found = try captured()
        XCTAssertEqual(found.map(\.errorType), ["connect", "dns", "response"])
        XCTAssertTrue(found[0].errorMessage.contains("127.0.0.1 port 1"), found[0].errorMessage)
        XCTAssertTrue(found[1].errorMessage.contains("no-such-host"), found[1].errorMessage)
        XCTAssertTrue(found[2].errorMessage.contains("900 bytes"), found[2].errorMessage)
        XCTAssertTrue(found.allSatisfy { !$0.isCancelled && $0.isFailed })
    }

    /// Foundation does not say how much a task has received. The server says how much it sent: ten
    /// drops take half a second, while this keeps asking by the same means.
    private func inTheMidst(_ path: String) async throws {
        let plain = URLSession(configuration: configuration())
        var asks = URLComponents(string: base + "/begun")!
        asks.queryItems = [URLQueryItem(name: "of", value: path)]
        asks.percentEncodedQuery = asks.percentEncodedQuery?
            .replacingOccurrences(of: "&", with: "%26")
        let address = try XCTUnwrap(asks.url)
        try await eventually("an answer begins") {
            let (body, _) = try await plain.data(from: address)
            return (Int(String(decoding: body, as: UTF8.self)) ?? 0) >= 10
        }
    }

    /// A task's end may be recorded after its caller goes on.
    private func ended(_ path: String) async throws -> CapturedExchange {
        try await eventually("\(path) ends") { try captured().contains { $0.url == base + path } }
        return try one(path)
    }

    /// A Swift task that is cancelled in the middle of an answer: the record has what came.
    func testASwiftTaskThatIsCancelled() async throws {
        for (name, session) in [
            ("installed", installed),
            ("session", HTTPCapture.session(engine, configuration: configuration())),
        ] {
            let path = "/drip?seconds=60&\(name)"
            let address = url(path)
            let task = Task { try await session.data(from: address) }
            try await inTheMidst(path)
            task.cancel()
            let result = await task.result
            XCTAssertThrowsError(try result.get())
            let seen = try await ended(path)
            XCTAssertTrue(seen.isCancelled, name)
            XCTAssertEqual(seen.errorType, "cancelled", name)
            XCTAssertEqual(seen.status, 200, name)
            XCTAssertTrue(text(seen.response).hasPrefix("drop drop "), name)
            XCTAssertEqual(seen.response.bodyBytes, UInt64(seen.response.body?.count ?? 0), name)
        }
    }

    func testADownloadThatIsCancelled() async throws {
        let path = "/drip?seconds=60&download"
        let (session, address) = (installed, url(path))
        let task = Task { try await session.download(from: address) }
        try await inTheMidst(path)
        task.cancel()
        _ = await task.result
        let seen = try await ended(path)
        XCTAssertTrue(seen.isCancelled)
        XCTAssertEqual(seen.status, 200)
        XCTAssertGreaterThan(seen.response.bodyBytes ?? 0, 0)
    }

    /// Without a session delegate, Foundation follows a redirection silently: one exchange, which
    /// says where it ended. A secret in that address is redacted, too.
    func testARedirectionThatNobodyTells() async throws {
        let start = "/redirect?to=/json%3Ftoken%3DZQSECRET-final%26x%3D1"
        _ = try await installed.data(from: url(start))
        _ = await get(installed, url("/redirect?to=http://127.0.0.1:1/gone"))
        let found = try captured()
        XCTAssertEqual(found.count, 2)
        XCTAssertEqual(found[0].status, 200)
        let final = found[0].response.headers.first { $0.name == "Cordwood-Final-Url" }
        XCTAssertEqual(final?.value, base + "/json?token=[redacted]&x=1")
        XCTAssertEqual(found[1].errorType, "connect")
        XCTAssertTrue(
            found[1].errorMessage.hasSuffix("(at http://127.0.0.1:1/gone)"),
            found[1].errorMessage)
    }

    // MARK: Streams

    private let story = #"{"user":"joe","password":"ZQSECRET-stream","tale":"once"}"#

    private func streamed(_ path: String, _ stream: InputStream?) -> URLRequest {
        var request = URLRequest(url: url(path))
        request.httpMethod = "POST"
        request.httpBodyStream = stream
        return request
    }

    func testAStreamThatIsWatched() async throws {
        let stream = HTTPCapture.body(InputStream(data: Data(story.utf8)))
        let (body, _) = try await installed.data(for: streamed("/upload?tapped", stream))
        let seen = try JSONSerialization.jsonObject(with: body) as? [String: Any]
        XCTAssertEqual(seen?["bytes"] as? Int, story.utf8.count)
        let record = try one("/upload?tapped")
        XCTAssertEqual(record.request.bodyBytes, UInt64(story.utf8.count))
        XCTAssertEqual(
            text(record.request), #"{"user":"joe","password":"[redacted]","tale":"once"}"#)
    }

    func testAStreamOfTheDelegate() async throws {
        let listener = Listener()
        listener.stream = { InputStream(data: Data(count: 5 << 20)) }
        let session = HTTPCapture.session(
            engine, configuration: configuration(), delegate: listener)
        session.uploadTask(withStreamedRequest: streamed("/upload?new", nil)).resume()
        await fulfillment(of: [listener.ended], timeout: 30)
        XCTAssertEqual(listener.status, 200)
        let record = try one("/upload?new")
        XCTAssertEqual(record.request.bodyBytes, 5 << 20)
        XCTAssertEqual(record.request.body?.count, 64 << 10)
    }

    func testAStreamThatShowsNothingIsCounted() async throws {
        let listener = Listener()
        let session = HTTPCapture.session(
            engine, configuration: configuration(), delegate: listener)
        let stream = InputStream(data: Data(count: 300_000))
        session.dataTask(with: streamed("/upload?plain", stream)).resume()
        await fulfillment(of: [listener.ended], timeout: 30)
        let record = try one("/upload?plain")
        XCTAssertEqual(record.request.bodyBytes, 300_000)
        XCTAssertEqual(record.request.bodyNote, "not shown")
    }

    // MARK: What is odd, secret or large

    func testInvalidUTF8AndALargeHeader() async throws {
        let session = installed
        let plain = URLSession(configuration: configuration())
        let bad = await get(session, url("/badutf"))
        let seen = try one("/badutf")
        XCTAssertEqual(seen.response.body, bad.body.map { [UInt8]($0) })
        XCTAssertEqual(seen.response.body?.contains(0xff), true)
        // As without capture, whatever Foundation makes of it.
        let alone = await get(plain, url("/bigheader?bytes=1000000"))
        let large = await get(session, url("/bigheader?bytes=1000000"))
        XCTAssertEqual(large, alone)
        let record = try one("/bigheader?bytes=1000000")
        XCTAssertEqual(record.status.map(Int.init), large.status)
        XCTAssertEqual(record.errorMessage.isEmpty, large.error == nil)
        let bytes = record.response.headers.reduce(0) { $0 + $1.valueBytes.count }
        XCTAssertLessThanOrEqual(bytes, 64 << 10)
        // A request with a large header begins, ends and is cut.
        var request = URLRequest(url: url("/json?asked"))
        request.setValue(String(repeating: "h", count: 1_000_000), forHTTPHeaderField: "X-Big")
        _ = try? await session.data(for: request)
        let sent = try one("/json?asked").request.headers.reduce(0) { $0 + $1.valueBytes.count }
        XCTAssertTrue((1...(64 << 10)).contains(sent), "\(sent)")
    }

    /// Secrets in every place of a request and its answer: no file of the store contains one.
    func testNoSecretGetsIntoTheStore() async throws {
        let word = "ZQSECRET"
        for session in [installed, HTTPCapture.session(engine, configuration: configuration())] {
            let host = base.replacingOccurrences(of: "://", with: "://joe:\(word)@")
            var request = URLRequest(url: URL(string: "\(host)/secrets?token=\(word)")!)
            request.setValue("Bearer \(word)", forHTTPHeaderField: "Authorization")
            request.setValue("sid=\(word)", forHTTPHeaderField: "Cookie")
            request.setValue(word, forHTTPHeaderField: "X-Api-Key")
            _ = try await session.data(for: request)
            request.url = url("/upload?access_token=\(word)")
            request.httpMethod = "POST"
            for body in [
                #"{"a":{"pass\u0077ord":"\#(word)"}}"#, "user=x&password=\(word)",
                "<login><password>\(word)</password></login>",
            ] {
                request.httpBody = Data(body.utf8)
                _ = try await session.data(for: request)
                _ = try await session.upload(for: request, from: Data(body.utf8))
            }
            request.httpBody = nil
            request.httpBodyStream = HTTPCapture.body(InputStream(data: Data(story.utf8)))
            _ = try await session.data(for: request)
            _ = await get(session, URL(string: "http://127.0.0.1:1/?token=\(word)")!)
        }
        XCTAssertGreaterThan(try captured().count, 10)
        try engine.roll()
        try engine.archiveWait()
        let files = FileManager.default.enumerator(atPath: store)
        var looked = 0
        while let name = files?.nextObject() as? String {
            guard let data = FileManager.default.contents(atPath: store + "/" + name) else {
                continue
            }
            looked += 1
            XCTAssertNil(data.range(of: Data(word.utf8)), name)
        }
        XCTAssertGreaterThan(looked, 0)
    }

    /// 256 MiB through a delegate: the process grows by far less than that.
    func testALargeDownloadIsNotHeld() async throws {
        try full()
        let size = 256 << 20
        let mine = configuration()
        mine.timeoutIntervalForRequest = 120
        let listener = Listener()
        let session = HTTPCapture.session(engine, configuration: mine, delegate: listener)
        // The first request fills what the session and the store keep anyway.
        _ = try await session.data(from: url("/json"))
        let before = CaptureDetailTests.peakBytes()
        session.dataTask(with: url("/download?bytes=\(size)")).resume()
        await fulfillment(of: [listener.ended], timeout: 240)
        XCTAssertEqual(listener.received, size)
        XCTAssertEqual(
            try one("/download?bytes=\(size)").response.bodyBytes, UInt64(size))
        let grown = CaptureDetailTests.peakBytes() - before
        XCTAssertLessThan(grown, size / 2, "grew by \(grown >> 20) MiB")
    }

    private static func peakBytes() -> Int {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM") }
        return (line?.split(separator: " ").dropLast().last.flatMap { Int($0) } ?? 0) << 10
    }

    // MARK: Beside it

    /// A store that cannot be opened is reported once, and requests go on.
    func testAStoreThatCannotBeOpened() async throws {
        let file = store + "/file"
        try Data("x".utf8).write(to: URL(fileURLWithPath: file))
        var told = 0
        let none = HTTPCapture.engine(report: { _ in told += 1 }) {
            try Engine(directory: file + "/store")
        }
        XCTAssertNil(none)
        let mine = configuration()
        XCTAssertTrue(HTTPCapture.install(none, in: mine) === mine)
        let listener = Listener()
        let session = HTTPCapture.session(none, configuration: mine, delegate: listener)
        XCTAssertTrue(session.delegate === listener)
        for _ in 0..<3 {
            let answer = await get(session, url("/json"))
            XCTAssertEqual(answer.status, 200)
        }
        XCTAssertEqual(told, 1)
        let some = HTTPCapture.engine { engine }
        XCTAssertTrue(some === engine)
    }

    /// `cordwood http` in another process lists an exchange once it is recorded, and one that is
    /// under way, while this process goes on.
    func testAnotherProcessListsIt() async throws {
        let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let tool = [".build-tests/debug/cordwood", ".build/debug/cordwood", "build/bin/cordwood"]
            .map { here.appendingPathComponent($0).path }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
        guard let tool else {
            throw XCTSkip("no cordwood binary: ./dev build makes build/bin/cordwood")
        }
        let path = "/drip?seconds=60&listed"
        let (session, slow) = (installed, url(path))
        let open = Task { try? await session.data(from: slow) }
        try await inTheMidst(path)
        _ = try await session.data(from: url("/json?listed"))
        _ = try await ended("/json?listed")
        let list = Process()
        let output = Pipe()
        list.executableURL = URL(fileURLWithPath: tool)
        list.arguments = ["http", store]
        list.standardOutput = output
        try list.run()
        let listed = String(
            decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        list.waitUntilExit()
        open.cancel()
        _ = await open.value
        XCTAssertTrue(listed.contains("/json?listed"), listed)
        XCTAssertTrue(listed.contains("open"), listed)
    }
}
