// Names of objects that say who wrote an archive: one for each archive, whoever sends it.

import CordwoodStore
import XCTest

@testable import CordwoodCore
@testable import CordwoodShip

final class ArchiveOriginTests: XCTestCase {
    private func url(_ origin: ArchiveOrigin, _ format: String) throws -> String {
        var options = TargetOptions(url: "https://h/logs")
        options.kind = "s3"
        options.format = format
        options.parameters = "key={date}/{service}/{host}/{id}"
        var delivery = Delivery(
            id: "1", archiveID: "1", range: nil, fileName: "lane.00000001-00000002.cwa",
            encoding: .none, credentials: Credentials(), nowUnixMs: 1_800_000_000_000)
        delivery.origin = origin
        return try Target(options).dialect.url(delivery)
    }

    /// Who has a key and who has none give an encrypted archive one name; bodies of records are
    /// made by who has one, and say so.
    func testAnEncryptedArchiveHasOneName() throws {
        let scratch = Scratch()
        let sealed = scratch.path + "/sealed.cwa"
        let plain = scratch.path + "/plain.cwa"
        writeAll(Array("age-encryption.org/v1\n-> X25519 x\n".utf8), sealed)
        // Not even as long as age's first word.
        writeAll(Array("age".utf8), plain)
        func origin(_ path: String, hasKey: Bool) throws -> ArchiveOrigin {
            try ArchiveOrigin.read(path, timeUnixMs: 1_799_999_999_000) {
                (_: String) throws(ReadProblem) -> any RecordSource in
                if !hasKey { throw ReadProblem.locked("no key") }
                return OriginSource()
            }
        }
        let unknown = "https://h/logs/2027-01-15/unknown/unknown/1"
        let known = "https://h/logs/2027-01-15/shop/h%C3%A9/1"
        XCTAssertEqual(try url(origin(sealed, hasKey: false), "archive"), unknown)
        XCTAssertEqual(try url(origin(sealed, hasKey: true), "archive"), unknown)
        XCTAssertEqual(try url(origin(sealed, hasKey: true), "ndjson"), known)
        XCTAssertEqual(try url(origin(plain, hasKey: true), "archive"), known)
        XCTAssertEqual(try url(origin(plain, hasKey: true), "ndjson"), known)
        XCTAssertThrowsError(try origin(scratch.path + "/gone", hasKey: true)) {
            XCTAssertEqual(($0 as? UploadError)?.status, .io)
        }
    }
}

/// Of a process with a service and a host.
private final class OriginSource: RecordSource {
    var createdMonotonicNs: UInt64 { 0 }
    var process: CordwoodStore.ProcessInfo? {
        CordwoodStore.ProcessInfo(
            laneID: .zero, bootID: .zero, processID: 812, name: "p", createdRealtime: 0,
            createdMonotonic: 0, resource: [("service.name", "shop"), ("host.name", "hé")])
    }
    func advance() throws(ReadProblem) -> RecordRef? { nil }
}
