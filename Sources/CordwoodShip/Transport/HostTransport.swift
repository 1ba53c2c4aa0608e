// Sends through the host's own transport (UploadTransport). Whatever it does, throws or returns
// becomes an outcome. An invalid status counts as no answer, so the archive is retried and not
// given up. Headers and body are cut to the same limits as libcurl's. One thread at a time.

import CordwoodStore

final class HostTransport: Transport {
    private let host: any UploadTransport
    private let mark: UploadMark?
    private static let causeBytesMax = 256

    /// - Parameter mark: tells captures that a request is an upload.
    init(_ host: any UploadTransport, mark: UploadMark? = nil) {
        self.host = host
        self.mark = mark
        mark?.accept()
    }

    func performOnce(
        _ request: TransferRequest, tick: () -> TransferTick
    ) -> TransferOutcome {
        withoutActuallyEscaping(tick) { tick in
            let timeout = UInt64(clamping: CurlTransport.timeoutMs(request))
            let exchange = UploadRequest(request, mark: mark, timeoutMs: timeout, tick: tick)
            // INVARIANT: `tick` is released before it ceases to exist.
            defer { exchange.end() }
            if exchange.isStopped { return HostTransport.stopped() }
            do {
                let response = try host.send(exchange)
                var outcome = HostTransport.outcome(response)
                outcome.bytesSent = request.body?.count ?? 0
                return outcome
            } catch let error as UploadTransportError {
                if exchange.isStopped { return HostTransport.stopped() }
                let text = SentSecrets(request).cleaned(error.text)
                return .failed(HostTransport.shown(text), isUnreachable: error.isUnreachable)
            } catch {
                if exchange.isStopped { return HostTransport.stopped() }
                return .failed("the host's transport threw \(type(of: error))")
            }
        }
    }

    static func outcome(_ response: UploadResponse) -> TransferOutcome {
        guard (200...599).contains(response.status) else {
            // B-NET-1: unknown, with its cause; it is retried.
            return TransferOutcome(
                kind: .unknown,
                cause: "the host's transport answered \(response.status), which is no HTTP status")
        }
        let status = Int32(response.status)
        guard status != HTTPStatus.proxyAuthentication else {
            return .failed("the proxy refuses our credentials (407)", isUnreachable: true)
        }
        var outcome = TransferOutcome(
            kind: TransferOutcome.kind(httpStatus: status), httpStatus: status,
            cause: "HTTP \(status)")
        for (name, value) in response.headers.prefix(TransferOutcome.headersMax)
        where name.utf8.count + value.utf8.count <= TransferOutcome.headerBytesMax {
            outcome.headers.append((name.lowercased(), line(value)))
        }
        outcome.isBodyCut = response.body.count > TransferOutcome.bodyBytesMax
        outcome.body =
            outcome.isBodyCut
            ? Array(response.body.prefix(TransferOutcome.bodyBytesMax)) : response.body
        return outcome
    }

    /// A value is one line without surrounding spaces, as libcurl's are.
    private static func line(_ value: String) -> String {
        let text = value.prefix { !$0.isNewline }
        var bytes = text.utf8[...]
        while let first = bytes.first, first == 0x20 || first == 0x09 { bytes.removeFirst() }
        while let last = bytes.last, last == 0x20 || last == 0x09 { bytes.removeLast() }
        return String(bytes) ?? String(text)
    }

    private static func stopped() -> TransferOutcome {
        var outcome = TransferOutcome.failed("broken off")
        outcome.isStopped = true
        return outcome
    }

    /// A host's text, fit for the logs.
    static func shown(_ text: String) -> String {
        let bytes = text.utf8.prefix(causeBytesMax).map { $0 < 0x20 || $0 == 0x7F ? 0x20 : $0 }
        return bytes.isEmpty ? "no cause given" : String(decoding: bytes, as: UTF8.self)
    }
}
