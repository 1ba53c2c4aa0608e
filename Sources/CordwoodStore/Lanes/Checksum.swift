// CRC-32C of bytes in memory (FORMAT §1).
// SAFETY: exactly the view's bytes are read.

import CShims

enum Checksum {
    /// Start with 0; to continue, pass in the previous result.
    @safe static func crc(_ bytes: UnsafeRawBufferPointer, after crc: UInt32 = 0) -> UInt32 {
        guard let base = bytes.baseAddress, bytes.count > 0 else { return crc }
        return unsafe cwi_crc32c(crc, base, bytes.count)
    }
}
