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
        if isConst, keepsConst(word) { return }
        words.append(word: word)
        count &+= 1
    }

    @inline(__always)
    private mutating func keepsConst(_ word: Word) -> Bool {
        if count == 0 { first = word }
        guard word == first else {
            spread()
            return false
        }
        count &+= 1
        return true
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

    /// The words; none while all are equal.
    var bytes: UnsafeRawBufferPointer { unsafe words.bytes }

    /// `target` has room for `count` numbers.
    func copy(to target: Flat<UInt64>) {
        let size = min(count, target.count)
        let numbers = unsafe target.base
        if isConst {
            for row in 0..<size { unsafe numbers[row] = UInt64(first) }
            return
        }
        let source = unsafe words.base.assumingMemoryBound(to: Word.self)
        for row in 0..<min(size, words.count / MemoryLayout<Word>.size) {
            unsafe numbers[row] = UInt64(Word(littleEndian: source[row]))
        }
    }

    func isSame(as found: Flat<UInt64>) -> Bool {
        guard found.count == count else { return false }
        let numbers = unsafe found.base
        var differing: UInt64 = 0
        if isConst {
            for row in 0..<count { unsafe differing |= numbers[row] ^ UInt64(first) }
            return differing == 0
        }
        guard words.count == count &* MemoryLayout<Word>.size else { return false }
        let source = unsafe words.base.assumingMemoryBound(to: Word.self)
        for row in 0..<count {
            unsafe differing |= numbers[row] ^ UInt64(Word(littleEndian: source[row]))
        }
        return differing == 0
    }

    mutating func removeAll() {
        words.removeAll()
        (count, first, isConst) = (0, 0, true)
    }
}
