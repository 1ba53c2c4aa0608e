// Where a Swift log call collects its message before the append: the arguments as records hold them
// (FORMAT §8.7), growing upwards, and the tokens of the message, growing downwards. A frame lies on
// the stack of the log call; strings that do not fit move it to the heap until the call ends. It
// belongs to one thread, and nothing in it is shared before the append copies it.
// SAFETY: every store follows a check of the room between `at` and `low`; `base` is a block of the
// size recorded in it, held by the log call or by MessageKeep.

import CCordwood
import CShims

/// One word per literal or argument of a frame.
/// A literal's token is its address and, from bit 48 on, its length, which is not 0. An argument
/// has 0 there; its bits 0–7 hold the class (CW_ARG_…, 0: none), 8–15 the presentation, 16–23 the
/// number of digits, 24–31 what surrounds it.
public enum MessageToken {
    @inlinable public static var literalMax: Int { 4_096 }

    // Classes (CW_ARG_…).
    @inlinable public static var int: UInt64 { 1 }
    @inlinable public static var long: UInt64 { 2 }
    @inlinable public static var double: UInt64 { 3 }
    @inlinable public static var bool: UInt64 { 6 }
    @inlinable public static var uint: UInt64 { 8 }
    @inlinable public static var ulong: UInt64 { 9 }
    @inlinable public static var float: UInt64 { 10 }
    @inlinable public static var text: UInt64 { 11 }

    // Presentations.
    @inlinable public static var plain: UInt64 { 0 }
    @inlinable public static var fixed: UInt64 { 1 }
    @inlinable public static var exponential: UInt64 { 2 }
    @inlinable public static var hex: UInt64 { 3 }
    @inlinable public static var hexUpper: UInt64 { 4 }
    @inlinable public static var octal: UInt64 { 5 }
    @inlinable public static var binary: UInt64 { 6 }
    @inlinable public static var padded: UInt64 { 7 }

    // What surrounds the argument.
    @inlinable public static var optional: UInt64 { 1 }
    @inlinable public static var none: UInt64 { 2 }
    @inlinable public static var redacted: UInt64 { 3 }
    @inlinable public static var hashed: UInt64 { 4 }

    @inlinable @inline(__always)
    public static func argument(
        _ class: UInt64, print: UInt64 = plain, digits: UInt64 = 0, around: UInt64 = 0
    ) -> UInt64 {
        `class` | print << 8 | digits << 16 | around << 24
    }
}

@frozen @safe public struct MessageFrame {
    /// Layout of the block:
    /// u64 serial, also of the message that takes the frame; 0: outgrown, 1: lost.
    /// u32 bytes of the block.
    /// u32 where the last argument begins that takes the rest of a long message; the highest bits
    /// say that a string was cut and that a message has taken the frame.
    /// u64 the other block: the heap block in the log call's block, and the log call's block in the
    /// heap block.
    /// u64 the frame of the log call outside this one.
    /// Arguments; …; tokens, which grow down, and after them the place of the call in three words
    /// (MessageSites).
    public var base: UnsafeMutableRawPointer
    /// End of the arguments.
    public var at: UnsafeMutableRawPointer
    /// The token put last.
    public var low: UnsafeMutableRawPointer
    /// Bytes of the tokens. Where inlined code adds them, the compiler knows this number.
    public var tokens: Int

    @inlinable public static var bytes: Int { 1_024 }
    @inlinable public static var headerBytes: Int { 32 }
    @inlinable public static var placeBytes: Int { 24 }
    /// Strings of this many bytes or more are cut (CW_STRING_MAX).
    @inlinable public static var stringMax: Int { 1 << 20 }

