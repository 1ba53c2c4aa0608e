// The host's choices for a collector, with every limit and its default, and the errors that keep
// one from starting. Plain values; read once when the collector is made.

import Cordwood
import CordwoodServing

public struct CollectorOptions: Sendable {
    /// A store, created if it does not exist. Archives go to `archives/` below it.
    public var directory: String
    /// An address, never a name: nothing here asks for DNS. `localhost` means 127.0.0.1.
    public var host = "127.0.0.1"
    /// 0: any free port; `start` returns it.
    public var port = 0
    /// Each is a client's token, or several of them with blanks between them. Without tokens and
    /// without a file of tokens, anyone who reaches the port may store archives.
    public var tokens: [String] = []
    /// A file with more of them, a client a line. Read again every second.
    public var tokenFile: String?
    public var archiveBytesMax: UInt64 = 4 << 30
    /// The limit of what is remembered: lanes that were sent, and covers of stored archives, each.
    /// About 60 bytes for a lane, 400 for an archive with one cover, 32 for each further cover.
    public var coversMax = 2 << 20
    /// The limit of all header fields of one request together.
    public var headerBytesMax = 16 << 10
    public var connectionsMax = 256
    /// The limit for one IPv4 address, or for one /64 of IPv6. Nil: a quarter of all; no limit for
    /// loopback, where a proxy serves many clients.
    public var connectionsPerAddressMax: Int?
    /// From the connection, or the previous answer, to the end of the next request's head.
    public var headTimeoutMs: Int64 = 30_000
    /// The same while connections are short: a client that waits longer gives way to a new one.
    public var headTimeoutPressedMs: Int64 = 5_000
    /// A body is checked in steps of this length …
    public var stallTimeoutMs: Int64 = 15_000
    /// … and each step has to bring this many bytes per second.
    public var bodyBytesPerSecondMin: UInt64 = 512
    /// The same while connections are short: slower bodies give way, the slowest first.
    public var bodyBytesPerSecondPressed: UInt64 = 8 << 10
    /// How long `stop` waits for requests that are being served.
    public var stopTimeoutMs: Int64 = 10_000
    /// For testing clients: this many uploads get 503 before the first one is accepted.
    public var refuseFirst = 0
    /// The Retry-After of those answers.
    public var retryAfterSeconds = 1
    /// Receives a line for each refusal, few at a time. Must not block: every client waits for it.
    /// False: the line could not be written, and counts as omitted.
    public var notice: (@Sendable (String) -> Bool)?

    public init(directory: String) { self.directory = directory }

    var limits: ConnectionLimits {
        var limits = ConnectionLimits()
        limits.connectionsMax = connectionsMax
        limits.connectionsPerAddressMax = connectionsPerAddressMax
        limits.headTimeoutPressedMs = headTimeoutPressedMs
        limits.bodyBytesPerSecondPressed = bodyBytesPerSecondPressed
        return limits
    }
}

public enum CollectorError: Error, Sendable, CustomStringConvertible {
    /// The directory cannot be made, read or written.
    case directory(String, errno: Int32)
    /// The directory is not, and cannot be made, a store.
    case store(String)
    /// Another collector serves this directory.
    case inUse(String)
    /// A token that no client could send, or a file of tokens that cannot be used.
    case tokens(String)
    /// Not an address and a port to listen on.
    case listen(String)
    /// A collector is started once.
    case started

    public var description: String {
        switch self {
        case .directory(let what, let number): "\(what): \(Errno.text(number))"
        case .store(let why), .tokens(let why): why
        case .inUse(let path): "another collector serves \(path)"
        case .listen(let why): "cannot listen: \(why)"
        case .started: "the collector was started before"
        }
    }
}
