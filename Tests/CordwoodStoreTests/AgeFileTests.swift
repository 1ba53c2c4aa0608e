// The age format: published headers with their file key (C2SP CCTV), headers that must be refused,
// and payloads of every size around a chunk, read whole and at random, cut, added to, reordered and
// changed at every byte.

import CordwoodTestSupport
import Foundation
import Glibc
import XCTest

@testable import CordwoodStore

/// An age file as the tests make and open it.
enum AgeFile {
    static func bytes(
        of plain: [UInt8], to recipients: [AgeRecipient], stanzas: [AgeStanza] = [],
        fileKey: AgeSecret = AgeSecret(AgeCrypto.random(16))
    ) -> [UInt8] {
        let sealer = AgeSealer(fileKey: fileKey)
        var out = AgeHeader.make(
            recipients.compactMap { $0.stanza(fileKey) } + stanzas, fileKey: fileKey)
        out += sealer.salt
        var random = SplitMix(UInt64(plain.count))
        var at = 0
        while at < plain.count {
            let count = min(plain.count - at, 1 + random.below(100_000))
            plain[at..<(at + count)].withUnsafeBytes { sealer.append($0) { out += Array($0) } }
            at += count
        }
        sealer.finish { out += Array($0) }
        return out
    }

    /// The whole content, strictly; nil: encrypted for another identity.
    static func open(_ bytes: [UInt8], _ identity: AgeIdentity) throws(AgeError) -> [UInt8]? {
        let file = Descriptor(bytes)
        guard let header = try AgeHeader.parse(bytes) else { throw .damaged("cut header") }
        guard let fileKey = try identity.open(header) else { return nil }
        guard header.isGenuine(fileKey) else { throw .damaged("MAC") }
        let payload = try AgePayload(
            descriptor: file.number, start: UInt64(header.count), fileBytes: UInt64(bytes.count),
            fileKey: fileKey)
        if let problem = payload.problem { throw problem }
        return try read(payload, 0..<Int(payload.size))
    }

    static func read(_ payload: AgePayload, _ range: Range<Int>) throws(AgeError) -> [UInt8] {
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: range.count + 1, alignment: 1)
        defer { room.deallocate() }
        room[range.count] = 0xA5
        try payload.read(range.count, at: UInt64(range.lowerBound), into: room.baseAddress!)
        XCTAssertEqual(room[range.count], 0xA5, "written behind the end")
        return Array(room[..<range.count])
    }

    /// An unlinked file with that content.
    final class Descriptor {
        let number: Int32
        init(_ bytes: [UInt8]) {
            var template = Array("/tmp/cordwood-age-XXXXXX".utf8CString)
            number = mkstemp(&template)
            unlink(template)
            bytes.withUnsafeBytes {
                XCTAssertEqual(write(number, $0.baseAddress, $0.count), $0.count)
            }
        }
        deinit { close(number) }
    }
}

final class AgeFileTests: XCTestCase {
    private static let chunk = 64 << 10
    private let identity = AgeIdentity.generate()

    // ── Published headers ──

    private static let fileKey = Array("YELLOW SUBMARINE".utf8)
    private static let older =
        "AGE-SECRET-KEY-1XMWWC06LY3EE5RYTXM9MFLAZ2U56JJJ36S0MYPDRWSVLUL66MV4QX3S7F6"
    private static let newer =
        "AGE-SECRET-KEY-1EGTZVFFV20835NWYV6270LXYVK2VKNX2MMDKWYKLMGR48UAWX40Q2P2LM0"
    private static let olderStanza = """
        -> X25519 TEiF0ypqr+bpvcqXNyCVJpL7OuwPdVwPL7KQEbFDOCc
        EmECAEcKN+n/Vs9SbWiV+Hu0r+E8R77DdWYyd83nw7U

        """
    private static let newerStanza = """
        -> X25519 TEiF0ypqr+bpvcqXNyCVJpL7OuwPdVwPL7KQEbFDOCc
        hjabGXwSLQ9c3S6Lw2i+S2Tu2fiwQHHslbBN6B41FLE

        """

    private enum Answer: Equatable { case opens, refused, notForUs, cut }

