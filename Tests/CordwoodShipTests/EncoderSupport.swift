// What tests of encoders share: records whose every part is hostile, made by seed, with a plain
// model of their content; bodies as an upload would make them; the strict fakes of
// Tests/TestSupport/fakes, asked about bodies or run as servers.

import CordwoodTestSupport
import Foundation
import Glibc
import XCTest

@testable import CordwoodCore
@testable import CordwoodShip
@testable import CordwoodStore

/// The content of a record, independent of the code under test.
struct Given {
    enum Value {
        case int(Int64), uint(UInt64), double(Double), bool(Bool), text([UInt8]), json([UInt8])

        /// The value as text, as in a form without numbers.
        var shown: String {
            switch self {
            case .int(let value): String(value)
            case .uint(let value): String(value)
            case .double(let value):
                value.isNaN
                    ? "NaN" : value.isInfinite ? (value < 0 ? "-Infinity" : "Infinity") : "\(value)"
            case .bool(let value): value ? "true" : "false"
            case .text(let bytes), .json(let bytes): utf8(bytes)
            }
        }
    }

    var own: [(key: [UInt8], value: Value)] = []
    var context: [(key: [UInt8], value: Value)] = []
    /// Type, message, stack.
    var exception: [[UInt8]] = []
    var trace: [UInt8] = []
    var staged: Staged

    var model: ModelRecord { staged.model }
    var mark: String {
        model.flags & RecordFlags.truncated.rawValue == 0
            ? "" : "… (\(model.originalLength) bytes)"
    }
    var message: String { utf8(model.message) + mark }
    var isWhole: Bool { String(validating: model.message, as: UTF8.self) != nil }
    var traceID: String { trace.prefix(16).contains { $0 != 0 } ? hex(trace.prefix(16)) : "" }
    var spanID: String {
        trace.dropFirst(16).prefix(8).contains { $0 != 0 } ? hex(trace.dropFirst(16).prefix(8)) : ""
    }

    /// Keys to values, each key once: the record's own override the context's, later ones earlier.
    var fields: [[UInt8]: Value] {
        var found: [[UInt8]: Value] = [:]
        for (key, value) in context { found[key] = value }
        for (key, value) in exceptionFields { found[Array(key.utf8)] = .text(value) }
        for (key, value) in own { found[key] = value }
        return found
    }

    var exceptionFields: [(String, [UInt8])] {
        let names = ["exception.type", "exception.message", "exception.stacktrace"]
        return zip(names, exception).filter { !$0.1.isEmpty }.map { ($0.0, $0.1) }
    }

    /// What the exception says under this name, unless a field of the record itself hides it.
    func exception(_ name: String) -> String? {
        guard !own.contains(where: { $0.key == Array(name.utf8) }) else { return nil }
        return exceptionFields.first { $0.0 == name }.map { utf8($0.1) }
    }
}

func utf8(_ bytes: some Collection<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }
func hex(_ bytes: some Collection<UInt8>) -> String {
    bytes.map { String(format: "%02x", $0) }.joined()
}

struct HostileMaker {
    var random: SplitMix
    private let threads: [ThreadInfo]
    private var clock: UInt64 = 1_763_712_930_000_000_000
    private var made: UInt64 = 0

