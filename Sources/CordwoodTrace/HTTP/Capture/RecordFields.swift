// Fields of one of our records, encoded in sequence in the form of FORMAT §8.2. Owned by one
// exchange at a time; the buffer is reused.

import CordwoodCore

struct FieldBuffer: ~Copyable {
    var bytes = ByteBuffer()
    private(set) var count = 0
    /// The start of the last string that ended.
    private(set) var lastTextStart = 0

    /// Reserves room for the count first, unless the bytes become part of another buffer.
    mutating func begin(counted: Bool = true) {
        bytes.cut(to: 0)
        count = 0
        if counted { bytes.put(UInt16(0)) }
    }

    mutating func end() { bytes.set(UInt16(truncatingIfNeeded: count), at: 0) }

    /// Keys are known at compile time: inlined, this is a few stores.
    @inline(__always)
    private mutating func key(_ key: StaticString, _ type: UInt8) {
        bytes.put(UInt32(type) | UInt32(truncatingIfNeeded: key.utf8CodeUnitCount) << 16)
        bytes.append(key)
        count &+= 1
    }

    @inline(__always)
    mutating func put(_ name: StaticString, _ value: UInt64) {
        key(name, FieldType.uint)
        bytes.put(value)
    }

    mutating func put(_ name: StaticString, flag: Bool) {
        key(name, FieldType.bool)
        bytes.put(UInt8(flag ? 1 : 0))
    }

    @inline(__always)
    mutating func put(_ name: StaticString, _ text: ByteText) {
        key(name, FieldType.string)
        bytes.put(UInt32(truncatingIfNeeded: text.count))
        bytes.append(text)
    }

    @inline(__always)
    mutating func put(_ name: StaticString, _ word: StaticString) {
        key(name, FieldType.string)
        bytes.put(UInt32(truncatingIfNeeded: word.utf8CodeUnitCount))
        bytes.append(word)
    }

    mutating func put(_ name: StaticString, _ text: String) {
        var text = text
        text.withUTF8 { unsafe put(name, ByteText($0.baseAddress, $0.count)) }
    }

    /// Writes the head of a field; the caller writes its value.
    mutating func append(_ name: ByteText, _ type: UInt8) {
        bytes.put(UInt16(type))
        bytes.put(UInt16(truncatingIfNeeded: name.count))
        bytes.append(name)
        count &+= 1
    }

    /// Begins a string that the caller writes next; `endText` takes the result.
    @inline(__always)
    mutating func beginText(_ name: StaticString) -> Int {
        key(name, FieldType.string)
        bytes.put(UInt32(0))
        return bytes.count
    }

    mutating func endText(_ start: Int) {
        lastTextStart = start
        bytes.set(UInt32(truncatingIfNeeded: bytes.count &- start), at: start &- 4)
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
