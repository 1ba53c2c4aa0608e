// The collector with real archives: what our own writer made is taken byte for byte, and one
// changed byte anywhere is not.

import CordwoodCore
import CordwoodShip
import CordwoodStore
import Foundation
import XCTest

@testable import CordwoodCollector

final class RealArchiveTests: CollectorCase {
    private func makeArchive(
        _ messages: [String]
    ) throws -> (id: String, name: String, bytes: [UInt8]) {
        let folder = directory + "-made"
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let cover = ArchiveCover(
            laneID: LaneID(high: 1, low: 2), first: 1, last: 2, laneName: CollectorCase.lane)
        let info = try ArchiveWriter.write(
            source: Messages(messages), covers: [cover], archivesDirectory: FilePath(folder),
            codec: .zstd,
            level: 3, now: 1)
        let data = try Data(contentsOf: URL(fileURLWithPath: "\(info.path)"))
        let name = (info.path.description as NSString).lastPathComponent
        return (info.idText, name, Array(data))
    }

    private func send(_ bytes: [UInt8], key: String, to client: RawClient) -> Int? {
        client.send(post("", key: key, length: bytes.count))
        client.send(bytes)
        return client.answer()?.status
    }

    func testStoresWhatOurWriterMade() throws {
        let made = try makeArchive((0..<5000).map { "message \($0)" })
        let client = try RawClient(port: try start(inspector: .cordwood))
        XCTAssertEqual(send(made.bytes, key: made.id, to: client), 200)
        let path = "\(directory)/archives/\(made.name)"
        XCTAssertEqual(try Data(contentsOf: URL(fileURLWithPath: path)), Data(made.bytes))
        collector?.stop()
        let second = try RawClient(port: try start(inspector: .cordwood))
        XCTAssertEqual(send([1, 2, 3], key: made.id, to: second), 200)
        XCTAssertEqual(stored(), [made.name])
    }

    func testRefusesEveryDamage() throws {
        let made = try makeArchive(["one", "two", "three"])
        let client = try RawClient(port: try start(inspector: .cordwood))
        for index in made.bytes.indices {
            var bytes = made.bytes
            bytes[index] ^= 0x10
            XCTAssertEqual(send(bytes, key: made.id, to: client), 400, "byte \(index)")
        }
        for length in stride(from: 1, to: made.bytes.count, by: 7) {
            let cut = Array(made.bytes[..<length])
            XCTAssertEqual(send(cut, key: made.id, to: client), 400, "\(length) bytes")
        }
        XCTAssertEqual(stored(), [])
    }
}

private final class Messages: RecordSource {
    private var left: ArraySlice<[UInt8]>
    private let thread: ThreadInfo
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 8)
    var createdMonotonicNs: UInt64 { 0 }
    var process: CordwoodStore.ProcessInfo? { thread.process }

    init(_ messages: [String]) {
        left = messages.map { Array($0.utf8) }[...]
        let process = CordwoodStore.ProcessInfo(
            laneID: LaneID(high: 1, low: 2), bootID: .zero, processID: 812, name: "p",
            createdRealtime: 0, createdMonotonic: 0, resource: [])
        thread = ThreadInfo(process: process, serial: 1, threadID: 812, name: "")
    }

    deinit { buffer.deallocate() }

    func next(_ record: inout RecordRef) throws(ReadProblem) -> Bool {
        guard let message = left.popFirst() else { return false }
        record = RecordRef(thread: thread)
        record.timeNs = 1_000
        record.writtenNs = 1_000
        record.level = 9
        buffer.copyBytes(from: message)
        record.message = UnsafeRawBufferPointer(rebasing: buffer[..<message.count])
        record.originalLength = UInt64(message.count)
        return true
    }
}