    private static let pieces: [[UInt8]] = [
        Array("#".utf8), Array("\n".utf8), Array("\r\n".utf8), Array("\"".utf8), Array("\\".utf8),
        [0], [0x1b, 0x5b, 0x33, 0x31, 0x6d], [0x7f], [0xff], [0xc0, 0xaf], [0xe2, 0x82],
        [0xed, 0xa0, 0x80],
        Array("\u{2028}\u{85}\u{FFFF}".utf8), Array("🪵".utf8), Array("{\"a\":1}".utf8),
        Array("{token}{id}".utf8), Array("',;=% +".utf8), Array("plain words".utf8),
        Array("é".utf8),
        Array("\\n\\u0000".utf8), Array("\t".utf8), Array("=cmd()".utf8), [0x80], [0xf4, 0x90],
    ]
    private static let keys: [[UInt8]] = [
        [], Array(".".utf8), Array("a.b".utf8), Array("a_b".utf8), Array("a".utf8),
        Array("_x".utf8),
        Array("9lives".utf8), Array("level".utf8), Array("message".utf8), Array("host".utf8),
        Array("time".utf8), Array("exception.type".utf8), Array("service_name".utf8), [0xff],
        [0xfe],
        Array("trace_id".utf8), Array("with space".utf8), Array("größe".utf8), Array(" ".utf8),
        Array(String(repeating: "k", count: 300).utf8), Array("order".utf8), Array("\"".utf8),
        Array("correlation_id".utf8), Array("source".utf8), Array("a b".utf8), Array("a!b".utf8),
    ]

    init(seed: UInt64) {
        random = SplitMix(seed)
        threads = (0..<3).map { number in
            let resource =
                number == 0
                ? []
                : [
                    ("service.name", "shop \"#\(number)\n"), ("service.version", "1.\(number)"),
                    ("host.name", "höst-\(number)"), ("team", "first"), ("team", "a\u{0}b"),
                ]
            let process = CordwoodStore.ProcessInfo(
                laneID: LaneID(high: 1, low: UInt64(number)), bootID: .zero,
                processID: 800 + UInt32(number), name: number == 2 ? "" : "proc\t\(number)",
                createdRealtime: 0, createdMonotonic: 0, resource: resource)
            return ThreadInfo(
                process: process, serial: 1, threadID: 900 + UInt32(number),
                name: number == 1 ? "worker #1\n" : "")
        }
    }

    mutating func text(_ most: Int = 6) -> [UInt8] {
        (0..<random.below(most + 1)).flatMap { _ in
            HostileMaker.pieces[random.below(HostileMaker.pieces.count)]
        }
    }

    private static let parts = [
        #"{"id":7,"items":[{"sku":"grün\n"},null,[]],"":{}}"#, #" [ 1.5 , "\ud83d\ude00" ] "#, "7",
        #""x\u0000<>&""#, "true",
    ]

    private mutating func value() -> Given.Value {
        switch random.below(10) {
        case 0: .int(Int64.min)
        case 1: .int(Int64(bitPattern: random.next()))
        case 2: .uint(UInt64.max)
        case 3: .uint(random.next())
        case 4:
            .double(
                [.nan, .infinity, -.infinity, -0.0, .leastNonzeroMagnitude, 1e300, 0.1][
                    random.below(7)])
        case 5: .double(Double(random.below(1_000_000)) / 7)
        case 6: .bool(random.chance(2))
        case 7: .json(Array(HostileMaker.parts[random.below(HostileMaker.parts.count)].utf8))
        default: .text(text())
        }
    }

    private mutating func pairs() -> [(key: [UInt8], value: Given.Value)] {
        (0..<random.below(7)).map { _ in
            (HostileMaker.keys[random.below(HostileMaker.keys.count)], value())
        }
    }

    mutating func records(_ count: Int) -> [Given] { (0..<count).map { _ in record() } }

    /// - Parameter message: nil makes a short one.
    mutating func record(message: [UInt8]? = nil) -> Given {
        var given = Given(staged: Staged(thread: threads[random.below(threads.count)]))
        if random.chance(2) { given.own = pairs() }
        if random.chance(3) { given.context = pairs() }
        if random.chance(4) { given.exception = [text(2), text(3), text(9)] }
        if random.chance(3) {
            given.trace = random.chance(3) ? [UInt8](repeating: 0, count: 25) : random.bytes(25)
        }
        // Often the same time, now and then an earlier one.
        clock &+= UInt64([0, 0, 1, 999, 5_000_000, 1_234_567_890][random.below(6)])
        var model = ModelRecord()
        model.time = random.chance(20) ? clock &- 3_000_000_000 : clock
        model.written = model.time
        made += 1
        model.sequence = random.chance(9) ? UInt64.max >> 1 &- made : random.next() >> 20
        model.level = UInt8(random.below(25))
        model.kind = UInt8(random.chance(4) ? random.below(5) : 0)
        model.logger = random.chance(3) ? Array("app.db".utf8) : text(3)
        model.message = message ?? text(10)
        model.originalLength = UInt64(model.message.count)
        if random.chance(9) {
            model.flags = RecordFlags.truncated.rawValue
            model.originalLength += random.next() >> 30
        }
        if random.chance(2) {
            model.file = text(3)
            model.line = UInt32(truncatingIfNeeded: random.next())
            model.function = text(2)
        }
        model.trace = given.trace
        given.staged.model = model
        given.dress()
        return given
    }
}

