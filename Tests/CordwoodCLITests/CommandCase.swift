// A test with a store, the command, and records of any kind with any fields, even ones that no host
// of ours would write.

@testable import Cordwood
import CordwoodCore
import CordwoodEngine
import CordwoodTestSupport
import CordwoodTrace
import Foundation
import XCTest

class CommandCase: XCTestCase {
    static let command = URL(fileURLWithPath: CommandLine.arguments[0])
        .deletingLastPathComponent().appendingPathComponent("cordwood")
    static var program: String { command.path }
    private(set) var folder = ""
    var store: String { folder + "/store" }

    struct Done {
        var code: Int32
        var out: Data
        var error: String
        var text: String { String(decoding: out, as: UTF8.self) }
        var lines: [String] { text.split(separator: "\n").map(String.init) }

        /// Each line parsed as an object.
        func objects() throws -> [[String: Any]] {
            try lines.map {
                try XCTUnwrap(
                    JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any], $0)
            }
        }
    }

    override func setUpWithError() throws {
        folder = StorePlace.path("cli")
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    }

    override func tearDown() {
        try? FileManager.default.removeItem(atPath: folder)
    }

    @discardableResult
    func run(_ arguments: String..., input: Data = Data()) throws -> Done {
        try run(prepare(arguments), input)
    }

    /// Runs a line in the shell.
    func shell(_ line: String) throws -> Done {
        try run(prepare(["-c", line], program: URL(fileURLWithPath: "/bin/sh")))
    }

    /// Not started yet; with a minimal environment and no input.
    func prepare(_ arguments: [String], program: URL = command) -> Process {
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        process.environment = ["PATH": "/usr/bin:/bin", "TZ": "UTC"]
        process.standardInput = FileHandle.nullDevice
        return process
    }

    func run(_ process: Process, _ input: Data = Data()) throws -> Done {
        if !input.isEmpty {
            let given = folder + "/.input"
            try input.write(to: URL(fileURLWithPath: given))
            process.standardInput = try FileHandle(forReadingFrom: URL(fileURLWithPath: given))
        }
        let errors = folder + "/.errors"
        _ = FileManager.default.createFile(atPath: errors, contents: nil)
        process.standardError = FileHandle(forWritingAtPath: errors)
        let out = Pipe()
        process.standardOutput = out
        try process.run()
        let data = out.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        let error = try String(contentsOfFile: errors, encoding: .utf8)
        return Done(code: process.terminationStatus, out: data, error: error)
    }

    enum Value {
        case uint(UInt64)
        case int(Int64)
        case bool(Bool)
        case double(Double)
        case text(String)
        case bytes([UInt8])
    }

    /// Opens the store, lets `body` write, closes it.
    func write(segmentBytes: UInt64 = 0, _ body: (Writer) throws -> Void) throws {
        var options = EngineOptions()
        if segmentBytes > 0 { options.segmentBytes = segmentBytes }
        let engine = try Engine(directory: store, options: options)
        try body(Writer(engine: engine))
        XCTAssertTrue(try engine.close())
    }

    struct Writer {
        let engine: Engine

        /// Writes a record of that kind as given, valid or not.
        func record(
            kind: UInt8, logger: String, level: UInt8 = 9, time: UInt64 = 0, message: String = "",
            trace: [UInt8]? = nil, _ fields: [(String, Value)]
        ) {
            var encoded: [UInt8] = []
            Writer.put(UInt16(fields.count), &encoded)
            for (key, value) in fields { Writer.put(key, value, &encoded) }
            let log = engine.logger(logger)
            let text = Array(message.utf8)
            let bytes = trace ?? []
            let status = encoded.withUnsafeBytes { encoded in
                text.withUnsafeBytes { text in
                    bytes.withUnsafeBytes { bytes in
                        var body = RichBody()
                        body.message = text
                        body.encodedFields = encoded
                        body.kind = kind
                        body.timeNs = time
                        if trace != nil { body.trace = bytes.baseAddress }
                        return AppendSlow.rich(log.block, level, body)
                    }
                }
            }
            XCTAssertEqual(status, 0)
        }

        private static func put(_ key: String, _ value: Value, _ out: inout [UInt8]) {
            let (type, bytes): (UInt8, [UInt8]) =
                switch value {
                case .int(let number): (1, le(number))
                case .uint(let number): (2, le(number))
                case .double(let number): (3, le(number.bitPattern))
                case .bool(let flag): (4, [flag ? 1 : 0])
                case .text(let text): (5, le(UInt32(text.utf8.count)) + Array(text.utf8))
                case .bytes(let text): (5, le(UInt32(text.count)) + text)
                }
            out += [type, 0]
            put(UInt16(key.utf8.count), &out)
            out += Array(key.utf8) + bytes
        }

        private static func put<T: FixedWidthInteger>(_ number: T, _ out: inout [UInt8]) {
            out += le(number)
        }

        private static func le<T: FixedWidthInteger>(_ number: T) -> [UInt8] {
            withUnsafeBytes(of: number.littleEndian) { Array($0) }
        }
    }
}

extension CommandCase.Writer {
    typealias Value = CommandCase.Value

    static let start: UInt64 = 1_790_000_000_000_000_000

    /// The record that begins an exchange.
    func begin(_ id: String, _ method: String = "GET", _ url: String, at: UInt64 = start) {
        record(
            kind: 4, logger: "HTTP", level: 5, time: at, message: "\(method) \(url) …",
            [
                ("http.id", .text(id)), ("http.op", .text("begin")), ("http.side", .text("client")),
                ("http.request.method", .text(method)), ("url.full", .text(url)),
                ("http.start", .uint(at)),
            ])
    }

    /// The record that ends an exchange; `more` follows the usual fields.
    func end(
        _ id: String, _ method: String = "GET", _ url: String, status: UInt64? = 200,
        at: UInt64 = start, ms: UInt64 = 12, _ more: [(String, Value)] = []
    ) {
        var fields: [(String, Value)] = [
            ("http.id", .text(id)), ("http.op", .text("end")), ("http.side", .text("client")),
            ("http.request.method", .text(method)), ("url.full", .text(url)),
            ("server.address", .text(CapturedURL(Array(url.utf8)).host)), ("http.start", .uint(at)),
            ("http.duration", .uint(ms * 1_000_000)),
        ]
        if let status { fields.append(("http.response.status_code", .uint(status))) }
        record(
            kind: 4, logger: "HTTP", level: 9, time: at,
            message: "\(method) \(url) \(status ?? 0) \(ms).0 ms", fields + more)
    }
}
