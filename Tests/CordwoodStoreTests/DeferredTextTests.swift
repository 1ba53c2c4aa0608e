// Text of deferred records from untrusted bytes: whatever a file says, there is a text, and nothing
// traps. Text of valid records is compared with printf itself in Tests/ABI.

import CordwoodStore
import CordwoodTestSupport
import XCTest

@testable import CordwoodCore

final class DeferredTextTests: XCTestCase {
    private let text = DeferredText()

    private func render(
        _ format: [UInt8], _ types: [UInt8], _ arguments: [UInt8], style: UInt8 = 0
    ) -> [UInt8] {
        var record = RecordRef(
            thread: ThreadInfo(process: Self.process, serial: 1, threadID: 1, name: ""))
        return format.withUnsafeBytes { format in
            types.withUnsafeBytes { types in
                arguments.withUnsafeBytes { arguments in
                    record.isDeferred = true
                    record.style = style
                    record.format = format
                    record.argumentTypes = types
                    record.arguments = arguments
                    text.render(&record)
                    return Array(record.message)
                }
            }
        }
    }

    private static let process = ProcessInfo(
        laneID: LaneID(high: 1, low: 2), bootID: .zero, processID: 1, name: "",
        createdRealtime: 0, createdMonotonic: 0, resource: [])

