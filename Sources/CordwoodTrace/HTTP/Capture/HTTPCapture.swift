// The calls of a captured exchange, for C and Swift hosts alike: begin, pieces of bodies, the
// answer, end. Between begin and end an exchange belongs to the host, on one thread at a time.
// Different exchanges share nothing but the engine. Nothing here takes a lock; memory comes from
// the heap.
// SAFETY: pointers of requests, responses and outcomes are the host's and hold during the call;
// callers have checked that strings and lists have the bytes that their lengths say.

import CCordwood
import CShims
import CordwoodCore

package enum HTTPCapture {
    package typealias Handle = UnsafeMutableRawPointer

    static let urlBytesMax = 64 << 10
    static let titleBytesMax = 1_024
    static let wordBytesMax = 64
    static let textBytesMax = 4_096
    package static let ownFieldsMax = 64
    package static let ownBytesMax = 4_096

    @inline(__always)
    package static func isOn(_ engine: EngineBlock) -> Bool { unsafe HTTPSwitch.isOn(engine) }

    // MARK: Begin

    /// `out` gets nil unless the status is ok.
    /// - Parameter makeRules: gives an engine its first rules if its host set none.
    package static func begin(
        _ engine: EngineBlock, _ request: cw_http_request, _ out: inout Handle?,
        makeRules: (EngineBlock) -> Void
    ) -> Int32 {
        guard unsafe cwa_load_acquire_u32(engine) == UInt32(CWI_ENGINE_OPEN) else {
            return Status.closed
        }
        guard unsafe isOn(engine) else { return Status.disabled }
        let url = unsafe ByteText(request.url).slice(0, urlBytesMax)
        guard let object = unsafe HTTPSwitch.rules(engine) ?? firstRules(engine, makeRules) else {
            return Status.memory
        }
        let redactor = unsafe Redactor(object)
        let parts = URLParts(url)
        let begun = cw_monotonic_ns()
        let number = unsafe id(redactor.rules.seed, begun)
        guard unsafe redactor.rules.takes(parts),
            unsafe number % 1_000_000 < redactor.rules.samplePerMillion
        else {
            unsafe object.release()
            return Status.disabled
        }
        guard let exchange = unsafe ExchangePool.take() else {
            unsafe object.release()
            return Status.memory
        }
        unsafe exchange.pointee.begin(object)
        unsafe exchange.pointee.begunNs = begun
        unsafe exchange.pointee.startNs =
            request.start_ns != 0 ? request.start_ns : cw_realtime_ns()
        unsafe exchange.pointee.setID(number)
        if unsafe redactor.rules.keepsByAddress {
            unsafe exchange.pointee.keptTexts = redactor.rules.keep.texts(url, parts)
            unsafe exchange.pointee.keptKeys = redactor.rules.keep.keys(url, parts)
        }
        let own = unsafe exchange.pointee.redactor ?? redactor
        unsafe exchange.pointee.take(request, url: url, parts, own)
        if unsafe exchange.pointee.isUpload {
            unsafe ExchangePool.put(exchange)
            return Status.disabled
        }
        if unsafe HTTPOrigins.mayUpload(engine, parts, isServer: exchange.pointee.isServer) {
            unsafe exchange.pointee.uncounted = engine
        }
        unsafe Uncounted.begin(exchange.pointee.uncounted)
        let status = unsafe exchange.pointee.writeBegin(redactor.rules.logger)
        unsafe Uncounted.end(exchange.pointee.uncounted, status)
        guard status == Status.ok || status == Status.full else {
            unsafe ExchangePool.put(exchange)
            return status
        }
        // A full disk may have room when the exchange ends.
        unsafe out = UnsafeMutableRawPointer(exchange)
        return Status.ok
    }

    private static func firstRules(
        _ engine: EngineBlock, _ makeRules: (EngineBlock) -> Void
    ) -> Unmanaged<AnyObject>? {
        unsafe makeRules(engine)
        return unsafe HTTPSwitch.rules(engine)
    }

    package static let loggerName = "HTTP"

    /// Random and unique, even in a forked child, whose threads have other numbers.
    private static func id(_ seed: UInt64, _ now: UInt64) -> UInt64 {
        // ORDER: relaxed addition. It only has to give every call a different number.
        let count = unsafe cwa_add_u64(counter, 1)
        var word = seed &+ (count &* 0x9E37_79B9_7F4A_7C15) ^ now
        word ^= ThreadIdentity.current.bits
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }

    // SAFETY: one atomic word in static memory.
    nonisolated(unsafe) private static let counter: UnsafeMutableRawPointer = {
        let word: UnsafeMutableRawPointer = unsafe cwi_exchange_counter()
        unsafe word.storeBytes(of: UInt64.random(in: 0 ... .max), as: UInt64.self)
        return unsafe word
    }()

    // MARK: Bodies and answer

    private static func exchange(_ handle: Handle) -> UnsafeMutablePointer<ExchangeState> {
        unsafe handle.assumingMemoryBound(to: ExchangeState.self)
    }

    package static func id(_ handle: Handle) -> UnsafePointer<CChar> {
        unsafe exchange(handle).pointee.id
    }

    /// bytes NULL: the number of bytes that the host cannot show.
    package static func requestBody(_ handle: Handle, _ bytes: UnsafeRawPointer?, _ count: Int) {
        unsafe exchange(handle).pointee.addRequestBody(bytes, count)
    }

    package static func responseBody(_ handle: Handle, _ bytes: UnsafeRawPointer?, _ count: Int) {
        unsafe exchange(handle).pointee.addResponseBody(bytes, count)
    }

    package static func response(_ handle: Handle, _ response: cw_http_response) {
        unsafe exchange(handle).pointee.take(response)
    }

    // MARK: End

    /// Ends the exchange; the handle is no longer valid, whatever the status.
    package static func end(_ handle: Handle, _ outcome: cw_http_outcome) -> Int32 {
        let exchange = unsafe exchange(handle)
        unsafe Uncounted.begin(exchange.pointee.uncounted)
        let status = unsafe exchange.pointee.writeEnd(outcome)
        unsafe Uncounted.end(exchange.pointee.uncounted, status)
        unsafe ExchangePool.put(exchange)
        return status
    }
}
