// The host's description of a target (cw_target_options), unchecked. A value; it holds secrets.

public struct TargetOptions: Sendable {
    public var name: String?
    public var kind: String?
    public var url: String
    public var format: String?
    public var encoding: String?
    public var headers: String?
    public var method: String?
    /// `name=value` lines of options that only this kind has.
    public var parameters: String?

    /// The condition for an answer to count as success; nil: any 2xx except HTML, or the kind's
    /// rule. `status:202;header:X-Stored=yes;body:accepted`: all of it.
    public var expect: String?

    public var authToken: String?
    public var authUser: String?
    public var authPassword: String?

    /// Rounded up to milliseconds; nil: the default.
    public var connectTimeout: Duration?
    public var requestTimeout: Duration?
    public var bytesPerSecond: UInt64 = 0
    public var caFile: String?
    public var clientCertificateFile: String?
    public var clientKeyFile: String?
    public var clientKeyPassword: String?
    public var proxy: String?
    public var proxyAuthentication: String?
    /// 0: HTTP/2 where TLS agrees on it; 1: 1.1; 2: HTTP/2.
    public var httpVersion: UInt32 = 0

    /// The lowest level to send; 0: all.
    public var level: UInt32 = 0
    /// Names of loggers, separated by commas; each includes the loggers below it. nil: all.
    public var loggers: String?
    /// The limit of one body; 0: the kind's own limits.
    public var bodyBytesMax: UInt64 = 0
    public var bodyRecordsMax: UInt32 = 0
    /// The number of concurrent requests; 0: the default.
    public var requestsMax: UInt32 = 0

    /// Asked for other credentials if a server answers 401 or 403. nil: the target rests at once.
    public var credentials: AskCredentials?
    /// Sends in place of libcurl.
    public var transport: (any UploadTransport)?

    public init(url: String) {
        self.url = url
    }
}
