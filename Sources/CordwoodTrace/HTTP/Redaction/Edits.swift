// The parts of a text to replace: found in any order, sorted and merged, then written together with
// the unchanged rest of the text. One value on one thread.
// SAFETY: `pieces` is from malloc, grows by doubling and is freed once; indexes are below `count`.

import CordwoodCore

/// Bytes [from, to) of a text. `quotes`: the quoting of the replacement, as needed for a JSON value
/// that was not a string; each level of strings in strings doubles the backslashes.
struct Edit {
    static let bare: UInt32 = .max

    var from: Int
    var to: Int
    var quotes: UInt32
}

@safe package struct Edits: ~Copyable {
    static let replacement: StaticString = "[redacted]"

    private var pieces: UnsafeMutablePointer<Edit>?
    private(set) var count = 0
    private var capacity = 0
    private var isSorted = true
    /// Memory ran out: no part of the text may be kept.
    private var isShort = false

    package init() { unsafe pieces = nil }

    deinit { unsafe Memory.free(pieces) }

    /// The remaining amount that may be decoded and searched: texts in texts multiply.
    private var decodable = 0

    /// Begins a text of that many bytes.
    mutating func begin(_ count: Int) { decodable = 12 &* count &+ 64 << 10 }

    /// False: that many are too many, and the surrounding text must be replaced whole.
    mutating func mayDecode(_ count: Int) -> Bool {
        decodable &-= count
        return decodable >= 0
    }

    mutating func clear() {
        count = 0
        isSorted = true
        isShort = false
        guard capacity > 4_096 else { return }
        unsafe Memory.free(pieces)
        unsafe pieces = nil
        capacity = 0
    }

    mutating func add(_ from: Int, _ to: Int, quotes: UInt32 = Edit.bare) {
        guard from < to else { return }
        if count == capacity, !grow() { return }
        guard let pieces = unsafe pieces else { return }
        if count > 0, unsafe pieces[count &- 1].to > from { isSorted = false }
        unsafe pieces[count] = Edit(from: from, to: to, quotes: quotes)
        count &+= 1
    }

    private mutating func grow() -> Bool {
        let wanted = max(16, capacity &* 2)
        guard
            let moved = unsafe Memory.resize(
                pieces, to: wanted &* MemoryLayout<Edit>.stride)
        else {
            isShort = true
            return false
        }
        unsafe pieces = moved.assumingMemoryBound(to: Edit.self)
        capacity = wanted
        return true
    }

    /// Writes the text with the findings replaced, and forgets them.
    mutating func finish(_ text: ByteText, into out: inout GrowingBytes) {
        apply(to: text, into: &out)
        clear()
    }

    private mutating func apply(to text: ByteText, into out: inout GrowingBytes) {
        guard !isShort else { return out.append(Edits.replacement) }
        guard count > 0 else { return out.append(text) }
        if !isSorted { join() }
        var at = 0
        for i in 0..<count {
            guard let edit = unsafe pieces?[i], edit.from < text.count else { break }
            out.append(text.slice(at, edit.from))
            Edits.replace(edit.quotes, into: &out)
            at = max(at, edit.to)
        }
        out.append(text.slice(at, text.count))
    }

    private static func replace(_ quotes: UInt32, into out: inout GrowingBytes) {
        guard quotes != Edit.bare else { return out.append(replacement) }
        quote(quotes, into: &out)
        out.append(replacement)
        quote(quotes, into: &out)
    }

    private static func quote(_ level: UInt32, into out: inout GrowingBytes) {
        for _ in 0..<(1 << min(level, 8)) - 1 { out.append(UInt8(ascii: "\\")) }
        out.append(UInt8(ascii: "\""))
    }

    /// Makes them ascending and disjoint: of two that overlap, one that covers the other stays, or
    /// both merge.
    private mutating func join() {
        guard let pieces = unsafe pieces, count > 1 else { return }
        var all = unsafe UnsafeMutableBufferPointer(start: pieces, count: count)
        unsafe all.sort {
            $0.from != $1.from ? $0.from < $1.from : $0.to > $1.to
        }
        var last = 0
        for i in 1..<count {
            let edit = unsafe pieces[i]
            if unsafe edit.from >= pieces[last].to {
                last &+= 1
                unsafe pieces[last] = edit
            } else if unsafe edit.to > pieces[last].to {
                unsafe pieces[last].to = edit.to
                unsafe pieces[last].quotes = Edit.bare
            }
        }
        count = last &+ 1
        isSorted = true
    }
}
