// swift-log's handler: what its documentation requires (values, levels, metadata providers), and
// what reaches the store.

import Cordwood
import CordwoodCore
import CordwoodEngine
import CordwoodLogging
import CordwoodStore
import CordwoodTestSupport
import Foundation
import Logging
import XCTest

final class LogHandlerTests: XCTestCase {
    private var store = ""
    private var engine: Engine!

    private struct Broken: Error { let code: Int }
    private enum Local { @TaskLocal static var request: String? }

    override func setUpWithError() throws {
        store = StorePlace.path("logging")
        engine = try Engine(directory: store)
    }

    override func tearDownWithError() throws {
        try engine.close()
        try FileManager.default.removeItem(atPath: store)
    }

    private func logger(
        _ label: String = "net.http", provider: Logging.Logger.MetadataProvider? = nil
    ) -> Logging.Logger {
        Logging.Logger(label: label) {
            CordwoodLogHandler(label: $0, engine: engine, metadataProvider: provider)
        }
    }

    private func records() throws -> [Record] {
        let reader = try StoreReader(paths: [store], options: ReaderOptions())
        var found: [Record] = []
        while let record = reader.nextRecord() {
            if record.kind == 0, !record.logger.hasPrefix("Cordwood") { found.append(record) }
        }
        return found
    }

    private func fields(_ record: Record) -> [String: Field] {
        Dictionary(uniqueKeysWithValues: record.fields)
    }

    /// The only test that bootstraps, which a process can do once.
    func testBootstrap() throws {
        let engine = self.engine!
        LoggingSystem.bootstrap { CordwoodLogHandler(label: $0, engine: engine) }
        let log = Logging.Logger(label: "boot")
        log.info("through the system", metadata: ["order": "7"])
        let found = try records()
        XCTAssertEqual(found.map(\.message), ["through the system"])
        XCTAssertEqual(found[0].logger, "boot")
        XCTAssertEqual(fields(found[0]), ["order": .string("7")])
    }

    /// As in the documentation of LogHandler.
    func testValueSemantics() {
        var logger1 = logger("first logger")
        logger1.logLevel = .debug
        logger1[metadataKey: "only-on"] = "first"
        var logger2 = logger1
        logger2.logLevel = .error
        logger2[metadataKey: "only-on"] = "second"
        XCTAssertEqual(logger1.logLevel, .debug)
        XCTAssertEqual(logger2.logLevel, .error)
        XCTAssertEqual(logger1[metadataKey: "only-on"], "first")
        XCTAssertEqual(logger2[metadataKey: "only-on"], "second")
        XCTAssertEqual(logger("first logger").logLevel, .info)
        logger1.handler.metadata = [:]
        XCTAssertNil(logger1[metadataKey: "only-on"])
        XCTAssertEqual(logger2[metadataKey: "only-on"], "second")
    }

    func testLevels() throws {
        var log = logger()
        log.logLevel = .trace
        for level in Logging.Logger.Level.allCases { log.log(level: level, "\(level)") }
        let found = try records()
        XCTAssertEqual(
            found.map(\.message),
            ["trace", "debug", "info", "notice", "warning", "error", "critical"])
        XCTAssertEqual(found.map(\.level), [1, 5, 9, 10, 13, 17, 21])
    }

    /// A handler without its own level follows the engine's, even later.
    func testLevelsByPrefix() throws {
        let http = logger("net.http"), db = logger("app.db")
        var own = logger("net.own")
        XCTAssertEqual(http.logLevel, .info)
        http.debug("no")
        try engine.setLevel(.debug, prefix: "net")
        XCTAssertEqual(http.logLevel, .debug)
        XCTAssertEqual(db.logLevel, .info)
        http.debug("1")
        db.debug("no")
        own.logLevel = .error
        own.warning("no")
        own.error("2")
        try engine.setLevel(.off, prefix: "net")
        http.critical("no")
        own.critical("3")
        own.logLevel = .trace
        own.trace("4")
        XCTAssertEqual(try records().map(\.message), ["1", "2", "3", "4"])
        try engine.setLevel(Level(number: 2)!, prefix: "app")
        XCTAssertEqual(db.logLevel, .debug)
        try engine.close()
        db.critical("closed")
        own.critical("closed")
    }

