// Loggers of an engine, by name.

import CordwoodCore
import CordwoodEngine

extension Engine {
    /// The logger of a dotted name; "" is the root. The same name gives the same logger. One that
    /// cannot be had (after close, or a name over 255 bytes) answers closed to every record.
    public func logger(_ name: String) -> Logger {
        unsafe (try? findLogger(name)) ?? Logger(block: Logger.closedBlock, name: name)
    }

    /// As `logger`, and says why it cannot be had.
    public func findLogger(_ name: String) throws(CordwoodError) -> Logger {
        unsafe Logger(block: try loggerBlock(name), name: name)
    }
}
