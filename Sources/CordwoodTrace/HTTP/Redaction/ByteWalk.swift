// The bytes of a text that matter to a scan, one after the other; they are looked for 64 at a time
// (CScan.h). A value on one thread.

import CShims

@safe struct ByteWalk {
    enum Kind {
        /// Where a secret may be told.
        case marks
        case controls
    }

    // SAFETY: bits are made of bytes below `count`.
    private let text: ByteText
    private let kind: Kind
    private var base = 0
    private var bits: UInt64 = 0

    init(_ text: ByteText, _ kind: Kind, from start: Int) {
        self.text = text
        self.kind = kind
        look(from: start)
    }

    /// Those before the index do not count.
    private mutating func look(from index: Int) {
        bits = 0
        base = index & ~63
        guard let start = unsafe text.start, base < text.count else { return }
        let found =
            switch kind {
            case .marks: unsafe cwi_next_marks(start, base, text.count, &bits)
            case .controls: unsafe cwi_next_controls(start, base, text.count, &bits)
            }
        base = Int(found)
        if index > base { bits &= UInt64.max << UInt64(index &- base) }
    }

    /// count: no more.
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

    /// The next one is at that index or behind it.
    @inline(__always)
    mutating func seek(_ index: Int) {
        guard index > base else { return }
        if index &- base >= 64 { return look(from: index) }
        bits &= UInt64.max << UInt64(index &- base)
    }
}
