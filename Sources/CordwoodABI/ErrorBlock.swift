// cw_upload_error as hosts get it, for failed transfers and for their own failed requests.
// SAFETY: an error is one block of calloc: the struct, its details, then the texts; every pointer
// in it points into it, and it is freed whole. Callers only pass errors that we gave them.

import CCordwood
import CordwoodCore
import CordwoodEngine
import CordwoodFormats
import CordwoodShip
import CordwoodStore
import CordwoodTrace

enum ErrorBlock {
    /// Texts are laid one after the other, each with its NUL.
    @safe struct Texts {
        // SAFETY: as large as all texts together, with their NULs.
        var next: UnsafeMutablePointer<CChar>

        mutating func put(_ text: String) -> cw_str {
            var text = text
            let start = unsafe next
            let count = text.withUTF8 { utf8 in
                if let source = utf8.baseAddress {
                    unsafe UnsafeMutableRawPointer(start).copyMemory(
                        from: source, byteCount: utf8.count)
                }
                return utf8.count
            }
            unsafe start[count] = 0
            unsafe next = start + count + 1
            return unsafe cw_str(data: UnsafePointer(start), length: count)
        }
    }

    /// A failed upload, or a failed request of the host's.
    struct Whole {
        var detail: FailureDetail
        var unixMs: UInt64
        var target: String
        var archive = ""
        var attempt: UInt32 = 0
        var method = ""
        var url = ""
        var exchangeID = ""

        init(_ failure: TransferFailure) {
            detail = failure.detail
            unixMs = failure.unixMs
            target = failure.target
            archive = failure.archive
            attempt = failure.attempt
        }

        init(_ failure: RequestFailure) {
            detail = failure.detail
            unixMs = failure.unixMs
            target = failure.origin
            method = failure.method
            url = failure.url
            exchangeID = failure.exchangeID
        }
    }

    static func make(_ whole: Whole) -> UnsafeMutablePointer<cw_upload_error>? {
        let detail = whole.detail
        let odata = detail.odata ?? ODataError()
        let words = [
            whole.target, whole.archive, detail.cause, detail.location, odata.code,
            odata.message, odata.language, odata.transactionID, whole.method, whole.url,
            whole.exchangeID,
        ]
        let all = words + odata.details.flatMap { [$0.code, $0.message, $0.property, $0.severity] }
        let head = unsafe MemoryLayout<cw_upload_error>.stride
        let list = unsafe odata.details.count * MemoryLayout<cw_upload_error_detail>.stride
        let bytes = all.reduce(head + list) { $0 + $1.utf8.count + 1 }
        guard let memory = unsafe Memory.allocateZeroed(bytes) else { return nil }
        let error = unsafe memory.assumingMemoryBound(to: cw_upload_error.self)
        var texts = unsafe Texts(
            next: (memory + head + list).assumingMemoryBound(to: CChar.self))
        unsafe error.pointee.struct_size = UInt32(MemoryLayout<cw_upload_error>.size)
        unsafe error.pointee.outcome = detail.kind.rawValue
        unsafe error.pointee.http_status = detail.httpStatus
        unsafe error.pointee.attempt = whole.attempt
        unsafe error.pointee.time_ns = whole.unixMs &* 1_000_000
        unsafe error.pointee.retry_after_ms = detail.retryAfterMs ?? .max
        unsafe error.pointee.target = texts.put(words[0])
        unsafe error.pointee.archive = texts.put(words[1])
        unsafe error.pointee.cause = texts.put(words[2])
        unsafe error.pointee.location = texts.put(words[3])
        unsafe error.pointee.code = texts.put(words[4])
        unsafe error.pointee.message = texts.put(words[5])
        unsafe error.pointee.language = texts.put(words[6])
        unsafe error.pointee.transaction_id = texts.put(words[7])
        unsafe error.pointee.method = texts.put(words[8])
        unsafe error.pointee.url = texts.put(words[9])
        unsafe error.pointee.exchange_id = texts.put(words[10])
        guard !odata.details.isEmpty else { return unsafe error }
        let details = unsafe (memory + head).assumingMemoryBound(to: cw_upload_error_detail.self)
        for (index, one) in odata.details.enumerated() {
            unsafe details[index].code = texts.put(one.code)
            unsafe details[index].message = texts.put(one.message)
            unsafe details[index].property = texts.put(one.property)
            unsafe details[index].severity = texts.put(one.severity)
        }
        unsafe error.pointee.details = UnsafePointer(details)
        unsafe error.pointee.detail_count = odata.details.count
        return unsafe error
    }

    /// The basis of the text for people and of the record's fields.
    static func detail(_ error: cw_upload_error) -> FailureDetail {
        var odata = ODataError()
        unsafe odata.code = string(error.code)
        unsafe odata.message = string(error.message)
        unsafe odata.language = string(error.language)
        unsafe odata.transactionID = string(error.transaction_id)
        for index in unsafe 0..<max(0, error.detail_count) {
            guard let one = unsafe error.details?[index] else { break }
            var detail = ODataError.Detail()
            unsafe detail.code = string(one.code)
            unsafe detail.message = string(one.message)
            unsafe detail.property = string(one.property)
            unsafe detail.severity = string(one.severity)
            odata.details.append(detail)
        }
        return unsafe FailureDetail(
            kind: OutcomeKind(rawValue: error.outcome) ?? .unknown, httpStatus: error.http_status,
            cause: string(error.cause), location: string(error.location),
            retryAfterMs: error.retry_after_ms == .max ? nil : error.retry_after_ms,
            odata: odata == ODataError() ? nil : odata)
    }

    static func string(_ text: cw_str) -> String {
        guard let data = unsafe text.data else { return "" }
        return unsafe String(
            decoding: UnsafeRawBufferPointer(start: data, count: text.length), as: UTF8.self)
    }

    /// True for `de`, in any case, followed by the end or a byte that is not a letter.
    static func isGerman(_ language: UnsafePointer<CChar>?) -> Bool {
        guard let language = unsafe language,
            unsafe UInt8(bitPattern: language[0]) | 0x20 == UInt8(ascii: "d"),
            unsafe UInt8(bitPattern: language[1]) | 0x20 == UInt8(ascii: "e")
        else { return false }
        let third = unsafe UInt8(bitPattern: language[2])
        return third == 0 || "-_.@".utf8.contains(third)
    }
}
