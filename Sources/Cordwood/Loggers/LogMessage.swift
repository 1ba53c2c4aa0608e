// The message of a log call: an interpolated string whose arguments are copied raw into a frame
// (MessageFrame) and from there into the record. Readers make the text. Inside a log call the frame
// lies on that call's stack, and only strings of more than about 900 bytes allocate. A message made
// elsewhere lies in MessageKeep. Nothing here has a reference count.
// SAFETY: a log call hands its frame over through a thread-local word, and one message at most
// takes it. The frame's serial, unique in the process, tells whether the frame still belongs to the
// message: a frame is followed only if it is known to exist and both serials match. Each put asks
// for room first.

import CShims
import CordwoodCore

/// Usually made in place by a log call: `log.info("order \(id)")`. The same thread may also log a
/// message that was made elsewhere, until it has made MessageKeep.framesMax more of them. A message
/// made in the expression of a log call that ends up in another one lasts until that call ends.
/// Afterwards a remark is logged in its place.
@frozen @safe public struct LogMessage: ExpressibleByStringInterpolation {
    @usableFromInline var frame: MessageFrame
    /// Equal to the frame's serial while the frame belongs to this message.
    @usableFromInline var serial: UInt64

    @inlinable @inline(__always)
    public init(stringLiteral value: StaticString) {
        var interpolation = StringInterpolation(
            literalCapacity: value.utf8CodeUnitCount, interpolationCount: 0)
        interpolation.appendLiteral(value)
        self.init(stringInterpolation: interpolation)
    }

    @inlinable @inline(__always)
    public init(stringInterpolation: StringInterpolation) {
        frame = stringInterpolation.frame
        serial = stringInterpolation.serial
    }

    /// A message of a string that already exists.
    @inlinable @inline(__always)
    public init(_ text: String) {
        var interpolation = StringInterpolation(literalCapacity: 0, interpolationCount: 1)
        interpolation.appendInterpolation(text)
        self.init(stringInterpolation: interpolation)
    }

    @frozen @safe public struct StringInterpolation: StringInterpolationProtocol {
        public typealias StringLiteralType = StaticString

        @usableFromInline var frame: MessageFrame
        @usableFromInline var serial: UInt64
        /// Arguments so far; the one after argumentsMax takes all the rest as text.
        @usableFromInline var count = 0

        @inlinable @inline(__always)
        static var argumentsMax: Int { 31 }

        @inlinable @inline(__always)
        public init(literalCapacity: Int, interpolationCount: Int) {
            if let base = unsafe cwi_frame_slot().pointee, unsafe MessageFrame.take(base) {
                unsafe frame = MessageFrame(base)
                serial = frame.serial
            } else {
                serial = 0
                unsafe frame = MessageFrame(MessageKeep.take(&serial))
            }
        }

        @inlinable @inline(__always)
        public mutating func appendLiteral(_ literal: StaticString) {
            let bytes = literal.utf8CodeUnitCount
            guard bytes > 0 else { return }
            guard literal.hasPointerRepresentation, bytes <= MessageToken.literalMax,
                count <= Self.argumentsMax
            else {
                self = adding("\(literal)")
                return
            }
            hold(0)
            unsafe frame.put(
                UInt64(UInt(bitPattern: literal.utf8Start)) | UInt64(bytes) << 48)
        }

        // MARK: Arguments

        /// Adds a number as it is. `spelled` is its text, for a number that cannot be an argument.
        @inlinable @inline(__always)
        mutating func put<Value: BitwiseCopyable>(
            _ token: UInt64, _ value: Value, spelled: @autoclosure () -> String
        ) {
            guard count < Self.argumentsMax else {
                self = adding(spelled())
                return
            }
            hold(MemoryLayout<Value>.size)
            frame.put(token, value)
            count &+= 1
        }

        /// Adds a value that needs no bytes of its own.
        @inlinable @inline(__always)
        mutating func put(_ token: UInt64, spelled: @autoclosure () -> String) {
            guard count <= Self.argumentsMax else {
                self = adding(spelled())
                return
            }
            hold(0)
            frame.put(token)
        }

        /// Makes room for an argument of that many bytes. The number of tokens stays known to the
        /// compiler; in a lost frame it may be wrong, but is not read.
        @inlinable @inline(__always)
        mutating func hold(_ bytes: Int) {
            guard !frame.hasRoom(bytes) else { return }
            let tokens = frame.tokens
            frame = frame.grown(more: bytes)
            frame.tokens = tokens
        }

