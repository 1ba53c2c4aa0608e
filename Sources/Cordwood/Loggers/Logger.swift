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
        guard level &- 1 < 24 else { return Status.level }
        return unsafe withUnsafeTemporaryAllocation(
            byteCount: MessageFrame.bytes, alignment: 8
        ) {
            let base = unsafe $0.baseAddress.unsafelyUnwrapped
            let outer = unsafe Logger.handOver(base, place)
            let message = message()
            // Looked up before `takeBack`, whose store may hide from the compiler what the frame
            // holds.
            let site =
                unsafe LogMessage.isOf(message, base)
                ? MessageSites.quick(
                    message.frame, base + MessageFrame.bytes, place.file, place.function,
                    place.position) : nil
            unsafe Logger.takeBack(outer)
            let from = unsafe base + MessageFrame.headerBytes
            if let site,
                unsafe MessagePath.append(
                    block, level | MessagePath.kind, site, from, message.frame.at - from)
            {
                return Status.ok
            }
            return unsafe Logger.append(block, level, message, base)
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
            let message = unsafe Logger.evaluated(message, base, place)
            let fields = fields()
            return unsafe Logger.append(block, level, message, base, fields, error)
        }
    }

    /// Evaluates a message; its interpolation takes the frame.
    @inlinable @inline(__always)
    static func evaluated(
        _ message: () -> LogMessage, _ base: UnsafeMutableRawPointer, _ place: LogPlace
    ) -> LogMessage {
        let outer = unsafe handOver(base, place)
        let message = message()
        unsafe takeBack(outer)
        return message
    }

    /// Prepares a log call's frame and offers it to the next message of this thread. Returns the
    /// frame before it: messages nest if an argument or a signal handler logs.
    @inlinable @inline(__always)
    static func handOver(
        _ base: UnsafeMutableRawPointer, _ place: LogPlace
    ) -> UnsafeMutableRawPointer? {
        let serial = cwi_serial_next()
        let slot = unsafe cwi_frame_slot().unsafelyUnwrapped
        let outer = unsafe slot.pointee
        unsafe MessageFrame.prepare(
            unsafe base, bytes: MessageFrame.bytes, serial: serial, outer: unsafe outer)
        unsafe place.store(in: unsafe base, bytes: MessageFrame.bytes)
        unsafe slot.pointee = base
        return unsafe outer
    }

    @inlinable @inline(__always)
    static func takeBack(_ outer: UnsafeMutableRawPointer?) {
        unsafe cwi_frame_slot().unsafelyUnwrapped.pointee = outer
    }

    /// Appends a message that `append` above cannot: a new site, a full chunk, a message that has
    /// outgrown this call's frame or was made outside it.
    @usableFromInline @inline(never)
    static func append(
        _ block: LoggerBlock, _ level: UInt32, _ message: LogMessage,
        _ base: UnsafeMutableRawPointer
    ) -> Int32 {
        guard unsafe LogMessage.isOf(message, base) else {
            return unsafe append(block, level, message, base, [:], nil)
        }
        return unsafe MessagePath.write(block, level, message.frame)
    }

    /// Appends any message with fields and an error.
    @usableFromInline @inline(never)
    static func append(
        _ block: LoggerBlock, _ level: UInt32, _ message: LogMessage,
        _ base: UnsafeMutableRawPointer, _ fields: KeyValuePairs<String, any LogValue>,
        _ error: (any Error)?
    ) -> Int32 {
        if unsafe LogMessage.isOf(message, base) {
            return unsafe RecordWriter.write(block, level, message.frame, fields, error)
        }
        return unsafe withFrame(of: message, base) { frame in
            unsafe RecordWriter.write(block, level, frame, fields, error)
        }
    }

    /// Appends an existing String.
    @inlinable @inline(__always)
    func append(_ level: UInt32, _ text: String, _ place: LogPlace) -> Int32 {
        guard level &- 1 < 24 else { return Status.level }
        return unsafe MessagePath.text(
            block, level, text, place.file, place.function, place.position)
            ? Status.ok : appendSlow(level, text, place)
    }

    @usableFromInline @inline(never)
    func appendSlow(_ level: UInt32, _ text: String, _ place: LogPlace) -> Int32 {
        append(level, { LogMessage(text) }, place)
    }

    /// Calls body with the frame of a message that lies outside this call's frame, then frees its
    /// block.
    static func withFrame(
        of message: LogMessage, _ base: UnsafeMutableRawPointer, _ body: (MessageFrame) -> Int32
    ) -> Int32 {
        let place = unsafe LogPlace(in: base, bytes: MessageFrame.bytes)
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
            let remark = unsafe evaluated({ isLost ? lost : gone }, base, place)
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
