// Archives as our own writer makes them, of any lanes, and claiming anything.

import CordwoodCore
import Foundation

@testable import CordwoodStore

struct MadeArchive {
    var info: ArchiveInfo
    var bytes: [UInt8]

    var id: String { info.idText }
    var name: String { (info.path.description as NSString).lastPathComponent }

    struct Record {
        var lane: LaneID
        var sequence: UInt64
        var message: String
        /// Not empty: it reports refused records.
        var gap: [Gap.Run] = []
    }

    static func cover(
        _ lane: LaneID, _ name: String, _ first: UInt64, _ last: UInt64, seals: [SegmentSeal] = []
    ) -> ArchiveCover {
        ArchiveCover(laneID: lane, first: first, last: last, laneName: name, seals: seals)
    }

    init(
        _ records: [Record], _ covers: [ArchiveCover], replaced: [ReplacedArchive] = [],
        recipients: [AgeRecipient] = [], in folder: String
    ) throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        info = try ArchiveWriter.write(
            source: Records(records), covers: covers, archivesDirectory: FilePath(folder),
            codec: .zstd, level: 3, now: 10_000_000_000, recipients: recipients,
            replaced: replaced)
        bytes = Array(try Data(contentsOf: URL(fileURLWithPath: "\(info.path)")))
    }

    /// An encrypted archive with this one inside, which says outside that it is `outside`.
    func disguised(as outside: MadeArchive, to recipient: AgeRecipient) -> MadeArchive {
        let fileKey = AgeSecret(AgeCrypto.random(AgeHeader.fileKeyBytes))
        let sealer = AgeSealer(fileKey: fileKey)
        var payload = sealer.salt
        bytes.withUnsafeBytes { sealer.append($0) { payload += Array($0) } }
        sealer.finish { payload += Array($0) }
        var facts = SealedFacts(outside.info)
        facts.payloadBytes = UInt64(payload.count)
        facts.payloadCRC = payload.withUnsafeBytes { checksum($0, from: 0) }
        let stanzas = [recipient.stanza(fileKey), facts.stanza].compactMap { $0 }
        var made = outside
        made.info.isEncrypted = true
        made.bytes = AgeHeader.make(stanzas, fileKey: fileKey) + payload
        return made
    }
}

private final class Records: RecordSource {
    private var left: ArraySlice<MadeArchive.Record>
    private var threads: [LaneID: ThreadInfo] = [:]
    private let text = ReadBuffer()
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 8)
    var createdMonotonicNs: UInt64 { 0 }
    var process: CordwoodStore.ProcessInfo? { left.first.map { thread($0.lane).process } }

    init(_ records: [MadeArchive.Record]) { left = records[...] }

    deinit { buffer.deallocate() }

    private func thread(_ lane: LaneID) -> ThreadInfo {
        if let known = threads[lane] { return known }
        let process = CordwoodStore.ProcessInfo(
            laneID: lane, bootID: .zero, processID: 812, name: "p", createdRealtime: 0,
            createdMonotonic: 0, resource: [])
        let made = ThreadInfo(process: process, serial: 1, threadID: 812, name: "")
        threads[lane] = made
        return made
    }

    func next(_ record: inout RecordRef) throws(ReadProblem) -> Bool {
        guard let next = left.popFirst() else { return false }
        record = RecordRef(thread: thread(next.lane))
        record.sequence = next.sequence
        record.timeNs = 1_000_000_000 + next.sequence * 1_000
        record.writtenNs = record.timeNs
        record.monotonicNs = record.timeNs
        record.level = 9
        buffer.copyBytes(from: next.message.utf8)
        record.message = UnsafeRawBufferPointer(rebasing: buffer[..<next.message.utf8.count])
        record.originalLength = UInt64(next.message.utf8.count)
        if !next.gap.isEmpty {
            Gap(runs: next.gap, first: 1, last: 2, causes: 0).show(in: &record, text)
        }
        return true
    }
}
