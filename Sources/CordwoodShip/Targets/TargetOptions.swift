// What the host said of a target (cw_target_options), unchecked. A value; it holds secrets.

public struct TargetOptions: Sendable {
    public var name: String?
    public var kind: String?
    public var url: String
    public var format: String?
    public var encoding: String?
    public var headers: String?
    public var method: String?
    /// `name=value` lines of what only this kind knows.
    public var parameters: String?

    /// What an answer must be to count as success; nil: any 2xx but HTML, or as the kind knows.
    /// `status:202;header:X-Stored=yes;body:accepted`: all of it.
    public var expect: String?

    public var authToken: String?
    public var authUser: String?
    public var authPassword: String?

    /// 0: the default.
    public var connectTimeoutMs: UInt32 = 0
    public var requestTimeoutMs: UInt32 = 0
    public var bytesPerSecond: UInt64 = 0
    public var caFile: String?
    public var clientCertificateFile: String?
    public var clientKeyFile: String?
    public var clientKeyPassword: String?
    public var proxy: String?
    public var proxyAuthentication: String?
    /// 0: HTTP/2 where TLS agrees on it; 1: 1.1; 2: HTTP/2.
    public var httpVersion: UInt32 = 0

    /// Least level that is sent; 0: all.
    public var level: UInt32 = 0
    /// Names of loggers, separated by commas; each covers those below it. nil: all.
    public var loggers: String?
    /// Of one body; 0: the kind's own limits.
    public var bodyBytesMax: UInt64 = 0
    public var bodyRecordsMax: UInt32 = 0
    /// Requests at a time; 0: the default.
    public var requestsMax: UInt32 = 0

    /// Asked for others where a server answers 401 or 403. nil: the target rests at once.
    public var credentials: AskCredentials?
    /// Sends in place of libcurl.
    public var transport: (any UploadTransport)?

    public init(url: String) {
        self.url = url
    }
}
