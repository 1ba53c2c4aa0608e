// The id of the running kernel's boot, to tell whether the
// page cache a lane was written through is still the one that
// is read (PROTOCOL R37).
// SAFETY: both buffers are arrays of this function's, lent to one call each.

import CordwoodCore
import Glibc

package enum BootID {
    /// Zero where the system does not say.
    package static func running() -> LaneID {
        let path = "/proc/sys/kernel/random/boot_id"
        guard let file = try? ReadFile(path: path) else { return .zero }
        var text = [UInt8](repeating: 0, count: 64)
        let count = unsafe text.withUnsafeMutableBytes {
            unsafe pread(file.descriptor, $0.baseAddress, 64, 0)
        }
        guard count > 0 else { return .zero }
        return parse(text[..<count]) ?? .zero
    }

    /// 16 raw bytes of a UUID in text.
    static func parse(_ text: ArraySlice<UInt8>) -> LaneID? {
        var bytes = [UInt8](repeating: 0, count: 16)
        var digits = 0
        for character in text {
            var value: UInt8
            switch character {
            case 0x30...0x39: value = character &- 0x30
            case 0x61...0x66: value = character &- 0x61 &+ 10
            case 0x41...0x46: value = character &- 0x41 &+ 10
            default: continue
            }
            guard digits < 32 else { return nil }
            if digits % 2 == 0 { value = value << 4 }
            bytes[digits / 2] |= value
            digits += 1
        }
        guard digits == 32 else { return nil }
        return unsafe bytes.withUnsafeBytes { Bytes.id($0, 0) }
    }
}
