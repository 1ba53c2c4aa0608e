// Calls under the names they had before 0.2. Each one only forwards to its replacement.

import CordwoodCore
import CordwoodShip

extension Duration {
    /// Counts as C does: UInt32.max means no limit.
    package init?(ms: UInt32) {
        guard ms != .max else { return nil }
        self = .milliseconds(Int64(ms))
    }
}

extension Engine {
    @available(*, deprecated, message: "flush(_:timeout:) takes a Duration")
    public func flush(
        _ durability: Durability = .process, timeoutMs: UInt32
    ) throws(CordwoodError) {
        try flush(durability, timeout: Duration(ms: timeoutMs))
    }

    @available(*, deprecated, message: "archiveWait(timeout:) takes a Duration")
    public func archiveWait(timeoutMs: UInt32) throws(CordwoodError) {
        try archiveWait(timeout: Duration(ms: timeoutMs))
    }

    @available(*, deprecated, message: "upload(timeout:) takes a Duration")
    public func upload(timeoutMs: UInt32) throws(CordwoodError) -> UploadResult {
        try upload(timeout: Duration(ms: timeoutMs))
    }

    @available(*, deprecated, message: "upload(timeout:) throws and takes a Duration")
    public func upload(
        timeoutMs: UInt32, result: inout UploadResult
    ) throws(CordwoodError) -> Int32 {
        try upload(timeout: Duration(ms: timeoutMs), result: &result)
    }

    @available(*, deprecated, message: "flushTransactions(timeout:) takes a Duration")
    public func flushTransactions(timeoutMs: UInt32) throws(CordwoodError) -> UInt64 {
        try flushTransactions(timeout: Duration(ms: timeoutMs))
    }

    @available(*, deprecated, message: "flushTransactions(timeout:) throws and takes a Duration")
    public func flushTransactions(
        timeoutMs: UInt32, result: inout UploadResult
    ) throws(CordwoodError) -> Int32 {
        try flushTransactions(timeout: Duration(ms: timeoutMs), result: &result)
    }

    @available(*, deprecated, message: "close(timeout:) takes a Duration")
    @discardableResult
    public func close(timeoutMs: UInt32) throws(CordwoodError) -> Bool {
        try close(timeout: Duration(ms: timeoutMs))
    }
}
