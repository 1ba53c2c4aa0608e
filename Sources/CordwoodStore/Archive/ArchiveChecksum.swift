// The CRC of FORMAT §1 over checked ranges. Headers contain their own checksum; they are summed
// with that word as zero, without being copied or changed.
// SAFETY: ranges are checked against the view's count before its base is moved.

import CShims

/// Checksum of the bytes from `start` on.
@safe func checksum(_ bytes: UnsafeRawBufferPointer, from start: Int) -> UInt32 {
    guard let base = bytes.baseAddress, start <= bytes.count else { return 0 }
    return unsafe cwi_crc32c(0, base + start, bytes.count - start)
}

/// Checksum of all bytes, with the 32-bit word at `offset` taken as zero.
@safe func checksum(_ bytes: UnsafeRawBufferPointer, zeroAt offset: Int) -> UInt32 {
    guard let base = bytes.baseAddress, offset >= 0, offset <= bytes.count - 4 else { return 0 }
    var zero: UInt32 = 0
    var crc = unsafe cwi_crc32c(0, base, offset)
    crc = unsafe cwi_crc32c(crc, &zero, 4)
    return unsafe cwi_crc32c(crc, base + offset + 4, bytes.count - offset - 4)
}
