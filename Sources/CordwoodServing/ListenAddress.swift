// Where a server listens: an address and a port, never a name, because nothing here asks for DNS.
// Pure.

import NIOCore

package struct ListenAddress: Sendable, Equatable {
    /// Without brackets.
    package var host: String
    /// 0: any free port.
    package var port: Int

    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// `127.0.0.1:80`, `[::1]:80`, `localhost:0`; nil: other text.
    package init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":"),
            let port = UInt16(text[text.index(after: colon)...])
        else { return nil }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        guard !host.isEmpty else { return nil }
        self.init(host: String(host), port: Int(port))
    }

    /// `localhost` means 127.0.0.1.
    package func socketAddress() throws(ListenFailure) -> SocketAddress {
        let ip = host == "localhost" ? "127.0.0.1" : host
        guard let found = try? SocketAddress(ipAddress: ip, port: port) else {
            throw ListenFailure("\(host) is not an IP address")
        }
        return found
    }
}
