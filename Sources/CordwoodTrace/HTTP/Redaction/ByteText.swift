// Borrowed bytes that never trap on a read: beyond the end there are zeros. Redaction searches
// them, and writes to GrowingBytes. A value on one thread.
// SAFETY: a ByteText is made for the time in which its memory stays in place; every read is
// compared with `count`.

import CCordwood
import CShims
import CordwoodCore
import CordwoodFormats

@safe package struct ByteText {
    let start: UnsafePointer<UInt8>?
    package let count: Int

    static var empty: ByteText { unsafe ByteText(nil, 0) }

    @unsafe package init(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        unsafe self.start = start
        self.count = unsafe start == nil ? 0 : max(0, count)
    }

    @unsafe init(_ bytes: UnsafeRawBufferPointer) {
        unsafe self.init(bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
    }

    @inline(__always)
    subscript(_ index: Int) -> UInt8 {
        guard let start = unsafe start, UInt(bitPattern: index) < UInt(bitPattern: count) else {
            return 0
        }
        return unsafe start[index]
    }

    func slice(_ from: Int, _ to: Int) -> ByteText {
        let from = min(max(0, from), count)
        let to = min(max(from, to), count)
        return unsafe ByteText(start.map { unsafe $0 + from }, to &- from)
    }

    /// True if no scan would find a candidate in it, and it has no control characters.
    var isPlain: Bool {
        guard let start = unsafe start else { return true }
        return unsafe cwi_is_plain(start, count)
    }

    var isASCII: Bool {
        guard let start = unsafe start else { return true }
        return unsafe cwi_is_ascii(start, count)
    }

    func next(_ byte: UInt8, from index: Int) -> Int {
        guard let start = unsafe start, index < count,
            let found = unsafe Memory.find(byte, in: start + index, count &- index)
        else { return count }
        return unsafe found.assumingMemoryBound(to: UInt8.self) - start
    }

    /// The next place of those bytes; count: none.
    func find(_ bytes: ByteText, from index: Int) -> Int {
        guard let start = unsafe start, index < count, let wanted = unsafe bytes.start else {
            return count
        }
        return unsafe Int(cwi_find(start, index, count, wanted, bytes.count))
    }

    /// True if the text has these bytes at that index, in any case; `word` is in lower case.
    /// Inlined up to the first byte, which mostly differs.
    @inline(__always)
    func has(_ word: StaticString, at index: Int) -> Bool {
        let length = word.utf8CodeUnitCount
        guard let start = unsafe start, index >= 0, index &+ length <= count,
            unsafe length == 0 || (start[index] ^ word.utf8Start[0]) & ~0x20 == 0
        else { return false }
        return unsafe cwi_has(start + index, word.utf8Start, length)
    }

    /// The same, but case-sensitive.
    func hasExactly(_ word: StaticString, at index: Int) -> Bool {
        let length = word.utf8CodeUnitCount
        guard let start = unsafe start, index >= 0, index &+ length <= count else { return false }
        return unsafe Memory.isSame(start + index, word.utf8Start, length)
    }

    func ends(_ word: StaticString) -> Bool { has(word, at: count &- word.utf8CodeUnitCount) }

    func find(_ word: StaticString, from index: Int = 0) -> Int {
        unsafe find(ByteText(word.utf8Start, word.utf8CodeUnitCount), from: index)
    }

    @inline(__always)
    func equals(_ word: StaticString) -> Bool {
        count == word.utf8CodeUnitCount && has(word, at: 0)
    }

    /// Equal in any case; `other` is in lower case.
    @inline(__always)
    func equals(lower other: ByteText) -> Bool {
        guard count == other.count, let start = unsafe start, let word = unsafe other.start else {
            return false
        }
        return unsafe cwi_has(start, word, count)
    }

    /// The first byte of the name of an item (`name=value`) that ends before that index.
    func itemStart(before index: Int, least: Int) -> Int {
        guard let start = unsafe start, index <= count else { return index }
        return unsafe cwi_item_start(start, index, least)
    }

    /// The index after white space.
    func skipBlank(_ index: Int) -> Int {
        var index = index
        while index < count, ASCII.isBlank(self[index]) { index &+= 1 }
        return index
    }

    /// The index after spaces and tabs.
    func skipSpaces(_ index: Int) -> Int {
        var index = index
        while index < count, self[index] == 0x20 || self[index] == 0x09 { index &+= 1 }
        return index
    }

    var trimmed: ByteText {
        var end = count
        let start = skipBlank(0)
        while end > start, ASCII.isBlank(self[end &- 1]) { end &-= 1 }
        return slice(start, end)
    }

    package var array: [UInt8] { unsafe Array(UnsafeBufferPointer(start: start, count: count)) }
    var raw: UnsafeRawBufferPointer { unsafe UnsafeRawBufferPointer(start: start, count: count) }
}

extension ASCII {
    /// Letters, digits, and bytes that do not separate names.
    @inline(__always)
    static func isNameByte(_ byte: UInt8) -> Bool { cwi_name_byte(byte) != 0 }
}

extension GrowingBytes {
    /// Valid until the next change.
    package var text: ByteText { unsafe ByteText(bytes) }
    func text(_ from: Int, _ to: Int) -> ByteText { text.slice(from, to) }

    @inline(__always)
    mutating func append(_ text: ByteText) { unsafe append(text.raw) }

    /// Appends a line break unless empty, the text, and a word, which is not empty, after it.
    @inline(__always)
    mutating func append(line text: ByteText, _ word: StaticString) {
        let length = word.utf8CodeUnitCount
        let at = count > 0 ? 1 : 0
        guard let from = unsafe text.start, let to = unsafe claim(at &+ text.count &+ length)
        else { return }
        unsafe to.storeBytes(of: 0x0A, as: UInt8.self)
        unsafe (to + at).copyMemory(from: from, byteCount: text.count)
        unsafe (to + at + text.count).copyMemory(from: word.utf8Start, byteCount: length)
    }

    mutating func putDecimal(_ value: UInt64) {
        if value >= 10 { putDecimal(value / 10) }
        append(UInt8(truncatingIfNeeded: 48 &+ value % 10))
    }

    /// Turns control characters from that index on into spaces.
    mutating func blankControls(from index: Int, keepsTabs: Bool = true) {
        guard index >= 0, index < count else { return }
        let start = unsafe base.assumingMemoryBound(to: UInt8.self)
        unsafe cwi_blank_controls(start + index, count &- index, keepsTabs)
    }
}

extension ByteText {
    /// Three words or more: "is too short".
    var isSentence: Bool {
        let first = next(0x20, from: 0)
        return next(0x20, from: first &+ 1) < count
    }

    /// A value that is no secret: empty, a boolean, a number of two digits.
    var isHarmless: Bool {
        if equals("true") || equals("false") || equals("null") || count == 0 { return true }
        return count <= 2 && ASCII.isDigit(self[0]) && (count == 1 || ASCII.isDigit(self[1]))
    }
}

extension ByteText {
    @unsafe package init(_ text: UnsafePointer<CChar>?) {
        let start = unsafe UnsafeRawPointer(text)?.assumingMemoryBound(to: UInt8.self)
        unsafe self.init(start, text.map { unsafe Memory.length($0) } ?? 0)
    }

    @unsafe package init(_ text: cw_str) {
        unsafe self.init(
            UnsafeRawPointer(text.data)?.assumingMemoryBound(to: UInt8.self), text.length)
    }
}
