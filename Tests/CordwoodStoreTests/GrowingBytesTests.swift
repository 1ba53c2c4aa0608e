// Bytes that grow while memory is refused: nothing traps, earlier bytes stay, and the loss shows.

import CordwoodTestSupport
import Glibc
import XCTest

@testable import CordwoodCore
@testable import CordwoodStore

final class GrowingBytesTests: XCTestCase {
    func testRefusedMemoryDropsWhatDoesNotFit() {
        var bytes = GrowingBytes()
        XCTAssertEqual(bytes.capacity, 0, "an empty one costs nothing")
        bytes.append("kept")
        XCTAssertFalse(bytes.failed)
        for more in [1 << 40, Int.max] {
            XCTAssertFalse(bytes.reserve(more))
            XCTAssertNil(bytes.claim(more))
        }
        XCTAssertTrue(bytes.failed)
        bytes.append(word: UInt16(0x4142))
        XCTAssertEqual(Array(bytes.bytes), Array("keptBA".utf8))
        bytes.store(UInt32(0), at: 3)
        XCTAssertEqual(Array(bytes.bytes), Array("keptBA".utf8), "it would end outside")
        bytes.removeAll()
        XCTAssertTrue(bytes.failed, "an owner that empties it for each record looks at its end")
        bytes.clear(keeping: 1 << 20)
        XCTAssertFalse(bytes.failed)
        XCTAssertEqual(bytes.capacity, 0)
        for kept in [1 << 20, 0] {
            bytes.append(7)
            XCTAssertEqual(Array(bytes.bytes), [7])
            bytes.clear(keeping: kept)
            XCTAssertEqual(bytes.capacity > 0, kept > 0)
        }
    }

    func testDecimalsOfEveryLength() {
        var numbers: [UInt64] = [0, .max]
        var power: UInt64 = 1
        for _ in 0..<19 {
            power &*= 10
            numbers += [power / 2, power &- 1, power, power &+ 1]
        }
        for number in numbers {
            for width in [0, 1, 2, 3, 7, 8, 9, 10, 16, 17, 20, 30] {
                var bytes = GrowingBytes()
                bytes.append(decimal: number, width: width)
                let digits = "\(number)"
                let zeros = String(
                    repeating: "0", count: max(0, min(width, 20) - digits.utf8.count))
                XCTAssertEqual(Bytes.string(bytes.bytes), zeros + digits)
            }
        }
    }

    func testShortDecimalsAndFractionsOfASecond() {
        var bytes = GrowingBytes()
        for number in 0..<UInt64(1_100) {
            for width in 0...4 {
                bytes.removeAll()
                bytes.append(decimal: number, width: width)
                let digits = "\(number)"
                let zeros = String(repeating: "0", count: max(0, width - digits.utf8.count))
                XCTAssertEqual(Bytes.string(bytes.bytes), zeros + digits)
            }
        }
        for number: UInt64 in [0, 1, 99_999_999, 100_000_000, 123_456_789, 999_999_999] {
            bytes.removeAll()
            bytes.append(nanoseconds: number)
            let digits = "\(number)"
            let zeros = String(repeating: "0", count: 9 - digits.utf8.count)
            XCTAssertEqual(Bytes.string(bytes.bytes), zeros + digits)
        }
    }

    func testDecimalsBySeed() {
        var random = SplitMix(7)
        var bytes = GrowingBytes()
        for _ in 0..<20_000 {
            let number = random.next() >> UInt64(random.below(64))
            bytes.removeAll()
            bytes.append(decimal: number)
            XCTAssertEqual(Bytes.string(bytes.bytes), "\(number)")
        }
    }

    /// Texts of every length up to several pieces, with and without a byte that ends the copy,
    /// after other text, and in memory that ends where the text does.
    func testTextsOfEveryLength() throws {
        try full()
        var random = SplitMix(11)
        for count in 0..<150 {
            let text = (0..<count).map { _ in UInt8(0x23 + random.below(0x30)) }
            for odd in [-1] + Array(0..<count) {
                for letter: UInt8 in odd < 0 ? [0] : [0, 0x1F, 0x22, 0x5C, 0x7F, 0x80, 0xFF] {
                    var source = text
                    if odd >= 0 { source[odd] = letter }
                    source.withUnsafeBytes { check($0, odd < 0 ? count : odd, letter) }
                }
            }
        }
    }