        @inlinable @inline(__always)
        mutating func text(_ value: String) {
            guard count < Self.argumentsMax else {
                self = adding(value)
                return
            }
            unsafe text(MessageFrame.copy(value, to: frame.at, below: frame.low), value)
        }

        @inlinable @inline(__always)
        mutating func text(_ value: Substring) {
            guard count < Self.argumentsMax else {
                self = adding(String(value))
                return
            }
            unsafe text(MessageFrame.copy(value, to: frame.at, below: frame.low), String(value))
        }

        /// Adds text that ends at `end` in the frame, or does not fit there.
        @inlinable @inline(__always)
        mutating func text(
            _ end: UnsafeMutableRawPointer?, _ value: @autoclosure () -> String
        ) {
            let tokens = frame.tokens &+ 8
            if let end = unsafe end {
                frame.put(MessageToken.argument(MessageToken.text))
                unsafe frame.at = unsafe end
            } else {
                frame = adding(value()).frame
            }
            // As in `hold`.
            frame.tokens = tokens
            count &+= 1
        }

        // MARK: Not inlined; takes values, so that inlined code stays in registers

        /// Adds text that does not fit, has no argument in the source, or follows the last
        /// argument.
        @usableFromInline @inline(never)
        func adding(_ text: String) -> Self {
            var text = text
            return text.withUTF8 { adding($0) }
        }

        @safe @usableFromInline @inline(never)
        func adding(_ text: UnsafeBufferPointer<UInt8>) -> Self {
            var next = self
            guard count < Self.argumentsMax else {
                next.frame = frame.addingRest(text, isFirst: count == Self.argumentsMax)
                next.count = Self.argumentsMax + 1
                return next
            }
            let token = MessageToken.argument(MessageToken.text)
            next.frame =
                frame.adding(token, text)
                ?? frame.grown(more: min(text.count, MessageFrame.stringMax) + 16)
                .adding(token, text) ?? frame
            next.count += 1
            return next
        }
    }
}

extension LogMessage: CustomStringConvertible {
    /// Shows neither its text, which readers of the record make, nor its addresses.
    @inlinable public var description: String { "<LogMessage>" }
}

extension LogMessage {
    /// True if the message has taken that frame and still fits in it.
    @inlinable @inline(__always)
    static func isOf(_ message: LogMessage, _ base: UnsafeMutableRawPointer) -> Bool {
        unsafe base.load(as: UInt64.self) == message.serial
    }

    /// True if the message has taken the frame of an outer log call, which is still collecting its
    /// own message.
    static func isOfOuter(_ message: LogMessage) -> Bool {
        var next = unsafe cwi_frame_slot().pointee
        while let base = unsafe next {
            let call = unsafe MessageFrame(base)
            if unsafe message.frame.base == base || message.frame.base == call.other {
                return message.frame.serial == message.serial
            }
            unsafe next = call.outer
        }
        return false
    }
}

/// The place of a log call.
@frozen @safe public struct LogPlace {
    @usableFromInline var file: UInt64
    @usableFromInline var function: UInt64
    @usableFromInline var position: UInt64

    @inlinable @inline(__always)
    public init(_ file: StaticString, _ function: StaticString, _ line: UInt32, _ column: UInt32) {
        self.file = LogPlace.word(file)
        self.function = LogPlace.word(function)
        position = UInt64(line) << 32 | UInt64(column)
    }

    /// Of a frame.
    init(in base: UnsafeMutableRawPointer, bytes: Int) {
        unsafe file = base.load(fromByteOffset: bytes &- 8, as: UInt64.self)
        unsafe function = base.load(fromByteOffset: bytes &- 16, as: UInt64.self)
        unsafe position = base.load(fromByteOffset: bytes &- 24, as: UInt64.self)
    }

    @inlinable @inline(__always)
    static func word(_ text: StaticString) -> UInt64 {
        guard text.hasPointerRepresentation else { return 0 }
        return unsafe UInt64(UInt(bitPattern: text.utf8Start))
            | UInt64(min(text.utf8CodeUnitCount, 0xFFFF)) << 48
    }

    /// Lies in the last words of a frame's block.
    @inlinable @inline(__always)
    func store(in base: UnsafeMutableRawPointer, bytes: Int) {
        unsafe base.storeBytes(of: file, toByteOffset: bytes &- 8, as: UInt64.self)
        unsafe base.storeBytes(of: function, toByteOffset: bytes &- 16, as: UInt64.self)
        unsafe base.storeBytes(of: position, toByteOffset: bytes &- 24, as: UInt64.self)
    }
}
