// One request as libcurl's callbacks see it: hands out the body, takes in header lines and the
// answer, says whether to go on. Lives on the stack of CurlTransport.performOnce; libcurl calls on
// that thread only and never after it.
// SAFETY: libcurl's buffers hold during its callback, with the count it gives.

import CCurl
import Glibc

@safe final class CurlExchange {
    private let request: TransferRequest
    private let easy: UnsafeMutableRawPointer?
    private let tick: () -> TransferTick
    private var offset: UInt64 = 0
    private var bytesSent: UInt64 = 0
    private var isUnlimited = false
    private var body: [UInt8] = []
    private var isBodyCut = false
    private var retryAfter: String?
    private var location: String?

    private static let headerBytesMax = 8192
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
        let wanted = min(UInt64(max(count, 0)), request.bytes - min(offset, request.bytes))
        guard wanted > 0, let buffer = unsafe buffer else { return 0 }
        while true {
            let got = unsafe pread(request.descriptor, buffer, Int(wanted), off_t(offset))
            if got < 0 && errno == EINTR { continue }
            // A body that is shorter than announced cannot be sent whole.
            guard got > 0 else { return CurlExchange.readAbort }
            offset += UInt64(got)
            bytesSent += UInt64(got)
            return got
        }
    }

    func seek(to target: Int64, origin: Int32) -> Int32 {
        guard origin == SEEK_SET, target >= 0 else { return CURL_SEEKFUNC_CANTSEEK }
        offset = UInt64(target)
        return CURL_SEEKFUNC_OK
    }

    func receive(_ bytes: UnsafeMutablePointer<CChar>?, count: Int) -> Int {
        guard let bytes = unsafe bytes, count > 0 else { return 0 }
        let room = CurlTransport.responseBytesMax - body.count
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
        guard count <= CurlExchange.headerBytesMax else { return count }
        let line = unsafe String(
            decoding: UnsafeRawBufferPointer(start: bytes, count: count), as: UTF8.self)
        if line.hasPrefix("HTTP/") {
            // The final answer follows an interim one.
            retryAfter = nil
            location = nil
        } else if let colon = line.firstIndex(of: ":") {
            let value = String(
                line[line.index(after: colon)...].drop(while: { $0 == " " || $0 == "\t" })
                    .prefix(while: { !$0.isNewline }))
            switch line[..<colon].lowercased() {
            case "retry-after": retryAfter = value
            case "location": location = value
            default: break
            }
        }
        return count
    }

    func outcome(_ code: CURLcode, status: Int32, detail: String) -> TransferOutcome {
        let isAnswered = code == CURLE_OK || (code == CURLE_WRITE_ERROR && isBodyCut)
        var outcome: TransferOutcome
        if isAnswered {
            let kind = TransferOutcome.kind(httpStatus: status)
            outcome = TransferOutcome(kind: kind, httpStatus: status, cause: "HTTP \(status)")
        } else {
            let general = unsafe String(cString: cwi_curl_error_text(code))
            let cause = detail.isEmpty ? general : detail
            outcome = .failed(cause, isUnreachable: CurlExchange.isUnreachable(code))
            outcome.isStopped = code == CURLE_ABORTED_BY_CALLBACK
        }
        outcome.retryAfter = retryAfter
        outcome.location = location
        outcome.body = body
        outcome.bytesSent = bytesSent
        return outcome
    }

    private static func isUnreachable(_ code: CURLcode) -> Bool {
        switch code {
        case CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY,
            CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION:
            return true
        default: return false
        }
    }
}
