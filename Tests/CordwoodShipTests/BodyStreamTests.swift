// Bodies that are made while they are sent: whatever is read of them, and in whichever order, they
// have the bytes of a body that was kept whole.

import CordwoodTestSupport
import Foundation
import XCTest

@testable import CordwoodCore
@testable import CordwoodShip
@testable import CordwoodStore

final class BodyStreamTests: XCTestCase {
    private func part(
        _ store: TestStore, _ target: Target, _ encoding: BodyEncoding, isStreamed: Bool
    ) throws -> (bytes: [UInt8], digest: String, stream: BodyStream?) {
        let again = target.encoders(.standard, store.paths)
        var parts = ArchiveParts(
            paths: store.paths, stem: store.stem(1), filter: target.filter,
            limits: target.dialect.limits, encoder: try XCTUnwrap(try again()), hashes: true,
            again: isStreamed ? again : nil)
        let next = try parts.next(from: 3, end: nil, encoding: encoding, shouldStop: { false })
        guard case .part(let part) = consume next else { throw POSIXError(.EIO) }
        let digest = try part.body.sha256(offset: 0, count: part.body.bytes)
        return (try part.body.all(), digest, part.body.stream)
    }

    func testAStreamHasTheSameBytes() throws {
        var random = SplitMix(4)
        let store = try TestStore(inMemory: true)
        let lines = (0..<3_000).map { line in
            "\(line) "
                + String(
                    (0..<700).map { _ in
                        Character(
                            Unicode.Scalar(
                                UInt8(33 + random.below(90))))
                    })
        }
        store.addArchive(1, content: lines.joined(separator: "\n"))
        let encodings = [BodyEncoding.gzip, .none, .zstd, .lz4]
        for encoding in encodings.prefix(sized(1, 2, 4)) {
            let target = try store.target("http://127.0.0.1:1") {
                $0.kind = "http"
                $0.format = "ndjson"
                $0.encoding = encoding.rawValue
            }
            let whole = try part(store, target, encoding, isStreamed: false)
            let streamed = try part(store, target, encoding, isStreamed: true)
            XCTAssertGreaterThan(whole.bytes.count, BodyStream.keptBytesMax, "\(encoding)")
            XCTAssertEqual(streamed.bytes, whole.bytes, "\(encoding)")
            XCTAssertEqual(streamed.digest, whole.digest)
            let stream = try XCTUnwrap(streamed.stream)
            for _ in 0..<6 {
                let at = random.below(whole.bytes.count)
                var piece = [UInt8](repeating: 0, count: 1 + random.below(400_000))
                let got = piece.withUnsafeMutableBytes { stream.read(into: $0, at: UInt64(at)) }
                XCTAssertGreaterThan(got, 0)
                XCTAssertEqual(Array(piece.prefix(got)), Array(whole.bytes[at..<at + got]))
            }
            var rest = [UInt8](repeating: 0, count: 8)
            let end = rest.withUnsafeMutableBytes { stream.read(into: $0, at: stream.bytes) }
            XCTAssertEqual(end, 0)
        }
    }
}
