// The content of one record of a transaction, laid out as message and fields (FORMAT §8.8) in the
// caller's memory. Allocates nothing. Pure.
// SAFETY: the views are the caller's and hold while it lays the record out; `messageBytesMax` and
// `fieldsMax` are the room that the caller gives, and bound the writes.

import CCordwood
import CordwoodCore

@safe struct TransactionParts {
    static let fieldsMax = 9

    let op: StaticString
    @safe let id: UnsafeRawBufferPointer
    let usecase: Int32
    /// nil: not a record of an event.
    let event: Int32?
    /// nil: not an error.
    let code: UnsafeRawBufferPointer?
    let text: UnsafeRawBufferPointer?
    let durationNs: UInt64?
    /// Empty: none.
    @safe var usecaseName = Bytes.none
    @safe var eventName = Bytes.none

    init(
        op: StaticString, id: UnsafeRawBufferPointer, usecase: Int32, event: Int32?,
        code: UnsafeRawBufferPointer?, text: UnsafeRawBufferPointer?, durationNs: UInt64?
    ) {
        self.op = op
        unsafe self.id = id
        self.usecase = usecase
        self.event = event
        unsafe self.code = code
        unsafe self.text = text
        self.durationNs = durationNs
    }

    // MARK: Message

    /// The id, ` begin` or ` event -2147483648` or a name, `: ` and the error.
    var messageBytesMax: Int {
        unsafe id.count + 24 + eventName.count + (code?.count ?? 0) + (text?.count ?? 0) + 3
    }

    /// `TXN… event 1: 42 Baad!`
    func writeMessage(_ room: UnsafeMutableRawBufferPointer) -> UnsafeRawBufferPointer {
        var at = 0
        func put(_ bytes: UnsafeRawBufferPointer) {
            guard bytes.count <= room.count - at, let start = bytes.baseAddress else { return }
            unsafe (room.baseAddress.unsafelyUnwrapped + at).copyMemory(
                from: start, byteCount: bytes.count)
            at += bytes.count
        }
        unsafe put(id)
        unsafe put(Bytes.literal(" "))
        if let event {
            if eventName.count > 0 {
                unsafe put(eventName)
            } else {
                unsafe put(Bytes.literal("event "))
                unsafe putNumber(event, room, &at)
            }
        } else {
            unsafe put(Bytes.literal(op))
        }
        if let code = unsafe code {
            unsafe put(Bytes.literal(": "))
            unsafe put(code)
            if let text = unsafe text {
                unsafe put(Bytes.literal(" "))
                unsafe put(text)
            }
        }
        return unsafe UnsafeRawBufferPointer(start: room.baseAddress, count: at)
    }

    private func putNumber(
        _ number: Int32, _ room: UnsafeMutableRawBufferPointer, _ at: inout Int
    ) {
        var rest = number.magnitude
        var divisor: UInt32 = 1
        while rest / divisor >= 10 { divisor *= 10 }
        if number < 0, at < room.count {
            unsafe room[at] = 0x2d
            at += 1
        }
        while divisor > 0, at < room.count {
            unsafe room[at] = UInt8(truncatingIfNeeded: 0x30 + rest / divisor)
            rest %= divisor
            divisor /= 10
            at += 1
        }
    }

    // MARK: Fields

    /// Returns their number.
    func writeFields(_ room: UnsafeMutableBufferPointer<cw_field>) -> Int {
        var count = 0
        func add(_ key: StaticString, _ type: UInt8, _ fill: (inout cw_field) -> Void) {
            guard count < room.count else { return }
            var field = unsafe cw_field()
            unsafe field.key = unsafe cw_str(
                data: UnsafeRawPointer(key.utf8Start).assumingMemoryBound(to: CChar.self),
                length: key.utf8CodeUnitCount)
            unsafe field.type = UInt32(type)
            unsafe fill(&field)
            unsafe (room.baseAddress.unsafelyUnwrapped + count).initialize(to: field)
            count += 1
        }
        func text(_ key: StaticString, _ value: UnsafeRawBufferPointer) {
            unsafe add(key, FieldType.string) {
                unsafe $0.value.s = unsafe cw_str(
                    data: value.baseAddress?.assumingMemoryBound(to: CChar.self),
                    length: value.count)
            }
        }
        func number(_ key: StaticString, _ value: Int32) {
            unsafe add(key, FieldType.int) { unsafe $0.value.i = Int64(value) }
        }
        unsafe text("txn.op", Bytes.literal(op))
        unsafe text("txn.id", id)
        number("txn.usecase", usecase)
        if let event { number("txn.event", event) }
        if let code = unsafe code { unsafe text("txn.error.code", code) }
        if let given = unsafe self.text { unsafe text("txn.error.description", given) }
        if usecaseName.count > 0 { unsafe text("txn.usecase.name", usecaseName) }
        if eventName.count > 0 { unsafe text("txn.event.name", eventName) }
        if let durationNs {
            unsafe add("txn.duration_ns", FieldType.uint) { unsafe $0.value.u = durationNs }
        }
        return count
    }
}
