// OTLP bodies: the golden bytes are those that the official schema's own library
// (opentelemetry-proto for Python) makes of the same content. Tests/OTLP shows that a receiver
// reads every field of real stores; here are the bytes, the limits and the answers.

import CordwoodCore
import CordwoodFormats
import CordwoodTestSupport
import XCTest

@testable import CordwoodShip
@testable import CordwoodStore

/// Records made by hand.
enum OTLPSamples {
    static let thread = ThreadInfo(
        process: CordwoodStore.ProcessInfo(
            laneID: LaneID(high: 0x0706_0504_0302_0100, low: 0x0F0E_0D0C_0B0A_0908),
            bootID: .zero, processID: 812, name: "shop", createdRealtime: 0, createdMonotonic: 0,
            resource: [("service.version", "1.2"), ("host.name", "hé")]),
        serial: 1, threadID: 813, name: "main")

    static func record(
        _ logger: String, level: UInt8, time: UInt64, _ message: [UInt8],
        sections: [UInt8] = [], change: (inout ModelRecord) -> Void = { _ in }
    ) -> Staged {
        var staged = Staged(thread: thread)
        staged.model.logger = Array(logger.utf8)
        staged.model.level = level
        staged.model.time = 1_800_000_000_000_000_000 + time
        staged.model.written = staged.model.time
        staged.model.message = message
        staged.model.originalLength = UInt64(message.count)
        staged.storedSections = sections
        change(&staged.model)
        return staged
    }

    static func section(_ kind: UInt8, _ body: [UInt8]) -> [UInt8] {
        [kind, 0, 0, 0] + little(UInt32(body.count)) + body
    }

    static func text(_ key: String, _ value: [UInt8]) -> [UInt8] {
        [5, 0] + little(UInt16(key.utf8.count)) + Array(key.utf8) + little(UInt32(value.count))
            + value
    }

    static func word(_ type: UInt8, _ key: String, _ value: UInt64) -> [UInt8] {
        [type, 0] + little(UInt16(key.utf8.count)) + Array(key.utf8) + little(value)
    }

    static func fields(_ all: [[UInt8]]) -> [UInt8] {
        little(UInt16(all.count)) + all.flatMap { $0 }
    }

    /// FORMAT §8.1, kind 7.
    static func exception(_ type: String, _ message: String, _ trace: String) -> [UInt8] {
        let parts = [type, message, trace].map { Array($0.utf8) }
        return section(7, parts.flatMap { little(UInt32($0.count)) } + parts.flatMap { $0 })
    }

    static let golden: [Staged] = [
        record(
            "app.db", level: 10, time: 1, Array("grüße".utf8),
            sections: section(
                2,
                fields([
                    word(1, "n", UInt64(bitPattern: -5)), word(2, "big", 1 << 63),
                    word(2, "u", UInt64(Int64.max)), word(3, "d", (1.5).bitPattern),
                    word(3, "nan", Double.nan.bitPattern), [4, 0, 2, 0] + Array("no".utf8) + [0],
                    text("s", []), text("raw", [0xFF, 0xFE]),
                ])) + exception("Broken", "", "at a")
        ) {
            $0.written += 1
            $0.file = Array("a.c".utf8)
            $0.line = 7
            $0.function = Array("main".utf8)
            $0.trace = Array(1...24) + [1]
        },
        record("x", level: 13, time: 4, [0xC0, 0x61]) {
            $0.logger = [0x78, 0xFF]
            $0.kind = 1
            $0.flags = RecordFlags.truncated.rawValue | RecordFlags.unverified.rawValue
            $0.originalLength = 99
        },
        record("app.db", level: 9, time: 3, []) { $0.trace = [UInt8](repeating: 0, count: 25) },
    ]

