// Fields of a record that is being written, and how Swift callers' values reach the append path.
// SAFETY: the body's views are of strings and arrays that their closures hold until the append has
// copied them.

import CCordwood
import CShims
import CordwoodCore

/// The value of a field; literals of Swift's own types will do.
public enum FieldInput: Sendable, Hashable {
    case int(Int64)
    case uint(UInt64)
    case double(Double)
    case bool(Bool)
    case string(String)
}

extension FieldInput: ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByStringInterpolation
{
    public init(integerLiteral value: Int64) { self = .int(value) }
    public init(floatLiteral value: Double) { self = .double(value) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(stringLiteral value: String) { self = .string(value) }
}

/// Writes records with fields from Swift values.
enum RecordWriter {
    static func write(
        _ logger: LoggerBlock, level: UInt8, message: String, fields: [(String, FieldInput)],
        file: String = "", function: String = "", line: UInt32 = 0, error: (any Error)? = nil
    ) -> Int32 {
        let refusal = unsafe AppendSlow.refusal(logger, UInt32(level))
        guard refusal == Status.ok else { return refusal }
        guard fields.count <= FieldType.countMax else { return Status.limit }
        var message = message
        var encoded = encode(fields)
        var place = (file: file, function: function)
        var type = error.map { String(describing: Swift.type(of: $0)) } ?? ""
        var text = error.map { "\($0)" } ?? ""
        return message.withUTF8 { message in
            unsafe encoded.withUnsafeMutableBytes { encoded in
                place.file.withUTF8 { file in
                    place.function.withUTF8 { function in
                        type.withUTF8 { type in
                            text.withUTF8 { text in
                                var body = RichBody()
                                unsafe body.message = UnsafeRawBufferPointer(message)
                                unsafe body.encodedFields = UnsafeRawBufferPointer(encoded)
                                unsafe body.file = UnsafeRawBufferPointer(file)
                                unsafe body.function = UnsafeRawBufferPointer(function)
                                body.line = line
                                unsafe body.exceptionType = UnsafeRawBufferPointer(type)
                                unsafe body.exceptionMessage = UnsafeRawBufferPointer(text)
                                return unsafe AppendSlow.rich(logger, level, body)
                            }
                        }
                    }
                }
            }
        }
    }

    /// FORMAT §8.2; empty where there are none.
    static func encode(_ fields: [(String, FieldInput)]) -> [UInt8] {
        guard !fields.isEmpty else { return [] }
        var bytes: [UInt8] = []
        put(UInt16(fields.count), &bytes)
        for (key, value) in fields {
            let key = key.utf8.prefix(0xFFFF)
            bytes.append(type(value))
            bytes.append(0)
            put(UInt16(key.count), &bytes)
            bytes += key
            switch value {
            case .int(let value): put(value, &bytes)
            case .uint(let value): put(value, &bytes)
            case .double(let value): put(value.bitPattern, &bytes)
            case .bool(let value): bytes.append(value ? 1 : 0)
            case .string(let value):
                put(UInt32(truncatingIfNeeded: value.utf8.count), &bytes)
                bytes += value.utf8
            }
        }
        return bytes
    }

    private static func type(_ value: FieldInput) -> UInt8 {
        switch value {
        case .int: return FieldType.int
        case .uint: return FieldType.uint
        case .double: return FieldType.double
        case .bool: return FieldType.bool
        case .string: return FieldType.string
        }
    }

    private static func put<T: FixedWidthInteger>(_ value: T, _ bytes: inout [UInt8]) {
        unsafe withUnsafeBytes(of: value.littleEndian) { unsafe bytes.append(contentsOf: $0) }
    }
}
