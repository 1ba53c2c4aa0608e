// One header line of a request, checked so that no value can start a second line. Headers that we
// set ourselves are refused, because two of them would conflict. Pure. Values may be secrets:
// errors name only the header.

import CordwoodFormats
import CordwoodStore

struct RequestHeader: Equatable, Sendable {
    var name: String
    var value: String

    static let countMax = 64
    static let bytesMax = 65_536
    private static let owned: Set<String> = [
        "content-length", "content-encoding", "transfer-encoding", "expect", "idempotency-key",
        "connection", "trailer", "upgrade", "proxy-authorization",
    ]

    var lowercasedName: String { name.lowercased() }

    /// As libcurl wants it, with a NUL; a semicolon marks an empty value.
    var lineBytes: [CChar] {
        var bytes: [CChar] = []
        bytes.reserveCapacity(name.utf8.count + value.utf8.count + 3)
        for byte in name.utf8 { bytes.append(CChar(bitPattern: byte)) }
        for byte in (value.isEmpty ? ";" : ": ").utf8 { bytes.append(CChar(bitPattern: byte)) }
        for byte in value.utf8 { bytes.append(CChar(bitPattern: byte)) }
        bytes.append(0)
        return bytes
    }

    /// `Name: value` lines separated by newlines.
    static func parse(_ text: String) throws(UploadError) -> [RequestHeader] {
        guard text.utf8.count <= bytesMax else {
            throw UploadError.argument("headers are longer than \(bytesMax) bytes")
        }
        var headers: [RequestHeader] = []
        for line in text.utf8.split(separator: 0x0A) {
            guard let colon = line.firstIndex(of: 0x3A) else {
                throw UploadError.argument("header line \(headers.count + 1) has no colon")
            }
            guard let name = String(line[..<colon]), !name.isEmpty,
                name.utf8.allSatisfy(isNameByte)
            else {
                throw UploadError.argument("header line \(headers.count + 1) has no valid name")
            }
            var value = line[line.index(after: colon)...]
            while let first = value.first, first == 0x20 || first == 0x09 { value.removeFirst() }
            while let last = value.last, last == 0x20 || last == 0x09 { value.removeLast() }
            guard value.allSatisfy({ ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 }) else {
                throw UploadError.argument("header \(name) holds a control character")
            }
            guard !owned.contains(name.lowercased()) else {
                throw UploadError.argument("header \(name) is set by the library")
            }
            headers.append(RequestHeader(name: name, value: String(value) ?? ""))
            guard headers.count <= countMax else {
                throw UploadError.argument("more than \(countMax) headers")
            }
        }
        return headers
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        ASCII.isAlphanumeric(byte) || "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
}
