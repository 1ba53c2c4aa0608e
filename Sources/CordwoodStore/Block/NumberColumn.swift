// Numbers of a block's rows, a word each. As long as all are equal, they take no memory: most
// columns of most blocks are constant. Owned by one Block.
// SAFETY: words are read below `count`, which grows with the bytes.

import CordwoodCore

struct NumberColumn<Word: FixedWidthInteger & UnsignedInteger & BitwiseCopyable>: ~Copyable {
    private var words = GrowingBytes()
    private(set) var count = 0
    private var first: Word = 0
    /// All are `first`, and `words` is empty.
    private(set) var isConst = true

    init() {}

    var failed: Bool { words.failed }

    @inline(__always)
    mutating func append(_ word: Word) {
        if isConst {
            if count == 0 { first = word }
            if word == first {
                count &+= 1
                return
            }
            spread()
        }
        words.append(word: word)
        count &+= 1
    }

    @inline(never)
    private mutating func spread() {
        isConst = false
        for _ in 0..<count { words.append(word: first) }
    }

    /// 0 outside.
    @inline(__always)
    subscript(_ index: Int) -> Word {
        if isConst { return first }
        guard UInt(bitPattern: index) &* UInt(MemoryLayout<Word>.size) < UInt(words.count) else {
            return 0
        }
        return unsafe Word(
            littleEndian: words.base.load(
                fromByteOffset: index &* MemoryLayout<Word>.size, as: Word.self))
    }

    mutating func removeAll() {
        words.removeAll()
        (count, first, isConst) = (0, 0, true)
    }
}
