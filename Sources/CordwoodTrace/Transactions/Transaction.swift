// A use case under way in this process: its id, and the records of its events (FORMAT §8.8), kept
// whatever the level of their logger. Any thread may log to it. It holds no engine: after close its
// calls return `closed`, because its logger is never freed.
// SAFETY: `memory` is allocated here and freed with the object, which is not used after that. All
// parts of a record lie on the stack or are the caller's until the append has copied them.

import CCordwood
import CShims
import CordwoodCore
import CordwoodStore

@safe public final class Transaction: @unchecked Sendable {
    package static let loggerName = "Transactions"
    /// The limit of an error's code and of its description; longer texts are cut.
    public static let textBytesMax = 4_096
    static let field: StaticString = "txn.id"

    public let transactionID: TransactionID
    private let logger: LoggerBlock
    private let table: TransactionTable
    private let begunNs: UInt64
    /// Distinguishes its attachments from others'; an address would be reused.
    private let owner: UInt
    /// 25 bytes of trace (FORMAT §8.4), the id with a NUL at idAt, an atomic word at endedAt.
    private let memory: UnsafeMutableRawPointer
    private let idBytes: Int

    private static let idAt = 32
    private static let endedAt = 88
    private static let memoryBytes = 96

    /// - Parameter spanID: not 0.
    package init(
        _ id: TransactionID, _ logger: LoggerBlock, _ table: TransactionTable, spanID: UInt64
    ) {
        transactionID = id
        unsafe self.logger = logger
        self.table = table
        begunNs = cw_monotonic_ns()
        owner = UInt(truncatingIfNeeded: spanID)
        let bytes = id.bytes
        idBytes = bytes.count
        unsafe memory = .allocate(byteCount: Transaction.memoryBytes, alignment: 8)
        unsafe memory.initializeMemory(as: UInt8.self, repeating: 0, count: Transaction.memoryBytes)
        for index in 0..<16 {
            unsafe memory.storeBytes(of: id.byte(index), toByteOffset: index, as: UInt8.self)
        }
        unsafe memory.storeBytes(of: spanID.bigEndian, toByteOffset: 16, as: UInt64.self)
        unsafe memory.storeBytes(of: 1, toByteOffset: 24, as: UInt8.self)
        for (index, byte) in bytes.enumerated() {
            unsafe memory.storeBytes(
                of: byte, toByteOffset: Transaction.idAt + index, as: UInt8.self)
        }
    }

    /// A transaction that was never ended ends here.
    deinit {
        end()
        unsafe memory.deallocate()
    }

    // MARK: Properties

    public var id: String { transactionID.text }
    public var usecase: Int32 { transactionID.usecase }

    /// NUL-terminated; valid as long as the object.
    package var idText: UnsafePointer<CChar> {
        unsafe UnsafePointer((memory + Transaction.idAt).assumingMemoryBound(to: CChar.self))
    }

    /// 25 bytes (FORMAT §8.4); valid as long as the object.
    package var trace: UnsafeRawPointer { unsafe UnsafeRawPointer(memory) }

    // MARK: Events

    /// Logs an event at the present time. Returns the header's status: 0 kept, below 0 an error.
    @discardableResult
    public func event(_ event: Int32, error: String? = nil, description: String? = nil) -> Int32 {
        guard var code = error else {
            guard description == nil else { return Status.argument }
            return unsafe self.event(event, code: nil, text: nil)
        }
        return code.withUTF8 { code in
            guard var text = description else {
                return unsafe self.event(event, code: UnsafeRawBufferPointer(code), text: nil)
            }
            return text.withUTF8 { text in
                unsafe self.event(
                    event, code: UnsafeRawBufferPointer(code), text: UnsafeRawBufferPointer(text))
            }
        }
    }

    /// The same; nil: not an error.
    package func event(
        _ event: Int32, code: UnsafeRawBufferPointer?, text: UnsafeRawBufferPointer?
    ) -> Int32 {
        let isEnded = unsafe cwa_load_relaxed_u32(memory + Transaction.endedAt) != 0
        guard !isEnded else { return Status.closed }
        let status = unsafe write(
            "event", event: event, code: code.map(Transaction.cut), text: text.map(Transaction.cut))
        if status == Status.ok { table.countEvent() }
        return status
    }

