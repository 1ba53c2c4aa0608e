// Puts a request and its target's settings onto libcurl's handle. TLS is always verified. A feature
// missing in an older or reduced libcurl is an error that names the option, unless we can do
// without it. SAFETY: the handle is the caller's and outlives the value; libcurl
// copies texts and keeps the address of the list, which outlives the transfer.

import CCurl
import CordwoodCore

@safe struct CurlOptions {
    private let easy: UnsafeMutableRawPointer
    /// The first option that was refused.
    private(set) var refusal: (option: String, code: CURLcode)?

    private static let basic = 1  // CURLAUTH_BASIC
    private static let pacedBufferBytes = 64 << 10
    // CURLOPT_QUICK_EXIT, by number: it came with 7.87, and older headers lack it.
    private static var quickExit: CURLoption { CURLoption(rawValue: 322) }

    init(_ easy: UnsafeMutableRawPointer) {
        unsafe self.easy = easy
    }

    var text: String {
        guard let refusal else { return "" }
        return unsafe "libcurl here refuses \(refusal.option): "
            + String(cString: cwi_curl_error_text(refusal.code))
    }

    /// libcurl lacks the option, whatever the value.
    var isMissing: Bool {
        switch refusal?.code {
        case CURLE_UNKNOWN_OPTION, CURLE_NOT_BUILT_IN, CURLE_UNSUPPORTED_PROTOCOL: return true
        default: return false
        }
    }

    // ── Settings of a target ──

