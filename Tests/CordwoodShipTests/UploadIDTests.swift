// The id and origin of a record in uploads.

import CordwoodTestSupport
import XCTest

@testable import CordwoodCore
@testable import CordwoodShip
@testable import CordwoodStore

final class UploadIDTests: XCTestCase {
    private var held: TestStore?
    private var store: TestStore { get throws { try XCTUnwrap(held) } }

    override func setUpWithError() throws { held = try TestStore() }
    override func tearDown() { held = nil }

    private func target(
        _ kind: String, _ url: String, _ change: (inout TargetOptions) -> Void = { _ in }
    ) throws -> Target {
        try store.target(url) {
            $0.kind = kind
            change(&$0)
        }
    }

    func testTheIDOfARecordIsAsDescribed() {
        XCTAssertEqual(Given.plain().staged.recordID, Given.plainID)
    }

    /// 400 devices in one archive, as a collector or a merge of small lanes makes it: every form
    /// with a place for it says which device and user each record is of, and names it once.
    func testDevicesAreToldApart() throws {
        try full()
        let devices = (0..<400).map { number in
            let process = CordwoodStore.ProcessInfo(
                laneID: LaneID(high: 0x1122_3344_5566_7788, low: UInt64(number)), bootID: .zero,
                processID: 1, name: "app", createdRealtime: 0, createdMonotonic: 0,
                resource: [
                    ("host.name", "device-\(number)"), ("service.name", "shop"),
                    ("user.id", "user-\(number)"),
                ])
            var given = Given(
                staged: Staged(
                    thread: ThreadInfo(process: process, serial: 1, threadID: 1, name: "")))
            given.staged.model.time = 1_763_712_930_000_000_000
            given.staged.model.level = 9
            given.staged.model.message = Array("started".utf8)
            given.dress()
            return given
        }
        let forms =
            TextEncoderTests.jsonKinds.map { ($0.0, $0.1, "") } + [
                ("http", "http://h/x", "json"), ("http", "http://h/x", "ndjson"),
                ("otlp", "http://h", "otlp-json"),
            ]
        for (kind, url, format) in forms {
            let target = try target(kind, url) { if !format.isEmpty { $0.format = format } }
            let all = utf8(try store.bodies(devices, target).bodies.joined())
            let words = Set(all.split { !$0.isLetter && !$0.isNumber && $0 != "-" })
            for (number, device) in devices.enumerated() {
                XCTAssertTrue(words.contains("device-\(number)"), "\(kind) \(format) \(number)")
                XCTAssertTrue(words.contains("user-\(number)"), "\(kind) \(format) \(number)")
                XCTAssertTrue(
                    words.contains(device.staged.recordID[...]), "\(kind) \(format) \(number)")
            }
            XCTAssertTrue(words.contains("shop"), kind)
        }
    }
}
