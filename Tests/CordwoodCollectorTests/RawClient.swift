// A client that knows only sockets and bytes: what a test sends is what goes over the wire, however
// wrong. One test, one thread.

import Glibc
import XCTest

final class RawClient {
    private let descriptor: Int32

    /// - Parameters:
    ///   - source: any address of 127.0.0.0/8; a collector takes each for another client.
    ///   - unreadMax: about how many bytes may wait to be read; nil: as the system likes.
    init(port: Int, from source: String = "127.0.0.1", unreadMax: Int32? = nil) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        if var unreadMax {
            let size = socklen_t(MemoryLayout<Int32>.size)
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &unreadMax, size)
            // The peer's own buffer grows with the size of the segments that it may send.
            var segment: Int32 = 536
            setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_MAXSEG, &segment, size)
        }
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(
            descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var yes: Int32 = 1
        setsockopt(
            descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes,
            socklen_t(MemoryLayout<Int32>.size))
        guard call(bind, source, 0) == 0, call(connect, "127.0.0.1", UInt16(port)) == 0 else {
            throw POSIXProblem(number: errno)
        }
    }

    private func call(
        _ function: (Int32, UnsafePointer<sockaddr>?, socklen_t) -> Int32, _ host: String,
        _ port: UInt16
    ) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port.bigEndian)
        address.sin_addr.s_addr = inet_addr(host)
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                function(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    deinit { close(descriptor) }

    /// A peer that stopped reading does not fail the test.
    func send(_ bytes: [UInt8]) {
        var done = 0
        while done < bytes.count {
            let sent = bytes[done...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if sent <= 0 { return }
            done += sent
        }
    }

    func send(_ text: String) { send(Array(text.utf8)) }

    /// Sends this repeatedly until the peer closes, takes nothing for two seconds, or `limit` bytes
    /// are sent.
    func flood(_ text: String, limit: Int) -> (sent: Int, isClosed: Bool) {
        let bytes = Array(text.utf8)
        var done = 0
        while done < limit {
            var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            guard poll(&ready, 1, 2_000) == 1 else { return (done, false) }
            let sent = bytes[(done % bytes.count)...].withUnsafeBytes {
                Glibc.send(
                    descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
            }
            if sent > 0 {
                done += sent
            } else if errno != EAGAIN {
                return (done, true)
            }
        }
        return (done, false)
    }

    /// Makes the connection end with a reset.
    func resetAtEnd() {
        var now = linger(l_onoff: 1, l_linger: 0)
        setsockopt(
            descriptor, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
    }

    func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// One answer, by its Content-Length; nil if the peer closed first.
    func answer() -> (status: Int, head: String, body: String)? {
        var got: [UInt8] = []
        while true {
            if let text = String(validating: got, as: UTF8.self),
                let end = text.range(of: "\r\n\r\n")
            {
                let head = String(text[..<end.lowerBound])
                let status = Int(head.dropFirst(9).prefix(3)) ?? 0
                let length =
                    head.lowercased().components(separatedBy: "content-length: ").dropFirst().first
                    .flatMap { Int($0.prefix { $0.isNumber }) } ?? 0
                let body = String(text[end.upperBound...])
                if body.utf8.count >= length { return (status, head, body) }
            }
            var byte: UInt8 = 0
            guard recv(descriptor, &byte, 1, 0) == 1 else { return nil }
            got.append(byte)
        }
    }

    /// Everything that arrives until the peer closes.
    func rest() -> String {
        var got: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = recv(descriptor, &piece, piece.count, 0)
            if count <= 0 { return String(decoding: got, as: UTF8.self) }
            got += piece[..<count]
        }
    }

    /// Whether something can be read, or the peer has closed.
    func hasAnswer(withinMs ms: Int32) -> Bool {
        var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&ready, 1, ms) == 1
    }

    /// True if the peer closes within the socket's time limit. A reset may discard an answer that
    /// is on its way.
    func isClosedByPeer(mayReset: Bool = true) -> Bool {
        var piece = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = recv(descriptor, &piece, piece.count, 0)
            if count == 0 { return true }
            if count < 0 { return mayReset && errno == ECONNRESET }
        }
    }
}

struct POSIXProblem: Error { let number: Int32 }
