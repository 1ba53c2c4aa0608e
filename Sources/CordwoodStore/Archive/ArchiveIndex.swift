// Locates the blocks of an archive by its header and footer or, if the footer is damaged, by
// walking the frames (FORMAT §11.1, §11.3). Never allocates for a count that the file is too small
// for. Made once per opened archive.
// SAFETY: views are of the one buffer, are made anew after every read, and are sliced below its
// checked length.

import CordwoodCore

struct ArchiveIndex {
    /// Contents of the footer, besides its entries.
    struct Footer {
        var id: LaneID
        var recordCount: UInt64
        var timeMin: UInt64
        var timeMax: UInt64
        var writtenMin: UInt64
        var writtenMax: UInt64
        var rawBytes: UInt64
        var span: UInt64
        /// The frames between the blocks and the footer.
        var sides: [SideEntry] = []

        var extract: SideEntry? { sides.first { $0.kind == SideFrame.kindExtract } }
    }

    var info: ArchiveInfo
    var blocks: [BlockEntry] = []
    /// Damage found although the blocks were located.
    var problems: [ReadProblem] = []
    /// Bytes of the header's frame; 0 if the header is damaged.
    var headerSpan: UInt64 = 0
    /// nil if the footer is damaged.
    var footer: Footer?
    /// Set if the archive is encrypted and no key is available; `info` then holds its public facts.
    var locked: ReadProblem?
    /// The archive inside an age file is not the one described outside.
    private(set) var isOther = false

    /// `salvage`: looks for blocks even if the header is damaged.
    /// `seals`: also reads what each segment holds.
    static func load(
        _ file: borrowing ArchiveFile, salvage: Bool, seals: Bool = false
    ) throws(ReadProblem) -> ArchiveIndex {
        var index = ArchiveIndex(
            info: ArchiveInfo(
                id: .zero, covers: [], createdRealtime: 0, recordCount: 0, timeMin: 0, timeMax: 0,
                rawBytes: 0, fileBytes: file.fileBytes, blockCount: 0, levels: 0, kinds: 0,
                path: file.path))
        index.info.isEncrypted = file.isEncrypted
        if let locked = file.locked {
            guard let facts = file.facts else { throw locked }
            facts.fill(&index.info, seals: seals)
            index.locked = locked
            return index
        }
        if let problem = file.problems.first, !salvage { throw problem }
        index.problems = file.problems
        try index.loadHeader(file, salvage: salvage, seals: seals || file.facts != nil)
        try index.loadBlocks(file)
        if index.headerSpan == 0, index.blocks.isEmpty {
            throw .damaged("\(file.path): not an archive")
        }
        index.sum()
        if let facts = file.facts { try index.compare(facts, salvage: salvage) }
        if index.headerSpan > 0, !index.isOther { index.checkName(file.path) }
        if !seals { index.info.covers.removeSeals() }
        index.info.isWhole = index.problems.isEmpty
        return index
    }

    /// Programs without the key have judged the facts outside, so what the archive inside says
    /// otherwise counts for nothing: no archive is hidden or removed for it.
    private mutating func compare(_ facts: SealedFacts, salvage: Bool) throws(ReadProblem) {
        if facts.agrees(with: info, sums: footer != nil) { return }
        let problem = ReadProblem.damaged(
            "\(info.path): the archive inside is not the one described outside")
        guard salvage else { throw problem }
        problems.append(problem)
        isOther = true
        (info.id, info.covers, info.replaced) = (facts.id, [], [])
    }

    private mutating func loadHeader(
        _ file: borrowing ArchiveFile, salvage: Bool, seals: Bool
    ) throws(ReadProblem) {
        var buffer = GrowingBytes()
        do throws(ReadProblem) {
            guard let problem = try readHeader(file, &buffer, seals: seals) else { return }
            throw .damaged("\(file.path): \(problem)")
        } catch .damaged(let text) where salvage {
            // Its name says what it covers, except for the lane's id.
            if let name = ArchiveName(path: file.path), name.others == 0 {
                info.covers = [
                    ArchiveCover(
                        laneID: .zero, first: name.range.lowerBound, last: name.range.upperBound,
                        laneName: name.lane)
                ]
            }
            problems.append(.damaged(text + "; the blocks are read all the same"))
        }
    }

