// One request from the viewpoint of libcurl's callbacks: hands out the body, takes header lines and
// the answer, decides whether to continue. Lives on the stack of CurlTransport.performOnce; libcurl
// calls only on that thread and never after it.
// SAFETY: libcurl's buffers hold during its callback, with the count it gives.

import CCurl
import CordwoodCore

@safe final class CurlExchange {
    private let request: TransferRequest
    private let easy: UnsafeMutableRawPointer?
    private let tick: () -> TransferTick
    private var offset: UInt64 = 0
    private var bytesSent: UInt64 = 0
    private var isUnlimited = false
    private var body: [UInt8] = []
    private var isBodyCut = false
    private var headers: [(name: String, value: String)] = []
    private var isHeadWhole = false

    private static let readAbort = 0x1000_0000  // CURL_READFUNC_ABORT

    init(
        _ request: TransferRequest, easy: UnsafeMutableRawPointer?,
        tick: @escaping () -> TransferTick
    ) {
        self.request = request
        unsafe self.easy = easy
        self.tick = tick
    }

    /// SAFETY: the pointer is the one performOnce made of an object that it keeps alive.
    static func from(_ user: UnsafeMutableRawPointer?) -> CurlExchange {
        unsafe Unmanaged<CurlExchange>.fromOpaque(user!).takeUnretainedValue()
    }

    func goOn() -> Bool {
        switch tick() {
        case .go: return true
        case .stop: return false
        case .goUnlimited:
            if !isUnlimited && request.bytesPerSecond > 0, let easy = unsafe easy {
                unsafe cwi_curl_set_offset(easy, CURLOPT_MAX_SEND_SPEED_LARGE, 0)
            }
            isUnlimited = true
            return true
        }
    }

    func read(into buffer: UnsafeMutablePointer<CChar>?, count: Int) -> Int {
        guard let source = request.body else { return 0 }
        let wanted = min(UInt64(max(count, 0)), source.count - min(offset, source.count))
        guard wanted > 0, let buffer = unsafe buffer else { return 0 }
        let got = unsafe source.read(
            into: UnsafeMutableRawBufferPointer(start: buffer, count: Int(wanted)), at: offset)
        // A body shorter than announced cannot be sent whole.
        guard got > 0 else { return CurlExchange.readAbort }
        offset += UInt64(got)
        bytesSent += UInt64(got)
        return got
    }

    /// SEEK_SET.
    private static let fromStart: Int32 = 0

    func seek(to target: Int64, origin: Int32) -> Int32 {
        guard origin == CurlExchange.fromStart, target >= 0 else { return CURL_SEEKFUNC_CANTSEEK }
        offset = UInt64(target)
        return CURL_SEEKFUNC_OK
    }

    func receive(_ bytes: UnsafeMutablePointer<CChar>?, count: Int) -> Int {
        guard let bytes = unsafe bytes, count > 0 else { return 0 }
        let room = TransferOutcome.bodyBytesMax - body.count
        unsafe body.append(
            contentsOf: UnsafeRawBufferPointer(start: bytes, count: min(count, room)))
        if count > room {
            isBodyCut = true
            return 0
        }
        return count
    }

    func header(_ bytes: UnsafeMutablePointer<CChar>?, count: Int) -> Int {
        guard let bytes = unsafe bytes, count > 0 else { return 0 }
        guard count <= TransferOutcome.headerBytesMax else { return count }
        let line = unsafe String(
            decoding: UnsafeRawBufferPointer(start: bytes, count: count), as: UTF8.self)
        if line.hasPrefix("HTTP/") {
            // The final answer follows an interim one.
            headers = []
            isHeadWhole = false
        } else if line.first?.isNewline ?? true {
            isHeadWhole = true
        } else if let colon = line.firstIndex(of: ":"), headers.count < TransferOutcome.headersMax {
            let value = String(
                line[line.index(after: colon)...].drop(while: { $0 == " " || $0 == "\t" })
                    .prefix(while: { !$0.isNewline }))
            headers.append((line[..<colon].lowercased(), value))
        }
        return count
    }

