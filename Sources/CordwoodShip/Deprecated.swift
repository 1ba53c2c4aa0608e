// Earlier names of properties. Each one only forwards to its replacement.

import CordwoodCore

extension TargetOptions {
    /// 0: the default.
    @available(*, deprecated, message: "connectTimeout is a Duration")
    public var connectTimeoutMs: UInt32 {
        get { UInt32(clamping: connectTimeout?.wholeMs ?? 0) }
        set { connectTimeout = newValue == 0 ? nil : .milliseconds(Int64(newValue)) }
    }

    /// 0: the default.
    @available(*, deprecated, message: "requestTimeout is a Duration")
    public var requestTimeoutMs: UInt32 {
        get { UInt32(clamping: requestTimeout?.wholeMs ?? 0) }
        set { requestTimeout = newValue == 0 ? nil : .milliseconds(Int64(newValue)) }
    }
}

extension UploadRequest {
    @available(*, deprecated, message: "connectTimeout is a Duration")
    public var connectTimeoutMs: UInt32 { UInt32(clamping: connectTimeout.wholeMs) }

    @available(*, deprecated, message: "timeout is a Duration")
    public var timeoutMs: UInt64 { timeout.wholeMs }
}