    /// Locates the blocks by the footer, or by looking at every frame.
    private mutating func loadBlocks(_ file: borrowing ArchiveFile) throws(ReadProblem) {
        var buffer = GrowingBytes()
        do throws(ReadProblem) {
            guard let problem = try readFooter(file, &buffer) else { return }
            throw .damaged("\(file.path): \(problem)")
        } catch .damaged(let text) {
            problems.append(.damaged(text))
        }
        footer = nil
        var walk = FrameWalk(from: headerSpan)
        do throws(ReadProblem) {
            try walk.run(file)
        } catch .damaged(let text) {
            // An encrypted chunk is not genuine: the walk ends there.
            problems.append(.damaged(text))
        }
        blocks = walk.blocks
        problems += walk.problems
    }

    /// Returns nil if the header is intact, otherwise the problem.
    private mutating func readHeader(
        _ file: borrowing ArchiveFile, _ buffer: inout GrowingBytes, seals: Bool
    ) throws(ReadProblem) -> String? {
        let start = SkippableFrame.headerBytes
        guard try file.read(UInt64(start + ArchiveHeader.bytes), at: 0, into: &buffer),
            unsafe buffer.bytes.word(0, UInt32.self) == SkippableFrame.magicValue,
            unsafe buffer.bytes.word(start + ArchiveHeader.magic, UInt64.self)
                == ArchiveHeader.magicValue
        else { return "no archive header" }
        let length = unsafe buffer.bytes.word(4, UInt32.self)
        guard length >= UInt32(ArchiveHeader.bytes), length <= UInt32(ArchiveLimits.headerMax),
            try file.read(UInt64(start) + UInt64(length), at: 0, into: &buffer)
        else { return "length of the archive header" }
        let content = unsafe UnsafeRawBufferPointer(rebasing: buffer.bytes[start...])
        let crc = content.word(ArchiveHeader.crc, UInt32.self)
        let version = content.word(ArchiveHeader.version, UInt32.self)
        guard checksum(content, zeroAt: ArchiveHeader.crc) == crc, version > 0,
            content.word(ArchiveHeader.length, UInt32.self) == length
        else { return "checksum of the archive header" }
        guard version == FormatVersion.current else {
            throw .version("\(file.path): version \(version)")
        }
        let incompat = content.word(ArchiveHeader.incompat, UInt64.self)
        guard incompat & ~FormatVersion.incompatKnown == 0 else {
            throw .version("\(file.path): features \(incompat)")
        }
        var cursor = unsafe ByteCursor(
            UnsafeRawBufferPointer(rebasing: content[ArchiveHeader.covers...]))
        guard
            let covers = ArchiveCover.list(
                &cursor, count: content.word(ArchiveHeader.coverCount, UInt32.self), seals: seals),
            let replaced = ReplacedArchive.list(
                &cursor, count: content.word(ArchiveHeader.replacedCount, UInt32.self))
        else { return "covers of the archive" }
        (info.covers, info.replaced) = (covers, replaced)
        info.id = content.id(ArchiveHeader.archiveID)
        info.createdRealtime = content.word(ArchiveHeader.createdRealtime, UInt64.self)
        info.lostPlaces = content.word(ArchiveHeader.lostPlaces, UInt32.self)
        headerSpan = UInt64(start) + UInt64(length)
        return nil
    }

    /// A file that has the form of an archive's name must be that archive.
    private mutating func checkName(_ path: FilePath) {
        guard let name = ArchiveName(path: path), !name.names(info) else { return }
        let wanted = ArchiveIdentity.fileName(of: info.covers, info.id)
        problems.append(.damaged("\(path): is not what its name says, but \(wanted)"))
    }

