// The two forms of OTLP as bytes: protobuf by the field numbers of opentelemetry/proto/logs/v1 and
// common/v1, JSON by the rules of OTLP (lowerCamelCase, ids in hex, enums as integers, 64-bit
// integers as strings, otherwise proto3's JSON). A protobuf string must be UTF-8, or receivers
// refuse the whole request: keys and names are repaired, values are sent as bytes. No state: any
// thread.
// SAFETY: views belong to the record being written, and are not kept.

import CordwoodCore
import CordwoodFormats
import CordwoodStore

enum OTLPForm {
    case protobuf
    case json
}

// ── Protobuf ──

enum OTLPProtobuf {
    /// A LogRecord as the field `log_records` of its ScopeLogs.
    static func append(
        _ record: borrowing RecordRef, _ attributes: OTLPAttributes, uid: [UInt8],
        to out: inout [UInt8]
    ) {
        ProtobufBytes.nest(0x12, in: &out) { out in
            if record.timeNs > 0 {
                out.append(0x09)
                ProtobufBytes.append(fixed64: Times.signed(record.timeNs), to: &out)
            }
            if record.level > 0 {
                out.append(0x10)
                ProtobufBytes.append(varint: UInt64(record.level), to: &out)
                ProtobufBytes.append(0x1A, Array(levelName(record.level).utf8), to: &out)
            }
            ProtobufBytes.nest(0x2A, in: &out) { unsafe append(.string(record.message), to: &$0) }
            for attribute in attributes.kept {
                append(0x32, attribute.key, attribute.value, to: &out)
            }
            if !uid.isEmpty {
                unsafe uid.withUnsafeBytes {
                    unsafe append(0x32, OTLP.uidKey, .string($0), to: &out)
                }
            }
            if attributes.dropped > 0 {
                out.append(0x38)
                ProtobufBytes.append(varint: UInt64(attributes.dropped), to: &out)
            }
            let trace = OTLP.trace(of: record)
            if trace.flags > 0 { out += [0x45, trace.flags, 0, 0, 0] }
            if let id = trace.id { ProtobufBytes.append(0x4A, id, to: &out) }
            if let span = trace.span { ProtobufBytes.append(0x52, span, to: &out) }
            if record.writtenNs > 0 {
                out.append(0x59)
                ProtobufBytes.append(fixed64: Times.signed(record.writtenNs), to: &out)
            }
        }
    }

    /// A KeyValue as field `tag`.
    @safe static func append(
        _ tag: UInt8, _ key: UnsafeRawBufferPointer, _ value: FieldValue, to out: inout [UInt8]
    ) {
        ProtobufBytes.nest(tag, in: &out) { out in
            if key.count > 0 { ProtobufBytes.append(0x0A, OTLP.repaired(key), to: &out) }
            ProtobufBytes.nest(0x12, in: &out) { append(value, to: &$0) }
        }
    }

    /// An AnyValue's one field; written even for the type's zero, which is a value.
    private static func append(_ value: FieldValue, to out: inout [UInt8]) {
        switch value {
        case .string(let text):
            ProtobufBytes.append(UTF8Scan.isValid(text) ? 0x0A : 0x3A, text, to: &out)
        case .bool(let flag): out += [0x10, flag ? 1 : 0]
        case .int(let number):
            out.append(0x18)
            ProtobufBytes.append(varint: UInt64(bitPattern: number), to: &out)
        case .uint(let number) where number <= UInt64(Int64.max):
            out.append(0x18)
            ProtobufBytes.append(varint: number, to: &out)
        case .uint(let number):
            ProtobufBytes.append(0x0A, Array(String(number).utf8), to: &out)
        case .double(let number):
            out.append(0x21)
            ProtobufBytes.append(fixed64: number.bitPattern, to: &out)
        case .json(let text): append(json: text, to: &out)
        }
    }

    /// An object as a KeyValueList, an array as an ArrayValue; null is an AnyValue without a field.
    /// JSONCheck bounds how deep this calls itself.
    @safe private static func append(json text: UnsafeRawBufferPointer, to out: inout [UInt8]) {
        let first = JSONWalk.first(text)
        if first == UInt8(ascii: "n") { return }
        let isObject = first == UInt8(ascii: "{")
        guard isObject || first == UInt8(ascii: "[") else {
            return JSONWalk.scalar(text) { append($0, to: &out) }
        }
        ProtobufBytes.nest(isObject ? 0x32 : 0x2A, in: &out) { out in
            JSONWalk.forEachOnce(text) { name, value in
                ProtobufBytes.nest(0x0A, in: &out) { out in
                    if !isObject { return unsafe append(.json(value), to: &out) }
                    let name = JSONWalk.unescaped(name)
                    if !name.isEmpty { ProtobufBytes.append(0x0A, name, to: &out) }
                    ProtobufBytes.nest(0x12, in: &out) { unsafe append(.json(value), to: &$0) }
                }
            }
        }
    }

