// The named levels of Logger for fields whose values are spelled as cases: `["order": .int(7)]`.

import CordwoodCore

extension Logger {
    @inlinable @discardableResult @_disfavoredOverload
    public func log(
        _ level: Level, _ message: @autoclosure () -> String,
        fields: @autoclosure () -> KeyValuePairs<String, FieldInput>,
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(UInt32(level.number)) else { return refusal }
        return append(
            UInt32(level.number), message(), fields(), error, LogPlace(file, function, line, column)
        )
    }

    @inlinable @discardableResult @_disfavoredOverload
    public func trace(
        _ message: @autoclosure () -> String,
        fields: @autoclosure () -> KeyValuePairs<String, FieldInput>,
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(1) else { return refusal }
        return append(1, message(), fields(), error, LogPlace(file, function, line, column))
    }

    @inlinable @discardableResult @_disfavoredOverload
    public func debug(
        _ message: @autoclosure () -> String,
        fields: @autoclosure () -> KeyValuePairs<String, FieldInput>,
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(5) else { return refusal }
        return append(5, message(), fields(), error, LogPlace(file, function, line, column))
    }

    @inlinable @discardableResult @_disfavoredOverload
    public func info(
        _ message: @autoclosure () -> String,
        fields: @autoclosure () -> KeyValuePairs<String, FieldInput>,
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(9) else { return refusal }
        return append(9, message(), fields(), error, LogPlace(file, function, line, column))
    }

    @inlinable @discardableResult @_disfavoredOverload
    public func notice(
        _ message: @autoclosure () -> String,
        fields: @autoclosure () -> KeyValuePairs<String, FieldInput>,
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(10) else { return refusal }
        return append(10, message(), fields(), error, LogPlace(file, function, line, column))
    }

    @inlinable @discardableResult @_disfavoredOverload
    public func warning(
        _ message: @autoclosure () -> String,
        fields: @autoclosure () -> KeyValuePairs<String, FieldInput>,
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(13) else { return refusal }
        return append(13, message(), fields(), error, LogPlace(file, function, line, column))
    }

    @inlinable @discardableResult @_disfavoredOverload
    public func warn(
        _ message: @autoclosure () -> String,
        fields: @autoclosure () -> KeyValuePairs<String, FieldInput>,
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(13) else { return refusal }
        return append(13, message(), fields(), error, LogPlace(file, function, line, column))
    }

    @inlinable @discardableResult @_disfavoredOverload
    public func error(
        _ message: @autoclosure () -> String,
        fields: @autoclosure () -> KeyValuePairs<String, FieldInput>,
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(17) else { return refusal }
        return append(17, message(), fields(), error, LogPlace(file, function, line, column))
    }

    @inlinable @discardableResult @_disfavoredOverload
    public func critical(
        _ message: @autoclosure () -> String,
        fields: @autoclosure () -> KeyValuePairs<String, FieldInput>,
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(21) else { return refusal }
        return append(21, message(), fields(), error, LogPlace(file, function, line, column))
    }

    @inlinable @discardableResult @_disfavoredOverload
    public func fatal(
        _ message: @autoclosure () -> String,
        fields: @autoclosure () -> KeyValuePairs<String, FieldInput>,
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line, column: UInt32 = #column
    ) -> Int32 {
        guard isEnabled(21) else { return refusal }
        return append(21, message(), fields(), error, LogPlace(file, function, line, column))
    }

    @usableFromInline
    func append(
        _ level: UInt32, _ message: String, _ fields: KeyValuePairs<String, FieldInput>,
        _ error: (any Error)?, _ place: LogPlace
    ) -> Int32 {
        unsafe withUnsafeTemporaryAllocation(byteCount: MessageFrame.bytes, alignment: 8) {
            let base = unsafe $0.baseAddress.unsafelyUnwrapped
            let message = unsafe evaluated({ LogMessage(message) }, base, place)
            guard unsafe LogMessage.isOf(message, base) else {
                return unsafe withFrame(of: message, base, place) {
                    unsafe RecordWriter.write(block, level, $0, fields, error)
                }
            }
            return unsafe RecordWriter.write(block, level, message.frame, fields, error)
        }
    }
}