    /// Sets up a block that is still unwritten.
    @inlinable @inline(__always)
    public static func prepare(
        _ base: UnsafeMutableRawPointer, bytes: Int, serial: UInt64,
        outer: UnsafeMutableRawPointer? = nil
    ) {
        unsafe base.storeBytes(of: serial, as: UInt64.self)
        unsafe base.storeBytes(of: UInt64(bytes), toByteOffset: 8, as: UInt64.self)
        unsafe base.storeBytes(of: 0, toByteOffset: 16, as: UInt64.self)
        unsafe base.storeBytes(of: outer, toByteOffset: 24, as: UnsafeMutableRawPointer?.self)
    }

    /// Takes the frame of a prepared block for a message. False: another message has taken it.
    @inlinable @inline(__always)
    public static func take(_ base: UnsafeMutableRawPointer) -> Bool {
        guard unsafe base.load(fromByteOffset: markAt, as: UInt32.self) == 0 else { return false }
        unsafe base.storeBytes(of: takenBit, toByteOffset: markAt, as: UInt32.self)
        return true
    }

    /// The empty frame of a prepared block.
    @inlinable @inline(__always)
    public init(_ base: UnsafeMutableRawPointer) {
        unsafe self.base = unsafe base
        unsafe at = unsafe base + MessageFrame.headerBytes
        let bytes = unsafe Int(base.load(fromByteOffset: 8, as: UInt32.self))
        unsafe low = unsafe base + (bytes &- MessageFrame.placeBytes)
        tokens = 0
    }

    @inlinable @inline(__always)
    public var serial: UInt64 { unsafe base.load(as: UInt64.self) }
    public var blockBytes: Int { unsafe Int(base.load(fromByteOffset: 8, as: UInt32.self)) }
    @inlinable public static var cutBit: UInt32 { 1 << 31 }
    @inlinable public static var takenBit: UInt32 { 1 << 30 }
    @inlinable public static var markAt: Int { 12 }
    private var mark: UInt32 {
        unsafe base.load(fromByteOffset: MessageFrame.markAt, as: UInt32.self)
    }
    private func add(mark more: UInt32) {
        unsafe base.storeBytes(of: mark | more, toByteOffset: MessageFrame.markAt, as: UInt32.self)
    }

    public var isCut: Bool { mark & MessageFrame.cutBit != 0 }

