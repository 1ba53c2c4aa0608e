// What a host implements that sends requests itself: in Swift this protocol, in C and Python the
// function that CordwoodABI wraps in it. HostTransport calls it and believes nothing it answers.

/// Sends requests in place of libcurl. Called on the engine's threads, by several at once where the
/// target allows that; may block.
public protocol UploadTransport: AnyObject, Sendable {
    /// One exchange: sends the request as it is, follows no redirection, gives the server's final
    /// answer whatever its status. Throws where there was none: UploadTransportError, or any other,
    /// of which the type's name alone is logged.
    func send(_ request: UploadRequest) throws -> UploadResponse
}

/// A server's answer.
public struct UploadResponse: Sendable {
    /// 200 to 599; anything else counts as no answer.
    public var status: Int
    /// The first 64, of 8 KiB each, are looked at.
    public var headers: [(name: String, value: String)]
    /// Of more than 4 MiB the rest is cut off.
    public var body: [UInt8]

    public init(status: Int, headers: [(name: String, value: String)] = [], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }
}

/// Why there was no answer.
public struct UploadTransportError: Error, Sendable {
    /// Logged: without URL paths, headers and other secrets.
    public var text: String
    /// No connection came to stand: archives wait for the target, rather than each for itself.
    public var isUnreachable: Bool

    public init(_ text: String, isUnreachable: Bool = false) {
        self.text = text
        self.isUnreachable = isUnreachable
    }
}
