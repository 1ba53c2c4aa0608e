// Bodies of application transactions: bytes by hand, events of one transaction together, deleted
// ones left out, hostile records by seed that the strict fake takes. Also the file `deleted`, and
// ids, headers and challenges that come from others.

import CordwoodTestSupport
import CordwoodTrace
import Foundation
import XCTest

@testable import CordwoodCore
@testable import CordwoodFormats
@testable import CordwoodShip
@testable import CordwoodStore

final class TransactionTests: XCTestCase {
    private var held: TestStore?
    private var store: TestStore { get throws { try XCTUnwrap(held) } }

    override func setUpWithError() throws { held = try TestStore() }
    override func tearDown() { held = nil }

    private static let one = "TXN17-586AB00B-0A2C-4E61-9C53-3F4C59D1A0F7"
    private static let two = "TXN-4-00000000-0000-4000-8000-000000000001"
    private static let start: UInt64 = 1_763_712_930_999_999_999

    private func target(_ change: (inout TargetOptions) -> Void = { _ in }) throws -> Target {
        try store.target("http://h/txn") {
            $0.kind = "transactions"
            $0.authToken = "token"
            change(&$0)
        }
    }

    /// A record of kind 3; `code` nil: no error.
    private func record(
        _ op: String, _ id: String, _ event: Int64? = nil, code: [UInt8]? = nil,
        text: [UInt8]? = nil, at seconds: UInt64 = 0
    ) -> Given {
        let process = CordwoodStore.ProcessInfo(
            laneID: .zero, bootID: .zero, processID: 812, name: "shop", createdRealtime: 0,
            createdMonotonic: 0,
            resource: [
                ("device.manufacturer", "AC\"ME"), ("os.type", "linux"), ("os.version", "6.1"),
            ])
        var given = Given(
            staged: Staged(
                thread: ThreadInfo(process: process, serial: 1, threadID: 813, name: "main")))
        given.own = [(Array("txn.op".utf8), .text(Array(op.utf8)))]
        given.own.append((Array("txn.id".utf8), .text(Array(id.utf8))))
        if let event { given.own.append((Array("txn.event".utf8), .int(event))) }
        if let code { given.own.append((Array("txn.error.code".utf8), .text(code))) }
        if let text { given.own.append((Array("txn.error.description".utf8), .text(text))) }
        given.context = [(Array("txn.id".utf8), .text(Array("TXN1-of-another".utf8)))]
        var model = ModelRecord()
        model.time = TransactionTests.start + seconds * 1_000_000_000
        model.kind = 3
        model.level = 9
        model.message = Array("\(id) \(op)".utf8)
        model.originalLength = UInt64(model.message.count)
        given.staged.model = model
        given.dress()
        return given
    }

    private func head(_ id: String, _ usecase: Int) -> String {
        #"{"apptxn/id":"\#(id)","apptxn/usecase":\#(usecase),"#
            + #""apptxn/user-agent-device-make":"AC\"ME","apptxn/user-agent-device-os":"linux","#
            + #""apptxn/user-agent-device-os-version":"6.1","apptxn/logs":["#
    }

    private func log(_ event: Int, _ time: String, _ rest: String) -> String {
        #"{"apptxnlog/usecase-event":\#(event),"apptxnlog/timestamp":"\#(time)","#
            + #""apptxnlog/in-ctx-err-code":\#(rest)}"#
    }

    /// Whatever answers in between: only the server ends an event.
    func testAnswersOfOthersGiveNothingUp_B_TXN_7() throws {
        let store = try self.store
        let event = record("event", TransactionTests.one, 0)
        let service = try store.service([event])
        let told = ToldTransport { request in
            let isFirst = request.headers.contains {
                $0.name == "Idempotency-Key" && $0.value.contains(TestStore.id(1))
            }
            guard isFirst else { return UploadResponse(status: 200) }
            return UploadResponse(
                status: 200, headers: [("Content-Type", "text/html")], body: Array("<p>".utf8))
        }
        _ = try service.addTarget(target { $0.transport = told })
        for number in 2...8 {
            store.addArchive(number, records: [event.staged])
            for _ in 0..<2 { _ = service.pass() }
            let first = store.queue.filter { !$0.hasPrefix("sent-") }
            XCTAssertEqual(first.map { $0.prefix(6) }, ["retry-"], "\(store.queue)")
        }
        XCTAssertEqual(store.queue.filter { $0.hasPrefix("sent-") }.count, 7)
    }

    // ── Bodies ──

