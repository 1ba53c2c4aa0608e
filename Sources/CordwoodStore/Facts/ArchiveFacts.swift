// What the cache remembers of one archive: its header and footer, the lane and time of its first
// record, the times of blocks that were looked at, the digest that `stats` made, and the origins
// that a list of devices made. Made from an opened archive, or from the cache after its checksum
// matched; content that still does not parse counts as missing. One thread at a time.
// SAFETY: the stored bytes are views of the bytes of StoreFacts, which never change after they are
// read, and which the owner of this value holds.

import CordwoodCore

@safe final class ArchiveFacts {
    /// Archives with more blocks are opened when their blocks are needed.
    private static let blocksMax = 256
    private static let timesMax = 64

    let info: ArchiveInfo
    /// nil: too many to remember.
    let blocks: [BlockEntry]?
    /// The process and time of its first record; nil: not looked up yet.
    var first: (process: ProcessInfo, monotonicNs: UInt64)? {
        parseRest()
        return madeFirst
    }
    private var madeFirst: (process: ProcessInfo, monotonicNs: UInt64)?
    /// Times of blocks by number, all of one process, without an offset.
    private var times: [Int: BlockTimes] = [:]
    private var timesOf: (lane: LaneID, boot: LaneID)?
    /// `first` and `times` as bytes until they are used; most readers never use them.
    @safe private var storedRest = Bytes.none
    /// The digest as bytes; empty: none.
    @safe private var stored = Bytes.none
    private var made: ArchiveDigest?
    /// The origins as bytes; empty: none.
    @safe private var storedOrigins = Bytes.none
    private var madeOrigins: ArchiveOrigins?
    /// A larger digest is not kept.
    private static let digestBytesMax = 64 << 10
    /// Something was learned that the cache does not have.
    private(set) var hasNews = false

    init(_ info: ArchiveInfo, _ blocks: [BlockEntry]) {
        self.info = info
        self.blocks = blocks.count <= Self.blocksMax ? blocks : nil
    }

    func learn(first process: ProcessInfo, _ monotonicNs: UInt64) {
        parseRest()
        madeFirst = (process, monotonicNs)
        hasNews = true
    }

    /// nil: not counted yet.
    var digest: ArchiveDigest? {
        if let made { return made }
        guard stored.count > 0 else { return nil }
        var cursor = ByteCursor(stored)
        return ArchiveDigest(&cursor)
    }

    func learn(_ digest: ArchiveDigest) {
        var bytes = GrowingBytes()
        digest.append(to: &bytes)
        guard !bytes.failed, bytes.count <= Self.digestBytesMax else { return }
        made = digest
        hasNews = true
    }

    /// nil: not looked up yet.
    var origins: ArchiveOrigins? {
        if let madeOrigins { return madeOrigins }
        guard storedOrigins.count > 0 else { return nil }
        var cursor = ByteCursor(storedOrigins)
        return ArchiveOrigins(&cursor)
    }

    func learn(_ origins: ArchiveOrigins) {
        var bytes = GrowingBytes()
        origins.append(to: &bytes)
        guard !bytes.failed, bytes.count <= Self.digestBytesMax else { return }
        madeOrigins = origins
        hasNews = true
    }

    /// The times of a block whose records all belong to `process`.
    func times(ofBlock block: Int, of process: ProcessInfo) -> BlockTimes? {
        parseRest()
        guard let timesOf, timesOf == (process.laneID, process.bootID) else { return nil }
        return times[block]
    }

    func learn(_ found: BlockTimes, ofBlock block: Int, of process: ProcessInfo) {
        parseRest()
        let asked = (process.laneID, process.bootID)
        guard timesOf ?? asked == asked, times.count < Self.timesMax else { return }
        timesOf = asked
        times[block] = found
        hasNews = true
    }

    // MARK: As bytes

