// Names whose values are secrets: of headers, query items, JSON members, form fields and parts.
// Comparisons ignore case, accents that are characters themselves, and word separators, so that
// apiKey, api_key and API-KEY are equal. A longer name that ends in a listed one at a word's start
// (userPassword, X-Auth-Token), or behind a listed front (userpin), counts as listed. Built once,
// never changed, read by any thread. docs/HTTP.md has the lists.
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

    /// - Parameters:
    ///   - names: these count at a word's start.
    ///   - keys: these also behind one of `fronts`, within a word: `userpin`.
    ///   - parts: these anywhere within a word: `accesstoken`.
    ///   - wholes: these only if nothing precedes them.
    init(
        _ names: [String] = [], keys: [String] = [], endings parts: [String] = [],
        wholes: [String] = []
    ) throws(CordwoodError) {
        let fronts = keys.isEmpty ? [] : SecretDefaults.fronts
        let count = names.count + keys.count + parts.count + wholes.count + fronts.count
        let slots = NameTable.slotCount(count)
        memory = try ZeroedMemory(NameTable.bytes(slots: slots))
        var table = unsafe NameTable(in: memory.start, slots: slots)
        for name in parts { table.add(name, .anywhere) }
        for name in keys { table.add(name, .behindFront) }
        for name in names { table.add(name, .word) }
        for name in wholes { table.add(name, .word, isWhole: true) }
        for name in fronts { table.add(front: name) }
        self.table = table
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
    private var lettersMax = 0
    private var bytesMin = Int.max
    private var frontLettersMax = 0

    fileprivate static func slotCount(_ names: Int) -> Int {
        var count = 64
        while count < names * 4 { count *= 2 }
        return count
    }

    fileprivate static func bytes(slots: Int) -> Int {
        slots * 8 + Int(seenBits / 8) + Int(CWI_ENDINGS) * 4
    }

    /// - Parameter memory: `bytes(slots:)` zeros.
    fileprivate init(in memory: UnsafeMutableRawPointer, slots slotCount: Int) {
        slotMask = slotCount - 1
        let words = Int(NameTable.seenBits / 64)
        unsafe slots = memory.bindMemory(to: UInt64.self, capacity: slotCount)
        let afterSlots = unsafe memory + slotCount * 8
        unsafe seen = afterSlots.bindMemory(to: UInt64.self, capacity: words)
        unsafe endings = (afterSlots + words * 8).bindMemory(
            to: UInt32.self, capacity: Int(CWI_ENDINGS))
        allowOtherEndings()
    }

    /// Where a name counts in a longer one. Not 0, which is a free slot.
    fileprivate enum Place: UInt64 { case word = 1, behindFront, anywhere }

    /// The first of several equal names decides: the widest place goes first.
    fileprivate mutating func add(_ name: String, _ place: Place, isWhole: Bool = false) {
        let letters = NameTable.letters(name)
        guard !letters.isEmpty else { return }
        lettersMax = max(lettersMax, letters.count)
        bytesMin = min(bytesMin, letters.reduce(0) { $0 + UTF8.width($1) })
        allowEnding(letters)
        var hash = letters.reduce(NameTable.seed) { NameTable.mix($0, $1.value) }
        if isWhole { hash = NameTable.mix(hash, NameTable.start) }
        put(hash, place)
    }

    fileprivate mutating func add(front: String) {
        let letters = NameTable.letters(front)
        frontLettersMax = max(frontLettersMax, letters.count)
        put(letters.reduce(NameTable.frontSeed) { NameTable.mix($0, $1.value) }, .word)
    }

    /// As they are compared, from the last to the first.
    private static func letters(_ name: String) -> [Unicode.Scalar] {
        name.unicodeScalars.compactMap { $0.folded }.reversed()
    }

    private func put(_ hash: UInt64, _ place: Place) {
        let bit = hash & (NameTable.seenBits - 1)
        unsafe seen[Int(bit >> 6)] |= 1 << (bit & 63)
        var index = Int(truncatingIfNeeded: hash >> 12) & slotMask
        while unsafe slots[index] != 0 {
            if unsafe slots[index] | 3 == hash | 3 { return }
            index = (index + 1) & slotMask
        }
        unsafe slots[index] = hash & ~3 | place.rawValue
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
    private func allowEnding(_ letters: [Unicode.Scalar]) {
        let codes = letters.prefix(3).map { $0.isASCII ? Int(cwi_letter(UInt8($0.value))) : 0 }
        guard codes.count > 1 else {
            for second in 0..<32 { unsafe endings[codes[0] << 5 | second] = .max }
            return
        }
        let isLong = codes.count > 2 && NameTable.letterCodes.contains(codes[2])
        // Word separators may lie between them.
        unsafe endings[codes[0] << 5 | codes[1]] |= isLong ? 1 << UInt32(codes[2]) | 1 : .max
    }

    private static let seed: UInt64 = 0xCBF2_9CE4_8422_2325
    /// Fronts lie among the names.
    private static let frontSeed: UInt64 = 0x8422_2325_CBF2_9CE4
    private static let frontsMax = 2
    /// Not a letter of a name: marks the start of a whole one.
    private static let start: UInt32 = 0

    /// - Parameter letter: folded.
    @inline(__always)
    private static func mix(_ hash: UInt64, _ letter: UInt32) -> UInt64 {
        let mixed = (hash ^ UInt64(letter)) &* 0x9E37_79B9_7F4A_7C15
        return mixed ^ (mixed >> 29)
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
        var left = lettersMax
        var index = name.count
        let stop = max(0, name.count &- NameTable.lookedAt)
        while index > stop, left > 0 {
            index &-= 1
            let byte = unsafe start[index]
            let kind = cwi_name_byte(byte)
            guard kind == NameTable.isASCII else {
                if kind == 0 { continue }
                return endsFolded(name)
            }
            hash = NameTable.mix(hash, UInt32(byte | kind))
            left &-= 1
            if maySee(hash), isListed(hash, name, index) { return true }
        }
        guard index == 0, left < lettersMax else { return false }
        let whole = NameTable.mix(hash, NameTable.start)
        return maySee(whole) && isListed(whole, name, 0)
    }

    /// Of cwi_name_byte.
    private static let isASCII: UInt8 = 0x20

    /// The same, character by character.
    @inline(never)
    private func endsFolded(_ name: ByteText) -> Bool {
        var hash = NameTable.seed
        var left = lettersMax
        var index = name.count
        let stop = max(0, name.count &- NameTable.lookedAt)
        while index > stop, left > 0 {
            let scalar = name.scalar(before: index)
            index &-= scalar.bytes
            guard let letter = scalar.value.folded else { continue }
            hash = NameTable.mix(hash, letter.value)
            left &-= 1
            if maySee(hash), isListed(hash, name, index) { return true }
        }
        guard index == 0, left < lettersMax else { return false }
        let whole = NameTable.mix(hash, NameTable.start)
        return maySee(whole) && isListed(whole, name, 0)
    }

    @inline(__always)
    private func maySee(_ hash: UInt64) -> Bool {
        let bit = hash & (NameTable.seenBits &- 1)
        return unsafe seen[Int(bit >> 6)] >> (bit & 63) & 1 != 0
    }

    /// - Parameter at: where it begins in the longer name.
    @inline(never)
    private func isListed(_ hash: UInt64, _ name: ByteText, _ at: Int) -> Bool {
        guard let place = place(hash) else { return false }
        switch place {
        case .anywhere: return true
        case .word: return NameTable.beginsWord(name, at)
        case .behindFront:
            return NameTable.beginsWord(name, at)
                || follows(name, at, fronts: NameTable.frontsMax)
        }
    }

    private func place(_ hash: UInt64) -> Place? {
        var index = Int(truncatingIfNeeded: hash >> 12) & slotMask
        // Less than a quarter of the slots are taken.
        while unsafe slots[index] != 0 {
            let slot = unsafe slots[index]
            if slot | 3 == hash | 3 { return Place(rawValue: slot & 3) }
            index = (index &+ 1) & slotMask
        }
        return nil
    }

    /// Fronts alone precede that place, back to a word's start.
    private func follows(_ name: ByteText, _ at: Int, fronts: Int) -> Bool {
        var hash = NameTable.frontSeed
        var index = at
        while index > 0, at &- index < frontLettersMax {
            index &-= 1
            guard cwi_name_byte(name[index]) == NameTable.isASCII else { return false }
            hash = NameTable.mix(hash, UInt32(name[index] | NameTable.isASCII))
            guard maySee(hash), place(hash) != nil else { continue }
            if NameTable.beginsWord(name, index) { return true }
            if fronts > 1, follows(name, index, fronts: fronts &- 1) { return true }
        }
        return false
    }

    private static func beginsWord(_ name: ByteText, _ index: Int) -> Bool {
        guard index > 0 else { return true }
        let (byte, before, next) = (name[index], name[index &- 1], name[index &+ 1])
        guard ASCII.isNameByte(before) else { return true }
        if ASCII.isDigit(before) && !ASCII.isDigit(byte) { return true }
        guard byte < 0x80, before < 0x80 else { return beginsFoldedWord(name, index) }
        guard ASCII.isUpper(byte) else { return false }
        return !ASCII.isUpper(before) || ASCII.isLower(next)
    }

    private static func beginsFoldedWord(_ name: ByteText, _ index: Int) -> Bool {
        let before = name.scalar(before: index).value
        let first = name.scalar(at: index)
        let next = name.scalar(at: index &+ first.bytes).value
        guard first.value.properties.isUppercase else { return false }
        return !before.properties.isUppercase || next.properties.isLowercase
    }
}

extension Unicode.Scalar {
    /// As names are compared: one letter for both cases (also of ς, ı and ẞ). nil: it does not
    /// count, because it separates words, or is the accent or sound mark of the letter before it.
    fileprivate var folded: Unicode.Scalar? {
        guard !isASCII else {
            let kind = cwi_name_byte(UInt8(value))
            return kind == 0 ? nil : Unicode.Scalar(UInt8(value) | kind)
        }
        guard !(0x300...0x36F).contains(value), !(0x3099...0x309A).contains(value) else {
            return nil
        }
        let lower = properties.lowercaseMapping.unicodeScalars.first ?? self
        let upper = lower.properties.uppercaseMapping.unicodeScalars.first ?? lower
        return upper.properties.lowercaseMapping.unicodeScalars.first ?? upper
    }
}

extension ByteText {
    /// U+FFFD for a byte that is no part of a character, and beyond the end.
    fileprivate func scalar(at index: Int) -> (value: Unicode.Scalar, bytes: Int) {
        let first = self[index]
        let more = first < 0xC2 ? 0 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3
        var code = UInt32(first) & (more == 0 ? 0x7F : 0x3F >> UInt32(more))
        for i in 0..<more {
            let byte = self[index &+ 1 &+ i]
            guard byte & 0xC0 == 0x80 else { return ("\u{FFFD}", 1) }
            code = code << 6 | UInt32(byte & 0x3F)
        }
        guard more > 0 || first < 0x80, index < count, let value = Unicode.Scalar(code) else {
            return ("\u{FFFD}", 1)
        }
        return (value, more &+ 1)
    }

    fileprivate func scalar(before index: Int) -> (value: Unicode.Scalar, bytes: Int) {
        var from = index &- 1
        while from > 0, index &- from < 4, self[from] & 0xC0 == 0x80 { from &-= 1 }
        let found = scalar(at: from)
        return from &+ found.bytes == index ? found : ("\u{FFFD}", 1)
    }
}
