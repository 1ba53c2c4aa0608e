// A word of a command for any POSIX shell. Printable text is in single quotes; other bytes go
// through printf in octal, so that the line itself is plain text. Pure.

import CordwoodFormats

package enum ShellWord {
    /// Printable UTF-8, newlines and tabs.
    package static func isPlain(_ bytes: [UInt8]) -> Bool {
        // SAFETY: the view is read only during the call.
        guard unsafe bytes.withUnsafeBytes({ UTF8Scan.isValid($0) }) else { return false }
        return String(decoding: bytes, as: UTF8.self).unicodeScalars.allSatisfy {
            !PlainText.isControl($0.value) || $0.value == 0x0a || $0.value == 0x09
        }
    }

    /// One word for a shell; contains no NUL.
    package static func quoted(_ bytes: [UInt8]) -> String {
        guard isPlain(bytes) else { return "\"$(printf \(format(bytes)))\"" }
        var text = "'"
        for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars {
            if scalar == "'" { text += "'\\''" } else { text.unicodeScalars.append(scalar) }
        }
        return text + "'"
    }

    /// The format of a printf that prints these bytes.
    package static func format(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = [0x27]
        text.reserveCapacity(bytes.count + bytes.count / 2)
        for byte in bytes {
            switch byte {
            case 0x25: text += [0x25, 0x25]
            case 0x20..<0x7f where byte != 0x27 && byte != 0x5c: text.append(byte)
            default:
                // Always three digits: a digit may follow.
                text += [
                    0x5c, 0x30 + (byte >> 6), 0x30 + (byte >> 3 & 7), 0x30 + (byte & 7),
                ]
            }
        }
        // A format that begins with a dash would be an option.
        if bytes.first == 0x2d { text.replaceSubrange(1..<2, with: Array("\\055".utf8)) }
        return String(decoding: text + [0x27], as: UTF8.self)
    }
}