    func outcome(_ facts: CurlFacts) -> TransferOutcome {
        // For a refusal, status and headers are enough; for a 2xx, success includes the end of the
        // body.
        let isRefused = facts.status >= 300 && facts.code != CURLE_ABORTED_BY_CALLBACK
        let isWhole = facts.code == CURLE_OK || (facts.code == CURLE_WRITE_ERROR && isBodyCut)
        let fault = isWhole ? headFault : nil
        let isAnswered = isRefused || (isWhole && fault == nil)
        var outcome: TransferOutcome
        if isAnswered && facts.status == HTTPStatus.proxyAuthentication {
            // The server did not say this: no archive is to blame.
            outcome = .failed("the proxy refuses proxy_auth (407)", isUnreachable: true)
        } else if isAnswered {
            let kind = TransferOutcome.kind(httpStatus: facts.status)
            let source = mayBeProxys(facts) ? " of the server, or of the proxy for proxy_auth" : ""
            outcome = TransferOutcome(
                kind: kind, httpStatus: facts.status, cause: "HTTP \(facts.status)" + source)
            outcome.isBodyCut = isBodyCut || facts.code != CURLE_OK
        } else {
            outcome = .failed(fault ?? CurlExchange.cause(facts), isUnreachable: !facts.isBegun)
            outcome.isStopped = facts.code == CURLE_ABORTED_BY_CALLBACK
            outcome.isReset = facts.code == CURLE_HTTP2 || facts.code == CURLE_HTTP2_STREAM
        }
        outcome.headers = headers
        outcome.body = body
        outcome.bytesSent = bytesSent
        return outcome
    }

    /// What libcurl takes for an answer although the server or a proxy broke off or contradicts
    /// itself (RFC 9112, 6.3 and 8); nil: nothing.
    private var headFault: String? {
        if !isHeadWhole { return "the head of the answer is cut off" }
        let lengths = Set(headers.lazy.filter { $0.name == "content-length" }.map(\.value))
        return lengths.count > 1 ? "the answer has more than one Content-Length" : nil
    }

    /// Some proxies answer 401 instead of 407. Without a tunnel it looks like the server's answer.
    private func mayBeProxys(_ facts: CurlFacts) -> Bool {
        facts.status == HTTPStatus.unauthorized && request.settings.proxyUser != nil
            && !request.url.lowercased().hasPrefix("https:")
    }

    /// libcurl's texts name hosts and files, never paths of URLs, headers or passwords. The
    /// exception is a proxy of the environment that it cannot parse, which they quote with its
    /// password.
    private static func cause(_ facts: CurlFacts) -> String {
        let general = unsafe String(cString: cwi_curl_error_text(facts.code))
        let isSecret = facts.detail.hasPrefix("Unsupported proxy") || facts.detail.contains("@")
        let text = facts.detail.isEmpty || isSecret ? general : facts.detail
        switch facts.code {
        case CURLE_SSL_CERTPROBLEM:
            return "client_certificate_file, client_key_file or client_key_password: \(text)"
        case CURLE_SSL_CACERT_BADFILE: return "ca_file: \(text)"
        case CURLE_COULDNT_RESOLVE_PROXY, CURLE_PROXY: return "proxy: \(text)"
        case CURLE_ABORTED_BY_CALLBACK: return "broken off"
        default: break
        }
        guard !facts.isBegun, facts.connectStatus / 100 != 2, facts.connectStatus > 0 else {
            return text
        }
        // Some proxies answer 401 instead of 407.
        let isRefused =
            facts.connectStatus == HTTPStatus.proxyAuthentication
            || facts.connectStatus == HTTPStatus.unauthorized
        return "the proxy answered \(facts.connectStatus)" + (isRefused ? ": proxy_auth" : "")
    }
}

enum HTTPStatus {
    static let unauthorized: Int32 = 401
    static let forbidden: Int32 = 403
    static let proxyAuthentication: Int32 = 407
}
