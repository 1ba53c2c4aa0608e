// Appends the pieces of text lines to growing bytes, short ones without a call or a loop: numbers,
// text that is checked while it is copied, and bytes that recur in every line. One thread at a
// time.
// SAFETY: a `reserve` covers every store. Text of 16 bytes or more is copied in pieces of 16; the
// last piece ends with the text and overlaps the one before. Shorter text is copied likewise, in
// pieces of 8, 4 and less.

/// Up to 64 bytes that are appended again and again.
public struct ReadyBytes {
    public static let most = 64

    @usableFromInline var content = SIMD64<UInt8>(repeating: 0)
    public private(set) var count = 0

    public init() {}

    /// nil: more than `most` bytes.
    @safe public init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count <= ReadyBytes.most else { return nil }
        count = bytes.count
        for at in 0..<bytes.count { content[at] = Bytes.u8(bytes, at) }
    }

    /// Replaces one of its bytes.
    public mutating func set(_ byte: UInt8, at place: Int) {
        if place >= 0, place < count { content[place] = byte }
    }

    @safe @inlinable @inline(__always)
    public func isSame(as text: UnsafeRawBufferPointer) -> Bool {
        guard text.count == count else { return false }
        return unsafe withUnsafeBytes(of: content) { content in
            var at = 0
            while count &- at >= 8 {
                if Bytes.u64(content, at) != Bytes.u64(text, at) { return false }
                at &+= 8
            }
            if count >= 8 { return Bytes.u64(content, count &- 8) == Bytes.u64(text, count &- 8) }
            let mine = unsafe UnsafeRawBufferPointer(rebasing: content[..<count])
            return ShortKey.word(mine) == ShortKey.word(text)
        }
    }
}

/// A short text as a value; two are equal exactly if their texts are.
public struct ShortKey: Equatable {
    @usableFromInline let words: SIMD4<UInt64>
    @usableFromInline let count: Int

    /// The key of the empty text.
    @inlinable public init() {
        words = SIMD4()
        count = 0
    }

    /// nil: more than 32 bytes.
    @safe @inlinable @inline(__always)
    public init?(_ text: UnsafeRawBufferPointer) {
        count = text.count
        guard count <= 32 else { return nil }
        if count >= 8, let from = text.baseAddress {
            let middle = min(8, count &- 8)
            words = unsafe SIMD4(
                from.loadUnaligned(as: UInt64.self),
                (from + middle).loadUnaligned(as: UInt64.self),
                (from + max(count &- 16, 0)).loadUnaligned(as: UInt64.self),
                (from + (count &- 8)).loadUnaligned(as: UInt64.self))
        } else {
            words = SIMD4(ShortKey.word(text), 0, 0, 0)
        }
    }

    /// All of fewer than eight bytes, some of them twice. Of fewer than four, the word's upper five
    /// bytes are 0.
    @safe @inlinable @inline(__always)
    static func word(_ text: UnsafeRawBufferPointer) -> UInt64 {
        let size = text.count
        guard size > 0 else { return 0 }
        if size < 4 {
            // The second of two is also the last.
            return UInt64(Bytes.u8(text, 0)) | UInt64(Bytes.u8(text, size &>> 1)) &<< 8
                | UInt64(Bytes.u8(text, size &- 1)) &<< 16
        }
        return UInt64(Bytes.u32(text, 0)) | UInt64(Bytes.u32(text, size &- 4)) &<< 32
    }

    @inlinable @inline(__always)
    public var hash: Int {
        let mixed = words[0] ^ words[3] ^ UInt64(truncatingIfNeeded: count)
        return Int(truncatingIfNeeded: mixed ^ mixed &>> 29 ^ mixed &>> 11)
    }

    @inlinable @inline(__always)
    public static func == (a: ShortKey, b: ShortKey) -> Bool {
        let other = a.words ^ b.words
        return (other[0] | other[1] | other[2] | other[3]) == 0 && a.count == b.count
    }
}

extension GrowingBytes {
    @inlinable @inline(__always)
    public mutating func append(_ ready: borrowing ReadyBytes) {
        guard reserve(ReadyBytes.most) else { return }
        unsafe (base + used).storeBytes(of: ready.content, as: SIMD64<UInt8>.self)
        used &+= ready.count
    }

