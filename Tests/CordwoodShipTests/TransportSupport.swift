// What transport tests share: one exchange with a server, a certificate authority
// (Tests/TestSupport/certificates.py), hosts that answer as told.

import Foundation
import Glibc
import XCTest

@testable import CordwoodShip

/// Made once for all tests of the process.
final class Authority: Sendable {
    static let made: Authority? = try? Authority()
    let directory: String

    private init() throws {
        var template = Array("/tmp/cordwood-authority-XXXXXX".utf8CString)
        directory = String(cString: mkdtemp(&template))
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("TestSupport/certificates.py")
        let make = Process()
        make.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        make.arguments = ["python3", script.path, directory]
        try make.run()
        make.waitUntilExit()
        guard make.terminationStatus == 0 else { throw POSIXError(.EIO) }
        atexit {
            guard let made = Authority.made else { return }
            try? FileManager.default.removeItem(atPath: made.directory)
        }
    }

    func callAsFunction(_ name: String) -> String { directory + "/" + name }
}

/// An unlinked file of bytes to send.
final class SentFile {
    let descriptor: Int32
    let bytes: [UInt8]

    init(_ bytes: [UInt8]) {
        var template = Array("/tmp/cordwood-body-XXXXXX".utf8CString)
        descriptor = mkstemp(&template)
        unlink(template)
        self.bytes = bytes
        var written = 0
        while written < bytes.count {
            written += bytes[written...].withUnsafeBytes {
                write(descriptor, $0.baseAddress, $0.count)
            }
        }
    }

    deinit { close(descriptor) }

    var body: RequestBody { RequestBody(descriptor: descriptor, count: UInt64(bytes.count)) }

    /// Random bytes, which do not compress.
    static func noise(_ count: Int) -> [UInt8] {
        let random = FileHandle(forReadingAtPath: "/dev/urandom")
        return Array(random?.readData(ofLength: count) ?? Data())
    }
}

/// What a transfer is told. A struct, since the trailing closure of `send` is the change.
struct Ticks {
    var next: () -> TransferTick
}

extension Transport {
    func send(
        _ url: String, _ file: SentFile = SentFile(Array("content".utf8)), method: String = "POST",
        headers: String = "", ticks: Ticks = Ticks { .go },
        _ change: (inout TransferRequest) -> Void = { _ in }
    ) throws -> TransferOutcome {
        var request = TransferRequest(
            method: method, url: url, headers: try RequestHeader.parse(headers), body: file.body,
            settings: TransportSettings())
        request.headers.append(RequestHeader(name: "Content-Type", value: "text/plain"))
        change(&request)
        request.settings = try request.settings.checked()
        return perform(request, tick: ticks.next)
    }
}

/// Answers as it is told; keeps the requests.
/// SAFETY: guarded by its lock.
final class ToldTransport: UploadTransport, @unchecked Sendable {
    struct Refused: Error {}
    private let lock = NSLock()
    private var requests: [UploadRequest] = []
    private let answer: @Sendable (UploadRequest) throws -> UploadResponse

    init(_ answer: @escaping @Sendable (UploadRequest) throws -> UploadResponse) {
        self.answer = answer
    }

    var seen: [UploadRequest] { lock.withLock { requests } }

    func send(_ request: UploadRequest) throws -> UploadResponse {
        lock.withLock { requests.append(request) }
        return try answer(request)
    }
}

extension UploadRequest {
    func content(chunk: Int = 70_000) throws -> [UInt8] {
        var all: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: chunk)
        while true {
            let got = try buffer.withUnsafeMutableBytes {
                try readBody(at: UInt64(all.count), into: $0)
            }
            if got == 0 { return all }
            all += buffer[..<got]
        }
    }
}

/// A port of this object's own. With a queue it listens and never accepts: TCP connects, nothing
/// follows. Without one it refuses, and no other process can begin to listen there.
final class SilentPort {
    private let descriptor: Int32
    let port: Int

    init(queue: Int32? = 8) {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        port = withUnsafeMutablePointer(to: &address) { [descriptor] pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                guard bind(descriptor, $0, size) == 0 else { return 0 }
                if let queue, listen(descriptor, queue) != 0 { return 0 }
                return getsockname(descriptor, $0, &size)
            } == 0 ? Int(in_port_t(bigEndian: pointer.pointee.sin_port)) : 0
        }
    }

    deinit { close(descriptor) }
}
