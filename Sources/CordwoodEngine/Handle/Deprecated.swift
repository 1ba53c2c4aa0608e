// Earlier names of calls. Each one only forwards to its replacement.

import CordwoodCore
import CordwoodShip
import CordwoodStore

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

    @available(*, deprecated, message: "upload() async throws and gives the result")
    public func uploadAsync(
        _ done: (@Sendable (Int32, UploadResult) -> Void)?
    ) throws(CordwoodError) {
        try beginUpload(done)
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

extension StoreUploader.Session {
    @available(*, deprecated, message: "upload(timeout:explicit:) takes a Duration")
    public func upload(
        timeoutMs: UInt32, explicit: Bool = true
    ) throws(CordwoodError) -> StoreUploader.Outcome {
        try upload(timeout: Duration(ms: timeoutMs), explicit: explicit)
    }
}

extension StoreUploader {
    @available(*, deprecated, message: "upload(…timeout:…) takes a Duration")
    public static func upload(
        directory: String, target options: TargetOptions,
        callbacks: TargetCallbacks = TargetCallbacks(), timeoutMs: UInt32, explicit: Bool = true,
        identities: [AgeIdentity] = []
    ) throws(CordwoodError) -> Outcome {
        try upload(
            directory: directory, target: options, callbacks: callbacks,
            timeout: Duration(ms: timeoutMs), explicit: explicit, identities: identities)
    }
}
