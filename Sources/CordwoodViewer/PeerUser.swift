// Finds the user whose socket is at the other end of a connection on this machine. Cookies ignore
// ports, so a server that another user runs here may get ours from the browser; only this tells the
// two apart. Linux reports the user in /proc/net/tcp and tcp6, and for Unix sockets by SO_PEERCRED.
// Reads a file: not on an event loop.

import Cordwood
import NIOCore

/// The result of SO_PEERCRED: `struct ucred`.
struct PeerCredentials: Sendable {
    var processID: Int32 = 0
    var userID: UInt32 = .max
    var groupID: UInt32 = .max

    static let option = NIOBSDSocket.Option(rawValue: 17)  // SO_PEERCRED
}

enum PeerUser {
    private static let bytesMax = 64 << 20

    /// Nil: the system shows no such socket; it may have been closed.
    static func id(client: SocketAddress, server: SocketAddress) -> UInt32? {
        guard let local = name(of: client), let remote = name(of: server) else { return nil }
        let table = client.ipAddress?.contains(":") == true ? "tcp6" : "tcp"
        guard let text = Files.content(FilePath("/proc/net/\(table)"), bytesMax: bytesMax) else {
            return nil
        }
        return find(in: text, local: local, remote: remote)
    }

    /// A line has `sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode …`. A
    /// socket that no process holds any more shows inode 0, and root's id.
    static func find(in table: [UInt8], local: String, remote: String) -> UInt32? {
        let (local, remote) = (Array(local.utf8), Array(remote.utf8))
        for line in table.split(separator: 0x0a).dropFirst() {
            let fields = line.split(separator: 0x20)
            guard fields.count > 9, fields[1].elementsEqual(local),
                fields[2].elementsEqual(remote), !fields[9].elementsEqual([0x30])
            else { continue }
            return Digits.number(fields[7])
        }
        return nil
    }

    /// `0100007F:1F90` for 127.0.0.1:8080: the address as words of a little-endian machine.
    static func name(of address: SocketAddress) -> String? {
        guard let ip = address.ipAddress, let port = address.port else { return nil }
        var out: [UInt8] = []
        if ip == "::1" {
            out += String(repeating: "0", count: 24).utf8
            out += "01000000".utf8
        } else {
            let bytes = ip.split(separator: ".").compactMap { UInt8($0) }
            guard bytes.count == 4 else { return nil }
            for byte in bytes.reversed() { Hex.append(upper: byte, to: &out) }
        }
        out.append(0x3a)
        Hex.append(upper: UInt8(truncatingIfNeeded: port >> 8), to: &out)
        Hex.append(upper: UInt8(truncatingIfNeeded: port), to: &out)
        return String(decoding: out, as: UTF8.self)
    }
}
