// A client's address for the limits on connections: an IPv4 address, or the first 64 bits of an
// IPv6 address, because a client with one of those has the whole block. Pure.
// SAFETY: the addresses are read as the bytes that they are.

import Glibc
import NIOCore

package struct Peer: Hashable, Sendable {
    private let isV4: Bool
    private let prefix: UInt64
    /// A proxy on this machine speaks for many clients.
    package let isLoopback: Bool

    package init(_ address: SocketAddress?) {
        switch address {
        case .v4(let address):
            self.init(v4: UInt32(bigEndian: address.address.sin_addr.s_addr))
        case .v6(let address):
            let bytes = unsafe withUnsafeBytes(of: address.address.sin6_addr) { unsafe Array($0) }
            self.init(v6: bytes)
        default: self.init(isV4: false, prefix: 0, isLoopback: false)
        }
    }

    private init(v4: UInt32) {
        self.init(isV4: true, prefix: UInt64(v4), isLoopback: v4 >> 24 == 127)
    }

    private init(v6 bytes: [UInt8]) {
        func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
            bytes.reduce(0) { $0 << 8 | UInt64($1) }
        }
        let (upper, lower) = (number(bytes.prefix(8)), number(bytes.suffix(8)))
        // An IPv4 client of a socket for both: ::ffff:a.b.c.d.
        if upper == 0, lower >> 32 == 0xffff {
            self.init(v4: UInt32(truncatingIfNeeded: lower))
        } else {
            self.init(isV4: false, prefix: upper, isLoopback: upper == 0 && lower == 1)
        }
    }

    private init(isV4: Bool, prefix: UInt64, isLoopback: Bool) {
        self.isV4 = isV4
        self.prefix = prefix
        self.isLoopback = isLoopback
    }
}

extension Channel {
    /// For people; without the port.
    package var clientAddress: String { remoteAddress?.ipAddress ?? "?" }
}
