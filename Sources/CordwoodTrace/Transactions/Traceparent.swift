// The W3C header `traceparent`, strictly: `00-<32 digits>-<16 digits>-<2 digits>`, lower case. A
// later version's may continue after another dash. Allocates nothing: signal handlers may call it.
// Pure.
// SAFETY: `parse` follows the text as far as its NUL and writes only into the caller's room.

import CordwoodFormats

package enum Traceparent {
    /// The length in version 00, without a NUL.
    package static let bytes = 55

    /// Fills 25 bytes (FORMAT §8.4). False: not a traceparent, and nothing is written.
    package static func parse(
        _ text: UnsafePointer<CChar>, into trace: UnsafeMutableRawPointer
    ) -> Bool {
        var count = 0
        while count <= bytes, unsafe text[count] != 0 { count += 1 }
        guard count >= bytes else { return false }
        func byte(_ at: Int) -> UInt8 { unsafe UInt8(bitPattern: text[at]) }
        guard let version = number(byte(0), byte(1)), version != 0xFF, byte(2) == 0x2d,
            byte(35) == 0x2d, byte(52) == 0x2d, let flags = number(byte(53), byte(54))
        else { return false }
        guard count == bytes || (version > 0 && byte(bytes) == 0x2d) else { return false }
        var (isTrace, isSpan) = (false, false)
        for index in 0..<24 {
            let at = digitAt(index)
            guard let value = number(byte(at), byte(at + 1)) else { return false }
            if value != 0, index < 16 { isTrace = true }
            if value != 0, index >= 16 { isSpan = true }
        }
        guard isTrace, isSpan else { return false }
        for index in 0..<24 {
            let at = digitAt(index)
            unsafe trace.storeBytes(
                of: number(byte(at), byte(at + 1)) ?? 0, toByteOffset: index, as: UInt8.self)
        }
        unsafe trace.storeBytes(of: flags, toByteOffset: 24, as: UInt8.self)
        return true
    }

    /// Writes the 55 characters and a NUL, from 25 bytes (FORMAT §8.4).
    package static func write(_ trace: UnsafeRawPointer, to out: UnsafeMutablePointer<CChar>) {
        func put(_ byte: UInt8, _ at: Int) {
            unsafe out[at] = CChar(ASCII.hexDigit(byte >> 4))
            unsafe out[at + 1] = CChar(ASCII.hexDigit(byte & 15))
        }
        put(0, 0)
        for at in [2, 35, 52] { unsafe out[at] = 0x2d }
        for index in 0..<24 {
            unsafe put(trace.load(fromByteOffset: index, as: UInt8.self), digitAt(index))
        }
        unsafe put(trace.load(fromByteOffset: 24, as: UInt8.self), 53)
        unsafe out[bytes] = 0
    }

    /// The place of the two digits of a byte of the trace or span id.
    private static func digitAt(_ index: Int) -> Int {
        index < 16 ? 3 &+ index &* 2 : 36 &+ (index &- 16) &* 2
    }

    private static func number(_ a: UInt8, _ b: UInt8) -> UInt8? {
        let (high, low) = (ASCII.hex(a), ASCII.hex(b))
        guard high < 16, low < 16, !ASCII.isUpper(a), !ASCII.isUpper(b) else { return nil }
        return high << 4 | low
    }
}

extension Transaction {
    /// The W3C header for a request made inside.
    public var traceparent: String {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: Traceparent.bytes + 1) {
            unsafe Traceparent.write(trace, to: $0.baseAddress.unsafelyUnwrapped)
            return unsafe String(cString: $0.baseAddress.unsafelyUnwrapped)
        }
    }
}
