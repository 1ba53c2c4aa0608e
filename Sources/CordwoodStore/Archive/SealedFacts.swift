// The public facts of an encrypted archive, for readers that cannot open it (FORMAT §11.5): our own
// stanza in the header of an age file, which other tools ignore. It suffices for the queue,
// retention, uploads and adopters, and reveals nothing that was logged. Values only.
// SAFETY: views are of one array, and are read below its checked length.

import CordwoodCore

struct SealedFacts: Equatable {
    /// The stanza's one argument.
    static let stanzaKind = "cordwood.eu/archive-v1"

    var id: LaneID
    var covers: [ArchiveCover]
    /// The archives whose records it contains.
    var replaced: [ReplacedArchive]
    var lostPlaces: UInt32
    var createdRealtime: UInt64
    var recordCount: UInt64 = 0
    var timeMin: UInt64 = 0
    var timeMax: UInt64 = 0
    var writtenMin: UInt64 = 0
    var writtenMax: UInt64 = 0
    /// Bytes of the age file after its header.
    var payloadBytes: UInt64 = 0
    var payloadCRC: UInt32 = 0

    init(_ info: ArchiveInfo) {
        id = info.id
        covers = info.covers
        replaced = info.replaced
        lostPlaces = info.lostPlaces
        createdRealtime = info.createdRealtime
        recordCount = info.recordCount
        timeMin = info.timeMin
        timeMax = info.timeMax
        writtenMin = info.writtenMin
        writtenMax = info.writtenMax
    }

    /// The stanza; its size does not depend on the numbers in it.
    var stanza: AgeStanza? {
        var body = GrowingBytes()
        body.append(word: SealedSummary.magicValue)
        body.append(word: FormatVersion.current)
        body.append(word: UInt32(0))
        body.append(word: UInt64(0))
        body.append(word: UInt64(0))
        body.append(id: id)
        body.append(word: createdRealtime)
        body.append(word: recordCount)
        body.append(word: timeMin)
        body.append(word: timeMax)
        body.append(word: payloadBytes)
        body.append(word: payloadCRC)
        body.append(word: UInt32(truncatingIfNeeded: covers.count))
        body.append(word: UInt32(0))
        body.append(word: lostPlaces)
        body.append(word: writtenMin)
        body.append(word: writtenMax)
        body.append(word: UInt32(truncatingIfNeeded: replaced.count))
        body.append(word: UInt32(0))
        body.append(covers, replaced)
        if body.failed { return nil }
        body.store(UInt32(truncatingIfNeeded: body.count), at: SealedSummary.length)
        unsafe body.store(
            checksum(body.bytes, zeroAt: SealedSummary.crc), at: SealedSummary.crc)
        return unsafe AgeStanza(arguments: [SealedFacts.stanzaKind], body: Array(body.bytes))
    }

    enum Found {
        case facts(SealedFacts)
        /// An age file made by other software.
        case none
        case newer(String)
        case bad(String)
    }

    static func find(_ header: AgeHeader) -> Found {
        let ours = header.stanzas.filter { $0.kind == stanzaKind }
        guard let stanza = ours.first else { return .none }
        guard ours.count == 1, stanza.arguments.count == 1 else {
            return .bad("more than one summary of an encrypted archive")
        }
        return unsafe stanza.body.withUnsafeBytes { read($0) }
    }

    @safe private static func read(_ body: UnsafeRawBufferPointer) -> Found {
        guard body.count >= SealedSummary.bytes,
            body.word(SealedSummary.magic, UInt64.self) == SealedSummary.magicValue
        else { return .bad("no summary of an encrypted archive") }
        let version = body.word(SealedSummary.version, UInt32.self)
        let crc = body.word(SealedSummary.crc, UInt32.self)
        guard version > 0, body.word(SealedSummary.length, UInt32.self) == UInt32(body.count),
            checksum(body, zeroAt: SealedSummary.crc) == crc
        else { return .bad("checksum of the summary of an encrypted archive") }
        guard version == FormatVersion.current else { return .newer("version \(version)") }
        let incompat = body.word(SealedSummary.incompat, UInt64.self)
        guard incompat & ~FormatVersion.incompatKnown == 0 else {
            return .newer("features \(incompat)")
        }
        guard let (covers, replaced) = runs(body) else {
            return .bad("covers in the summary of an encrypted archive")
        }
        return .facts(SealedFacts(body, covers, replaced))
    }

    @safe private init(
        _ body: UnsafeRawBufferPointer, _ covers: [ArchiveCover], _ replaced: [ReplacedArchive]
    ) {
        lostPlaces = body.word(SealedSummary.lostPlaces, UInt32.self)
        self.covers = covers
        self.replaced = replaced
        id = body.id(SealedSummary.archiveID)
        createdRealtime = body.word(SealedSummary.createdRealtime, UInt64.self)
        recordCount = body.word(SealedSummary.recordCount, UInt64.self)
        timeMin = body.word(SealedSummary.timeMin, UInt64.self)
        timeMax = body.word(SealedSummary.timeMax, UInt64.self)
        writtenMin = body.word(SealedSummary.writtenMin, UInt64.self)
        writtenMax = body.word(SealedSummary.writtenMax, UInt64.self)
        payloadBytes = body.word(SealedSummary.payloadBytes, UInt64.self)
        payloadCRC = body.word(SealedSummary.payloadCRC, UInt32.self)
    }

    @safe private static func runs(
        _ body: UnsafeRawBufferPointer
    ) -> ([ArchiveCover], [ReplacedArchive])? {
        var cursor = unsafe ByteCursor(
            UnsafeRawBufferPointer(rebasing: body[SealedSummary.covers...]))
        let count = body.word(SealedSummary.coverCount, UInt32.self)
        guard let covers = ArchiveCover.list(&cursor, count: count, seals: true),
            let replaced = ReplacedArchive.list(
                &cursor, count: body.word(SealedSummary.replacedCount, UInt32.self))
        else { return nil }
        return (covers, replaced)
    }

    /// Fills in what header and footer would say.
    func fill(_ info: inout ArchiveInfo, seals: Bool) {
        info.id = id
        info.covers = covers
        if !seals { info.covers.removeSeals() }
        info.replaced = replaced
        info.lostPlaces = lostPlaces
        info.createdRealtime = createdRealtime
        info.recordCount = recordCount
        info.timeMin = timeMin
        info.timeMax = timeMax
        info.writtenMin = writtenMin
        info.writtenMax = writtenMax
        info.levels = .max
        info.kinds = .max
    }

    /// True if the archive inside, which is read with its seals, matches the facts outside.
    /// - Parameter sums: false: its footer is damaged, and it may have held more.
    func agrees(with info: ArchiveInfo, sums: Bool) -> Bool {
        id == info.id && covers == info.covers && replaced == info.replaced
            && lostPlaces == info.lostPlaces && createdRealtime == info.createdRealtime
            && (!sums
                || recordCount == info.recordCount && timeMin == info.timeMin
                    && timeMax == info.timeMax && writtenMin == info.writtenMin
                    && writtenMax == info.writtenMax)
    }
}
