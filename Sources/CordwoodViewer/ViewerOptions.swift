// The host's choices for a viewer, with every limit and its default, and the errors that keep one
// from starting. Plain values; read once when the viewer is made.

import Cordwood
import CordwoodServing

public struct ViewerOptions: Sendable {
    /// Store directories or single files, in any mix.
    public var paths: [String]
    /// A loopback address, or `localhost`.
    public var host = "127.0.0.1"
    /// 0: any free port; `start` returns it.
    public var port = 0
    /// A Unix socket instead, which only its owner can open.
    public var socketPath: String?
    /// Only this user's browsers are answered; nil: those of the user that the process acts as.
    public var userID: UInt32?
    /// Keys for encrypted archives.
    public var identities: [AgeIdentity] = []
    /// Remembers facts of archives between queries, as the command line does.
    public var remembersFacts = true
    /// Nothing can be changed: neither consent nor levels, capture or the queue.
    public var isReadOnly = false
    /// Serves the page's files from this directory; nil: those within the program.
    public var pageDirectory: String?
    public var connectionsMax = 64
    /// The limit of all header fields of one request together.
    public var headerBytesMax = 16 << 10
    public var bodyBytesMax = 64 << 10
    /// From the connection, or the previous answer, to the end of the next request.
    public var headTimeoutMs: Int64 = 30_000
    /// A client that accepts nothing of an answer for this long loses its connection.
    public var stallTimeoutMs: UInt64 = 30_000
    /// The limits of concurrent queries, and of followed ones besides.
    public var queriesMax = 4
    public var tailsMax = 4
    /// How long a link is valid.
    public var linkTimeoutMs: Int64 = 60_000
    /// How long `stop` waits for answers that are under way.
    public var stopTimeoutMs: Int64 = 2_000
    /// Receives a line for each refusal, few at a time. Must not block. False: it could not be
    /// written, and counts as omitted.
    public var notice: (@Sendable (String) -> Bool)?

    public init(paths: [String]) { self.paths = paths }

    var limits: ConnectionLimits {
        var limits = ConnectionLimits()
        limits.connectionsMax = connectionsMax
        return limits
    }
}

public enum ViewerError: Error, Sendable, CustomStringConvertible {
    /// Others could reach the address.
    case notLoopback(String)
    /// Not an address and a port, or a socket, to listen on.
    case listen(String)
    /// A store that cannot be opened.
    case store(String)
    /// A viewer is started once.
    case started

    public var description: String {
        switch self {
        case .notLoopback(let host):
            "\(host) is no loopback address, and the viewer serves this machine alone; from "
                + "another one, use ssh -L"
        case .listen(let why): "cannot listen: \(why)"
        case .store(let why): why
        case .started: "the viewer was started before"
        }
    }
}
