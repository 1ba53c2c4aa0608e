// Fields of a record that is being written, and the path of Swift values to the append path.
// SAFETY: the views are of strings and arrays that their closures hold until the append has copied
// them.

import CCordwood
import CShims

/// The value of a field; literals of Swift's own types work, too.
public enum FieldInput: Sendable, Hashable {
    case int(Int64)
    case uint(UInt64)
    case double(Double)
    case bool(Bool)
    case string(String)
    /// The text of a JSON value (RFC 8259): at most 262,144 bytes and 20 levels; readers show any
    /// other text as a string.
    case json(String)
}

extension FieldInput: ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByStringInterpolation
{
    public init(integerLiteral value: Int64) { self = .int(value) }
    public init(floatLiteral value: Double) { self = .double(value) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(stringLiteral value: String) { self = .string(value) }
}

/// A type whose values can be field values: `["order": 7, "user": name]`.
public protocol LogValue {
    var fieldInput: FieldInput { get }
}

extension FieldInput: LogValue { public var fieldInput: FieldInput { self } }

/// Values spelled as cases: `["order": .int(7)]`.
extension LogValue where Self == FieldInput {
    @_disfavoredOverload public static func int(_ value: Int64) -> FieldInput { .int(value) }
    @_disfavoredOverload public static func uint(_ value: UInt64) -> FieldInput { .uint(value) }
    @_disfavoredOverload public static func double(_ value: Double) -> FieldInput { .double(value) }
    @_disfavoredOverload public static func bool(_ value: Bool) -> FieldInput { .bool(value) }
    @_disfavoredOverload public static func string(_ value: String) -> FieldInput { .string(value) }
    @_disfavoredOverload public static func json(_ text: String) -> FieldInput { .json(text) }
}

extension Double: LogValue { public var fieldInput: FieldInput { .double(self) } }
extension Float: LogValue { public var fieldInput: FieldInput { .double(Double(self)) } }
extension Bool: LogValue { public var fieldInput: FieldInput { .bool(self) } }
extension String: LogValue { public var fieldInput: FieldInput { .string(self) } }
extension Substring: LogValue { public var fieldInput: FieldInput { .string(String(self)) } }
extension StaticString: LogValue { public var fieldInput: FieldInput { .string("\(self)") } }
extension Int: LogValue {}
extension Int8: LogValue {}
extension Int16: LogValue {}
extension Int32: LogValue {}
extension Int64: LogValue {}
extension UInt: LogValue {}
extension UInt8: LogValue {}
extension UInt16: LogValue {}
extension UInt32: LogValue {}
extension UInt64: LogValue {}

extension LogValue where Self: FixedWidthInteger {
    public var fieldInput: FieldInput {
        Self.isSigned
            ? .int(Int64(truncatingIfNeeded: self)) : .uint(UInt64(truncatingIfNeeded: self))
    }
}

/// nil becomes the string `nil`.
extension Optional: LogValue where Wrapped: LogValue {
    public var fieldInput: FieldInput { self?.fieldInput ?? .string("nil") }
}

/// Writes records with fields given as Swift values.
@usableFromInline package enum RecordWriter {
    @usableFromInline @inline(never)
    package static func write(
        _ logger: LoggerBlock, _ level: UInt32, _ frame: MessageFrame,
        _ fields: KeyValuePairs<String, any LogValue>, _ error: (any Error)?
    ) -> Int32 {
        guard fields.count <= FieldType.countMax else { return Status.limit }
        var encoded: [UInt8] = []
        if fields.count > 0 { encoded.reserveCapacity(fields.count * 48) }
        for (key, value) in fields { put(key, value.fieldInput, &encoded) }
        var type = error.map { String(describing: Swift.type(of: $0)) } ?? ""
        var text = error.map { "\($0)" } ?? ""
        return unsafe encoded.withUnsafeBytes { encoded in
            type.withUTF8 { type in
                text.withUTF8 { text in
                    var extras = MessageExtras()
                    unsafe extras.fields = encoded
                    extras.fieldCount = fields.count
                    extras.errorType = UnsafeRawBufferPointer(type)
                    extras.errorText = UnsafeRawBufferPointer(text)
                    return unsafe MessageSlow.write(logger, level, frame, extras)
                }
            }
        }
    }

    /// A record of text with fields.
    /// - Parameter isOwed: the logger's threshold does not count.
    package static func write(
        _ logger: LoggerBlock, level: UInt8, message: String, fields: [(String, FieldInput)],
        isOwed: Bool = false
    ) -> Int32 {
        let refusal = unsafe AppendSlow.refusal(logger, UInt32(level))
        guard refusal == Status.ok || refusal == Status.disabled && isOwed else { return refusal }
        guard fields.count <= FieldType.countMax else { return Status.limit }
        var message = message
        let encoded = encode(fields)
        return message.withUTF8 { message in
            unsafe encoded.withUnsafeBytes { encoded in
                var body = RichBody()
                unsafe body.message = UnsafeRawBufferPointer(message)
                unsafe body.encodedFields = encoded
                return unsafe AppendSlow.rich(logger, level, body)
            }
        }
    }

    /// Encodes fields (FORMAT §8.2); empty without fields.
    package static func encode(_ fields: [(String, FieldInput)]) -> [UInt8] {
        guard !fields.isEmpty else { return [] }
        var bytes: [UInt8] = []
        put(UInt16(fields.count), &bytes)
        for (key, value) in fields { put(key, value, &bytes) }
        return bytes
    }

    package static func put(_ key: String, _ value: FieldInput, _ bytes: inout [UInt8]) {
        let keyBytes = min(key.utf8.count, 0xFFFF)
        bytes.append(type(value))
        bytes.append(form(value))
        put(UInt16(keyBytes), &bytes)
        put(key, keyBytes, &bytes)
        switch value {
        case .int(let value): put(value, &bytes)
        case .uint(let value): put(value, &bytes)
        case .double(let value): put(value.bitPattern, &bytes)
        case .bool(let value): bytes.append(value ? 1 : 0)
        case .string(let value), .json(let value):
            let count = value.utf8.count
            put(UInt32(truncatingIfNeeded: count), &bytes)
            put(value, count, &bytes)
        }
    }

    /// Appends the first `count` bytes of a string.
    private static func put(_ text: String, _ count: Int, _ bytes: inout [UInt8]) {
        var text = text
        text.withUTF8 {
            unsafe bytes.append(contentsOf: UnsafeRawBufferPointer($0).prefix(count))
        }
    }

    private static func type(_ value: FieldInput) -> UInt8 {
        switch value {
        case .int: return FieldType.int
        case .uint: return FieldType.uint
        case .double: return FieldType.double
        case .bool: return FieldType.bool
        case .string, .json: return FieldType.string
        }
    }

    private static func form(_ value: FieldInput) -> UInt8 {
        guard case .json(var text) = value else { return StringForm.text }
        let isJSON = text.withUTF8 { JSONCheck.isValid(UnsafeRawBufferPointer($0)) }
        return isJSON ? StringForm.json : StringForm.text
    }

    private static func put<T: FixedWidthInteger>(_ value: T, _ bytes: inout [UInt8]) {
        unsafe withUnsafeBytes(of: value.littleEndian) { unsafe bytes.append(contentsOf: $0) }
    }
}