    init?(_ cursor: inout ByteCursor, path: FilePath, key: FileKey) {
        guard let info = ArchiveInfo(&cursor, path: path, fileBytes: key.bytes),
            let count = cursor.varint(), count <= UInt64(Self.blocksMax) + 1
        else { return nil }
        self.info = info
        if count > 0 {
            var blocks: [BlockEntry] = []
            for _ in 1..<count {
                guard let block = BlockEntry(&cursor) else { return nil }
                blocks.append(block)
            }
            self.blocks = blocks
        } else {
            blocks = nil
        }
        guard let digest = cursor.string(), let origins = cursor.string() else { return nil }
        stored = unsafe digest
        storedOrigins = unsafe origins
        storedRest = unsafe cursor.rest
    }

    private func parseRest() {
        if storedRest.count == 0 { return }
        var cursor = ByteCursor(storedRest)
        storedRest = Bytes.none
        guard let hasFirst = cursor.byte() else { return }
        if hasFirst != 0 {
            guard let process = ProcessInfo.read(&cursor), let time = cursor.word(UInt64.self)
            else { return }
            madeFirst = (process, time)
        }
        guard let known = cursor.varint(), known > 0, known <= UInt64(Self.timesMax),
            let lane = cursor.id(), let boot = cursor.id()
        else { return }
        timesOf = (lane, boot)
        for _ in 0..<known {
            guard let block = cursor.varint(), block < UInt64(info.blockCount),
                let found = BlockTimes(&cursor)
            else { return }
            times[Int(block)] = found
        }
    }

    func append(to out: inout GrowingBytes) {
        info.append(to: &out)
        // 0: not known.
        out.append(varint: blocks.map { UInt64($0.count) + 1 } ?? 0)
        for block in blocks ?? [] { block.append(to: &out) }
        var digest = GrowingBytes()
        if let made { made.append(to: &digest) } else { digest.append(stored) }
        unsafe out.append(string: digest.bytes, max: Self.digestBytesMax)
        var origins = GrowingBytes()
        if let madeOrigins {
            madeOrigins.append(to: &origins)
        } else {
            origins.append(storedOrigins)
        }
        unsafe out.append(string: origins.bytes, max: Self.digestBytesMax)
        out.append(UInt8(first == nil ? 0 : 1))
        if let first {
            first.process.append(to: &out)
            out.append(word: first.monotonicNs)
        }
        out.append(varint: UInt64(times.count))
        guard let timesOf else { return }
        out.append(id: timesOf.lane)
        out.append(id: timesOf.boot)
        for (block, found) in times {
            out.append(varint: UInt64(block))
            found.append(to: &out)
        }
    }
}

extension ArchiveInfo {
    fileprivate init?(_ cursor: inout ByteCursor, path: FilePath, fileBytes: UInt64) {
        guard let id = cursor.id(), let created = cursor.word(UInt64.self),
            let records = cursor.varint(), let timeMin = cursor.word(UInt64.self),
            let timeMax = cursor.word(UInt64.self), let writtenMin = cursor.word(UInt64.self),
            let writtenMax = cursor.word(UInt64.self), let raw = cursor.varint(),
            let blocks = cursor.varint(), blocks <= UInt64(ArchiveLimits.blocksMax),
            let levels = cursor.word(UInt32.self), let kinds = cursor.word(UInt32.self),
            let lost = cursor.word(UInt32.self), let count = cursor.word(UInt32.self),
            let replacedCount = cursor.word(UInt32.self),
            let covers = ArchiveCover.list(&cursor, count: count, seals: false),
            let replaced = ReplacedArchive.list(&cursor, count: replacedCount)
        else { return nil }
        self.init(
            id: id, covers: covers, createdRealtime: created, recordCount: records,
            timeMin: timeMin, timeMax: timeMax, rawBytes: raw, fileBytes: fileBytes,
            blockCount: Int(blocks), levels: levels, kinds: kinds, path: path)
        (self.writtenMin, self.writtenMax) = (writtenMin, writtenMax)
        lostPlaces = lost
        self.replaced = replaced
    }

