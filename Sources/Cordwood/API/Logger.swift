// A named logger for Swift hosts: a value around a handle that is never freed. Any thread.

import CShims
import CordwoodCore

@safe public struct Logger: @unchecked Sendable {
    // SAFETY: the handle is valid for the life of the process and made for any thread.
    public let block: LoggerBlock
    public let name: String

    /// Reads as closed for ever.
    nonisolated(unsafe) static let closedBlock: LoggerBlock = {
        let block = LoggerBlock.allocate(capacity: 1)
        unsafe block.initialize(to: cwi_logger())
        return unsafe block
    }()

    init(block: LoggerBlock, name: String) {
        unsafe self.block = block
        self.name = name
    }

    /// True where a record of that level would be written: one load and one branch.
    public func isEnabled(_ level: Level) -> Bool {
        unsafe UInt32(level.number) &+ cwa_load_relaxed_u32(block) > 255
    }

    /// One record of bytes, kept as they are. Returns the header's status: 0 kept, 1 disabled,
    /// below 0 an error.
    @discardableResult
    public func write(_ level: Level, bytes: UnsafeRawBufferPointer) -> Int32 {
        unsafe AppendPath.text(block, UInt32(level.number), bytes.baseAddress, bytes.count)
    }

    /// One record with text, typed fields and the place in the source. Nothing is evaluated where
    /// the level is disabled.
    @discardableResult
    public func log(
        _ level: Level, _ message: @autoclosure () -> String,
        fields: @autoclosure () -> KeyValuePairs<String, FieldInput> = [:],
        error: (any Error)? = nil, file: StaticString = #fileID,
        function: StaticString = #function, line: UInt32 = #line
    ) -> Int32 {
        guard isEnabled(level) else {
            return unsafe AppendSlow.refusal(block, UInt32(level.number))
        }
        return unsafe RecordWriter.write(
            block, level: level.number, message: message(),
            fields: fields().map { ($0.key, $0.value) }, file: "\(file)", function: "\(function)",
            line: line, error: error)
    }
}
