// Logger's named levels, each with a message alone and with fields and an error. A literal or an
// interpolation becomes a LogMessage, whose arguments are copied raw. LoggerStrings does the same
// for existing Strings. All levels follow one pattern; `log` takes any level.

import CordwoodCore

extension Logger {
    /// Writes one record of that level. Returns the header's status: 0 kept, 1 disabled, below 0 an
    /// error.
    @inlinable @inline(__always) @discardableResult
    public func log(
        _ level: Level, _ message: @autoclosure () -> LogMessage, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(UInt32(level.number)) else { return refusal }
        return append(UInt32(level.number), message, LogPlace(file, function, line, column))
    }

    @inlinable @inline(__always) @discardableResult
    public func log(
        _ level: Level, _ message: @autoclosure () -> LogMessage,
        fields: @autoclosure () -> KeyValuePairs<String, any LogValue> = [:],
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(UInt32(level.number)) else { return refusal }
        return append(
            UInt32(level.number), message, LogPlace(file, function, line, column), fields, error)
    }

    /// Like `log`.
    @inlinable @inline(__always) @discardableResult
    public func trace(
        _ message: @autoclosure () -> LogMessage, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(1) else { return refusal }
        return append(1, message, LogPlace(file, function, line, column))
    }

    @inlinable @inline(__always) @discardableResult
    public func trace(
        _ message: @autoclosure () -> LogMessage,
        fields: @autoclosure () -> KeyValuePairs<String, any LogValue> = [:],
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(1) else { return refusal }
        return append(1, message, LogPlace(file, function, line, column), fields, error)
    }

    /// Like `log`.
    @inlinable @inline(__always) @discardableResult
    public func debug(
        _ message: @autoclosure () -> LogMessage, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(5) else { return refusal }
        return append(5, message, LogPlace(file, function, line, column))
    }

    @inlinable @inline(__always) @discardableResult
    public func debug(
        _ message: @autoclosure () -> LogMessage,
        fields: @autoclosure () -> KeyValuePairs<String, any LogValue> = [:],
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(5) else { return refusal }
        return append(5, message, LogPlace(file, function, line, column), fields, error)
    }

    /// Like `log`.
    @inlinable @inline(__always) @discardableResult
    public func info(
        _ message: @autoclosure () -> LogMessage, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(9) else { return refusal }
        return append(9, message, LogPlace(file, function, line, column))
    }

    @inlinable @inline(__always) @discardableResult
    public func info(
        _ message: @autoclosure () -> LogMessage,
        fields: @autoclosure () -> KeyValuePairs<String, any LogValue> = [:],
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(9) else { return refusal }
        return append(9, message, LogPlace(file, function, line, column), fields, error)
    }

    /// Like `log`.
    @inlinable @inline(__always) @discardableResult
    public func notice(
        _ message: @autoclosure () -> LogMessage, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(10) else { return refusal }
        return append(10, message, LogPlace(file, function, line, column))
    }

    @inlinable @inline(__always) @discardableResult
    public func notice(
        _ message: @autoclosure () -> LogMessage,
        fields: @autoclosure () -> KeyValuePairs<String, any LogValue> = [:],
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(10) else { return refusal }
        return append(10, message, LogPlace(file, function, line, column), fields, error)
    }

    /// Like `log`.
    @inlinable @inline(__always) @discardableResult
    public func warning(
        _ message: @autoclosure () -> LogMessage, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(13) else { return refusal }
        return append(13, message, LogPlace(file, function, line, column))
    }

    @inlinable @inline(__always) @discardableResult
    public func warning(
        _ message: @autoclosure () -> LogMessage,
        fields: @autoclosure () -> KeyValuePairs<String, any LogValue> = [:],
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(13) else { return refusal }
        return append(13, message, LogPlace(file, function, line, column), fields, error)
    }

    /// Like `log`.
    @inlinable @inline(__always) @discardableResult
    public func warn(
        _ message: @autoclosure () -> LogMessage, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(13) else { return refusal }
        return append(13, message, LogPlace(file, function, line, column))
    }

    @inlinable @inline(__always) @discardableResult
    public func warn(
        _ message: @autoclosure () -> LogMessage,
        fields: @autoclosure () -> KeyValuePairs<String, any LogValue> = [:],
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(13) else { return refusal }
        return append(13, message, LogPlace(file, function, line, column), fields, error)
    }

    /// Like `log`.
    @inlinable @inline(__always) @discardableResult
    public func error(
        _ message: @autoclosure () -> LogMessage, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(17) else { return refusal }
        return append(17, message, LogPlace(file, function, line, column))
    }

    @inlinable @inline(__always) @discardableResult
    public func error(
        _ message: @autoclosure () -> LogMessage,
        fields: @autoclosure () -> KeyValuePairs<String, any LogValue> = [:],
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(17) else { return refusal }
        return append(17, message, LogPlace(file, function, line, column), fields, error)
    }

    /// Like `log`.
    @inlinable @inline(__always) @discardableResult
    public func critical(
        _ message: @autoclosure () -> LogMessage, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(21) else { return refusal }
        return append(21, message, LogPlace(file, function, line, column))
    }

    @inlinable @inline(__always) @discardableResult
    public func critical(
        _ message: @autoclosure () -> LogMessage,
        fields: @autoclosure () -> KeyValuePairs<String, any LogValue> = [:],
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(21) else { return refusal }
        return append(21, message, LogPlace(file, function, line, column), fields, error)
    }

    /// Like `log`.
    @inlinable @inline(__always) @discardableResult
    public func fatal(
        _ message: @autoclosure () -> LogMessage, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(21) else { return refusal }
        return append(21, message, LogPlace(file, function, line, column))
    }

    @inlinable @inline(__always) @discardableResult
    public func fatal(
        _ message: @autoclosure () -> LogMessage,
        fields: @autoclosure () -> KeyValuePairs<String, any LogValue> = [:],
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(21) else { return refusal }
        return append(21, message, LogPlace(file, function, line, column), fields, error)
    }
}
