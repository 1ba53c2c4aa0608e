// What a flush to the machine promised, after the power went: of each file only what that flush had
// to make durable is left. Open segments, the catalog region in use and (until something in it is
// final) the lane file are gone or zero; the journal, sealed segments and archives remain.

import Cordwood
import CordwoodCore
import Foundation
import XCTest

final class PowerLossTests: XCTestCase {
    private var store = ""

    override func setUp() { store = TestFiles.directory() }
    override func tearDown() { TestFiles.remove(store) }

    func testFlushedRecordsAreVerified() throws {
        for seed in UInt64(1)...20 {
            var random = SeededRandom(state: seed)
            var options = EngineOptions()
            options.segmentBytes = 64 << 10
            let engine = try Engine(directory: store, options: options)
            var written: [String] = []
            for round in 0..<4 {
                for _ in 0..<(random.next() % 8) {
                    let log = engine.logger("power.\(random.next() % 40)")
                    for _ in 0..<(random.next() % 200) {
                        written.append("\(log.name) \(written.count)")
                        XCTAssertEqual(log.log(.info, written.last!), 0)
                    }
                    if random.next() % 3 == 0 { try engine.roll() }
                    if random.next() % 8 == 0 { try engine.archiveWait(timeoutMs: 60_000) }
                    // 4 KiB a name: the catalog grows into files of its own.
                    for name in 0..<(random.next() % 4 == 0 ? 200 : 0) {
                        try engine.setResource(
                            "r\(round).\(name)", String(repeating: "x", count: 4_000))
                    }
                }
                try engine.flush(.machine, timeoutMs: 60_000)
                try compare(written, isGone: round % 2 == 0, "seed \(seed), flush \(round)")
            }
            XCTAssertTrue(try engine.close())
            TestFiles.remove(store)
            store = TestFiles.directory()
        }
    }

    private func compare(_ written: [String], isGone: Bool, _ when: String) throws {
        let disk = try afterPowerLoss(isGone: isGone)
        defer { TestFiles.remove(disk) }
        let reader = try StoreReader(path: disk, runningBoot: LaneID(high: 6, low: 6))
        var found: Set<String> = []
        while reader.next({ record in
            guard record.kind == 0 else { return }
            let message = String(decoding: record.message, as: UTF8.self)
            let logger = String(decoding: record.logger, as: UTF8.self)
            guard !record.flags.contains(.unverified), message.hasPrefix(logger + " ") else {
                return
            }
            XCTAssertTrue(found.insert(message).inserted, "\(when): \(message) twice")
        }) == .record {}
        XCTAssertEqual(Set(written).subtracting(found).count, 0, when)
    }

    /// A copy of the store as a disk would have it. isGone: files that were not synced are not
    /// there; else they are there and zero.
    private func afterPowerLoss(isGone: Bool) throws -> String {
        let manager = FileManager.default
        let disk = TestFiles.directory()
        let lanes = disk + "/lanes"
        // The engine goes on archiving: what is gone from one folder is in the next.
        for folder in ["", "/lanes", "/archives"] {
            try manager.createDirectory(
                atPath: disk + folder, withIntermediateDirectories: true)
            for name in try manager.contentsOfDirectory(atPath: store + folder) {
                if let bytes = try? Data(
                    contentsOf: URL(fileURLWithPath: "\(store)\(folder)/\(name)"))
                {
                    try bytes.write(to: URL(fileURLWithPath: "\(disk)\(folder)/\(name)"))
                }
            }
        }
        let names = try manager.contentsOfDirectory(atPath: lanes).sorted()
        let catalogs = names.filter { $0.contains(".catalog-") }
        func number(_ name: String) -> Int { Int(name.split(separator: "-").last ?? "") ?? 0 }
        let last = catalogs.map(number).max()
        for name in names {
            let path = "\(lanes)/\(name)"
            if name.hasSuffix(".seg") || catalogs.contains(name) && number(name) == last {
                if isGone { try manager.removeItem(atPath: path) } else { try zero(path) }
            } else if name.hasSuffix(".lane"), catalogs.isEmpty,
                try !firstIsSealed(path)
            {
                try zero(path)
            }
        }
        return disk
    }

    private func zero(_ path: String) throws {
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path)).count
        try Data(count: bytes).write(to: URL(fileURLWithPath: path))
    }

    /// Segment 0 lies in the lane file; once it is sealed the file is synced as it is.
    private func firstIsSealed(_ path: String) throws -> Bool {
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        let state = LaneHeader.segmentOffsetValue + SegmentHeader.state
        return bytes[state] == UInt8(SegmentHeader.stateSealed)
    }
}
