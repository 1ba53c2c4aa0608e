// Captured HTTP exchanges: check, convert, call, return.
// SAFETY: pointers are the host's and hold during the call; NULL, lengths and sizes are checked
// before one is followed, structs are copied before they are used.

import CCordwood
import CShims
import CordwoodCore
import CordwoodEngine
import CordwoodFormats
import CordwoodShip
import CordwoodStore
import CordwoodTrace

@_cdecl("cw_http_options_init") @implementation
public func cw_http_options_init(
    _ options: UnsafeMutablePointer<cw_http_options>!, _ size: Int
) {
    guard let options = unsafe options, unsafe Stamped.fits(size, cw_http_options.self) else {
        return
    }
    unsafe Stamped.write(HTTPCheck.defaults(size), to: options, size: size)
}

@_cdecl("cw_http_options_set") @implementation
public func cw_http_options_set(
    _ handle: OpaquePointer!, _ options: UnsafePointer<cw_http_options>!
) -> cw_status {
    status { () throws(CordwoodError) in
        let engine = try unsafe engine(handle)
        guard let options = unsafe options else {
            throw CordwoodError(Status.argument, "cw_http_options_set: options is NULL")
        }
        var copy = unsafe HTTPCheck.defaults(0)
        if let wrong = unsafe Stamped.read(options, into: &copy) { throw wrong }
        try unsafe engine.setHTTPCapture(HTTPCheck.options(copy))
        return Status.ok
    }
}

@_cdecl("cw_http_enabled") @implementation
public func cw_http_enabled(_ handle: OpaquePointer!) -> Bool {
    guard let handle = unsafe handle else { return false }
    return unsafe HTTPCapture.isOn(EngineBlock(handle))
}

@_cdecl("cw_http_begin") @implementation
public func cw_http_begin(
    _ handle: OpaquePointer!, _ request: UnsafePointer<cw_http_request>!,
    _ out: UnsafeMutablePointer<OpaquePointer?>!
) -> cw_status {
    guard let out = unsafe out else {
        return failed(Status.argument, "cw_http_begin: out is NULL")
    }
    unsafe out.pointee = nil
    guard let handle = unsafe handle, let request = unsafe request else {
        return failed(Status.argument, "cw_http_begin: engine or request is NULL")
    }
    let block = unsafe EngineBlock(handle)
    guard unsafe HTTPCapture.isOn(block) else { return unsafe HTTPCheck.off(block) }
    var copy = unsafe cw_http_request()
    if let wrong = unsafe Stamped.read(request, into: &copy) { return failed(wrong) }
    guard unsafe HTTPCheck.isValid(copy) else { return HTTPCheck.wrong("cw_http_begin") }
    var made: HTTPCapture.Handle?
    let result = unsafe HTTPCapture.begin(block, copy, &made)
    unsafe out.pointee = made.map { OpaquePointer($0) }
    return result < 0 ? failed(result, "cw_http_begin: \(Sentences.of(result).text)") : result
}

@_cdecl("cw_http_id") @implementation
public func cw_http_id(_ exchange: OpaquePointer!) -> UnsafePointer<CChar>! {
    guard let exchange = unsafe exchange else { return nil }
    return unsafe HTTPCapture.id(HTTPCapture.Handle(exchange))
}

@_cdecl("cw_http_request_body") @implementation
public func cw_http_request_body(
    _ exchange: OpaquePointer!, _ bytes: UnsafeRawPointer!, _ length: Int
) -> cw_status {
    guard let exchange = unsafe exchange else { return Status.disabled }
    guard length >= 0 else {
        return failed(Status.argument, "cw_http_request_body: the length is \(sizeText(length))")
    }
    unsafe HTTPCapture.requestBody(HTTPCapture.Handle(exchange), bytes, length)
    return Status.ok
}

@_cdecl("cw_http_response") @implementation
public func cw_http_response(
    _ exchange: OpaquePointer!, _ response: UnsafePointer<cw_http_response>!
) -> cw_status {
    guard let exchange = unsafe exchange else { return Status.disabled }
    guard let response = unsafe response else {
        return failed(Status.argument, "cw_http_response: response is NULL")
    }
    var copy = unsafe cw_http_response()
    if let wrong = unsafe Stamped.read(response, into: &copy) {
        return failed(wrong)
    }
    guard unsafe copy.status >= 100, unsafe copy.status <= 599 else {
        return unsafe failed(
            Status.argument, "cw_http_response: status \(copy.status) is outside 100…599")
    }
    guard unsafe HTTPCheck.isValid(copy.headers, copy.header_count),
        unsafe HTTPCheck.isBody(copy.body)
    else { return HTTPCheck.wrong("cw_http_response") }
    unsafe HTTPCapture.response(HTTPCapture.Handle(exchange), copy)
    return Status.ok
}

@_cdecl("cw_http_response_body") @implementation
public func cw_http_response_body(
    _ exchange: OpaquePointer!, _ bytes: UnsafeRawPointer!, _ length: Int
) -> cw_status {
    guard let exchange = unsafe exchange else { return Status.disabled }
    guard length >= 0 else {
        return failed(Status.argument, "cw_http_response_body: the length is \(sizeText(length))")
    }
    unsafe HTTPCapture.responseBody(HTTPCapture.Handle(exchange), bytes, length)
    return Status.ok
}

