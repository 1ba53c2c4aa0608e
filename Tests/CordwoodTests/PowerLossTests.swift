// What a flush to the machine promised, after a power loss: of each file only what that flush had
// to make durable is left. Open segments, the catalog region in use and (until something in it is
// final) the lane file are gone or zero; the journal, sealed segments and archives remain.

import Cordwood
import CordwoodCore
import CordwoodEngine
import CordwoodStore
import CordwoodTestSupport
import Foundation
import XCTest

final class PowerLossTests: XCTestCase {
    private var store = ""

    override func setUp() { store = TestFiles.directory() }
    override func tearDown() { TestFiles.remove(store) }

    func testFlushedRecordsAreVerified() throws {
        for seed in UInt64(1)...sized(4, 20, 20) {
            var random = SplitMix(seed)
            var options = EngineOptions()
            options.segmentBytes = 64 << 10
            let engine = try Engine(directory: store, options: options)
            // Nothing that is archived is left in the lane.
            if seed % 2 == 0 { try engine.setConsent(.denied) }
            var written: [String] = []
            for round in 0..<4 {
                for _ in 0..<(random.next() % 8) {
                    let log = engine.logger("power.\(random.next() % 40)")
                    for _ in 0..<(random.next() % 200) {
                        written.append("\(log.name) \(written.count)")
                        XCTAssertEqual(log.log(.info, written.last!), 0)
                    }
                    if random.next() % 3 == 0 { try engine.roll() }
                    if random.next() % 8 == 0 { try engine.archiveWait(timeout: .seconds(60)) }
                    // 4 KiB per change: the catalog grows into files of its own.
                    for change in 0..<(random.next() % 4 == 0 ? 200 : 0) {
                        let text = "\(round).\(change)"
                        try engine.setResource("r", text + String(repeating: "x", count: 4_000))
                    }
                }
                try engine.flush(.machine, timeout: .seconds(60))
                try compare(written, isGone: round % 2 == 0, "seed \(seed), flush \(round)")
            }
            XCTAssertTrue(try engine.close())
            TestFiles.remove(store)
            store = TestFiles.directory()
        }
    }

    /// Where it was not synced, a file that was used again contains pages of the segment before.
    func testUsedAgain() throws {
        try full()
        var random = SplitMix(7)
        var options = EngineOptions()
        options.segmentBytes = 64 << 10
        let engine = try Engine(directory: store, options: options)
        let log = engine.logger("power")
        var written: [String] = []
        var older = Data()
        func burst(_ count: Int) {
            for _ in 0..<count {
                written.append("power \(written.count)")
                XCTAssertEqual(log.log(.info, written.last!), 0)
            }
        }
        var rounds = 0
        for _ in 0..<2_000 where rounds < 12 {
            burst(1_500)
            try engine.archiveWait(timeout: .seconds(60))
            let names = try FileManager.default.contentsOfDirectory(atPath: store + "/lanes")
            guard let live = names.first(where: { $0.hasSuffix(".seg") }),
                let bytes = try? Data(contentsOf: URL(fileURLWithPath: "\(store)/lanes/\(live)"))
            else { continue }
            if !live.contains("-0001."), !older.isEmpty {
                rounds += 1
                burst(20)
                try engine.flush(.machine, timeout: .seconds(60))
                let flushed = written
                burst(20)
                try compare(flushed, "round \(rounds)") { path in
                    guard path.hasSuffix(".seg"), !path.contains("-0001.") else { return }
                    var mixed = try Data(contentsOf: URL(fileURLWithPath: path))
                    for page in stride(from: 0, to: min(mixed.count, older.count), by: 4096)
                    where rounds % 3 == 0 || random.next() % 2 == 0 {
                        let end = min(page + 4096, mixed.count, older.count)
                        mixed.replaceSubrange(page..<end, with: older[page..<end])
                    }
                    try mixed.write(to: URL(fileURLWithPath: path))
                }
            }
            older = bytes
        }
        XCTAssertEqual(rounds, 12, "no file was used again")
        XCTAssertTrue(try engine.close())
    }

    private func compare(_ written: [String], isGone: Bool, _ when: String) throws {
        try compare(written, when) { _ in
        } makes: {
            try self.afterPowerLoss(isGone: isGone)
        }
    }

    /// What was flushed is there and verified; nothing is there twice, not even unverified.
    private func compare(
        _ written: [String], _ when: String, spoil: (String) throws -> Void,
        makes: (() throws -> String)? = nil
    ) throws {
        let disk = try makes?() ?? copy()
        defer { TestFiles.remove(disk) }
        for name in try FileManager.default.contentsOfDirectory(atPath: disk + "/lanes") {
            try spoil("\(disk)/lanes/\(name)")
        }
        let reader = try StoreReader(path: disk, runningBoot: LaneID(high: 6, low: 6))
        var found: Set<String> = []
        var shown: Set<String> = []
        while reader.next({ record in
            guard record.kind == 0 else { return }
            let message = String(decoding: record.message, as: UTF8.self)
            let logger = String(decoding: record.logger, as: UTF8.self)
            guard message.hasPrefix(logger + " ") else { return }
            XCTAssertTrue(shown.insert(message).inserted, "\(when): \(message) twice")
            if !record.flags.contains(.unverified) { found.insert(message) }
        }) == .record {}
        XCTAssertEqual(Set(written).subtracting(found).count, 0, when)
    }

    private func copy() throws -> String {
        let manager = FileManager.default
        let disk = TestFiles.directory()
        // The engine keeps archiving: what is gone from one folder is in the next.
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
        return disk
    }

    /// A copy of the store as a disk would have it. isGone: unsynced files are missing; otherwise
    /// they are zeros.
    private func afterPowerLoss(isGone: Bool) throws -> String {
        let manager = FileManager.default
        let disk = try copy()
        let lanes = disk + "/lanes"
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

    /// Segment 0 is in the lane file; once it is sealed, the file is synced as it is, and before
    /// it is overwritten.
    private func firstIsSealed(_ path: String) throws -> Bool {
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        let state = bytes[LaneHeader.segmentOffsetValue + SegmentHeader.state]
        return state == UInt8(SegmentHeader.stateSealed) || state == UInt8(SegmentHeader.stateDead)
    }
}