    /// Like `append`, but copies short text inline.
    @safe @inlinable @inline(__always)
    public mutating func append(text source: UnsafeRawBufferPointer) {
        let size = source.count
        guard size > 0, let from = source.baseAddress, reserve(size) else { return }
        let to = unsafe base + used
        used &+= size
        if size < 16 { return unsafe Wide.moveShort(from, to, size) }
        if size > 64 { return unsafe to.copyMemory(from: from, byteCount: size) }
        unsafe Wide.moveEnds(SIMD16<UInt8>.self, from, to, min(size, 32))
        if size > 32 {
            unsafe Wide.moveEnds(SIMD16<UInt8>.self, from + (size &- 32), to + (size &- 32), 32)
        }
    }

    /// Copies text up to the first byte that is not printable ASCII. Returns the number of bytes
    /// copied, or the text's length if memory runs out.
    @safe public mutating func append(printable source: UnsafeRawBufferPointer) -> Int {
        append(source, Printable())
    }

    /// Likewise, up to the first control character, byte beyond ASCII, or one of these two.
    @safe @inlinable @inline(__always)
    public mutating func append(
        _ source: UnsafeRawBufferPointer, before one: UInt8, _ other: UInt8
    ) -> Int {
        append(source, Without(one: Wide.all(one), other: Wide.all(other)))
    }

    /// Copies text up to the first control character or byte beyond ASCII, with `mark` before each
    /// of these two letters. Returns how many bytes of the text it copied, or the text's length if
    /// memory runs out.
    @safe public mutating func append(
        _ source: UnsafeRawBufferPointer, marking one: UInt8, _ other: UInt8, by mark: UInt8
    ) -> Int {
        guard let from = source.baseAddress else { return 0 }
        let letters = Without(one: Wide.all(one), other: Wide.all(other))
        var at = 0
        while at < source.count {
            let left = source.count &- at
            // Room for a piece, or for a shorter one and a marked letter.
            guard reserve(18) else { return source.count }
            if left >= 16 {
                let marks = unsafe Wide.move(from + at, base + used, letters)
                let kept = Wide.isAny(marks) ? Wide.firstOdd(marks) : 16
                used &+= kept
                at &+= kept
                if kept == 16 { continue }
            } else {
                let rest = unsafe UnsafeRawBufferPointer(start: from + at, count: left)
                let kept = append(rest, letters)
                at &+= kept
                if kept == left { break }
            }
            let byte = unsafe source[at]
            guard byte == one || byte == other else { break }
            unsafe base.storeBytes(of: mark, toByteOffset: used, as: UInt8.self)
            unsafe base.storeBytes(of: byte, toByteOffset: used &+ 1, as: UInt8.self)
            used &+= 2
            at &+= 1
        }
        return at
    }

    @safe @inlinable @inline(__always)
    mutating func append(_ source: UnsafeRawBufferPointer, _ letters: some Letters) -> Int {
        source.count <= GrowingBytes.pieceMax
            ? appendPiece(source, letters) : appendPieces(source, letters)
    }

    /// Bytes that are copied before they are checked: an odd byte wastes at most one such copy.
    @usableFromInline static var pieceMax: Int { 64 }

    @safe @inlinable @inline(never)
    mutating func appendPieces(_ source: UnsafeRawBufferPointer, _ letters: some Letters) -> Int {
        var at = 0
        while at < source.count {
            let count = min(GrowingBytes.pieceMax, source.count &- at)
            let piece = unsafe UnsafeRawBufferPointer(rebasing: source[at..<at &+ count])
            let kept = appendPiece(piece, letters)
            at &+= kept
            if kept < count { break }
        }
        return at
    }

    @safe @inlinable @inline(__always)
    mutating func appendPiece(_ source: UnsafeRawBufferPointer, _ letters: some Letters) -> Int {
        let size = source.count
        guard size > 0, let from = source.baseAddress, reserve(size) else { return size }
        let to = unsafe base + used
        if size < 16 {
            if Wide.isAny(letters.others(in: Wide.short(source))) {
                return appendShort(source, letters)
            }
            unsafe Wide.moveShort(from, to, size)
            used &+= size
            return size
        }
        let last = size &- 16
        var marks = SIMD16<UInt8>(repeating: 0)
        var at = 0
        while at < last {
            unsafe marks |= Wide.move(from + at, to + at, letters)
            at &+= 16
        }
        unsafe marks |= Wide.move(from + last, to + last, letters)
        let kept = Wide.isAny(marks) ? Wide.count(source, of: letters) : size
        used &+= kept
        return kept
    }

