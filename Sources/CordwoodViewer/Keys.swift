// The secrets of a running viewer: links that work once and for a minute, and the cookie that a
// link yields. Any thread. Random bytes come from the system.

import Cordwood
import CordwoodServing
import NIOCore
import Synchronization

final class Keys: Sendable {
    /// The limit of links that were printed and not used; the oldest gives way.
    static let linksMax = 8

    private struct Link {
        let token: [UInt8]
        let until: NIODeadline
    }

    private let links = Mutex<[Link]>([])
    private let linkTimeout: TimeAmount
    /// 128 bits in hex.
    let cookie = Keys.random()
    /// Distinguishes successive viewers on one port.
    private let id = String(Keys.random().prefix(8))
    private let port = Mutex(0)

    init(linkTimeoutMs: Int64) { linkTimeout = .milliseconds(linkTimeoutMs) }

    func setPort(_ number: Int) { port.withLock { $0 = number } }

    /// Cookies ignore ports: another server on this machine may set its own.
    var cookieName: String { "cordwood-\(port.withLock { $0 })-\(id)" }

    func makeLink(now: NIODeadline = .now()) -> String {
        let token = Keys.random()
        links.withLock { links in
            links.removeAll { $0.until <= now }
            if links.count >= Keys.linksMax { links.removeFirst() }
            links.append(Link(token: Array(token.utf8), until: now + linkTimeout))
        }
        return token
    }

    /// True once for each link, until it expires.
    func use(link token: [UInt8], now: NIODeadline = .now()) -> Bool {
        links.withLock { links in
            links.removeAll { $0.until <= now }
            var found: Int?
            for (index, link) in links.enumerated() where Secret.isSame(token, link.token) {
                found = index
            }
            if let found { links.remove(at: found) }
            return found != nil
        }
    }

    func isCookie(_ value: [UInt8]) -> Bool { Secret.isSame(value, Array(cookie.utf8)) }

    /// 128 bits as 32 hex digits.
    private static func random() -> String {
        var generator = SystemRandomNumberGenerator()
        return Hex.text(generator.next() as UInt64) + Hex.text(generator.next() as UInt64)
    }
}
