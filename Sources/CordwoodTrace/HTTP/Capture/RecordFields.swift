// Fields of one of our records, encoded in sequence in the form of FORMAT §8.2. Owned by one
// exchange at a time; the buffer is reused.
// SAFETY: `key` claims the bytes that it and its callers store.

import CordwoodCore

struct FieldBuffer: ~Copyable {
    var bytes = GrowingBytes()
    private(set) var count = 0
    /// The start of the last string that ended.
    private(set) var lastTextStart = 0

    /// Reserves room for the count first, unless the bytes become part of another buffer.
    mutating func begin(counted: Bool = true) {
        bytes.removeAll()
        count = 0
        if counted { bytes.append(word: UInt16(0)) }
    }

    mutating func end() { bytes.store(UInt16(truncatingIfNeeded: count), at: 0) }

    /// Writes the head of a field and claims `room` bytes after it, which it returns; nil: out of
    /// memory. Keys are known at compile time: inlined, this is a few stores.
    @inline(__always)
    private mutating func key(
        _ key: StaticString, _ type: UInt8, room: Int
    ) -> UnsafeMutableRawPointer? {
        let length = key.utf8CodeUnitCount
        guard let to = unsafe bytes.claim(4 &+ length &+ room) else { return nil }
        unsafe to.storeBytes(
            of: UInt32(type) | UInt32(truncatingIfNeeded: length) << 16, as: UInt32.self)
        unsafe (to + 4).copyMemory(from: key.utf8Start, byteCount: length)
        count &+= 1
        return unsafe to + 4 + length
    }

    @inline(__always)
    mutating func put(_ name: StaticString, _ value: UInt64) {
        unsafe key(name, FieldType.uint, room: 8)?.storeBytes(of: value, as: UInt64.self)
    }

    mutating func put(_ name: StaticString, flag: Bool) {
        unsafe key(name, FieldType.bool, room: 1)?.storeBytes(of: flag ? 1 : 0, as: UInt8.self)
    }

    @inline(__always)
    mutating func put(_ name: StaticString, _ text: ByteText) {
        let size = UInt32(truncatingIfNeeded: text.count)
        unsafe key(name, FieldType.string, room: 4)?.storeBytes(of: size, as: UInt32.self)
        bytes.append(text)
    }

    @inline(__always)
    mutating func put(_ name: StaticString, _ word: StaticString) {
        unsafe put(name, ByteText(word.utf8Start, word.utf8CodeUnitCount))
    }

    /// Not for literals, which would become strings.
    mutating func put(_ name: StaticString, string: String) {
        var text = string
        text.withUTF8 { unsafe put(name, ByteText($0.baseAddress, $0.count)) }
    }

    /// Writes the head of a field; the caller writes its value.
    mutating func append(_ name: ByteText, _ type: UInt8, form: UInt8 = StringForm.text) {
        bytes.append(word: UInt16(type) | UInt16(form) << 8)
        bytes.append(word: UInt16(truncatingIfNeeded: name.count))
        bytes.append(name)
        count &+= 1
    }

    /// Begins a string that the caller writes next; `endText` takes the result.
    @inline(__always)
    mutating func beginText(_ name: StaticString) -> Int {
        unsafe key(name, FieldType.string, room: 4)?.storeBytes(of: 0, as: UInt32.self)
        return bytes.count
    }

    mutating func endText(_ start: Int) {
        lastTextStart = start
        bytes.store(UInt32(truncatingIfNeeded: bytes.count &- start), at: start &- 4)
    }

    /// Appends the fields of another buffer, without a count.
    mutating func append(_ other: borrowing FieldBuffer) {
        bytes.append(other.bytes.text)
        count &+= other.count
    }

    /// Appends the fields whose keys do not begin with the word; stops at damage.
    mutating func append(encoded: ByteText, count: Int, without word: StaticString) {
        var at = 0
        for _ in 0..<count {
            let type = encoded[at]
            let key = at &+ 4
            let length = Int(encoded[at &+ 2]) | Int(encoded[at &+ 3]) << 8
            var end = key &+ length
            switch type {
            case FieldType.string:
                var bytes = 0
                for i in 0..<4 { bytes |= Int(encoded[end &+ i]) << (8 &* i) }
                end &+= 4 &+ bytes
            case FieldType.bool: end &+= 1
            default: end &+= 8
            }
            guard end <= encoded.count else { return }
            if !encoded.slice(key, key &+ length).has(word, at: 0) {
                bytes.append(encoded.slice(at, end))
                self.count &+= 1
            }
            at = end
        }
    }

    mutating func clear(keeping bytesMax: Int) {
        bytes.clear(keeping: bytesMax)
        count = 0
    }
}