    /// A Resource as the field `resource` of its ResourceLogs.
    static func resource(_ attributes: [(key: String, value: OTLP.ResourceValue)], dropped: UInt64)
        -> [UInt8]
    {
        var out: [UInt8] = []
        ProtobufBytes.nest(0x0A, in: &out) { out in
            for (key, value) in attributes {
                ProtobufBytes.nest(0x0A, in: &out) { out in
                    ProtobufBytes.append(0x0A, Array(key.utf8), to: &out)
                    ProtobufBytes.nest(0x12, in: &out) { out in
                        switch value {
                        case .text(let text):
                            ProtobufBytes.append(0x0A, Array(text.utf8), to: &out)
                        case .number(let number):
                            out.append(0x18)
                            ProtobufBytes.append(varint: number, to: &out)
                        }
                    }
                }
            }
            if dropped > 0 {
                out.append(0x10)
                ProtobufBytes.append(varint: dropped, to: &out)
            }
        }
        return out
    }

    /// An InstrumentationScope as the field `scope` of its ScopeLogs.
    @safe static func scope(_ logger: UnsafeRawBufferPointer) -> [UInt8] {
        var out: [UInt8] = []
        ProtobufBytes.nest(0x0A, in: &out) { out in
            if logger.count > 0 { ProtobufBytes.append(0x0A, OTLP.repaired(logger), to: &out) }
        }
        return out
    }
}

// ── JSON ──

enum OTLPJSON {
    static func append(
        _ record: borrowing RecordRef, _ attributes: OTLPAttributes, uid: [UInt8],
        to out: inout [UInt8]
    ) {
        out += "{\"timeUnixNano\":\"\(Times.signed(record.timeNs))\"".utf8
        out += ",\"observedTimeUnixNano\":\"\(Times.signed(record.writtenNs))\"".utf8
        if record.level > 0 {
            out += ",\"severityNumber\":\(record.level)".utf8
            out += ",\"severityText\":\"\(levelName(record.level))\"".utf8
        }
        out += ",\"body\":".utf8
        unsafe append(.string(record.message), to: &out)
        if !attributes.kept.isEmpty || !uid.isEmpty {
            out += ",\"attributes\":[".utf8
            for (position, attribute) in attributes.kept.enumerated() {
                if position > 0 { out.append(0x2C) }
                append(attribute.key, attribute.value, to: &out)
            }
            if !uid.isEmpty {
                if !attributes.kept.isEmpty { out.append(0x2C) }
                unsafe uid.withUnsafeBytes {
                    unsafe append(OTLP.uidKey, .string($0), to: &out)
                }
            }
            out.append(0x5D)
        }
        if attributes.dropped > 0 {
            out += ",\"droppedAttributesCount\":\(attributes.dropped)".utf8
        }
        let trace = OTLP.trace(of: record)
        if trace.flags > 0 { out += ",\"flags\":\(trace.flags)".utf8 }
        if let id = trace.id { out += ",\"traceId\":\"\(Hex.text(id))\"".utf8 }
        if let span = trace.span { out += ",\"spanId\":\"\(Hex.text(span))\"".utf8 }
        out.append(0x7D)
    }

    /// A KeyValue.
    @safe private static func append(
        _ key: UnsafeRawBufferPointer, _ value: FieldValue, to out: inout [UInt8]
    ) {
        out += "{\"key\":".utf8
        _ = JSONText.string(key, &out)
        out += ",\"value\":".utf8
        append(value, to: &out)
        out.append(0x7D)
    }