    private func answer(_ lines: String, _ key: String) throws -> Answer {
        let identity = try AgeIdentity(key.utf8)
        do throws(AgeError) {
            let text = Array("age-encryption.org/v1\n\(lines)\n".utf8)
            guard let header = try AgeHeader.parse(text) else { return .cut }
            guard let fileKey = try identity.open(header) else { return .notForUs }
            XCTAssertEqual(fileKey.bytes, AgeFileTests.fileKey)
            return header.isGenuine(fileKey) ? .opens : .refused
        } catch {
            return .refused
        }
    }

    func testPublishedHeaders() throws {
        let full = String(repeating: "QUFB", count: 16)
        let cases: [(String, String, Answer)] = [
            (
                AgeFileTests.olderStanza + "--- Vn+54jqiiUCE+WZcEVY3f1sqHjlu/z1LCQ/T7Xm7qI0",
                AgeFileTests.older, .opens
            ),
            (
                AgeFileTests.newerStanza + "--- WyJp9F/9FOZh7gJdheq2WIJcwHgYc8NIVh3ddwhrcNg",
                AgeFileTests.newer, .opens
            ),
            // Another stanza with an empty body, and one with two full lines.
            (
                AgeFileTests.olderStanza + "-> empty\n\n"
                    + "--- 697zSC9pa/ZLNIaXGtuwcUobmxv+Dpx48Hv0papk5c0", AgeFileTests.older, .opens
            ),
            (
                AgeFileTests.olderStanza + "-> stanza\n\(full)\n\(full)\n\n"
                    + "--- cb4SqtunSJzXKDGjqeYxuva9Be80QXEDKDn2aKBaCsw", AgeFileTests.older, .opens
            ),
            (
                """
                -> X25519 ajtqAvDEkVNr2B7zUOtq2mAQXDSBlNrVAuM/dKb5sT4
                0evrK/HQXVsQ4YaDe+659l5OQzvAzD2ytLGHQLQiqxg
                -> X25519 0qC7u6AbLxuwnM8tPFOWVtWZn/ZZe7z7gcsP5kgA0FI
                T/PZg76MmVt2IaLntrxppzDnzeFDYHsHFcnTnhbRLQ8
                --- 7W07ef2PhsTAl74pn+9vSj/Xzukwa6SuTqMc16cdBk0
                """, AgeFileTests.older, .opens
            ),
            // For another key; of another kind that looks like ours.
            (
                AgeFileTests.olderStanza + "--- Vn+54jqiiUCE+WZcEVY3f1sqHjlu/z1LCQ/T7Xm7qI0",
                AgeFileTests.newer, .notForUs
            ),
            (
                """
                -> x25519 TEiF0ypqr+bpvcqXNyCVJpL7OuwPdVwPL7KQEbFDOCc
                hjabGXwSLQ9c3S6Lw2i+S2Tu2fiwQHHslbBN6B41FLE
                --- AYeVZK262kiO9KRKUZNEldKRzXDG1vPMXdWs2fF0iJY
                """, AgeFileTests.newer, .notForUs
            ),
            // A share whose product is zero for every key, and one that is too short.
            (
                """
                -> X25519 X5yVvKNQjCSx0LFVnIPvWwREXMRYHI6G2CJO3dCfEdc
                3E0NpFans/m0WLWF7+54ZBdNj3iqQqpraGDFiaRkvBA
                --- sXw327YMT1/ULXe+ZyRMbMY0Z2jnWHGgI9j1we6yQ8A
                """, AgeFileTests.newer, .refused
            ),
            (
                """
                -> X25519 l7o4oTX9X5E3/KODa/7CQ0CrA9fKMWsm9IJjYzSlJg
                yUGP5aPob6YJ+vzRfBtDT9D1K/wmyheZE/Xl/mDSKA4
                --- Zn1/VRtHpD93HtIXSv1S++POXeKcQF7w1+hpXhMiAbk
                """, AgeFileTests.newer, .refused
            ),
            // Padded base64, and base64 with bits left over.
            (
                AgeFileTests.newerStanza + "-> stanza\n\(full)\nQUE=\n"
                    + "--- /B04zJExClyv/5eAl7g3u3ELs0CUtMpq6ujNdFoG15s", AgeFileTests.newer,
                .refused
            ),
            (
                AgeFileTests.olderStanza + "-> stanza\n\(full)\nQUF\n"
                    + "--- nQM2VCzmNLPrUurNWN+SW9wVp/9uTMQ/6CTUM7l8c84", AgeFileTests.older,
                .refused
            ),
        ]
        for (lines, key, expected) in cases {
            XCTAssertEqual(try answer(lines, key), expected, lines)
        }
    }