    mutating func set(_ settings: TransportSettings, isTLS: Bool) {
        number(CURLOPT_NOSIGNAL, 1, "no signals")
        number(CURLOPT_FOLLOWLOCATION, 0, "no redirections")
        note(unsafe cwi_curl_only_http(easy), "only http and https")
        number(CURLOPT_CONNECTTIMEOUT_MS, Int(settings.connectTimeoutMs), "connect_timeout_ms")
        number(CURLOPT_LOW_SPEED_LIMIT, Int(settings.stallBytesPerSecond), "a low-speed limit")
        number(CURLOPT_LOW_SPEED_TIME, Int(settings.stallSeconds), "a low-speed limit")
        setTLS(settings)
        setProxy(settings)
        switch settings.httpVersion {
        case .http1: number(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1), "http_version")
        case .http2 where !isTLS:
            number(
                CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE), "http_version 2")
        case .http2: number(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS), "http_version 2")
        case .automatic:
            // Without HTTP/2 support it speaks 1.1.
            attempt(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
        }
        attempt(CURLOPT_UPLOAD_BUFFERSIZE, settings.uploadBufferBytes)
        // Abandons a hanging resolver; otherwise the end of a transfer waits for its thread.
        attempt(CurlOptions.quickExit, 1)
    }

    private mutating func setTLS(_ settings: TransportSettings) {
        number(CURLOPT_SSL_VERIFYPEER, 1, "TLS verification")
        number(CURLOPT_SSL_VERIFYHOST, 2, "TLS verification")
        number(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2), "TLS 1.2")
        if let file = settings.caFile {
            string(CURLOPT_CAINFO, file, "ca_file")
            // Otherwise libcurl would also trust the system's directory.
            clear(CURLOPT_CAPATH)
            attempt(CURLOPT_PROXY_CAINFO, file)
            clear(CURLOPT_PROXY_CAPATH)
        }
        if let file = settings.clientCertificateFile {
            string(CURLOPT_SSLCERT, file, "client_certificate_file")
            string(CURLOPT_SSLKEY, settings.clientKeyFile ?? file, "client_key_file")
            if let password = settings.clientKeyPassword {
                string(CURLOPT_KEYPASSWD, password, "client_key_password")
            }
        }
    }

    private mutating func setProxy(_ settings: TransportSettings) {
        // Without the option, libcurl reads the environment itself.
        if let proxy = settings.proxy ?? (Machine.isPrivileged ? "" : nil) {
            string(CURLOPT_PROXY, proxy, "proxy")
            // An explicit proxy always applies: the environment's no_proxy concerns only the
            // environment's proxies.
            string(CURLOPT_NOPROXY, "", "proxy")
        }
        if let (name, password) = settings.proxyUser {
            number(CURLOPT_PROXYAUTH, CurlOptions.basic, "proxy_auth")
            string(CURLOPT_PROXYUSERNAME, name, "proxy_auth")
            string(CURLOPT_PROXYPASSWORD, password, "proxy_auth")
        }
        // The target's token must not reach the proxy of a tunnel.
        number(CURLOPT_HEADEROPT, Int(CURLHEADER_SEPARATE), "headers for the server alone")
    }

    // ── Settings of a request ──

    mutating func set(
        _ request: TransferRequest, headers: UnsafeMutablePointer<curl_slist>?, timeoutMs: Int
    ) {
        set(request.settings, isTLS: request.url.lowercased().hasPrefix("https:"))
        // Bursts of half a MiB would defeat a low byte rate.
        if request.bytesPerSecond > 0 {
            attempt(CURLOPT_UPLOAD_BUFFERSIZE, CurlOptions.pacedBufferBytes)
        }
        number(CURLOPT_TIMEOUT_MS, timeoutMs, "request_timeout_ms")
        string(CURLOPT_URL, request.url, "url")
        note(unsafe cwi_curl_set_list(easy, CURLOPT_HTTPHEADER, headers), "headers")
        let bytes = Int64(clamping: request.body?.count ?? 0)
        // A PUT without a body, a GET and a DELETE use their own names.
        switch (request.method, request.body != nil) {
        case ("POST", _):
            number(CURLOPT_POST, 1, "POST")
            offset(CURLOPT_POSTFIELDSIZE_LARGE, bytes, "Content-Length")
        case ("PUT", true):
            number(CURLOPT_UPLOAD, 1, "PUT")
            offset(CURLOPT_INFILESIZE_LARGE, bytes, "Content-Length")
        case ("HEAD", _): number(CURLOPT_NOBODY, 1, "HEAD")
        case (let method, _): string(CURLOPT_CUSTOMREQUEST, method, "method")
        }
        offset(
            CURLOPT_MAX_SEND_SPEED_LARGE, Int64(clamping: request.bytesPerSecond), "bytes_per_s")
    }

    mutating func setCallbacks(_ exchange: UnsafeMutableRawPointer) {
        let code = unsafe cwi_curl_set_callbacks(
            easy, { unsafe CurlExchange.from($3!).read(into: $0, count: $1 &* $2) },
            { unsafe CurlExchange.from($0!).seek(to: Int64($1), origin: $2) },
            { unsafe CurlExchange.from($3!).receive($0, count: $1 &* $2) },
            { unsafe CurlExchange.from($3!).header($0, count: $1 &* $2) }, exchange)
        note(code, "callbacks")
    }

    // ── One option ──

    private mutating func note(_ code: CURLcode, _ option: String) {
        if code != CURLE_OK && refusal == nil { refusal = (option, code) }
    }

    private mutating func number(_ option: CURLoption, _ value: Int, _ name: String) {
        note(unsafe cwi_curl_set_long(easy, option, value), name)
    }

    private mutating func offset(_ option: CURLoption, _ value: Int64, _ name: String) {
        note(unsafe cwi_curl_set_offset(easy, option, value), name)
    }

    private mutating func string(_ option: CURLoption, _ value: String, _ name: String) {
        note(unsafe cwi_curl_set_text(easy, option, value), name)
    }

    /// Sets an option that is not essential.
    private func attempt(_ option: CURLoption, _ value: Int) {
        unsafe cwi_curl_set_long(easy, option, value)
    }

    private func attempt(_ option: CURLoption, _ value: String) {
        unsafe cwi_curl_set_text(easy, option, value)
    }

    private func clear(_ option: CURLoption) {
        unsafe cwi_curl_set_text(easy, option, nil)
    }
}