@_cdecl("cw_http_end") @implementation
public func cw_http_end(
    _ exchange: UnsafeMutablePointer<OpaquePointer?>!, _ outcome: UnsafePointer<cw_http_outcome>!
) -> cw_status {
    guard let exchange = unsafe exchange else {
        return failed(Status.argument, "cw_http_end: exchange is NULL")
    }
    guard let handle = unsafe exchange.pointee else { return Status.disabled }
    var copy = unsafe cw_http_outcome()
    if let outcome = unsafe outcome {
        if let wrong = unsafe Stamped.read(outcome, into: &copy) {
            return failed(wrong)
        }
        guard unsafe HTTPCheck.isValid(copy) else { return HTTPCheck.wrong("cw_http_end") }
    }
    unsafe exchange.pointee = nil
    let result = unsafe HTTPCapture.end(HTTPCapture.Handle(handle), copy)
    return result < 0 ? failed(result, "cw_http_end: \(Sentences.of(result).text)") : result
}

enum HTTPCheck {
    private static let stringBytesMax = 1 << 30
    private static let headersMax = 1 << 24

    static func defaults(_ size: Int) -> cw_http_options {
        var defaults = unsafe cw_http_options()
        unsafe defaults.struct_size = UInt32(truncatingIfNeeded: size)
        unsafe defaults.body_bytes_max = HTTPCaptureOptions.bodyBytesDefault
        unsafe defaults.sample_per_million = 1_000_000
        return unsafe defaults
    }

    /// The status for capture that is off, or an engine that is closed.
    static func off(_ block: EngineBlock) -> cw_status {
        if unsafe cwa_load_acquire_u32(block) == UInt32(CWI_ENGINE_OPEN) { return Status.disabled }
        return failed(Status.closed, "cw_http_begin: the engine is closed")
    }

    static func wrong(_ call: String) -> cw_status {
        failed(
            Status.argument,
            "\(call): a string or list is NULL or too long, or a word is none of its enum")
    }

    static func options(_ given: cw_http_options) throws(CordwoodError) -> HTTPCaptureOptions {
        var options = HTTPCaptureOptions()
        guard unsafe given.enabled <= 1 else {
            throw unsafe CordwoodError(
                Status.argument, "cw_http_options.enabled is \(given.enabled), not 0 or 1")
        }
        options.isEnabled = unsafe given.enabled == 1
        let bytes = unsafe given.body_bytes_max
        options.bodyBytesMax =
            bytes == .max ? 0 : bytes == 0 ? HTTPCaptureOptions.bodyBytesDefault : bytes
        let sample = unsafe given.sample_per_million
        options.samplePerMillion = sample == 0 ? 1_000_000 : sample
        options.hosts = unsafe lines(given.hosts)
        options.hostsExcluded = unsafe lines(given.hosts_excluded)
        if let header = unsafe CText.string(given.conversation_header) {
            options.conversationHeader = header
        }
        options.redactHeaders = unsafe lines(given.redact_headers)
        options.redactKeys = unsafe lines(given.redact_keys)
        options.redactPatterns = unsafe lines(given.redact_patterns)
        options.keepText = unsafe list(given.keep_text)
        options.keepKeys = unsafe list(given.keep_keys)
        return options
    }

    private static func lines(_ text: UnsafePointer<CChar>?) -> [String] {
        guard let text = unsafe CText.string(text) else { return [] }
        return text.split(separator: "\n").map(String.init)
    }

    private static func list(_ text: UnsafePointer<CChar>?) -> [String] {
        unsafe lines(text).flatMap { line in
            line.split(separator: ",").map { $0.drop { $0 == " " } }.map(String.init)
        }
    }

    static func isText(_ text: cw_str) -> Bool {
        unsafe text.length >= 0 && text.length <= stringBytesMax
            && (text.data != nil || text.length == 0)
    }

    /// data NULL: the number of bytes that the host cannot show.
    static func isBody(_ text: cw_str) -> Bool { unsafe text.length >= 0 }

    static func isValid(_ headers: UnsafePointer<cw_http_header>?, _ count: Int) -> Bool {
        guard count > 0 else { return count == 0 }
        guard let headers = unsafe headers, count <= headersMax else { return false }
        for i in 0..<count {
            let header = unsafe headers[i]
            guard unsafe isText(header.name), unsafe isText(header.value) else { return false }
        }
        return true
    }

    static func isValid(_ request: cw_http_request) -> Bool {
        guard unsafe isText(request.method), unsafe request.method.length > 0,
            unsafe isText(request.url), unsafe request.url.length > 0,
            unsafe request.side <= UInt32(CW_HTTP_SERVER), unsafe isBody(request.body),
            unsafe request.trace_id != nil || request.span_id == nil,
            unsafe isValid(request.headers, request.header_count)
        else { return false }
        let count = unsafe request.field_count
        guard count > 0 else { return count == 0 }
        guard let fields = unsafe request.fields, count <= FieldType.countMax else { return false }
        for i in 0..<count {
            let field = unsafe fields[i]
            guard unsafe isText(field.key), unsafe field.key.length <= 0xFFFF else { return false }
            switch unsafe field.type {
            case UInt32(CW_TYPE_INT), UInt32(CW_TYPE_UINT), UInt32(CW_TYPE_DOUBLE),
                UInt32(CW_TYPE_BOOL):
                break
            case UInt32(CW_TYPE_STRING), UInt32(CW_TYPE_JSON):
                guard unsafe isText(field.value.s) else { return false }
            default: return false
            }
        }
        return true
    }

    private static let flags = UInt32(
        CW_HTTP_CANCELLED | CW_HTTP_REQUEST_CHUNKS | CW_HTTP_RESPONSE_CHUNKS | CW_HTTP_REQUEST_BARE
            | CW_HTTP_RESPONSE_BARE)

    static func isValid(_ outcome: cw_http_outcome) -> Bool {
        unsafe outcome.flags & ~flags == 0 && isText(outcome.error)
            && isText(outcome.error_type)
    }
}
