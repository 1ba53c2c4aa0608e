// Logger's named levels for Strings that already exist: `log.info(text)`. The string is copied into
// the record as its only argument. It is evaluated before the call hands over its frame; otherwise
// a message made during the evaluation would take that frame. Whatever the compiler can read as a
// LogMessage goes to LoggerLevels instead.

import CordwoodCore

extension Logger {
    @inlinable @inline(__always) @discardableResult @_disfavoredOverload
    public func log(
        _ level: Level, _ message: @autoclosure () -> String, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(UInt32(level.number)) else { return refusal }
        return append(UInt32(level.number), message(), LogPlace(file, function, line, column))
    }

    @inlinable @discardableResult @_disfavoredOverload
    public func log(
        _ level: Level, _ message: @autoclosure () -> String,
        fields: @autoclosure () -> KeyValuePairs<String, any LogValue> = [:],
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(UInt32(level.number)) else { return refusal }
        let text = message()
        return append(
            UInt32(level.number), { LogMessage(text) }, LogPlace(file, function, line, column),
            fields,
            error)
    }

    @inlinable @inline(__always) @discardableResult @_disfavoredOverload
    public func trace(
        _ message: @autoclosure () -> String, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(1) else { return refusal }
        return append(1, message(), LogPlace(file, function, line, column))
    }

    @inlinable @discardableResult @_disfavoredOverload
    public func trace(
        _ message: @autoclosure () -> String,
        fields: @autoclosure () -> KeyValuePairs<String, any LogValue> = [:],
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(1) else { return refusal }
        let text = message()
        return append(
            1, { LogMessage(text) }, LogPlace(file, function, line, column), fields,
            error)
    }

    @inlinable @inline(__always) @discardableResult @_disfavoredOverload
    public func debug(
        _ message: @autoclosure () -> String, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(5) else { return refusal }
        return append(5, message(), LogPlace(file, function, line, column))
    }

    @inlinable @discardableResult @_disfavoredOverload
    public func debug(
        _ message: @autoclosure () -> String,
        fields: @autoclosure () -> KeyValuePairs<String, any LogValue> = [:],
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(5) else { return refusal }
        let text = message()
        return append(
            5, { LogMessage(text) }, LogPlace(file, function, line, column), fields,
            error)
    }

    @inlinable @inline(__always) @discardableResult @_disfavoredOverload
    public func info(
        _ message: @autoclosure () -> String, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(9) else { return refusal }
        return append(9, message(), LogPlace(file, function, line, column))
    }

    @inlinable @discardableResult @_disfavoredOverload
    public func info(
        _ message: @autoclosure () -> String,
        fields: @autoclosure () -> KeyValuePairs<String, any LogValue> = [:],
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(9) else { return refusal }
        let text = message()
        return append(
            9, { LogMessage(text) }, LogPlace(file, function, line, column), fields,
            error)
    }

    @inlinable @inline(__always) @discardableResult @_disfavoredOverload
    public func notice(
        _ message: @autoclosure () -> String, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(10) else { return refusal }
        return append(10, message(), LogPlace(file, function, line, column))
    }

    @inlinable @discardableResult @_disfavoredOverload
    public func notice(
        _ message: @autoclosure () -> String,
        fields: @autoclosure () -> KeyValuePairs<String, any LogValue> = [:],
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(10) else { return refusal }
        let text = message()
        return append(
            10, { LogMessage(text) }, LogPlace(file, function, line, column), fields,
            error)
    }

    @inlinable @inline(__always) @discardableResult @_disfavoredOverload
    public func warning(
        _ message: @autoclosure () -> String, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(13) else { return refusal }
        return append(13, message(), LogPlace(file, function, line, column))
    }

    @inlinable @discardableResult @_disfavoredOverload
    public func warning(
        _ message: @autoclosure () -> String,
        fields: @autoclosure () -> KeyValuePairs<String, any LogValue> = [:],
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(13) else { return refusal }
        let text = message()
        return append(
            13, { LogMessage(text) }, LogPlace(file, function, line, column), fields,
            error)
    }

    @inlinable @inline(__always) @discardableResult @_disfavoredOverload
    public func warn(
        _ message: @autoclosure () -> String, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(13) else { return refusal }
        return append(13, message(), LogPlace(file, function, line, column))
    }

    @inlinable @discardableResult @_disfavoredOverload
    public func warn(
        _ message: @autoclosure () -> String,
        fields: @autoclosure () -> KeyValuePairs<String, any LogValue> = [:],
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(13) else { return refusal }
        let text = message()
        return append(
            13, { LogMessage(text) }, LogPlace(file, function, line, column), fields,
            error)
    }

    @inlinable @inline(__always) @discardableResult @_disfavoredOverload
    public func error(
        _ message: @autoclosure () -> String, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(17) else { return refusal }
        return append(17, message(), LogPlace(file, function, line, column))
    }

    @inlinable @discardableResult @_disfavoredOverload
    public func error(
        _ message: @autoclosure () -> String,
        fields: @autoclosure () -> KeyValuePairs<String, any LogValue> = [:],
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(17) else { return refusal }
        let text = message()
        return append(
            17, { LogMessage(text) }, LogPlace(file, function, line, column), fields,
            error)
    }

    @inlinable @inline(__always) @discardableResult @_disfavoredOverload
    public func critical(
        _ message: @autoclosure () -> String, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(21) else { return refusal }
        return append(21, message(), LogPlace(file, function, line, column))
    }

    @inlinable @discardableResult @_disfavoredOverload
    public func critical(
        _ message: @autoclosure () -> String,
        fields: @autoclosure () -> KeyValuePairs<String, any LogValue> = [:],
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(21) else { return refusal }
        let text = message()
        return append(
            21, { LogMessage(text) }, LogPlace(file, function, line, column), fields,
            error)
    }

    @inlinable @inline(__always) @discardableResult @_disfavoredOverload
    public func fatal(
        _ message: @autoclosure () -> String, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(21) else { return refusal }
        return append(21, message(), LogPlace(file, function, line, column))
    }

    @inlinable @discardableResult @_disfavoredOverload
    public func fatal(
        _ message: @autoclosure () -> String,
        fields: @autoclosure () -> KeyValuePairs<String, any LogValue> = [:],
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(21) else { return refusal }
        let text = message()
        return append(
            21, { LogMessage(text) }, LogPlace(file, function, line, column), fields,
            error)
    }
}
