// A record as an independent value: `StoreReader.nextRecord` returns it to callers that keep
// records or pass them to another thread. Bytes that are not UTF-8 become U+FFFD in strings;
// `messageBytes` has the message byte for byte.
// SAFETY: everything is copied out of the record's views; none is kept.

import CordwoodFormats
import CordwoodCore

public enum Field: Sendable, Equatable {
    case int(Int64)
    case uint(UInt64)
    case double(Double)
    case bool(Bool)
    case string(String)
    /// The text of a JSON value.
    case json(String)

    init(_ value: FieldValue) {
        switch value {
        case .int(let number): self = .int(number)
        case .uint(let number): self = .uint(number)
        case .double(let number): self = .double(number)
        case .bool(let flag): self = .bool(flag)
        case .string(let bytes): self = unsafe .string(String(decoding: bytes, as: UTF8.self))
        case .json(let bytes): self = unsafe .json(String(decoding: bytes, as: UTF8.self))
        }
    }
}

public struct Record: Sendable {
    /// The same while the record is live, sealed or archived, in whichever archive and copy.
    public var recordID: RecordID
    /// UTC, ns since 1970.
    public var time: UInt64
    /// 1…24; 0: none.
    public var level: UInt8
    /// CW_KIND_….
    public var kind: UInt8
    public var flags: RecordFlags
    public var logger: String
    public var messageBytes: [UInt8]
    /// Bytes of the message before it was cut.
    public var originalLength: UInt64
    public var processID: UInt32
    public var processName: String
    /// Attributes of the program that logs: service.name, host.name, user.id and others, in the
    /// order in which they were first set.
    public var resource: [(key: String, value: String)]
    public var threadID: UInt32
    public var threadName: String
    /// Increases within one thread of one process.
    public var sequence: UInt64
    public var file: String
    public var function: String
    public var line: UInt32
    /// The record's own fields, the context's and the exception's.
    public var fields: [(key: String, value: Field)]
    /// 32 hex digits.
    public var traceID: String?
    /// 16 hex digits.
    public var spanID: String?

    public var message: String { String(decoding: messageBytes, as: UTF8.self) }
    public var levelName: String { CordwoodCore.levelName(level) }
    /// Its resource's service.name; nil: not set.
    public var service: String? { attribute(ProcessOrigin.serviceKey) }
    /// Its resource's host.name; nil: not known.
    public var host: String? { attribute(ProcessOrigin.hostKey) }

    private func attribute(_ key: String) -> String? {
        resource.last { $0.key == key && !$0.value.isEmpty }?.value
    }

    public init(_ r: borrowing RecordRef) {
        recordID = r.id
        time = r.timeNs
        level = r.level
        kind = r.kind
        flags = r.flags
        logger = unsafe String(decoding: r.logger, as: UTF8.self)
        messageBytes = unsafe Array(r.message)
        originalLength = r.originalLength
        processID = r.thread.process.processID
        processName = r.thread.process.name
        resource = r.thread.process.resource
        threadID = r.thread.threadID
        threadName = r.thread.name
        sequence = r.sequence
        file = unsafe String(decoding: r.file, as: UTF8.self)
        function = unsafe String(decoding: r.function, as: UTF8.self)
        line = r.line
        fields = []
        var all = RecordFields(r)
        while let (key, value) = all.next() {
            unsafe fields.append((String(decoding: key, as: UTF8.self), Field(value)))
        }
        traceID = Record.hex(Bytes.slice(r.trace, 0, 16))
        spanID = Record.hex(Bytes.slice(r.trace, 16, 8))
    }

    @safe package static func hex(_ bytes: UnsafeRawBufferPointer?) -> String? {
        guard let bytes = unsafe bytes, unsafe bytes.contains(where: { $0 != 0 }) else {
            return nil
        }
        return unsafe Hex.text(Array(bytes))
    }
}
