// Uploads by the host's own transport are never captured; exchanges that may be uploads make no
// archive by themselves, all others do.

import Cordwood
import CordwoodShip
import CordwoodTestSupport
import Foundation
import XCTest

@testable import CordwoodCore
@testable import CordwoodEngine
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

    private func add(
        _ transport: Transport?, name: String = "own", url: String = OwnUploadTests.url
    ) throws {
        var options = TargetOptions(url: url)
        options.kind = "http"
        options.name = name
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

    /// A server behind a proxy that ends TLS sees another scheme, and often no port.
    func testServersBehindProxiesMakeNoUploads() throws {
        try add(Transport(), url: "https://logs.example/in")
        for url in [
            "http://logs.example/in", "https://LOGS.example:443/in", "http://logs.example:80",
        ] {
            try exchange(url, isServer: true)
        }
        XCTAssertEqual(try archives(), 0)
        try exchange("http://logs.example:8080/in", isServer: true)
        XCTAssertEqual(try archives(), 1, "another origin")
    }

    /// One with libcurl, one with a transport of the host.
    func testTargetsOfOneServer() throws {
        for isFirst in [true, false] {
            try add(isFirst ? Transport() : nil, name: "a")
            try add(isFirst ? nil : Transport(), name: "b", url: OwnUploadTests.url + "/2")
            try exchange(OwnUploadTests.url)
            try exchange(OwnUploadTests.url, isServer: true)
            XCTAssertEqual(try archives(), 0)
            try engine.removeTarget("a")
            try engine.removeTarget("b")
        }
    }

    /// Threads that add and remove targets at once: none is forgotten.
    func testTargetsOfManyThreads() throws {
        let engine = try XCTUnwrap(self.engine)
        for round in 0..<OwnUploadTests.rounds {
            DispatchQueue.concurrentPerform(iterations: 4) { number in
                var options = TargetOptions(url: "http://127.0.0.\(number + 1):9/in")
                options.kind = "http"
                options.name = "\(number)"
                options.transport = Transport()
                do { try engine.addTarget(options) } catch { XCTFail("\(error)") }
            }
            for number in 1...4 { try exchange("http://127.0.0.\(number):9/") }
            guard try archives() == 0 else { return XCTFail("round \(round)") }
            for number in 0..<4 { try engine.removeTarget("\(number)") }
        }
    }
    private static let rounds = 12

    /// They are not kept back for ever.
    func testAnHourEndsTheWait() throws {
        XCTAssertEqual(Services.rollAge(5, hasHostRecords: true), 5)
        XCTAssertEqual(Services.rollAge(5, hasHostRecords: false), 3_600_000_000_000)
        XCTAssertEqual(Services.rollAge(.max, hasHostRecords: false), .max)
        try engine.close()
        var options = EngineOptions()
        options.rollAgeSeconds = 1
        engine = try Engine(directory: directory, options: options)
        var capture = HTTPCaptureOptions()
        capture.isEnabled = true
        try engine.setHTTPCapture(capture)
        try add(Transport())
        try exchange(OwnUploadTests.url)
        let lane = try XCTUnwrap(EngineCore.readyLane(engine.block))
        let base = UnsafeMutableRawPointer(
            try XCTUnwrap(XCTUnwrap(Claim.current(lane)).pointee.base))
        let at = SegmentHeader.createdMonotonic
        let begun = base.load(fromByteOffset: at, as: UInt64.self)
        // On a machine that was started less than an hour ago, no segment is that old.
        guard begun > 3_601_000_000_000 else { return }
        base.storeBytes(of: begun - 3_601_000_000_000, toByteOffset: at, as: UInt64.self)
        let deadline = Date() + 60
        while try engine.stats().archivesWritten == 0 {
            guard Date() < deadline else { return XCTFail("not rolled") }
            usleep(10_000)
        }
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