    private func check(_ text: UnsafeRawBufferPointer, _ odd: Int, _ letter: UInt8) {
        let before = Array("before".utf8)
        var bytes = GrowingBytes()
        bytes.append("before")
        bytes.append(text: text)
        XCTAssertEqual(Array(bytes.bytes), before + text)
        bytes.resize(before.count)
        let isPrintable = letter == 0x22 || letter == 0x5C
        let printable = isPrintable ? text.count : odd
        XCTAssertEqual(bytes.append(printable: text), printable)
        XCTAssertEqual(Array(bytes.bytes), before + text[..<printable])
        bytes.resize(before.count)
        let plain = letter == 0x7F ? text.count : odd
        XCTAssertEqual(bytes.append(text, before: 0x22, 0x5C), plain, "\(text.count) \(odd)")
        XCTAssertEqual(Array(bytes.bytes), before + text[..<plain])
        bytes.resize(before.count)
        let isMarked = letter == 0x22 || letter == 0x5C
        let marked = isMarked ? text.count : plain
        XCTAssertEqual(bytes.append(text, marking: 0x22, 0x5C, by: 0x5C), marked)
        let escaped = text.flatMap { $0 == 0x22 || $0 == 0x5C ? [0x5C, $0] : [$0] }
        XCTAssertEqual(
            Array(bytes.bytes), before + (isMarked ? escaped : Array(text[..<plain])))
    }

    func testShortKeysAreEqualIfTheTextIs() {
        var random = SplitMix(13)
        for count in 0...33 {
            let text = (0..<count).map { _ in UInt8(random.below(256)) }
            let key = text.withUnsafeBytes { ShortKey($0) }
            XCTAssertEqual(key == nil, count > 32)
            guard let key else { continue }
            XCTAssertEqual(text.withUnsafeBytes { ShortKey($0) }, key)
            for at in text.indices {
                var other = text
                other[at] ^= UInt8(1 << random.below(8))
                XCTAssertNotEqual(other.withUnsafeBytes { ShortKey($0) }, key, "\(count) \(at)")
            }
            for other in [text + [0], text.isEmpty ? [1] : text.dropLast()] {
                XCTAssertNotEqual(other.withUnsafeBytes { ShortKey($0) }, key)
            }
        }
    }

    func testReadyBytes() {
        for count in [0, 1, 30, 64, 65] {
            let text = (0..<count).map { UInt8($0 + 1) }
            let ready = text.withUnsafeBytes { ReadyBytes($0) }
            XCTAssertEqual(ready == nil, count > 64)
            guard let ready else { continue }
            var bytes = GrowingBytes()
            bytes.append("x")
            bytes.append(ready)
            bytes.append("y")
            XCTAssertEqual(Array(bytes.bytes), [0x78] + text + [0x79])
        }
    }

    func testAReadThatGetsNoMemoryIsAProblem() throws {
        let directory = TestFiles.directory()
        defer { TestFiles.remove(directory) }
        let path = directory + "/sparse"
        TestFiles.write([1, 2, 3], to: path)
        XCTAssertEqual(truncate(path, 8 << 30), 0)
        let file = try ReadFile(path: FilePath(path))
        XCTAssertThrowsError(try file.copy(at: 0, count: 4 << 30)) {
            guard case ReadProblem.system(_, ENOMEM) = $0 else { return XCTFail("\($0)") }
        }
        let buffer = try file.copy(at: 0, count: 3)
        XCTAssertThrowsError(try buffer.extend(to: 4 << 30))
        XCTAssertEqual(Array(buffer.bytes), [1, 2, 3])
        XCTAssertTrue(buffer.failed)
        buffer.clear()
        XCTAssertFalse(buffer.failed)
    }
}