extension Given {
    /// Lays out fields, context and exception as a source returns them (FORMAT §8.1, §8.2).
    mutating func dress() {
        staged.model.context = context.isEmpty ? [] : Given.encoded(context)
        var sections: [UInt8] = []
        func add(_ kind: UInt8, _ body: [UInt8]) {
            sections += [kind, 0, 0, 0] + little(UInt32(body.count)) + body
        }
        if !own.isEmpty { add(2, Given.encoded(own)) }
        if !exception.isEmpty {
            add(7, exception.flatMap { little(UInt32($0.count)) } + exception.flatMap { $0 })
        }
        staged.storedSections = sections
    }

    private static func encoded(_ fields: [(key: [UInt8], value: Value)]) -> [UInt8] {
        var out = little(UInt16(fields.count))
        for (key, value) in fields {
            var head = [UInt8(0)] + little(UInt16(key.count)) + key
            switch value {
            case .int(let value): out += [1] + head + little(value)
            case .uint(let value): out += [2] + head + little(value)
            case .double(let value): out += [3] + head + little(value.bitPattern)
            case .bool(let value): out += [4] + head + [value ? 1 : 0]
            case .text(let text): out += [5] + head + little(UInt32(text.count)) + text
            case .json(let text):
                head[0] = 1
                out += [5] + head + little(UInt32(text.count)) + text
            }
        }
        return out
    }
}

extension Given {
    /// A record with a word in every part.
    static func plain() -> Given {
        let process = CordwoodStore.ProcessInfo(
            laneID: .zero, bootID: .zero, processID: 812, name: "shop", createdRealtime: 0,
            createdMonotonic: 0,
            resource: [("service.name", "web"), ("host.name", "h1"), ("service.version", "2.0")])
        var given = Given(
            staged: Staged(
                thread: ThreadInfo(process: process, serial: 1, threadID: 813, name: "main")))
        given.own = [(Array("order".utf8), .int(7)), (Array("a.b".utf8), .text(Array("x#y".utf8)))]
        given.context = [(Array("order".utf8), .int(8)), (Array("ok".utf8), .bool(true))]
        given.exception = [Array("Oops".utf8), Array("bad".utf8), Array("at a\nat b".utf8)]
        given.trace = Array(1...24) + [1]
        var model = ModelRecord()
        model.time = 1_763_712_930_123_456_789
        model.sequence = 5
        model.level = 13
        model.logger = Array("net.http".utf8)
        model.message = Array("say \"hi\" #1\n".utf8)
        model.originalLength = UInt64(model.message.count)
        model.file = Array("a.c".utf8)
        model.line = 7
        model.function = Array("main".utf8)
        model.trace = given.trace
        given.staged.model = model
        given.dress()
        return given
    }

    static let plainID = "000000000000000000000000000000010000000000000005"
}

let encodedArchiveID = "00000000-0000-4000-8000-000000000001"

extension Staged {
    /// By FORMAT §7.1 alone.
    var recordID: String {
        let lane = thread.process.laneID
        return hex((little(lane.high) + little(lane.low)).prefix(12))
            + String(format: "%08x%016lx", thread.serial, model.sequence)
    }
}

