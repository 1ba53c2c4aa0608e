// Transfers of a host's libcurl (curl_transfer.h): check, convert, call, return.
// SAFETY: pointers are the host's and hold during the call; NULL, lengths and sizes are checked
// before one is followed, facts are copied before they are used. Transfers are those that we gave.

import CCordwood
import CordwoodCore
import CordwoodEngine
import CordwoodFormats
import CordwoodShip
import CordwoodStore
import CordwoodTrace

@_cdecl("cw_curl_transfer_begin") @implementation
public func cw_curl_transfer_begin(
    _ handle: OpaquePointer!, _ out: UnsafeMutablePointer<OpaquePointer?>!
) -> cw_status {
    guard let out = unsafe out else {
        return failed(Status.argument, "cw_curl_transfer_begin: out is NULL")
    }
    unsafe out.pointee = nil
    guard let handle = unsafe handle else {
        return failed(Status.argument, "cw_curl_transfer_begin: engine is NULL")
    }
    let block = unsafe EngineBlock(handle)
    guard unsafe HTTPCapture.isOn(block) else { return Status.disabled }
    guard let made = unsafe CurlTransfer.begin(block) else {
        return failed(Status.memory, "no memory for the transfer")
    }
    unsafe out.pointee = OpaquePointer(made)
    return Status.ok
}

@_cdecl("cw_curl_transfer_tell") @implementation
public func cw_curl_transfer_tell(
    _ transfer: OpaquePointer!, _ kind: UInt32, _ bytes: UnsafeRawPointer!, _ length: Int,
    _ facts: UnsafePointer<cw_curl_facts>!
) -> cw_status {
    guard let transfer = unsafe transfer else { return Status.disabled }
    guard length >= 0, unsafe bytes != nil || length == 0 else {
        return failed(
            Status.argument,
            "cw_curl_transfer_tell: bytes is NULL, or the length is \(sizeText(length))")
    }
    var copy = unsafe cw_curl_facts()
    if let facts = unsafe facts, let wrong = unsafe Stamped.read(facts, into: &copy) {
        return failed(wrong)
    }
    unsafe CurlTransfer.tell(CurlTransfer.Handle(transfer), kind, bytes, length, copy)
    return Status.ok
}

@_cdecl("cw_curl_transfer_end") @implementation
public func cw_curl_transfer_end(
    _ transfer: UnsafeMutablePointer<OpaquePointer?>!, _ facts: UnsafePointer<cw_curl_facts>!,
    _ id: UnsafeMutablePointer<CChar>!
) -> cw_status {
    unsafe id?.pointee = 0
    guard let transfer = unsafe transfer else {
        return failed(Status.argument, "cw_curl_transfer_end: transfer is NULL")
    }
    guard let handle = unsafe transfer.pointee else { return Status.disabled }
    unsafe transfer.pointee = nil
    var copy = unsafe cw_curl_facts()
    var wrong: CordwoodError?
    if let facts = unsafe facts { wrong = unsafe Stamped.read(facts, into: &copy) }
    unsafe CurlTransfer.end(CurlTransfer.Handle(handle), copy, id: id)
    return wrong.map { failed($0) } ?? Status.ok
}

@_cdecl("cw_curl_error_type") @implementation
public func cw_curl_error_type(_ code: Int32, _ isPacked: Bool) -> UnsafePointer<CChar>! {
    unsafe Sentences.pointer(CurlCode.errorType(code, isPacked: isPacked))
}