    private mutating func readFooter(
        _ file: borrowing ArchiveFile, _ buffer: inout GrowingBytes
    ) throws(ReadProblem) -> String? {
        let trailer = UInt64(ArchiveFooter.trailerBytes)
        let least = SkippableFrame.headerBytes + ArchiveFooter.bytes + ArchiveFooter.trailerBytes
        guard file.size >= trailer,
            try file.read(trailer, at: file.size - trailer, into: &buffer),
            unsafe buffer.bytes.word(8, UInt64.self) == ArchiveFooter.endMagicValue
        else { return "no footer" }
        let span = unsafe buffer.bytes.word(0, UInt32.self)
        guard span >= UInt32(least), UInt64(span) <= file.size,
            Int(span) <= least + ArchiveLimits.blocksMax * FooterEntry.bytes
                + ArchiveLimits.sidesMax * SideFrame.bytes,
            try file.read(UInt64(span), at: file.size - UInt64(span), into: &buffer)
        else { return "length of the footer" }
        let frame = unsafe buffer.bytes
        let start = SkippableFrame.headerBytes
        let crcAt = Int(span) - 12
        let summed = unsafe UnsafeRawBufferPointer(rebasing: frame[start..<crcAt])
        guard checksum(summed, from: 0) == frame.word(crcAt, UInt32.self),
            frame.word(0, UInt32.self) == SkippableFrame.magicValue,
            frame.word(4, UInt32.self) == span - UInt32(start),
            frame.word(start, UInt64.self) == ArchiveFooter.magicValue
        else { return "checksum of the footer" }
        let count = frame.word(start + ArchiveFooter.blockCount, UInt32.self)
        let sideCount = frame.word(start + ArchiveFooter.sideCount, UInt32.self)
        guard count <= UInt32(ArchiveLimits.blocksMax), sideCount <= UInt32(ArchiveLimits.sidesMax),
            Int(span) == least + Int(count) * FooterEntry.bytes + Int(sideCount) * SideFrame.bytes
        else { return "number of blocks and side frames in the footer" }
        let id = frame.id(start + ArchiveFooter.archiveID)
        if headerSpan == 0 { info.id = id }
        footer = Footer(
            id: id, recordCount: frame.word(start + ArchiveFooter.recordCount, UInt64.self),
            timeMin: frame.word(start + ArchiveFooter.timeMin, UInt64.self),
            timeMax: frame.word(start + ArchiveFooter.timeMax, UInt64.self),
            writtenMin: frame.word(start + ArchiveFooter.writtenMin, UInt64.self),
            writtenMax: frame.word(start + ArchiveFooter.writtenMax, UInt64.self),
            rawBytes: frame.word(start + ArchiveFooter.rawBytes, UInt64.self), span: UInt64(span))
        return readEntries(
            frame, count: Int(count), sideCount: Int(sideCount), end: file.size - UInt64(span))
    }

    @safe private mutating func readEntries(
        _ frame: UnsafeRawBufferPointer, count: Int, sideCount: Int, end: UInt64
    ) -> String? {
        var expected = headerSpan
        blocks.reserveCapacity(count)
        for index in 0..<count {
            let at = SkippableFrame.headerBytes + ArchiveFooter.entries + index * FooterEntry.bytes
            let entry = BlockEntry(footer: frame, at: at)
            guard entry.offset >= expected, entry.offset <= end,
                entry.spanBytes >= UInt64(BlockHeader.frameBytes),
                entry.spanBytes <= end - entry.offset
            else { return "entries of the footer" }
            expected = entry.offset + entry.spanBytes
            blocks.append(entry)
        }
        let sides =
            SkippableFrame.headerBytes + ArchiveFooter.entries + count * FooterEntry.bytes
        for index in 0..<sideCount {
            let entry = SideEntry(footer: frame, at: sides + index * SideFrame.bytes)
            guard entry.offset >= expected, entry.offset <= end,
                entry.spanBytes >= UInt64(SkippableFrame.headerBytes),
                entry.spanBytes <= UInt64(ArchiveLimits.sideMax),
                entry.spanBytes <= end - entry.offset
            else { return "side frames of the footer" }
            expected = entry.offset + entry.spanBytes
            footer?.sides.append(entry)
        }
        return nil
    }