    func testHeadersThatAreRefused() throws {
        let stanza = AgeFileTests.olderStanza
        let mac = "--- Vn+54jqiiUCE+WZcEVY3f1sqHjlu/z1LCQ/T7Xm7qI0"
        let whole: String = stanza + mac
        // In a whole header, the first text is replaced by the second.
        let changes: [(String, String)] = [
            (stanza, ""), (mac, "--- "), ("Vn+5", "Wn+5"), ("m7qI0", "m7qI0 "), ("m7qI0", "m7qI0="),
            ("m7qI0", "m7qI1"), ("m7qI0", "m7q"), ("--- ", "---"), ("--- ", "---  "), (mac, "---"),
            ("-> ", "->"), ("-> ", "->  "), ("X25519 ", "X25519  "), ("OCc\n", "OCc \n"),
            ("OCc\n", "OCd\n"), ("OCc\n", "OCc more\n"), ("OCc\n", "OCc\r\n"), ("---", "\n---"),
            ("---", "-> \n\n---"), ("---", "->\n\n---"), ("---", "-> caf\u{e9}\n\n---"),
            ("---", "-> long\n" + String(repeating: "A", count: 65) + "\n\n---"),
            // Without the short line that ends a body.
            ("---", "-> full\n" + String(repeating: "A", count: 64) + "\n---"),
            ("EmEC", "EmEC="), ("-> ", "nothing\n-> "),
        ]
        for (old, new) in changes {
            let lines = whole.replacingFirst(old, new)
            XCTAssertEqual(try answer(lines, AgeFileTests.older), .refused, lines)
        }
        for lines in ["", String(stanza.dropLast()), "-> X25519"] {
            let text = Array("age-encryption.org/v1\n\(lines)".utf8)
            XCTAssertNil(try AgeHeader.parse(text), lines)
        }
        XCTAssertThrowsError(try AgeHeader.parse(Array("age-encryption.org/v2\n-> x\n".utf8))) {
            guard case .version? = $0 as? AgeError else { return XCTFail("\($0)") }
        }
        XCTAssertThrowsError(try AgeHeader.parse(Array("age-encryption.org/v1\r\n-> x\n".utf8)))
    }

    func testAStanzaOfAnotherLengthIsRefusedBeforeItIsOpened() throws {
        let fileKey = AgeSecret(AgeCrypto.random(17))
        let bytes = AgeFile.bytes(of: [1], to: [identity.recipient], fileKey: fileKey)
        XCTAssertThrowsError(try AgeFile.open(bytes, identity))
    }

    // ── Payloads ──

    func testSizesAroundAChunk() throws {
        let chunk = AgeFileTests.chunk
        for size in [0, 1, 15, chunk - 1, chunk, chunk + 1, 2 * chunk, 3 * chunk + 17] {
            var random = SplitMix(UInt64(size))
            let plain = random.bytes(size)
            let bytes = AgeFile.bytes(of: plain, to: [identity.recipient])
            let chunks = max(1, (size + chunk - 1) / chunk)
            let header = try XCTUnwrap(try AgeHeader.parse(bytes)).count
            XCTAssertEqual(bytes.count, header + 16 + size + 16 * chunks, "\(size)")
            XCTAssertEqual(try AgeFile.open(bytes, identity), plain, "\(size)")
        }
    }

