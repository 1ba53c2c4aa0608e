// Sends one request at a time through libcurl. Made for one pass and one thread, so that nothing
// of it crosses a fork; connections are kept for the length of the pass. TLS is verified;
// redirects are followed only by 307 and 308 to the same origin, for a body and a token must not
// go elsewhere.
// SAFETY: the session is this struct's and is closed once, in deinit; list, error text and exchange
// outlive `cwi_curl_run`, after which libcurl is told to forget the text.

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

@safe struct CurlTransport: ~Copyable {
    static let responseBytesMax = 4 << 20
    static let redirectsMax = 5
    /// The slowest line that is worth waiting for.
    static let bytesPerSecondAssumed: UInt64 = 100_000
    static let stallSeconds = 60

    private var session: cwi_curl_session

    init() throws(UploadError) {
        try CurlTransport.load()
        var opened = unsafe cwi_curl_session()
        guard unsafe cwi_curl_session_open(&opened) == 0 else {
            throw UploadError.system(call: "curl_easy_init", path: "libcurl", errno: ENOMEM)
        }
        unsafe session = opened
    }

    /// Any thread; costs time the first time only.
    static func load() throws(UploadError) {
        guard cwi_curl_load() == 0 else {
            throw unsafe UploadError.unsupported(String(cString: cwi_curl_load_error()))
        }
    }

    deinit {
        var ending = unsafe session
        unsafe cwi_curl_session_close(&ending)
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
            let exchange = unsafe CurlExchange(request, easy: session.easy, tick: tick)
            let user = unsafe Unmanaged.passUnretained(exchange).toOpaque()
            var list: UnsafeMutablePointer<curl_slist>?
            defer { unsafe cwi_curl_list_free(list) }
            unsafe cwi_curl_session_reset(&session)
            guard let easy = unsafe session.easy,
                unsafe CurlTransport.fillList(&list, request.headers),
                unsafe CurlTransport.configure(easy, request, list, user) == CURLE_OK
            else { return (.failed("libcurl refused the request"), nil) }

            var code = CURLE_OK
            var text = [CChar](repeating: 0, count: Int(CWI_CURL_ERROR_BYTES))
            unsafe text.withUnsafeMutableBufferPointer { buffer in
                unsafe cwi_curl_set_errors(easy, buffer.baseAddress)
                code = unsafe cwi_curl_run(&session, { unsafe CurlExchange.from($0).goOn() }, user)
                unsafe cwi_curl_set_errors(easy, nil)
            }
            let detail = unsafe text.withUnsafeBufferPointer {
                unsafe String(cString: $0.baseAddress!)
            }
            let redirect = unsafe cwi_curl_redirect_url(easy).map { unsafe String(cString: $0) }
            let status = unsafe Int32(clamping: cwi_curl_response_code(easy))
            withExtendedLifetime(exchange) {}
            return (exchange.outcome(code, status: status, detail: detail), redirect)
        }
    }

    private static func fillList(
        _ list: inout UnsafeMutablePointer<curl_slist>?, _ headers: [RequestHeader]
    ) -> Bool {
        // An empty Expect keeps libcurl from waiting a second for servers that ignore it.
        for line in headers.map({ $0.line }) + ["Expect:", "Accept:"] {
            guard let longer = unsafe cwi_curl_list_append(list, line) else { return false }
            unsafe list = longer
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
            let code = unsafe cwi_curl_set_long(easy, option, value)
            guard code == CURLE_OK else { return code }
        }
        let offsets: [(CURLoption, Int64)] = [
            (isPut ? CURLOPT_INFILESIZE_LARGE : CURLOPT_POSTFIELDSIZE_LARGE, bytes),
            (CURLOPT_MAX_SEND_SPEED_LARGE, Int64(clamping: request.bytesPerSecond)),
        ]
        for (option, value) in offsets {
            let code = unsafe cwi_curl_set_offset(easy, option, value)
            guard code == CURLE_OK else { return code }
        }
        let code = unsafe cwi_curl_set_text(easy, CURLOPT_URL, request.url)
        guard code == CURLE_OK else { return code }
        let listCode = unsafe cwi_curl_set_list(easy, CURLOPT_HTTPHEADER, list)
        guard listCode == CURLE_OK else { return listCode }
        return unsafe cwi_curl_set_callbacks(
            easy, { unsafe CurlExchange.from($3!).read(into: $0, count: $1 &* $2) },
            { unsafe CurlExchange.from($0!).seek(to: Int64($1), origin: $2) },
            { unsafe CurlExchange.from($3!).receive($0, count: $1 &* $2) },
            { unsafe CurlExchange.from($3!).header($0, count: $1 &* $2) }, user)
    }

    static func timeoutMs(_ request: TransferRequest) -> Int {
        let rate =
            request.bytesPerSecond == 0
            ? bytesPerSecondAssumed : min(request.bytesPerSecond, bytesPerSecondAssumed)
        let extraSeconds = min(request.bytes / rate, 7 * 86_400)
        return Int(request.requestTimeoutMs) + Int(extraSeconds) * 1_000
    }
}
