// Finds the site of a Swift log call by the words of its frame: the addresses of its literals, its
// place, and the types of its arguments (a generic function gives one place several sites). All of
// these are immortal, because Swift's modules are never unloaded, so the words themselves are the
// key. The first record registers the site (Sites) and adds an entry here; entries are never
// changed or removed. Any thread may look one up; adding requires the lock of Sites.
// SAFETY: a slot holds 0 or the address of a complete entry in a mapping that is never unmapped;
// the words of a frame lie between `low` and the end of its block.

import CCordwood
import CShims

/// u32 site id, u32 bytes of the words, u64 plan, words.
@safe struct MessageSite {
    static var headerBytes: Int { MessageSites.headerBytes }
    let memory: UnsafeMutableRawPointer

    @inline(__always)
    init(_ memory: UnsafeMutableRawPointer) { unsafe self.memory = unsafe memory }

    @inline(__always)
    var identifier: UInt32 { unsafe memory.load(as: UInt32.self) }
}

public enum MessageSites {
    private static let slotsMax = 1 << 17
    @inlinable static var slotBits: UInt64 { 17 }
    private static let entriesBytes = 16 << 20
    /// The number of slots probed from the short hash. Values of different types, and nils, give
    /// one place many kinds of records with the same short hash; those that find no room there go
    /// to the long hash.
    private static let nearMax = 4
    /// The number of slots probed from the long hash before a site counts as unknown.
    private static let farMax = 64

    private static var tableWord: UnsafeMutableRawPointer {
        unsafe UnsafeMutableRawPointer(cwi_message_table_get()!)
    }

    /// Of an entry.
    @inlinable static var headerBytes: Int { 16 }

    // MARK: Within the log call's own code

    /// The number of the site of a frame that ends at `end`, if the first slot has it and no
    /// context was ever used. The words are constants there, and the compiler knows their number:
    /// a comparison is one instruction and a branch. nil: MessagePath.write looks further.
    @inlinable @inline(__always)
    public static func quick(
        _ frame: MessageFrame, _ end: UnsafeMutableRawPointer, _ file: UInt64, _ function: UInt64,
        _ position: UInt64
    ) -> UInt32? {
        let bytes = frame.tokens &+ MessageFrame.placeBytes
        let low = unsafe end - bytes
        guard frame.tokens <= 64,
            let entry = unsafe quick(file, position, low.load(as: UInt64.self), bytes)
        else { return nil }
        let words = unsafe entry + headerBytes
        guard unsafe isWord(words, bytes &- 8, file), unsafe isWord(words, bytes &- 16, function),
            unsafe isWord(words, bytes &- 24, position),
            unsafe frame.tokens <= 0 || isToken(words, low, 0),
            unsafe frame.tokens <= 8 || isToken(words, low, 8),
            unsafe frame.tokens <= 16 || isToken(words, low, 16),
            unsafe frame.tokens <= 24 || isToken(words, low, 24),
            unsafe frame.tokens <= 32 || isToken(words, low, 32),
            unsafe frame.tokens <= 40 || isToken(words, low, 40),
            unsafe frame.tokens <= 48 || isToken(words, low, 48),
            unsafe frame.tokens <= 56 || isToken(words, low, 56)
        else { return nil }
        return unsafe entry.load(as: UInt32.self)
    }

    @inlinable @inline(__always)
    static func isWord(_ words: UnsafeRawPointer, _ at: Int, _ word: UInt64) -> Bool {
        unsafe words.load(fromByteOffset: at, as: UInt64.self) == word
    }

    @inlinable @inline(__always)
    static func isToken(
        _ words: UnsafeRawPointer, _ low: UnsafeMutableRawPointer, _ at: Int
    ) -> Bool {
        unsafe isWord(words, at, low.load(fromByteOffset: at, as: UInt64.self))
    }

    /// The same for a message that is one String, from the words of its place.
    @inline(__always)
    static func quickText(_ file: UInt64, _ function: UInt64, _ position: UInt64) -> UInt32? {
        let token = MessageToken.argument(MessageToken.text)
        guard let entry = unsafe quick(file, position, token, 8 + MessageFrame.placeBytes)
        else { return nil }
        let words = unsafe entry + headerBytes
        guard unsafe isWord(words, 24, file), unsafe isWord(words, 16, function),
            unsafe isWord(words, 8, position), unsafe isWord(words, 0, token)
        else { return nil }
        return unsafe entry.load(as: UInt32.self)
    }