    func testGolden_B_TXN_5() throws {
        let (one, two) = (TransactionTests.one, TransactionTests.two)
        let given = [
            record("begin", one), record("event", one, 0), record("event", two, -9),
            record("event", one, 1, code: Array("42".utf8), text: Array("Baad!".utf8), at: 2),
            record("event", one, 2, code: [], at: 2), record("end", one, at: 3),
        ]
        let (bodies, entries, _) = try store.bodies(given, target())
        XCTAssertEqual(
            bodies.map(utf8),
            [
                #"{"apptxns":["# + head(one, 17) + log(0, "Fri, 21 Nov 2025 08:15:30 GMT", "null")
                    + ","
                    + log(
                        1, "Fri, 21 Nov 2025 08:15:32 GMT",
                        #""42","apptxnlog/in-ctx-err-desc":"Baad!""#)
                    + "," + log(2, "Fri, 21 Nov 2025 08:15:32 GMT", #""""#) + "]},"
                    + head(two, -4) + log(-9, "Fri, 21 Nov 2025 08:15:30 GMT", "null") + "]}]}"
            ])
        XCTAssertEqual(entries, [4])
    }

    func testNothingToSay_B_TXN_4() throws {
        let given = [
            record("begin", TransactionTests.one), record("end", TransactionTests.one),
            record("event", "TXN17-no-id", 1), record("event", TransactionTests.one),
            record("event", TransactionTests.one, Int64.max),
        ]
        XCTAssertTrue(try store.bodies(given, target()).bodies.isEmpty)
    }

    func testDeletedIsLeftOut_B_TXN_2() throws {
        let (one, two) = (TransactionTests.one, TransactionTests.two)
        let given = (0..<4).flatMap {
            [record("event", one, $0, at: UInt64($0)), record("event", two, $0, at: UInt64($0))]
        }
        try store.addArchive(1, records: given.map(\.staged))
        func sent() throws -> [String] {
            let target = try target()
            let encoder = try target.dialect.makeEncoder(.standard, store: store.paths)
            var parts = ArchiveParts(
                paths: try store.paths, stem: try store.stem(1),
                filter: target.filter, limits: target.dialect.limits,
                encoder: try XCTUnwrap(encoder))
            let next = try parts.next(from: 0, end: nil, encoding: .none, shouldStop: { false })
            switch consume next {
            case .part(let part):
                let bytes = try part.body.all()
                let object = try XCTUnwrap(
                    try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: [Row]])
                return try XCTUnwrap(object["apptxns"]).flatMap { one in
                    ((one["apptxn/logs"] as? [Row]) ?? []).map {
                        "\(one["apptxn/usecase"] ?? "") \($0["apptxnlog/usecase-event"] ?? "")"
                    }
                }
            default: return []
            }
        }
        XCTAssertEqual(try sent().count, 8)
        let root = try store.root
        let second: UInt64 = 1_000_000_000
        try DeletedFile.forget(
            storeDirectory: FilePath(root), id: TransactionID(one),
            until: StoreMoment(timeNs: TransactionTests.start + 2 * second))
        XCTAssertEqual(try sent(), ["-4 0", "-4 1", "-4 2", "-4 3", "17 3"])
        try DeletedFile.forget(
            storeDirectory: FilePath(root), id: nil,
            until: StoreMoment(timeNs: TransactionTests.start + second))
        XCTAssertEqual(try sent(), ["-4 2", "-4 3", "17 3"])
        try DeletedFile.forget(
            storeDirectory: FilePath(root), id: nil,
            until: StoreMoment(timeNs: TransactionTests.start + 9 * second))
        XCTAssertEqual(try sent(), [])
        XCTAssertTrue(
            try DeletedFile.read(storeDirectory: FilePath(root)).ids.isEmpty, "all covers them")
    }

    func testHostileTextAndLimits() throws {
        try full()
        for seed in [UInt64(1), 2, 3] {
            var maker = HostileMaker(seed: seed)
            let given = (0..<300).map { number -> Given in
                let id = number % 7 == 0 ? TransactionTests.two : TransactionTests.one
                return record(
                    "event", id, Int64(number), code: number % 3 == 0 ? nil : maker.text(40),
                    text: number % 3 == 1 ? maker.text(2_000) : nil, at: UInt64(number))
            }
            let target = try target {
                $0.bodyBytesMax = 20_000
                $0.bodyRecordsMax = 50
            }
            let made = try store.bodies(given, target)
            XCTAssertEqual(made.entries.reduce(0, +), 300, "seed \(seed): none is left out")
            XCTAssertEqual(made.oversized, 0)
            for (body, entries) in zip(made.bodies, made.entries) {
                XCTAssertLessThanOrEqual(entries, 50)
                XCTAssertLessThanOrEqual(body.count, 20_000, "seed \(seed)")
            }
            let rows = try FakeServer.check(
                "transactions", made.bodies, path: "/txn",
                headers: [
                    "authorization": "Token token=\"token\"",
                    "content-type": target.dialect.contentType,
                ], settings: #"{"any_key": true}"#)
            XCTAssertEqual(rows.count, 300)
        }
    }

    func testHeaders_B_TXN_4() throws {
        func headers(
            _ parameters: String?, token: String? = "a\"b\\c"
        ) throws -> (String, String?) {
            let target = try target {
                $0.parameters = parameters
                $0.authToken = token
            }
            let delivery = Delivery(
                id: "x", archiveID: "x", range: nil, fileName: "x", encoding: .none,
                credentials: target.keeper.current, nowUnixMs: 0)
            let found = target.dialect.headers(delivery)
            return (
                target.dialect.contentType, found.first { $0.name == "Authorization" }?.value
            )
        }
        let plain = try headers(nil)
        XCTAssertEqual(plain.0, "application/apptxnset-v1+json;charset=UTF-8")
        XCTAssertEqual(plain.1, #"Token token="a\"b\\c""#)
        let named = try headers("prefix=vnd.acme.\nversion=2.1\nscheme=X-Key\nparam=key")
        XCTAssertEqual(named.0, "application/vnd.acme.apptxnset-v2.1+json;charset=UTF-8")
        XCTAssertEqual(named.1, #"X-Key key="a\"b\\c""#)
        XCTAssertNil(try headers(nil, token: nil).1)
        for wrong in ["prefix=a/b", "version=", "scheme=a b", "param=\u{e9}", "os=x"] {
            XCTAssertThrowsError(try headers(wrong), wrong)
        }
    }

    // ── What comes from others ──

    func testDeletedFile() throws {
        let root = try store.root
        XCTAssertEqual(try DeletedFile.read(storeDirectory: FilePath(root)), DeletedFile())
        let id = try XCTUnwrap(TransactionID(TransactionTests.one))
        try DeletedFile.forget(
            storeDirectory: FilePath(root), id: id, until: StoreMoment(timeNs: 5))
        try DeletedFile.forget(
            storeDirectory: FilePath(root), id: id, until: StoreMoment(timeNs: 3))
        let file = try DeletedFile.read(storeDirectory: FilePath(root))
        XCTAssertTrue(file.covers(id, StoreMoment(timeNs: 5)))
        XCTAssertFalse(file.covers(id, StoreMoment(timeNs: 6)))
        XCTAssertEqual(
            utf8(file.bytes), "cordwood deleted\nformat 1\n\(TransactionTests.one) 5\n")
        for text in ["", "cordwood deleted\n", "cordwood policy\nformat 1\n"] {
            XCTAssertThrowsError(try DeletedFile.parse(Array(text.utf8), path: "x"), text)
        }
        let boot = String(repeating: "ab", count: 16)
        for text in [
            "format 2\n", "format 1\nall -1\n", "format 1\n\(TransactionTests.one) x\n",
            "format 1\nall 1 \(boot)\n", "format 1\nall 1 \(boot) x\n",
            "format 1\nall 1 \(boot.dropFirst()) 1\n",
            "format 1\nall 1 +\(boot.dropFirst()) 1\n",
            "format 1\n" + String(repeating: "all 1\n", count: DeletedFile.allMax + 1),
        ] {
            let all = "cordwood deleted\n" + text
            XCTAssertThrowsError(try DeletedFile.parse(Array(all.utf8), path: "x"), text)
        }
        let later = "cordwood deleted\nformat 1\nnew thing\nall 18446744073709551615\n\n"
        XCTAssertEqual(
            try DeletedFile.parse(Array(later.utf8), path: "x").all,
            [StoreMoment(timeNs: .max)])
    }

    /// Within a boot the monotonic clock decides, however the other is set; between boots, the
    /// time.
    func testDeletedFileAndClocks() throws {
        let root = try store.root
        let id = try XCTUnwrap(TransactionID(TransactionTests.one))
        func moment(_ boot: UInt64, _ time: UInt64, _ monotonic: UInt64) -> StoreMoment {
            StoreMoment(
                timeNs: time, boot: LaneID(high: 0x0123_4567_89AB_CDEF, low: boot),
                monotonicNs: monotonic)
        }
        func forget(_ id: TransactionID?, _ until: StoreMoment) throws -> DeletedFile {
            try DeletedFile.forget(storeDirectory: FilePath(root), id: id, until: until)
            return try DeletedFile.read(storeDirectory: FilePath(root))
        }
        for one in [nil, id] {
            unlink(root + "/deleted")
            let file = try forget(one, moment(1, 100, 50))
            XCTAssertTrue(file.covers(id, moment(1, 900, 50)), "the clock ran ahead")
            XCTAssertFalse(file.covers(id, moment(1, 10, 51)), "it was set back since")
            XCTAssertTrue(file.covers(id, moment(2, 100, 99)), "another boot, before")
            XCTAssertFalse(file.covers(id, moment(2, 101, 1)), "another boot, after")
            XCTAssertEqual(
                file.covers(TransactionID(usecase: 1, random: (1, 1)), moment(1, 1, 1)), one == nil)
            XCTAssertEqual(try DeletedFile.parse(file.bytes, path: "x"), file)
        }
        // Each boot's own deletion decides about its records, later deletions by their time.
        unlink(root + "/deleted")
        _ = try forget(nil, moment(1, 100, 50))
        var file = try forget(nil, moment(2, 80, 7))
        XCTAssertTrue(file.covers(id, moment(1, 900, 50)))
        XCTAssertTrue(file.covers(id, moment(1, 80, 60)))
        XCTAssertFalse(file.covers(id, moment(1, 90, 60)))
        XCTAssertFalse(file.covers(id, moment(2, 70, 8)), "that of boot 1 says nothing of it")
        XCTAssertTrue(file.covers(id, moment(3, 100, 0)))
        // A second deletion in a boot takes back nothing that the first covered.
        file = try forget(nil, moment(2, 60, 9))
        XCTAssertTrue(file.covers(id, moment(2, 70, 8)))
        XCTAssertTrue(file.covers(id, moment(1, 80, 60)))
        // Nor does one in a later boot, of all or of the same, if the clock had run ahead.
        for again in [nil, id] {
            unlink(root + "/deleted")
            _ = try forget(id, moment(1, 100, 50))
            file = try forget(again, moment(2, 110, 3))
            XCTAssertTrue(file.covers(id, moment(1, 900, 50)))
            XCTAssertFalse(file.covers(id, moment(1, 900, 51)))
            XCTAssertTrue(file.covers(id, moment(2, 900, 3)))
            XCTAssertEqual(try DeletedFile.parse(file.bytes, path: "x"), file)
        }
        unlink(root + "/deleted")
        _ = try forget(nil, moment(1, 100, 50))
        for boot in UInt64(10)..<40 { file = try forget(nil, moment(boot, boot, 1)) }
        XCTAssertEqual(file.all.count, DeletedFile.allMax)
        XCTAssertTrue(file.covers(id, moment(1, 100, 0)), "what was merged covers by its time")
    }

    /// It reads back as many as it remembers, and refuses one more.
    func testDeletedFileIsBounded() throws {
        try full()
        var text = "cordwood deleted\nformat 1\n"
        for number in 0..<UInt64(DeletedFile.idsMax) {
            let id = TransactionID(usecase: .min, random: (0, number))
            text += "\(id.text) \(UInt64.max)\n"
        }
        let root = try store.root
        writeAll(Array(text.utf8), root + "/deleted")
        let more = TransactionID(usecase: 1, random: (0, 0))
        XCTAssertThrowsError(
            try DeletedFile.forget(
                storeDirectory: FilePath(root), id: more, until: StoreMoment(timeNs: 1))
        ) { XCTAssertEqual(($0 as? UploadError)?.status, .limit) }
        let list = try DeletedFile.read(storeDirectory: FilePath(root))
        XCTAssertEqual(list.ids.count, DeletedFile.idsMax)
        XCTAssertFalse(list.covers(more, StoreMoment(timeNs: 1)))
        let known = TransactionID(usecase: .min, random: (0, 7))
        XCTAssertNoThrow(
            try DeletedFile.forget(
                storeDirectory: FilePath(root), id: known, until: StoreMoment(timeNs: .max)))
    }

    func testTransactionIDs_B_TXN_1() {
        let id = TransactionID(usecase: 17, random: (.max, .max))
        XCTAssertEqual(id.text, "TXN17-FFFFFFFF-FFFF-4FFF-BFFF-FFFFFFFFFFFF")
        XCTAssertEqual(TransactionID(id.text), id)
        let least = TransactionID(usecase: .min, random: (0, 0))
        XCTAssertEqual(least.text, "TXN-2147483648-00000000-0000-4000-8000-000000000000")
        XCTAssertEqual(least.text.utf8.count, TransactionID.bytesMax)
        XCTAssertEqual(TransactionID(least.text)?.usecase, .min)
        XCTAssertEqual((0..<16).map { id.byte($0) }[6], 0x4F)
        // With one byte changed it is either no id, or another id with that spelling.
        let good = Array(TransactionTests.one.utf8)
        for at in good.indices {
            for byte in UInt8.min...UInt8.max where byte != good[at] {
                var changed = good
                changed[at] = byte
                if let found = TransactionID(bytes: changed) {
                    XCTAssertEqual(found.bytes, changed)
                }
            }
            XCTAssertNil(TransactionID(bytes: Array(good[..<at])))
        }
    }

    func testTraceparent_B_TXN_8() {
        func parse(_ text: String) -> [UInt8]? {
            var room = [UInt8](repeating: 0xEE, count: 25)
            let isOne = text.withCString { text in
                room.withUnsafeMutableBytes { Traceparent.parse(text, into: $0.baseAddress!) }
            }
            if !isOne { XCTAssertEqual(room, [UInt8](repeating: 0xEE, count: 25), text) }
            return isOne ? room : nil
        }
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        let found = parse(good)
        XCTAssertEqual(found.map { hex($0[..<16]) }, "4bf92f3577b34da6a3ce929d0e0e4736")
        XCTAssertEqual(found.map { hex($0[16...]) }, "00f067aa0ba902b701")
        XCTAssertNotNil(parse("01" + good.dropFirst(2) + "-more"))
        XCTAssertNil(parse("01" + good.dropFirst(2) + "more"))
        XCTAssertNil(parse(good + "-more"))
        XCTAssertNil(parse("ff" + good.dropFirst(2)))
        XCTAssertNil(parse(good.uppercased()))
        XCTAssertNil(parse("00-\(String(repeating: "0", count: 32))-00f067aa0ba902b7-01"))
        XCTAssertNil(parse("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"))
        for count in 0..<good.utf8.count { XCTAssertNil(parse(String(good.prefix(count)))) }
        var text = [CChar](repeating: 0, count: Traceparent.bytes + 1)
        found!.withUnsafeBytes { Traceparent.write($0.baseAddress!, to: &text) }
        XCTAssertEqual(text.map { UInt8(bitPattern: $0) }, Array(good.utf8) + [0])
    }

    func testChallenges_B_TXN_7() {
        let cases: [(String, String, String)] = [
            ("", "", ""), ("Bearer", "Bearer", ""), ("Bearer realm=\"shop\"", "Bearer", "shop"),
            ("  Bearer   REALM = \"a \\\"b\\\" \\\\\" , scope=x", "Bearer", "a \"b\" \\"),
            ("Digest nonce=\"a, realm=x\", realm=shop", "Digest", "shop"),
            ("Basic realm=\"unfinished", "Basic", "unfinished"),
            ("Basic realm=\"\\", "Basic", "\\"),
            ("Negotiate abc==, Basic realm=\"x\"", "Negotiate", ""),
            ("Basic, Bearer realm=\"other\"", "Basic", ""), (",,,", "", ""),
            ("=\"=\"=", "", ""), ("Bearer \u{1}\u{2}, realm=\"x\"", "Bearer", "x"),
        ]
        for (text, scheme, realm) in cases {
            let challenge = Challenge(text)
            XCTAssertEqual(challenge.scheme, scheme, text)
            XCTAssertEqual(challenge.realm, realm, text)
        }
        var random = SplitMix(7)
        for _ in 0..<2_000 {
            let bytes = (0..<random.below(60)).map { _ in
                Array("aB=\",\\ \t;\u{e9}realm".utf8)[random.below(16)]
            }
            _ = Challenge(utf8(bytes))
        }
    }

    func testDates() {
        XCTAssertEqual(Times.httpDate(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT")
        XCTAssertEqual(Times.httpDate(0), "Thu, 01 Jan 1970 00:00:00 GMT")
        XCTAssertEqual(Times.httpDate(.max), "Fri, 31 Dec 9999 23:59:59 GMT")
        XCTAssertEqual(Times.httpDate(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT")
        for day in stride(from: Int64(0), to: 40_000, by: 13) {
            let text = Times.httpDate(day * 86_400 + 3_661)
            XCTAssertEqual(RetryAfter.dateSeconds(text), day * 86_400 + 3_661, text)
        }
    }
}
