// The append path against a model: seeded programs of writes, rolls, flushes, archiving, level
// changes, reopening and reading, by one thread and by several, in stores with small and large
// segments. What was answered ok is read back once, whole and in its thread's order; nothing else.

import Cordwood
import CordwoodCore
import CordwoodEngine
import CordwoodStore
import CordwoodTestSupport
import Foundation
import XCTest

final class AppendModelTests: XCTestCase {
    private var store = ""

    override func setUp() { store = TestFiles.directory() }
    override func tearDown() { TestFiles.remove(store) }

    private static let rounds: UInt64 = sized(1, 2, 30)

    func testOneThread() throws {
        for seed in UInt64(1)...sized(5, 20, 300) {
            var writer = ModelWriter(name: "model.one", seed: seed)
            var options = writer.options()
            var engine = try Engine(directory: store, options: options)
            for _ in 0..<writer.random.below(60) {
                switch writer.random.below(20) {
                case 0: try engine.roll()
                case 1: try engine.flush(.machine)
                case 2: try engine.archiveWait(timeout: .seconds(60))
                case 3: try compare([writer], seed, "live")
                case 4:
                    XCTAssertTrue(try engine.close(), "seed \(seed)")
                    options = writer.options()
                    engine = try Engine(directory: store, options: options)
                case 5: try writer.changeLevel(engine)
                case 6: move()
                default: writer.write(engine, options.segmentBytes)
                }
            }
            try compare([writer], seed, "before close")
            let stats = try engine.stats()
            XCTAssertEqual(stats.recordsDropped, 0, "seed \(seed)")
            XCTAssertTrue(try engine.close(), "seed \(seed)")
            try compare([writer], seed, "closed")
            XCTAssertEqual(try StoreInspector.verify(directory: store).problems, [], "seed \(seed)")
            TestFiles.remove(store)
            store = TestFiles.directory()
        }
    }

    /// The open engine follows it.
    private func move() {
        let place = TestFiles.directory()
        XCTAssertEqual(rename(store, place), 0)
        store = place
    }

    /// Four threads write while a fifth rolls, archives and moves the store beneath them.
    func testThreadsBesideRolls() throws {
        for seed in 1...Self.rounds {
            var options = EngineOptions()
            options.segmentBytes = 64 << 10
            options.level = .trace
            let engine = try Engine(directory: store, options: options)
            let writers = Guarded<[ModelWriter]>([])
            let work = DispatchGroup()
            for thread in 0..<UInt64(4) {
                work.enter()
                Thread.detachNewThread {
                    var writer = ModelWriter(name: "model.\(thread)", seed: seed * 8 + thread)
                    for _ in 0..<200 { writer.write(engine, 64 << 10) }
                    writers.change { $0.append(writer) }
                    work.leave()
                }
            }
            var random = SplitMix(seed)
            while work.wait(timeout: .now()) == .timedOut {
                try engine.roll()
                if random.below(4) == 0 { try engine.archiveWait(timeout: .seconds(60)) }
                if random.below(8) == 0 { move() }
            }
            try compare(writers.value, seed, "live")
            XCTAssertTrue(try engine.close(), "seed \(seed)")
            try compare(writers.value, seed, "closed")
            TestFiles.remove(store)
            store = TestFiles.directory()
        }
    }

    private func compare(_ writers: [ModelWriter], _ seed: UInt64, _ when: String) throws {
        var found: [String: [ModelRecord]] = [:]
        let reader = try StoreReader(path: store)
        while reader.next({ record in
            guard record.kind == 0, !record.logger.starts(with: "Cordwood.".utf8) else { return }
            found[String(decoding: record.logger, as: UTF8.self), default: []].append(
                ModelRecord(record))
        }) == .record {}
        XCTAssertEqual(reader.problems.count, 0, "seed \(seed), \(when): \(reader.problems)")
        XCTAssertLessThanOrEqual(found.count, writers.count, "seed \(seed), \(when)")
        for writer in writers {
            let read = found[writer.name] ?? []
            XCTAssertEqual(read.count, writer.kept.count, "seed \(seed), \(when)")
            let differ = zip(read, writer.kept).enumerated().first { $1.0 != $1.1 }
            XCTAssertNil(differ?.offset, "seed \(seed), \(when): the first that differs")
        }
    }
}

/// The parts of a record that are compared.
private struct ModelRecord: Equatable {
    var level: UInt8
    var message: [UInt8]
    /// The length of a cut message before the cut.
    var original: UInt64
    var number: Int64?

    init(level: UInt8, message: [UInt8], original: UInt64, number: Int64?) {
        (self.level, self.message, self.original) = (level, message, original)
        self.number = number
    }

    init(_ ref: borrowing RecordRef) {
        let record = Record(ref)
        level = record.level
        message = record.messageBytes
        original = record.originalLength
        number = nil
        if case .int(let value)? = record.fields.first(where: { $0.key == "n" })?.value {
            number = value
        }
    }
}

/// One thread's writes, and what the engine must return.
private struct ModelWriter: Sendable {
    let name: String
    var random: SplitMix
    var threshold: Level = .trace
    private(set) var kept: [ModelRecord] = []

    init(name: String, seed: UInt64) {
        self.name = name
        random = SplitMix(seed)
    }

    mutating func options() -> EngineOptions {
        var options = EngineOptions()
        options.segmentBytes = [64 << 10, 128 << 10, 1 << 20, 16 << 20][random.below(4)]
        options.codec = [.zstd, .lz4, .none][random.below(3)]
        threshold = .trace
        options.level = .trace
        return options
    }

    mutating func changeLevel(_ engine: Engine) throws {
        threshold = [.trace, .info, .error][random.below(3)]
        try engine.setLevel(threshold)
    }

    mutating func write(_ engine: Engine, _ segmentBytes: UInt64) {
        let log = engine.logger(name)
        let level: Level = [.trace, .debug, .info, .warn, .error, .fatal][random.below(6)]
        let isKept = level.number >= threshold.number
        for _ in 0..<(random.below(8) == 0 ? random.below(500) : 1) {
            let message = body(segmentBytes)
            let number: Int64? = random.below(3) == 0 ? Int64(random.below(1 << 30)) : nil
            let status: Int32
            if let number {
                status = log.log(
                    level, String(decoding: message, as: UTF8.self), fields: ["n": .int(number)])
            } else {
                status = message.withUnsafeBytes { log.write(level, bytes: $0) }
            }
            XCTAssertEqual(status, isKept ? 0 : 1)
            guard isKept else { continue }
            kept.append(
                ModelRecord(
                    level: level.number, message: message, original: UInt64(message.count),
                    number: number))
        }
    }

    /// Mostly short; sometimes as long as fits into a segment, never cut.
    private mutating func body(_ segmentBytes: UInt64) -> [UInt8] {
        let most = random.below(50) == 0 ? Int(segmentBytes) / 2 : 200
        let count = random.below(max(1, min(most, 200_000)))
        return (0..<count).map { _ in UInt8(32 + random.below(95)) }
    }
}

private final class Guarded<Value: Sendable>: @unchecked Sendable {
    // SAFETY: the value is read and changed under the lock.
    private let lock = NSLock()
    private var held: Value

    init(_ value: Value) { held = value }

    var value: Value { lock.withLock { held } }

    func change(_ body: (inout Value) -> Void) { lock.withLock { body(&held) } }
}