    /// The entry in the first slot, if it has that many bytes.
    @inlinable @inline(__always)
    static func quick(
        _ file: UInt64, _ position: UInt64, _ last: UInt64, _ bytes: Int
    ) -> UnsafeRawPointer? {
        guard let slots = unsafe cwi_message_quick() else { return nil }
        let slot = near(file, position, last)
        // ORDER: acquire. The entry is complete (A21).
        let word = unsafe cwa_load_acquire_u64(slots + slot)
        guard let entry = unsafe UnsafeRawPointer(bitPattern: UInt(word)),
            unsafe entry.load(fromByteOffset: 4, as: UInt32.self)
                == UInt32(truncatingIfNeeded: bytes)
        else { return nil }
        return unsafe entry
    }

    // MARK: In full

    /// Hashes file, line and column, and the last token.
    @inline(__always)
    private static func near(
        _ low: UnsafeMutableRawPointer, _ end: UnsafeMutableRawPointer
    ) -> Int {
        unsafe near(
            (end - 8).load(as: UInt64.self), (end - 24).load(as: UInt64.self),
            low.load(as: UInt64.self))
    }

    @inlinable @inline(__always)
    static func near(_ file: UInt64, _ position: UInt64, _ last: UInt64) -> Int {
        let mixed = (file ^ position &* 0x9E37_79B9_7F4A_7C15) &+ last
        return Int((mixed &* 0xFF51_AFD7_ED55_8CCD) >> (64 &- slotBits))
    }

    /// Hashes all words.
    private static func far(
        _ low: UnsafeMutableRawPointer, _ end: UnsafeMutableRawPointer
    ) -> Int {
        var (at, mixed) = unsafe (low, UInt64(0))
        while unsafe at < end {
            mixed = unsafe mixed &* 0x9E37_79B9_7F4A_7C15 &+ at.load(as: UInt64.self)
            unsafe at += 8
        }
        // Types are the low bits; surroundings and addresses are higher ones.
        mixed ^= mixed >> 32
        return Int((mixed &* 0xFF51_AFD7_ED55_8CCD) >> (64 &- slotBits))
    }

    /// The site of those words; nil: not known yet. The table exists: a level is enabled, so an
    /// engine has been opened.
    @inline(__always)
    static func known(
        _ low: UnsafeMutableRawPointer, _ end: UnsafeMutableRawPointer
    ) -> MessageSite? {
        let table = unsafe cwi_message_table_get().pointee.slots.unsafelyUnwrapped
        let slot = unsafe near(low, end)
        // ORDER: acquire. The entry is complete (A21).
        let word = unsafe cwa_load_acquire_u64(table + slot)
        guard let memory = unsafe UnsafeMutableRawPointer(bitPattern: UInt(word)) else {
            return nil
        }
        if unsafe isSame(memory, low, end - low) { return unsafe MessageSite(memory) }
        return unsafe knownSlow(table, low, end)
    }

    /// Continues the search when the first near slot holds another site.
    @inline(never)
    private static func knownSlow(
        _ table: UnsafeMutablePointer<UInt64>, _ low: UnsafeMutableRawPointer,
        _ end: UnsafeMutableRawPointer
    ) -> MessageSite? {
        var slot = unsafe near(low, end)
        for probe in 1..<nearMax + farMax {
            slot = probe == nearMax ? unsafe far(low, end) : (slot &+ 1) & (slotsMax &- 1)
            // ORDER: acquire. As in `known` (A21).
            let word = unsafe cwa_load_acquire_u64(table + slot)
            guard let memory = unsafe UnsafeMutableRawPointer(bitPattern: UInt(word)) else {
                return nil
            }
            if unsafe isSame(memory, low, end - low) { return unsafe MessageSite(memory) }
        }
        return nil
    }

    @inline(__always)
    private static func isSame(
        _ entry: UnsafeMutableRawPointer, _ low: UnsafeMutableRawPointer, _ bytes: Int
    ) -> Bool {
        guard unsafe Int(entry.load(fromByteOffset: 4, as: UInt32.self)) == bytes else {
            return false
        }
        let words = unsafe entry + MessageSite.headerBytes
        // The place's three words are always present; the tokens precede them and are compared
        // upwards.
        let (known, place) = unsafe (words + (bytes &- 24), low + (bytes &- 24))
        guard unsafe isSame(known, place, at: 0), unsafe isSame(known, place, at: 16),
            unsafe isSame(known, place, at: 8)
        else { return false }
        // Two at a time: with an odd number of tokens, the last pair has a word of the place again.
        var at = 24 &- bytes
        while at < 0 {
            let one = unsafe known.load(fromByteOffset: at, as: UInt64.self)
            let other = unsafe known.load(fromByteOffset: at &+ 8, as: UInt64.self)
            let differs =
                unsafe (one ^ place.load(fromByteOffset: at, as: UInt64.self))
                | (other ^ place.load(fromByteOffset: at &+ 8, as: UInt64.self))
            guard differs == 0 else { return false }
            at &+= 16
        }
        return true
    }

