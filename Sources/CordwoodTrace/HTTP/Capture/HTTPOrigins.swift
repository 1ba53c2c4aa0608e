// The origins of an engine's targets. Exchanges with them may be uploads: requests received at a
// target's origin, and requests sent to the origin of a target that has the host's own transport.
// Their records are kept like all others, but make no archive by themselves: it would be uploaded,
// captured, and so on. Words of the engine's block: any thread; survives a fork.
// SAFETY: the words lie in the engine's block, which is never unmapped.

import CShims
import CordwoodCore
import CordwoodFormats

package enum HTTPOrigins {
    package struct Origin {
        /// `https://host:port`.
        let text: String
        /// By a transport whose requests captures see.
        let isSentToByHost: Bool

        package init(_ text: String, isSentToByHost: Bool) {
            self.text = text
            self.isSentToByHost = isSentToByHost
        }
    }

    private static let sentToByHost: UInt64 = 1
    /// In every word that is not empty.
    private static let isThere: UInt64 = 2

    private static func word(_ engine: EngineBlock, _ index: Int) -> UnsafeMutableRawPointer {
        unsafe cwi_engine_origins_at(engine) + index * 8
    }

    /// Replaces them; one thread at a time.
    package static func set(_ engine: EngineBlock, _ origins: [Origin]) {
        let count = min(origins.count, Int(CWI_ORIGINS_MAX))
        for (index, origin) in origins.prefix(count).enumerated() {
            let number = unsafe Array(origin.text.utf8).withUnsafeBufferPointer {
                unsafe HTTPOrigins.number(URLParts(ByteText($0.baseAddress, $0.count)))
            }
            let bit = origin.isSentToByHost ? sentToByHost : 0
            // ORDER: relaxed, all. Each word is a hint by itself (A33).
            unsafe cwa_store_relaxed_u64(word(engine, index), number | bit)
        }
        guard count < Int(CWI_ORIGINS_MAX) else { return }
        unsafe cwa_store_relaxed_u64(word(engine, count), 0)
    }

    /// Costs one load if the engine has no targets.
    @inline(__always)
    static func mayUpload(_ engine: EngineBlock, _ url: URLParts, isServer: Bool) -> Bool {
        // ORDER: relaxed. As above.
        guard unsafe cwa_load_relaxed_u64(word(engine, 0)) != 0 else { return false }
        return unsafe has(engine, number(url), isServer: isServer)
    }

    @inline(never)
    private static func has(_ engine: EngineBlock, _ number: UInt64, isServer: Bool) -> Bool {
        for index in 0..<Int(CWI_ORIGINS_MAX) {
            // ORDER: relaxed. As above.
            let found = unsafe cwa_load_relaxed_u64(word(engine, index))
            if found == 0 { return false }
            // Several targets may have one origin.
            if found & ~sentToByHost == number, isServer || found & sentToByHost != 0 {
                return true
            }
        }
        return false
    }

    /// Of host and port. A server behind a proxy may not know the scheme, so 80, 443 and none are
    /// one port.
    private static func number(_ url: URLParts) -> UInt64 {
        let port = url.port == 80 || url.port == 443 ? 0 : url.port
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325 ^ UInt64(port)
        for index in 0..<url.host.count {
            hash = (hash ^ UInt64(ASCII.lower(url.host[index]))) &* 0x0000_0100_0000_01B3
        }
        return (hash ^ (hash >> 32)) & ~sentToByHost | isThere
    }
}
