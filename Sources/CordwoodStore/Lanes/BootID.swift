// The id of the running kernel's boot. It tells whether the page cache that a lane was written
// through is still the one being read (RELIABILITY R37).
// SAFETY: the bytes are lent to one call.

import CordwoodFormats
import CordwoodCore

package enum BootID {
    /// Zero if the system does not say.
    package static func running() -> LaneID {
        let text = Files.content("/proc/sys/kernel/random/boot_id", bytesMax: 64)
        return text.flatMap { parse($0[...]) } ?? .zero
    }

    /// Parses a UUID in text form into its 16 raw bytes.
    static func parse(_ text: ArraySlice<UInt8>) -> LaneID? {
        guard let bytes = Hex.bytes(text.filter { ASCII.hex($0) < 16 }), bytes.count == 16 else {
            return nil
        }
        return unsafe bytes.withUnsafeBytes { Bytes.id($0, 0) }
    }
}
