// The calls of http.h for Swift strings: one exchange from begin to end. For hosts with clients or
// servers of another kind (examples/hummingbird), and for URLSession's here.
// SAFETY: the handle is the exchange's own until `end`, which takes it away. What C is shown
// points into `Texts`, which outlives the call.

import CCordwood
import Cordwood
import Foundation

/// How an exchange went. Times of 0 are not known.
struct Outcome {
    var error = ""
    var errorType = ""
    var isCancelled = false
    var durationNs: UInt64 = 0
    var receiveNs: UInt64 = 0
}

extension HTTPCapture {
    /// One request and its answer. One thread or task at a time; it ends when it goes, if not
    /// before.
    /// SAFETY: who has it takes turns.
    @safe public final class Exchange: @unchecked Sendable {
        public enum Side: Sendable { case client, server }

        private var handle: HTTPCapture.Handle?
        /// What `cordwood http show` takes.
        public let id: String

        /// nil: it is not captured.
        public init?(
            _ engine: Engine, side: Side = .client, method: String, url: String,
            headers: [(String, String)], redirectedFrom: String? = nil
        ) {
            var texts = Texts()
            let (methodText, urlText) = (texts.add(method), texts.add(url))
            let names = headers.map { (texts.add($0.0), texts.add($0.1)) }
            let from = redirectedFrom.map { texts.addTerminated($0) }
            var made: HTTPCapture.Handle?
            unsafe texts.show { base in
                var lines = unsafe names.map {
                    unsafe cw_http_header(name: base.text($0.0), value: base.text($0.1))
                }
                unsafe lines.withUnsafeMutableBufferPointer { lines in
                    var request = unsafe cw_http_request()
                    unsafe request.struct_size = UInt32(MemoryLayout<cw_http_request>.size)
                    unsafe request.side =
                        side == .server ? UInt32(CW_HTTP_SERVER) : UInt32(CW_HTTP_CLIENT)
                    unsafe request.method = base.text(methodText)
                    unsafe request.url = base.text(urlText)
                    unsafe request.headers = UnsafePointer(lines.baseAddress)
                    unsafe request.header_count = lines.count
                    if let from { unsafe request.redirected_from = base.text(from).data }
                    _ = unsafe HTTPCapture.begin(engine.block, request, &made)
                }
            }
            guard let made = unsafe made else { return nil }
            unsafe handle = made
            id = unsafe String(cString: HTTPCapture.id(made))
        }

        deinit { end(Outcome()) }

        /// More of what goes out, or comes in at a server.
        public func requestBody(_ bytes: UnsafeRawBufferPointer) {
            guard let handle = unsafe handle else { return }
            unsafe HTTPCapture.requestBody(handle, bytes.baseAddress, bytes.count)
        }

        /// More of the answer's body.
        public func responseBody(_ bytes: UnsafeRawBufferPointer) {
            guard let handle = unsafe handle else { return }
            unsafe HTTPCapture.responseBody(handle, bytes.baseAddress, bytes.count)
        }

        /// That many came which nobody showed.
        func responseBodyHidden(_ count: Int) {
            guard let handle = unsafe handle else { return }
            unsafe HTTPCapture.responseBody(handle, nil, count)
        }

        func requestBodyHidden(_ count: Int) {
            guard let handle = unsafe handle else { return }
            unsafe HTTPCapture.requestBody(handle, nil, count)
        }

        /// The answer's status and headers.
        public func response(status: Int, headers: [(String, String)]) {
            guard let handle = unsafe handle else { return }
            var texts = Texts()
            let names = headers.map { (texts.add($0.0), texts.add($0.1)) }
            unsafe texts.show { base in
                var lines = unsafe names.map {
                    unsafe cw_http_header(name: base.text($0.0), value: base.text($0.1))
                }
                unsafe lines.withUnsafeMutableBufferPointer { lines in
                    var response = unsafe cw_http_response()
                    unsafe response.struct_size = UInt32(MemoryLayout<cw_http_response>.size)
                    unsafe response.status = Int32(clamping: status)
                    unsafe response.headers = UnsafePointer(lines.baseAddress)
                    unsafe response.header_count = lines.count
                    unsafe HTTPCapture.response(handle, response)
                }
            }
        }

        /// Writes the record; what is called afterwards does nothing. error: why there is no
        /// answer, or not all of it.
        public func end(error: String = "", type: String = "", isCancelled: Bool = false) {
            end(Outcome(error: error, errorType: type, isCancelled: isCancelled))
        }

        func end(_ how: Outcome) {
            guard let handle = unsafe handle else { return }
            unsafe self.handle = nil
            var texts = Texts()
            let (error, type) = (texts.add(how.error), texts.add(how.errorType))
            unsafe texts.show { base in
                var outcome = unsafe cw_http_outcome()
                unsafe outcome.struct_size = UInt32(MemoryLayout<cw_http_outcome>.size)
                unsafe outcome.flags = how.isCancelled ? UInt32(CW_HTTP_CANCELLED) : 0
                unsafe outcome.error = base.text(error)
                unsafe outcome.error_type = base.text(type)
                unsafe outcome.duration_ns = how.durationNs
                unsafe outcome.receive_ns = how.receiveNs
                _ = unsafe HTTPCapture.end(handle, outcome)
            }
        }
    }
}

/// Strings in one buffer, shown to C by where they stand.
private struct Texts {
    private var bytes: [UInt8] = []

    mutating func add(_ text: String) -> Range<Int> {
        let start = bytes.count
        bytes.append(contentsOf: text.utf8)
        return start..<bytes.count
    }

    mutating func addTerminated(_ text: String) -> Range<Int> {
        let range = add(text)
        bytes.append(0)
        return range
    }

    func show(_ body: (Shown) -> Void) {
        unsafe bytes.withUnsafeBytes { unsafe body(Shown($0)) }
    }
}

/// SAFETY: ranges are those that `Texts` gave out for these bytes.
@unsafe private struct Shown {
    private let bytes: UnsafeRawBufferPointer

    init(_ bytes: UnsafeRawBufferPointer) { unsafe self.bytes = bytes }

    func text(_ range: Range<Int>) -> cw_str {
        guard let base = unsafe bytes.baseAddress else { return unsafe cw_str() }
        return unsafe cw_str(
            data: (base + range.lowerBound).assumingMemoryBound(to: CChar.self),
            length: range.count)
    }
}
