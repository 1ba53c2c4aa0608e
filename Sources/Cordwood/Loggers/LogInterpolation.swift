// The values that the interpolated string of a log call accepts. Each value is shown exactly as
// Swift's own interpolation shows it. Numbers, Bool, String, Substring and StaticString are copied
// unchanged; any other value becomes a String first, which may allocate.

import CordwoodCore

extension LogMessage.StringInterpolation {
    // MARK: Numbers

    @inlinable @inline(__always)
    public mutating func appendInterpolation<Value: FixedWidthInteger>(_ value: Value) {
        integer(value, .decimal)
    }

    @inlinable @inline(__always)
    public mutating func appendInterpolation<Value: FixedWidthInteger>(
        _ value: Value, format: LogIntegerFormat, privacy: LogPrivacy = .public
    ) {
        switch privacy {
        case .public: integer(value, format)
        case .redacted: redacted()
        case .hashed: hashed("\(value)")
        }
    }

    @inlinable @inline(__always)
    public mutating func appendInterpolation<Value: FixedWidthInteger>(
        _ value: Value, privacy: LogPrivacy
    ) {
        appendInterpolation(value, format: .decimal, privacy: privacy)
    }

    @inlinable @inline(__always)
    public mutating func appendInterpolation<Value: FixedWidthInteger>(_ value: Value?) {
        guard let value else {
            put(MessageToken.argument(0, around: MessageToken.none), spelled: "nil")
            return
        }
        integer(value, .decimal, around: MessageToken.optional)
    }

    @inlinable @inline(__always)
    mutating func integer<Value: FixedWidthInteger>(
        _ value: Value, _ format: LogIntegerFormat, around: UInt64 = 0
    ) {
        func token(_ type: UInt64) -> UInt64 {
            MessageToken.argument(type, print: format.print, digits: format.digits, around: around)
        }
        func spelled() -> String {
            around == 0 ? LogText.of(value, format) : "Optional(\(value))"
        }
        if Value.bitWidth > 64 {
            text(spelled())
        } else if Value.isSigned {
            if Value.bitWidth <= 32 {
                put(
                    token(MessageToken.int), Int32(truncatingIfNeeded: value), spelled: spelled())
            } else {
                put(
                    token(MessageToken.long), Int64(truncatingIfNeeded: value), spelled: spelled())
            }
        } else if Value.bitWidth <= 32 {
            put(token(MessageToken.uint), UInt32(truncatingIfNeeded: value), spelled: spelled())
        } else {
            put(token(MessageToken.ulong), UInt64(truncatingIfNeeded: value), spelled: spelled())
        }
    }

    @inlinable @inline(__always)
    public mutating func appendInterpolation(_ value: Double) {
        put(MessageToken.argument(MessageToken.double), value, spelled: "\(value)")
    }

    @inlinable @inline(__always)
    public mutating func appendInterpolation(
        _ value: Double, format: LogFloatFormat, privacy: LogPrivacy = .public
    ) {
        switch privacy {
        case .public where format.print == MessageToken.plain: appendInterpolation(value)
        case .public:
            put(
                MessageToken.argument(
                    MessageToken.double, print: format.print, digits: format.digits), value,
                spelled: LogText.of(value, format))
        case .redacted: redacted()
        case .hashed: hashed("\(value)")
        }
    }

    @inlinable @inline(__always)
    public mutating func appendInterpolation(_ value: Double, privacy: LogPrivacy) {
        appendInterpolation(value, format: .shortest, privacy: privacy)
    }

    @inlinable @inline(__always)
    public mutating func appendInterpolation(_ value: Double?) {
        guard let value else {
            put(MessageToken.argument(0, around: MessageToken.none), spelled: "nil")
            return
        }
        put(
            MessageToken.argument(MessageToken.double, around: MessageToken.optional), value,
            spelled: "Optional(\(value))")
    }

    @inlinable @inline(__always)
    public mutating func appendInterpolation(_ value: Float) {
        put(MessageToken.argument(MessageToken.float), value, spelled: "\(value)")
    }

    @inlinable @inline(__always)
    public mutating func appendInterpolation(
        _ value: Float, format: LogFloatFormat, privacy: LogPrivacy = .public
    ) {
        switch privacy {
        case .public where format.print == MessageToken.plain: appendInterpolation(value)
        case .public: appendInterpolation(Double(value), format: format)
        case .redacted: redacted()
        case .hashed: hashed("\(value)")
        }
    }

    @inlinable @inline(__always)
    public mutating func appendInterpolation(_ value: Bool) {
        put(MessageToken.argument(MessageToken.bool), value ? 1 as UInt8 : 0, spelled: "\(value)")
    }

    @inlinable @inline(__always)
    public mutating func appendInterpolation(_ value: Bool?) {
        guard let value else {
            put(MessageToken.argument(0, around: MessageToken.none), spelled: "nil")
            return
        }
        put(
            MessageToken.argument(MessageToken.bool, around: MessageToken.optional),
            value ? 1 as UInt8 : 0, spelled: "Optional(\(value))")
    }

    // MARK: Text

    @inlinable @inline(__always)
    public mutating func appendInterpolation(_ value: String) {
        text(value)
    }

    @inlinable @inline(__always)
    public mutating func appendInterpolation(_ value: Substring) {
        text(value)
    }

    @inlinable
    public mutating func appendInterpolation(_ value: StaticString) {
        value.withUTF8Buffer {
            unsafe appendInterpolation(utf8: UnsafeRawBufferPointer($0))
        }
    }

    /// Shows bytes as text and keeps them unchanged.
    @inlinable
    public mutating func appendInterpolation(utf8 bytes: UnsafeRawBufferPointer) {
        self = adding(unsafe bytes.assumingMemoryBound(to: UInt8.self))
    }

    /// Shows bytes as text and keeps them unchanged.
    @inlinable
    public mutating func appendInterpolation(utf8 bytes: [UInt8]) {
        unsafe bytes.withUnsafeBytes { unsafe appendInterpolation(utf8: $0) }
    }

    // MARK: Everything else

    @inlinable @inline(__always)
    public mutating func appendInterpolation<Value>(_ value: Value) {
        text("\(value)")
    }

    @inlinable @inline(__always)
    public mutating func appendInterpolation<Value>(_ value: Value, privacy: LogPrivacy) {
        switch privacy {
        case .public: appendInterpolation(value)
        case .redacted: redacted()
        case .hashed: hashed("\(value)")
        }
    }

    @inlinable @inline(__always)
    public mutating func appendInterpolation(_ value: String, privacy: LogPrivacy) {
        switch privacy {
        case .public: appendInterpolation(value)
        case .redacted: redacted()
        case .hashed: hashed(value)
        }
    }

    /// A message has no text of its own; readers of the record make it.
    @available(*, deprecated, message: "a LogMessage has no text: log it by itself")
    @inlinable
    public mutating func appendInterpolation(_ value: LogMessage) {
        appendInterpolation(value.description)
    }

    @inlinable @inline(__always)
    mutating func redacted() {
        put(MessageToken.argument(0, around: MessageToken.redacted), spelled: "<redacted>")
    }

    @inlinable @inline(__always)
    mutating func hashed(_ text: String) {
        let hash = LogText.hash(text)
        put(
            MessageToken.argument(
                MessageToken.ulong, print: MessageToken.hex, digits: 16,
                around: MessageToken.hashed), hash,
            spelled: "<hashed \(LogText.of(hash, .hex(digits: 16)))>")
    }
}
