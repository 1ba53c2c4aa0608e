// Sends one request at a time through libcurl. Made for one pass and one thread, so that nothing
// of it crosses a fork; connections are kept for the length of the pass. TLS is verified;
// redirects are followed only by 307 and 308 to the same origin, for a body and a token must not
// go elsewhere.

import CCurl
import Glibc

struct TransferRequest {
    var url: String
    var method: String
    var headers: [RequestHeader]
    /// Where to read the body; offsets count from 0, the descriptor's own position is not used.
    var descriptor: Int32
    var bytes: UInt64
    var connectTimeoutMs: UInt32
    /// Raised by the size of the body.
    var requestTimeoutMs: UInt32
    /// 0: unlimited.
    var bytesPerSecond: UInt64
}

/// What a running transfer is told when it asks.
enum TransferTick {
    case go
    /// Go on without a byte rate: somebody waits for it.
    case goUnlimited
    case stop
}

struct CurlTransport: ~Copyable {
    static let responseBytesMax = 4 << 20
    static let redirectsMax = 5
    /// The slowest line that is worth waiting for.
    static let bytesPerSecondAssumed: UInt64 = 100_000
    static let stallSeconds = 60

    private var session: cwi_curl_session

    init() throws(UploadError) {
        try CurlTransport.load()
        var opened = cwi_curl_session()
        guard cwi_curl_session_open(&opened) == 0 else {
            throw UploadError.system(call: "curl_easy_init", path: "libcurl", errno: ENOMEM)
        }
        session = opened
    }

    /// Any thread; costs time the first time only.
    static func load() throws(UploadError) {
        guard cwi_curl_load() == 0 else {
            throw UploadError.unsupported(String(cString: cwi_curl_load_error()))
        }
    }

    deinit {
        var ending = session
        cwi_curl_session_close(&ending)
    }

    mutating func perform(
        _ request: TransferRequest, tick: () -> TransferTick
    ) -> TransferOutcome {
        var current = request
        for _ in 0...CurlTransport.redirectsMax {
            let (outcome, next) = performOnce(current, tick: tick)
            guard outcome.httpStatus == 307 || outcome.httpStatus == 308, let next,
                let from = try? WebAddress(current.url), let to = try? WebAddress(next),
                from.isSameOrigin(to)
            else { return outcome }
            current.url = next
        }
        return TransferOutcome(
            kind: .redirection, httpStatus: 308, cause: "more than 5 redirections")
    }

    private mutating func performOnce(
        _ request: TransferRequest, tick: () -> TransferTick
    ) -> (TransferOutcome, redirect: String?) {
        withoutActuallyEscaping(tick) { tick in
            let exchange = CurlExchange(request, easy: session.easy, tick: tick)
            let user = Unmanaged.passUnretained(exchange).toOpaque()
            var list: UnsafeMutablePointer<curl_slist>?
            defer { cwi_curl_list_free(list) }
            cwi_curl_session_reset(&session)
            guard let easy = session.easy,
                CurlTransport.fillList(&list, request.headers),
                CurlTransport.configure(easy, request, list, user) == CURLE_OK
            else { return (.failed("libcurl refused the request"), nil) }

            var code = CURLE_OK
            var text = [CChar](repeating: 0, count: Int(CWI_CURL_ERROR_BYTES))
            text.withUnsafeMutableBufferPointer { buffer in
                cwi_curl_set_errors(easy, buffer.baseAddress)
                code = cwi_curl_run(&session, { CurlExchange.from($0).goOn() }, user)
                cwi_curl_set_errors(easy, nil)
            }
            let detail = text.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
            let redirect = cwi_curl_redirect_url(easy).map { String(cString: $0) }
            let status = Int32(clamping: cwi_curl_response_code(easy))
            withExtendedLifetime(exchange) {}
            return (exchange.outcome(code, status: status, detail: detail), redirect)
        }
    }

    private static func fillList(
        _ list: inout UnsafeMutablePointer<curl_slist>?, _ headers: [RequestHeader]
    ) -> Bool {
        // An empty Expect keeps libcurl from waiting a second for servers that ignore it.
        for line in headers.map({ $0.line }) + ["Expect:", "Accept:"] {
            guard let longer = cwi_curl_list_append(list, line) else { return false }
            list = longer
        }
        return true
    }

    private static func configure(
        _ easy: UnsafeMutableRawPointer, _ request: TransferRequest,
        _ list: UnsafeMutablePointer<curl_slist>?, _ user: UnsafeMutableRawPointer
    ) -> CURLcode {
        let bytes = Int64(clamping: request.bytes)
        let isPut = request.method == "PUT"
        let numbers: [(CURLoption, Int)] = [
            (CURLOPT_NOSIGNAL, 1),
            (isPut ? CURLOPT_UPLOAD : CURLOPT_POST, 1),
            (CURLOPT_FOLLOWLOCATION, 0),
            (CURLOPT_PROTOCOLS, cwi_curl_http_protocols()),
            (CURLOPT_SSL_VERIFYPEER, 1),
            (CURLOPT_SSL_VERIFYHOST, 2),
            (CURLOPT_CONNECTTIMEOUT_MS, Int(request.connectTimeoutMs)),
            (CURLOPT_TIMEOUT_MS, timeoutMs(request)),
            (CURLOPT_LOW_SPEED_LIMIT, 1),
            (CURLOPT_LOW_SPEED_TIME, stallSeconds),
        ]
        for (option, value) in numbers {
            let code = cwi_curl_set_long(easy, option, value)
            guard code == CURLE_OK else { return code }
        }
        let offsets: [(CURLoption, Int64)] = [
            (isPut ? CURLOPT_INFILESIZE_LARGE : CURLOPT_POSTFIELDSIZE_LARGE, bytes),
            (CURLOPT_MAX_SEND_SPEED_LARGE, Int64(clamping: request.bytesPerSecond)),
        ]
        for (option, value) in offsets {
            let code = cwi_curl_set_offset(easy, option, value)
            guard code == CURLE_OK else { return code }
        }
        let code = cwi_curl_set_text(easy, CURLOPT_URL, request.url)
        guard code == CURLE_OK else { return code }
        let listCode = cwi_curl_set_list(easy, CURLOPT_HTTPHEADER, list)
        guard listCode == CURLE_OK else { return listCode }
        return cwi_curl_set_callbacks(
            easy, { CurlExchange.from($3!).read(into: $0, count: $1 &* $2) },
            { CurlExchange.from($0!).seek(to: Int64($1), origin: $2) },
            { CurlExchange.from($3!).receive($0, count: $1 &* $2) },
            { CurlExchange.from($3!).header($0, count: $1 &* $2) }, user)
    }

    static func timeoutMs(_ request: TransferRequest) -> Int {
        let rate =
            request.bytesPerSecond == 0
            ? bytesPerSecondAssumed : min(request.bytesPerSecond, bytesPerSecondAssumed)
        let extraSeconds = min(request.bytes / rate, 7 * 86_400)
        return Int(request.requestTimeoutMs) + Int(extraSeconds) * 1_000
    }
}
