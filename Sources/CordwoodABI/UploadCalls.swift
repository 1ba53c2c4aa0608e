// Targets and uploads: check, convert, call, return.
// SAFETY: as the header says: options and results hold during the call, `user` until the callback
// has run; results are written as far as the host's size allows.

import CCordwood
import Cordwood
import CordwoodCore
import CordwoodShip

@_cdecl("cw_target_options_init") @implementation
public func cw_target_options_init(
    _ options: UnsafeMutablePointer<cw_target_options>!, _ size: Int
) {
    guard let options = unsafe options, unsafe size >= MemoryLayout<cw_target_options>.size else {
        return
    }
    unsafe UnsafeMutableRawPointer(options).initializeMemory(
        as: UInt8.self, repeating: 0, count: size)
    unsafe options.pointee.struct_size = UInt32(truncatingIfNeeded: size)
    unsafe options.pointee.connect_timeout_ms = Target.connectTimeoutMsDefault
    unsafe options.pointee.request_timeout_ms = Target.requestTimeoutMsDefault
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
        let stamp = unsafe Stamped.copy(options, into: &copy)
        guard stamp == Status.ok else {
            throw unsafe CordwoodError(
                stamp,
                Stamped.text(
                    stamp, "cw_target_options", options.pointee.struct_size,
                    MemoryLayout<cw_target_options>.size))
        }
        let number = try unsafe engine(handle).addTarget(
            try convert(copy), attempting: attempting(copy), completed: completed(copy))
        if let out = unsafe out { unsafe out.pointee = number }
        return Status.ok
    }
}

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
    result.connectTimeoutMs = unsafe options.connect_timeout_ms
    result.requestTimeoutMs = unsafe options.request_timeout_ms
    result.bytesPerSecond = unsafe options.bytes_per_s
    return result
}

private func attempting(_ options: cw_target_options) -> Target.Attempting? {
    guard let call = unsafe options.attempting else { return nil }
    let user = unsafe HostPointer(value: options.user)
    return { archive, attempt in unsafe call(user.value, archive, attempt) }
}

private func completed(_ options: cw_target_options) -> Target.Completed? {
    guard let call = unsafe options.completed else { return nil }
    let user = unsafe HostPointer(value: options.user)
    return { archive, status, http in unsafe call(user.value, archive, status.rawValue, http) }
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
    return converted
}

@_cdecl("cw_upload") @implementation
public func cw_upload(
    _ handle: OpaquePointer!, _ timeout: UInt32, _ out: UnsafeMutablePointer<cw_upload_result>!,
    _ size: Int
) -> cw_status {
    if unsafe out != nil, size < MemoryLayout<cw_upload_result>.size {
        return failed(Status.structSize, "cw_upload: size_of_result is \(size)")
    }
    var result = UploadResult()
    let answer = status { () throws(CordwoodError) in
        let engine = try unsafe engine(handle)
        let answer = try engine.upload(timeoutMs: timeout, result: &result)
        guard answer < 0 else { return answer }
        throw CordwoodError(
            answer,
            unsafe "\(String(cString: cw_strerror(answer))): \(result.uploaded) sent, "
                + "\(result.failed) failed, \(result.waiting) waiting, "
                + "last HTTP status \(result.lastHTTPStatus)")
    }
    if let out = unsafe out, answer != Status.argument, answer != Status.closed {
        let known = MemoryLayout<cw_upload_result>.size
        unsafe out.pointee = convert(result, size)
        if size > known {
            unsafe (UnsafeMutableRawPointer(out) + known).initializeMemory(
                as: UInt8.self, repeating: 0, count: size - known)
        }
    }
    return answer
}

@_cdecl("cw_upload_async") @implementation
public func cw_upload_async(
    _ handle: OpaquePointer!, _ done: cw_upload_done_fn!, _ user: UnsafeMutableRawPointer!
) -> cw_status {
    status { () throws(CordwoodError) in
        let user = unsafe HostPointer(value: user)
        let engine = try unsafe engine(handle)
        guard let done = unsafe done else {
            try engine.uploadAsync(nil)
            return Status.ok
        }
        try engine.uploadAsync { status, result in
            var converted = convert(result, MemoryLayout<cw_upload_result>.size)
            unsafe done(user.value, status, &converted)
        }
        return Status.ok
    }
}