    /// The records as one body.
    static func body(
        _ records: [Staged], _ form: OTLPForm, entryBytesMax: Int = 1 << 20,
        messageBytesMax: Int = .max
    ) throws -> (bytes: [UInt8], cost: Int) {
        var encoder: any RecordEncoder = OTLPEncoder(form, entryBytesMax: entryBytesMax)
        var out: [UInt8] = []
        encoder.begin(&out)
        var cost = encoder.frameBytes
        let source = FakeSource(records)
        while let record = try source.advance() {
            var entry: [UInt8] = []
            encoder.makeEntry(
                record, distinctNs: record.timeNs, messageBytesMax: messageBytesMax, &entry)
            cost += encoder.cost(entry, record)
            encoder.take(entry, record, &out)
        }
        encoder.end(&out)
        return (out, cost)
    }

    static func json(_ records: [Staged], entryBytesMax: Int = 1 << 20) throws -> String {
        String(
            decoding: try body(records, .json, entryBytesMax: entryBytesMax).bytes, as: UTF8.self)
    }
}

final class OTLPEncoderTests: XCTestCase {
    private static let protobuf =
        [
            "0acd070abc010a160a0c736572766963652e6e616d6512060a0473686f700a3d0a13736572766963652e",
            "696e7374616e63652e696412260a2430303031303230332d303430352d303630372d303830392d306130",
            "6230633064306530660a120a0b70726f636573732e706964120318ac060a210a1770726f636573732e65",
            "786563757461626c652e6e616d6512060a0473686f700a180a0f736572766963652e76657273696f6e12",
            "050a03312e320a120a09686f73742e6e616d6512050a0368c3a912b3040a080a066170702e646212ae03",
            "090100b49376e2fa18100a1a064e4f544943452a090a076772c3bcc39f6532100a016e120b18fbffffff",
            "ffffffffff01321c0a0362696712150a1339323233333732303336383534373735383038320f0a017512",
            "0a18ffffffffffffffff7f320e0a0164120921000000000000f83f32100a036e616e1209210000000000",
            "00f87f32080a026e6f1202100032070a017312020a00320b0a0372617712043a02fffe321a0a0e657863",
            "657074696f6e2e7479706512080a0642726f6b656e321e0a14657863657074696f6e2e737461636b7472",
            "61636512060a046174206132170a0e636f64652e66696c652e7061746812050a03612e6332160a10636f",
            "64652e6c696e652e6e756d62657212021807321c0a12636f64652e66756e6374696f6e2e6e616d651206",
            "0a046d61696e32100a097468726561642e6964120318ad0632440a0e6c6f672e7265636f72642e756964",
            "12320a303030303130323033303430353036303730383039306130623030303030303031303030303030",
            "3030303030303030303045010000004a100102030405060708090a0b0c0d0e0f10520811121314151617",
            "18590200b49376e2fa181276090300b49376e2fa1810091a04494e464f2a020a0032100a097468726561",
            "642e6964120318ad0632440a0e6c6f672e7265636f72642e75696412320a303030303130323033303430",
            "35303630373038303930613062303030303030303130303030303030303030303030303030590300b493",
            "76e2fa1812d5010a060a0478efbfbd12ca01090400b49376e2fa18100d1a045741524e2a043a02c06132",
            "100a097468726561642e6964120318ad0632160a0d636f7264776f6f642e6b696e6412050a0367617032",
            "1d0a17636f7264776f6f642e6f726967696e616c5f62797465731202186332190a13636f7264776f6f64",
            "2e756e76657269666965641202100132440a0e6c6f672e7265636f72642e75696412320a303030303130",
            "323033303430353036303730383039306130623030303030303031303030303030303030303030303030",
            "30590400b49376e2fa18",
        ].joined()

    func testProtobufIsWhatTheOfficialLibraryWrites() throws {
        let body = try OTLPSamples.body(OTLPSamples.golden, .protobuf).bytes
        XCTAssertEqual(Hex.text(body), OTLPEncoderTests.protobuf)
    }

