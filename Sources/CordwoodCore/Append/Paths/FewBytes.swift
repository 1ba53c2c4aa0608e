// Copies an argument or a few of them. SAFETY: the caller vouches for both blocks.

enum FewBytes {
    /// Up to 64 bytes without a call, by pieces that overlap in the middle: never more than
    /// `count`, because the stack follows.
    @inline(__always)
    static func copy(
        _ target: UnsafeMutableRawPointer, _ source: UnsafeRawPointer, _ count: Int
    ) {
        if count > 64 { return unsafe target.copyMemory(from: source, byteCount: count) }
        if count >= 8 {
            if count <= 16 { return unsafe ends(UInt64.self, target, source, count) }
            if count <= 32 { return unsafe ends(SIMD2<UInt64>.self, target, source, count) }
            unsafe ends(SIMD2<UInt64>.self, target, source, 32)
            let rest = count &- 32
            return unsafe ends(SIMD2<UInt64>.self, target + rest, source + rest, 32)
        }
        if count >= 4 { return unsafe ends(UInt32.self, target, source, count) }
        if count >= 2 { return unsafe ends(UInt16.self, target, source, count) }
        if count == 1 { unsafe ends(UInt8.self, target, source, 1) }
    }

    /// Copies one to two words' worth of bytes, as their first and their last word.
    @inline(__always)
    private static func ends<Word: BitwiseCopyable>(
        _ word: Word.Type, _ target: UnsafeMutableRawPointer, _ source: UnsafeRawPointer,
        _ count: Int
    ) {
        let last = count &- MemoryLayout<Word>.size
        let (one, other) = unsafe (
            source.loadUnaligned(as: Word.self),
            source.loadUnaligned(fromByteOffset: last, as: Word.self)
        )
        unsafe target.storeBytes(of: one, as: Word.self)
        unsafe target.storeBytes(of: other, toByteOffset: last, as: Word.self)
    }
}
