// Carries a target's requests to its server: selects the transport, and renews credentials that the
// server refuses. One transport per thread, made where it is used.

import CordwoodCore
import CordwoodStore

extension Target {
    /// Called when a target is added. Throws what is missing if requests cannot be sent at all.
    func requireTransport() throws(UploadError) {
        guard host == nil else { return }
        try CurlTransport.check(settings, isTLS: origin.hasPrefix("https:"))
    }

    /// For one thread of one process: a forked child makes its own.
    /// - Parameter store: whose archives it sends; nil: none.
    func makeTransport(for store: FilePath?) throws(UploadError) -> any Transport {
        if let host {
            return HostTransport(host, mark: store.flatMap { UploadMark(storeDirectory: $0) })
        }
        return try CurlTransport()
    }

    /// Sends a body with the present credentials. If the server answers 401 or 403, the host is
    /// asked for others, once, and the same request is sent again at once, with the same id.
    /// Afterwards `delivery.credentials` are the ones last sent.
    func send(
        _ delivery: inout Delivery, _ body: borrowing Body, bytesPerSecond: UInt64,
        isStopped: () -> Bool, _ perform: (TransferRequest) -> TransferOutcome
    ) throws(UploadError) -> TransferOutcome {
        delivery.credentials = keeper.current
        var isAsked = false
        while true {
            var outcome = try sendOnce(delivery, body, bytesPerSecond, perform)
            let isRefused =
                outcome.httpStatus == HTTPStatus.unauthorized
                || outcome.httpStatus == HTTPStatus.forbidden
            guard isRefused && !isAsked else { return outcome }
            let renewal = keeper.renew(
                delivery.credentials, challenge: outcome.header("www-authenticate"),
                isStopped: isStopped)
            switch renewal {
            case .renewed(let credentials, isAsked: let asked):
                delivery.credentials = credentials
                isAsked = asked
            case .none(let cause):
                if let cause { outcome.cause += "; \(cause)" }
                return outcome
            }
        }
    }

    /// Whether a 2xx means that the server has the body: by what the host expects of the body,
    /// otherwise by the kind's protocol and by what the host expects of the status and headers,
    /// which a page of the same server has, too.
    func isReceipt(_ outcome: TransferOutcome, _ delivery: Delivery) -> Bool {
        if let expectation {
            guard expectation.isMet(by: outcome) else { return false }
            if expectation.readsBody { return true }
        }
        // RFC 9110, 9.3.4: a PUT answered with 201 is stored; mod_dav says so in HTML.
        let isCreated = dialect.method == "PUT" && outcome.httpStatus == 201
        return (isCreated || !AnswerContent.isPage(outcome))
            && dialect.isReceipt(outcome, delivery)
    }

    private func sendOnce(
        _ delivery: Delivery, _ body: borrowing Body, _ bytesPerSecond: UInt64,
        _ perform: (TransferRequest) -> TransferOutcome
    ) throws(UploadError) -> TransferOutcome {
        var complete = request(delivery, bytesPerSecond: bytesPerSecond)
        complete.body = body.request()
        var outcome = try dialect.send(complete, delivery, body, perform)
        // Failures that the dialect has not put into words.
        if outcome.httpStatus >= 400, outcome.cause == "HTTP \(outcome.httpStatus)" {
            let secrets = SentSecrets(complete, also: delivery.credentials.secrets)
            let words = AnswerText.words(secrets.cleaned(outcome.body))
            if !words.isEmpty { outcome.cause += ": \(words)" }
        }
        return outcome
    }
}

extension Body {
    /// All of it, or a part.
    func request(offset: UInt64 = 0, count: UInt64? = nil) -> RequestBody {
        guard let stream else {
            return RequestBody(descriptor: descriptor, offset: offset, count: count ?? bytes)
        }
        return unsafe RequestBody(offset: offset, count: count ?? bytes) {
            unsafe stream.read(into: $0, at: $1)
        }
    }
}
