// The parts of a field that is JSON. Every text here has passed JSONCheck, or is part of one that
// has: it is valid, and bounded in bytes and depth. No state: any thread.
// SAFETY: bytes are read through Bytes, which checks every offset; parts are views of the text.

import CordwoodCore
import CordwoodFormats

package enum JSONWalk {
    /// The end of the value that begins at `start`, which is not a blank.
    @safe package static func end(_ text: UnsafeRawBufferPointer, _ start: Int) -> Int {
        var (at, depth) = (start, 0)
        while at < text.count {
            switch Bytes.u8(text, at) {
            case UInt8(ascii: "\""):
                at = stringEnd(text, at)
                if depth == 0 { return at }
                continue
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth &+= 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                if depth == 0 { return at }
                depth &-= 1
                if depth == 0 { return at &+ 1 }
            case let byte where depth == 0 && (JSONCheck.isBlank(byte) || byte == 0x2C):
                return at
            default: break
            }
            at &+= 1
        }
        return at
    }

    @safe private static func stringEnd(_ text: UnsafeRawBufferPointer, _ start: Int) -> Int {
        var at = start &+ 1
        while at < text.count, Bytes.u8(text, at) != UInt8(ascii: "\"") {
            at &+= Bytes.u8(text, at) == UInt8(ascii: "\\") ? 2 : 1
        }
        return min(at &+ 1, text.count)
    }

    /// The first byte from `start` on that is not a blank.
    @safe package static func solid(_ text: UnsafeRawBufferPointer, _ start: Int) -> Int {
        var at = start
        while JSONCheck.isBlank(Bytes.u8(text, at)) { at &+= 1 }
        return at
    }

    @safe package static func part(
        _ text: UnsafeRawBufferPointer, _ from: Int, _ to: Int
    ) -> UnsafeRawBufferPointer {
        unsafe Bytes.slice(text, from, to &- from) ?? Bytes.none
    }

    /// The first byte that is not a blank: `{`, `[`, `"`, a digit, `-` or a letter.
    @safe package static func first(_ text: UnsafeRawBufferPointer) -> UInt8 {
        Bytes.u8(text, solid(text, 0))
    }

    /// The members of an object, with names as written, in their quotes; the elements of an array,
    /// with empty names. Other values have no members.
    @safe package static func forEach(
        _ text: UnsafeRawBufferPointer,
        _ body: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Void
    ) {
        var at = solid(text, 0)
        let isObject = Bytes.u8(text, at) == UInt8(ascii: "{")
        guard isObject || Bytes.u8(text, at) == UInt8(ascii: "[") else { return }
        while true {
            at = solid(text, at &+ 1)
            let byte = Bytes.u8(text, at)
            guard at < text.count, byte != UInt8(ascii: "}"), byte != UInt8(ascii: "]") else {
                return
            }
            var name = Bytes.none
            if isObject {
                let nameEnd = stringEnd(text, at)
                unsafe name = part(text, at, nameEnd)
                at = solid(text, solid(text, nameEnd) &+ 1)
            }
            let valueEnd = end(text, at)
            unsafe body(name, part(text, at, valueEnd))
            at = solid(text, valueEnd)
            guard Bytes.u8(text, at) == UInt8(ascii: ",") else { return }
        }
    }

    /// The same, but each name of an object only once: of equal names the last counts.
    @safe package static func forEachOnce(
        _ text: UnsafeRawBufferPointer,
        _ body: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Void
    ) {
        guard first(text) == UInt8(ascii: "{") else { return forEach(text, body) }
        var members: [Member] = []
        forEach(text) { unsafe members.append(Member(name: $0, value: $1)) }
        var seen: Set<[UInt8]> = []
        for index in members.indices.reversed() {
            members[index].isLast = seen.insert(unescaped(members[index].name)).inserted
        }
        for member in members where member.isLast { unsafe body(member.name, member.value) }
    }

    @safe private struct Member {
        @safe var name: UnsafeRawBufferPointer
        @safe var value: UnsafeRawBufferPointer
        var isLast = true
    }

    /// The content of a string in its quotes.
    @safe package static func unescaped(_ string: UnsafeRawBufferPointer) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(string.count)
        var at = 1
        while at < string.count &- 1 {
            let byte = Bytes.u8(string, at)
            at &+= 1
            guard byte == UInt8(ascii: "\\") else {
                out.append(byte)
                continue
            }
            let letter = Bytes.u8(string, at)
            at &+= 1
            switch letter {
            case UInt8(ascii: "b"): out.append(0x08)
            case UInt8(ascii: "f"): out.append(0x0C)
            case UInt8(ascii: "n"): out.append(0x0A)
            case UInt8(ascii: "r"): out.append(0x0D)
            case UInt8(ascii: "t"): out.append(0x09)
            case UInt8(ascii: "u"):
                var code = JSONCheck.hexUnit(string, at) ?? 0
                at &+= 4
                if code & 0xFC00 == 0xD800, let low = JSONCheck.hexUnit(string, at &+ 2) {
                    code = 0x10000 &+ (code & 0x3FF) << 10 &+ low & 0x3FF
                    at &+= 6
                }
                let character = Unicode.Scalar(code) ?? "\u{FFFD}"
                out.append(contentsOf: Character(character).utf8)
            default: out.append(letter)
            }
        }
        return out
    }

    /// The value without blanks between its parts: one line, as JSON lines require.
    @safe package static func append(_ text: UnsafeRawBufferPointer, to out: inout [UInt8]) {
        var at = 0
        var run = 0
        while at < text.count {
            if Bytes.u8(text, at) == UInt8(ascii: "\"") {
                at = stringEnd(text, at)
            } else if JSONCheck.isBlank(Bytes.u8(text, at)) {
                unsafe out.append(contentsOf: part(text, run, at))
                at &+= 1
                run = at
            } else {
                at &+= 1
            }
        }
        unsafe out.append(contentsOf: part(text, run, at))
    }

    /// The value as `append` shows it, for readers that refuse a name that an object has twice.
    @safe package static func appendOnce(_ text: UnsafeRawBufferPointer, to out: inout [UInt8]) {
        let byte = first(text)
        guard byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") else {
            return append(text, to: &out)
        }
        // In ASCII, each closing bracket follows its opening one at a distance of two.
        out.append(byte)
        var isFirst = true
        forEachOnce(text) { name, value in
            if !isFirst { out.append(UInt8(ascii: ",")) }
            isFirst = false
            if name.count > 0 {
                unsafe out.append(contentsOf: name)
                out.append(UInt8(ascii: ":"))
            }
            appendOnce(value, to: &out)
        }
        out.append(byte &+ 2)
    }
}
