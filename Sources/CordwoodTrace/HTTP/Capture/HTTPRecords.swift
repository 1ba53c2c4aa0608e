// Writes the records of an exchange: a short one when it begins, the full one when it ends (FORMAT
// §8.9). All text of both passes the Redactor.
// SAFETY: the host's pointers hold during the call that hands them in; views of an exchange's own
// buffers are used before the buffer changes again.

import CCordwood
import CShims
import CordwoodCore
import CordwoodFormats

extension ExchangeState {
    // MARK: The request

    mutating func take(
        _ given: cw_http_request, url: ByteText, _ parts: URLParts, _ redactor: Redactor
    ) {
        isServer = unsafe given.side == UInt32(CW_HTTP_SERVER)
        unsafe takeTrace(given)
        common.begin(counted: false)
        common.put("http.id", idText)
        common.put("http.side", isServer ? "server" : "client")
        unsafe takeMethod(ByteText(given.method).slice(0, HTTPCapture.wordBytesMax))
        unsafe takeURL(url, isCut: url.count < given.url.length, parts, redactor)
        unsafe request.take(given.headers, given.header_count, redactor, &edits)
        requestBody.expectChunks(request.isChunked, bytesMax: bodyBytesMax)
        let conversation = request.conversationID
        if conversation.count > 0 {
            common.put("http.conversation", conversation.slice(0, HTTPCapture.textBytesMax))
            hasConversation = true
        }
        let from = unsafe ByteText(given.redirected_from).slice(0, HTTPCapture.wordBytesMax)
        if from.count > 0 { common.put("http.redirected_from", from) }
        if unsafe given.attempt != 0 { unsafe common.put("http.attempt", UInt64(given.attempt)) }
        common.put("http.start", startNs)
        unsafe takeOwn(given.fields, given.field_count)
        unsafe takeProtocol(given.protocol)
        unsafe addRequestBody(UnsafeRawPointer(given.body.data), given.body.length)
    }

    private mutating func takeTrace(_ given: cw_http_request) {
        let hasTask = takeTask()
        guard let traceID = unsafe given.trace_id else {
            hasTrace = unsafe hasTask || ThreadContext.copyTrace(to: trace)
            return
        }
        unsafe trace.initializeMemory(as: UInt8.self, repeating: 0, count: TraceLayout.bytes)
        unsafe trace.copyMemory(from: traceID, byteCount: 16)
        if let span = unsafe given.span_id {
            unsafe (trace + 16).copyMemory(from: span, byteCount: 8)
        }
        unsafe trace.storeBytes(
            of: UInt8(truncatingIfNeeded: given.trace_flags), toByteOffset: 24, as: UInt8.self)
        hasTrace = true
    }

    /// Takes the calling task's context, because the exchange may end elsewhere. False: no trace.
    private mutating func takeTask() -> Bool {
        var view = unsafe cwi_context_view()
        guard let take = unsafe cwi_context_taker(), let owner = unsafe take(&view) else {
            return false
        }
        defer { unsafe cwi_context_let_go(owner) }
        let count = unsafe Int(truncatingIfNeeded: view.field_bytes)
        if let fields = unsafe view.fields, count > 0, count <= HTTPCapture.ownBytesMax {
            unsafe own.append(
                encoded: ByteText(fields.assumingMemoryBound(to: UInt8.self), count),
                count: Int(view.field_count), without: FieldBuffer.reserved)
        }
        guard unsafe view.has_trace != 0, let found = unsafe view.trace else { return false }
        unsafe trace.copyMemory(from: found, byteCount: TraceLayout.bytes)
        return true
    }

    private mutating func takeMethod(_ method: ByteText) {
        title.append(method)
        title.blankControls(from: 0, keepsTabs: false)
        common.put("http.request.method", title.text)
        title.append(UInt8(ascii: " "))
    }

