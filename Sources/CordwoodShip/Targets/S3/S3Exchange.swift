// The signed requests to S3 for one body, one after the other. The template holds the host's
// additions to every request; each request gets a new signature, because signatures expire. Lives
// as long as an attempt, on its thread.

import CShims

struct S3Exchange {
    let place: S3Place
    /// nil: requests are unsigned.
    let signer: SigV4?
    let skew: ClockSkew
    let template: TransferRequest
    /// The secrets of the template and of the signer.
    let secrets: SentSecrets
    let startedUnixMs: UInt64
    let startedNs: UInt64

    /// Servers refuse requests signed a quarter of an hour off, or five minutes.
    private static let skewMsMax: Int64 = 290_000

    /// - Parameters:
    ///   - isPut: for the request with the body, or the one that begins it: the host's headers
    ///     about the object go with it.
    ///   - more: further headers.
    /// - Returns: the outcome; its cause holds the server's message.
    func perform(
        _ method: String, _ path: String, query: [(name: String, value: String)] = [],
        body: RequestBody? = nil, bodyHash: String = SigV4.emptyHash, isPut: Bool = true,
        more: [RequestHeader] = [], _ perform: (TransferRequest) -> TransferOutcome
    ) -> TransferOutcome {
        var request = template
        request.method = method
        request.url = place.url(path: path, query: query)
        request.body = body
        request.headers = template.headers.filter { isPut || !S3Exchange.isOfObject($0) } + more
        let plain = request.headers
        var learned: ClockSkew.Change?
        for isLast in [false, true] {
            if let signer {
                let host = plain.first { $0.lowercasedName == "host" }?.value ?? place.host
                let signed = SigV4.Request(
                    method: method, host: host, path: path, query: query,
                    headers: plain.filter(S3Exchange.isSigned), bodyHash: bodyHash)
                request.headers = plain + signer.headers(signed, unixSeconds: nowMs / 1_000)
            }
            var outcome = perform(request)
            let answer = S3Answer(
                outcome.kind == .success ? [] : secrets.cleaned(outcome.body))
            if !isLast, let change = timeLearned(outcome) {
                learned = change
                skew.make(change)
                continue
            }
            // The clock was not the cause, or not by that much.
            if let learned, S3Exchange.isRefusal(outcome) { skew.takeBack(learned) }
            if !answer.text.isEmpty { outcome.cause += ": \(answer.text)" }
            return outcome
        }
        return .failed("unreachable")
    }

    /// The server's clock, as far as known.
    private var nowMs: Int64 { ownMs &+ skew.current }

    private var ownMs: Int64 {
        let elapsed = (cw_monotonic_ns() &- startedNs) / 1_000_000
        return Int64(clamping: startedUnixMs &+ elapsed)
    }

    private static func isRefusal(_ outcome: TransferOutcome) -> Bool {
        outcome.httpStatus == 400 || outcome.httpStatus == 403
    }

    /// The new skew if the server refuses and its clock differs from the one we signed by, whatever
    /// code it gives: S3 says 403 RequestTimeTooSkewed, others 400 AccessDenied.
    private func timeLearned(_ outcome: TransferOutcome) -> ClockSkew.Change? {
        guard signer != nil, S3Exchange.isRefusal(outcome),
            let date = outcome.header("date").flatMap({ RetryAfter.dateSeconds($0) })
        else { return nil }
        let (server, overflow) = date.multipliedReportingOverflow(by: 1_000)
        let ahead = server.subtractingReportingOverflow(ownMs)
        let old = skew.current
        let more = ahead.partialValue.subtractingReportingOverflow(old)
        guard !overflow, !ahead.overflow, !more.overflow,
            more.partialValue.magnitude > S3Exchange.skewMsMax.magnitude
        else { return nil }
        return ClockSkew.Change(old: old, new: ahead.partialValue)
    }

    private static func isSigned(_ header: RequestHeader) -> Bool {
        let name = header.lowercasedName
        return name.hasPrefix("x-amz-") || name == "content-type" || name == "content-md5"
    }

    /// A header about the object or the way it is kept; parts and ends do not accept it.
    private static func isOfObject(_ header: RequestHeader) -> Bool {
        let name = header.lowercasedName
        if name == "content-type" { return true }
        guard name.hasPrefix("x-amz-") else { return false }
        return
            !(name.hasPrefix("x-amz-server-side-encryption-customer-")
            || name == "x-amz-request-payer" || name == "x-amz-expected-bucket-owner")
    }
}
