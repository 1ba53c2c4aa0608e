// An old collector refuses archives in a form it does not know. It then gets each archive in a form
// it knows, under the same id.

import CordwoodCore
import CordwoodTestSupport
import XCTest

@testable import CordwoodShip
@testable import CordwoodStore

final class OldCollectorTests: XCTestCase {
    private static let dense = Array("CWDIRB01".utf8)

    /// Archives of dense blocks, and the records of each.
    private func addDense(_ count: Int, _ store: TestStore) throws -> [[ModelRecord]] {
        try (1...count).map { number in
            var maker = RecordMaker(seed: UInt64(number))
            store.addArchive(number, records: maker.records(2_000), method: .dense)
            let path = store.paths.archive(store.stem(number))
            XCTAssertTrue(AnswerText.has(readAll("\(path)"), OldCollectorTests.dense))
            return drain(try ArchiveSource.open(path: path)).records
        }
    }

    private func records(_ body: [UInt8]) throws -> [ModelRecord] {
        let path = NSTemporaryDirectory() + "plain-\(UUID().uuidString).cwa"
        writeAll(body, path)
        defer { unlink(path) }
        let verified = try ArchiveVerifier.verify(path: FilePath(path))
        XCTAssertTrue(verified.isWhole, "\(verified.problems)")
        return drain(try ArchiveSource.open(path: FilePath(path))).records
    }

    /// A collector that was built before dense blocks refuses them: it gets each archive once, with
    /// all its records, in plain blocks.
    func testAnOldCollectorGetsPlainBlocks() throws {
        try full()
        let server = try FaultServer(rules: ["old=1"])
        let store = try TestStore()
        let wanted = try addDense(3, store)
        let service = try store.service()
        _ = try service.addTarget(store.target(server.url) { $0.requestsMax = 1 })
        let (status, result) = service.pass()
        XCTAssertEqual(status, .ok, "\(store.events.diagnostics)")
        XCTAssertEqual(result.uploaded, 3)
        XCTAssertEqual(store.queue, [])
        let keys = server.requests.map { $0.headers["idempotency-key"] ?? "" }
        guard keys.count == 4 else { return XCTFail("it is told once: \(keys)") }
        XCTAssertEqual(keys[0], keys[1])
        XCTAssertEqual(Set(server.stored.values.map(\.times)), [1])
        for (number, records) in wanted.enumerated() {
            let key = "\"\(TestStore.id(number + 1))\""
            let body = server.body(try XCTUnwrap(keys.lastIndex(of: key)) + 1)
            XCTAssertFalse(AnswerText.has(body, OldCollectorTests.dense))
            XCTAssertTrue(try self.records(body) == records, "archive \(number + 1)")
        }
        let told = store.events.diagnostics.filter { $0.contains("it gets plain blocks") }
        XCTAssertEqual(told.count, 1)
    }

    /// A collector that does not know extracts gets the archive without one.
    func testAnOldCollectorGetsNoExtract() throws {
        let server = try FaultServer(rules: ["old=1"])
        let store = try TestStore()
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent()
        let golden = tests.appendingPathComponent("Oracle/golden/extract.cwa").path
        let wanted = drain(try ArchiveSource.open(path: FilePath(golden)))
        writeAll(
            readAll(golden),
            "\(store.paths.archive("20261121T081530Z-812-9f3c5a0de1b27788.00000000-00000000"))")
        let service = try store.service()
        _ = try service.addTarget(store.target(server.url))
        XCTAssertEqual(service.pass().0, .ok, "\(store.events.diagnostics)")
        XCTAssertEqual(server.requests.count, 2)
        let body = server.body(2)
        XCTAssertFalse(AnswerText.has(body, Array("CWEXTR01".utf8)))
        XCTAssertTrue(try records(body) == wanted.records)
    }

    /// If an answer is lost, the same archive goes again under the same id.
    func testAnOldCollectorWhoseAnswerIsLost() throws {
        let dense = #"{"status":400,"body":"{\"error\":\"method 2 of the block at 143\"}"}"#
        let server = try FaultServer("[\(dense), {\"action\":\"half\"}]", rules: ["old=1"])
        let store = try TestStore()
        let wanted = try addDense(1, store)
        let service = try store.service()
        _ = try service.addTarget(store.target(server.url))
        XCTAssertEqual(service.pass().0, .upload)
        XCTAssertTrue(store.hasArchive(1))
        XCTAssertEqual(service.pass().0, .ok)
        XCTAssertEqual(server.stored.map(\.key), ["\"\(TestStore.id(1))\""])
        XCTAssertTrue(server.stored.values.allSatisfy(\.same), "byte for byte")
        XCTAssertTrue(try records(server.body(2)) == wanted[0])
    }
}