    private mutating func sum() {
        info.blockCount = blocks.count
        info.timeMin = blocks.isEmpty ? 0 : .max
        info.writtenMin = info.timeMin
        for block in blocks {
            info.recordCount &+= UInt64(block.recordCount)
            info.rawBytes &+= block.rawBytes
            info.timeMin = min(info.timeMin, block.timeMin)
            info.timeMax = max(info.timeMax, block.timeMax)
            info.writtenMin = min(info.writtenMin, block.writtenMin)
            info.writtenMax = max(info.writtenMax, block.writtenMax)
            info.levels |= block.levels
            info.kinds |= block.kinds
        }
    }
}

extension ArchiveCover {
    /// The list of covers (FORMAT §11.1); nil if there are not exactly `count`, or if one has no
    /// segment, or a seal of a segment that is not its own: such a seal would prove that records of
    /// others are in the archive, and nobody would compare them.
    static func list(
        _ cursor: inout ByteCursor, count: UInt32, seals: Bool
    ) -> [ArchiveCover]? {
        guard count >= 1, count <= UInt32(ArchiveLimits.coversMax) else { return nil }
        var covers: [ArchiveCover] = []
        for _ in 0..<count {
            guard let lane = cursor.id(), let first = cursor.word(UInt64.self),
                let last = cursor.word(UInt64.self), let name = cursor.text(),
                let gap = cursor.word(UInt64.self), let sealCount = cursor.word(UInt32.self),
                Int(sealCount) <= cursor.left / SegmentSeal.bytes, first <= last
            else { return nil }
            var cover = ArchiveCover(
                laneID: lane, first: first, last: last, laneName: name, gap: gap)
            for _ in 0..<sealCount {
                guard let number = cursor.word(UInt64.self), let digest = cursor.id(),
                    number >= first, number <= last
                else { return nil }
                if seals { cover.seals.append(SegmentSeal(number: number, digest: digest)) }
            }
            covers.append(cover)
        }
        return covers
    }
}

extension [ArchiveCover] {
    mutating func removeSeals() {
        for index in indices { self[index].seals = [] }
    }
}

extension ReplacedArchive {
    /// FORMAT §11.1; nil if there are not exactly `count`.
    static func list(_ cursor: inout ByteCursor, count: UInt32) -> [ReplacedArchive]? {
        guard count <= UInt32(ArchiveLimits.replacedMax),
            Int(count) <= cursor.left / ReplacedArchive.bytes
        else { return nil }
        var found: [ReplacedArchive] = []
        for _ in 0..<count {
            guard let id = cursor.id(), let records = cursor.word(UInt64.self) else { return nil }
            found.append(ReplacedArchive(id: id, recordCount: records))
        }
        return found
    }
}

extension GrowingBytes {
    /// FORMAT §11.1: the covers, and the archives that are replaced.
    mutating func append(_ covers: [ArchiveCover], _ replaced: [ReplacedArchive]) {
        for cover in covers {
            append(id: cover.laneID)
            append(word: cover.first)
            append(word: cover.last)
            append(string: cover.laneName, max: 255)
            append(word: cover.gap)
            append(word: UInt32(cover.seals.count))
            for seal in cover.seals {
                append(word: seal.number)
                append(id: seal.digest)
            }
        }
        for archive in replaced {
            append(id: archive.id)
            append(word: archive.recordCount)
        }
    }
}

extension ArchiveInfo {
    /// Reads only header and footer. If the footer is damaged, the blocks' headers replace it. For
    /// an encrypted archive, reads its public facts: that needs no key, unless age itself made the
    /// file.
    package static func peek(
        path: FilePath, identities: [AgeIdentity] = [], seals: Bool = false
    ) throws(ReadProblem) -> ArchiveInfo {
        let file = try ArchiveFile(path: path, identities: identities)
        return try ArchiveIndex.load(file, salvage: false, seals: seals).info
    }
}
