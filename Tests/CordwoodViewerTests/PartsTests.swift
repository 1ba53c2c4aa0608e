// Keys, parameters and histograms by themselves.

import Cordwood
import CordwoodStore
import Foundation
import XCTest

@testable import CordwoodViewer

final class PartsTests: XCTestCase {
    func testKeysAreTheSameThereAndBack() throws {
        for seed in 0..<200 as Range<UInt8> {
            let bytes = (0..<32).map { (index: UInt8) -> UInt8 in
                seed &* 31 &+ index &* 7 ^ seed
            }
            var text = ""
            // Base64url by Foundation, without padding.
            text = Data(bytes).base64EncodedString().replacingOccurrences(of: "+", with: "-")
                .replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
            let key = try XCTUnwrap(RecordKey(text), text)
            XCTAssertEqual(key.text, text)
            XCTAssertEqual(key.timeNs, bytes.prefix(8).reduce(0 as UInt64) { $0 << 8 | UInt64($1) })
            XCTAssertEqual(key.id.description, bytes.dropFirst(8).map { hex($0) }.joined())
        }
        let good = String(repeating: "A", count: 43)
        XCTAssertNotNil(RecordKey(good))
        // Too short, too long, other letters, and a last letter with unused bits set.
        for text in [
            "", "A", good + "A", String(good.dropLast()), good.dropLast() + "B",
            good.dropLast() + "=",
            good.dropLast() + "/",
        ] {
            XCTAssertNil(RecordKey(String(text)), String(text))
        }
    }

    private func hex(_ byte: UInt8) -> String { String(format: "%02x", byte) }

    func testParameters() throws {
        let all = try XCTUnwrap(URLParameters("q=a%20b+c%C3%A4&since=&x&until=%2b1"))
        XCTAssertEqual(all["q"], "a b cä")
        XCTAssertNil(all["since"])
        XCTAssertNil(all["x"])
        XCTAssertEqual(all["until"], "+1")
        for text in ["q=%", "q=%4", "q=%zz", "q=%ff", "q=1&q=2"] {
            XCTAssertNil(URLParameters(text), text)
        }
    }

    func testHistogramsAgainstAPlainCount() throws {
        for seed in 1...60 as ClosedRange<UInt64> {
            var random = seed &* 0x9e37_79b9_7f4a_7c15
            func next() -> UInt64 {
                random ^= random << 13
                random ^= random >> 7
                random ^= random << 17
                return random
            }
            let spans: [UInt64] = [1, 1_000_000, 3_000_000_000, 90_000_000_000_000, .max / 4]
            let span = spans[Int(seed % 5)]
            let records = (0..<500).map { _ -> (UInt64, UInt8) in
                (1_800_000_000_000_000_000 + next() % span, UInt8(next() % 25))
            }
            var histogram = TimeHistogram()
            for (time, level) in records { histogram.add(timeNs: time, level: level) }
            var out: [UInt8] = []
            CountsJSON.append(&histogram, to: &out)
            let line = try JSONSerialization.jsonObject(with: Data(out)) as? [String: Any]
            let hist = try XCTUnwrap(line?["hist"] as? [String: Any])
            let step = try XCTUnwrap((hist["step_ns"] as? String).flatMap { UInt64($0) })
            let bins = try XCTUnwrap(hist["bins"] as? [[Any]])
            XCTAssertLessThanOrEqual(bins.count, TimeHistogram.binsMax)
            var wanted: [UInt64: [Int]] = [:]
            for (time, level) in records {
                let group = [1, 5, 9, 10, 13, 17, 21].filter { $0 <= level }.count
                wanted[time / step * step, default: [Int](repeating: 0, count: 8)][group] += 1
            }
            var found: [UInt64: [Int]] = [:]
            for bin in bins {
                found[try XCTUnwrap((bin[0] as? String).flatMap { UInt64($0) })] = bin[1] as? [Int]
            }
            XCTAssertEqual(found, wanted, "seed \(seed)")
            XCTAssertEqual(
                bins.map { $0[0] as? String ?? "" }.compactMap { UInt64($0) }.sorted(),
                bins.map { $0[0] as? String ?? "" }.compactMap { UInt64($0) }, "seed \(seed)")
        }
    }
}
