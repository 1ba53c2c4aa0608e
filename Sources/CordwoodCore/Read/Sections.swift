// Sections and fields of a record (FORMAT §8.1, §8.2), stepped through in place. What does not fit
// its container ends the iteration: a damaged record shows the fields before the damage. The
// buffers handed out hold as long as those handed in.

/// FORMAT §8.1.
public struct SectionIterator: IteratorProtocol {
    @usableFromInline var rest: UnsafeRawBufferPointer

    @inlinable public init(_ sections: UnsafeRawBufferPointer) { rest = sections }

    @inlinable public mutating func next() -> (kind: UInt8, bytes: UnsafeRawBufferPointer)? {
        let head = SectionKind.headerBytes
        guard rest.count >= head else { return nil }
        let length = Int(Bytes.u32(rest, 4))
        guard let bytes = Bytes.slice(rest, head, length) else { return nil }
        let kind = Bytes.u8(rest, 0)
        rest = Bytes.slice(rest, head &+ length, rest.count &- head &- length) ?? Bytes.none
        return (kind, bytes)
    }

    /// The bytes of the first section of that kind.
    @inlinable public static func find(
        _ kind: UInt8, in sections: UnsafeRawBufferPointer
    ) -> UnsafeRawBufferPointer? {
        var all = SectionIterator(sections)
        while let section = all.next() {
            if section.kind == kind { return section.bytes }
        }
        return nil
    }
}

public enum FieldValue {
    case int(Int64)
    case uint(UInt64)
    case double(Double)
    case bool(Bool)
    case string(UnsafeRawBufferPointer)
}

/// FORMAT §8.2.
public struct FieldIterator: IteratorProtocol {
    var bytes: UnsafeRawBufferPointer
    var position: Int
    var left: Int

    public init(_ fields: UnsafeRawBufferPointer) {
        bytes = fields
        position = 2
        left = fields.count >= 2 ? Int(Bytes.u16(fields, 0)) : 0
    }

    public mutating func next() -> (key: UnsafeRawBufferPointer, value: FieldValue)? {
        guard left > 0, bytes.count &- position >= 4 else { return nil }
        let type = Bytes.u8(bytes, position)
        let keyCount = Int(Bytes.u16(bytes, position &+ 2))
        guard let key = Bytes.slice(bytes, position &+ 4, keyCount) else { return end() }
        let at = position &+ 4 &+ keyCount
        guard let (value, size) = FieldIterator.value(type, bytes, at) else { return end() }
        position = at &+ size
        left &-= 1
        return (key, value)
    }

    private mutating func end() -> (key: UnsafeRawBufferPointer, value: FieldValue)? {
        left = 0
        return nil
    }

    private static func value(
        _ type: UInt8, _ bytes: UnsafeRawBufferPointer, _ at: Int
    ) -> (FieldValue, Int)? {
        let room = bytes.count &- at
        switch type {
        case FieldType.int where room >= 8:
            return (.int(Int64(bitPattern: Bytes.u64(bytes, at))), 8)
        case FieldType.uint where room >= 8:
            return (.uint(Bytes.u64(bytes, at)), 8)
        case FieldType.double where room >= 8:
            return (.double(Double(bitPattern: Bytes.u64(bytes, at))), 8)
        case FieldType.bool where room >= 1:
            return (.bool(Bytes.u8(bytes, at) != 0), 1)
        case FieldType.string where room >= 4:
            let count = Int(Bytes.u32(bytes, at))
            guard let text = Bytes.slice(bytes, at &+ 4, count) else { return nil }
            return (.string(text), 4 &+ count)
        default:
            return nil
        }
    }
}

/// All fields a reader shows, in the order of FORMAT §8.5.
public struct RecordFields: IteratorProtocol {
    public enum Part: Sendable { case own, context, exception }

    var iterator: FieldIterator
    var context: UnsafeRawBufferPointer
    var exception: UnsafeRawBufferPointer
    var exceptionAt = 0
    /// Where the field given last stands.
    public private(set) var part = Part.own

    public init(_ record: borrowing RecordRef) {
        var own = Bytes.none
        exception = Bytes.none
        var sections = SectionIterator(record.sections)
        while let section = sections.next() {
            if section.kind == SectionKind.fields { own = section.bytes }
            if section.kind == SectionKind.exception { exception = section.bytes }
        }
        context = record.context
        iterator = FieldIterator(own)
    }

    public mutating func next() -> (key: UnsafeRawBufferPointer, value: FieldValue)? {
        if let field = iterator.next() { return field }
        if part == .own {
            part = .context
            iterator = FieldIterator(context)
            if let field = iterator.next() { return field }
        }
        part = .exception
        return nextOfException()
    }

    private mutating func nextOfException()
        -> (key: UnsafeRawBufferPointer, value: FieldValue)?
    {
        guard exceptionAt < 3, exception.count >= 12 else { return nil }
        var at = 12
        for index in 0..<exceptionAt { at &+= Int(Bytes.u32(exception, index &* 4)) }
        let count = Int(Bytes.u32(exception, exceptionAt &* 4))
        guard let text = Bytes.slice(exception, at, count) else { return nil }
        let keys: (StaticString, StaticString, StaticString) = (
            "exception.type", "exception.message", "exception.stacktrace"
        )
        let key = exceptionAt == 0 ? keys.0 : exceptionAt == 1 ? keys.1 : keys.2
        exceptionAt &+= 1
        return (Bytes.literal(key), .string(text))
    }
}
