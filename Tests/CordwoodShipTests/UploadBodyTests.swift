// Bodies: rendering, one gzip member or one zstd frame, the same bytes on every attempt, and the
// way back to simpler encodings if a server refuses one. Read back with the system's own tools.

import CZlib
import CZstd
import CordwoodStore
import CordwoodTestSupport
import Glibc
import XCTest

@testable import CordwoodShip

final class UploadBodyTests: XCTestCase {
    private let content = (1...20_000).map { "line \($0)" }.joined(separator: "\n")
    private let id = TestStore.id(1)

    private func send(
        _ answers: String, _ change: (inout TargetOptions) -> Void
    ) throws -> (FaultServer, TestStore, UploadStatus) {
        let server = try FaultServer(answers)
        let store = try TestStore()
        store.addArchive(1, content: content)
        let service = try store.service()
        _ = try service.addTarget(
            store.target(server.url) {
                $0.kind = "http"
                change(&$0)
            })
        return (server, store, service.pass().0)
    }

    /// Fails the test if anything follows the one member.
    private func gunzip(_ bytes: [UInt8]) throws -> [UInt8] {
        var stream = z_stream()
        var input = bytes
        var output = [UInt8](repeating: 0, count: 8 << 20)
        let size = Int32(MemoryLayout<z_stream>.size)
        XCTAssertEqual(inflateInit2_(&stream, 15 + 16, ZLIB_VERSION, size), Z_OK)
        defer { inflateEnd(&stream) }
        let (code, produced): (Int32, Int) = input.withUnsafeMutableBufferPointer { source in
            output.withUnsafeMutableBufferPointer { target in
                stream.next_in = source.baseAddress
                stream.avail_in = UInt32(source.count)
                stream.next_out = target.baseAddress
                stream.avail_out = UInt32(target.count)
                let code = inflate(&stream, Z_FINISH)
                return (code, target.count - Int(stream.avail_out))
            }
        }
        XCTAssertEqual(code, Z_STREAM_END)
        XCTAssertEqual(stream.avail_in, 0, "more than one member")
        return Array(output[0..<produced])
    }

    private func unzstd(_ bytes: [UInt8]) throws -> [UInt8] {
        XCTAssertEqual(ZSTD_findFrameCompressedSize(bytes, bytes.count), bytes.count, "one frame")
        var output = [UInt8](repeating: 0, count: 8 << 20)
        let count = ZSTD_decompress(&output, output.count, bytes, bytes.count)
        XCTAssertEqual(ZSTD_isError(count), 0)
        return Array(output[0..<count])
    }

    func testArchiveInEveryEncoding() throws {
        let (plain, store, first) = try send("[]") { _ in }
        XCTAssertEqual(first, .ok)
        let file = try XCTUnwrap(store.files[1])
        XCTAssertEqual(plain.body(1), file)
        XCTAssertNil(plain.requests[0].headers["content-encoding"])
        let (gzip, _, second) = try send("[]") { $0.encoding = "gzip" }
        XCTAssertEqual(second, .ok)
        XCTAssertEqual(gzip.requests[0].headers["content-encoding"], "gzip")
        XCTAssertEqual(gzip.requests[0].headers["content-length"], "\(gzip.body(1).count)")
        XCTAssertEqual(try gunzip(gzip.body(1)), file)
        let (zstd, _, third) = try send("[]") { $0.encoding = "zstd" }
        XCTAssertEqual(third, .ok)
        XCTAssertEqual(zstd.requests[0].headers["content-encoding"], "zstd")
        XCTAssertEqual(try unzstd(zstd.body(1)), file)
    }

    func testLinesAreRenderedAndCompressedAlike() throws {
        try full()
        let (json, _, status) = try send("[]") { $0.format = "ndjson" }
        XCTAssertEqual(status, .ok)
        XCTAssertEqual(json.requests[0].headers["content-type"], "application/x-ndjson")
        let lines = json.body(1).split(separator: 10)
        XCTAssertEqual(lines.count, 20_000)
        XCTAssertEqual(json.body(1).last, 10)
        let (packed, _, _) = try send("[]") {
            $0.format = "ndjson"
            $0.encoding = "gzip"
        }
        XCTAssertEqual(try gunzip(packed.body(1)), json.body(1))
        let (text, _, _) = try send("[]") { $0.format = "text" }
        XCTAssertEqual(text.requests[0].headers["content-type"], "text/plain; charset=utf-8")
        XCTAssertEqual(text.body(1).split(separator: 10).count, 20_000)
    }

    func testSameBytesOnEveryAttempt() throws {
        let server = try FaultServer(#"[{"action":"lose"},{"action":"lose"}]"#)
        let store = try TestStore()
        store.addArchive(1, content: content)
        for _ in 1...3 {
            let service = try store.service()
            _ = try service.addTarget(
                store.target(server.url) {
                    $0.kind = "http"
                    $0.format = "ndjson"
                    $0.encoding = "gzip"
                })
            _ = service.pass()
        }
        XCTAssertEqual(server.stored["\"\(id)\""]?.times, 3)
        XCTAssertEqual(server.stored["\"\(id)\""]?.same, true)
        XCTAssertFalse(store.hasArchive(1))
    }

    func testFallsBackToSimplerEncodings() throws {
        let (server, store, status) = try send(#"[{"status":415},{"status":400}]"#) {
            $0.encoding = "zstd"
        }
        XCTAssertEqual(status, .ok)
        XCTAssertEqual(
            server.requests.map { $0.headers["content-encoding"] ?? "none" },
            ["zstd", "gzip", "none"])
        XCTAssertEqual(Set(server.requests.map { $0.headers["idempotency-key"] }), ["\"\(id)\""])
        XCTAssertEqual(server.body(3), store.files[1])
        XCTAssertFalse(store.hasArchive(1))
    }

    func testUnreadableArchiveIsQuarantined() throws {
        let store = try TestStore()
        writeAll([], "\(store.paths.archive(store.stem(1)))")
        let service = try store.service()
        _ = try service.addTarget(store.target("http://127.0.0.1:9"))
        let (status, result) = service.pass()
        XCTAssertEqual(status, .upload)
        XCTAssertEqual(result.failed, 1)
        XCTAssertEqual(store.queue, ["quarantined-0"])
        XCTAssertEqual(store.events.all, ["completed damaged 0"])
        XCTAssertTrue(store.hasArchive(1))
    }

    func testAlreadyThereCountsAsSent() throws {
        let (_, store, status) = try send(#"[{"status":412}]"#) {
            $0.url += "/{id}"
            $0.headers = "If-None-Match: *"
        }
        XCTAssertEqual(status, .ok)
        XCTAssertFalse(store.hasArchive(1))
        let (_, unnamed, doubted) = try send(#"[{"status":412}]"#) {
            $0.headers = "If-None-Match: *"
        }
        XCTAssertEqual(doubted, .upload, "what is there may be something else")
        XCTAssertTrue(unnamed.hasArchive(1))
        let (_, other, refused) = try send(#"[{"status":412}]"#) { _ in }
        XCTAssertEqual(refused, .upload)
        XCTAssertTrue(other.queue[0].hasSuffix("-refused"), "\(other.queue)")
    }

    func testNoTemporaryFileStays() throws {
        let (_, store, _) = try send(#"[{"status":500}]"#) { $0.encoding = "gzip" }
        let names = try FileManager.default.contentsOfDirectory(atPath: "\(store.paths.queue)")
        XCTAssertEqual(names.filter { $0.hasPrefix(".") }, [])
    }
}