    @inline(__always)
    private static func isSame(
        _ one: UnsafeMutableRawPointer, _ other: UnsafeMutableRawPointer, at offset: Int
    ) -> Bool {
        unsafe one.load(fromByteOffset: offset, as: UInt64.self)
            == other.load(fromByteOffset: offset, as: UInt64.self)
    }

    /// Runs before the first engine is open. False: out of memory.
    static func prepare() -> Bool {
        let table = unsafe cwi_message_table_get()!
        if unsafe table.pointee.slots != nil { return true }
        let bytes = slotsMax * 8 + entriesBytes
        guard let memory = unsafe Mapping.anonymous(bytes: bytes, wipedOnFork: false) else {
            return false
        }
        if unsafe !cwa_cas_u64(tableWord, 0, UInt64(UInt(bitPattern: memory))) {
            unsafe Mapping.release(memory, bytes: bytes)
        }
        cwi_message_table_made()
        return true
    }

    /// The plan of the frame's site. Registers it if necessary, and adds an entry if there is room.
    /// nil: not possible now; its records carry their definition.
    @inline(never)
    static func registerSlow(_ frame: MessageFrame) -> SitePlan? {
        unsafe described(frame) { definition, classes in
            unsafe Sites.register(definition, classes) { plan in
                guard plan.identifier != SitePlan.described else { return }
                add(frame, plan)
            }
        }
    }

    /// Call under the lock of Sites.
    private static func add(_ frame: MessageFrame, _ plan: SitePlan) {
        let table = unsafe cwi_message_table_get()!
        guard let slots = unsafe table.pointee.slots else { return }
        let end = unsafe frame.base + frame.blockBytes
        let bytes = unsafe end - frame.low
        let used = unsafe Int(table.pointee.used)
        guard used + MessageSite.headerBytes + bytes <= entriesBytes,
            unsafe table.pointee.count < UInt32(slotsMax / 2), unsafe known(frame.low, end) == nil
        else { return }
        guard
            let slot = unsafe free(slots, near(frame.low, end), nearMax)
                ?? free(slots, far(frame.low, end), farMax)
        else { return }
        let entry = unsafe UnsafeMutableRawPointer(slots + slotsMax) + used
        unsafe entry.storeBytes(of: plan.identifier, as: UInt32.self)
        unsafe entry.storeBytes(of: UInt32(bytes), toByteOffset: 4, as: UInt32.self)
        unsafe entry.storeBytes(
            of: UInt64(UInt(bitPattern: plan.memory)), toByteOffset: 8, as: UInt64.self)
        unsafe (entry + MessageSite.headerBytes).copyMemory(from: frame.low, byteCount: bytes)
        unsafe table.pointee.used += UInt64(MessageSite.headerBytes + bytes)
        unsafe table.pointee.count += 1
        // ORDER: release. Publishes the entry; every open lane's catalog already has the site
        // (A21).
        unsafe cwa_store_release_u64(slots + slot, UInt64(UInt(bitPattern: entry)))
    }

    /// The first free one of those slots.
    private static func free(
        _ slots: UnsafeMutablePointer<UInt64>, _ first: Int, _ most: Int
    ) -> Int? {
        (0..<most).lazy.map { (first + $0) & (slotsMax - 1) }.first { unsafe slots[$0] == 0 }
    }

    // MARK: Definition