    package func begin(joins: Bool) -> Int32 { unsafe write(joins ? "join" : "begin") }

    /// Records the duration; the transaction takes no more events. Once; later calls do nothing.
    @discardableResult
    public func end() -> Int32 {
        // ORDER: exchange. One caller writes the record (A34).
        guard unsafe cwa_exchange_u32(memory + Transaction.endedAt, 1) == 0 else {
            return Status.ok
        }
        return unsafe write("end", durationNs: cw_monotonic_ns() &- begunNs)
    }

    /// It never began: no record reports its end.
    package func discard() { _ = unsafe cwa_exchange_u32(memory + Transaction.endedAt, 1) }

    // MARK: Threads

    /// Puts its ids and `txn.id` into every record of the calling thread, until detach.
    package func attachThread() -> Int32 {
        guard unsafe cwa_load_relaxed_u32(logger) != 0 else { return Status.closed }
        return unsafe ThreadAttachments.attach(
            owner: owner, trace: trace, key: key,
            value: UnsafeRawBufferPointer(start: idText, count: idBytes)
                .assumingMemoryBound(to: UInt8.self))
    }

    package func detachThread() -> Int32 {
        unsafe ThreadAttachments.detach(owner: owner, key: key)
    }

    private var key: UnsafeBufferPointer<UInt8> {
        unsafe UnsafeBufferPointer(
            start: Transaction.field.utf8Start, count: Transaction.field.utf8CodeUnitCount)
    }

    // MARK: One record

    /// At most textBytesMax, cut between characters of UTF-8.
    @safe private static func cut(_ text: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        guard text.count > textBytesMax else { return unsafe text }
        var end = textBytesMax
        while end > textBytesMax - 4, Bytes.u8(text, end) & 0xC0 == 0x80 { end -= 1 }
        return unsafe UnsafeRawBufferPointer(rebasing: text[..<end])
    }

    private func write(
        _ op: StaticString, event: Int32? = nil, code: UnsafeRawBufferPointer? = nil,
        text: UnsafeRawBufferPointer? = nil, durationNs: UInt64? = nil
    ) -> Int32 {
        guard unsafe cwa_load_relaxed_u32(logger) != 0 else { return Status.closed }
        var parts = unsafe TransactionParts(
            op: op, id: UnsafeRawBufferPointer(start: idText, count: idBytes), usecase: usecase,
            event: event, code: code, text: text, durationNs: durationNs)
        guard table.hasNames else { return append(parts) }
        let room = TransactionTable.nameRoom
        return unsafe withUnsafeTemporaryAllocation(byteCount: 2 * room, alignment: 8) { names in
            let start = unsafe names.baseAddress.unsafelyUnwrapped
            let count = unsafe table.name(usecase, TransactionTable.noEvent, into: start)
            unsafe parts.usecaseName = UnsafeRawBufferPointer(start: start, count: count)
            if let event {
                let count = unsafe table.name(usecase, event, into: start + room)
                unsafe parts.eventName = UnsafeRawBufferPointer(start: start + room, count: count)
            }
            return append(parts)
        }
    }

    private func append(_ parts: TransactionParts) -> Int32 {
        unsafe withUnsafeTemporaryAllocation(
            of: cw_field.self, capacity: TransactionParts.fieldsMax
        ) { fields in
            unsafe withUnsafeTemporaryAllocation(
                byteCount: parts.messageBytesMax, alignment: 8
            ) { message in
                var body = RichBody()
                unsafe body.message = parts.writeMessage(message)
                body.fieldCount = unsafe parts.writeFields(fields)
                unsafe body.fields = UnsafePointer(fields.baseAddress)
                unsafe body.trace = trace
                body.kind = UInt8(CW_KIND_TRANSACTION)
                let level = unsafe parts.code == nil ? CW_LEVEL_INFO : CW_LEVEL_ERROR
                return unsafe AppendSlow.rich(logger, UInt8(level), body)
            }
        }
    }
}
