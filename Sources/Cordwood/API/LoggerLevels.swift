// The named levels of Logger: each is `log` with its level.

extension Logger {
    @discardableResult
    public func trace(
        _ message: @autoclosure () -> String,
        fields: @autoclosure () -> KeyValuePairs<String, FieldInput> = [:],
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line
    ) -> Int32 {
        log(
            .trace, message(), fields: fields(), error: error, file: file, function: function,
            line: line)
    }

    @discardableResult
    public func debug(
        _ message: @autoclosure () -> String,
        fields: @autoclosure () -> KeyValuePairs<String, FieldInput> = [:],
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line
    ) -> Int32 {
        log(
            .debug, message(), fields: fields(), error: error, file: file, function: function,
            line: line)
    }

    @discardableResult
    public func info(
        _ message: @autoclosure () -> String,
        fields: @autoclosure () -> KeyValuePairs<String, FieldInput> = [:],
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line
    ) -> Int32 {
        log(
            .info, message(), fields: fields(), error: error, file: file, function: function,
            line: line)
    }

    @discardableResult
    public func notice(
        _ message: @autoclosure () -> String,
        fields: @autoclosure () -> KeyValuePairs<String, FieldInput> = [:],
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line
    ) -> Int32 {
        log(
            .notice, message(), fields: fields(), error: error, file: file, function: function,
            line: line)
    }

    @discardableResult
    public func warn(
        _ message: @autoclosure () -> String,
        fields: @autoclosure () -> KeyValuePairs<String, FieldInput> = [:],
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line
    ) -> Int32 {
        log(
            .warn, message(), fields: fields(), error: error, file: file, function: function,
            line: line)
    }

    @discardableResult
    public func error(
        _ message: @autoclosure () -> String,
        fields: @autoclosure () -> KeyValuePairs<String, FieldInput> = [:],
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line
    ) -> Int32 {
        log(
            .error, message(), fields: fields(), error: error, file: file, function: function,
            line: line)
    }

    @discardableResult
    public func fatal(
        _ message: @autoclosure () -> String,
        fields: @autoclosure () -> KeyValuePairs<String, FieldInput> = [:],
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line
    ) -> Int32 {
        log(
            .fatal, message(), fields: fields(), error: error, file: file, function: function,
            line: line)
    }
}
