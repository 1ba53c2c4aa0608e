// One HTTP exchange that a Swift host records itself (docs/HTTP.md): `engine.beginHTTP` begins it,
// the host reports what passes, and ends it. One thread at a time. Without an `end` the exchange
// ends with its last reference and counts as unanswered.
// SAFETY: `handle` belongs to this object until `end`, which first takes it out. Each call borrows
// its bytes, and its strings lie in one buffer that lives as long as the call.

import CCordwood
import CShims
import CordwoodCore
import CordwoodEngine
import CordwoodTrace

/// Durations in ns. 0: unknown, or the phase was not needed.
public struct HTTPTimings: Sendable {
    public var dns: UInt64 = 0
    /// TCP, without DNS and TLS.
    public var connect: UInt64 = 0
    public var tls: UInt64 = 0
    public var send: UInt64 = 0
    /// From the request's last byte to the answer's first byte.
    public var wait: UInt64 = 0
    public var receive: UInt64 = 0
    /// Total duration; 0: since the exchange began.
    public var duration: UInt64 = 0

    public init() {}
}

public enum HTTPSide: UInt32, Sendable { case client, server }

@safe public final class HTTPExchange: @unchecked Sendable {
    private var handle: HTTPCapture.Handle?
    /// 16 hex digits; the argument of `cordwood http show`.
    public let id: String
    /// The reported bytes of the answer's body have no framing, whatever its headers say.
    package var isResponseBare = false

    fileprivate init(_ handle: HTTPCapture.Handle) {
        unsafe self.handle = handle
        id = unsafe String(cString: HTTPCapture.id(handle))
    }

    deinit { _ = end(error: "never ended", errorType: "abandoned") }

    /// Reports more of the request's body as it goes out.
    public func requestBody(_ bytes: [UInt8]) {
        unsafe bytes.withUnsafeBytes { requestBody($0) }
    }

    @safe public func requestBody(_ bytes: UnsafeRawBufferPointer) {
        guard let handle = unsafe handle, let start = bytes.baseAddress else { return }
        unsafe HTTPCapture.requestBody(handle, start, bytes.count)
    }

    /// Reports bytes that went out but cannot be shown.
    public func requestBody(hidden count: Int) {
        if let handle = unsafe handle { unsafe HTTPCapture.requestBody(handle, nil, count) }
    }

    /// Reports the answer's status (100 … 599) and headers. A second call replaces the first.
    public func response(
        status: Int, headers: [(String, String)] = [], protocolName: String? = nil
    ) {
        guard let handle = unsafe handle, (100...599).contains(status) else { return }
        var texts = TextRoom()
        let name = protocolName.map { texts.add($0, terminated: true) }
        let pairs = headers.map { (texts.add($0.0), texts.add($0.1)) }
        unsafe texts.withHeaders(pairs) { room, list in
            var response = unsafe cw_http_response()
            unsafe response.struct_size = UInt32(MemoryLayout<cw_http_response>.size)
            unsafe response.status = Int32(status)
            unsafe response.headers = list.baseAddress
            unsafe response.header_count = list.count
            unsafe response.protocol = name.flatMap { unsafe TextRoom.string($0, room).data }
            unsafe HTTPCapture.response(handle, response)
        }
    }

    /// Reports more of the answer's body as it arrives.
    public func responseBody(_ bytes: [UInt8]) {
        unsafe bytes.withUnsafeBytes { responseBody($0) }
    }

    @safe public func responseBody(_ bytes: UnsafeRawBufferPointer) {
        guard let handle = unsafe handle, let start = bytes.baseAddress else { return }
        unsafe HTTPCapture.responseBody(handle, start, bytes.count)
    }

    public func responseBody(hidden count: Int) {
        if let handle = unsafe handle { unsafe HTTPCapture.responseBody(handle, nil, count) }
    }

