// The marks of a text at which a secret may be recognised, one after the other; searched 64 bytes
// at a time (CScan.h). A value on one thread.

import CShims

@safe struct ByteWalk {
    // SAFETY: bits are made of bytes below `count`.
    private let text: ByteText
    private var base = 0
    private var bits: UInt64 = 0

    init(_ text: ByteText) {
        self.text = text
        look(from: 0)
    }

    /// Loads the marks; ignores those before the index.
    private mutating func look(from index: Int) {
        bits = 0
        base = index & ~63
        guard let start = unsafe text.start, base < text.count else { return }
        base = unsafe Int(cwi_next_marks(start, base, text.count, &bits))
        if index > base { bits &= UInt64.max << UInt64(index &- base) }
    }

    /// count: no more marks.
    @inline(__always)
    mutating func next() -> Int {
        while bits == 0 {
            guard base < text.count else { return text.count }
            look(from: base &+ 64)
        }
        let index = base &+ bits.trailingZeroBitCount
        bits &= bits &- 1
        return index
    }

    /// The next mark is at that index or after it.
    @inline(__always)
    mutating func seek(_ index: Int) {
        guard index > base else { return }
        if index &- base >= 64 { return look(from: index) }
        bits &= UInt64.max << UInt64(index &- base)
    }
}
