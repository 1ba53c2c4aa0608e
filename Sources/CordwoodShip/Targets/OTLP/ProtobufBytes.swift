// The part of protobuf's wire format that OTLP needs: appends fields to an array, and steps over
// the fields of an answer. The input comes from a server: anything malformed ends the reading. No
// state: any thread.
// SAFETY: a view is appended whole, by its own count.

enum ProtobufBytes {
    static func append(varint value: UInt64, to out: inout [UInt8]) {
        var rest = value
        while rest >= 0x80 {
            out.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest &>>= 7
        }
        out.append(UInt8(truncatingIfNeeded: rest))
    }

    static func append(fixed64 value: UInt64, to out: inout [UInt8]) {
        for shift in stride(from: UInt64(0), to: 64, by: 8) {
            out.append(UInt8(truncatingIfNeeded: value &>> shift))
        }
    }

    /// A field of bytes or of text.
    @safe static func append(
        _ tag: UInt8, _ bytes: UnsafeRawBufferPointer, to out: inout [UInt8]
    ) {
        out.append(tag)
        append(varint: UInt64(bytes.count), to: &out)
        unsafe out.append(contentsOf: bytes)
    }

    static func append(_ tag: UInt8, _ bytes: [UInt8], to out: inout [UInt8]) {
        out.append(tag)
        append(varint: UInt64(bytes.count), to: &out)
        out.append(contentsOf: bytes)
    }

    /// A nested message. Its length is known only once it is written. Most lengths fit one byte; a
    /// longer one moves the message by the rest.
    static func nest(
        _ tag: UInt8, in out: inout [UInt8], _ content: (inout [UInt8]) -> Void
    ) {
        out.append(tag)
        let lengthAt = out.count
        out.append(0)
        content(&out)
        let length = out.count - lengthAt - 1
        guard length >= 0x80 else {
            out[lengthAt] = UInt8(truncatingIfNeeded: length)
            return
        }
        var prefix: [UInt8] = []
        append(varint: UInt64(length), to: &prefix)
        out[lengthAt] = prefix[0]
        out.insert(contentsOf: prefix[1...], at: lengthAt + 1)
    }

    enum Value: Equatable {
        case number(UInt64)
        case bytes([UInt8])
    }

    /// The fields of a message, as far as they are readable.
    static func fields(_ message: [UInt8]) -> [(number: UInt64, value: Value)] {
        var found: [(number: UInt64, value: Value)] = []
        var at = 0
        while at < message.count, found.count < fieldsMax, let key = varint(message, &at) {
            switch key & 7 {
            case 0:
                guard let number = varint(message, &at) else { return found }
                found.append((key >> 3, .number(number)))
            case 1: at += 8
            case 5: at += 4
            case 2:
                guard let length = varint(message, &at),
                    length <= UInt64(max(0, message.count - at))
                else { return found }
                found.append((key >> 3, .bytes(Array(message[at..<(at + Int(length))]))))
                at += Int(length)
            default: return found
            }
        }
        return found
    }

    /// True if the message consists only of byte fields with known numbers.
    static func isMessage(_ message: [UInt8], _ isKnown: (UInt64) -> Bool) -> Bool {
        var at = 0
        while at < message.count {
            guard let key = varint(message, &at), key & 7 == 2, isKnown(key >> 3),
                let length = varint(message, &at), length <= UInt64(message.count - at)
            else { return false }
            at += Int(length)
        }
        return true
    }

    private static let fieldsMax = 64

    private static func varint(_ message: [UInt8], _ at: inout Int) -> UInt64? {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while at < message.count, shift < 70 {
            let byte = message[at]
            at += 1
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
            shift += 7
        }
        return nil
    }
}
