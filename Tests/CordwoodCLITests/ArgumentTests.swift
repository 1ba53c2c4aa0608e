// Typed arguments (addresses, patterns), and the splitting of input into lines.

import CordwoodServing
import Foundation
import Glibc
import XCTest

@testable import CordwoodCLI

final class AddressTests: XCTestCase {
    func testListenAddresses() throws {
        XCTAssertEqual(ListenAddress("127.0.0.1:80"), ListenAddress(host: "127.0.0.1", port: 80))
        XCTAssertEqual(ListenAddress("[::1]:8080"), ListenAddress(host: "::1", port: 8080))
        for text in ["", "80", ":80", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000"] {
            XCTAssertNil(ListenAddress(text), text)
        }
    }
}

final class PatternTests: XCTestCase {
    private func matches(
        _ pattern: String, _ text: [UInt8], fixed: Bool = false, ignoreCase: Bool = false
    ) throws -> Bool {
        let pattern = try Patterns.make(pattern, isFixed: fixed, ignoresCase: ignoreCase)
        return text.withUnsafeBytes { pattern.isIn($0) }
    }

    func testFixed() throws {
        XCTAssertTrue(try matches("lo wo", Array("hello world".utf8)))
        XCTAssertFalse(try matches("lo  wo", Array("hello world".utf8)))
        XCTAssertTrue(try matches("aab", Array("aaab".utf8)))
        XCTAssertTrue(try matches("a.b", Array("xa.by".utf8), fixed: true))
        XCTAssertFalse(try matches("a.b", Array("axb".utf8), fixed: true))
        XCTAssertTrue(try matches("WORLD", Array("hello world".utf8), ignoreCase: true))
        XCTAssertTrue(try matches("", []))
        XCTAssertFalse(try matches("x", []))
    }

    /// The C library takes them for letters and would find nothing.
    func testEscapesOfOtherExpressionsAreRefused() throws {
        for (pattern, word) in [
            ("took \\d+ ms", "[0-9]"), ("[\\d.]+", "[0-9]"), ("\\D", "[^0-9]"),
            ("a\\tb", "the tab itself"), ("\\\\\\d", "[0-9]"), ("\\x41", "the letter x"),
        ] {
            XCTAssertThrowsError(try matches(pattern, []), pattern) {
                XCTAssertEqual(($0 as? Failure)?.code, .usage)
                XCTAssertTrue((($0 as? Failure)?.text ?? "").contains(word), "\($0)")
            }
        }
        XCTAssertTrue(try matches("took \\w+\\.", Array("took long.".utf8)))
        XCTAssertTrue(try matches("\\\\d", Array("a\\d".utf8)), "a backslash, and a d")
        XCTAssertTrue(try matches("\\d", Array("\\d".utf8), fixed: true))
    }

    func testPlacesOfMatches() throws {
        func all(_ pattern: String, _ text: String, ignoreCase: Bool = false) throws -> [Range<Int>]
        {
            let pattern = try Patterns.make(pattern, isFixed: false, ignoresCase: ignoreCase)
            var found: [Range<Int>] = []
            Array(text.utf8).withUnsafeBytes {
                while let range = pattern.find($0, from: found.last?.upperBound ?? 0) {
                    found.append(range)
                }
            }
            return found
        }
        XCTAssertEqual(try all("ab", "ab.aab"), [0..<2, 4..<6])
        XCTAssertEqual(try all("AB", "ab.aAb", ignoreCase: true), [0..<2, 4..<6])
        XCTAssertEqual(try all("a+", "aa.a"), [0..<2, 3..<4])
        XCTAssertEqual(try all("^a", "aaa"), [0..<1], "only one is at the beginning")
    }

    func testExpressions() throws {
        XCTAssertTrue(try matches("^time(d )?out$", Array("timed out".utf8)))
        XCTAssertFalse(try matches("^time(d )?out$", Array("timed  out".utf8)))
        XCTAssertTrue(try matches("ERR[0-9]+", Array("x err42".utf8), ignoreCase: true))
        XCTAssertTrue(try matches("^$", []))
        XCTAssertTrue(try matches("a.c", Array("xxabc".utf8)))
    }

