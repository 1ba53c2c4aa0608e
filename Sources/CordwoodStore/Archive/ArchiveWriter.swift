// Writes one archive (FORMAT §11) from a run of records: header, blocks, footer, published by
// rename. The helper thread and `cordwood archive` call it; one thread at a time per archive.
// Damage that the source reports is collected and skipped; any other problem abandons the archive,
// so that no unread record is removed.
// SAFETY: `frame` and `entries` belong to this writer; a view of one is consumed in the call that
// it is made for, and only the other one grows during that call.

import CordwoodCore

/// What making an archive's blocks may cost (FORMAT §11.2).
public enum ArchiveMethod: String, Sendable, CaseIterable {
    /// Effort 0: about half of the instructions, and messages that `zstd -d` shows as lines.
    case plain
    case dense

    var effort: BlockEffort { self == .plain ? .swift : .dense }
}

package struct ArchiveWriter: ~Copyable {
    private var file: PartFile
    private var builder: Block
    private var extract: ExtractBuilder
    private var maker: BlockMaker
    private var frame = GrowingBytes()
    private var entries = GrowingBytes()
    private var sides: [SideEntry] = []
    private var info: ArchiveInfo

    /// Writes all records of `source`. `name`: nil: the archive's own (FORMAT §11). An existing
    /// archive of that name is replaced. If there are recipients, the archive is encrypted
    /// to them. `effort`: of blocks; with a codec other than zstd it is 0.
    /// `blockBytes`: the size at which a block is closed; nil: the usual one. `timeStepNs`: times
    /// are rounded down to a multiple of it. `replaced`: the archives that this one replaces.
    /// `lostPlaces`: places that are known to lack records; an archive with others is `.unwanted`.
    /// `accepts`: asked before the archive gets its name; false: it is dropped, and `.unwanted` is
    /// thrown. `modifiedNs`: the file's time; nil: now.
    package static func write(
        source: any RecordSource, covers: [ArchiveCover], archivesDirectory: FilePath,
        name: String? = nil, codec: Codec, level: Int32, now: UInt64,
        recipients: [AgeRecipient] = [], effort: BlockEffort = .swift, blockBytes: Int? = nil,
        timeStepNs: UInt64 = 1, replaced: [ReplacedArchive] = [], lostPlaces: UInt32 = 0,
        accepts: (ArchiveInfo) -> Bool = { _ in true }, modifiedNs: UInt64? = nil
    ) throws(ArchiveError) -> ArchiveInfo {
        guard !covers.isEmpty, covers.count <= ArchiveLimits.coversMax else {
            throw .argument("an archive covers 1 to \(ArchiveLimits.coversMax) runs of segments")
        }
        guard replaced.count <= ArchiveLimits.replacedMax else {
            throw .limit("archives that one replaces")
        }
        let id = ArchiveIdentity.id(covers, replaced: replaced, lostPlaces: lostPlaces)
        let fileName = name ?? ArchiveIdentity.fileName(of: covers, id)
        let partName = name.map { $0 + ".part" } ?? ArchiveIdentity.rangeName(of: covers) + ".part"
        guard ArchiveIdentity.isFileName(fileName) else {
            throw .argument("not a name for an archive: \(fileName)")
        }
        guard let maker = BlockMaker(effort: effort, codec: codec, level: level) else {
            throw .memory
        }
        var file = try PartFile(
            directory: archivesDirectory, name: fileName, partName: partName)
        var info = ArchiveInfo(
            id: id, covers: covers, createdRealtime: now, recordCount: 0,
            timeMin: .max, timeMax: 0, rawBytes: 0, fileBytes: 0, blockCount: 0, levels: 0,
            kinds: 0, path: file.path)
        info.writtenMin = .max
        info.replaced = replaced
        info.lostPlaces = lostPlaces
        if !recipients.isEmpty {
            info.isEncrypted = true
            try file.encrypt(to: recipients, info)
        }
        var writer = ArchiveWriter(
            file: file, maker: maker, info: info,
            blockBytes: blockBytes ?? ArchiveLimits.blockTarget, timeStepNs: timeStepNs)
        try writer.appendHeader()
        try writer.appendRecords(of: source)
        try writer.appendExtract()
        try writer.appendFooter()
        return try writer.finish(accepts, modifiedNs)
    }

    private init(
        file: consuming PartFile, maker: consuming BlockMaker, info: ArchiveInfo, blockBytes: Int,
        timeStepNs: UInt64
    ) {
        self.file = file
        self.maker = maker
        self.info = info
        builder = Block(
            seed: .random(in: .min ... .max), target: blockBytes, timeStepNs: timeStepNs)
        extract = ExtractBuilder(isWanted: info.covers.count == 1, timeStepNs: timeStepNs)
    }

    private mutating func appendHeader() throws(ArchiveError) {
        frame.removeAll()
        frame.append(word: SkippableFrame.magicValue)
        frame.append(word: UInt32(0))
        frame.append(word: ArchiveHeader.magicValue)
        frame.append(word: FormatVersion.current)
        frame.append(word: UInt32(0))
        frame.append(word: UInt64(0))
        frame.append(word: UInt64(0))
        frame.append(id: info.id)
        frame.append(word: info.createdRealtime)
        frame.append(word: UInt32(info.covers.count))
        frame.append(word: UInt32(0))
        frame.append(word: info.lostPlaces)
        frame.append(word: UInt32(info.replaced.count))
        frame.append(info.covers, info.replaced)
        if frame.failed { throw .memory }
        let start = SkippableFrame.headerBytes
        let length = frame.count - start
        guard length <= ArchiveLimits.headerMax else { throw .limit("covers of one archive") }
        frame.store(UInt32(length), at: 4)
        frame.store(UInt32(length), at: start + ArchiveHeader.length)
        unsafe frame.store(checksum(frame.bytes, from: start), at: start + ArchiveHeader.crc)
        try unsafe file.append(frame.bytes)
    }

    private mutating func appendRecords(of source: any RecordSource) throws(ArchiveError) {
        while true {
            let filled: Block.Filled
            do throws(ReadProblem) {
                filled = try builder.fill(from: source, &extract)
            } catch {
                try collect(error)
                continue
            }
            switch filled {
            case .full: try appendBlock()
            case .noRoom(var record):
                try appendBlock()
                builder.add(&record)
                extract.note(&record)
                if builder.isFull() { try appendBlock() }
            case .end:
                if !builder.isEmpty { try appendBlock(isOnly: info.blockCount == 0) }
                return
            }
        }
    }

    private mutating func collect(_ problem: ReadProblem) throws(ArchiveError) {
        guard case .damaged(let text) = problem else { throw .source(problem) }
        info.damageCount &+= 1
        if info.damage.count < ArchiveLimits.problemsMax { info.damage.append(text) }
    }

    private mutating func appendBlock(isOnly: Bool = false) throws(ArchiveError) {
        guard info.blockCount < ArchiveLimits.blocksMax else {
            throw .limit("blocks of one archive")
        }
        try maker.make(&builder, headerBytes: BlockHeader.frameBytes, isOnly: isOnly)
        let storedCRC = maker.storeHeader(builder.summary)
        appendEntry(storedCRC: storedCRC)
        try unsafe file.append(maker.frame.bytes)

        info.blockCount += 1
        info.recordCount &+= UInt64(builder.summary.recordCount)
        info.timeMin = min(info.timeMin, builder.summary.timeMin)
        info.timeMax = max(info.timeMax, builder.summary.timeMax)
        info.writtenMin = min(info.writtenMin, builder.summary.writtenMin)
        info.writtenMax = max(info.writtenMax, builder.summary.writtenMax)
        info.rawBytes &+= UInt64(maker.size)
        info.levels |= builder.summary.levels
        info.kinds |= builder.summary.kinds
        builder.removeAll()
    }

    /// Appends the extract if it is worthwhile.
    private mutating func appendExtract() throws(ArchiveError) {
        guard extract.isWorthwhile(blocks: info.blockCount, records: info.recordCount) else {
            return
        }
        try extract.make(with: &maker)
        sides.append(
            SideEntry(
                kind: SideFrame.kindExtract, crc: unsafe checksum(maker.frame.bytes, from: 0),
                offset: file.written, spanBytes: UInt64(maker.frame.count)))
        try unsafe file.append(maker.frame.bytes)
    }

    private mutating func appendEntry(storedCRC: UInt32) {
        let summary = builder.summary
        entries.append(word: file.written)
        entries.append(word: UInt64(maker.frame.count))
        entries.append(word: summary.timeMin)
        entries.append(word: summary.timeMax)
        entries.append(word: summary.levels)
        entries.append(word: summary.kinds)
        entries.append(word: summary.recordCount)
        entries.append(word: storedCRC)
        entries.append(word: UInt64(maker.size))
        entries.append(word: summary.writtenMin)
        entries.append(word: summary.writtenMax)
    }

    private mutating func appendFooter() throws(ArchiveError) {
        if info.recordCount == 0 { (info.timeMin, info.writtenMin) = (0, 0) }
        let start = SkippableFrame.headerBytes
        for side in sides { entries.append(side) }
        let size = start + ArchiveFooter.bytes + entries.count + ArchiveFooter.trailerBytes
        frame.removeAll()
        frame.append(word: SkippableFrame.magicValue)
        frame.append(word: UInt32(truncatingIfNeeded: size - start))
        frame.append(word: ArchiveFooter.magicValue)
        frame.append(id: info.id)
        frame.append(word: info.recordCount)
        frame.append(word: info.timeMin)
        frame.append(word: info.timeMax)
        frame.append(word: info.rawBytes)
        frame.append(word: UInt32(info.blockCount))
        frame.append(word: UInt32(sides.count))
        frame.append(word: info.writtenMin)
        frame.append(word: info.writtenMax)
        unsafe frame.append(entries.bytes)
        frame.append(word: UInt32(truncatingIfNeeded: size))
        unsafe frame.append(word: checksum(frame.bytes, from: start))
        frame.append(word: ArchiveFooter.endMagicValue)
        if frame.failed || entries.failed { throw .memory }
        try unsafe file.append(frame.bytes)
    }

    private consuming func finish(
        _ accepts: (ArchiveInfo) -> Bool, _ modifiedNs: UInt64?
    ) throws(ArchiveError) -> ArchiveInfo {
        try file.finish(info)
        info.fileBytes = file.fileBytes
        guard accepts(info) else { throw .unwanted }
        try file.publish(modifiedNs)
        return info
    }
}