    /// An AnyValue.
    private static func append(_ value: FieldValue, to out: inout [UInt8]) {
        switch value {
        case .string(let text):
            string(text, &out)
        case .bool(let flag): out += "{\"boolValue\":\(flag)}".utf8
        case .int(let number): out += "{\"intValue\":\"\(number)\"}".utf8
        case .uint(let number) where number <= UInt64(Int64.max):
            out += "{\"intValue\":\"\(number)\"}".utf8
        case .uint(let number): out += "{\"stringValue\":\"\(number)\"}".utf8
        case .double(let number) where number.isNaN: out += "{\"doubleValue\":\"NaN\"}".utf8
        case .double(let number) where number.isInfinite:
            out += "{\"doubleValue\":\"\(number < 0 ? "-Infinity" : "Infinity")\"}".utf8
        case .double(let number): out += "{\"doubleValue\":\(number)}".utf8
        case .json(let text): append(json: text, to: &out)
        }
    }

    /// As OTLPProtobuf's.
    @safe private static func append(json text: UnsafeRawBufferPointer, to out: inout [UInt8]) {
        let first = JSONWalk.first(text)
        if first == UInt8(ascii: "n") { return out += "{}".utf8 }
        let isObject = first == UInt8(ascii: "{")
        guard isObject || first == UInt8(ascii: "[") else {
            return JSONWalk.scalar(text) { append($0, to: &out) }
        }
        out += (isObject ? "{\"kvlistValue\":{\"values\":[" : "{\"arrayValue\":{\"values\":[").utf8
        var isFirst = true
        JSONWalk.forEachOnce(text) { name, value in
            if !isFirst { out.append(0x2C) }
            isFirst = false
            if !isObject { return unsafe append(.json(value), to: &out) }
            unsafe JSONWalk.unescaped(name).withUnsafeBytes {
                unsafe append($0, .json(value), to: &out)
            }
        }
        out += "]}}".utf8
    }

    /// The bytes that a value takes.
    static func bytes(_ value: FieldValue) -> Int {
        var out: [UInt8] = []
        append(value, to: &out)
        return out.count
    }

    /// Bytes that are not UTF-8 are sent as bytes.
    @safe private static func string(_ text: UnsafeRawBufferPointer, _ out: inout [UInt8]) {
        guard UTF8Scan.isValid(text) else {
            out += "{\"bytesValue\":\"".utf8
            JSONText.base64(text, &out)
            return out += "\"}".utf8
        }
        out += "{\"stringValue\":".utf8
        _ = JSONText.string(text, &out)
        out.append(0x7D)
    }

    static func resource(_ attributes: [(key: String, value: OTLP.ResourceValue)], dropped: UInt64)
        -> [UInt8]
    {
        var out: [UInt8] = []
        out += "{\"attributes\":[".utf8
        for (position, (key, value)) in attributes.enumerated() {
            out += (position > 0 ? ",{\"key\":" : "{\"key\":").utf8
            JSONText.string(key, &out)
            switch value {
            case .text(let text):
                out += ",\"value\":{\"stringValue\":".utf8
                JSONText.string(text, &out)
                out += "}}".utf8
            case .number(let number): out += ",\"value\":{\"intValue\":\"\(number)\"}}".utf8
            }
        }
        out += "]".utf8
        if dropped > 0 { out += ",\"droppedAttributesCount\":\(dropped)".utf8 }
        out += "}".utf8
        return out
    }

    @safe static func scope(_ logger: UnsafeRawBufferPointer) -> [UInt8] {
        var out: [UInt8] = []
        out += "{\"name\":".utf8
        _ = JSONText.string(logger, &out)
        out += "}".utf8
        return out
    }
}

// ── Both ──

enum OTLP {
    enum ResourceValue {
        case text(String)
        case number(UInt64)
    }

    /// Two records with the same id are one: a receiver may drop the second.
    @safe static var uidKey: UnsafeRawBufferPointer { Bytes.literal("log.record.uid") }

    /// Omits ids that are all zero, which mean none.
    static func trace(
        of record: borrowing RecordRef
    ) -> (id: [UInt8]?, span: [UInt8]?, flags: UInt8) {
        func unlessZero(_ at: Int, _ count: Int) -> [UInt8]? {
            guard let bytes = Bytes.slice(record.trace, at, count) else { return nil }
            let copy = unsafe Array(bytes)
            return copy.allSatisfy { $0 == 0 } ? nil : copy
        }
        return (unlessZero(0, 16), unlessZero(16, 8), Bytes.u8(record.trace, 24))
    }

    @safe static func repaired(_ text: UnsafeRawBufferPointer) -> [UInt8] {
        if UTF8Scan.isValid(text) { return unsafe Array(text) }
        return Array(Bytes.string(text).utf8)
    }
}