    /// Calls body with the site's definition, whose format is made from the frame's tokens, and
    /// with the classes of its arguments. Their memory is on the stack, or on the heap for long
    /// formats.
    static func described<Result>(
        _ frame: MessageFrame, _ body: (SiteDefinition, UnsafePointer<UInt8>) -> Result
    ) -> Result {
        let end = unsafe frame.base + frame.blockBytes
        let first = unsafe end - MessageFrame.placeBytes
        var bytes = 0
        var at = unsafe first
        while unsafe at > frame.low {
            unsafe at -= 8
            let token = unsafe at.load(as: UInt64.self)
            bytes += token >> 48 != 0 ? Int(token >> 48) * 2 : FormatWriter.argumentMax
        }
        return unsafe withUnsafeTemporaryAllocation(byteCount: bytes + 64, alignment: 8) { memory in
            // The classes come before the format.
            let classes = unsafe memory.baseAddress!.assumingMemoryBound(to: UInt8.self)
            unsafe classes.initialize(repeating: 0, count: 64)
            var writer = unsafe FormatWriter(memory.baseAddress! + 64)
            var count = 0
            var at = unsafe first
            while unsafe at > frame.low {
                unsafe at -= 8
                let token = unsafe at.load(as: UInt64.self)
                writer.put(token)
                if token >> 48 == 0, token & 0xFF != 0, count < SitePlan.argumentsMax {
                    unsafe classes[count] = UInt8(truncatingIfNeeded: token)
                    count += 1
                }
            }
            let position = unsafe first.load(as: UInt64.self)
            let definition = unsafe SiteDefinition(
                line: UInt32(position >> 32), file: Self.literal(end - 8),
                function: Self.literal(end - 16), format: writer.bytes,
                style: UInt32(SiteLayout.styleSwift))
            return unsafe body(definition, UnsafePointer(classes))
        }
    }

    private static func literal(_ word: UnsafeMutableRawPointer) -> UnsafeRawBufferPointer {
        unsafe FormatWriter.literal(word.load(as: UInt64.self))
    }
}

/// Writes a frame's tokens as a format of style 3 (FORMAT §8.7).
/// SAFETY: the caller has counted argumentMax bytes per argument and two per byte of a literal.
@safe struct FormatWriter {
    static let argumentMax = 40
    private let start: UnsafeMutableRawPointer
    private var end: UnsafeMutableRawPointer

    init(_ start: UnsafeMutableRawPointer) {
        unsafe self.start = unsafe start
        unsafe end = unsafe start
    }

    /// Cut to the longest format that a definition may have.
    @safe var bytes: UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(start: start, count: min(end - start, 65_535))
    }

    /// The bytes of a literal's token.
    @safe static func literal(_ token: UInt64) -> UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(
            start: UnsafeRawPointer(bitPattern: UInt(token & 0xFFFF_FFFF_FFFF)),
            count: Int(token >> 48))
    }

    mutating func put(_ token: UInt64) {
        if token >> 48 != 0 {
            let literal = FormatWriter.literal(token)
            for index in 0..<literal.count {
                let byte = Bytes.u8(literal, index)
                put(byte: byte)
                if byte == 0x7B || byte == 0x7D { put(byte: byte) }
            }
            return
        }
        switch token >> 24 & 0xFF {
        case MessageToken.none: text("nil")
        case MessageToken.redacted: text("<redacted>")
        case MessageToken.hashed:
            text("<hashed ")
            argument(token)
            text(">")
        case MessageToken.optional:
            text("Optional(")
            argument(token)
            text(")")
        default: argument(token)
        }
    }

    private mutating func argument(_ token: UInt64) {
        put(byte: 0x7B)
        let digits = token >> 16 & 0xFF
        switch token >> 8 & 0xFF {
        case MessageToken.fixed: number(":.", digits, 0x66)
        case MessageToken.exponential: number(":.", digits, 0x65)
        case MessageToken.padded: number(":0", digits, 0x64)
        case MessageToken.hex: digits == 0 ? text(":x") : number(":0", digits, 0x78)
        case MessageToken.hexUpper: digits == 0 ? text(":X") : number(":0", digits, 0x58)
        case MessageToken.octal: text(":o")
        case MessageToken.binary: digits == 0 ? text(":b") : number(":0", digits, 0x62)
        default: break
        }
        put(byte: 0x7D)
    }

    private mutating func number(_ before: StaticString, _ digits: UInt64, _ type: UInt8) {
        text(before)
        if digits >= 100 { put(byte: 0x30 + UInt8(digits / 100)) }
        if digits >= 10 { put(byte: 0x30 + UInt8(digits / 10 % 10)) }
        put(byte: 0x30 + UInt8(digits % 10))
        put(byte: type)
    }

    private mutating func text(_ text: StaticString) {
        let bytes = Bytes.literal(text)
        for index in 0..<bytes.count { put(byte: Bytes.u8(bytes, index)) }
    }

    private mutating func put(byte: UInt8) {
        unsafe end.storeBytes(of: byte, as: UInt8.self)
        unsafe end += 1
    }
}