    private func string(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    func testWhatDoesNotFitIsTheFormat() {
        XCTAssertEqual(string(render(Array("%d".utf8), [1], [7, 0, 0, 0])), "7")
        XCTAssertEqual(string(render(Array("%d".utf8), [1], [7, 0, 0])), "%d")
        XCTAssertEqual(string(render(Array("%d".utf8), [], [])), "%d")
        XCTAssertEqual(string(render(Array("%d".utf8), [3], [UInt8](repeating: 0, count: 8))), "%d")
        XCTAssertEqual(string(render(Array("%n".utf8), [5], [UInt8](repeating: 0, count: 8))), "%n")
        XCTAssertEqual(string(render(Array("%s".utf8), [6], [255, 255, 255, 127])), "%s")
        XCTAssertEqual(string(render(Array("%s".utf8), [99], [0])), "%s")
        XCTAssertEqual(string(render(Array("%".utf8), [], [])), "%")
        XCTAssertEqual(string(render(Array("%d %%".utf8), [], [], style: 1)), "%d %%")
    }

    /// A flag without effect leaves the number to the C library, for comparison.
    func testNumbersAreThoseOfTheCLibrary() throws {
        try full()
        var random = SplitMix(21)
        let halves: [Double] = [
            0, -0.0, 0.5, 1.5, 2.5, 0.125, 0.375, -2.5, 1e-9, .leastNonzeroMagnitude, 999.9995,
        ]
        for round in 0..<40_000 {
            let bits = random.next()
            let number: Double =
                round < halves.count
                ? halves[round]
                : round % 3 == 0
                    ? Double(bitPattern: bits)
                    : round % 3 == 1
                        ? Double(Int64(bitPattern: bits) >> 30) / 64
                        : Double(bits >> 20) / Double(1 + random.below(9_999))
            let digits = random.below(11)
            for (form, type) in [("f", 3), (".\(digits)f", 3), ("ld", 2), ("lu", 2), ("zu", 2)] {
                let bytes = little(number.bitPattern)
                let got = render(Array("<%\(form)>".utf8), [UInt8(type)], bytes)
                let expected = render(Array("<%-\(form)>".utf8), [UInt8(type)], bytes)
                XCTAssertEqual(string(got), string(expected), "\(number) as \(form)")
            }
            for form in ["d", "i", "u", "hd", "hhu"] {
                let bytes = little(UInt32(truncatingIfNeeded: bits >> UInt64(random.below(33))))
                let got = render(Array("%\(form)%%".utf8), [1], bytes)
                XCTAssertEqual(got, render(Array("%-\(form)%%".utf8), [1], bytes), form)
            }
        }
        XCTAssertEqual(string(render(Array("%s|".utf8), [6], [255, 255, 255, 255])), "(null)|")
    }

    func testFieldsShowTheShortestNumber() {
        var random = SplitMix(22)
        for round in 0..<100_000 {
            let bits = random.next()
            let number =
                round % 2 == 0
                ? Double(bitPattern: bits)
                : Double(Int64(bitPattern: bits) >> UInt64(random.below(60)))
                    / [1, 4, 8, 10, 100, 1_000, 3, 16][random.below(8)]
            guard number.isFinite else { continue }
            var out: [UInt8] = []
            FieldText.append(.double(number), to: &out)
            XCTAssertEqual(string(out), number.description)
        }
    }

    func testWidthsBeyondUseAreCut() {
        let wide = render(
            Array("%2000000000d|%.2000000000s".utf8), [1, 6], [7, 0, 0, 0, 0, 0, 0, 0])
        XCTAssertEqual(wide.count, (1 << 20) + 1)
        let starred = render(Array("%*d".utf8), [1, 1], [0, 0, 0, 128, 7, 0, 0, 0])
        XCTAssertEqual(starred.count, 1 << 20)
        XCTAssertEqual(starred.first, UInt8(ascii: "7"))
        let many = [UInt8](String(repeating: "%1000000d", count: 1000).utf8)
        XCTAssertEqual(string(render(many, [1], [7, 0, 0, 0])), string(many))
    }

    /// Columns and cuts are those of the repaired text.
    func testBracesCountColumnsOfAnyBytes() {
        var random = SplitMix(5)
        let pieces: [[UInt8]] = [
            [0x61], [0x7E], Array("ä".utf8), Array("漢".utf8), Array("🔥".utf8), [0xFF],
            [0xE2, 0x82],
            [0xF0, 0x9F], [0xC0], [0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90],
        ]
        for _ in 0..<20_000 {
            let text = (0..<(random.next() % 6)).flatMap { _ in
                pieces[Int(random.next() % UInt64(pieces.count))]
            }
            let most = Int(random.next() % 8)
            let arguments = little(UInt32(text.count)) + text
            let scalars = String(decoding: text, as: UTF8.self).unicodeScalars
            func columns(_ scalar: Unicode.Scalar) -> Int {
                scalar.value >= 0x1F300 || scalar == "漢" ? 2 : 1
            }
            let wide = render(Array("{:.>9}".utf8), [6], arguments, style: 2)
            let pad = max(0, 9 - scalars.reduce(0) { $0 + columns($1) })
            XCTAssertEqual(wide, Array(repeating: 0x2E, count: pad) + text)
            var cut = String.UnicodeScalarView()
            var left = most
            for scalar in scalars {
                left -= columns(scalar)
                if left < 0 { break }
                cut.append(scalar)
            }
            XCTAssertEqual(
                string(render(Array("{:.\(most)}".utf8), [6], arguments, style: 2)), String(cut))
        }
    }

    func testBraceWidthsBeyondUseAreCut() {
        let wide = render(Array("{:2000000000}|".utf8), [1], [7, 0, 0, 0], style: 2)
        XCTAssertEqual(wide.count, (1 << 20) + 1)
        let digits = render(Array("{:.2000000f}".utf8), [3], little(UInt64(0)), style: 2)
        XCTAssertEqual(digits.count, (1 << 20) + 2)
        let zeros = render(Array("{:02000000.1f}".utf8), [3], little(UInt64(1) << 63), style: 2)
        XCTAssertEqual(zeros.count, 1 << 20)
        XCTAssertEqual(string(zeros.prefix(3).map { $0 }), "-00")
    }

    func testRandomBytesNeverTrap() {
        var random = SplitMix(3)
        let printf = Array("%%%%diouxXcsSpaAeEfFgGmn*.0123456789$hlqjztL #-+'I|".utf8)
        let braces = Array("{{{{}}}}{}{}:<>^+- #0123456789.LdxXobBcsaAeEfFgGp?\u{E4}|".utf8)
        for round in 0..<40_000 {
            let style: UInt8 = round % 2 == 0 ? 0 : 2
            let pieces = style == 0 ? printf : braces
            let format = (0..<(random.next() % 24)).map { _ -> UInt8 in
                random.next() % 50 == 0
                    ? UInt8(truncatingIfNeeded: random.next())
                    : pieces[Int(random.next() % UInt64(pieces.count))]
            }
            let types = (0..<(random.next() % 6)).map { _ -> UInt8 in
                UInt8(random.next() % 20 == 0 ? random.next() % 256 : 1 + random.next() % 13)
            }
            let arguments = (0..<(random.next() % 80)).map { _ -> UInt8 in
                random.next() % 2 == 0 ? 0 : UInt8(truncatingIfNeeded: random.next())
            }
            XCTAssertLessThanOrEqual(
                render(format, types, arguments, style: style).count, 80 << 20)
        }
    }

    func testShortestNumbersReadBack() {
        var random = SplitMix(5)
        let braces = Array("{}".utf8)
        for _ in 0..<20_000 {
            let bits = random.next()
            let number = Double(bitPattern: bits)
            guard number.isFinite else { continue }
            let bytes = (0..<8).map { UInt8(truncatingIfNeeded: bits >> (8 * $0)) }
            let shown = string(render(braces, [3], bytes, style: 2))
            XCTAssertEqual(Double(shown)?.bitPattern, bits, shown)
            let float = Float(bitPattern: UInt32(truncatingIfNeeded: bits))
            guard float.isFinite else { continue }
            let small = string(render(braces, [13], Array(bytes.prefix(4)), style: 2))
            XCTAssertEqual(Float(small)?.bitPattern, float.bitPattern, small)
        }
    }
}
