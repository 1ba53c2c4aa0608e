// Names whose values are secrets: of headers, query items, JSON members, form fields and parts.
// Comparisons ignore case and word separators, so that apiKey, api_key and API-KEY are equal. A
// longer name that ends in a listed one at a word's start (userPassword, X-Auth-Token) counts as
// listed. Built once, never changed, read by any thread. docs/HTTP.md has the lists.
// SAFETY: a table's parts lie in `memory`, with the sizes that their masks stand for.

import CShims
import CordwoodCore
import CordwoodFormats

@safe final class SecretNames: @unchecked Sendable {
    // SAFETY: nothing of the table changes after init.
    let table: NameTable
    private let memory: ZeroedMemory

    static let namesMax = 4_096
    static let nameBytesMax = 255

    /// - Parameter parts: names that also count at the end of another name, even within a word:
    ///   `accesstoken`.
    /// - Parameter wholes: names that count only if nothing precedes them.
    init(
        _ names: [String], endings parts: [String] = [], wholes: [String] = []
    ) throws(CordwoodError) {
        let (names, parts) = (SecretNames.spelled(names), SecretNames.spelled(parts))
        let slots = NameTable.slotCount(names.count + parts.count + wholes.count)
        memory = try ZeroedMemory(NameTable.bytes(slots: slots))
        table = unsafe NameTable(
            in: memory.start, slots: slots, names: names, parts: parts, wholes: wholes)
    }

    /// Lookups ignore the case of ASCII letters only: CONTRASEÑA is a name of its own.
    private static func spelled(_ names: [String]) -> [String] {
        names + names.filter { $0.utf8.contains { $0 >= 0x80 } }.map { $0.uppercased() }
    }
}

/// Memory that holds zeros and is freed with the object, for what is larger than a few names:
/// allocations of Swift's own end the host if there is no memory.
@safe final class ZeroedMemory: @unchecked Sendable {
    // SAFETY: its owner writes before others read.
    let start: UnsafeMutableRawPointer

    init(_ bytes: Int) throws(CordwoodError) {
        guard let made = unsafe Memory.allocateZeroed(max(bytes, 1)) else {
            throw CordwoodError(Status.memory, "no memory for the rules of HTTP capture")
        }
        unsafe start = made
    }

    deinit { unsafe Memory.free(start) }
}

/// The names as hashes of their letters from the last to the first. Plain words, so that lookups
/// count no references; SecretNames owns them.
@safe struct NameTable {
    /// The number of bytes, from its end, that are read of a name.
    private static let lookedAt = 256

    private let slots: UnsafeMutablePointer<UInt64>
    private let slotMask: Int
    /// A bit for each value of the lowest bits of a listed name's hash.
    private let seen: UnsafeMutablePointer<UInt64>
    private static let seenBits: UInt64 = 4_096
    /// The last three letters that a secret's name may have, in the form of cwi_may_end (CScan.h).
    let endings: UnsafeMutablePointer<UInt32>
    private let bytesMax: Int
    private let bytesMin: Int

    fileprivate static func slotCount(_ names: Int) -> Int {
        var count = 64
        while count < names * 4 { count *= 2 }
        return count
    }

    fileprivate static func bytes(slots: Int) -> Int {
        slots * 8 + Int(seenBits / 8) + Int(CWI_ENDINGS) * 4
    }

    /// - Parameter memory: `bytes(slots:)` zeros.
    fileprivate init(
        in memory: UnsafeMutableRawPointer, slots slotCount: Int, names: [String], parts: [String],
        wholes: [String]
    ) {
        slotMask = slotCount - 1
        let words = Int(NameTable.seenBits / 64)
        unsafe slots = memory.bindMemory(to: UInt64.self, capacity: slotCount)
        let afterSlots = unsafe memory + slotCount * 8
        unsafe seen = afterSlots.bindMemory(to: UInt64.self, capacity: words)
        unsafe endings = (afterSlots + words * 8).bindMemory(
            to: UInt32.self, capacity: Int(CWI_ENDINGS))
        let counts = (names + parts + wholes).map { $0.utf8.count { ASCII.isNameByte($0) } }
        bytesMax = counts.max() ?? 0
        bytesMin = counts.min() ?? 0
        allowOtherEndings()
        for name in parts { add(name, anywhere: true) }
        for name in names { add(name, anywhere: false) }
        for name in wholes { add(name, anywhere: false, isWhole: true) }
    }

    private func add(_ name: String, anywhere: Bool, isWhole: Bool = false) {
        var hash = NameTable.seed
        var letters: [UInt8] = []
        for byte in name.utf8.reversed() where ASCII.isNameByte(byte) {
            hash = NameTable.mix(hash, ASCII.lower(byte))
            letters.append(ASCII.lower(byte))
        }
        if isWhole { hash = NameTable.mix(hash, NameTable.start) }
        guard !letters.isEmpty else { return }
        allowEnding(letters)
        let value = NameTable.entry(hash, anywhere: anywhere)
        let bit = hash & (NameTable.seenBits - 1)
        unsafe seen[Int(bit >> 6)] |= 1 << (bit & 63)
        var index = Int(truncatingIfNeeded: hash >> 12) & slotMask
        while unsafe slots[index] != 0 {
            if unsafe slots[index] | 1 == value | 1 { return }
            index = (index + 1) & slotMask
        }
        unsafe slots[index] = value
    }

