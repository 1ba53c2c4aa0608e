// The note in place of a body that could not be parsed, and of which nothing is kept.

import CordwoodCore
import CordwoodFormats

enum UnparsedBody {
    /// Magic numbers of common formats.
    private static let magics: [(StaticString, [UInt8])] = [
        ("png", [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]), ("jpeg", [0xFF, 0xD8, 0xFF]),
        ("gif", Array("GIF8".utf8)), ("pdf", Array("%PDF-".utf8)),
        ("zip", [0x50, 0x4B, 0x03, 0x04]), ("gzip", [0x1F, 0x8B]),
        ("zstd", [0x28, 0xB5, 0x2F, 0xFD]), ("bzip2", Array("BZh".utf8)),
        ("xz", [0xFD, 0x37, 0x7A, 0x58, 0x5A, 0x00]), ("7z", [0x37, 0x7A, 0xBC, 0xAF, 0x27, 0x1C]),
        ("riff", Array("RIFF".utf8)), ("ogg", Array("OggS".utf8)), ("mp3", Array("ID3".utf8)),
        ("flac", Array("fLaC".utf8)), ("woff", Array("wOFF".utf8)),
        ("woff2", Array("wOF2".utf8)), ("wasm", [0x00, 0x61, 0x73, 0x6D]),
        ("elf", [0x7F, 0x45, 0x4C, 0x46]), ("sqlite", Array("SQLite format 3\0".utf8)),
        ("utf-16", [0xFF, 0xFE]), ("utf-16", [0xFE, 0xFF]),
    ]

    /// `png 89504e470d0a1a0a hash 3f9c…`: the kind, the magic number that identified it, and 16
    /// digits that are equal for equal bodies. The hash's key belongs to this process, so that
    /// hashing guesses does not reveal a body.
    static func describe(_ text: ByteText, into out: inout GrowingBytes) {
        if let (name, magic) = magics.first(where: { text.begins($0.1) }) {
            out.append(name)
            out.append(UInt8(ascii: " "))
            for byte in magic { out.putHex(byte) }
        } else {
            out.append(isHTML(text) ? "html" : isText(text) ? "text" : "binary")
        }
        out.append(" hash ")
        var hasher = Hasher()
        unsafe hasher.combine(bytes: text.raw)
        out.putHex(UInt64(bitPattern: Int64(hasher.finalize())))
    }

    private static func isHTML(_ text: ByteText) -> Bool {
        let begin = text.skipBlank(text.has("\u{FEFF}", at: 0) ? 3 : 0)
        return text.has("<!doctype html", at: begin) || text.has("<html", at: begin)
    }

    private static let lookedAt = 1_024

    private static func isText(_ text: ByteText) -> Bool {
        for index in 0..<min(text.count, lookedAt) {
            let byte = text[index]
            if byte < 0x20 && !ASCII.isBlank(byte) || byte == 0x7F { return false }
        }
        return true
    }
}

extension ByteText {
    fileprivate func begins(_ bytes: [UInt8]) -> Bool {
        guard count >= bytes.count else { return false }
        for index in 0..<bytes.count where self[index] != bytes[index] { return false }
        return true
    }
}

extension GrowingBytes {
    /// Two hex digits for each byte of the value, the highest byte first.
    fileprivate mutating func putHex<Value: FixedWidthInteger & UnsignedInteger>(_ value: Value) {
        var shift = Value.bitWidth
        while shift > 0 {
            shift &-= 4
            let digit = UInt8(truncatingIfNeeded: value >> Value(shift)) & 15
            append(ASCII.hexDigit(digit))
        }
    }
}
