// Uploads by the host's own transport are never captured; exchanges that may be uploads make no
// archive by themselves, all others do.

import Cordwood
import CordwoodEngine
import CordwoodShip
import CordwoodTestSupport
import Foundation
import XCTest

@testable import CordwoodCore
@testable import CordwoodStore

final class OwnUploadTests: XCTestCase {
    private var directory = ""
    private var engine: Engine!
    private static let url = "http://127.0.0.1:9/in"

    private final class Transport: UploadTransport {
        func send(_ request: UploadRequest) throws -> UploadResponse { UploadResponse(status: 200) }
    }

    override func setUpWithError() throws {
        directory = StorePlace.path("own")
        engine = try Engine(directory: directory)
        addTeardownBlock { [engine, directory] in
            try engine?.close()
            try? FileManager.default.removeItem(atPath: directory)
        }
        var options = HTTPCaptureOptions()
        options.isEnabled = true
        try engine.setHTTPCapture(options)
    }

    private func add(_ transport: Transport?) throws {
        var options = TargetOptions(url: OwnUploadTests.url)
        options.kind = "http"
        options.name = "own"
        options.transport = transport
        try engine.addTarget(options)
    }

    private func exchange(_ url: String, isServer: Bool = false) throws {
        let one = try XCTUnwrap(
            engine.beginHTTP(method: "GET", url: url, side: isServer ? .server : .client))
        one.response(status: 200)
        XCTAssertEqual(one.end(), 0)
    }

    /// The archives that the exchanges make.
    private func archives() throws -> UInt64 {
        _ = try? engine.upload(timeout: .seconds(30))
        return try engine.stats().archivesWritten
    }

    private var mark: UploadMark {
        get throws { try XCTUnwrap(UploadMark(storeDirectory: FilePath(directory))) }
    }

    func testOwnRequestsAreNotCaptured() throws {
        let value = try mark.value
        XCTAssertEqual(value.utf8.count, UploadMark.digits)
        for (name, value, isCaptured) in [
            ("Cordwood-Upload", value, false), ("cordwood-upload", value.uppercased(), false),
            ("Cordwood-Upload", value + "0", true), ("Cordwood-Upload", "", true),
            ("Cordwood-Upload", String(value.reversed()) + " ", true), ("X-Upload", value, true),
            ("Cordwood-Upload", String(repeating: "0", count: 16), true),
        ] {
            let one = engine.beginHTTP(
                method: "POST", url: "https://h/x", headers: [(name, value)])
            XCTAssertEqual(one != nil, isCaptured, "\(name): \(value)")
            one?.end()
        }
    }

    /// Whoever sends to a server chooses the headers.
    func testServersRecordIt() throws {
        let one = engine.beginHTTP(
            method: "POST", url: "https://h/x", headers: [("Cordwood-Upload", try mark.value)],
            side: .server)
        XCTAssertEqual(try XCTUnwrap(one).end(), 0)
    }

    /// More stores than the process has words: the last ones count.
    func testTheMarksOfManyStores() {
        for number in UInt64(1)...2_000 {
            let one = UploadMark(number &* 0x9E37_79B9_7F4A_7C15)
            one.accept()
            XCTAssertTrue(one.isAccepted)
        }
    }

    func testUploadsMakeNoUploads() throws {
        try add(Transport())
        try exchange("http://127.0.0.1:9/anything?x=1")
        try exchange("HTTP://127.0.0.1:9", isServer: true)
        XCTAssertEqual(try archives(), 0)
        try exchange("http://127.0.0.1:8/in")
        XCTAssertEqual(try archives(), 1, "another origin")
        try engine.removeTarget("own")
        try exchange("http://127.0.0.1:9/in")
        try add(nil)
        XCTAssertEqual(try archives(), 2, "the target is gone")
    }

    /// libcurl's requests are not captured: those to the same server are others.
    func testOnlyTransportsOfTheHostMatter() throws {
        try add(nil)
        try exchange(OwnUploadTests.url, isServer: true)
        XCTAssertEqual(try archives(), 0)
        try exchange(OwnUploadTests.url)
        XCTAssertEqual(try archives(), 1)
    }
}
