// How requests of the host's own failed (network.h): check, convert, call, return.
// SAFETY: the result's pointers are the host's and hold during the call; NULL and lengths are
// checked before one is followed. Errors are those that we gave (ErrorBlock).

import CCordwood
import CShims
import CordwoodCore
import CordwoodEngine
import CordwoodFormats
import CordwoodShip
import CordwoodStore
import CordwoodTrace

@_cdecl("cw_network_error_from") @implementation
public func cw_network_error_from(
    _ result: UnsafePointer<cw_network_result>!,
    _ out: UnsafeMutablePointer<UnsafePointer<cw_upload_error>?>!
) -> cw_status {
    guard let out = unsafe out else {
        return failed(Status.argument, "cw_network_error_from: out is NULL")
    }
    unsafe out.pointee = nil
    guard let result = unsafe result else {
        return failed(Status.argument, "cw_network_error_from: result is NULL")
    }
    var copy = unsafe cw_network_result()
    if let wrong = unsafe Stamped.read(result, into: &copy) {
        return failed(wrong)
    }
    guard unsafe copy.http_status >= 0 else {
        return unsafe failed(
            Status.argument, "cw_network_error_from: http_status is \(copy.http_status)")
    }
    guard unsafe NetworkCheck.isValid(copy) else { return HTTPCheck.wrong("cw_network_error_from") }
    guard let error = unsafe NetworkCheck.error(copy) else { return Status.end }
    guard let block = unsafe ErrorBlock.make(ErrorBlock.Whole(error)) else {
        return failed(Status.memory, "no memory for the error")
    }
    unsafe out.pointee = UnsafePointer(block)
    return Status.ok
}

@_cdecl("cw_network_error_log") @implementation
public func cw_network_error_log(
    _ logger: OpaquePointer!, _ error: UnsafePointer<cw_upload_error>!,
    _ more: UnsafePointer<cw_record>!
) -> cw_status {
    guard let logger = unsafe logger, let error = unsafe error else {
        return failed(Status.argument, "cw_network_error_log: logger or error is NULL")
    }
    var record = unsafe cw_record()
    if let more = unsafe more {
        let stamp = unsafe Stamped.copy(more, into: &record)
        guard stamp == Status.ok else {
            return unsafe LastError.setWrite(stamp, more.pointee.struct_size)
        }
    }
    var wrong = RecordCheck.Wrong()
    let validity = unsafe RecordCheck.validity(record, &wrong)
    guard validity == Status.ok else {
        return LastError.setWrite(validity, length: wrong.value, wrong.what, wrong.index)
    }
    let failure = unsafe RequestFailure(
        detail: ErrorBlock.detail(error.pointee), method: ErrorBlock.string(error.pointee.method),
        url: ErrorBlock.string(error.pointee.url),
        exchangeID: ErrorBlock.string(error.pointee.exchange_id),
        unixMs: error.pointee.time_ns / 1_000_000)
    let status = unsafe withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { trace in
        unsafe FailureRecord.write(
            LoggerBlock(logger), level: record.level, failure,
            RecordCheck.body(record, trace.baseAddress!))
    }
    return unsafe status < 0 ? LastError.setWrite(status, record.level) : status
}

private enum NetworkCheck {
    /// The limit of each text kept here; the core cuts them further.
    private static let textBytesMax = 8_192
    /// The headers of an answer that matter.
    private static let names = ["location", "retry-after", "date", "content-language"]

    static func isValid(_ result: cw_network_result) -> Bool {
        unsafe HTTPCheck.isValid(result.headers, result.header_count)
            && isBody(result.body) && HTTPCheck.isText(result.error)
            && HTTPCheck.isText(result.error_type) && HTTPCheck.isText(result.method)
            && HTTPCheck.isText(result.url)
    }

    /// Accepts any length: a body too long for an error is not read.
    private static func isBody(_ body: cw_str) -> Bool {
        unsafe body.length == 0 || body.length > 0 && body.data != nil
    }

    /// nil: the request succeeded.
    static func error(_ given: cw_network_result) -> RequestFailure? {
        var result = NetworkResult()
        unsafe result.httpStatus = given.http_status
        for index in unsafe 0..<given.header_count {
            guard let header = unsafe given.headers?[index] else { break }
            let name = unsafe text(header.name).lowercased()
            if names.contains(name) { unsafe result.headers.append((name, text(header.value))) }
        }
        // An excess byte shows that the body was longer, after a mark of three.
        unsafe result.body = Array(bytes(given.body, NetworkResult.bodyBytesMax + 4))
        unsafe result.error = text(given.error)
        unsafe result.errorType = text(given.error_type)
        unsafe result.method = text(given.method)
        unsafe result.url = text(given.url)
        unsafe result.exchangeID = CText.string(given.exchange_id) ?? ""
        let ms = unsafe given.time_ns / 1_000_000
        return RequestFailure(result, unixMs: ms == 0 ? cw_realtime_ns() / 1_000_000 : ms)
    }

    private static func text(_ text: cw_str) -> String {
        unsafe String(decoding: bytes(text, textBytesMax), as: UTF8.self)
    }

    private static func bytes(_ text: cw_str, _ bytesMax: Int) -> UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(
            start: text.data, count: text.data == nil ? 0 : min(text.length, bytesMax))
    }
}
