// What the tests of captured URLSession requests share: a store with its engine, a server in its
// own process (Tests/TestSupport/http_peer.py), a host's delegate.

import Cordwood
import CordwoodHTTPCapture
import CordwoodTestSupport
import Foundation
import XCTest

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

// Cordwood has another of this name, which only this package sees.
typealias HTTPCapture = CordwoodHTTPCapture.HTTPCapture

class CaptureCase: XCTestCase {
    nonisolated(unsafe) private static var peer: Peer?
    var store = ""
    var engine: Engine!

    override class func setUp() { peer = try? Peer() }

    override class func tearDown() { peer = nil }

    override func setUpWithError() throws {
        store = StorePlace.path("http")
        engine = try Engine(directory: store)
        var options = HTTPCaptureOptions()
        options.isEnabled = true
        options.keepText = ["* */*"]
        try engine.setHTTPCapture(options)
        addTeardownBlock { [engine, store] in
            try engine?.close()
            try? FileManager.default.removeItem(atPath: store)
        }
    }

    var base: String { CaptureCase.peer?.url ?? "http://127.0.0.1:1" }

    func url(_ path: String) -> URL { URL(string: base + path)! }

    /// - Parameter timeoutS: short for a request that gets no answer; the default is never reached.
    func configuration(timeoutS: Double = 60) -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = timeoutS
        return configuration
    }

    /// Waits until the condition holds; fails the test if it does not within a minute.
    func eventually(_ what: String, _ condition: () async throws -> Bool) async throws {
        let end = Date() + 60
        while try await !condition() {
            guard Date() < end else { return XCTFail("never: \(what)") }
            try await Task.sleep(nanoseconds: 5_000_000)
        }
    }

    /// The fields of each exchange that has ended.
    func exchanges() async throws -> [[String: String]] {
        var options = ReaderOptions()
        options.kinds = 1 << 4
        var found: [[String: String]] = []
        for try await record in Reader(store, options: options) {
            let pairs = record.fields.map { ($0.key, CaptureCase.text($0.value)) }
            let fields = Dictionary(pairs, uniquingKeysWith: { $1 })
            if fields["http.op"] == "end" { found.append(fields) }
        }
        return found
    }

    static func text(_ value: Field) -> String {
        switch value {
        case .int(let number): "\(number)"
        case .uint(let number): "\(number)"
        case .double(let number): "\(number)"
        case .bool(let flag): "\(flag)"
        case .string(let text), .json(let text): text
        }
    }

    struct Answer: Equatable, Sendable {
        var status: Int?
        var body: Data?
        var error: Int?
    }

    func get(_ session: URLSession, _ url: URL) async -> Answer {
        await withCheckedContinuation { done in
            session.dataTask(with: url) { data, response, error in
                done.resume(
                    returning: Answer(
                        status: (response as? HTTPURLResponse)?.statusCode, body: data,
                        error: (error as? URLError)?.code.rawValue))
            }.resume()
        }
    }
}

/// A host's delegate. Only the session's queue and, after `ended`, the test touch it.
final class Listener: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate,
    @unchecked Sendable
{
    let ended = XCTestExpectation(description: "the task ends")
    var follows = true
    var received = 0
    var pieces = 0
    var fileBytes = 0
    var status: Int?
    var error: (any Error)?
    var onData: () -> Void = {}
    var stream: () -> InputStream? = { nil }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        completionHandler(stream())
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(follows ? request : nil)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        received += data.count
        pieces += 1
        onData()
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask,
        didFinishDownloadingTo location: URL
    ) {
        fileBytes = (try? Data(contentsOf: location).count) ?? -1
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
        status = (task.response as? HTTPURLResponse)?.statusCode
        self.error = error
        ended.fulfill()
    }
}

/// http_peer.py, which runs as long as this object lives.
final class Peer {
    private let process = Process()
    private let input = Pipe()
    let url: String

    /// - Parameter certificate: a PEM file with its key, for https.
    init(certificate: String? = nil) throws {
        let here = URL(fileURLWithPath: #filePath)
        let script = here.deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("TestSupport/http_peer.py").path
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["python3", "-u", script] + (certificate.map { [$0] } ?? [])
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        var line = ""
        while let byte = try output.fileHandleForReading.read(upToCount: 1)?.first, byte != 10 {
            line.unicodeScalars.append(Unicode.Scalar(byte))
        }
        url = (certificate == nil ? "http" : "https") + "://127.0.0.1:\(line)"
    }

    deinit {
        try? input.fileHandleForWriting.close()
        process.waitUntilExit()
    }
}
