// One transfer of a host's libcurl. Turns the reports of its debug callback into begin, bodies,
// answer and end of an exchange for each hop. libcurl does not announce the hops that it continues
// with by itself: a new request's head, or one text, ends the previous hop. The host's header
// (curl.h) asks libcurl and passes the answers as facts; nothing here calls libcurl.
// cw_curl_transfer_begin makes a transfer, its host owns it; one thread at a time.
// SAFETY: the memory is malloc's, freed by `end`, which is called only once. Facts and pieces are
// the host's and hold during the call. An engine's block is never unmapped.

import CCordwood
import CShims
import CordwoodCore
import CordwoodFormats

@safe package struct CurlTransfer: ~Copyable {
    package typealias Handle = UnsafeMutableRawPointer

    private let engine: EngineBlock
    private var exchange: HTTPCapture.Handle?
    /// Heads as they passed, and the incomplete line of the answer's head.
    private var request = MessageHead()
    private var answer = MessageHead()
    private var line = MessageHead()
    /// The last four bytes of the request's head: an empty line ends it.
    private var tail: UInt32 = 0

    private var isSending = false
    /// A proxy's CONNECT is not an exchange.
    private var isConnect = false
    /// The engine knows about it, whether it is captured or not.
    private var isBegun = false
    /// The head of the exchange's answer is complete; its body follows.
    private var hasAnswer = false
    /// The body is chunked if its headers say so: false for HTTP/2 and 3.
    private var isFramed = false
    /// The body is in a content coding, which libcurl may fail to undo.
    private var isPacked = false
    /// libcurl reported that a callback refused to write.
    private var isRefused = false
    /// Bodies without a complete head are not shown: they could be packed or chunked.
    private var hidesRequest = false
    private var hidesAnswer = false
    /// The status in the head being received; 0: none.
    private var status: Int32 = 0

    /// The attempt number of the next request; 0: not a repetition.
    private var attempt: UInt32 = 0
    /// The id of the exchange whose answer led here, with a NUL; empty: none.
    private var previous = GrowingBytes()
    /// The clocks at the end of the previous hop.
    private var before = Clocks()

    /// The times of libcurl's first and last report, UTC; 0: none yet.
    private var begunNs: UInt64 = 0
    private var lastNs: UInt64 = 0
    /// When the present hop began, when its head and its last byte went out, and when its answer's
    /// first byte came.
    private var hopNs: UInt64 = 0
    private var headNs: UInt64 = 0
    private var sentNs: UInt64 = 0
    private var firstNs: UInt64 = 0

    private init(_ engine: EngineBlock) { unsafe self.engine = engine }

    // MARK: Calls

    /// For `CurlTransfer.begin`, which first gives the engine rules. nil: no memory.
    package static func make(_ engine: EngineBlock) -> Handle? {
        guard let memory = unsafe Memory.allocate(MemoryLayout<CurlTransfer>.size) else {
            return nil
        }
        unsafe memory.assumingMemoryBound(to: CurlTransfer.self).initialize(
            to: CurlTransfer(engine))
        return unsafe memory
    }

    package static func tell(
        _ handle: Handle, _ kind: UInt32, _ bytes: UnsafeRawPointer?, _ count: Int,
        _ facts: cw_curl_facts
    ) {
        let piece = unsafe ByteText(bytes?.assumingMemoryBound(to: UInt8.self), count)
        unsafe handle.assumingMemoryBound(to: CurlTransfer.self).pointee.take(kind, piece, facts)
    }

    /// Frees the transfer; the handle is no longer valid.
    /// - Parameter id: nil, or CW_CURL_ID_BYTES.
    package static func end(
        _ handle: Handle, _ facts: cw_curl_facts, id: UnsafeMutablePointer<CChar>?
    ) {
        let transfer = unsafe handle.assumingMemoryBound(to: CurlTransfer.self)
        unsafe transfer.pointee.finish(facts, id: id)
        unsafe transfer.deinitialize(count: 1)
        unsafe Memory.free(handle)
    }

    // MARK: Reports of libcurl

    private mutating func take(_ kind: UInt32, _ piece: ByteText, _ facts: cw_curl_facts) {
        lastNs = unsafe facts.now_ns != 0 ? facts.now_ns : cw_realtime_ns()
        if hopNs == 0 { (begunNs, hopNs) = (lastNs, lastNs) }
        guard piece.count > 0 else { return }
        switch kind {
        case UInt32(CW_CURL_TEXT): unsafe takeText(piece, facts)
        case UInt32(CW_CURL_HEADER_IN): unsafe takeAnswer(piece, facts)
        case UInt32(CW_CURL_HEADER_OUT): unsafe takeRequest(piece, facts)
        case UInt32(CW_CURL_DATA_IN):
            unsafe endLine(facts)
            guard let exchange = unsafe exchange, hasAnswer else { return }
            unsafe HTTPCapture.responseBody(exchange, hidesAnswer ? nil : piece.start, piece.count)
        case UInt32(CW_CURL_DATA_OUT):
            sentNs = lastNs
            guard let exchange = unsafe exchange else { return }
            unsafe HTTPCapture.requestBody(exchange, hidesRequest ? nil : piece.start, piece.count)
        default: break
        }
    }

    /// In libcurl 7.61 to 8: a hop ends here (or with the next head); a callback refused to write.
    private mutating func takeText(_ text: ByteText, _ facts: cw_curl_facts) {
        if text.hasExactly("Issue another request", at: 0) { unsafe turn(facts) }
        let isRefusal =
            text.hasExactly("Failed writing", at: 0) || text.hasExactly("Failure writing", at: 0)
            || text.hasExactly("client returned", at: 0)
        if isRefusal { isRefused = true }
    }

    /// The request's head, in one piece or several.
    private mutating func takeRequest(_ piece: ByteText, _ facts: cw_curl_facts) {
        if !isSending {
            unsafe turn(facts)
            isSending = true
            headNs = lastNs
            tail = 0
            unsafe dateBegin(facts)
        }
        request.add(piece)
        sentNs = lastNs
        for index in max(0, piece.count &- 4)..<piece.count {
            tail = tail << 8 | UInt32(piece[index])
        }
        guard tail == 0x0D0A_0D0A else { return }
        isSending = false
        isConnect = request.text.hasExactly("CONNECT ", at: 0)
        if !isConnect { unsafe begin(facts) }
    }

    /// The first hop began before libcurl's first report: names were looked up.
    private mutating func dateBegin(_ facts: cw_curl_facts) {
        guard hopNs == begunNs else { return }
        let now = unsafe Clocks(facts)
        let begun = CurlTransfer.between(
            CurlTransfer.ns(0, max(now.dns, now.connect, now.tls)), headNs)
        if begun > 0, begun < begunNs { (begunNs, hopNs) = (begun, begun) }
    }

    /// The answer's head, line by line.
    private mutating func takeAnswer(_ piece: ByteText, _ facts: cw_curl_facts) {
        guard !isConnect else { return }
        if firstNs == 0 { firstNs = lastNs }
        var at = 0
        while at < piece.count {
            let end = piece.next(ASCII.lineFeed, from: at)
            let part = piece.slice(at, end &+ 1)
            if end < piece.count, line.isEmpty {
                unsafe takeLine(part, isCut: false, facts)
            } else {
                line.add(part)
                if end < piece.count { unsafe endLine(facts) }
            }
            at = end &+ 1
        }
    }

    private mutating func endLine(_ facts: cw_curl_facts) {
        guard !line.isEmpty else { return }
        unsafe takeLine(line.text, isCut: line.isCut, facts)
        line.clear()
    }

    /// Lines of 1xx and trailers do not belong to the answer's head.
    private mutating func takeLine(_ line: ByteText, isCut: Bool, _ facts: cw_curl_facts) {
        if line.count > 5, line.hasExactly("HTTP/", at: 0) {
            if isInterim { firstNs = lastNs }
            answer.clear()
            hasAnswer = false
            status = 0
        } else if hasAnswer {
            return
        }
        if answer.isEmpty { status = unsafe CurlTransfer.status(line, facts) }
        answer.add(line)
        if isCut { answer.markCut() }
        let isEnd = line.hasExactly("\r\n", at: 0) || line.hasExactly("\n", at: 0)
        guard isEnd, unsafe exchange != nil else { return }
        if status >= 200 || status == 101 { giveAnswer() }
    }

    private var isInterim: Bool { status >= 100 && status <= 199 && status != 101 }

    /// 200 of `HTTP/1.1 200 OK`; libcurl's own status for other lines that it takes for a status
    /// line.
    private static func status(_ line: ByteText, _ facts: cw_curl_facts) -> Int32 {
        var at = line.next(0x20, from: 0)
        while at < line.count, line[at] == 0x20 { at &+= 1 }
        var status: Int32 = 0
        for index in at..<at &+ 3 {
            guard ASCII.isDigit(line[index]) else { break }
            status = status &* 10 &+ Int32(line[index] &- 0x30)
        }
        if status >= 100 { return status }
        let said = unsafe facts.status
        return said >= 100 && said <= 999 ? said : 0
    }

    // MARK: Hops

    /// Ends the previous hop if libcurl continues by itself, and resets the state for a new one.
    private mutating func turn(_ facts: cw_curl_facts) {
        unsafe endLine(facts)
        if isBegun {
            let redirects = status >= 300 && status <= 399 && status != 304
            if let exchange = unsafe exchange, redirects {
                previous.removeAll()
                unsafe previous.append(ByteText(HTTPCapture.id(exchange)))
                previous.append(0)
            }
            attempt = redirects ? 0 : attempt != 0 ? attempt &+ 1 : 2
            unsafe end(facts, code: 0, isLast: false, at: lastNs)
            hopNs = lastNs
            before = unsafe Clocks(facts)
        }
        request.clear()
        answer.clear()
        (hidesRequest, hidesAnswer) = (false, false)
        (isSending, isConnect, isBegun) = (false, false, false)
        (hasAnswer, isFramed, isPacked, isRefused) = (false, false, false, false)
        (headNs, sentNs, firstNs) = (0, 0, 0)
        status = 0
    }

    /// Begins an exchange of the request in `request`, or of one that libcurl never sent.
    private mutating func begin(_ facts: cw_curl_facts) {
        var given = unsafe cw_http_request()
        unsafe given.url = unsafe cw_str(ByteText(facts.url))
        let startLine = request.startLine
        let headers = request.headers()
        if startLine.count > 0 {
            let method = startLine.slice(0, startLine.next(0x20, from: 0))
            unsafe given.method = cw_str(method)
            let name = CurlTransfer.protocolName(startLine, isAnswer: false)
            unsafe given.protocol = name.map { unsafe CurlTransfer.pointer($0) }
            unsafe given.headers = headers.pointer
            unsafe given.header_count = headers.count
        } else {
            let said = unsafe ByteText(facts.method)
            unsafe given.method = cw_str(said.count > 0 ? said : CurlTransfer.text("GET"))
        }
        hidesRequest = request.isCut
        unsafe given.start_ns = hopNs
        unsafe given.attempt = attempt
        let from = previous.text
        if from.count > 0 { unsafe given.redirected_from = CurlTransfer.pointer(from) }
        isBegun = true
        if unsafe given.method.length > 0, unsafe given.url.length > 0 {
            // The engine has rules: making the transfer ensured that.
            _ = unsafe HTTPCapture.begin(engine, given, &exchange) { _ in }
        }
        previous.removeAll()
    }

    /// Reports the part of the answer that came in.
    private mutating func giveAnswer() {
        var given = unsafe cw_http_response()
        unsafe given.status = status
        let name = CurlTransfer.protocolName(answer.startLine, isAnswer: true)
        unsafe given.protocol = name.map { unsafe CurlTransfer.pointer($0) }
        isFramed = name.map { CurlTransfer.text($0).hasExactly("http/1", at: 0) } ?? true
        let headers = answer.headers()
        unsafe given.headers = headers.pointer
        unsafe given.header_count = headers.count
        if headers.has("content-encoding") { isPacked = true }
        hasAnswer = true
        hidesAnswer = answer.isCut
        // A number that is not a status is not reported.
        guard let exchange = unsafe exchange, status >= 100, status <= 599 else {
            hidesAnswer = true
            return
        }
        unsafe HTTPCapture.response(exchange, given)
    }

    private mutating func finish(_ facts: cw_curl_facts, id: UnsafeMutablePointer<CChar>?) {
        unsafe endLine(facts)
        let end = unsafe endTime(facts)
        // A request that failed before libcurl sent it is an exchange, too.
        let isHTTP = unsafe ByteText(facts.url).hasExactly("http", at: 0)
        if unsafe !isBegun && facts.code != 0 && isHTTP {
            request.clear()
            unsafe begin(facts)
        }
        if let id = unsafe id, let exchange = unsafe exchange {
            unsafe strncpy(id, HTTPCapture.id(exchange), Int(CW_CURL_ID_BYTES))
        }
        unsafe self.end(facts, code: facts.code, isLast: true, at: end)
    }

    /// The end of the transfer, which may be long ago: by libcurl's clocks, or by its last report.
    /// If nothing was sent, the beginning is derived from it.
    private mutating func endTime(_ facts: cw_curl_facts) -> UInt64 {
        let now = unsafe facts.now_ns != 0 ? facts.now_ns : cw_realtime_ns()
        let total = unsafe CurlTransfer.ns(0, facts.total_us)
        guard begunNs != 0 else {
            // It never ran: libcurl's facts belong to the handle's previous transfer.
            before = unsafe Clocks(facts)
            hopNs = now
            return now
        }
        var end = max(begunNs &+ total, lastNs)
        if !isBegun, hopNs == begunNs {
            end = lastNs
            begunNs = max(1, CurlTransfer.between(total, end))
            hopNs = begunNs
        }
        return min(end, now)
    }

    /// Ends the exchange under way, the transfer's last one or one before another hop.
    private mutating func end(_ facts: cw_curl_facts, code: Int32, isLast: Bool, at end: UInt64) {
        guard let exchange = unsafe exchange else { return }
        if !hasAnswer, status != 0 { giveAnswer() }
        var outcome = unsafe cw_http_outcome()
        unsafe putPhases(facts, until: end, &outcome)
        let address = unsafe CurlTransfer.address(facts)
        if begunNs != 0, address.text.count > 0 {
            unsafe outcome.remote_address = CurlTransfer.pointer(address.text)
        }
        var flags = isFramed ? CW_HTTP_RESPONSE_CHUNKS : CW_HTTP_RESPONSE_BARE
        if CurlCode.isCancelled(code, isPacked: isPacked && !isRefused) {
            flags |= CW_HTTP_CANCELLED
        }
        unsafe outcome.flags = UInt32(flags)
        if code != 0 {
            unsafe outcome.error = cw_str(ByteText(facts.error))
            let type = CurlCode.errorType(code, isPacked: isPacked && !isRefused)
            unsafe outcome.error_type = cw_str(CurlTransfer.text(type))
        } else if !hasAnswer, !isLast {  // HTTP/0.9 has none, and is one
            unsafe outcome.error = cw_str(
                CurlTransfer.text("the connection was closed before an answer"))
            unsafe outcome.error_type = cw_str(CurlTransfer.text("closed"))
        }
        unsafe self.exchange = nil
        _ = unsafe HTTPCapture.end(exchange, outcome)
    }

    /// The phases of the ending hop: the progress of its clocks since the last one's answer.
    private func putPhases(
        _ facts: cw_curl_facts, until end: UInt64, _ outcome: inout cw_http_outcome
    ) {
        let now = unsafe Clocks(facts)
        let (dns, connect) = (now.dns &- before.dns, now.connect &- before.connect)
        let tls = now.tls &- before.tls
        if unsafe facts.connects > 0, connect > 0 {
            unsafe outcome.dns_ns = CurlTransfer.ns(0, dns)
            unsafe outcome.connect_ns = CurlTransfer.ns(dns, connect)
            if tls > 0 { unsafe outcome.tls_ns = CurlTransfer.ns(connect, tls) }
        }
        // 0 would mean: since begin.
        unsafe outcome.duration_ns = max(1, CurlTransfer.between(hopNs, end))
        if headNs != 0 { unsafe outcome.send_ns = CurlTransfer.between(headNs, sentNs) }
        if firstNs != 0 {
            if sentNs != 0 { unsafe outcome.wait_ns = CurlTransfer.between(sentNs, firstNs) }
            unsafe outcome.receive_ns = CurlTransfer.between(firstNs, end)
        }
    }

    // MARK: Values

    /// In µs since the transfer began; they accumulate over redirections.
    private struct Clocks {
        var dns: Int64 = 0
        var connect: Int64 = 0
        var tls: Int64 = 0

        init() {}

        init(_ facts: cw_curl_facts) {
            dns = unsafe max(0, facts.dns_us)
            connect = unsafe max(0, facts.connect_us)
            tls = unsafe max(0, facts.tls_us)
        }
    }

    /// 0 if a clock was set back.
    private static func between(_ from: UInt64, _ to: UInt64) -> UInt64 {
        to > from ? to &- from : 0
    }

    private static func ns(_ fromUs: Int64, _ toUs: Int64) -> UInt64 {
        toUs > fromUs ? UInt64(bitPattern: toUs &- fromUs) &* 1000 : 0
    }

    private static func text(_ word: StaticString) -> ByteText {
        unsafe ByteText(word.utf8Start, word.utf8CodeUnitCount)
    }

    private static func pointer(_ word: StaticString) -> UnsafePointer<CChar> {
        unsafe UnsafeRawPointer(word.utf8Start).assumingMemoryBound(to: CChar.self)
    }

    private static func pointer(_ text: ByteText) -> UnsafePointer<CChar>? {
        unsafe UnsafeRawPointer(text.start)?.assumingMemoryBound(to: CChar.self)
    }

    /// The version in `HTTP/1.1 200 OK`, or at the end of `GET / HTTP/1.1`; nil: not HTTP.
    private static func protocolName(_ line: ByteText, isAnswer: Bool) -> StaticString? {
        var at = 0
        for index in 0..<line.count where !isAnswer && line[index] == 0x20 { at = index &+ 1 }
        if line.hasExactly("HTTP/1.1", at: at) { return "http/1.1" }
        if line.hasExactly("HTTP/2", at: at) { return "h2" }
        if line.hasExactly("HTTP/3", at: at) { return "h3" }
        return line.hasExactly("HTTP/1.0", at: at) ? "http/1.0" : nil
    }

    private static let addressBytesMax = 60

    /// `192.0.2.1:443`, `[::1]:443`, with a NUL; empty: not known.
    private static func address(_ facts: cw_curl_facts) -> GrowingBytes {
        var out = GrowingBytes()
        let address = unsafe ByteText(facts.address)
        guard address.count > 0 else { return out }
        let isSix = address.next(UInt8(ascii: ":"), from: 0) < address.count
        if isSix { out.append(UInt8(ascii: "[")) }
        out.append(address.slice(0, addressBytesMax))
        if isSix { out.append(UInt8(ascii: "]")) }
        out.append(UInt8(ascii: ":"))
        out.putDecimal(UInt64(max(0, unsafe facts.port)))
        out.append(0)
        return out
    }
}

/// libcurl's codes, whose numbers never change.
package enum CurlCode {
    /// A host's callback refused to write, to continue or to send. libcurl uses the code for a
    /// failed write also for packed bodies that it cannot unpack.
    static func isCancelled(_ code: Int32, isPacked: Bool) -> Bool {
        code == 42 || code == 23 && !isPacked
    }

    package static func errorType(_ code: Int32, isPacked: Bool) -> StaticString {
        if isCancelled(code, isPacked: isPacked) { return "cancelled" }
        switch code {
        case 5, 6: return "dns"  // COULDNT_RESOLVE_PROXY, COULDNT_RESOLVE_HOST
        case 7: return "connect"  // COULDNT_CONNECT
        case 28: return "timeout"  // OPERATION_TIMEDOUT
        // SSL_CONNECT_ERROR, PEER_FAILED_VERIFICATION (before 7.62 and since), SSL_CERTPROBLEM,
        // SSL_CIPHER, SSL_CACERT_BADFILE, SSL_ISSUER_ERROR
        case 35, 51, 60, 58, 59, 77, 83: return "tls"
        default: return "curl"
        }
    }
}