    private mutating func takeURL(
        _ url: ByteText, isCut: Bool, _ parts: URLParts, _ redactor: Redactor
    ) {
        let start = common.beginText("url.full")
        redactor.url(url, isCut: isCut, &edits, into: &common.bytes)
        common.bytes.blankControls(from: start, keepsTabs: false)
        common.endText(start)
        let shown = common.bytes.text(start, common.bytes.count)
        let query = shown.next(UInt8(ascii: "?"), from: 0)
        let end = min(query, shown.next(UInt8(ascii: "#"), from: 0), HTTPCapture.titleBytesMax)
        title.append(shown.slice(0, end))
        guard parts.host.count > 0 else { return }
        let address = common.beginText("server.address")
        let isPlain = redactor.line(
            parts.host.slice(0, 255), isCut: isCut || parts.host.count > 255, &edits,
            into: &common.bytes)
        if !isPlain { common.bytes.blankControls(from: address, keepsTabs: false) }
        common.endText(address)
        if parts.port != 0 { common.put("server.port", UInt64(parts.port)) }
    }

    private mutating func takeOwn(_ given: UnsafePointer<cw_field>?, _ count: Int) {
        guard let given = unsafe given else { return }
        for i in 0..<min(count, HTTPCapture.ownFieldsMax) {
            let field = unsafe given[i]
            // Set by a host that has a conversation in force but no header for it.
            let key = unsafe ByteText(field.key)
            if !hasConversation, unsafe field.type == UInt32(FieldType.string),
                key.equals("http.conversation")
            {
                let value = unsafe ByteText(field.value.s).slice(0, HTTPCapture.textBytesMax)
                common.put("http.conversation", value)
                hasConversation = true
            } else {
                unsafe own.put(field)
            }
        }
    }

    private mutating func takeProtocol(_ name: UnsafePointer<CChar>?) {
        let text = unsafe ByteText(name).slice(0, HTTPCapture.wordBytesMax)
        guard text.count > 0 else { return }
        protocolName.removeAll()
        protocolName.append(text)
        protocolName.blankControls(from: 0)
    }

    mutating func addRequestBody(_ bytes: UnsafeRawPointer?, _ count: Int) {
        guard count > 0 else { return }
        guard let bytes = unsafe bytes else { return requestBody.addHidden(count) }
        unsafe requestBody.add(
            ByteText(bytes.assumingMemoryBound(to: UInt8.self), count),
            bytesMax: bodyBytesMax)
    }

    mutating func addResponseBody(_ bytes: UnsafeRawPointer?, _ count: Int) {
        guard count > 0 else { return }
        guard let bytes = unsafe bytes else { return responseBody.addHidden(count) }
        unsafe responseBody.add(
            ByteText(bytes.assumingMemoryBound(to: UInt8.self), count),
            bytesMax: bodyBytesMax)
    }

    mutating func take(_ given: cw_http_response) {
        guard let redactor else { return }
        status = unsafe given.status
        response.clear(keeping: HTTPHeaders.bytesMax)
        unsafe response.take(given.headers, given.header_count, redactor, &edits)
        responseBody.expectChunks(response.isChunked, bytesMax: bodyBytesMax)
        unsafe takeProtocol(given.protocol)
        unsafe addResponseBody(UnsafeRawPointer(given.body.data), given.body.length)
    }

    // MARK: Records

    mutating func writeBegin(_ logger: LoggerBlock) -> Int32 {
        message.append(title.text)
        message.append(" …")
        fields.begin()
        fields.put("http.op", "begin")
        fields.append(common)
        if protocolName.count > 0 { fields.put("network.protocol", protocolName.text) }
        fields.append(own)
        fields.end()
        return unsafe write(logger, ExchangeState.debug)
    }

    private static let debug: UInt8 = 5
    private static let info: UInt8 = 9
    private static let warn: UInt8 = 13
    private static let error: UInt8 = 17

    /// Mutating, because a borrowed exchange would be copied.
    private mutating func write(_ logger: LoggerBlock, _ level: UInt8) -> Int32 {
        guard !fields.bytes.failed, !message.failed else { return Status.memory }
        var body = RichBody()
        unsafe body.message = message.text.raw
        unsafe body.encodedFields = fields.bytes.text.raw
        if hasTrace { unsafe body.trace = UnsafeRawPointer(trace) }
        body.timeNs = startNs
        body.kind = 4
        return unsafe AppendSlow.rich(logger, level, body)
    }

