// How transfers failed: cw_upload_last_error and the text for people (upload.h).
// SAFETY: as in ErrorBlock, which makes and reads the errors.

import CCordwood
import CordwoodCore
import CordwoodEngine
import CordwoodFormats
import CordwoodShip
import CordwoodStore
import CordwoodTrace

@_cdecl("cw_upload_last_error") @implementation
public func cw_upload_last_error(
    _ handle: OpaquePointer!, _ target: UnsafePointer<CChar>!,
    _ out: UnsafeMutablePointer<UnsafePointer<cw_upload_error>?>!
) -> cw_status {
    status { () throws(CordwoodError) in
        guard let out = unsafe out else {
            throw CordwoodError(Status.argument, "cw_upload_last_error: out is NULL")
        }
        let engine = try unsafe engine(handle)
        guard let last = try engine.lastTransferError(target: unsafe CText.string(target)) else {
            return Status.end
        }
        guard let block = unsafe ErrorBlock.make(ErrorBlock.Whole(last.failure)) else {
            throw CordwoodError(Status.memory, "no memory for the error")
        }
        unsafe out.pointee = UnsafePointer(block)
        return Status.ok
    }
}

@_cdecl("cw_upload_error_free") @implementation
public func cw_upload_error_free(
    _ error: UnsafeMutablePointer<UnsafePointer<cw_upload_error>?>!
) -> cw_status {
    guard let error = unsafe error else {
        return failed(Status.argument, "cw_upload_error_free: error is NULL")
    }
    unsafe Memory.free(UnsafeMutableRawPointer(mutating: error.pointee))
    unsafe error.pointee = nil
    return Status.ok
}

@_cdecl("cw_upload_error_text") @implementation
public func cw_upload_error_text(
    _ error: UnsafePointer<cw_upload_error>!, _ language: UnsafePointer<CChar>!,
    _ buffer: UnsafeMutablePointer<CChar>!, _ n: Int
) -> Int {
    var text = ""
    if let error = unsafe error {
        let words = OutcomeLanguage(unsafe CText.string(language))
        text = unsafe ErrorBlock.detail(error.pointee).text(words)
    }
    return unsafe putText(text, buffer, n)
}

@_cdecl("cw_outcome_text") @implementation
public func cw_outcome_text(
    _ outcome: Int32, _ language: UnsafePointer<CChar>!
) -> UnsafePointer<CChar>! {
    // Without a String, because a signal handler may call this.
    let isGerman = unsafe ErrorBlock.isGerman(language)
    let kind = OutcomeKind(rawValue: outcome) ?? .unknown
    return unsafe Sentences.pointer(kind.sentence(isGerman ? .german : .english))
}
