// A named logger for Swift hosts: a value around a handle that is never freed. Any thread.
//
//     log.info("order \(id) price \(price, format: .fixed(2))", fields: ["user": name])
//
// Below the threshold a call is one load and one branch, and evaluates nothing. Otherwise the
// message's arguments are collected in a frame on the stack (LogMessage) and appended from there.
// SAFETY: the handle is valid for the life of the process. The frame outlives the message, which is
// evaluated and appended inside the closure that has the frame.

import CShims
import CordwoodCore

@frozen @safe public struct Logger: @unchecked Sendable {
    // SAFETY: the handle is valid for the life of the process and made for any thread.
    @usableFromInline let block: LoggerBlock
    public let name: String

    /// Reports itself as closed forever.
    nonisolated(unsafe) static let closedBlock: LoggerBlock = {
        let block = LoggerBlock.allocate(capacity: 1)
        unsafe block.initialize(to: cwi_logger())
        return unsafe block
    }()

    init(block: LoggerBlock, name: String) {
        unsafe self.block = block
        self.name = name
    }

    /// True if a record of that level would be written. Costs one load and one branch.
    @inlinable @inline(__always)
    public func isEnabled(_ level: Level) -> Bool { isEnabled(UInt32(level.number)) }

    @inlinable @inline(__always)
    func isEnabled(_ level: UInt32) -> Bool {
        // ORDER: relaxed. A level may take effect late (A16).
        unsafe level &+ cwa_load_relaxed_u32(block) > 255
    }

    /// The reason a record is not written.
    @inlinable @inline(__always)
    var refusal: Int32 { unsafe cwa_load_relaxed_u32(block) == 0 ? Status.closed : Status.disabled }

    /// Writes one record of bytes, unchanged. Returns the header's status: 0 kept, 1 disabled,
    /// below 0 an error.
    @discardableResult
    public func write(_ level: Level, bytes: UnsafeRawBufferPointer) -> Int32 {
        unsafe AppendPath.text(block, UInt32(level.number), bytes.baseAddress, bytes.count)
    }

    // MARK: The basis of all levels

    /// Writes a record of an enabled level.
    @inlinable @inline(__always)
    func append(_ level: UInt32, _ message: () -> LogMessage, _ place: LogPlace) -> Int32 {
        unsafe withUnsafeTemporaryAllocation(byteCount: MessageFrame.bytes, alignment: 8) {
            let base = unsafe $0.baseAddress.unsafelyUnwrapped
            let message = unsafe evaluated(message, base, place)
            guard unsafe LogMessage.isOf(message, base) else {
                return unsafe append(level, other: message, base, place, nil, nil)
            }
            return unsafe MessagePath.write(block, level, message.frame)
        }
    }

    /// The same with fields and an error.
    @inlinable
    func append(
        _ level: UInt32, _ message: () -> LogMessage, _ place: LogPlace,
        _ fields: () -> KeyValuePairs<String, any LogValue>, _ error: (any Error)?
    ) -> Int32 {
        unsafe withUnsafeTemporaryAllocation(byteCount: MessageFrame.bytes, alignment: 8) {
            let base = unsafe $0.baseAddress.unsafelyUnwrapped
            let message = unsafe evaluated(message, base, place)
            let fields = fields()
            guard unsafe LogMessage.isOf(message, base) else {
                return unsafe append(level, other: message, base, place, fields, error)
            }
            return unsafe RecordWriter.write(block, level, message.frame, fields, error)
        }
    }

    /// Evaluates a message; its interpolation takes the frame.
    @inlinable @inline(__always)
    func evaluated(
        _ message: () -> LogMessage, _ base: UnsafeMutableRawPointer, _ place: LogPlace
    ) -> LogMessage {
        let serial = cwi_serial_next()
        let slot = unsafe cwi_frame_slot().unsafelyUnwrapped
        // Messages nest if an argument or a signal handler logs.
        let outer = unsafe slot.pointee
        unsafe MessageFrame.prepare(
            unsafe base, bytes: MessageFrame.bytes, serial: serial, outer: unsafe outer)
        unsafe place.store(in: unsafe base, bytes: MessageFrame.bytes)
        unsafe slot.pointee = base
        let message = message()
        unsafe slot.pointee = outer
        return message
    }

    /// Appends a message that has outgrown this call's frame or was made outside it.
    @usableFromInline @inline(never)
    func append(
        _ level: UInt32, other message: LogMessage, _ base: UnsafeMutableRawPointer,
        _ place: LogPlace, _ fields: KeyValuePairs<String, any LogValue>?, _ error: (any Error)?
    ) -> Int32 {
        unsafe withFrame(of: message, base, place) { frame in
            unsafe RecordWriter.write(block, level, frame, fields ?? [:], error)
        }
    }

    /// Calls body with the frame of a message that lies outside this call's frame, then frees its
    /// block.
    func withFrame(
        of message: LogMessage, _ base: UnsafeMutableRawPointer, _ place: LogPlace,
        _ body: (MessageFrame) -> Int32
    ) -> Int32 {
        let grown = unsafe MessageFrame(base).other
        defer { if let grown = unsafe grown { unsafe MessageFrame.release(grown) } }
        if unsafe message.frame.base == grown, message.frame.serial == message.serial {
            return body(message.frame)
        }
        guard MessageKeep.has(message.frame, message.serial) || LogMessage.isOfOuter(message) else {
            let isLost =
                unsafe message.serial == MessageFrame.unmade
                || (message.frame.base == base || message.frame.base == grown)
                    && message.frame.serial == MessageFrame.lost
            let remark = unsafe evaluated({ isLost ? Self.lost : Self.gone }, base, place)
            let status = body(remark.frame)
            return status == Status.ok ? (isLost ? Status.memory : Status.argument) : status
        }
        let bytes = message.frame.blockBytes
        return unsafe withUnsafeTemporaryAllocation(byteCount: bytes, alignment: 8) {
            let copy = unsafe $0.baseAddress.unsafelyUnwrapped
            let frame = unsafe message.frame.copied(to: copy, bytes: bytes)
            unsafe place.store(in: unsafe copy, bytes: bytes)
            return body(frame)
        }
    }

    /// Replaces a message that no longer exists.
    private static var gone: LogMessage {
        "(this LogMessage was kept beyond its log call, and its text is gone)"
    }

    /// Replaces a message that could not be made.
    private static var lost: LogMessage { "(there was no memory for this LogMessage)" }
}