    mutating func writeEnd(_ outcome: cw_http_outcome) -> Int32 {
        guard let redactor else { return Status.closed }
        // An exchange that a fork copied ends in the process that began it.
        guard forks == cwi_fork_generation() else { return Status.disabled }
        let logger = unsafe redactor.rules.logger
        let bytesMax = unsafe redactor.rules.bodyBytesMax
        let sent = requestBody.plain(
            coding: request.coding,
            unsafe ExchangeState.handed(
                outcome.flags, CW_HTTP_REQUEST_CHUNKS, CW_HTTP_REQUEST_BARE),
            bytesMax: bytesMax, &requestRoom)
        let got = responseBody.plain(
            coding: response.coding,
            unsafe ExchangeState.handed(
                outcome.flags, CW_HTTP_RESPONSE_CHUNKS, CW_HTTP_RESPONSE_BARE),
            bytesMax: bytesMax, &responseRoom)
        // An archive's block holds 14 MiB of a record's fields.
        let both = sent.text.count &+ got.text.count
        var limit = both > ExchangeState.bodiesMax ? ExchangeState.bodiesMax / 2 : both
        limit = max(limit, HTTPHeaders.bytesMax)
        while true {
            let level = unsafe encode(outcome, sent, got, limit: limit, redactor)
            let status = unsafe write(logger, level)
            // A record must fit into a segment.
            guard status == Status.limit, limit > 64 else { return status }
            limit /= 2
        }
    }

    private static let bodiesMax = 12 << 20

    private static func handed(_ flags: UInt32, _ framed: Int, _ bare: Int) -> ChunkedBody.Handed {
        if flags & UInt32(framed) != 0 { return .framed }
        return flags & UInt32(bare) != 0 ? .bare : .unknown
    }

    /// Returns the record's level.
    private mutating func encode(
        _ outcome: cw_http_outcome, _ sent: HTTPBody.Plain, _ got: HTTPBody.Plain, limit: Int,
        _ redactor: Redactor
    ) -> UInt8 {
        fields.begin()
        fields.put("http.op", "end")
        fields.append(common)
        let conversation = response.conversationID
        if !hasConversation, conversation.count > 0 {
            fields.put("http.conversation", conversation.slice(0, HTTPCapture.textBytesMax))
        }
        if protocolName.count > 0 { fields.put("network.protocol", protocolName.text) }
        unsafe put("network.peer", ByteText(outcome.remote_address), redactor)
        if status != 0 { fields.put("http.response.status_code", UInt64(max(0, status))) }
        let given = unsafe outcome.duration_ns
        let duration = given != 0 ? given : cw_monotonic_ns() &- begunNs
        fields.put("http.duration", duration)
        unsafe putPhases(outcome)
        if request.text.count > 0 {
            fields.put("http.request.headers", request.text.slice(0, limit))
        }
        if request.isCut || request.text.count > limit {
            fields.put("http.request.headers.note", "cut")
        }
        if response.text.count > 0 {
            fields.put("http.response.headers", response.text.slice(0, limit))
        }
        if response.isCut || response.text.count > limit {
            fields.put("http.response.headers.note", "cut")
        }
        let error = unsafe putError(outcome, redactor)
        unsafe putBody(
            sent, requestBody.isThere,
            size: outcome.request_body_bytes != 0 ? outcome.request_body_bytes : sent.size,
            limit: limit, isRequest: true, redactor)
        let start = unsafe putBody(
            got, responseBody.isThere,
            size: outcome.response_body_bytes != 0 ? outcome.response_body_bytes : got.size,
            limit: limit, isRequest: false, redactor)
        if status >= 400, start.count > 0 {
            putOData(fields.bytes.text(start.lowerBound, start.upperBound).array)
        }
        fields.append(own)
        fields.end()
        return unsafe makeMessage(outcome, duration, error)
    }