    private static let letterCodes = 1...26

    /// Names that do not end in two letters are looked up.
    private func allowOtherEndings() {
        for last in 0..<32 {
            for second in 0..<32
            where !NameTable.letterCodes.contains(last)
                || !NameTable.letterCodes.contains(second)
            {
                unsafe endings[last << 5 | second] = .max
            }
        }
    }

    /// - Parameter letters: those of a listed name, from its end, at least one.
    private func allowEnding(_ letters: [UInt8]) {
        let codes = letters.prefix(3).map { Int(cwi_letter($0)) }
        guard codes.count > 1 else {
            for second in 0..<32 { unsafe endings[codes[0] << 5 | second] = .max }
            return
        }
        let isLong = codes.count > 2 && NameTable.letterCodes.contains(codes[2])
        // Word separators may lie between them.
        unsafe endings[codes[0] << 5 | codes[1]] |= isLong ? 1 << UInt32(codes[2]) | 1 : .max
    }

    private static let seed: UInt64 = 0xCBF2_9CE4_8422_2325
    /// Not a byte of a name: marks the start of a whole one.
    private static let start: UInt8 = 0

    /// - Parameter byte: in lower case.
    @inline(__always)
    private static func mix(_ hash: UInt64, _ byte: UInt8) -> UInt64 {
        let mixed = (hash ^ UInt64(byte)) &* 0x9E37_79B9_7F4A_7C15
        return mixed ^ (mixed >> 29)
    }

    /// The lowest bit tells whether it counts within a word.
    private static func entry(_ hash: UInt64, anywhere: Bool) -> UInt64 {
        (hash | 2) & ~1 | (anywhere ? 1 : 0)
    }

    /// True if the value of that name is a secret. The name is untrusted: any bytes.
    @inline(__always)
    func contains(_ name: ByteText) -> Bool {
        guard name.count >= bytesMin, name.count > 0 else { return false }
        let quote = UInt8(ascii: "\"")
        let second = name.count > 1 ? name[name.count &- 2] : quote
        let third = name.count > 2 ? name[name.count &- 3] : quote
        guard unsafe cwi_may_end(endings, third, second, name[name.count &- 1]) else {
            return false
        }
        return find(name)
    }

    /// For a header, by its name, or by the start of its name: X-MFA-Code.
    @inline(__always)
    func containsHeader(_ name: ByteText) -> Bool {
        contains(name)
            || name[0] | 0x20 == UInt8(ascii: "x")
                && (name.has("x-mfa", at: 0) || name.has("x-otp", at: 0))
    }

    @inline(never)
    private func find(_ name: ByteText) -> Bool {
        if ends(name) { return true }
        // password2, password[0], token_1
        var end = name.count
        while end > 0, !ASCII.isLower(name[end &- 1] | 0x20) && name[end &- 1] < 0x80 {
            end &-= 1
        }
        return end > 0 && end < name.count && ends(name.slice(0, end))
    }

    private func ends(_ name: ByteText) -> Bool {
        guard let start = unsafe name.start else { return false }
        var hash = NameTable.seed
        var left = bytesMax
        var index = name.count
        let stop = max(0, name.count &- NameTable.lookedAt)
        while index > stop, left > 0 {
            index &-= 1
            let byte = unsafe start[index]
            let kind = cwi_name_byte(byte)
            guard kind != 0 else { continue }
            hash = NameTable.mix(hash, byte | kind)
            left &-= 1
            if maySee(hash), isListed(hash, NameTable.beginsWord(name, index)) { return true }
        }
        guard index == 0, left < bytesMax else { return false }
        let whole = NameTable.mix(hash, NameTable.start)
        return maySee(whole) && isListed(whole, true)
    }

    @inline(__always)
    private func maySee(_ hash: UInt64) -> Bool {
        let bit = hash & (NameTable.seenBits &- 1)
        return unsafe seen[Int(bit >> 6)] >> (bit & 63) & 1 != 0
    }

    @inline(never)
    private func isListed(_ hash: UInt64, _ beginsWord: Bool) -> Bool {
        let value = NameTable.entry(hash, anywhere: true)
        var index = Int(truncatingIfNeeded: hash >> 12) & slotMask
        // Less than a quarter of the slots are taken.
        while unsafe slots[index] != 0 {
            if unsafe slots[index] | 1 == value {
                return unsafe beginsWord || slots[index] & 1 != 0
            }
            index = (index &+ 1) & slotMask
        }
        return false
    }

    private static func beginsWord(_ name: ByteText, _ index: Int) -> Bool {
        guard index > 0 else { return true }
        let (byte, before, next) = (name[index], name[index &- 1], name[index &+ 1])
        guard ASCII.isNameByte(before) else { return true }
        if ASCII.isDigit(before) && !ASCII.isDigit(byte) { return true }
        guard ASCII.isUpper(byte) else { return false }
        return !ASCII.isUpper(before) || ASCII.isLower(next)
    }
}