    /// The arguments.
    var content: UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(
            start: base + MessageFrame.headerBytes, count: at - base - MessageFrame.headerBytes)
    }

    /// True if an argument of that many bytes and its token fit.
    @inlinable @inline(__always)
    public func hasRoom(_ bytes: Int) -> Bool { unsafe low - at >= bytes &+ 8 }

    /// The caller has asked for room.
    @inlinable @inline(__always)
    public mutating func put(_ token: UInt64) {
        unsafe low -= 8
        tokens &+= 8
        unsafe low.storeBytes(of: token, as: UInt64.self)
    }

    /// The caller has asked for room.
    @inlinable @inline(__always)
    public mutating func put<Value: BitwiseCopyable>(_ token: UInt64, _ value: Value) {
        put(token)
        unsafe at.storeBytes(of: value, as: Value.self)
        unsafe at += MemoryLayout<Value>.size
    }

    /// The same with a string's bytes; nil if there is no room.
    @safe public func adding(
        _ token: UInt64, _ text: UnsafeBufferPointer<UInt8>
    ) -> MessageFrame? {
        var count = text.count
        var word = UInt32(truncatingIfNeeded: count)
        if count >= MessageFrame.stringMax {
            count = MessageFrame.cut(text, MessageFrame.stringMax)
            word = UInt32(count) | (count < text.count ? LengthWord.cut : 0)
        }
        guard hasRoom(4 &+ count) else { return nil }
        var next = self
        next.put(token, word)
        if word & LengthWord.cut != 0 { add(mark: MessageFrame.cutBit) }
        if let start = text.baseAddress {
            unsafe next.at.copyMemory(from: start, byteCount: count)
            unsafe next.at += count
        }
        return next
    }

    /// Copies a string, with its length, to `at`. Returns its end; nil: it does not fit below `low`
    /// beside its token, or is not in one piece. Not inlined, to keep log calls small.
    @_effects(releasenone) @inline(never)
    public static func copy(
        _ text: String, to at: UnsafeMutableRawPointer, below low: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer? {
        unsafe text.utf8.withContiguousStorageIfAvailable {
            unsafe copy($0, to: at, below: low)
        } ?? nil
    }

    @_effects(releasenone) @inline(never)
    public static func copy(
        _ text: Substring, to at: UnsafeMutableRawPointer, below low: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer? {
        unsafe text.utf8.withContiguousStorageIfAvailable {
            unsafe copy($0, to: at, below: low)
        } ?? nil
    }

    @inline(__always)
    private static func copy(
        _ text: UnsafeBufferPointer<UInt8>, to at: UnsafeMutableRawPointer,
        below low: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer? {
        let count = text.count
        guard count < stringMax, unsafe low - at >= count &+ 12 else { return nil }
        unsafe at.storeBytes(of: UInt32(truncatingIfNeeded: count), as: UInt32.self)
        // A string's storage has an address, even if it is empty.
        unsafe FewBytes.copy(at + 4, text.baseAddress.unsafelyUnwrapped, count)
        return unsafe at + (4 &+ count)
    }

    /// The length of the longest prefix of at most `most` bytes that ends between characters.
    @safe private static func cut(_ text: UnsafeBufferPointer<UInt8>, _ most: Int) -> Int {
        guard text.count > most else { return text.count }
        var count = most
        while count > most - 4, count > 0, unsafe text[count] & 0xC0 == 0x80 { count -= 1 }
        return count
    }

    // MARK: Other blocks

    /// The serial of a frame whose message ran out of memory; no message has it.
    @inlinable public static var lost: UInt64 { 1 }
    /// The serial of a message that got no memory at all; no frame has it.
    @inlinable public static var unmade: UInt64 { 2 }

    /// The same frame with room for `more` bytes, on the heap; the log call releases it. Without
    /// memory, an empty frame in the same block, marked lost: it has room for one number, and a
    /// message that ends in it becomes a remark.
    @inline(never)
    public func grown(more: Int) -> MessageFrame {
        let bytes = (blockBytes * 2 + more + 64 + 7) & ~7
        guard serial != MessageFrame.lost, let block = unsafe Memory.allocate(bytes) else {
            unsafe base.storeBytes(of: MessageFrame.lost, as: UInt64.self)
            return unsafe MessageFrame(base)
        }
        let next = unsafe copied(to: block, bytes: bytes)
        guard let other = unsafe other else {
            unsafe next.setOther(base)
            unsafe setOther(block)
            // No message uses this block any more; they use the other one.
            unsafe base.storeBytes(of: 0, as: UInt64.self)
            return next
        }
        // This block is already on the heap.
        unsafe next.setOther(other)
        unsafe MessageFrame(other).setOther(block)
        unsafe MessageFrame.release(base)
        return next
    }

    /// Frees a block on the heap.
    public static func release(_ block: UnsafeMutableRawPointer) { unsafe Memory.free(block) }

    public var other: UnsafeMutableRawPointer? {
        unsafe base.load(fromByteOffset: 16, as: UnsafeMutableRawPointer?.self)
    }

    /// The frame of the log call whose message is evaluating this one.
    public var outer: UnsafeMutableRawPointer? {
        unsafe base.load(fromByteOffset: 24, as: UnsafeMutableRawPointer?.self)
    }

    private func setOther(_ block: UnsafeMutableRawPointer) {
        unsafe base.storeBytes(
            of: UInt64(UInt(bitPattern: block)), toByteOffset: 16, as: UInt64.self)
    }

    /// Appends to the last argument, a string that takes everything after the other arguments;
    /// `isFirst` begins it.
    @safe public func addingRest(
        _ text: UnsafeBufferPointer<UInt8>, isFirst: Bool
    ) -> MessageFrame {
        let most = min(text.count, MessageFrame.stringMax) + 4
        var next = hasRoom(most) ? self : grown(more: most)
        // The last argument may be gone.
        guard next.serial != MessageFrame.lost else { return next }
        if isFirst {
            unsafe next.add(mark: UInt32(next.at - next.base))
            next.put(MessageToken.argument(MessageToken.text), UInt32(0))
        }
        let begin = Int(next.mark & ~(MessageFrame.cutBit | MessageFrame.takenBit))
        let word = unsafe next.base + begin
        let before = unsafe word.loadUnaligned(as: UInt32.self)
        // A string that was cut stays cut at that point.
        guard before & LengthWord.cut == 0 else { return next }
        let room = MessageFrame.stringMax - Int(before)
        let count = text.count > room ? MessageFrame.cut(text, room) : text.count
        if let start = text.baseAddress, count > 0 {
            unsafe next.at.copyMemory(from: start, byteCount: count)
            unsafe next.at += count
        }
        let isCut = count < text.count
        if isCut { next.add(mark: MessageFrame.cutBit) }
        unsafe word.storeBytes(
            of: before + UInt32(count) | (isCut ? LengthWord.cut : 0), as: UInt32.self)
        return next
    }

    /// The same frame in another, larger block.
    public func copied(to base: UnsafeMutableRawPointer, bytes: Int) -> MessageFrame {
        unsafe MessageFrame.prepare(unsafe base, bytes: bytes, serial: serial)
        var next = unsafe MessageFrame(base)
        next.add(mark: mark)
        unsafe next.at.copyMemory(from: content.baseAddress!, byteCount: content.count)
        unsafe next.at += content.count
        // Includes the words of the place.
        let tokens = self.tokens + MessageFrame.placeBytes
        unsafe next.low = base + bytes - tokens
        unsafe next.low.copyMemory(from: low, byteCount: tokens)
        next.tokens = tokens - MessageFrame.placeBytes
        return next
    }

    /// Shortens the last strings until the arguments have at most `most` bytes; false if that is
    /// impossible.
    mutating func shorten(to most: Int) -> Bool {
        var isShort = unsafe content.count <= most
        guard !isShort else { return true }
        // Walks the arguments from the first one to find the strings.
        let start = unsafe base + MessageFrame.headerBytes
        let tokens = self.tokens / 8
        var excess = unsafe content.count - most
        for wanted in (0..<tokens).reversed() where !isShort {
            var at = unsafe start
            var found: UnsafeMutableRawPointer?
            for index in 0...wanted {
                let token = unsafe low.load(
                    fromByteOffset: (tokens - 1 - index) * 8, as: UInt64.self)
                guard token >> 48 == 0, token & 0xFF != 0,
                    let type = ArgumentType.of(class: UInt8(truncatingIfNeeded: token))
                else { continue }
                unsafe found = index == wanted && type == ArgumentType.text ? at : nil
                let content =
                    unsafe type == ArgumentType.text
                    ? Int(at.loadUnaligned(as: UInt32.self) & ~LengthWord.cut) : 0
                unsafe at += ArgumentType.fixedBytes(type) + content
            }
            guard let text = unsafe found else { continue }
            let count = unsafe Int(text.loadUnaligned(as: UInt32.self) & ~LengthWord.cut)
            let bytes = unsafe UnsafeBufferPointer(
                start: UnsafePointer((text + 4).assumingMemoryBound(to: UInt8.self)), count: count)
            let kept = MessageFrame.cut(bytes, max(0, count - excess))
            let end = unsafe text + 4 + count
            unsafe text.storeBytes(of: UInt32(kept) | LengthWord.cut, as: UInt32.self)
            unsafe (text + 4 + kept).copyMemory(from: end, byteCount: self.at - end)
            unsafe self.at -= count - kept
            excess -= count - kept
            add(mark: MessageFrame.cutBit)
            isShort = excess <= 0
        }
        return isShort
    }
}
