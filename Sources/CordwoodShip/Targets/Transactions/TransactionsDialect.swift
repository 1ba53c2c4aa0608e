// A server of application transactions (B-TXN-4 to B-TXN-7): one POST per batch of events, in JSON,
// with a token in an Authorization of the host's own design. Only a 2xx accepts a batch. After
// every other answer the batch is kept, because events that are given up are lost and waiting
// events are not. No answer of the server quarantines anything: the batch is sent again at growing
// intervals. One case is skipped, counted and reported, as for every kind: an event that is too
// large for the server even alone, since otherwise the events after it would never be sent.

import CordwoodFormats
import CordwoodStore

struct TransactionsDialect: Dialect {
    let contentType: String
    let limits: BodyLimits
    private let address: String
    /// `Token token=`.
    private let authorization: String
    private let device: TransactionsDevice

    static let bodyBytesMax: UInt64 = 256 << 10
    static let eventsMax: UInt32 = 1_000
    /// A smaller body could not hold one event with its surroundings.
    static let bodyBytesMin: UInt64 = 16 << 10
    static let versionDefault = "1"
    static let schemeDefault = "Token"
    static let parameterDefault = "token"
    static let wordBytesMax = 100

    init(_ options: DialectOptions) throws(UploadError) {
        try options.parameters.require(
            only: [
                "prefix", "version", "scheme", "param", "device_make", "device_os",
                "device_os_version",
            ], kind: .transactions)
        try options.requirePost(.transactions)
        address = options.url
        limits = options.limits(
            BodyLimits(
                bytes: TransactionsDialect.bodyBytesMax, entries: TransactionsDialect.eventsMax))
        guard limits.bytes >= TransactionsDialect.bodyBytesMin else {
            throw UploadError.argument(
                "kind transactions needs bodies of at least \(TransactionsDialect.bodyBytesMin) "
                    + "bytes")
        }
        func word(_ name: String, _ fallback: String) throws(UploadError) -> String {
            let word = options.parameters[name] ?? fallback
            guard word.utf8.count <= TransactionsDialect.wordBytesMax,
                word.utf8.allSatisfy(TransactionsDialect.isWordByte)
            else {
                throw UploadError.argument(
                    "parameter '\(name)' is not letters, digits and !#$&-^_.+ alone")
            }
            return word
        }
        let prefix = try word("prefix", "")
        let version = try word("version", TransactionsDialect.versionDefault)
        contentType = "application/\(prefix)apptxnset-v\(version)+json;charset=UTF-8"
        let scheme = try word("scheme", TransactionsDialect.schemeDefault)
        let parameter = try word("param", TransactionsDialect.parameterDefault)
        guard !scheme.isEmpty, !parameter.isEmpty, !version.isEmpty else {
            throw UploadError.argument("parameters scheme, param and version must not be empty")
        }
        authorization = "\(scheme) \(parameter)="
        device = TransactionsDevice(
            make: options.parameters["device_make"], os: options.parameters["device_os"],
            osVersion: options.parameters["device_os_version"])
    }

    /// RFC 6838, 4.2.
    private static func isWordByte(_ byte: UInt8) -> Bool {
        ASCII.isAlphanumeric(byte) || "!#$&-^_.+".utf8.contains(byte)
    }

    func makeEncoder(_ lines: LineRenderers) -> (any RecordEncoder)? {
        TransactionsEncoder(device: device, deleted: DeletedFile())
    }

    func makeEncoder(
        _ lines: LineRenderers, store: StorePaths
    ) throws(UploadError) -> (any RecordEncoder)? {
        do throws(UploadError) {
            let deleted = try DeletedFile.read(storeDirectory: store.root)
            return TransactionsEncoder(device: device, deleted: deleted, store: store.root)
        } catch .damaged(let text), .version(let text) {
            // The archive is not at fault: it waits until the file can be read.
            throw .limit(text + "; nothing is sent before it can be read")
        }
    }

    func url(_ delivery: Delivery) -> String { address }

    var probe: Probe { .head(address) }

    func headers(_ delivery: Delivery) -> [RequestHeader] {
        guard let token = delivery.credentials.token else {
            return delivery.credentials.authorization.map { [$0] } ?? []
        }
        var value = authorization + "\""
        for scalar in token.unicodeScalars {
            if scalar == "\"" || scalar == "\\" { value.unicodeScalars.append("\\") }
            value.unicodeScalars.append(scalar)
        }
        return [RequestHeader(name: "Authorization", value: value + "\"")]
    }

    func verdict(_ outcome: TransferOutcome, _ delivery: Delivery) -> AnswerVerdict? {
        switch outcome.kind {
        case .success, .requestFailed, .none: return nil
        case .unknown where outcome.httpStatus == 0: return nil
        case .redirection, .client, .server, .unknown: break
        }
        if outcome.isStopped { return nil }
        switch outcome.httpStatus {
        case HTTPStatus.unauthorized: return .pause
        case 413 where delivery.entries > 1 || !isForNow(outcome): return .shrink
        default: return AnswerVerdict.retry(outcome, nowUnixMs: delivery.nowUnixMs)
        }
    }

    /// RFC 9110, 15.5.14: with Retry-After, a body is too large temporarily.
    private func isForNow(_ outcome: TransferOutcome) -> Bool {
        outcome.header("retry-after") != nil
    }
}
