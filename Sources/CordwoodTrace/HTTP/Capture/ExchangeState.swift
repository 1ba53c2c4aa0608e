// A request and its answer while they are under way: the known parts, mostly redacted and encoded
// already. Made by begin, owned by the host's handle, reused after end; one thread at a time. The
// memory lies outside Swift's objects, so that it needs no reference counts and no locks.
// SAFETY: `fixed` is fixedBytes from malloc and freed with the exchange: the id's text, then the
// trace. `held` is an HTTPRules. `logger` and its engine are never unmapped.

import CordwoodCore
import CordwoodFormats
import CCordwood
import CShims

@safe struct ExchangeState: ~Copyable {
    /// The id's 16 digits and a NUL, then 25 bytes of trace (FORMAT §8.4).
    private static let fixedBytes = 64
    private static let traceOffset = 24
    /// The largest buffer that an exchange keeps for its next use.
    private static let keptBytesMax = 32 << 10

    let fixed: UnsafeMutableRawPointer
    /// Retained from begin to clear.
    private var held: Unmanaged<AnyObject>?
    var hasTrace = false
    var startNs: UInt64 = 0
    var begunNs: UInt64 = 0
    var isServer = false
    var status: Int32 = 0

    /// `GET https://host/path`, the start of its messages.
    var title = GrowingBytes()
    /// Fields that both records share.
    var common = FieldBuffer()
    /// The host's own fields, which follow them.
    var own = FieldBuffer()
    var protocolName = GrowingBytes()
    var request = HTTPHeaders()
    var response = HTTPHeaders()
    var requestBody = HTTPBody()
    var responseBody = HTTPBody()
    var hasConversation = false
    /// The engine if its records make no archive by themselves (HTTPOrigins).
    var uncounted: EngineBlock?
    /// The entries of `keep_text` and `keep_keys` that name its address.
    var keptTexts: UInt64 = 0
    var keptKeys: UInt64 = 0
    /// The fork generation of the process that began it.
    private(set) var forks: UInt32 = 0
    /// The place of error.type in `fields`.
    var errorType = 0..<0

    // Temporary.
    var fields = FieldBuffer()
    var message = GrowingBytes()
    var requestRoom = GrowingBytes()
    var responseRoom = GrowingBytes()
    var edits = Edits()

    init?() {
        guard let memory = unsafe Memory.allocateZeroed(ExchangeState.fixedBytes) else {
            return nil
        }
        unsafe fixed = memory
    }

    deinit { unsafe Memory.free(fixed) }

    /// Takes ownership of the reference.
    mutating func begin(_ rules: Unmanaged<AnyObject>) {
        unsafe held = rules
        forks = cwi_fork_generation()
    }

    mutating func clear() {
        unsafe held?.release()
        unsafe held = nil
        hasTrace = false
        (startNs, begunNs, status) = (0, 0, 0)
        (keptTexts, keptKeys) = (0, 0)
        isServer = false
        hasConversation = false
        unsafe uncounted = nil
        errorType = 0..<0
        let most = ExchangeState.keptBytesMax
        title.clear(keeping: most)
        common.clear(keeping: most)
        own.clear(keeping: most)
        protocolName.clear(keeping: most)
        request.clear(keeping: most)
        response.clear(keeping: most)
        requestBody.clear(keeping: most)
        responseBody.clear(keeping: most)
        fields.clear(keeping: most)
        message.clear(keeping: most)
        requestRoom.clear(keeping: most)
        responseRoom.clear(keeping: most)
        edits.clear()
    }

    /// The host's own transport sends it. Whoever sends to a server chooses the headers, so only
    /// requests of this process's own count.
    var isUpload: Bool { request.isUpload && !isServer }

    /// nil: the exchange is over.
    var redactor: Redactor? {
        guard let held = unsafe held else { return nil }
        var redactor = unsafe Redactor(held)
        redactor.kept = keptKeys
        return redactor
    }

    var bodyBytesMax: Int { unsafe redactor?.rules.bodyBytesMax ?? 0 }

    var id: UnsafePointer<CChar> { unsafe UnsafePointer(fixed.assumingMemoryBound(to: CChar.self)) }

    var idText: ByteText { unsafe ByteText(fixed.assumingMemoryBound(to: UInt8.self), 16) }

    mutating func setID(_ number: UInt64) {
        for i in 0..<16 {
            let digit = UInt8(truncatingIfNeeded: number >> UInt64(60 &- 4 &* i) & 15)
            unsafe fixed.storeBytes(of: ASCII.hexDigit(digit), toByteOffset: i, as: UInt8.self)
        }
    }

    /// 25 bytes.
    var trace: UnsafeMutableRawPointer { unsafe fixed + ExchangeState.traceOffset }
}

/// Ended exchanges that wait for reuse. The words are exchanged atomically without a lock, so a
/// child forked at any moment finds each of them full or empty.
enum ExchangePool {
    private static let count = 8
    // SAFETY: `count` atomic words, each 0 or an exchange without another owner, in static memory.
    private static var slots: UnsafeMutableRawPointer { unsafe cwi_exchange_pool() }

    static func take() -> UnsafeMutablePointer<ExchangeState>? {
        for i in 0..<count {
            let slot = unsafe slots + i * 8
            // ORDER: relaxed. A preliminary look; the exchange decides.
            guard unsafe cwa_load_relaxed_u64(slot) != 0 else { continue }
            // ORDER: the exchange's own: the writes of clear are visible (A33).
            let word = unsafe cwa_exchange_u64(slot, 0)
            if word != 0 { return unsafe UnsafeMutablePointer(bitPattern: UInt(word)) }
        }
        guard let fresh = ExchangeState(),
            let memory = unsafe Memory.allocate(MemoryLayout<ExchangeState>.size)
        else { return nil }
        let made = unsafe memory.bindMemory(to: ExchangeState.self, capacity: 1)
        unsafe made.initialize(to: fresh)
        return unsafe made
    }

    static func put(_ exchange: UnsafeMutablePointer<ExchangeState>) {
        unsafe exchange.pointee.clear()
        let word = UInt64(UInt(bitPattern: exchange))
        for i in 0..<count {
            // ORDER: the exchange's own (A33).
            if unsafe cwa_cas_u64(slots + i * 8, 0, word) { return }
        }
        unsafe exchange.deinitialize(count: 1)
        unsafe Memory.free(exchange)
    }
}
