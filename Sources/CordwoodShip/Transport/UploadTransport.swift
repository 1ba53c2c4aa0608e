// The interface for hosts that send requests themselves: in Swift this protocol, in C and Python
// the function that CordwoodABI wraps in it. HostTransport calls it and validates everything it
// returns.

/// Sends requests in place of libcurl. The engine's threads call it, several at once if the target
/// allows that; it may block.
public protocol UploadTransport: AnyObject, Sendable {
    /// Makes one exchange: sends the request unchanged, follows no redirection, returns the
    /// server's final answer whatever its status. Throws if no answer came: UploadTransportError,
    /// or another error, of which only the type's name is logged.
    func send(_ request: UploadRequest) throws -> UploadResponse
}

/// A server's answer.
public struct UploadResponse: Sendable {
    /// 200 to 599; anything else counts as no answer.
    public var status: Int
    /// Only the first 64, of 8 KiB each, are used.
    public var headers: [(name: String, value: String)]
    /// Cut to 4 MiB.
    public var body: [UInt8]

    public init(status: Int, headers: [(name: String, value: String)] = [], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }
}

/// The reason for a missing answer.
public struct UploadTransportError: Error, Sendable {
    /// Logged, so keep URL paths, headers and other secrets out of it.
    public var text: String
    /// No connection was established: the target as a whole waits, not each archive by itself.
    public var isUnreachable: Bool

    public init(_ text: String, isUnreachable: Bool = false) {
        self.text = text
        self.isUnreachable = isUnreachable
    }
}