    fileprivate func append(to out: inout GrowingBytes) {
        out.append(id: id)
        out.append(word: createdRealtime)
        out.append(varint: recordCount)
        out.append(word: timeMin)
        out.append(word: timeMax)
        out.append(word: writtenMin)
        out.append(word: writtenMax)
        out.append(varint: rawBytes)
        out.append(varint: UInt64(blockCount))
        out.append(word: levels)
        out.append(word: kinds)
        out.append(word: lostPlaces)
        out.append(word: UInt32(truncatingIfNeeded: covers.count))
        out.append(word: UInt32(truncatingIfNeeded: replaced.count))
        out.append(covers, replaced)
    }
}

extension BlockEntry {
    fileprivate init?(_ cursor: inout ByteCursor) {
        guard let offset = cursor.varint(), let span = cursor.varint(),
            let timeMin = cursor.word(UInt64.self), let timeMax = cursor.word(UInt64.self),
            let writtenMin = cursor.word(UInt64.self), let writtenMax = cursor.word(UInt64.self),
            let levels = cursor.word(UInt32.self), let kinds = cursor.word(UInt32.self),
            let records = cursor.word(UInt32.self), let crc = cursor.word(UInt32.self),
            let raw = cursor.varint()
        else { return nil }
        self.offset = offset
        spanBytes = span
        self.timeMin = timeMin
        self.timeMax = timeMax
        (self.writtenMin, self.writtenMax) = (writtenMin, writtenMax)
        self.levels = levels
        self.kinds = kinds
        recordCount = records
        storedCRC = crc
        rawBytes = raw
    }

    fileprivate func append(to out: inout GrowingBytes) {
        out.append(varint: offset)
        out.append(varint: spanBytes)
        out.append(word: timeMin)
        out.append(word: timeMax)
        out.append(word: writtenMin)
        out.append(word: writtenMax)
        out.append(word: levels)
        out.append(word: kinds)
        out.append(word: recordCount)
        out.append(word: storedCRC)
        out.append(varint: rawBytes)
    }
}

extension BlockTimes {
    fileprivate init?(_ cursor: inout ByteCursor) {
        guard let first = cursor.word(UInt64.self), let greatest = cursor.word(UInt64.self),
            let shift = cursor.word(UInt64.self)
        else { return nil }
        self.init(first: first, greatest: greatest, shift: shift)
    }

    private init(first: UInt64, greatest: UInt64, shift: UInt64) {
        self.first = first
        self.greatest = greatest
        self.shift = shift
    }

    fileprivate func append(to out: inout GrowingBytes) {
        out.append(word: first)
        out.append(word: greatest)
        out.append(word: shift)
    }

    /// Adds an offset to times without one. nil: a time would exceed the maximum.
    func moved(by offset: UInt64) -> BlockTimes? {
        let (end, overflow) = greatest.addingReportingOverflow(offset)
        if overflow { return nil }
        return BlockTimes(first: first &+ offset, greatest: end, shift: shift &- offset)
    }
}

/// Only what ordering records needs of a process: its lane, boot and clocks.
extension ProcessInfo {
    fileprivate static func read(_ cursor: inout ByteCursor) -> ProcessInfo? {
        guard let lane = cursor.id(), let boot = cursor.id(),
            let realtime = cursor.word(UInt64.self), let monotonic = cursor.word(UInt64.self)
        else { return nil }
        return ProcessInfo(
            laneID: lane, bootID: boot, processID: 0, name: "", createdRealtime: realtime,
            createdMonotonic: monotonic, resource: [])
    }

    fileprivate func append(to out: inout GrowingBytes) {
        out.append(id: laneID)
        out.append(id: bootID)
        out.append(word: createdRealtime)
        out.append(word: createdMonotonic)
    }
}
