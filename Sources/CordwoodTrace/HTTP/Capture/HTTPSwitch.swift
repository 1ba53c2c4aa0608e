// Whether and how an engine captures HTTP exchanges: words of its block, which every call of a host
// reads. The control file overrides the host. Any thread; survives a fork.
// SAFETY: the words lie in the engine's block, which is never unmapped; `http_rules` holds one
// retained object or 0. When it is replaced, a reader may not have retained it yet, so a replaced
// object is released only while no thread is reading (RetiredRules).

import CShims
import CordwoodCore

package enum HTTPSwitch {
    private static func word(_ engine: EngineBlock) -> UnsafeMutableRawPointer {
        unsafe cwi_engine_http_on_at(engine)
    }

    private static func rulesWord(_ engine: EngineBlock) -> UnsafeMutableRawPointer {
        unsafe cwi_engine_http_rules_at(engine)
    }

    /// Costs one load.
    @inline(__always)
    static func isOn(_ engine: EngineBlock) -> Bool {
        // ORDER: relaxed. A hint by itself; rules are loaded with acquire (A33).
        unsafe cwa_load_relaxed_u32(word(engine)) != 0
    }

    /// Retained for the caller; nil: the engine has none yet.
    package static func rules(_ engine: EngineBlock) -> Unmanaged<AnyObject>? {
        RetiredRules.enter()
        defer { RetiredRules.leave() }
        // ORDER: acquire. A thread that finds the rules sees their contents (A33).
        let bits = unsafe cwa_load_acquire_u64(rulesWord(engine))
        guard bits != 0, let pointer = unsafe UnsafeRawPointer(bitPattern: UInt(bits)) else {
            return nil
        }
        return unsafe Unmanaged<AnyObject>.fromOpaque(pointer).retain()
    }

    package static func setRules(_ engine: EngineBlock, _ rules: AnyObject?) {
        let word = unsafe rulesWord(engine)
        let bits = rules.map {
            unsafe UInt(bitPattern: Unmanaged.passRetained($0).toOpaque())
        }
        // ORDER: the exchange's own, which is sequentially consistent (A33).
        RetiredRules.keep(unsafe cwa_exchange_u64(word, UInt64(bits ?? 0)))
    }

    /// Sets the first rules, unless another thread was faster.
    package static func setFirstRules(_ engine: EngineBlock, _ rules: AnyObject) {
        let pointer = unsafe Unmanaged.passRetained(rules).toOpaque()
        if unsafe !cwa_cas_u64(rulesWord(engine), 0, UInt64(UInt(bitPattern: pointer))) {
            unsafe Unmanaged.passUnretained(rules).release()
        }
    }

    package static func close(_ engine: EngineBlock) {
        unsafe cwa_store_relaxed_u32(word(engine), 0)
        unsafe setRules(engine, nil)
    }

    /// nil: unchanged. Called under the services' monitor.
    package static func set(_ engine: EngineBlock, host: Bool? = nil, control: Bool?? = .none) {
        if let host { unsafe engine.pointee.http_host = host ? 1 : 0 }
        if let control { unsafe engine.pointee.http_control = control.map { $0 ? 2 : 1 } ?? 0 }
        let said = unsafe engine.pointee.http_control
        let isOn = unsafe said == 0 ? engine.pointee.http_host != 0 : said == 2
        // ORDER: relaxed. A hint by itself (A33).
        unsafe cwa_store_relaxed_u32(word(engine), isOn ? 1 : 0)
    }
}

/// Rules that were replaced while a reader may have been about to retain them. A reader is in that
/// window for a few instructions, and one word counts all readers of the process. If the word is
/// zero after a replacement, every thread that has the old rules has retained them.
private enum RetiredRules {
    private static let count = 64
    // SAFETY: the count of readers and `count` atomic words that hold retained references or 0, in
    // static memory.
    private static var words: UnsafeMutableRawPointer { unsafe cwi_retired_rules() }

    @inline(__always)
    static func enter() {
        // ORDER: the addition is seen before the rules are loaded (A33).
        _ = unsafe cwa_add_u64(words, 1)
        cwa_fence_full()
    }

    @inline(__always)
    static func leave() {
        // ORDER: the retaining comes before (A33).
        cwa_fence_full()
        _ = unsafe cwa_add_u64(words, .max)
    }

    /// A reader copied by a fork counts forever: from then on nothing is released.
    static func keep(_ bits: UInt64) {
        guard bits != 0 else { return }
        put(bits)
        sweep()
    }

    /// If all words are taken, the rules are never released.
    private static func put(_ bits: UInt64) {
        for index in 1...count where unsafe cwa_cas_u64(words + index * 8, 0, bits) { return }
    }

    private static func sweep() {
        for index in 1...count {
            let slot = unsafe words + index * 8
            // ORDER: the exchange's own; only the thread that takes it out releases it (A33).
            let bits = unsafe cwa_exchange_u64(slot, 0)
            guard bits != 0 else { continue }
            // ORDER: readers are counted after the rules were replaced (A33).
            cwa_fence_full()
            if unsafe cwa_load_acquire_u64(words) == 0 {
                if let pointer = unsafe UnsafeRawPointer(bitPattern: UInt(bits)) {
                    unsafe Unmanaged<AnyObject>.fromOpaque(pointer).release()
                }
            } else {
                put(bits)
            }
        }
    }
}