    func testSeveralRecipientsOpenTheSame() throws {
        let identities = (0..<5).map { _ in AgeIdentity.generate() }
        let bytes = AgeFile.bytes(of: [1, 2, 3], to: identities.map(\.recipient))
        for identity in identities { XCTAssertEqual(try AgeFile.open(bytes, identity), [1, 2, 3]) }
        XCTAssertNil(try AgeFile.open(bytes, identity))
        // Nothing in the file is the same the second time.
        let again = AgeFile.bytes(of: [1, 2, 3], to: identities.map(\.recipient))
        XCTAssertEqual(again.count, bytes.count)
        XCTAssertNotEqual(again.suffix(35), bytes.suffix(35))
    }

    private func payload(_ bytes: [UInt8], _ file: AgeFile.Descriptor) throws -> AgePayload {
        let header = try XCTUnwrap(try AgeHeader.parse(bytes))
        let fileKey = try XCTUnwrap(try identity.open(header))
        return try AgePayload(
            descriptor: file.number, start: UInt64(header.count), fileBytes: UInt64(bytes.count),
            fileKey: fileKey)
    }

    func testReadsAtRandom() throws {
        var random = SplitMix(5)
        let plain = random.bytes(5 * AgeFileTests.chunk + 99)
        let bytes = AgeFile.bytes(of: plain, to: [identity.recipient])
        let file = AgeFile.Descriptor(bytes)
        let payload = try payload(bytes, file)
        XCTAssertEqual(payload.size, UInt64(plain.count))
        for _ in 0..<2_000 {
            let first = random.below(plain.count + 1)
            let most = random.chance(3) ? 3 * AgeFileTests.chunk : 500
            let end = min(plain.count, first + random.below(most))
            let range = first..<end
            guard try AgeFile.read(payload, range) == Array(plain[range]) else {
                return XCTFail("\(range)")
            }
        }
    }

    func testAChangeAtAnyByteIsFound() throws {
        let bytes = AgeFile.bytes(
            of: Array("a short text".utf8), to: [identity.recipient],
            stanzas: [AgeStanza(arguments: ["example.org/other", "x"], body: [1, 2, 3])])
        XCTAssertEqual(try AgeFile.open(bytes, identity), Array("a short text".utf8))
        for index in bytes.indices {
            for bit in 0..<8 {
                var changed = bytes
                changed[index] ^= 1 << bit
                do throws(AgeError) {
                    // A stanza of another kind is skipped; every other change is refused.
                    guard let opened = try AgeFile.open(changed, identity) else { continue }
                    XCTFail("byte \(index), bit \(bit): \(opened)")
                } catch {}
            }
        }
        for count in 0..<bytes.count {
            XCTAssertThrowsError(try AgeFile.open(Array(bytes[..<count]), identity), "\(count)")
        }
        XCTAssertThrowsError(try AgeFile.open(bytes + [0], identity))
    }

    /// The chunks in the file.
    private func chunks(_ bytes: [UInt8]) throws -> (head: [UInt8], chunks: [[UInt8]]) {
        let start = try XCTUnwrap(try AgeHeader.parse(bytes)).count + 16
        let body = Array(bytes[start...])
        let size = AgeStreamKey.sealedBytes
        return (
            Array(bytes[..<start]),
            stride(from: 0, to: body.count, by: size).map {
                Array(body[$0..<min($0 + size, body.count)])
            }
        )
    }

    private func problem(_ bytes: [UInt8]) -> String {
        do throws(AgeError) {
            _ = try AgeFile.open(bytes, identity)
            return "none"
        } catch .damaged(let text) {
            return text
        } catch {
            return "\(error)"
        }
    }