    func testMetadata() throws {
        var log = logger()
        log[metadataKey: "handler"] = "h"
        log[metadataKey: "over"] = "handler"
        log.info(
            "x \(7)",
            metadata: [
                "over": "event", "n": .stringConvertible(7), "d": .stringConvertible(2.5),
                "b": .stringConvertible(true), "u": .stringConvertible(UInt8(200)),
                "id": .stringConvertible(UUID(uuidString: "6C2C2F65-6BF4-4CF0-A39B-0FBA8ED0D4D7")!),
                "nested": ["a": "1", "deep": ["list": ["x", ["y": "z"], []]]],
                "none": [], "empty": [:],
                "secret": .attributed("SECRET", attributes: [CordwoodPrivacy.redacted]),
                "clear": .attributed("seen", attributes: [CordwoodPrivacy.public]),
            ])
        let record = try XCTUnwrap(try records().first)
        XCTAssertEqual(record.message, "x 7")
        XCTAssertEqual(
            fields(record),
            [
                "handler": .string("h"), "over": .string("event"), "n": .int(7),
                "d": .double(2.5), "b": .bool(true), "u": .uint(200),
                "id": .string("6C2C2F65-6BF4-4CF0-A39B-0FBA8ED0D4D7"),
                "nested": .json(#"{"a":"1","deep":{"list":["x",{"y":"z"},[]]}}"#),
                "none": .json("[]"), "empty": .json("{}"), "secret": .string("<redacted>"),
                "clear": .string("seen"),
            ])
        // An array that holds itself cannot be made; a deep one can.
        var deep: Logging.Logger.MetadataValue = "end"
        for _ in 0..<1_000 { deep = .array([deep]) }
        log.info("deep", metadata: ["deep": deep])
        XCTAssertEqual(try records().count, 2)
    }

    /// Redacted metadata is not written, however deep it is.
    func testDeepMetadataIsNotWrittenInClear() throws {
        let secret: Logging.Logger.MetadataValue = .attributed(
            "SECRET", attributes: [CordwoodPrivacy.redacted])
        for depth in 0..<20 {
            var lists: Logging.Logger.MetadataValue = ["clear": "seen", "secret": secret]
            var names = lists
            for _ in 0..<depth {
                lists = .array([lists])
                names = .dictionary(["a": names])
            }
            logger().info("\(depth)", metadata: ["lists": lists, "names": names])
            let record = try XCTUnwrap(try records().last)
            let texts = record.fields.map { "\($0.key)=\($0.value)" }
            XCTAssertFalse(texts.contains { $0.contains("SECRET") }, "\(texts)")
            let word = depth < 16 ? "<redacted>" : "<nested too deeply>"
            XCTAssertEqual(texts.filter { $0.contains(word) }.count, 2)
            XCTAssertEqual(texts.filter { $0.contains("seen") }.count, depth < 16 ? 2 : 0)
            for (key, value) in record.fields {
                guard case .json = value else { return XCTFail("\(key) is \(value)") }
            }
        }
        var empty: Logging.Logger.MetadataValue = [:]
        for _ in 0..<16 { empty = .array([empty]) }
        logger().info("empty", metadata: ["e": empty])
        let brackets = (String(repeating: "[", count: 16), String(repeating: "]", count: 16))
        XCTAssertEqual(
            try records().last?.fields.map(\.value),
            [.json(brackets.0 + "\"<nested too deeply>\"" + brackets.1)])
    }

    func testMetadataProvider() throws {
        let provider = Logging.Logger.MetadataProvider {
            Local.request.map { ["request": "\($0)", "over": "provider"] } ?? [:]
        }
        var log = logger(provider: provider)
        log[metadataKey: "over"] = "handler"
        log.info("without")
        Local.$request.withValue("r7") {
            log.info("with")
            log.info("own", metadata: ["over": "event"])
        }
        let found = try records().map(fields)
        XCTAssertEqual(found[0], ["over": .string("handler")])
        XCTAssertEqual(found[1], ["over": .string("provider"), "request": .string("r7")])
        XCTAssertEqual(found[2], ["over": .string("event"), "request": .string("r7")])
    }

    func testPlaceAndSource() throws {
        let log = logger()
        log.info("here"); let line = #line
        log.info("elsewhere", source: "Other")
        let found = try records()
        XCTAssertEqual(found[0].file, "CordwoodLoggingTests/LogHandlerTests.swift")
        XCTAssertEqual(found[0].function, "testPlaceAndSource()")
        XCTAssertEqual(found[0].line, UInt32(line))
        XCTAssertTrue(found[0].fields.isEmpty)
        XCTAssertEqual(fields(found[1]), ["source": .string("Other")])
    }

    func testErrors() throws {
        logger().error("failed", error: Broken(code: 4), metadata: ["a": "1"])
        let found = fields(try XCTUnwrap(try records().first))
        XCTAssertEqual(found["exception.type"], .string("Broken"))
        XCTAssertEqual(found["exception.message"], .string("Broken(code: 4)"))
        XCTAssertEqual(found["a"], .string("1"))
    }

    /// The engine's own context, too.
    func testContext() throws {
        let ids = try XCTUnwrap(TraceIDs(traceID: String(repeating: "ab", count: 16)))
        let log = logger()
        Context.with(["request": 7, "over": "context"]) {
            Context.withTrace(ids) { log.info("in", metadata: ["over": "event"]) }
        }
        log.info("out")
        let found = try records()
        XCTAssertEqual(fields(found[0]), ["request": .int(7), "over": .string("event")])
        XCTAssertEqual(found[0].traceID, String(repeating: "ab", count: 16))
        XCTAssertTrue(found[1].fields.isEmpty)
        XCTAssertNil(found[1].traceID)
    }

    /// Through a handler that passes records on to several.
    func testMultiplex() throws {
        let engine = self.engine!
        let log = Logging.Logger(label: "multi") { label in
            MultiplexLogHandler([
                CordwoodLogHandler(label: label + ".a", engine: engine),
                CordwoodLogHandler(label: label + ".b", engine: engine),
            ])
        }
        log.info("twice")
        XCTAssertEqual(try records().map(\.logger).sorted(), ["multi.a", "multi.b"])
    }
}
