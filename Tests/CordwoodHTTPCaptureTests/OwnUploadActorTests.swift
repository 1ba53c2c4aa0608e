// A transport that is an actor sends uploads through a captured URLSession: they are not captured.
// Without their headers they are, but make no uploads of their own.

import Cordwood
import CordwoodHTTPCapture
import CordwoodTestSupport
import Foundation
import XCTest

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

final class OwnUploadActorTests: CaptureCase {
    private actor Sender {
        private let session: URLSession
        private(set) var count = 0

        init(_ session: URLSession) { self.session = session }

        func send(_ request: URLRequest) async throws -> Int {
            count += 1
            let (_, response) = try await session.data(for: request)
            return (response as? HTTPURLResponse)?.statusCode ?? 0
        }
    }

    /// SAFETY: `status` is written before the semaphore is signalled, and read after.
    private final class Answer: @unchecked Sendable {
        let isThere = DispatchSemaphore(value: 0)
        var status = 0
    }

    private final class Transport: UploadTransport {
        private let sender: Sender
        private let passesHeaders: Bool

        init(_ sender: Sender, passesHeaders: Bool) {
            self.sender = sender
            self.passesHeaders = passesHeaders
        }

        func send(_ request: UploadRequest) throws -> UploadResponse {
            guard let url = URL(string: request.url) else { throw UploadTransportError("no URL") }
            var made = URLRequest(url: url)
            made.httpMethod = request.method
            for (name, value) in request.headers where passesHeaders {
                made.setValue(value, forHTTPHeaderField: name)
            }
            var body = Data(count: Int(request.bodyBytes))
            var offset = 0
            while offset < body.count {
                offset += try body.withUnsafeMutableBytes {
                    try request.readBody(
                        at: UInt64(offset),
                        into: UnsafeMutableRawBufferPointer(rebasing: $0[offset...]))
                }
            }
            made.httpBody = body
            let answer = Answer()
            Task { [sender, made] in
                answer.status = (try? await sender.send(made)) ?? 0
                answer.isThere.signal()
            }
            answer.isThere.wait()
            return UploadResponse(status: answer.status)
        }
    }

    /// The requests that an upload of one record takes, and the exchanges that are captured.
    private func uploads(passesHeaders: Bool) async throws -> (requests: Int, exchanges: Int) {
        let session = HTTPCapture.session(engine, configuration: configuration())
        let sender = Sender(session)
        var options = TargetOptions(url: base + "/upload")
        options.kind = "http"
        options.transport = Transport(sender, passesHeaders: passesHeaders)
        try engine.addTarget(options)
        engine.logger("x").info("the only record")
        for _ in 0..<3 { _ = try await engine.upload() }
        session.finishTasksAndInvalidate()
        try engine.close()
        return (await sender.count, try await exchanges().count)
    }

    func testUploadsOfAnActor() async throws {
        let found = try await uploads(passesHeaders: true)
        XCTAssertEqual(found.requests, 1)
        XCTAssertEqual(found.exchanges, 0)
    }

    func testUploadsOfAnActorThatDropsHeaders() async throws {
        let found = try await uploads(passesHeaders: false)
        XCTAssertEqual(found.requests, 1)
        XCTAssertEqual(found.exchanges, 1)
    }
}
