// The source of a policy, checked, and one look at it: a conditional GET that asks for a newer
// policy than ours. It knows nothing about engines and only reports the answer. Owned by one thread
// (PolicyKeeper), which may wait here as long as the server lets it.

import CordwoodCore
import CordwoodStore

/// What a host lets policies do. By default a policy removes no archive, makes no segment smaller
/// and turns no logger off; it may set levels up to fatal, and stop uploads.
public struct PolicyAllowance: OptionSet, Sendable {
    public let rawValue: UInt32

    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// Limits of retention below the host's own remove archives that not every target has; smaller
    /// segments cut or refuse large records.
    public static let erase = PolicyAllowance(rawValue: 1)
    /// Loggers may be off, or above fatal.
    public static let off = PolicyAllowance(rawValue: 2)
    /// The policy may come by http from another machine.
    public static let http = PolicyAllowance(rawValue: 4)

    package static let all: PolicyAllowance = [.erase, .off, .http]
}

public struct PolicyOptions: Equatable, Sendable {
    public var url: String
    /// `Name: value` lines.
    public var headers: String?
    /// 0: an hour.
    public var intervalSeconds: UInt32 = 0
    public var caFile: String?

    public init(url: String) {
        self.url = url
    }
}

package struct PolicySource: Sendable {
    package static let intervalSecondsDefault: UInt32 = 3_600

    package let origin: String
    package let intervalSeconds: UInt32
    package let allow: PolicyAllowance
    let url: String
    let headers: [RequestHeader]
    let settings: TransportSettings

    package init(
        _ options: PolicyOptions, allow: PolicyAllowance = []
    ) throws(UploadError) {
        let address: WebAddress
        do throws(UploadError) {
            address = try WebAddress(options.url)
            origin = address.origin
            headers = try RequestHeader.parse(options.headers ?? "")
        } catch {
            throw .argument("policy: \(error.text)")
        }
        for header in headers {
            guard !header.lowercasedName.hasPrefix("if-") else {
                throw .argument("policy: header \(header.name) is set by the library")
            }
        }
        let isOpen = address.scheme == "http"
        guard !isOpen || address.isLoopback || allow.contains(.http) else {
            throw .argument(
                "policy: \(origin) is not encrypted, so that anybody on the way can change it; "
                    + "use https, or set CW_POLICY_HTTP in policy_allow")
        }
        url = options.url
        self.allow = allow
        intervalSeconds =
            options.intervalSeconds == 0
            ? PolicySource.intervalSecondsDefault : options.intervalSeconds
        var settings = TransportSettings()
        settings.caFile = options.caFile
        // A proxy of the environment may be another machine.
        if isOpen && address.isLoopback { settings.proxy = "" }
        self.settings = settings
    }

    package enum PolicyAnswer: Sendable {
        /// Our policy is the newest.
        case unchanged
        case fresh(PolicyDocument, PolicyFile)
        /// The document asks for something we cannot do; the text names the key.
        case invalid(String)
        /// No document came. `delayMs`: the delay that the server asked for.
        case failed(FailureDetail, delayMs: UInt64?)
        case stopped

        /// No usable answer came: the next look is soon.
        package var isFailure: Bool {
            switch self {
            case .invalid, .failed: true
            case .unchanged, .fresh, .stopped: false
            }
        }
    }

    /// The policy that this source left in the store; nil: none, or no valid one.
    package func kept(
        storeDirectory: FilePath
    ) throws(UploadError) -> (PolicyDocument, PolicyFile)? {
        let read: PolicyFile?
        do throws(UploadError) {
            read = try PolicyFile.read(storeDirectory: storeDirectory)
        } catch {
            if case .notOurs = error { throw error }
            return nil
        }
        guard let file = read, file.urlHash == PolicyFile.hash(url),
            let document = try? PolicyDocument(json: file.json)
        else { return nil }
        return (document, file)
    }

    /// Stores a policy that was applied.
    package func keep(_ file: PolicyFile, storeDirectory: FilePath) throws(UploadError) {
        try file.write(storeDirectory: storeDirectory)
    }

    /// - Parameter known: the policy in force, whose validators the request carries; nil: any will
    ///   do.
    func look(
        _ transport: any Transport, known: PolicyFile?, nowUnixMs: UInt64,
        shouldStop: () -> Bool
    ) -> PolicyAnswer {
        var all = headers
        func set(_ name: String, _ value: String) {
            guard !value.isEmpty, !all.contains(where: { $0.lowercasedName == name.lowercased() })
            else { return }
            all.append(RequestHeader(name: name, value: value))
        }
        set("User-Agent", "cordwood")
        set("If-None-Match", known?.etag ?? "")
        set("If-Modified-Since", known?.modified ?? "")
        let request = TransferRequest(
            method: "GET", url: url, headers: all, body: nil, settings: settings)
        var outcome = transport.perform(request, tick: { shouldStop() ? .stop : .go })
        if outcome.isStopped { return .stopped }
        if outcome.httpStatus == 304 && known != nil { return .unchanged }
        guard outcome.httpStatus == 200 else {
            SentSecrets(request).clean(&outcome)
            let detail = FailureDetail(outcome, nowUnixMs: nowUnixMs)
            return .failed(detail, delayMs: detail.retryAfterMs)
        }
        do throws(UploadError) {
            let document = try PolicyDocument(json: outcome.body)
            let file = PolicyFile(
                url: url, origin: origin, etag: outcome.header("etag") ?? "",
                modified: outcome.header("last-modified") ?? "",
                savedUnixSeconds: Int64(clamping: nowUnixMs / 1_000), allow: allow,
                json: outcome.body)
            return .fresh(document, file)
        } catch {
            return .invalid(error.text)
        }
    }
}

extension PolicySource {
    /// One look by libcurl on a connection of its own. Without libcurl, no document comes.
    package func look(
        known: PolicyFile?, nowUnixMs: UInt64, shouldStop: () -> Bool
    ) -> PolicyAnswer {
        let transport: CurlTransport
        do throws(UploadError) {
            transport = try CurlTransport()
        } catch {
            return .failed(
                FailureDetail(.failed(error.text), nowUnixMs: nowUnixMs), delayMs: nil)
        }
        return look(transport, known: known, nowUnixMs: nowUnixMs, shouldStop: shouldStop)
    }

    /// Throws if libcurl is missing. Any thread.
    package static func load() throws(UploadError) { try CurlTransport.load() }

    /// The delay before the next look. It is short after a failure and grows with further failures.
    /// A server that answers is asked at its interval, a little early so that many clients spread
    /// out.
    /// - Parameters:
    ///   - failures: consecutive failures, including this one.
    ///   - random: all 64 bits are used.
    package func delayMs(after answer: PolicyAnswer, failures: UInt32, random: UInt64) -> UInt64 {
        let interval = UInt64(intervalSeconds) * 1_000
        guard answer.isFailure else {
            let early = random.multipliedFullWidth(by: interval / 10 + 1).high
            return interval - early
        }
        var wished: UInt64?
        if case .failed(_, let delayMs) = answer { wished = delayMs }
        let own = min(Backoff.delayMs(attempts: failures, random: random), max(interval, 1_000))
        return max(own, wished ?? 0)
    }
}
