// Reads an archive as a run of records (FORMAT §11), with one block in memory at a time, several
// with `ahead`, or a piece of one when `room` is full. Reports damage in a block once and continues
// with the next block. One thread at a time; the descriptor stays open, so an archive that is
// deleted meanwhile is read to its end.
// SAFETY: a record's views stay valid until `advance` loads the next block.

import CordwoodCore

package final class ArchiveSource: RunSource, RecordSource {
    package let info: ArchiveInfo
    /// Problems of header and footer, reported before the first record. Here and below: one thread
    /// at a time, and nothing calls back, so accesses need no check.
    @exclusivity(unchecked) private var problems: [ReadProblem]
    private let shared: SharedArchive
    private var blocks: [BlockEntry]
    /// All blocks of the archive; `blocks` may be the extract alone.
    private let allBlocks: [BlockEntry]
    private let extract: ExtractPlace?
    private var loader = BlockLoader()
    @exclusivity(unchecked) private var records: BlockRecords?
    private var block = 0
    private var nextBlock = 0
    /// The rows before the first one at this monotonic time or later are left out; 0: none are, or
    /// that row was reached.
    private var start: UInt64 = 0
    private var limits = RowLimits()
    private var firstProcess: ProcessInfo?
    private var firstMonotonic: UInt64 = 0
    private var known = false

    /// Throws `.damaged` if the file is not an archive, `.version` if it is a newer one. An
    /// encrypted archive that none of the identities opens has no records: `advance` throws
    /// `.locked` once. If the file does not even say which archive it is, this throws `.locked`.
    /// `files`: gives up idle descriptors if needed.
    static func open(
        path: FilePath, identities: [AgeIdentity], files: OpenFiles?
    ) throws(ReadProblem) -> ArchiveSource {
        guard let files else { return try open(path: path, identities: identities) }
        return try files.making { () throws(ReadProblem) in
            try open(path: path, identities: identities)
        }
    }

    /// The same, with the descriptors that are free.
    package static func open(
        path: FilePath, identities: [AgeIdentity] = []
    ) throws(ReadProblem) -> ArchiveSource {
        try ArchiveSource(ArchiveFile(path: path, identities: identities))
    }

    private var text: DeferredText? = DeferredText()
    private var isWanted: ((borrowing RecordRef) -> Bool)?
    /// The block names one process: its records are in the order of their monotonic times.
    private var isOfOneProcess = false

    private var wanted: TextSearch?
    /// The test for the current block; nil: all its rows are wanted.
    private var test: RowTest?
    private var fieldSearch: FieldSearch?
    /// Checked before a block is decoded.
    private var letters: LetterRun?
    /// Set if nothing in the current block is wanted and the block was released.
    private var passedOver: PassedBlock?
    /// Loads blocks ahead; nil: each is loaded when its turn comes.
    package var ahead: ReadAhead?
    private var blocksAhead: [BlockAhead] = []
    /// Encrypted: only one thread reads it.
    private let isAlone: Bool
    var passed: PassedRows?
    /// Bounds the memory of this and other archives; nil: each holds a block.
    var room: BlockRoom? {
        didSet {
            guard let room else { return }
            decoders = room.decoders
            shared.file.join(room.files)
        }
    }
    /// May be shared by several archives.
    var decoders = BlockDecoders() {
        didSet { loader.decoders = decoders }
    }
    /// Bytes held of `room`.
    private var held = 0
    /// The rows requested of the current block.
    private var rows: WantedRows?
    /// Set while only some rows of the block are held, in `piece`.
    private var pieces: BlockPieces?
    private var piece = RowBuffer()
    /// Counts what can be counted without making records.
    var tally: (any BlockCounter)?

    /// Leaves out records whose message, and fields if they are searched, cannot contain these
    /// bytes; the caller tests the others.
    package func look(for wanted: TextSearch, inFields fieldSearch: FieldSearch? = nil) {
        self.wanted = wanted
        self.fieldSearch = fieldSearch
        letters = LetterRun(wanted.wanted)
    }

    /// False: deferred records keep their arguments and have no message.
    package var rendersText: Bool {
        get { text != nil }
        set { text = newValue ? DeferredText() : nil }
    }

    /// Leaves out records for which `isWanted` is false, before their text is made. Still returns
    /// them, without text, in a run or if the order of later records depends on them.
    package func select(_ isWanted: @escaping (borrowing RecordRef) -> Bool) {
        self.isWanted = isWanted
    }

    private init(_ file: consuming ArchiveFile) throws(ReadProblem) {
        let index = try ArchiveIndex.load(file, salvage: true)
        info = index.info
        blocks = index.blocks
        allBlocks = blocks
        extract = index.problems.isEmpty ? index.footer.flatMap { ExtractPlace(file, $0) } : nil
        unsafe problems = index.problems.reversed()
        if let locked = index.locked { unsafe problems.append(locked) }
        isAlone = file.isEncrypted
        shared = SharedArchive(file)
        super.init()
    }

    private init(again source: ArchiveSource) {
        info = source.info
        blocks = source.allBlocks
        allBlocks = blocks
        extract = source.extract
        unsafe problems = []
        isAlone = source.isAlone
        shared = source.shared
    }

    /// All its records from the beginning, from the same open file.
    func again() -> ArchiveSource {
        let source = ArchiveSource(again: self)
        source.rendersText = false
        return source
    }

    /// For each thread of a lane, its first and last sequence; nil: not all can be read. For a
    /// source that returns no records.
    func sequences(of lane: LaneID) -> [UInt32: ClosedRange<UInt64>]? {
        var found: [UInt32: ClosedRange<UInt64>] = [:]
        var record = RecordRef()
        do throws(ReadProblem) {
            while try next(&record) {
                guard record.thread.process.laneID == lane else { continue }
                let (thread, sequence) = (record.thread.serial, record.sequence)
                let range = found[thread] ?? sequence...sequence
                found[thread] = min(range.lowerBound, sequence)...max(range.upperBound, sequence)
            }
        } catch {
            return nil
        }
        return found
    }

    deinit {
        ahead?.remove(blocksAhead)
        room?.remove(held)
    }

    package var header: ArchiveInfo { info }

    /// Skips blocks without matching records, and rows that do not affect the order. Reads only the
    /// extract if that holds every wanted record. The caller tests each record it gets. Call before
    /// the first record.
    package func restrict(_ limits: RowLimits) {
        self.limits = limits
        blocks = allBlocks
        guard let extract, limits.level >= extract.level, nextBlock == 0,
            extract.isIntact(shared.file)
        else { return }
        blocks = [extract.block]
    }

    /// Begins at this place; blocks before it are not even loaded. Call before the first record.
    func begin(at place: ArchiveStart) {
        nextBlock = place.block
        start = place.monotonicNs
        if place.block > 0 { blocks = allBlocks }
    }

    /// Blocks according to the footer; nil if anything in the file is damaged or locked.
    var intactBlocks: [BlockEntry]? { unsafe problems.isEmpty ? allBlocks : nil }

    private var digestParts = BlockParts.all

    /// Counts all records by their columns; nil: something is damaged. For a source that returns no
    /// records.
    func digest() -> ArchiveDigest? {
        digestParts = ArchiveDigest.parts
        var made = ArchiveDigest()
        while nextBlock < blocks.count {
            block = nextBlock
            nextBlock += 1
            guard limits.mayWant(blocks[block]) else { continue }
            guard (try? load(block, digestParts)) != nil else { return nil }
            made.add(loader.view)
        }
        return made
    }

    /// The processes of all records; nil: something is damaged, or there are too many of them. For
    /// a source that returns no records.
    func origins() -> ArchiveOrigins? {
        digestParts = ArchiveOrigins.parts
        var made = ArchiveOrigins()
        while nextBlock < blocks.count {
            block = nextBlock
            nextBlock += 1
            guard (try? load(block, digestParts)) != nil, made.add(loader.view) else {
                return nil
            }
        }
        made.settle()
        return made
    }

    /// The times of one block; nil if it cannot be read. For a source that returns no records.
    func times(ofBlock index: Int, of process: ProcessInfo, offset: UInt64) -> BlockTimes? {
        guard loadTimes(ofBlock: index) else { return nil }
        return BlockTimes(loader.view, of: process, offset: offset)
    }

    /// The ordering times of one block's records, likewise.
    func orderingTimes(
        ofBlock index: Int, of process: ProcessInfo, offset: UInt64
    ) -> [UInt64]? {
        guard loadTimes(ofBlock: index) else { return nil }
        return BlockTimes.all(loader.view, of: process, offset: offset)
    }

    private func loadTimes(ofBlock index: Int) -> Bool {
        index < allBlocks.count
            && (try? loader.load(allBlocks[index], of: shared.file, parts: .times)) != nil
    }

    /// Monotonic time of the first record; 0 if it is not known.
    package var createdMonotonicNs: UInt64 {
        if !known { peek() }
        return firstMonotonic
    }

    package var process: ProcessInfo? {
        if !known { peek() }
        return firstProcess
    }

    package func next(_ record: inout RecordRef) throws(ReadProblem) -> Bool {
        if unsafe !problems.isEmpty { throw unsafe problems.removeLast() }
        while true {
            if let block = passedOver {
                passedOver = nil
                stand(&record, for: block)
                return true
            }
            if isOfOneProcess, let test, let count = unsafe records?.pass(test) {
                unsafe passed?.count &+= UInt64(count)
            }
            switch unsafe records?.next(into: &record) {
            case .record:
                if !mayBeWanted(record) {
                    if unsafe records?.isFollowedInOrder == true, isOfOneProcess {
                        unsafe passed?.count &+= 1
                        continue
                    }
                } else {
                    text?.render(&record)
                }
                return true
            case .damaged:
                unsafe records = nil
                pieces = nil
                throw damagedColumns
            case .end, nil:
                unsafe records = nil
                if try loadPiece() { continue }
                guard try load() else { return false }
            }
        }
    }

    /// Possible if all rows of the block belong to one process.
    package func run() -> RecordRun? {
        guard passedOver == nil, text == nil, isOfOneProcess, unsafe problems.isEmpty,
            unsafe records != nil
        else { return nil }
        return RecordRun(self)
    }

    /// The process of the block that a run reads.
    override var runProcess: ProcessInfo? { unsafe records?.dictionaries.processes.first }

    override func next(
        _ record: inout RecordRef, through lastMonotonic: UInt64, offset: UInt64,
        _ lastOrdering: UInt64
    ) -> Bool {
        if test != nil { passRows() }
        while unsafe records?.next(
            into: &record, through: lastMonotonic, offset: offset, lastOrdering) == true
        {
            // The reader tests the record; what it asks of texts costs less to ask here. All rows
            // up to these times come before other records, so one may be left out.
            if test?.text == nil || mayBeWanted(record) { return true }
            unsafe passed?.count &+= 1
            passRows()
        }
        return false
    }

    private func passRows() {
        guard let test, let count = unsafe records?.pass(test) else { return }
        unsafe passed?.count &+= UInt64(count)
    }

    override var nextTime: UInt64? { unsafe records?.nextTime }

    override func texts(
        through lastMonotonic: UInt64, offset: UInt64, _ lastOrdering: UInt64
    ) -> RunTexts? {
        unsafe records?.takeTexts(through: lastMonotonic, offset: offset, lastOrdering)
    }

    private func mayBeWanted(_ record: borrowing RecordRef) -> Bool {
        if let isWanted, !isWanted(record) { return false }
        guard let text = test?.text, let index = unsafe records?.formatIndex else { return true }
        if text.mayBeInFields, FieldSearch.hasParts(record),
            mayBeInFields(of: record, text.printer)
        {
            return true
        }
        if record.isDeferred {
            return TextSearch.isPossible(
                text.odds[index], record.argumentTypes, record.arguments, text.printer)
        }
        return text.mayBePlain && text.wanted.isIn(record.message)
    }

    /// A separate function, so that records without fields cost nothing.
    @inline(never)
    private func mayBeInFields(
        of record: borrowing RecordRef, _ printer: NumberPrinter
    ) -> Bool {
        fieldSearch?.mayBeIn(record, hasMessage: !record.isDeferred, printer) ?? true
    }

    /// Makes a record without text that has the time of the block's last one.
    private func stand(_ record: inout RecordRef, for block: PassedBlock) {
        record = RecordRef(thread: block.thread)
        record.monotonicNs = block.last
        unsafe passed?.count &+= UInt64(block.count) &- 1
    }

    /// Loads the next wanted block; false at the end.
    private func load() throws(ReadProblem) -> Bool {
        while nextBlock < blocks.count {
            if passed?.isStopped == true { return false }
            block = nextBlock
            nextBlock += 1
            let entry = blocks[block]
            guard limits.mayWant(entry) else { continue }
            borrowLoader()
            rows = rows(of: entry)
            if let counter = counter(of: entry) {
                try count(entry, by: counter)
                continue
            }
            var head = try load(block, .all)
            if loader.loaded.isWithout {
                if passOver() {
                    returnLoader()
                    return true
                }
                rows = nil
                head = try loader.load(entry, of: shared.file)
            }
            var found = BlockRecords(loader.view)
            unsafe passed?.count &+= UInt64(Int(head.recordCount) &- found.left)
            isOfOneProcess = found.dictionaries.processes.count == 1
            if !known { learn(found) }
            if start != 0 {
                unsafe passed?.count &+= UInt64(found.pass(before: start))
                if found.left > 0 { start = 0 }
            }
            look(into: found, entry)
            if passedOver == nil { keep(found) } else { returnLoader() }
            return true
        }
        return false
    }

    /// The rows to request of the block whose turn it is.
    private func rows(of entry: BlockEntry) -> WantedRows? {
        start != 0 && limits.wantsAll(entry) ? WantedRows(start: start) : limits.rows(of: entry)
    }

    // MARK: Memory

    /// Takes the loader shared by several archives, if this one has none of its own.
    private func borrowLoader() {
        guard let room else { return }
        room.remove(held)
        held = 0
        if loader.bytes == 0 { swap(&loader, &room.loader) }
    }

    /// Returns the loader's memory to the other archives.
    private func returnLoader() {
        guard let room else { return }
        swap(&loader, &room.loader)
        loader = BlockLoader(decoders: decoders)
    }

    /// Holds the remaining rows of the block, or as many as there is room for.
    private func keep(_ block: BlockRecords) {
        unsafe records = block
        guard let room else { return }
        if room.isLean { loader.trim() }
        if room.take(loader.bytes) {
            held = loader.bytes
            pieces = nil
            piece.clear()
            return
        }
        var found = block
        if isOfOneProcess, let test { unsafe passed?.count &+= UInt64(found.pass(test)) }
        var made = pieces ?? BlockPieces(recordCount: found.view.count)
        guard piece.take(made.take(from: found.row), of: found.view) else {
            // Without memory for a piece, the block that is there has to do.
            unsafe records = found
            room.add(loader.bytes)
            held = loader.bytes
            pieces = nil
            return
        }
        unsafe records = BlockRecords(piece.view())
        pieces = made
        returnLoader()
        held = piece.capacity
        room.add(held)
    }

    /// Loads the next rows of a block that is held in pieces. False: the block has no more rows.
    private func loadPiece() throws(ReadProblem) -> Bool {
        guard let made = pieces, !made.isLast else {
            pieces = nil
            return false
        }
        pieces = nil
        piece.clear()
        borrowLoader()
        _ = try loader.load(blocks[block], of: shared.file, rows: rows)
        var found = BlockRecords(loader.view)
        guard found.view.count == made.recordCount else { throw damagedColumns }
        found.pass(rows: made.next)
        pieces = made
        keep(found)
        return true
    }

    /// Loads a block, or takes it from those loaded ahead, and has the next ones loaded.
    private func load(_ block: Int, _ parts: BlockParts) throws(ReadProblem) -> BlockHead {
        do throws(ReadProblem) {
            return try take(block, parts)
        } catch {
            // Removed while it was closed: this is reported once.
            if shared.file.isGone { nextBlock = blocks.count }
            throw error
        }
    }

    private func take(_ block: Int, _ parts: BlockParts) throws(ReadProblem) -> BlockHead {
        guard let ahead, !isAlone else { return try loadNow(block, parts) }
        let mine = blocksAhead.first?.block == block ? blocksAhead.removeFirst() : nil
        var next = (blocksAhead.last?.block ?? block) + 1
        while blocksAhead.count < ReadAhead.depth, next < blocks.count {
            let entry = blocks[next]
            if limits.mayWant(entry) {
                let made = BlockAhead(
                    next, entry, of: shared,
                    parts: counter(of: entry)?.parts(of: entry, limits) ?? digestParts,
                    unless: letters, rows: limits.rows(of: entry), decoders: decoders)
                guard ahead.add(made) else { break }
                blocksAhead.append(made)
            }
            next += 1
        }
        guard let mine else { return try loadNow(block, parts) }
        ahead.finish(mine)
        ahead.take(mine, for: &loader)
        rows = limits.rows(of: blocks[block])
        return try mine.result!.get()
    }

    private func loadNow(_ block: Int, _ parts: BlockParts) throws(ReadProblem) -> BlockHead {
        try loader.load(
            blocks[block], of: shared.file, parts: parts, unless: letters, rows: rows)
    }

    private var damagedColumns: ReadProblem {
        .damaged("\(info.path): columns of the block at \(blocks[block].offset)")
    }

    /// Decides which rows of the new block may be wanted. If none is, only one record is made,
    /// which stands for all.
    private func look(into found: BlockRecords, _ entry: BlockEntry) {
        test = nil
        if wanted == nil, limits.wantsAll(entry) { return }
        let made = RowTest(limits, wanted, fieldSearch, found)
        test = made
        guard let text = made.text, !text.mayHaveBytes, isOfOneProcess,
            let thread = found.dictionaries.threads.first,
            let last = found.view.lastInOrder(from: found.row)
        else { return }
        passedOver = PassedBlock(thread: thread, last: last, count: found.left)
    }

    /// The same for a block of which only the times were loaded. False: the order of later records
    /// depends on more.
    private func passOver() -> Bool {
        let view = loader.view
        guard let process = view.dictionaries.processes.first,
            view.dictionaries.processes.count == 1, let thread = view.dictionaries.threads.first,
            let last = view.lastInOrder()
        else { return false }
        if !known {
            known = true
            firstProcess = process
            firstMonotonic = firstOfExtract ?? view.time[0]
        }
        passedOver = PassedBlock(thread: thread, last: last, count: view.count)
        return true
    }

    /// The counter for the block; nil: its records are returned.
    private func counter(of entry: BlockEntry) -> (any BlockCounter)? {
        tally.flatMap { $0.mayCount(entry, limits) ? $0 : nil }
    }

    private func count(
        _ entry: BlockEntry, by counter: any BlockCounter
    ) throws(ReadProblem) {
        _ = try load(block, counter.parts(of: entry, limits))
        guard counter.add(loader.view, of: entry, limits) else { throw damagedColumns }
        unsafe passed?.count &+= UInt64(entry.recordCount)
    }

    /// Monotonic time of the archive's first record; nil unless only the extract is read.
    private var firstOfExtract: UInt64? {
        blocks.first?.isExtract == true ? extract?.firstMonotonic : nil
    }

    private func learn(_ found: BlockRecords) {
        known = true
        firstProcess = found.dictionaries.processes.first
        if let time = firstOfExtract ?? loader.loaded.firstTime ?? found.nextTime {
            firstMonotonic = time
        }
    }

    /// Looks at the beginning of the first block that can be read. Damage is reported when its turn
    /// comes.
    private func peek() {
        known = true
        var failures = 0
        for entry in blocks.dropFirst(nextBlock) where limits.mayWant(entry) {
            if (try? loader.load(entry, of: shared.file, parts: .times)) != nil,
                let process = loader.view.dictionaries.processes.first, loader.view.count > 0
            {
                firstProcess = process
                firstMonotonic = firstOfExtract ?? loader.view.time[0]
                return
            }
            failures += 1
            if failures == ArchiveLimits.problemsMax { return }
        }
    }
}

/// A block of one process of which no record is made.
private struct PassedBlock {
    var thread: ThreadInfo
    /// The monotonic time of its last record; no record is older than the one before it.
    var last: UInt64
    var count: Int
}