extension TestStore {
    /// All bodies that a target would be sent for these records, without encoding.
    func bodies(
        _ records: [Given], _ target: Target, bytesMax: UInt64 = 0
    ) throws -> (bodies: [[UInt8]], entries: [Int], oversized: Int) {
        addArchive(1, records: records.map(\.staged))
        let encoder = try XCTUnwrap(target.dialect.makeEncoder(.standard))
        var parts = ArchiveParts(
            paths: paths, stem: stem(1), filter: target.filter,
            limits: target.dialect.limits, encoder: encoder)
        var found: (bodies: [[UInt8]], entries: [Int], oversized: Int) = ([], [], 0)
        var first: UInt64 = 0
        while true {
            let next = try parts.next(
                from: first, end: nil, encoding: .none, bytesMax: bytesMax, shouldStop: { false })
            switch consume next {
            case .stopped:
                XCTFail("stopped")
                return found
            case .nothing(let upTo, let isLast, let oversized):
                found.oversized += oversized.count
                first = upTo
                if isLast { return found }
            case .part(let part):
                found.bodies.append(try part.body.all())
                found.entries.append(Int(part.entries))
                found.oversized += part.oversized.count
                first = part.range.end
                if part.isLast { return found }
            }
        }
    }

    func service(_ records: [Given]) throws -> UploadService {
        addArchive(1, records: records.map(\.staged))
        return try service()
    }
}

extension Body {
    func all() throws -> [UInt8] {
        var all: [UInt8] = []
        _ = try read {
            all += $0
            return true
        }
        XCTAssertEqual(UInt64(all.count), bytes)
        return all
    }
}

typealias Row = [String: Any]

/// A fake of Tests/TestSupport/fakes as a server, which runs as long as this object lives.
final class FakeServer {
    struct Request: Decodable {
        var number: Int
        var path: String
        var headers: [String: String]
        var bytes: Int
        var status: Int
        var said: String
    }

    static let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("TestSupport/fakes/server.py").path
    let directory: String
    let url: String
    private let process = Process()
    private let input = Pipe()

    init(_ kind: String, _ settings: String = "{}") throws {
        var template = Array("/tmp/cordwood-fake-XXXXXX".utf8CString)
        directory = String(cString: mkdtemp(&template))
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["python3", "-u", FakeServer.script, directory, kind, settings]
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        var text = ""
        while let byte = try output.fileHandleForReading.read(upToCount: 1), byte != Data([10]),
            !byte.isEmpty
        {
            text += utf8(byte)
        }
        guard let port = Int(text) else { throw POSIXError(.ECONNREFUSED) }
        url = "http://127.0.0.1:\(port)"
    }

    deinit {
        try? input.fileHandleForWriting.close()
        process.waitUntilExit()
        try? FileManager.default.removeItem(atPath: directory)
    }

    var requests: [Request] {
        decodedLines(directory + "/requests.jsonl").sorted { $0.number < $1.number }
    }

    var stored: [Row] {
        FakeServer.rows(FileManager.default.contents(atPath: directory + "/stored.jsonl") ?? Data())
    }

    static func rows(_ data: Data) -> [Row] {
        data.split(separator: 10).compactMap {
            (try? JSONSerialization.jsonObject(with: Data($0))) as? Row
        }
    }

    /// What a fake would store of these bodies; the test fails if the fake refuses one.
    static func check(
        _ kind: String, _ bodies: [[UInt8]], path: String, headers: [String: String],
        settings: String = "{}", file: StaticString = #filePath, line: UInt = #line
    ) throws -> [Row] {
        let scratch = Scratch()
        let files = bodies.indices.map { scratch.path + "/body-\($0)" }
        for (name, body) in zip(files, bodies) { writeAll(body, name) }
        let process = Process()
        let output = Pipe()
        let errors = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        let json = String(decoding: try JSONEncoder().encode(headers), as: UTF8.self)
        process.arguments =
            ["python3", script, "--check", kind, settings, path, json] + files
        process.standardOutput = output
        process.standardError = errors
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        let complaint = errors.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        XCTAssertEqual(process.terminationStatus, 0, utf8(complaint), file: file, line: line)
        return rows(data)
    }
}
