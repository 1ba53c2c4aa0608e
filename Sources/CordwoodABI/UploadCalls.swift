// Targets and uploads: check, convert, call, return.
// SAFETY: as the header says: options and results hold during the call, `user` until the callback
// has run; results are written as far as the host's size allows.

import CCordwood
import CordwoodCore
import CordwoodEngine
import CordwoodFormats
import CordwoodShip
import CordwoodStore
import CordwoodTrace

@_cdecl("cw_target_options_init") @implementation
public func cw_target_options_init(
    _ options: UnsafeMutablePointer<cw_target_options>!, _ size: Int
) {
    guard let options = unsafe options, unsafe Stamped.fits(size, cw_target_options.self) else {
        return
    }
    var defaults = unsafe cw_target_options()
    unsafe defaults.struct_size = UInt32(truncatingIfNeeded: size)
    unsafe defaults.connect_timeout_ms = Target.connectTimeoutMsDefault
    unsafe defaults.request_timeout_ms = Target.requestTimeoutMsDefault
    unsafe Stamped.write(defaults, to: options, size: size)
}

@_cdecl("cw_target_add") @implementation
public func cw_target_add(
    _ handle: OpaquePointer!, _ options: UnsafePointer<cw_target_options>!,
    _ out: UnsafeMutablePointer<UInt32>!
) -> cw_status {
    status { () throws(CordwoodError) in
        guard let options = unsafe options else {
            throw CordwoodError(Status.argument, "cw_target_add: options is NULL")
        }
        var copy = unsafe cw_target_options()
        if let wrong = unsafe Stamped.read(options, into: &copy) { throw wrong }
        let number = try unsafe engine(handle).addTarget(
            try convert(copy), callbacks: callbacks(copy))
        if let out = unsafe out { unsafe out.pointee = number }
        return Status.ok
    }
}

/// 0 selects the default, as in C.
private func limit(_ ms: UInt32) -> Duration? { ms == 0 ? nil : .milliseconds(Int64(ms)) }

private func convert(_ options: cw_target_options) throws(CordwoodError) -> TargetOptions {
    guard let url = unsafe CText.string(options.url) else {
        throw CordwoodError(Status.argument, "cw_target_options.url is NULL")
    }
    var result = TargetOptions(url: url)
    result.name = unsafe CText.string(options.name)
    result.kind = unsafe CText.string(options.kind)
    result.format = unsafe CText.string(options.format)
    result.encoding = unsafe CText.string(options.encoding)
    result.headers = unsafe CText.string(options.headers)
    result.authToken = unsafe CText.string(options.auth_token)
    result.method = unsafe CText.string(options.method)
    result.connectTimeout = unsafe limit(options.connect_timeout_ms)
    result.requestTimeout = unsafe limit(options.request_timeout_ms)
    result.bytesPerSecond = unsafe options.bytes_per_s
    result.parameters = unsafe CText.string(options.parameters)
    result.authUser = unsafe CText.string(options.auth_user)
    result.authPassword = unsafe CText.string(options.auth_password)
    result.caFile = unsafe CText.string(options.ca_file)
    result.clientCertificateFile = unsafe CText.string(options.client_certificate_file)
    result.clientKeyFile = unsafe CText.string(options.client_key_file)
    result.clientKeyPassword = unsafe CText.string(options.client_key_password)
    result.proxy = unsafe CText.string(options.proxy)
    result.proxyAuthentication = unsafe CText.string(options.proxy_auth)
    result.httpVersion = unsafe options.http_version
    result.level = unsafe options.level
    result.loggers = unsafe CText.string(options.loggers)
    result.bodyBytesMax = unsafe options.body_bytes_max
    result.bodyRecordsMax = unsafe options.body_records_max
    result.requestsMax = unsafe options.requests_max
    result.expect = unsafe CText.string(options.expect)
    let user = unsafe HostPointer(value: options.user)
    if let ask = unsafe options.credentials {
        result.credentials = { query in TransportCalls.ask(ask, user, query) }
    }
    if let send = unsafe options.transport {
        result.transport = unsafe CallbackTransport(send, user)
    }
    return result
}

private func callbacks(_ options: cw_target_options) -> TargetCallbacks {
    var callbacks = TargetCallbacks()
    let user = unsafe HostPointer(value: options.user)
    if let call = unsafe options.attempting {
        callbacks.attempting = { archive, attempt in unsafe call(user.value, archive, attempt) }
    }
    if let call = unsafe options.completed {
        callbacks.completed = { archive, status, http in
            unsafe call(user.value, archive, status.rawValue, http)
        }
    }
    if let call = unsafe options.condition {
        callbacks.condition = { unsafe call(user.value) }
    }
    if let call = unsafe options.drained {
        callbacks.drained = { unsafe call(user.value) }
    }
    if let call = unsafe options.busy {
        callbacks.busy = { target, delayMs in unsafe call(user.value, target, delayMs) }
    }
    return callbacks
}

