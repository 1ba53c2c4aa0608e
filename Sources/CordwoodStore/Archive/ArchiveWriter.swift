// Writes one archive (FORMAT §11) from a run of records: header, blocks, footer, published by
// rename. The helper thread and `cordwood archive` call it; one thread at a time per archive.
// Damage that the source reports is collected and skipped; any other problem abandons the archive,
// so that no unread record is removed.
// SAFETY: `frame` and `entries` belong to this writer; a view of one is consumed in the call that
// it is made for, and only the other one grows during that call. A payload belongs to the builder,
// which changes it only after its block is written.

import CordwoodCore

/// The method of an archive's blocks (FORMAT §11.2).
public enum ArchiveMethod: String, Sendable, CaseIterable {
    case plain
    /// Blocks have dense columns if they are smaller that way.
    case dense
}

package struct ArchiveWriter: ~Copyable {
    private var file: PartFile
    private var builder: Block
    private var extract: ExtractBuilder
    private let compressor: BlockCompressor
    private let codec: Codec
    private var dense: DenseTrial?
    private var frame = GrowingBytes()
    private var entries = GrowingBytes()
    private var sides: [SideEntry] = []
    private var info: ArchiveInfo

    /// Writes all records of `source`. `name`: nil: the archive's own (FORMAT §11). An existing
    /// archive of that name is replaced. If there are recipients, the archive is encrypted
    /// to them. `method`: the method of blocks; with a codec other than zstd they are plain.
    /// `blockBytes`: the size at which a block is closed; nil: the usual one. `timeStepNs`: times
    /// are rounded down to a multiple of it. `replaced`: the archives that this one replaces.
    /// `lostPlaces`: places that are known to lack records; an archive with others is `.unwanted`.
    /// `accepts`: asked before the archive gets its name; false: it is dropped, and `.unwanted` is
    /// thrown. `modifiedNs`: the file's time; nil: now.
    package static func write(
        source: any RecordSource, covers: [ArchiveCover], archivesDirectory: FilePath,
        name: String? = nil, codec: Codec, level: Int32, now: UInt64,
        recipients: [AgeRecipient] = [], method: ArchiveMethod = .plain, blockBytes: Int? = nil,
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
        guard let compressor = BlockCompressor(codec: codec, level: level) else { throw .memory }
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
            file: file, compressor: compressor, codec: codec, info: info,
            blockBytes: blockBytes ?? ArchiveLimits.blockTarget, timeStepNs: timeStepNs)
        if method == .dense, codec == .zstd {
            guard let trial = DenseTrial(level: codec.level(level)) else { throw .memory }
            writer.dense = consume trial
        }
        try writer.appendHeader()
        try writer.appendRecords(of: source)
        try writer.appendExtract()
        try writer.appendFooter()
        return try writer.finish(accepts, modifiedNs)
    }

    private init(
        file: consuming PartFile, compressor: consuming BlockCompressor, codec: Codec,
        info: ArchiveInfo, blockBytes: Int, timeStepNs: UInt64
    ) {
        self.file = file
        self.compressor = compressor
        self.codec = codec
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
            case .noRoom(let record):
                try appendBlock()
                builder.add(record)
                extract.note(record)
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
        if builder.failed { throw .memory }
        let payload = builder.assemble()
        if builder.failed { throw .memory }
        guard payload.count <= ArchiveLimits.payloadMax else {
            throw .limit("payload of one block")
        }

        let denseCRC = try makeFrame(payload, isOnly: isOnly)
        let storedCRC = unsafe checksum(frame.bytes, from: BlockHeader.frameBytes)
        storeBlockHeader(
            builder.summary, payload, storedCRC: storedCRC, denseCRC: denseCRC)
        appendEntry(rawBytes: payload.count, span: frame.count, storedCRC: storedCRC)
        try unsafe file.append(frame.bytes)

        info.blockCount += 1
        info.recordCount &+= UInt64(builder.summary.recordCount)
        info.timeMin = min(info.timeMin, builder.summary.timeMin)
        info.timeMax = max(info.timeMax, builder.summary.timeMax)
        info.writtenMin = min(info.writtenMin, builder.summary.writtenMin)
        info.writtenMax = max(info.writtenMax, builder.summary.writtenMax)
        info.rawBytes &+= UInt64(payload.count)
        info.levels |= builder.summary.levels
        info.kinds |= builder.summary.kinds
        builder.removeAll()
    }

    /// Makes `frame`, after room for the block's header: by method 2, unless method 1 is no larger,
    /// or memory for method 2 runs out. Returns rawCRC of method 2.
    @safe private mutating func makeFrame(
        _ payload: UnsafeRawBufferPointer, isOnly: Bool
    ) throws(ArchiveError) -> UInt32? {
        frame.clear(keeping: .max)
        guard unsafe frame.claim(BlockHeader.frameBytes) != nil else { throw .memory }
        let isMade = dense?.make(
            payload, recordCount: Int(builder.summary.recordCount),
            headerBytes: BlockHeader.frameBytes, isOnly: isOnly)
        if isMade == true, let most = dense?.storedBytes {
            if dense?.mayBeLarger(than: payload) == true {
                // If method 1 takes more than this, the exact size does not matter.
                let isPlain = compressor.append(payload, atMost: 2 * most, to: &frame)
                let plain = isPlain ? frame.count - BlockHeader.frameBytes : 2 * most
                dense?.note(plain: plain)
                if isPlain, plain <= most { return nil }
                frame.resize(BlockHeader.frameBytes)
            }
            if let crc = dense?.check(payload) ?? nil {
                dense?.swapFrame(&frame)
                return crc
            }
        }
        guard compressor.append(payload, to: &frame) else { throw .memory }
        return nil
    }

    /// Appends the extract if it is worthwhile.
    private mutating func appendExtract() throws(ArchiveError) {
        guard extract.isWorthwhile(blocks: info.blockCount, records: info.recordCount) else {
            return
        }
        let payload = extract.assemble()
        if extract.failed { return }
        let start = ArchiveExtract.frameBytes - BlockHeader.frameBytes
        frame.clear(keeping: .max)
        guard unsafe frame.claim(ArchiveExtract.frameBytes) != nil,
            compressor.append(payload, to: &frame)
        else { throw .memory }
        let storedCRC = unsafe checksum(frame.bytes, from: ArchiveExtract.frameBytes)
        storeBlockHeader(
            extract.summary, payload, storedCRC: storedCRC, denseCRC: nil, at: start)
        extract.storeHead(in: &frame)
        sides.append(
            SideEntry(
                kind: SideFrame.kindExtract, crc: unsafe checksum(frame.bytes, from: 0),
                offset: file.written, spanBytes: UInt64(frame.count)))
        try unsafe file.append(frame.bytes)
    }

    /// `denseCRC`: rawCRC of a block of method 2. `place`: the start of the header's frame.
    @safe private mutating func storeBlockHeader(
        _ summary: BlockSummary, _ payload: UnsafeRawBufferPointer, storedCRC: UInt32,
        denseCRC: UInt32?, at place: Int = 0
    ) {
        let start = place + SkippableFrame.headerBytes
        unsafe (frame.base + place).initializeMemory(
            as: UInt8.self, repeating: 0, count: BlockHeader.frameBytes)
        frame.store(SkippableFrame.magicValue, at: place)
        frame.store(UInt32(BlockHeader.bytes), at: place + 4)
        frame.store(BlockHeader.magicValue, at: start + BlockHeader.magic)
        let method = denseCRC == nil ? BlockHeader.methodColumns : BlockHeader.methodDense
        frame.store(method, at: start + BlockHeader.method)
        frame.store(codec.rawValue, at: start + BlockHeader.codec)
        frame.store(summary.recordCount, at: start + BlockHeader.recordCount)
        frame.store(UInt64(payload.count), at: start + BlockHeader.rawBytes)
        frame.store(
            UInt64(frame.count - place - BlockHeader.frameBytes),
            at: start + BlockHeader.storedBytes)
        frame.store(summary.timeMin, at: start + BlockHeader.timeMin)
        frame.store(summary.timeMax, at: start + BlockHeader.timeMax)
        frame.store(summary.writtenMin, at: start + BlockHeader.writtenMin)
        frame.store(summary.writtenMax, at: start + BlockHeader.writtenMax)
        frame.store(summary.levels, at: start + BlockHeader.levels)
        frame.store(summary.kinds, at: start + BlockHeader.kinds)
        frame.store(storedCRC, at: start + BlockHeader.storedCRC)
        let rawCRC = denseCRC ?? checksum(payload, from: 0)
        frame.store(rawCRC, at: start + BlockHeader.rawCRC)
        let header = unsafe UnsafeRawBufferPointer(
            start: frame.base + start, count: BlockHeader.bytes)
        frame.store(checksum(header, from: 0), at: start + BlockHeader.headerCRC)
    }

    private mutating func appendEntry(rawBytes: Int, span: Int, storedCRC: UInt32) {
        let summary = builder.summary
        entries.append(word: file.written)
        entries.append(word: UInt64(span))
        entries.append(word: summary.timeMin)
        entries.append(word: summary.timeMax)
        entries.append(word: summary.levels)
        entries.append(word: summary.kinds)
        entries.append(word: summary.recordCount)
        entries.append(word: storedCRC)
        entries.append(word: UInt64(rawBytes))
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
