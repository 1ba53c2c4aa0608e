// Whether and how an engine captures HTTP exchanges: words of its block, which every call of a host
// reads. The control file goes before the host. What is captured, and how it is redacted, is known
// in Capture; here the rules are an object like any other. Any thread; survives a fork.
// SAFETY: the words lie in the engine's block, which is never unmapped; `http_rules` holds one
// retained object or 0. Who reads it may not have retained it yet when it is replaced, so an object
// is let go only after 64 more were (as ClosedServices).

import CShims
import CordwoodCore

enum HTTPSwitch {
    private static func word(_ engine: EngineBlock) -> UnsafeMutableRawPointer {
        unsafe UnsafeMutableRawPointer(engine) + MemoryLayout<cwi_engine>.offset(of: \.http_on)!
    }

    private static func rulesWord(_ engine: EngineBlock) -> UnsafeMutableRawPointer {
        unsafe UnsafeMutableRawPointer(engine) + MemoryLayout<cwi_engine>.offset(of: \.http_rules)!
    }

    /// One load.
    @inline(__always)
    static func isOn(_ engine: EngineBlock) -> Bool {
        // ORDER: relaxed. A hint by itself; rules are loaded with acquire (A33).
        unsafe cwa_load_relaxed_u32(word(engine)) != 0
    }

    /// Valid while the caller finds out, and longer where it retains them: those that were replaced
    /// last are kept.
    static func rules(_ engine: EngineBlock) -> Unmanaged<AnyObject>? {
        // ORDER: acquire. What the rules hold is there when they are found (A33).
        let bits = unsafe cwa_load_acquire_u64(rulesWord(engine))
        guard bits != 0, let pointer = unsafe UnsafeRawPointer(bitPattern: UInt(bits)) else {
            return nil
        }
        return unsafe Unmanaged<AnyObject>.fromOpaque(pointer)
    }

    static func setRules(_ engine: EngineBlock, _ rules: AnyObject?) {
        let word = unsafe rulesWord(engine)
        let bits = unsafe rules.map {
            unsafe UInt(bitPattern: Unmanaged.passRetained($0).toOpaque())
        }
        // ORDER: the exchange's own, which is sequentially consistent (A33).
        RetiredRules.keep(unsafe cwa_exchange_u64(word, UInt64(bits ?? 0)))
    }

    /// The first ones, unless another thread was faster.
    static func setFirstRules(_ engine: EngineBlock, _ rules: AnyObject) {
        let pointer = unsafe Unmanaged.passRetained(rules).toOpaque()
        if unsafe !cwa_cas_u64(rulesWord(engine), 0, UInt64(UInt(bitPattern: pointer))) {
            unsafe Unmanaged.passUnretained(rules).release()
        }
    }

    static func close(_ engine: EngineBlock) {
        unsafe cwa_store_relaxed_u32(word(engine), 0)
        unsafe setRules(engine, nil)
    }

    /// nil: as it was. Under the services' monitor.
    static func set(_ engine: EngineBlock, host: Bool? = nil, control: Bool?? = .none) {
        if let host { unsafe engine.pointee.http_host = host ? 1 : 0 }
        if let control { unsafe engine.pointee.http_control = control.map { $0 ? 2 : 1 } ?? 0 }
        let said = unsafe engine.pointee.http_control
        let isOn = unsafe said == 0 ? engine.pointee.http_host != 0 : said == 2
        // ORDER: relaxed. A hint by itself (A33).
        unsafe cwa_store_relaxed_u32(word(engine), isOn ? 1 : 0)
    }
}

extension Services {
    func setHTTP(host: Bool) {
        monitor.locked { unsafe HTTPSwitch.set(engine, host: host) }
    }
}

/// The rules that were replaced last.
private enum RetiredRules {
    private static let count = 64
    // SAFETY: an index and `count` atomic words that hold retained references; never freed.
    nonisolated(unsafe) private static let words: UnsafeMutableRawPointer = {
        let bytes = (count + 1) * 8
        let words = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: 8)
        unsafe words.initializeMemory(as: UInt64.self, repeating: 0, count: bytes / 8)
        return unsafe words
    }()

    static func keep(_ bits: UInt64) {
        guard bits != 0 else { return }
        let index = unsafe Int(cwa_add_u64(words, 1) % UInt64(count)) + 1
        let oldest = unsafe cwa_exchange_u64(words + index * 8, bits)
        guard let pointer = unsafe UnsafeRawPointer(bitPattern: UInt(oldest)) else { return }
        unsafe Unmanaged<AnyObject>.fromOpaque(pointer).release()
    }
}