@_cdecl("cw_target_remove") @implementation
public func cw_target_remove(_ handle: OpaquePointer!, _ name: UnsafePointer<CChar>!) -> cw_status {
    status { () throws(CordwoodError) in
        guard let name = unsafe name else {
            throw CordwoodError(Status.argument, "cw_target_remove: name is NULL")
        }
        try unsafe engine(handle).removeTarget(String(cString: name))
        return Status.ok
    }
}

@_cdecl("cw_quarantine_retry") @implementation
public func cw_quarantine_retry(
    _ handle: OpaquePointer!, _ name: UnsafePointer<CChar>!
) -> cw_status {
    status { () throws(CordwoodError) in
        let name = unsafe CText.string(name)
        return try unsafe engine(handle).retryQuarantined(target: name) > 0
            ? Status.ok : Status.end
    }
}

private func convert(_ result: UploadResult, _ size: Int) -> cw_upload_result {
    var converted = cw_upload_result()
    converted.struct_size = UInt32(truncatingIfNeeded: size)
    converted.uploaded = result.uploaded
    converted.failed = result.failed
    converted.waiting = result.waiting
    converted.expired = result.expired
    converted.bytes_sent = result.bytesSent
    converted.last_http_status = result.lastHTTPStatus
    converted.last_outcome = result.lastOutcome.rawValue
    converted.refused = result.refused
    converted.records = result.records
    converted.quarantined = result.quarantined
    return converted
}

/// Runs an upload, and writes its result if the arguments were valid.
func uploading(
    _ name: String, _ out: UnsafeMutablePointer<cw_upload_result>?, _ size: Int,
    _ body: (inout UploadResult) throws(CordwoodError) -> Int32
) -> cw_status {
    if unsafe out != nil, !Stamped.fits(size, cw_upload_result.self) {
        return failed(Status.structSize, "\(name): size_of_result is \(sizeText(size))")
    }
    var result = UploadResult()
    let answer = status { () throws(CordwoodError) in
        let answer = try body(&result)
        guard answer < 0 else { return answer }
        throw CordwoodError(
            answer,
            unsafe "\(String(cString: cw_strerror(answer))): \(result.uploaded) sent, "
                + "\(result.failed) failed, \(result.waiting) waiting, "
                + "last HTTP status \(result.lastHTTPStatus)")
    }
    // Even if the engine was closed meanwhile: everything sent before stays sent.
    if let out = unsafe out, answer != Status.argument {
        unsafe Stamped.write(convert(result, size), to: out, size: size)
    }
    return answer
}

@_cdecl("cw_upload") @implementation
public func cw_upload(
    _ handle: OpaquePointer!, _ timeout: UInt32, _ out: UnsafeMutablePointer<cw_upload_result>!,
    _ size: Int
) -> cw_status {
    unsafe uploading("cw_upload", out, size) {
        (result: inout UploadResult) throws(CordwoodError) in
        try unsafe engine(handle).upload(timeout: Duration(ms: timeout), result: &result)
    }
}

@_cdecl("cw_upload_preview") @implementation
public func cw_upload_preview(
    _ handle: OpaquePointer!, _ target: UInt32, _ sink: cw_bytes_fn!,
    _ user: UnsafeMutableRawPointer!
) -> cw_status {
    status { () throws(CordwoodError) in
        guard let sink = unsafe sink else {
            throw CordwoodError(Status.argument, "cw_upload_preview: sink is NULL")
        }
        let count = try unsafe engine(handle).uploadPreview(target: target) {
            unsafe sink(user, $0.baseAddress, $0.count)
        }
        return count > 0 ? Status.ok : Status.end
    }
}

@_cdecl("cw_upload_async") @implementation
public func cw_upload_async(
    _ handle: OpaquePointer!, _ done: cw_upload_done_fn!, _ user: UnsafeMutableRawPointer!
) -> cw_status {
    status { () throws(CordwoodError) in
        let user = unsafe HostPointer(value: user)
        let engine = try unsafe engine(handle)
        guard let done = unsafe done else {
            try engine.beginUpload(nil)
            return Status.ok
        }
        try engine.beginUpload { status, result in
            var converted = convert(result, MemoryLayout<cw_upload_result>.size)
            unsafe done(user.value, status, &converted)
        }
        return Status.ok
    }
}
