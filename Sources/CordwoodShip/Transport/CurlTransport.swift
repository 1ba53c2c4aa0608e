// Sends one request at a time through libcurl. Made for one run of a target on one thread, so that
// nothing of it crosses a fork; keeps connections for the length of the run. CurlOptions sets
// libcurl's options, CurlExchange has its callbacks.
// SAFETY: the session is this object's and is closed once, in deinit; list, error text and exchange
// outlive `cwi_curl_run`, after which libcurl is told to forget the text.

import CCurl
import CSodium
import CordwoodCore
import CordwoodStore

@safe final class CurlTransport: Transport {
    /// The slowest connection worth waiting for.
    static let bytesPerSecondAssumed: UInt64 = 100_000

    private var session: cwi_curl_session

    init() throws(UploadError) {
        try CurlTransport.load()
        var opened = unsafe cwi_curl_session()
        guard unsafe cwi_curl_session_open(&opened) == 0 else {
            throw UploadError.system(call: "curl_easy_init", path: "libcurl", errno: Errno.ENOMEM)
        }
        unsafe session = opened
    }

    /// Any thread; slow only the first time.
    static func load() throws(UploadError) {
        guard cwi_curl_load() == 0 else {
            throw unsafe UploadError.unsupported(String(cString: cwi_curl_load_error()))
        }
    }

    /// Throws if the present libcurl lacks a feature that these settings need.
    static func check(_ settings: TransportSettings, isTLS: Bool) throws(UploadError) {
        let transport = try CurlTransport()
        guard let easy = unsafe transport.session.easy else { return }
        var options = unsafe CurlOptions(easy)
        options.set(settings, isTLS: isTLS)
        withExtendedLifetime(transport) {}
        guard options.refusal != nil else { return }
        throw options.isMissing ? .unsupported(options.text) : .argument(options.text)
    }

    deinit { unsafe cwi_curl_session_close(&session) }

    func performOnce(
        _ request: TransferRequest, tick: () -> TransferTick
    ) -> TransferOutcome {
        withoutActuallyEscaping(tick) { tick in
            let exchange = unsafe CurlExchange(request, easy: session.easy, tick: tick)
            let user = unsafe Unmanaged.passUnretained(exchange).toOpaque()
            var list: UnsafeMutablePointer<curl_slist>?
            defer { unsafe cwi_curl_list_free(list) }
            unsafe cwi_curl_session_reset(&session)
            guard let easy = unsafe session.easy,
                unsafe CurlTransport.fillList(&list, request.headers)
            else { return .failed("libcurl has no memory") }
            var options = unsafe CurlOptions(easy)
            unsafe options.set(
                request, headers: list, timeoutMs: CurlTransport.timeoutMs(request))
            unsafe options.setCallbacks(user)
            guard options.refusal == nil else { return .failed(options.text) }

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
            let facts = unsafe CurlFacts(
                code: code, detail: detail, status: Int32(clamping: cwi_curl_response_code(easy)),
                connectStatus: Int32(clamping: cwi_curl_connect_code(easy)),
                isBegun: cwi_curl_pretransfer_us(easy) != 0)
            withExtendedLifetime(exchange) {}
            return exchange.outcome(facts)
        }
    }

    /// Lines hold secrets: our copy is wiped here, libcurl's by cwi_curl_list_free.
    private static func fillList(
        _ list: inout UnsafeMutablePointer<curl_slist>?, _ headers: [RequestHeader]
    ) -> Bool {
        for header in headers {
            var line = header.lineBytes
            defer { unsafe sodium_memzero(&line, line.count) }
            guard let longer = unsafe cwi_curl_list_append(list, &line) else { return false }
            unsafe list = longer
        }
        // An empty Expect keeps libcurl from waiting a second for servers that ignore it.
        for line in ["Expect:", "Accept:"] {
            guard let longer = unsafe cwi_curl_list_append(list, line) else { return false }
            unsafe list = longer
        }
        return true
    }

    static func timeoutMs(_ request: TransferRequest) -> Int {
        let rate =
            request.bytesPerSecond == 0
            ? bytesPerSecondAssumed : min(request.bytesPerSecond, bytesPerSecondAssumed)
        let extraSeconds = min((request.body?.count ?? 0) / rate, 7 * 86_400)
        return Int(request.settings.requestTimeoutMs) + Int(extraSeconds) * 1_000
    }
}

/// libcurl's facts about a finished transfer.
struct CurlFacts {
    var code: CURLcode
    /// May be empty.
    var detail: String
    /// The server's status; 0: none.
    var status: Int32
    /// The proxy's answer to CONNECT; 0: none.
    var connectStatus: Int32
    /// The connection was established, including TLS and tunnel.
    var isBegun: Bool
}
