// An engine's loggers, by name.

import CordwoodCore
import CordwoodEngine

extension Engine {
    /// The logger of a dotted name; "" is the root. The same name gives the same logger. If no
    /// logger can be made (after close, or for a name over 255 bytes), the result reports every
    /// record as closed.
    public func logger(_ name: String) -> Logger {
        unsafe (try? findLogger(name)) ?? Logger(block: Logger.closedBlock, name: name)
    }

    /// Like `logger`, but throws the reason if no logger can be made.
    public func findLogger(_ name: String) throws(CordwoodError) -> Logger {
        unsafe Logger(block: try loggerBlock(name), name: name)
    }
}
