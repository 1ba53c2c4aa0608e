// `guardsAgainstBusErrors`: this process survives if the segment it stores to is cut. A host
// without the option dies of that (suite disk: without_guard).

import Cordwood
import CordwoodEngine
import CordwoodStore
import Foundation
import Glibc
import XCTest

final class GuardTests: XCTestCase {
    private var store = ""

    override func setUp() { store = TestFiles.directory() }
    override func tearDown() { TestFiles.remove(store) }

    private func segments() -> [String] {
        let lanes = store + "/lanes"
        let names = (try? FileManager.default.contentsOfDirectory(atPath: lanes)) ?? []
        return names.filter { $0.hasSuffix(".seg") && !$0.hasPrefix(".") }.map { "\(lanes)/\($0)" }
    }

    /// If the option has no effect, the whole test process ends by SIGBUS.
    func testCutSegmentsStopNobody() throws {
        var options = EngineOptions()
        options.segmentBytes = 64 << 10
        options.guardsAgainstBusErrors = true
        let engine = try Engine(directory: store, options: options)
        let log = engine.logger("cut")
        let text = String(repeating: "x", count: 200)
        var cuts = 0
        for round in 0..<20_000 where cuts < 50 {
            log.info("\(round) \(text)")
            guard round % 100 == 0 else { continue }
            for path in segments() where truncate(path, 4096) == 0 { cuts += 1 }
        }
        XCTAssertGreaterThanOrEqual(cuts, 50)
        try engine.roll()
        // Cut segments may hold up the current one for a moment: records are refused then.
        let before = try engine.stats().recordsWritten
        for _ in 0..<10_000 where try engine.stats().recordsWritten == before {
            log.info("still here")
            usleep(1_000)
        }
        XCTAssertTrue(try engine.close())
        let reader = try StoreReader(path: store)
        var found = false
        while let record = reader.nextRecord() { found = found || record.message == "still here" }
        XCTAssertTrue(found)
    }
}