    func testBytesThatAreNoText() throws {
        let text: [UInt8] = [0xff, 0x00, 0x41, 0x0a, 0x42, 0xfe]
        XCTAssertTrue(try matches("B", text))
        XCTAssertTrue(try matches("[B]", text))
        XCTAssertFalse(try matches("[C]", text))
    }

    func testAFixedStringIsFoundLikeASlowSearchFindsIt() throws {
        var seed: UInt64 = 7
        func below(_ limit: Int) -> Int {
            seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(seed >> 33) % limit
        }
        for _ in 0..<20_000 {
            let text = (0..<below(12)).map { _ in UInt8(97 + below(2)) }
            let needle = (0..<below(4)).map { _ in UInt8(97 + below(2)) }
            let slow =
                needle.isEmpty
                || (0..<max(0, text.count - needle.count + 1)).contains {
                    Array(text[$0..<$0 + needle.count]) == needle
                }
            let pattern = String(decoding: needle, as: UTF8.self)
            XCTAssertEqual(try matches(pattern, text), slow, "\(needle) in \(text)")
            XCTAssertEqual(
                try matches(pattern.uppercased(), text, ignoreCase: true), slow,
                "\(needle) in \(text)")
        }
    }

    func testABadExpressionIsUsage() {
        XCTAssertThrowsError(try matches("[", [])) {
            XCTAssertEqual(($0 as? Failure)?.code, .usage)
        }
    }
}

final class LineReaderTests: XCTestCase {
    private enum Seen: Equatable {
        case whole([UInt8])
        case unended([UInt8])
        case cut([UInt8], Int)
    }

    private func read(_ bytes: [UInt8], limit: Int) throws -> [Seen] {
        let path = NSTemporaryDirectory() + "lines-\(UUID().uuidString)"
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        defer { unlink(path) }
        let descriptor = open(path, O_RDONLY)
        defer { close(descriptor) }
        var calls: [Bool] = []
        var reader = LineReader(
            descriptor: descriptor, limit: limit, reading: { calls.append($0) })
        defer {
            // Called before and after each read, up to the one that finds the end.
            XCTAssertEqual(calls, (0..<calls.count).map { $0 % 2 == 0 })
            XCTAssertGreaterThanOrEqual(calls.count / 2, bytes.count / (256 << 10) + 1)
        }
        var seen: [Seen] = []
        while let line = try reader.next() {
            switch line {
            case .whole(let bytes): seen.append(.whole(Array(bytes)))
            case .unended(let bytes): seen.append(.unended(Array(bytes)))
            case .cut(let bytes, let length): seen.append(.cut(Array(bytes), length))
            }
        }
        return seen
    }

    func testLines() throws {
        XCTAssertEqual(try read([], limit: 100), [])
        XCTAssertEqual(try read([10], limit: 100), [.whole([])])
        XCTAssertEqual(
            try read([1, 10, 10, 13, 10, 0, 255], limit: 100),
            [.whole([1]), .whole([]), .whole([13]), .unended([0, 255])])
    }

    func testLinesAcrossPieces() throws {
        var bytes: [UInt8] = []
        var expected: [Seen] = []
        for length in [3_000_000, 0, 1, 262_143, 262_144, 262_145, 524_288, 70_000] {
            let line = [UInt8](repeating: UInt8(97 + length % 26), count: length)
            bytes += line + [10]
            expected.append(.whole(line))
        }
        XCTAssertEqual(try read(bytes, limit: 10_000_000), expected)
    }

    func testLinesBeyondTheLimitAreCutAndTheNextIsWhole() throws {
        for length in [1_000_001, 1_500_000, 3_000_000] {
            for end: [UInt8] in [[10], [10, 98, 10], [10, 98], []] {
                let long = [UInt8](repeating: 97, count: length)
                var expected: [Seen] = [.cut(Array(long.prefix(1_000_000)), length)]
                if end.count == 3 { expected.append(.whole([98])) }
                if end.count == 2 { expected.append(.unended([98])) }
                XCTAssertEqual(try read(long + end, limit: 1_000_000), expected, "\(length)")
            }
        }
    }
}