    private mutating func put(_ name: StaticString, _ text: ByteText, _ redactor: Redactor) {
        guard text.count > 0 else { return }
        let start = fields.beginText(name)
        redactor.line(
            text.slice(0, HTTPCapture.textBytesMax),
            isCut: text.count > HTTPCapture.textBytesMax, &edits, into: &fields.bytes)
        fields.endText(start)
    }

    private mutating func putPhases(_ outcome: cw_http_outcome) {
        if unsafe outcome.dns_ns != 0 { unsafe fields.put("http.dns", outcome.dns_ns) }
        if unsafe outcome.connect_ns != 0 { unsafe fields.put("http.connect", outcome.connect_ns) }
        if unsafe outcome.tls_ns != 0 { unsafe fields.put("http.tls", outcome.tls_ns) }
        if unsafe outcome.send_ns != 0 { unsafe fields.put("http.send", outcome.send_ns) }
        if unsafe outcome.wait_ns != 0 { unsafe fields.put("http.wait", outcome.wait_ns) }
        if unsafe outcome.receive_ns != 0 { unsafe fields.put("http.receive", outcome.receive_ns) }
    }

    /// Adds the error's texts to `fields`; returns the place of its message.
    private mutating func putError(
        _ outcome: cw_http_outcome, _ redactor: Redactor
    ) -> Range<Int> {
        if unsafe outcome.flags & UInt32(CW_HTTP_CANCELLED) != 0 {
            fields.put("http.cancelled", flag: true)
        }
        let type = unsafe ByteText(outcome.error_type)
        put("error.type", type, redactor)
        errorType = type.count > 0 ? fields.lastTextStart..<fields.bytes.count : 0..<0
        let text = unsafe ByteText(outcome.error)
        guard text.count > 0 else { return 0..<0 }
        put("error.message", text, redactor)
        // Nothing has been written after the value yet.
        let count = fields.bytes.count
        let start = fields.lastTextStart
        return start..<count
    }

    /// Returns the place of the kept bytes in `fields`.
    @discardableResult
    private mutating func putBody(
        _ plain: HTTPBody.Plain, _ isThere: Bool, size: UInt64, limit: Int, isRequest: Bool,
        _ redactor: Redactor
    ) -> Range<Int> {
        guard isThere || size > 0 else { return 0..<0 }
        let text = plain.text.slice(0, limit)
        let isCut = plain.isCut || text.count < plain.text.count
        var range = 0..<0
        var kept = 0
        if text.count > 0 {
            let type = isRequest ? request.type : response.type
            let keepsText =
                unsafe keptTexts != 0
                && redactor.rules.keep.keepsText(
                    keptTexts, type, status: isRequest ? 0 : status)
            kept = redactor.body(
                text, contentType: type, isCut: isCut, keepsText: keepsText, &edits)
            if kept > 0 {
                let start = fields.beginText(
                    isRequest ? "http.request.body" : "http.response.body")
                edits.finish(text.slice(0, kept), into: &fields.bytes)
                fields.endText(start)
                range = start..<fields.bytes.count
            }
        }
        fields.put(isRequest ? "http.request.body.size" : "http.response.body.size", size)
        putNote(plain, text, isCut: isCut && text.count > 0, kept: kept, isRequest: isRequest)
        return range
    }

    private mutating func putNote(
        _ plain: HTTPBody.Plain, _ text: ByteText, isCut: Bool, kept: Int, isRequest: Bool
    ) {
        guard plain.note != .none || isCut || plain.isHidden || kept < text.count else { return }
        let start = fields.beginText(
            isRequest ? "http.request.body.note" : "http.response.body.note")
        func separate(_ bytes: inout GrowingBytes) { if bytes.count > start { bytes.append(", ") } }
        if isCut { fields.bytes.append("cut") }
        if kept == 0, text.count > 0 {
            separate(&fields.bytes)
            fields.bytes.append("not parsed: ")
            UnparsedBody.describe(text, into: &fields.bytes)
        } else if kept < text.count, !isCut {
            separate(&fields.bytes)
            fields.bytes.append("parsed to ")
            fields.bytes.putDecimal(UInt64(kept))
        }
        switch plain.note {
        case .none: break
        case .unpacked:
            separate(&fields.bytes)
            fields.bytes.append("unpacked")
        case .notKept(let what):
            separate(&fields.bytes)
            fields.bytes.append("coding ")
            unsafe what.withUnsafeBufferPointer {
                unsafe fields.bytes.append(ByteText($0.baseAddress, $0.count))
            }
            fields.bytes.append(" not kept")
        }
        if plain.isHidden {
            separate(&fields.bytes)
            fields.bytes.append("not shown")
        }
        fields.endText(start)
    }