    func testChunksCutAddedAndMoved() throws {
        var random = SplitMix(6)
        let plain = random.bytes(3 * AgeFileTests.chunk)
        let bytes = AgeFile.bytes(of: plain, to: [identity.recipient])
        let (head, parts) = try chunks(bytes)
        XCTAssertEqual(parts.count, 3)
        func said(_ parts: [[UInt8]]) -> String { problem(head + parts.flatMap { $0 }) }
        XCTAssertEqual(said(parts), "none")
        XCTAssertEqual(said([parts[0], parts[1]]), "the payload is cut behind encrypted chunk 1")
        XCTAssertTrue(said([parts[0], parts[1], Array(parts[2].dropLast())]).contains("cut"))
        XCTAssertTrue(said([parts[0], parts[1], parts[2], [9]]).contains("1 bytes behind"))
        XCTAssertTrue(said(parts + [parts[2]]).contains("65552 bytes behind"))
        XCTAssertTrue(said([parts[1], parts[0], parts[2]]).contains("chunk 0 is not genuine"))
        XCTAssertTrue(said([parts[0], parts[2]]).contains("cut or not genuine"))
        XCTAssertTrue(said([parts[0], parts[0], parts[2]]).contains("chunk 1 is not genuine"))
        XCTAssertEqual(said([]), "the payload is missing")
        XCTAssertTrue(said([Array(parts[0].prefix(15))]).contains("cut"))

        // Again with an empty last chunk, which no writer makes.
        let header = try XCTUnwrap(try AgeHeader.parse(bytes))
        let fileKey = try XCTUnwrap(try identity.open(header))
        let key = AgeStreamKey(fileKey: fileKey, salt: Array(bytes[header.count..<head.count]))
        var empty = [UInt8](repeating: 0, count: 16)
        empty.withUnsafeMutableBytes {
            key.seal(
                UnsafeRawBufferPointer(start: nil, count: 0), number: 2, isLast: true,
                into: $0.baseAddress!)
        }
        XCTAssertTrue(said([parts[0], parts[1], empty]).contains("cut or not genuine"))
    }

    func testWhatIsGenuineBeforeACutIsRead() throws {
        var random = SplitMix(7)
        let plain = random.bytes(3 * AgeFileTests.chunk + 500)
        let bytes = AgeFile.bytes(of: plain, to: [identity.recipient])
        let (head, parts) = try chunks(bytes)
        let cases: [([[UInt8]], Int)] = [
            (Array(parts.dropLast()), 3), ([parts[0], parts[1], Array(parts[2].prefix(99))], 2),
            (Array(parts.dropLast()) + [Array(parts[3].dropLast())], 3),
        ]
        for (left, whole) in cases {
            let cut = head + left.flatMap { $0 }
            let file = AgeFile.Descriptor(cut)
            let payload = try payload(cut, file)
            XCTAssertNotNil(payload.problem)
            XCTAssertEqual(payload.size, UInt64(whole * AgeFileTests.chunk))
            XCTAssertEqual(
                try AgeFile.read(payload, 0..<Int(payload.size)),
                Array(plain[..<(whole * AgeFileTests.chunk)]))
        }
    }

    func testBase64HasOneTextForEachContent() throws {
        try full()
        var random = SplitMix(12)
        for count in 0..<50 {
            let bytes = random.bytes(count)
            let text = AgeBase64.text(bytes)
            XCTAssertEqual(AgeBase64.bytes(text), bytes)
            for index in text.indices {
                for byte in UInt8.min ... .max where byte != text[index] {
                    var other = text
                    other[index] = byte
                    if let read = AgeBase64.bytes(other) { XCTAssertNotEqual(read, bytes) }
                }
            }
        }
        for bad in ["A", "AA=", "AA==", "AB", "AAB", "A A", "AAAA\n", "AAAA=", "-_AA", "AAAAA"] {
            XCTAssertNil(AgeBase64.bytes(Array(bad.utf8)), bad)
        }
    }

    func testHKDFByItsPublishedVector() {
        // RFC 5869, test case 3 (no salt, no info), the first 32 bytes.
        let expected: [UInt8] = [
            0x8d, 0xa4, 0xe7, 0x75, 0xa5, 0x63, 0xc1, 0x8f, 0x71, 0x5f, 0x80, 0x2a, 0x06, 0x3c,
            0x5a,
            0x31, 0xb8, 0xa1, 0x1f, 0x5c, 0x5e, 0xe1, 0x87, 0x9e, 0xc3, 0x45, 0x4e, 0x5f, 0x3c,
            0x73,
            0x8d, 0x2d,
        ]
        let material = AgeSecret([UInt8](repeating: 0x0b, count: 22))
        XCTAssertEqual(AgeCrypto.hkdf(material, salt: [], info: "").bytes, expected)
    }
}

extension String {
    func replacingFirst(_ old: String, _ new: String) -> String {
        guard let range = range(of: old) else { return self }
        return replacingCharacters(in: range, with: new)
    }
}