    @safe @inlinable @inline(never)
    mutating func appendShort(_ source: UnsafeRawBufferPointer, _ letters: some Letters) -> Int {
        var at = 0
        while at < source.count,
            !Wide.isAny(letters.others(in: Wide.all(Bytes.u8(source, at))))
        {
            append(Bytes.u8(source, at))
            at &+= 1
        }
        return at
    }

    /// Decimal digits, with zeros before them up to `width`, at most 20.
    public mutating func append(decimal value: UInt64, width: Int = 1) {
        guard reserve(32) else { return }
        if value < 1_000, width <= 3 { return putShort(value, least: max(width, 1)) }
        if value >= 100_000_000 || width > 8 { return putLong(value, width) }
        put(value, least: max(width, 1))
    }

    /// The nine digits of a fraction of a second.
    public mutating func append(nanoseconds value: UInt64) {
        guard reserve(32) else { return }
        let first = value / 100_000_000
        append(UInt8(truncatingIfNeeded: 0x30 | first % 10))
        put(value &- first &* 100_000_000, least: 8)
    }

    /// Appends a number below 1,000. Stores 4 bytes, which the caller has reserved.
    @inline(__always)
    private mutating func putShort(_ value: UInt64, least: Int) {
        let hundreds = (value &* 5_243) &>> 19
        let pair = value &- hundreds &* 100
        let tens = (pair &* 103) &>> 10
        let digits = hundreds | tens &<< 8 | (pair &- tens &* 10) &<< 16 | 0x30_3030
        let size = max(least, value < 10 ? 1 : value < 100 ? 2 : 3)
        let text = UInt32(truncatingIfNeeded: digits &>> UInt64((3 &- size) &* 8))
        unsafe base.storeBytes(of: text.littleEndian, toByteOffset: used, as: UInt32.self)
        used &+= size
    }

    @inline(never)
    private mutating func putLong(_ value: UInt64, _ width: Int) {
        append(decimal: value / 100_000_000, width: max(min(width, 20) &- 8, 1))
        put(value % 100_000_000, least: 8)
    }

    /// Appends a number below 10^8. Stores 8 bytes, which the caller has reserved.
    @inline(__always)
    private mutating func put(_ value: UInt64, least: Int) {
        // Halves, then quarters, then digits, each pair side by side: the higher one comes first.
        let halves = value / 10_000 | (value % 10_000) &<< 32
        let hundreds = (halves &* 10_486) &>> 20 & 0x0000_007F_0000_007F
        let pairs = hundreds | (halves &- hundreds &* 100) &<< 16
        let tens = (pairs &* 103) &>> 10 & 0x000F_000F_000F_000F
        let digits = tens | (pairs &- tens &* 10) &<< 8
        let zeros = min(digits.trailingZeroBitCount &>> 3, 8 &- least)
        let text = (digits | 0x3030_3030_3030_3030) &>> UInt64(zeros &* 8)
        unsafe base.storeBytes(of: text.littleEndian, toByteOffset: used, as: UInt64.self)
        used &+= 8 &- zeros
    }
}

/// Tells which bytes of a text are copied.
@usableFromInline protocol Letters {
    /// Has the highest bit set in each byte that is not copied.
    func others(in bytes: SIMD16<UInt8>) -> SIMD16<UInt8>
}

/// Printable ASCII.
@usableFromInline struct Printable: Letters {
    @inlinable init() {}

    @inlinable @inline(__always)
    func others(in bytes: SIMD16<UInt8>) -> SIMD16<UInt8> {
        bytes | (bytes &- Wide.all(0x20)) | (bytes &+ Wide.all(1))
    }
}

/// ASCII except control characters and two letters.
@usableFromInline struct Without: Letters {
    @usableFromInline let one: SIMD16<UInt8>
    @usableFromInline let other: SIMD16<UInt8>

    @inlinable init(one: SIMD16<UInt8>, other: SIMD16<UInt8>) {
        self.one = one
        self.other = other
    }

    @inlinable @inline(__always)
    func others(in bytes: SIMD16<UInt8>) -> SIMD16<UInt8> {
        // The highest bit is set if the byte is that letter (0 - 1 wraps) or beyond ASCII.
        let isOne = (bytes ^ one) &- Wide.all(1)
        let isOther = (bytes ^ other) &- Wide.all(1)
        return bytes | (bytes &- Wide.all(0x20)) | isOne | isOther
    }
}

