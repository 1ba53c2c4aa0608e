// Iterates over the sections and fields of a record in place (FORMAT §8.1, §8.2). A part that does
// not fit its container ends the iteration: a damaged record shows the fields before the damage.
// The buffers returned are valid as long as those passed in.
// SAFETY: a position never leaves the view: each part is a checked slice of it.

import CordwoodCore

/// FORMAT §8.1.
@safe public struct SectionIterator: @unsafe IteratorProtocol {
    @safe @usableFromInline var rest: UnsafeRawBufferPointer

    @safe @inlinable public init(_ sections: UnsafeRawBufferPointer) { rest = unsafe sections }

    @safe @inlinable public mutating func next() -> (kind: UInt8, bytes: UnsafeRawBufferPointer)? {
        let head = SectionKind.headerBytes
        guard rest.count >= head else { return nil }
        let length = Int(Bytes.u32(rest, 4))
        guard let bytes = Bytes.slice(rest, head, length) else { return nil }
        let kind = Bytes.u8(rest, 0)
        rest = unsafe Bytes.slice(rest, head &+ length, rest.count &- head &- length) ?? Bytes.none
        return unsafe (kind, bytes)
    }

    /// The bytes of the first section of that kind.
    @safe @inlinable public static func find(
        _ kind: UInt8, in sections: UnsafeRawBufferPointer
    ) -> UnsafeRawBufferPointer? {
        var all = SectionIterator(sections)
        while let section = all.next() {
            if unsafe section.kind == kind { return unsafe section.bytes }
        }
        return nil
    }
}

@safe public enum FieldValue {
    case int(Int64)
    case uint(UInt64)
    case double(Double)
    case bool(Bool)
    case string(UnsafeRawBufferPointer)
    /// Valid JSON within the bounds of JSONCheck.
    case json(UnsafeRawBufferPointer)
}

/// FORMAT §8.2.
@safe public struct FieldIterator: @unsafe IteratorProtocol {
    @safe var bytes: UnsafeRawBufferPointer
    var position: Int
    var left: Int

    @safe public init(_ fields: UnsafeRawBufferPointer) {
        bytes = unsafe fields
        position = 2
        left = fields.count >= 2 ? Int(Bytes.u16(fields, 0)) : 0
    }

    @safe public mutating func next() -> (key: UnsafeRawBufferPointer, value: FieldValue)? {
        guard left > 0, bytes.count &- position >= 4 else { return nil }
        let type = Bytes.u8(bytes, position)
        let keyCount = Int(Bytes.u16(bytes, position &+ 2))
        guard let key = Bytes.slice(bytes, position &+ 4, keyCount) else { return end() }
        let at = position &+ 4 &+ keyCount
        guard let (value, size) = FieldIterator.value(type, bytes, at) else { return end() }
        if type == FieldType.string, Bytes.u8(bytes, position &+ 1) == StringForm.json {
            position = at &+ size
            left &-= 1
            return unsafe (key, FieldIterator.checked(value))
        }
        position = at &+ size
        left &-= 1
        return unsafe (key, value)
    }

    @safe private mutating func end() -> (key: UnsafeRawBufferPointer, value: FieldValue)? {
        left = 0
        return nil
    }

    /// A string's claim about itself is not trusted.
    private static func checked(_ value: FieldValue) -> FieldValue {
        guard case .string(let text) = value, JSONCheck.isValid(text) else { return value }
        return unsafe .json(text)
    }

    @safe private static func value(
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
            return unsafe (.string(text), 4 &+ count)
        default:
            return nil
        }
    }
}

/// All fields that a reader shows, in the order of FORMAT §8.5.
@safe public struct RecordFields: @unsafe IteratorProtocol {
    public enum Part: Sendable { case own, context, exception }

    var iterator: FieldIterator
    @safe var context: UnsafeRawBufferPointer
    @safe var exception: UnsafeRawBufferPointer
    var exceptionAt = 0
    /// The part that the last returned field belongs to.
    public private(set) var part = Part.own

    public init(_ record: borrowing RecordRef) {
        var own = Bytes.none
        exception = Bytes.none
        var sections = SectionIterator(record.sections)
        while let section = sections.next() {
            if unsafe section.kind == SectionKind.fields { unsafe own = section.bytes }
            if unsafe section.kind == SectionKind.exception { exception = unsafe section.bytes }
        }
        context = record.context
        iterator = FieldIterator(own)
    }

    @safe public mutating func next() -> (key: UnsafeRawBufferPointer, value: FieldValue)? {
        if let field = iterator.next() { return unsafe field }
        if part == .own {
            part = .context
            iterator = FieldIterator(context)
            if let field = iterator.next() { return unsafe field }
        }
        part = .exception
        return nextOfException()
    }

    @safe private mutating func nextOfException()
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
        // Unknown parts of an exception are not fields.
        guard count > 0 else { return nextOfException() }
        return unsafe (Bytes.literal(key), .string(text))
    }
}
