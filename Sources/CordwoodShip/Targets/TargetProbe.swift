// `cordwood target test`: one harmless request to a target, and the meaning of its answer. Stores
// nothing on the server and registers nothing here. Each dialect defines its own request.

import CordwoodFormats
import CordwoodStore

/// The request that a kind sends, and how it reads the answer.
struct Probe {
    enum Finding: Equatable {
        case fine(String)
        case wrong(String)
        /// No server of this kind answers like that.
        case foreign
    }

    var method: String
    var url: String
    /// The part of the URL that may be shown: the host's own path may hold secrets.
    var shownPath: String
    /// Sent with a POST.
    var content: [UInt8] = []
    var read: (TransferOutcome) -> Finding
    /// The properties that an answer cannot confirm.
    var notLookedAt: String

    /// For kinds without a harmless request of their own: tests whether a server answers.
    static func head(_ url: String) -> Probe {
        Probe(
            method: "HEAD", url: url, shownPath: "",
            read: {
                switch $0.httpStatus {
                case 300...399: .wrong("it points to another address")
                case 500...: .wrong("it has an error of its own")
                default: .fine("a server answers there (HTTP \($0.httpStatus))")
                }
            },
            notLookedAt: "whether it takes logs under this address, and the credentials: its kind"
                + " has no request that would tell and store nothing")
    }
}

extension Probe {
    /// What tells this server from others that may answer in its place, such as a portal: a header
    /// of its own. The answer to HEAD has no body and may have another status than that to an
    /// upload.
    static func expectation(_ outcome: TransferOutcome) -> String {
        let own = outcome.headers.map(\.name).first { name in
            name.hasPrefix("x-") && !plainHeaders.contains { name.hasPrefix($0) }
                && name.utf8.allSatisfy(isNameByte)
        }
        return own.map { "header:\($0)" } ?? ""
    }

    /// Beginnings of the names that proxies, frameworks and portals give to any answer, or that
    /// come and go with it.
    private static let plainHeaders = [
        "x-accel", "x-akamai", "x-amz", "x-aspnet", "x-azure", "x-b3", "x-backend", "x-cache",
        "x-cdn", "x-cloud-trace", "x-content-type-options", "x-correlation", "x-dns-prefetch",
        "x-download-options", "x-drupal", "x-envoy", "x-forwarded", "x-frame-options",
        "x-generator", "x-kong", "x-ms-", "x-permitted-cross-domain-policies", "x-powered-by",
        "x-proxy", "x-rate-limit", "x-ratelimit", "x-real-ip", "x-redirect", "x-request",
        "x-response-time", "x-robots-tag", "x-runtime", "x-served-by", "x-server", "x-timer",
        "x-trace", "x-ua-compatible", "x-varnish", "x-via", "x-xss-protection",
    ]

    private static func isNameByte(_ byte: UInt8) -> Bool {
        ASCII.isWordByte(byte) || byte == UInt8(ascii: "-")
    }
}

public struct ProbeReport: Sendable {
    /// `GET https://host:port/healthz`; never shows the host's own path.
    public var request: String
    /// 0: no HTTP answer.
    public var httpStatus: Int32
    public var isFine: Bool
    /// The meaning of the answer, in words.
    public var text: String
    public var notLookedAt: String
    /// For kinds that take any 2xx: an `expect` that this server's answers meet; empty: none.
    public var expect: String
}

extension Target {
    /// Blocks until the server has answered or time is up. Any thread.
    package func probe(nowUnixMs: UInt64) throws(UploadError) -> ProbeReport {
        try requireTransport()
        let transport = try makeTransport(for: nil)
        let probe = dialect.probe
        let delivery = Delivery(
            id: "cordwood-target-test", archiveID: "00000000-0000-0000-0000-000000000000",
            range: nil, fileName: "cordwood-target-test", encoding: .none,
            credentials: keeper.current, nowUnixMs: nowUnixMs)
        var request = self.request(delivery, bytesPerSecond: 0)
        request.method = probe.method
        request.url = probe.url
        if probe.method != "POST" {
            request.headers.removeAll { $0.lowercasedName == "content-type" }
        }
        let body = try MemoryBody(probe.content)
        if !probe.content.isEmpty { request.body = body.whole }
        var outcome = try dialect.sendProbe(request, delivery) {
            transport.perform($0, tick: { .go })
        }
        let finding = outcome.httpStatus == 0 ? .foreign : probe.read(outcome)
        SentSecrets(request, also: delivery.credentials.secrets).clean(&outcome)
        let words = AnswerText.words(outcome.body)
        if outcome.httpStatus >= 400, !words.isEmpty { outcome.cause += ": \(words)" }
        let isAnswered = outcome.httpStatus > 0 && ![401, 403].contains(outcome.httpStatus)
        let isFine = if case .fine = finding { isAnswered } else { false }
        let text =
            switch (finding, outcome.httpStatus) {
            case (_, 0): "no answer: \(outcome.cause)"
            case (_, HTTPStatus.unauthorized), (_, HTTPStatus.forbidden):
                "it refuses the credentials: \(outcome.cause)"
            case (.fine(let text), _): text
            case (.wrong(let text), _): "\(text): \(outcome.cause)"
            case (.foreign, _):
                "no server of kind \(kind.rawValue) answers like that: \(outcome.cause)"
            }
        return ProbeReport(
            request: "\(probe.method) \(origin)\(probe.shownPath)",
            httpStatus: outcome.httpStatus, isFine: isFine, text: text,
            notLookedAt: probe.notLookedAt,
            expect: isFine && kind.takesExpectation ? Probe.expectation(outcome) : "")
    }
}