    func testJSONFollowsTheRulesOfOTLP() throws {
        let resource =
            #"{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}},"#
            + #"{"key":"service.instance.id","value":{"stringValue":"#
            + #""00010203-0405-0607-0809-0a0b0c0d0e0f"}},"#
            + #"{"key":"process.pid","value":{"intValue":"812"}},"#
            + #"{"key":"process.executable.name","value":{"stringValue":"shop"}},"#
            + #"{"key":"service.version","value":{"stringValue":"1.2"}},"#
            + #"{"key":"host.name","value":{"stringValue":"hé"}}]}"#
        let thread = #"{"key":"thread.id","value":{"intValue":"813"}}"#
        let uid =
            #"{"key":"log.record.uid","value":{"stringValue":"#
            + #""000102030405060708090a0b000000010000000000000000"}}"#
        let first =
            #"{"timeUnixNano":"1800000000000000001","observedTimeUnixNano":"1800000000000000002","#
            + #""severityNumber":10,"severityText":"NOTICE","body":{"stringValue":"grüße"},"#
            + #""attributes":[{"key":"n","value":{"intValue":"-5"}},"#
            + #"{"key":"big","value":{"stringValue":"9223372036854775808"}},"#
            + #"{"key":"u","value":{"intValue":"9223372036854775807"}},"#
            + #"{"key":"d","value":{"doubleValue":1.5}},"#
            + #"{"key":"nan","value":{"doubleValue":"NaN"}},"#
            + #"{"key":"no","value":{"boolValue":false}},"#
            + #"{"key":"s","value":{"stringValue":""}},"#
            + #"{"key":"raw","value":{"bytesValue":"//4="}},"#
            + #"{"key":"exception.type","value":{"stringValue":"Broken"}},"#
            + #"{"key":"exception.stacktrace","value":{"stringValue":"at a"}},"#
            + #"{"key":"code.file.path","value":{"stringValue":"a.c"}},"#
            + #"{"key":"code.line.number","value":{"intValue":"7"}},"#
            + #"{"key":"code.function.name","value":{"stringValue":"main"}},"#
            + thread + "," + uid + #"],"flags":1,"#
            + #""traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"1112131415161718"}"#
        let third =
            #"{"timeUnixNano":"1800000000000000003","observedTimeUnixNano":"1800000000000000003","#
            + #""severityNumber":9,"severityText":"INFO","body":{"stringValue":""},"#
            + #""attributes":["# + thread + "," + uid + "]}"
        let second =
            #"{"timeUnixNano":"1800000000000000004","observedTimeUnixNano":"1800000000000000004","#
            + #""severityNumber":13,"severityText":"WARN","body":{"bytesValue":"wGE="},"#
            + #""attributes":["# + thread + #",{"key":"cordwood.kind","value":{"#
            + #""stringValue":"gap"}},{"key":"cordwood.original_bytes","value":{"#
            + #""intValue":"99"}},{"key":"cordwood.unverified","value":{"boolValue":true}},"#
            + uid + "]}"
        let expected =
            #"{"resourceLogs":[{"resource":"# + resource + #","scopeLogs":["#
            + #"{"scope":{"name":"app.db"},"logRecords":["# + first + "," + third + "]},"
            + #"{"scope":{"name":"x\#u{FFFD}"},"logRecords":["# + second + "]}]}]}"
        XCTAssertEqual(try OTLPSamples.json(OTLPSamples.golden), expected)
    }

