// CRC-32C (FORMAT §1) against its definition, bit by bit: long data is processed in pieces.

import CShims
import XCTest

final class ChecksumTests: XCTestCase {
    private func defined(_ start: UInt32, _ bytes: ArraySlice<UInt8>) -> UInt32 {
        var crc = ~start
        for byte in bytes {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc >> 1 ^ (crc & 1 == 0 ? 0 : 0x82F6_3B78) }
        }
        return ~crc
    }

    private func computed(_ start: UInt32, _ bytes: ArraySlice<UInt8>) -> UInt32 {
        bytes.withUnsafeBytes { cwi_crc32c(start, $0.baseAddress, $0.count) }
    }

    func testKnown() {
        XCTAssertEqual(computed(0, Array("123456789".utf8)[...]), 0xE306_9283)
    }

    /// Around every multiple of the pieces' length, from odd addresses, and in two calls.
    func testLengths() {
        var seed: UInt64 = 7
        let bytes = (0..<20_000).map { _ -> UInt8 in
            seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: seed >> 33)
        }
        for middle in stride(from: 0, through: 12_288, by: 1024) {
            for length in max(0, middle - 9)...middle + 9 {
                let part = bytes[(length % 7)..<(length % 7 + length)]
                let wanted = defined(0, part)
                XCTAssertEqual(computed(0, part), wanted, "\(length) bytes")
                let cut = part.startIndex + length / 3
                let first = computed(0, part[..<cut])
                XCTAssertEqual(computed(first, part[cut...]), wanted, "\(length) bytes in two")
            }
        }
    }
}
