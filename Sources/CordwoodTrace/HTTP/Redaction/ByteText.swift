// Borrowed bytes that never trap on a read: beyond the end there are zeros. Redaction searches
// them, and writes to a ByteBuffer. A value on one thread.
// SAFETY: a ByteText is made for the time in which its memory stays in place; every read is
// compared with `count`. A ByteBuffer owns its memory from malloc and frees it once.

import CCordwood
import CShims
import CordwoodFormats
import Glibc

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
            let found = unsafe memchr(start + index, Int32(byte), count &- index)
        else { return count }
        return unsafe UnsafePointer(found.assumingMemoryBound(to: UInt8.self)) - start
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
        return unsafe memcmp(start + index, word.utf8Start, length) == 0
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

/// Grows by doubling. If memory runs out, it keeps its content and reports that.
@safe package struct ByteBuffer: ~Copyable {
    private var start: UnsafeMutablePointer<UInt8>?
    private(set) var count = 0
    private var capacity = 0
    private(set) var isShort = false

    package init() { unsafe start = nil }

    deinit { unsafe free(start) }

    @inline(__always)
    mutating func reserve(_ more: Int) -> Bool {
        if more <= capacity &- count { return true }
        return grow(more)
    }

    @inline(never)
    private mutating func grow(_ more: Int) -> Bool {
        let (needed, isOver) = count.addingReportingOverflow(more)
        let wanted = max(needed, capacity &* 2, 512)
        guard !isOver, more >= 0, wanted <= 1 << 31, let moved = unsafe realloc(start, wanted)
        else {
            isShort = true
            return false
        }
        unsafe start = moved.assumingMemoryBound(to: UInt8.self)
        capacity = wanted
        return true
    }

    @inline(__always)
    mutating func append(_ text: ByteText) {
        guard text.count > 0, let from = unsafe text.start, reserve(text.count),
            let start = unsafe start
        else { return }
        unsafe UnsafeMutableRawPointer(start + count).copyMemory(from: from, byteCount: text.count)
        count &+= text.count
    }

    /// Appends a line break unless empty, the text, and a word after it.
    @inline(__always)
    mutating func append(line text: ByteText, _ word: StaticString) {
        let length = word.utf8CodeUnitCount
        guard reserve(text.count &+ length &+ 1), let start = unsafe start,
            let from = unsafe text.start
        else { return }
        if count > 0 {
            unsafe start[count] = 0x0A
            count &+= 1
        }
        let to = unsafe UnsafeMutableRawPointer(start + count)
        unsafe to.copyMemory(from: from, byteCount: text.count)
        unsafe (to + text.count).copyMemory(from: word.utf8Start, byteCount: length)
        count &+= text.count &+ length
    }

    @inline(__always)
    mutating func append(_ byte: UInt8) {
        guard reserve(1), let start = unsafe start else { return }
        unsafe start[count] = byte
        count &+= 1
    }

    /// Inlined, so that a short word's bytes are stored and not copied.
    @inline(__always)
    mutating func append(_ word: StaticString) {
        let length = word.utf8CodeUnitCount
        guard reserve(length), let start = unsafe start else { return }
        unsafe UnsafeMutableRawPointer(start + count)
            .copyMemory(from: word.utf8Start, byteCount: length)
        count &+= length
    }

    @inline(__always)
    mutating func put<T: FixedWidthInteger>(_ value: T) {
        guard reserve(MemoryLayout<T>.size), let start = unsafe start else { return }
        unsafe UnsafeMutableRawPointer(start + count).storeBytes(of: value, as: T.self)
        count &+= MemoryLayout<T>.size
    }

    /// Overwrites existing bytes.
    mutating func set<T: FixedWidthInteger>(_ value: T, at index: Int) {
        guard let start = unsafe start, index >= 0, index &+ MemoryLayout<T>.size <= count else {
            return
        }
        unsafe UnsafeMutableRawPointer(start + index).storeBytes(of: value, as: T.self)
    }

    mutating func putDecimal(_ value: UInt64) {
        if value >= 10 { putDecimal(value / 10) }
        append(UInt8(truncatingIfNeeded: 48 &+ value % 10))
    }

    /// Turns control characters from that index on into spaces.
    mutating func blankControls(from index: Int, keepsTabs: Bool = true) {
        guard let start = unsafe start, index >= 0, index < count else { return }
        unsafe cwi_blank_controls(start + index, count &- index, keepsTabs)
    }

    package mutating func cut(to count: Int) { self.count = min(self.count, max(0, count)) }

    /// Empties the buffer; returns large memory.
    mutating func clear(keeping bytesMax: Int) {
        count = 0
        isShort = false
        guard capacity > bytesMax else { return }
        unsafe free(start)
        unsafe start = nil
        capacity = 0
    }

    /// Valid until the next change.
    package var text: ByteText { unsafe ByteText(start.map { unsafe UnsafePointer($0) }, count) }
    func text(_ from: Int, _ to: Int) -> ByteText { text.slice(from, to) }
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
        unsafe self.init(start, text.map { unsafe Int(strlen($0)) } ?? 0)
    }

    @unsafe package init(_ text: cw_str) {
        unsafe self.init(
            UnsafeRawPointer(text.data)?.assumingMemoryBound(to: UInt8.self), text.length)
    }
}