    func testNumbersThatAreNoJSONNumbers() throws {
        let values: [(Double, String)] = [
            (.infinity, #""Infinity""#), (-.infinity, #""-Infinity""#), (-0.0, "-0.0"),
            (.leastNonzeroMagnitude, "5e-324"), (1e300, "1e+300"),
        ]
        for (number, text) in values {
            let record = OTLPSamples.record(
                "a", level: 1, time: 0, [],
                sections: OTLPSamples.section(
                    2, OTLPSamples.fields([OTLPSamples.word(3, "d", number.bitPattern)])))
            let json = try OTLPSamples.json([record])
            XCTAssertTrue(json.contains(#"{"doubleValue":\#(text)}"#), json)
        }
    }

    func testOfTwoFieldsOfOneKeyTheLastCounts() throws {
        let record = OTLPSamples.record(
            "a", level: 1, time: 0, [],
            sections: OTLPSamples.section(
                2,
                OTLPSamples.fields([
                    OTLPSamples.word(1, "k", 1), OTLPSamples.word(1, "k", 2),
                    OTLPSamples.text("thread.id", Array("mine".utf8)),
                ]))
        ) {
            $0.context = OTLPSamples.fields([
                OTLPSamples.word(1, "k", 3), OTLPSamples.word(1, "c", 4),
                OTLPSamples.word(1, "c", 5),
            ])
        }
        let json = try OTLPSamples.json([record])
        XCTAssertTrue(
            json.contains(
                #""attributes":[{"key":"k","value":{"intValue":"2"}},"#
                    + #"{"key":"thread.id","value":{"stringValue":"mine"}},"#
                    + #"{"key":"c","value":{"intValue":"5"}},{"key":"log.record.uid""#), json)
        XCTAssertFalse(json.contains("droppedAttributesCount"), "that is no loss")
        // A field that does not fit is a loss.
        let long = OTLPSamples.record(
            "a", level: 1, time: 0, [],
            sections: OTLPSamples.section(
                2,
                OTLPSamples.fields([
                    OTLPSamples.word(1, "k", 1),
                    OTLPSamples.text("k", [UInt8](repeating: 0x61, count: 600)),
                ])))
        let cut = try OTLPSamples.json([long], entryBytesMax: 1_000)
        XCTAssertTrue(cut.contains(#"{"key":"k","value":{"intValue":"1"}}"#), cut)
        XCTAssertTrue(cut.contains(#""droppedAttributesCount":1"#), cut)
    }

    /// A receiver that accepts neither would refuse the whole body for it.
    func testAKeyWithoutANameAndATimeBeyondTheSign() throws {
        let record = OTLPSamples.record(
            "a", level: 1, time: 1 << 63 | 5, [],
            sections: OTLPSamples.section(2, OTLPSamples.fields([OTLPSamples.word(1, "", 7)])))
        let json = try OTLPSamples.json([record])
        XCTAssertTrue(json.contains(#"{"key":"_","value":{"intValue":"7"}}"#), json)
        XCTAssertTrue(json.contains(#""timeUnixNano":"9223372036854775807""#), json)
        XCTAssertFalse(json.contains("9223372036854775813"), json)
    }

    func testManyFieldsAreStillUnique() throws {
        let keys = (0..<40).map { "k\($0 % 30)" }
        let record = OTLPSamples.record(
            "a", level: 1, time: 0, [],
            sections: OTLPSamples.section(
                2,
                OTLPSamples.fields(
                    keys.enumerated().map { OTLPSamples.word(1, $1, UInt64($0)) })))
        let json = try OTLPSamples.json([record])
        XCTAssertFalse(json.contains("droppedAttributesCount"), json)
        XCTAssertTrue(json.contains(#"{"key":"k9","value":{"intValue":"39"}},{"key":"k10""#), json)
        XCTAssertTrue(json.contains(#"{"key":"k29","value":{"intValue":"29"}}"#), json)
    }

    func testOfTwoAttributesOfAResourceTheLastCounts() throws {
        var staged = OTLPSamples.record("a", level: 1, time: 0, [])
        let process = CordwoodStore.ProcessInfo(
            laneID: .zero, bootID: .zero, processID: 0, name: "", createdRealtime: 0,
            createdMonotonic: 0, resource: [("service.name", "a"), ("t", "1"), ("t", "2")])
        staged.thread = ThreadInfo(process: process, serial: 1, threadID: 0, name: "")
        let json = try OTLPSamples.json([staged])
        XCTAssertTrue(
            json.contains(
                #"{"attributes":[{"key":"service.name","value":{"stringValue":"a"}},"#
                    + #"{"key":"t","value":{"stringValue":"2"}}]}"#), json)
    }

    func testAttributesThatDoNotFitAreLeftOutAndCounted() throws {
        let control = [UInt8](repeating: 1, count: 3_000)
        let record = OTLPSamples.record(
            "a", level: 1, time: 0, Array("m".utf8),
            sections: OTLPSamples.section(
                2,
                OTLPSamples.fields([
                    OTLPSamples.text("large", control), OTLPSamples.text("small", [0x61]),
                ])))
        let json = try OTLPSamples.json([record], entryBytesMax: 10_000)
        XCTAssertFalse(json.contains("large"))
        XCTAssertTrue(json.contains(#"{"key":"small","value":{"stringValue":"a"}}"#), json)
        XCTAssertTrue(json.contains(#""droppedAttributesCount":1"#), json)
        // Escapes need room that protobuf does not need.
        let binary = try OTLPSamples.body([record], .protobuf, entryBytesMax: 10_000).bytes
        XCTAssertTrue(String(decoding: binary, as: UTF8.self).contains("large"))
    }

    func testResourceIsBounded() throws {
        let process = CordwoodStore.ProcessInfo(
            laneID: .zero, bootID: .zero, processID: 0, name: "", createdRealtime: 0,
            createdMonotonic: 0,
            resource: (0..<100).map { ("key\($0)", String(repeating: "v", count: 4_096)) })
        var staged = OTLPSamples.record("a", level: 1, time: 0, [])
        staged.thread = ThreadInfo(process: process, serial: 1, threadID: 0, name: "")
        for form in [OTLPForm.protobuf, .json] {
            let body = try OTLPSamples.body([staged], form).bytes
            XCTAssertLessThan(body.count, OTLPEncoder.resourceBytesMax + 1_024)
            XCTAssertTrue(String(decoding: body, as: UTF8.self).contains("unknown_service"))
        }
        XCTAssertTrue(
            try OTLPSamples.json([staged]).contains(#"],"droppedAttributesCount":99}"#))
    }

    func testCutMessagesSaySo() throws {
        let record = OTLPSamples.record("a", level: 1, time: 0, Array("abcü".utf8))
        let body = try OTLPSamples.body([record], .json, messageBytesMax: 4).bytes
        let json = String(decoding: body, as: UTF8.self)
        XCTAssertTrue(json.contains(#""body":{"stringValue":"abc"}"#), json)
        XCTAssertTrue(
            json.contains(#"{"key":"cordwood.original_bytes","value":{"intValue":"5"}}"#), json)
    }

    /// Whatever the records: a body is never larger than the stated cost of its entries, and the
    /// same records give the same bytes.
    func testCostIsNeverLessThanWhatTheBodyGrowsBy() throws {
        try full()
        for seed in 1...20 {
            var maker = RecordMaker(seed: UInt64(seed))
            let records = maker.records(200)
            for form in [OTLPForm.protobuf, .json] {
                let (bytes, cost) = try OTLPSamples.body(records, form)
                XCTAssertLessThanOrEqual(bytes.count, cost, "seed \(seed)")
                XCTAssertEqual(bytes, try OTLPSamples.body(records, form).bytes, "seed \(seed)")
            }
        }
    }

    private func stem(_ records: [Staged], _ paths: StorePaths) throws -> String {
        _ = try makeArchive(records, in: "\(paths.archives)", covers: [coverForTests], codec: .none)
        return String(nameForTests.dropLast(4))
    }

    func testBodiesKeepTheLimitAndHoldEveryRecordOnce() throws {
        let scratch = Scratch()
        let paths = StorePaths(FilePath(scratch.path))
        try paths.makeDirectories()
        var maker = RecordMaker(seed: 7)
        let records = maker.records(2_000)
        for (format, mark) in [("otlp-json", "\"timeUnixNano\""), ("otlp-protobuf", "")] {
            var options = TargetOptions(url: "http://localhost:4318")
            options.kind = "otlp"
            options.format = format
            options.bodyBytesMax = 100_000
            let dialect = try Target(options).dialect
            XCTAssertEqual(dialect.limits.bytes, 100_000)
            var parts = ArchiveParts(
                paths: paths, stem: try stem(records, paths),
                filter: try TargetFilter(level: 0, loggers: ""), limits: dialect.limits,
                encoder: dialect.makeEncoder(.standard)!)
            var next: UInt64 = 0
            var count = 0
            var entries = 0
            while true {
                let part = try parts.next(from: next, end: nil, encoding: .none) { false }
                guard case .part(let part) = consume part else { return XCTFail("no part") }
                XCTAssertLessThanOrEqual(part.body.bytes, 100_000)
                XCTAssertEqual(part.body.contentBytes, part.body.bytes)
                XCTAssertEqual(part.range.first, next)
                XCTAssertEqual(part.oversized, [])
                next = part.range.end
                entries += Int(part.entries)
                let text = String(
                    decoding: try part.body.all(), as: UTF8.self)
                if !mark.isEmpty { count += text.components(separatedBy: mark).count - 1 }
                if part.isLast { break }
            }
            XCTAssertEqual(entries, records.count)
            if !mark.isEmpty { XCTAssertEqual(count, records.count) }
        }
    }

    /// A resource with many attributes, a long logger name, a record with many fields: all of them
    /// fit into bodies of the smallest size, whatever the kind.
    func testTheFirstEntryOfABodyHasRoomForItsGroups() throws {
        try full()
        let scratch = Scratch()
        let paths = StorePaths(FilePath(scratch.path))
        try paths.makeDirectories()
        let process = CordwoodStore.ProcessInfo(
            laneID: LaneID(high: 1, low: 2), bootID: .zero, processID: 7, name: "p",
            createdRealtime: 0, createdMonotonic: 0,
            resource: (0..<100).map { ("key\($0)", String(repeating: "\u{1}v", count: 100)) })
        let logger = String(repeating: "\u{1}", count: 255)
        let records = (0..<20).map { number in
            var staged = OTLPSamples.record(
                logger, level: 9, time: UInt64(number), [UInt8](repeating: 1, count: 90_000),
                sections: OTLPSamples.section(
                    2,
                    OTLPSamples.fields(
                        (0..<40).map {
                            OTLPSamples.text("f\($0)", [UInt8](repeating: 0x78, count: 200))
                        })))
            staged.thread = ThreadInfo(process: process, serial: 1, threadID: 1, name: "")
            return staged
        }
        for (kind, format) in [
            ("otlp", "otlp-json"), ("otlp", "otlp-protobuf"), ("http", "otlp-json"),
            ("http", "otlp-protobuf"),
        ] {
            var options = TargetOptions(url: "http://localhost:4318")
            options.kind = kind
            options.format = format
            options.bodyBytesMax = 65_535
            XCTAssertThrowsError(try Target(options)) { error in
                XCTAssertEqual(
                    (error as? UploadError)?.text, "OTLP needs bodies of at least 65536 bytes")
            }
            options.bodyBytesMax = 65_536
            let dialect = try Target(options).dialect
            var parts = ArchiveParts(
                paths: paths, stem: try stem(records, paths),
                filter: try TargetFilter(level: 0, loggers: ""), limits: dialect.limits,
                encoder: dialect.makeEncoder(.standard)!)
            var next: UInt64 = 0
            while next < UInt64(records.count) {
                let part = try parts.next(from: next, end: nil, encoding: .none) { false }
                guard case .part(let part) = consume part else {
                    return XCTFail("\(kind) \(format)")
                }
                XCTAssertLessThanOrEqual(part.body.bytes, 65_536, "\(kind) \(format)")
                XCTAssertEqual(part.oversized, [], "\(kind) \(format)")
                next = part.range.end
            }
        }
    }

    func testExportedLinesAreRequestsOfTheirOwn() throws {
        var lines = OTLPLines()
        var out: [UInt8] = []
        let source = FakeSource(OTLPSamples.golden)
        while let record = try source.advance() { lines.append(record, to: &out) }
        XCTAssertEqual(out, [], "a line is held until it is full")
        lines.finish(&out)
        let expected = try OTLPSamples.body(OTLPSamples.golden, .json).bytes
        XCTAssertEqual(out, expected + [0x0A])
        for record in OTLPSamples.golden {
            XCTAssertTrue(utf8(out).contains(record.recordID), "records go by their own ids")
        }
        lines.finish(&out)
        XCTAssertEqual(out.count, expected.count + 1, "an empty line is none")
        var maker = RecordMaker(seed: 3)
        let many = FakeSource(maker.records(5_000))
        out = []
        while let record = try many.advance() { lines.append(record, to: &out) }
        lines.finish(&out)
        let sizes = out.split(separator: 0x0A).map(\.count)
        XCTAssertGreaterThan(sizes.count, 3)
        XCTAssertLessThan(sizes.max()!, 300_000)
    }
}