    /// Uses the redacted body: nothing else of it is kept.
    private mutating func putOData(_ body: [UInt8]) {
        let language = String(decoding: response.language.array.prefix(64), as: UTF8.self)
        guard let error = ODataError(body: body, contentLanguage: language) else { return }
        if !error.code.isEmpty { fields.put("odata.code", string: error.code) }
        if !error.message.isEmpty { fields.put("odata.message", string: error.message) }
        if !error.transactionID.isEmpty {
            fields.put("odata.transaction_id", string: error.transactionID)
        }
    }

    private mutating func makeMessage(
        _ outcome: cw_http_outcome, _ duration: UInt64, _ error: Range<Int>
    ) -> UInt8 {
        message.removeAll()
        message.append(title.text)
        message.append(UInt8(ascii: " "))
        // As redaction left it.
        let type = fields.bytes.text(errorType.lowerBound, errorType.upperBound)
            .slice(0, HTTPCapture.wordBytesMax)
        if status != 0 {
            message.putDecimal(UInt64(max(0, status)))
        } else if type.count > 0 {
            message.append(type)
        } else if unsafe outcome.flags & UInt32(CW_HTTP_CANCELLED) != 0 {
            message.append("cancelled")
        } else {
            message.append("no answer")
        }
        message.append(UInt8(ascii: " "))
        let tenths = duration / 100_000 &+ (duration % 100_000 >= 50_000 ? 1 : 0)
        message.putDecimal(tenths / 10)
        message.append(UInt8(ascii: "."))
        message.append(UInt8(truncatingIfNeeded: 48 &+ tenths % 10))
        message.append(" ms")
        if error.count > 0 {
            message.append(": ")
            message.append(fields.bytes.text(error.lowerBound, error.upperBound))
        }
        if status == 0 || status >= 500 { return ExchangeState.error }
        return status >= 400 || error.count > 0 ? ExchangeState.warn : ExchangeState.info
    }
}

extension FieldBuffer {
    /// Keys with this start belong to an exchange: no field of a host may use them.
    static let reserved: StaticString = "http."

    /// Accepts what cw_write_record accepts; leaves out fields too long for a context.
    mutating func put(_ field: cw_field) {
        let key = unsafe ByteText(field.key)
        let isJSON = unsafe field.type == JSONCheck.fieldType
        let type = isJSON ? FieldType.string : unsafe UInt8(truncatingIfNeeded: field.type)
        let text = unsafe type == FieldType.string ? ByteText(field.value.s) : ByteText.empty
        guard bytes.count &+ key.count &+ text.count &+ 16 <= HTTPCapture.ownBytesMax else {
            return
        }
        guard type >= FieldType.int, type <= FieldType.string else { return }
        guard !key.has(FieldBuffer.reserved, at: 0) else { return }
        let isValid =
            unsafe isJSON
            && JSONCheck.isValid(
                UnsafeRawBufferPointer(start: field.value.s.data, count: field.value.s.length))
        append(key, type, form: isValid ? StringForm.json : StringForm.text)
        if type == FieldType.string {
            bytes.append(word: UInt32(truncatingIfNeeded: text.count))
            bytes.append(text)
        } else if type == FieldType.bool {
            bytes.append(word: UInt8(unsafe field.value.b ? 1 : 0))
        } else {
            unsafe bytes.append(word: field.value.u)
        }
    }
}