/// Sixteen bytes at once.
@usableFromInline enum Wide {
    @inlinable @inline(__always)
    static func all(_ byte: UInt8) -> SIMD16<UInt8> { SIMD16(repeating: byte) }

    /// Copies sixteen bytes and marks those that are not among these letters.
    @unsafe @inlinable @inline(__always)
    static func move(
        _ from: UnsafeRawPointer, _ to: UnsafeMutableRawPointer, _ letters: some Letters
    ) -> SIMD16<UInt8> {
        let bytes = unsafe from.loadUnaligned(as: SIMD16<UInt8>.self)
        unsafe to.storeBytes(of: bytes, as: SIMD16<UInt8>.self)
        return letters.others(in: bytes)
    }

    /// The number of letters before the first other byte, in a text of at least 16 bytes that has
    /// one.
    @safe @inlinable @inline(never)
    static func count(_ text: UnsafeRawBufferPointer, of letters: some Letters) -> Int {
        var at = 0
        while true {
            let bytes = unsafe text.loadUnaligned(fromByteOffset: at, as: SIMD16<UInt8>.self)
            let first = firstOdd(letters.others(in: bytes))
            if first < 16 || at == text.count &- 16 { return at &+ first }
            at = min(at &+ 16, text.count &- 16)
        }
    }

    /// Copies 1 to 15 bytes.
    @unsafe @inlinable @inline(__always)
    static func moveShort(_ from: UnsafeRawPointer, _ to: UnsafeMutableRawPointer, _ size: Int) {
        if size >= 8 { return unsafe moveEnds(UInt64.self, from, to, size) }
        if size >= 4 { return unsafe moveEnds(UInt32.self, from, to, size) }
        if size >= 2 { return unsafe moveEnds(UInt16.self, from, to, size) }
        unsafe to.storeBytes(of: from.load(as: UInt8.self), as: UInt8.self)
    }

    /// Copies one to two words' worth of bytes, as two words that may overlap.
    @unsafe @inlinable @inline(__always)
    static func moveEnds<Word: BitwiseCopyable>(
        _: Word.Type, _ from: UnsafeRawPointer, _ to: UnsafeMutableRawPointer, _ size: Int
    ) {
        let last = size &- MemoryLayout<Word>.size
        let (first, second) = unsafe (
            from.loadUnaligned(as: Word.self), (from + last).loadUnaligned(as: Word.self)
        )
        unsafe to.storeBytes(of: first, as: Word.self)
        unsafe (to + last).storeBytes(of: second, as: Word.self)
    }

    /// All of 1 to 15 bytes, some of them twice. Digits fill the rest.
    @safe @inlinable @inline(__always)
    static func short(_ text: UnsafeRawBufferPointer) -> SIMD16<UInt8> {
        let size = text.count
        let digits: UInt64 = 0x3030_3030_3030_3030
        let words =
            size >= 8
            ? SIMD2(Bytes.u64(text, 0), Bytes.u64(text, size &- 8))
            : SIMD2(ShortKey.word(text) | (size < 4 ? digits &<< 24 : 0), digits)
        return unsafe unsafeBitCast(words, to: SIMD16<UInt8>.self)
    }

    @inlinable @inline(__always)
    static func words(_ bytes: SIMD16<UInt8>) -> SIMD2<UInt64> {
        unsafe unsafeBitCast(bytes, to: SIMD2<UInt64>.self)
    }

    @inlinable @inline(__always)
    static func isAny(_ marks: SIMD16<UInt8>) -> Bool {
        let words = words(marks)
        return (words[0] | words[1]) & 0x8080_8080_8080_8080 != 0
    }

    /// Index of the first byte whose highest bit is set; 16: none.
    @inlinable @inline(__always)
    static func firstOdd(_ marks: SIMD16<UInt8>) -> Int {
        let words = words(marks)
        let low = words[0].littleEndian & 0x8080_8080_8080_8080
        if low != 0 { return low.trailingZeroBitCount &>> 3 }
        let high = words[1].littleEndian & 0x8080_8080_8080_8080
        return 8 &+ high.trailingZeroBitCount &>> 3
    }
}
