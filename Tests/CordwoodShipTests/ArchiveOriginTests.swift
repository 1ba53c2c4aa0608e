// Names of objects that say who wrote an archive: one for each archive, whoever sends it.

import XCTest

@testable import CordwoodCore
@testable import CordwoodShip
@testable import CordwoodStore

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

    /// With a key and without, an encrypted archive gets the same name. Bodies of records are made
    /// with a key, and name their origin.
    func testAnEncryptedArchiveHasOneName() throws {
        let scratch = Scratch()
        let process = CordwoodStore.ProcessInfo(
            laneID: .zero, bootID: .zero, processID: 812, name: "p", createdRealtime: 0,
            createdMonotonic: 0, resource: [("service.name", "shop"), ("host.name", "hé")])
        let record = Staged(
            thread: ThreadInfo(process: process, serial: 1, threadID: 812, name: "main"))
        let identity = AgeIdentity.generate()
        func write(_ name: String, to recipients: [AgeRecipient]) throws -> String {
            try ArchiveWriter.write(
                source: FakeSource([record]), covers: [coverForTests],
                archivesDirectory: FilePath(scratch.path), name: name, codec: .zstd, level: 1,
                now: 42,
                recipients: recipients
            ).path.description
        }
        let sealed = try write("sealed.cwa", to: [identity.recipient])
        let plain = try write("plain.cwa", to: [])
        // Shorter even than age's first word.
        let short = scratch.path + "/short.cwa"
        writeAll(Array("age".utf8), short)
        func origin(_ path: String, hasKey: Bool) throws -> ArchiveOrigin {
            try ArchiveOrigin.read(
                FilePath(path), timeUnixMs: 1_799_999_999_000, hasKey ? [identity] : [])
        }
        let unknown = "https://h/logs/2027-01-15/unknown/unknown/1"
        let known = "https://h/logs/2027-01-15/shop/h%C3%A9/1"
        XCTAssertEqual(try url(origin(sealed, hasKey: false), "archive"), unknown)
        XCTAssertEqual(try url(origin(sealed, hasKey: true), "archive"), unknown)
        XCTAssertEqual(try url(origin(sealed, hasKey: true), "ndjson"), known)
        XCTAssertEqual(try url(origin(plain, hasKey: true), "archive"), known)
        XCTAssertEqual(try url(origin(plain, hasKey: true), "ndjson"), known)
        XCTAssertEqual(try url(origin(short, hasKey: true), "archive"), unknown)
        XCTAssertThrowsError(try origin(scratch.path + "/gone", hasKey: true)) {
            XCTAssertEqual(($0 as? UploadError)?.status, .io)
        }
    }
}
