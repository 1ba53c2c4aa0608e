// Credentials and transports of a C host: wraps its functions for CordwoodShip, and implements the
// functions that they call in turn. A response or credentials handle is the address of an object of
// ours on the stack of the call that hands it out.
// SAFETY: as the header says, requests, responses and credentials hold until the host's function
// returns; strings are copied within the call. A NULL becomes a status.

import CCordwood
import CordwoodCore
import CordwoodEngine
import CordwoodFormats
import CordwoodShip
import CordwoodStore
import CordwoodTrace

enum TransportCalls {
    /// The credentials that a host's function set.
    final class Given {
        var credentials: Credentials?
    }

    @safe static func ask(
        _ call: cw_credentials_fn, _ user: HostPointer, _ query: CredentialsQuery
    ) -> Credentials? {
        let given = Given()
        let handle = unsafe OpaquePointer(Unmanaged.passUnretained(given).toOpaque())
        let status = unsafe query.target.withCString { target in
            guard let challenge = query.challenge else {
                return unsafe call(user.value, target, nil, handle)
            }
            return unsafe challenge.withCString { unsafe call(user.value, target, $0, handle) }
        }
        return status == Status.ok ? given.credentials : nil
    }
}

@_cdecl("cw_credentials_set") @implementation
public func cw_credentials_set(
    _ out: OpaquePointer!, _ token: UnsafePointer<CChar>!, _ name: UnsafePointer<CChar>!,
    _ password: UnsafePointer<CChar>!
) -> cw_status {
    guard let out = unsafe out else {
        return failed(Status.argument, "cw_credentials_set: out is NULL")
    }
    let credentials = unsafe Credentials(
        token: CText.string(token), user: CText.string(name), password: CText.string(password))
    return status { () throws(CordwoodError) in
        do throws(UploadError) {
            let given = unsafe Unmanaged<TransportCalls.Given>.fromOpaque(
                UnsafeRawPointer(out)
            ).takeUnretainedValue()
            given.credentials = try credentials.checked()
            return Status.ok
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }
}

/// Copies text as cw_last_error does.
func putText(_ text: String, _ buffer: UnsafeMutablePointer<CChar>?, _ n: Int) -> Int {
    // A size_t beyond the signed range means: no limit.
    let room = unsafe buffer == nil ? 0 : n < 0 ? Int.max : n
    var text = text
    return text.withUTF8 { utf8 in
        if let buffer = unsafe buffer, room > 0 {
            let count = min(utf8.count, room - 1)
            if let start = utf8.baseAddress {
                unsafe UnsafeMutableRawPointer(buffer).copyMemory(from: start, byteCount: count)
            }
            unsafe buffer[count] = 0
        }
        return utf8.count
    }
}

@_cdecl("cw_challenge_scheme") @implementation
public func cw_challenge_scheme(
    _ challenge: UnsafePointer<CChar>!, _ buffer: UnsafeMutablePointer<CChar>!, _ n: Int
) -> Int {
    unsafe putText(Challenge(CText.string(challenge) ?? "").scheme, buffer, n)
}

@_cdecl("cw_challenge_realm") @implementation
public func cw_challenge_realm(
    _ challenge: UnsafePointer<CChar>!, _ buffer: UnsafeMutablePointer<CChar>!, _ n: Int
) -> Int {
    unsafe putText(Challenge(CText.string(challenge) ?? "").realm, buffer, n)
}

// ── Transport ──

@safe final class CallbackTransport: UploadTransport {
    private let call: cw_transport_fn
    private let user: HostPointer

    init(_ call: cw_transport_fn, _ user: HostPointer) {
        unsafe self.call = call
        self.user = user
    }

    func send(_ request: UploadRequest) throws(UploadTransportError) -> UploadResponse {
        let answer = TransportAnswer()
        let lines = HeaderLines(request.headers)
        let status = unsafe request.method.withCString { method in
            unsafe request.url.withCString { url in
                unsafe lines.withPointers { headers in
                    var raw = unsafe cw_transport_request()
                    unsafe raw.struct_size = UInt32(MemoryLayout<cw_transport_request>.size)
                    unsafe raw.connect_timeout_ms = UInt32(clamping: request.connectTimeout.wholeMs)
                    unsafe raw.method = method
                    unsafe raw.url = url
                    unsafe raw.headers = headers
                    unsafe raw.header_count = request.headers.count
                    unsafe raw.body_bytes = request.bodyBytes
                    unsafe raw.timeout_ms = request.timeout.wholeMs
                    unsafe raw.`internal` = UnsafeRawPointer(
                        Unmanaged.passUnretained(request).toOpaque())
                    let handle = unsafe OpaquePointer(
                        Unmanaged.passUnretained(answer).toOpaque())
                    return unsafe call(user.value, &raw, handle)
                }
            }
        }
        return try answer.response(status)
    }
}

/// The answer as a host's function reports it. If it sets a status and a failure, the later one
/// counts, because a host may try a second way. One thread: that of the call.
private final class TransportAnswer {
    private(set) var isAnswered = false
    private var failure: UploadTransportError?
    var response = UploadResponse(status: 0)

    static let headersMax = 64
    static let headerBytesMax = 8192
    /// One byte more than is kept, so that a longer body is seen to be cut.
    static let bodyBytesMax = (4 << 20) + 1

    func begin(_ status: Int) {
        // Headers may come before the first status, but none may remain of another answer.
        if isAnswered { response = UploadResponse(status: 0) }
        response.status = status
        isAnswered = true
    }

    func fail(_ error: UploadTransportError) {
        response = UploadResponse(status: 0)
        isAnswered = false
        failure = error
    }

    func response(_ status: cw_status) throws(UploadTransportError) -> UploadResponse {
        if status == Status.ok && isAnswered { return response }
        if let failure { throw failure }
        guard status == Status.ok else {
            let name = unsafe String(cString: cw_status_name(status))
            throw UploadTransportError("the host's transport returned \(name)")
        }
        throw UploadTransportError("the host's transport set no status")
    }
}

/// Header lines as C strings. They hold secrets and are wiped.
@safe private final class HeaderLines {
    private var lines: [UnsafeMutablePointer<CChar>?] = unsafe []

    init(_ headers: [(name: String, value: String)]) {
        for (name, value) in headers {
            unsafe lines.append(Memory.copy("\(name): \(value)"))
        }
    }

    deinit {
        unsafe lines.forEach { unsafe HeaderLines.wipe($0) }
    }

    private static func wipe(_ line: UnsafeMutablePointer<CChar>?) {
        guard let line = unsafe line else { return }
        unsafe Memory.wipe(line, Memory.length(line))
        unsafe Memory.free(line)
    }

    func withPointers<T>(
        _ body: (UnsafePointer<UnsafePointer<CChar>?>?) -> T
    ) -> T {
        let pointers = unsafe lines.map { unsafe UnsafePointer($0) }
        return unsafe pointers.withUnsafeBufferPointer { unsafe body($0.baseAddress) }
    }
}

private func request(_ raw: UnsafePointer<cw_transport_request>?) -> UploadRequest? {
    guard let raw = unsafe raw, let address = unsafe raw.pointee.`internal` else { return nil }
    return unsafe Unmanaged<UploadRequest>.fromOpaque(address).takeUnretainedValue()
}

private func answer(_ handle: OpaquePointer?) -> TransportAnswer? {
    guard let handle = unsafe handle else { return nil }
    return unsafe Unmanaged<TransportAnswer>.fromOpaque(UnsafeRawPointer(handle))
        .takeUnretainedValue()
}

@_cdecl("cw_transport_request_read") @implementation
public func cw_transport_request_read(
    _ raw: UnsafePointer<cw_transport_request>!, _ offset: UInt64,
    _ buffer: UnsafeMutableRawPointer!, _ bytes: Int, _ out: UnsafeMutablePointer<Int>!
) -> cw_status {
    guard let request = unsafe request(raw), let out = unsafe out else {
        return failed(Status.argument, "cw_transport_request_read: a pointer is NULL")
    }
    guard bytes > 0, let buffer = unsafe buffer else {
        return failed(Status.argument, "cw_transport_request_read: there is no buffer")
    }
    do throws(UploadTransportError) {
        let got = try unsafe request.readBody(
            at: offset, into: UnsafeMutableRawBufferPointer(start: buffer, count: bytes))
        guard got > 0 else { return Status.end }
        unsafe out.pointee = got
        return Status.ok
    } catch {
        return failed(request.isStopped ? Status.closed : Status.io, error.text)
    }
}

@_cdecl("cw_transport_request_stopped") @implementation
public func cw_transport_request_stopped(_ raw: UnsafePointer<cw_transport_request>!) -> Bool {
    unsafe request(raw)?.isStopped ?? true
}

@_cdecl("cw_transport_response_status") @implementation
public func cw_transport_response_status(
    _ handle: OpaquePointer!, _ httpStatus: Int32
) -> cw_status {
    guard let answer = unsafe answer(handle) else {
        return failed(Status.argument, "cw_transport_response_status: response is NULL")
    }
    answer.begin(Int(httpStatus))
    return Status.ok
}

@_cdecl("cw_transport_response_header") @implementation
public func cw_transport_response_header(
    _ handle: OpaquePointer!, _ name: UnsafePointer<CChar>!, _ value: UnsafePointer<CChar>!
) -> cw_status {
    guard let answer = unsafe answer(handle), let name = unsafe name, let value = unsafe value
    else {
        return failed(Status.argument, "cw_transport_response_header: a pointer is NULL")
    }
    let bytes = unsafe CText.length(name) &+ CText.length(value)
    guard answer.response.headers.count < TransportAnswer.headersMax,
        bytes <= TransportAnswer.headerBytesMax
    else {
        return failed(Status.limit, "cw_transport_response_header: over 64 headers of 8 KiB")
    }
    unsafe answer.response.headers.append((String(cString: name), String(cString: value)))
    return Status.ok
}

@_cdecl("cw_transport_response_body") @implementation
public func cw_transport_response_body(
    _ handle: OpaquePointer!, _ bytes: UnsafeRawPointer!, _ count: Int
) -> cw_status {
    guard let answer = unsafe answer(handle) else {
        return failed(Status.argument, "cw_transport_response_body: response is NULL")
    }
    guard count >= 0 else {
        return failed(
            Status.argument, "cw_transport_response_body: the length is \(sizeText(count))")
    }
    guard count > 0 else { return Status.ok }
    guard let bytes = unsafe bytes else {
        return failed(Status.argument, "cw_transport_response_body: bytes is NULL")
    }
    let room = TransportAnswer.bodyBytesMax - answer.response.body.count
    unsafe answer.response.body.append(
        contentsOf: UnsafeRawBufferPointer(start: bytes, count: min(count, room)))
    guard count <= room else {
        return failed(Status.limit, "cw_transport_response_body: over 4 MiB")
    }
    return Status.ok
}

@_cdecl("cw_transport_response_failed") @implementation
public func cw_transport_response_failed(
    _ handle: OpaquePointer!, _ cause: UnsafePointer<CChar>!, _ unreachable: Bool
) -> cw_status {
    guard let answer = unsafe answer(handle) else {
        return failed(Status.argument, "cw_transport_response_failed: response is NULL")
    }
    answer.fail(
        UploadTransportError(unsafe CText.string(cause) ?? "", isUnreachable: unreachable))
    return Status.ok
}