    /// Writes the record. error: the reason for a missing or incomplete answer. Later calls do
    /// nothing.
    /// - Returns: a status of cordwood.h.
    @discardableResult
    public func end(
        error: String = "", errorType: String = "", isCancelled: Bool = false,
        timings: HTTPTimings = HTTPTimings(), remoteAddress: String? = nil
    ) -> Int32 {
        guard let handle = unsafe handle else { return Status.disabled }
        unsafe self.handle = nil
        var texts = TextRoom()
        let address = remoteAddress.map { texts.add($0, terminated: true) }
        let (text, type) = (texts.add(error), texts.add(errorType))
        return unsafe texts.withHeaders([]) { room, _ in
            var outcome = unsafe cw_http_outcome()
            unsafe outcome.struct_size = UInt32(MemoryLayout<cw_http_outcome>.size)
            unsafe outcome.flags =
                UInt32(isCancelled ? CW_HTTP_CANCELLED : 0)
                | UInt32(isResponseBare ? CW_HTTP_RESPONSE_BARE : 0)
            unsafe outcome.error = TextRoom.string(text, room)
            unsafe outcome.error_type = TextRoom.string(type, room)
            unsafe outcome.dns_ns = timings.dns
            unsafe outcome.connect_ns = timings.connect
            unsafe outcome.tls_ns = timings.tls
            unsafe outcome.send_ns = timings.send
            unsafe outcome.wait_ns = timings.wait
            unsafe outcome.receive_ns = timings.receive
            unsafe outcome.duration_ns = timings.duration
            unsafe outcome.remote_address = address.flatMap {
                unsafe TextRoom.string($0, room).data
            }
            return unsafe HTTPCapture.end(handle, outcome)
        }
    }
}

extension Engine {
    /// Begins an exchange; nil: it is not captured (off, filtered, closed, no method or address).
    /// conversation: the id to use if no header carries one.
    public func beginHTTP(
        method: String, url: String, headers: [(String, String)] = [], body: [UInt8] = [],
        side: HTTPSide = .client, startNs: UInt64 = 0, redirectedFrom: String? = nil,
        attempt: UInt32 = 0, conversation: String? = nil
    ) -> HTTPExchange? {
        guard isHTTPCaptureEnabled, !method.isEmpty, !url.isEmpty else { return nil }
        var texts = TextRoom()
        let (name, address) = (texts.add(method), texts.add(url))
        let from = redirectedFrom.map { texts.add($0, terminated: true) }
        let content = texts.add(body)
        let pairs = headers.map { (texts.add($0.0), texts.add($0.1)) }
        let (key, value) = (texts.add("http.conversation"), texts.add(conversation ?? ""))
        var made: HTTPCapture.Handle?
        unsafe texts.withHeaders(pairs) { room, list in
            var request = unsafe cw_http_request()
            unsafe request.struct_size = UInt32(MemoryLayout<cw_http_request>.size)
            unsafe request.side = side.rawValue
            unsafe request.method = TextRoom.string(name, room)
            unsafe request.url = TextRoom.string(address, room)
            unsafe request.headers = list.baseAddress
            unsafe request.header_count = list.count
            unsafe request.body = TextRoom.string(content, room)
            unsafe request.start_ns = startNs
            unsafe request.redirected_from = from.flatMap {
                unsafe TextRoom.string($0, room).data
            }
            unsafe request.attempt = attempt
            var field = unsafe cw_field()
            unsafe field.key = TextRoom.string(key, room)
            unsafe field.type = UInt32(FieldType.string)
            unsafe field.value.s = TextRoom.string(value, room)
            unsafe withUnsafePointer(to: field) {
                unsafe request.fields = conversation == nil ? nil : $0
                unsafe request.field_count = conversation == nil ? 0 : 1
                _ = unsafe HTTPCapture.begin(block, request, &made)
            }
        }
        return unsafe made.map { unsafe HTTPExchange($0) }
    }
}

/// Joins strings in one buffer, so that their pointers stay valid together.
private struct TextRoom {
    private var bytes: [UInt8] = []

    mutating func add(_ text: String, terminated: Bool = false) -> Range<Int> {
        let start = bytes.count
        bytes += text.utf8
        let end = bytes.count
        if terminated { bytes.append(0) }
        return start..<end
    }

    mutating func add(_ more: [UInt8]) -> Range<Int> {
        let start = bytes.count
        bytes += more
        return start..<bytes.count
    }

    static func string(_ range: Range<Int>, _ room: UnsafeBufferPointer<UInt8>) -> cw_str {
        guard let start = room.baseAddress else { return unsafe cw_str() }
        return unsafe cw_str(
            data: UnsafeRawPointer(start + range.lowerBound).assumingMemoryBound(to: CChar.self),
            length: range.count)
    }

    func withHeaders<Result>(
        _ pairs: [(Range<Int>, Range<Int>)],
        _ body: (UnsafeBufferPointer<UInt8>, UnsafeBufferPointer<cw_http_header>) -> Result
    ) -> Result {
        unsafe bytes.withUnsafeBufferPointer { room in
            let list = unsafe pairs.map { name, value in
                unsafe cw_http_header(
                    name: TextRoom.string(name, room), value: TextRoom.string(value, room))
            }
            return unsafe list.withUnsafeBufferPointer { unsafe body(room, $0) }
        }
    }
}
