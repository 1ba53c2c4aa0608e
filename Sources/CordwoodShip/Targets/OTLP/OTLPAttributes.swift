// Everything in a record besides its message, as the attributes of an OTLP LogRecord: the host's
// fields, the context's, the exception's, then the record's own facts (place, thread, kind). Keys
// are unique: the record's own fields override the context's, and of equal keys the last counts.
// Attributes beyond the byte limit are left out and counted. Values: they hold as long as the
// record's views.
// SAFETY: views of the record, or literals; they are read and not kept beyond the entry.

import CordwoodCore
import CordwoodStore

@safe struct OTLPAttribute {
    @safe let key: UnsafeRawBufferPointer
    let value: FieldValue
}

struct OTLPAttributes {
    private(set) var kept: [OTLPAttribute] = []
    /// The number of attributes that did not fit.
    private(set) var dropped: UInt32 = 0

    private let form: OTLPForm
    private var bytesLeft: Int
    /// Index by key, used once a linear search would take long.
    private var index: [[UInt8]: Int] = [:]
    private static let lookedAtMax = 16
    /// An upper bound of the bytes around key and value, in either form.
    private static let frameBytes = 48

    init(_ record: borrowing RecordRef, _ form: OTLPForm, bytesMax: Int) {
        self.form = form
        bytesLeft = bytesMax
        if record.sections.count > 0 || record.context.count > 0 {
            var fields = RecordFields(record)
            var ownCount: Int?
            while let (key, value) = fields.next() {
                // Receivers refuse a body because of one key without a name.
                let name = key.count > 0 ? unsafe key : Bytes.literal("_")
                let attribute = unsafe OTLPAttribute(key: name, value: value)
                if fields.part != .own, ownCount == nil { ownCount = kept.count }
                guard let position = position(of: attribute.key) else {
                    add(attribute)
                    continue
                }
                if position >= ownCount ?? 0 { replace(position, attribute) }
            }
        }
        addPlace(record)
        addThread(record)
        addKind(record)
    }

    private mutating func addPlace(_ record: borrowing RecordRef) {
        if record.file.count > 0 { unsafe addOwn("code.file.path", .string(record.file)) }
        if record.line > 0 { addOwn("code.line.number", .int(Int64(record.line))) }
        if record.function.count > 0 {
            unsafe addOwn("code.function.name", .string(record.function))
        }
    }

    private mutating func addThread(_ record: borrowing RecordRef) {
        if record.thread.threadID > 0 {
            addOwn("thread.id", .int(Int64(record.thread.threadID)))
        }
    }

    private mutating func addKind(_ record: borrowing RecordRef) {
        switch record.kind {
        case 0: break
        case 1: unsafe addOwn("cordwood.kind", .string(Bytes.literal("gap")))
        case 2: unsafe addOwn("cordwood.kind", .string(Bytes.literal("lifecycle")))
        case 3: unsafe addOwn("cordwood.kind", .string(Bytes.literal("transaction")))
        case 4: unsafe addOwn("cordwood.kind", .string(Bytes.literal("http")))
        default: addOwn("cordwood.kind", .int(Int64(record.kind)))
        }
        if record.flags.contains(.truncated) {
            addOwn("cordwood.original_bytes", .uint(record.originalLength))
        }
        if record.flags.contains(.unverified) { addOwn("cordwood.unverified", .bool(true)) }
    }

    /// A fact of the record's own, unless the host uses that name for something else.
    private mutating func addOwn(_ key: StaticString, _ value: FieldValue) {
        let view = Bytes.literal(key)
        guard position(of: view) == nil else { return }
        unsafe add(OTLPAttribute(key: view, value: value))
    }

    @safe func contains(_ key: UnsafeRawBufferPointer) -> Bool { position(of: key) != nil }

    /// The later of two equal keys counts: no loss, unless it does not fit.
    private mutating func replace(_ position: Int, _ attribute: OTLPAttribute) {
        let room = bytesLeft + bytes(kept[position])
        let bytes = self.bytes(attribute)
        guard bytes <= room else {
            dropped &+= 1
            return
        }
        bytesLeft = room - bytes
        kept[position] = attribute
    }

    /// Adds an attribute with a new key.
    private mutating func add(_ attribute: OTLPAttribute) {
        let bytes = self.bytes(attribute)
        guard bytes <= bytesLeft else {
            dropped &+= 1
            return
        }
        bytesLeft -= bytes
        kept.append(attribute)
        if kept.count > OTLPAttributes.lookedAtMax {
            if index.isEmpty {
                for (position, known) in kept.enumerated() {
                    unsafe index[Array(known.key)] = position
                }
            } else {
                unsafe index[Array(attribute.key)] = kept.count - 1
            }
        }
    }

    @safe private func position(of key: UnsafeRawBufferPointer) -> Int? {
        if index.isEmpty { return kept.firstIndex { Bytes.equal($0.key, key) } }
        return unsafe index[Array(key)]
    }

    /// An upper bound of the bytes it takes in an entry.
    private func bytes(_ attribute: OTLPAttribute) -> Int {
        let key = textBytes(attribute.key) + OTLPAttributes.frameBytes
        switch attribute.value {
        case .string(let text): return key + textBytes(text)
        // The form in JSON is the longer one.
        case .json: return key + OTLPJSON.bytes(attribute.value)
        default: return key
        }
    }

    @safe private func textBytes(_ text: UnsafeRawBufferPointer) -> Int {
        guard form == .json else { return text.count }
        // Base64 adds a third; an escape turns one byte into six.
        var bytes = text.count + text.count / 3
        for at in 0..<text.count {
            let byte = Bytes.u8(text, at)
            if byte < 0x20 || byte == 0x22 || byte == 0x5C { bytes += 5 }
        }
        return bytes
    }
}
