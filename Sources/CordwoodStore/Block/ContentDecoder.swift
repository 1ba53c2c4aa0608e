// Reads a block (FORMAT §11.4): the columns that are asked for, of all rows or of some. Frames of
// other columns are not inflated. One reader owns one decoder; its memory is reused for the next
// block.
// SAFETY: columns lie in the decoder's arena until its next call. Columns of rows have as many
// values as rows are read; what refers to a dictionary is compared with its count.

import CordwoodCore

/// The columns of a block that were read; others are empty. Valid until the decoder's next call.
struct BlockContent {
    struct Processes {
        var lane: Flat<Slice>
        var boot: Flat<Slice>
        var processID: Flat<UInt64>
        var createdRealtime: Flat<UInt64>
        var createdMonotonic: Flat<UInt64>
        var name: Flat<Slice>
        var attributes: Flat<UInt64>
        var keys: Flat<Slice>
        var values: Flat<Slice>
    }
    struct Threads {
        var process: Flat<UInt64>
        var serial: Flat<UInt64>
        var threadID: Flat<UInt64>
        var name: Flat<Slice>
    }
    struct Sites {
        var line: Flat<UInt64>
        var file: Flat<Slice>
        var function: Flat<Slice>
    }
    struct Formats {
        var place: Sites
        var style: Flat<UInt64>
        var text: Flat<Slice>
        var types: Flat<Slice>
    }

    /// Rows that were read.
    var rows: Int
    var processes: Processes
    var threads: Threads
    var loggers: Flat<Slice>
    var sites: Sites
    var formats: Formats
    var contexts: Flat<Slice>
    var traces: Flat<Slice>

    var kind: Flat<UInt64>
    var level: Flat<UInt64>
    var thread: Flat<UInt64>
    /// Monotonic ns.
    var time: Flat<UInt64>
    /// UTC − monotonic ns.
    var offset: Flat<UInt64>
    /// Less the one that is expected after the thread's record before.
    var sequence: Flat<UInt64>
    var logger: Flat<UInt64>
    var context: Flat<UInt64>
    /// Of the deferred ones among the rows.
    var format: Flat<UInt64>
    var arguments: ArgumentColumns
    /// Of those with sections.
    var sections: SectionColumns
    /// Of those that are not deferred.
    var messages: Flat<Slice>
    /// Letter runs of texts lie in the text leaves, wherever these are.
    var hasLetters = false

    init(_ arena: inout Arena) throws(BlockProblem) {
        let (numbers, texts): (Flat<UInt64>, Flat<Slice>) = try (arena.flat(0), arena.flat(0))
        let sizes: Flat<Int> = try arena.flat(0)
        rows = 0
        processes = Processes(
            lane: texts, boot: texts, processID: numbers, createdRealtime: numbers,
            createdMonotonic: numbers, name: texts, attributes: numbers, keys: texts, values: texts)
        threads = Threads(process: numbers, serial: numbers, threadID: numbers, name: texts)
        loggers = texts
        sites = Sites(line: numbers, file: texts, function: texts)
        formats = Formats(place: sites, style: numbers, text: texts, types: texts)
        (contexts, traces, messages) = (texts, texts, texts)
        (kind, level, thread, time, offset) = (numbers, numbers, numbers, numbers, numbers)
        (sequence, logger, context, format) = (numbers, numbers, numbers, numbers)
        arguments = ArgumentColumns(columns: try arena.flat(0), first: sizes)
        sections = SectionColumns(
            count: 0, only: .all, whole: nil, shapes: texts, chosen: numbers, sizes: sizes)
    }
}

/// Of a block's header, what reading it needs.
struct BlockFacts {
    var recordCount: Int
    var size: Int
    var codec = Codec.zstd
}

extension BlockDecoder {
    /// `stored`: the directory and the frames. Damage in columns that are not asked for may go
    /// unnoticed.
    mutating func read(
        _ stored: Slice, _ facts: BlockFacts, _ columns: BlockColumns = .all,
        rows: Range<Int>? = nil
    ) throws(BlockProblem) -> BlockContent {
        try walk(stored, facts, columns, rows: rows) { _, _ in .kept }
    }

    /// What becomes of a column that was read.
    enum Fate { case kept, freed, refused }

    /// Whether these are the block's columns. Each is freed once it was compared.
    mutating func gives(
        _ block: inout Block, from stored: Slice, _ facts: BlockFacts
    ) throws(BlockProblem) -> Bool {
        defer { arena.clear(keeping: Self.arenaKept) }
        var isSame = true
        _ = try walk(stored, facts) { column, content throws(BlockProblem) in
            isSame = try block.has(column, content)
            if !isSame { return .refused }
            // What other columns need.
            return switch column {
            case .formats, .kind, .time, .offset, .format: .kept
            default: .freed
            }
        }
        return isSame
    }

    /// Checks what the header says of the block, and inflates the frames that all columns share.
    mutating func open(
        _ stored: Slice, _ facts: BlockFacts
    ) throws(BlockProblem) -> BlockOpener.Opened {
        arena.clear(keeping: Self.arenaKept)
        guard facts.recordCount <= BlockLimits.recordsMax, facts.size <= BlockLimits.sizeMax,
            facts.recordCount <= facts.size / BlockSize.row
        else { throw .damaged }
        rawBytes = facts.size
        let opened = try opener.open(
            stored, rawBytes: facts.size, codec: facts.codec, into: &arena)
        leaves = opened.leaves
        return opened
    }

    private mutating func walk(
        _ stored: Slice, _ facts: BlockFacts, _ columns: BlockColumns = .all,
        rows: Range<Int>? = nil,
        _ each: (BlockColumn, borrowing BlockContent) throws(BlockProblem) -> Fate
    ) throws(BlockProblem) -> BlockContent {
        let opened = try open(stored, facts)
        defer { leaves = LeafReader() }
        var content = try BlockContent(&arena)
        content.hasLetters = opened.hasLetters
        guard let last = columns.last else { return content }
        var plan = try BlockPlan(
            columns, try picks(rows, of: facts.recordCount), facts.size, &arena)
        content.rows = plan.rows.size
        for column in BlockColumn.allCases where column.rawValue <= last.rawValue {
            let mark = arena.mark
            try read(column, &plan, into: &content)
            switch try each(column, content) {
            case .kept: break
            case .freed:
                // With what was inflated for it.
                leaves.forget()
                arena.release(to: mark)
            case .refused: return content
            }
        }
        let isAll = columns == .all && rows == nil
        guard !isAll || leaves.isSpent && plan.left == 0 else { throw .damaged }
        return content
    }

    private mutating func picks(
        _ rows: Range<Int>?, of count: Int
    ) throws(BlockProblem) -> Picks {
        guard let rows = rows?.clamped(to: 0..<count), rows.count < count else {
            return Picks(all: count)
        }
        let places: Flat<UInt32> = try arena.flat(rows.count)
        for index in 0..<rows.count { places[index] = UInt32(rows.lowerBound + index) }
        return Picks(places, of: count)
    }

    mutating func read(
        _ column: BlockColumn, _ plan: inout BlockPlan, into content: inout BlockContent
    ) throws(BlockProblem) {
        switch column {
        case .processes: content.processes = try processes(&plan)
        case .threads: content.threads = try threads(&plan)
        case .loggers:
            plan.loggers = try leaves.count(BlockLimits.dictionaryMax)
            content.loggers = try strings(plan.all(.loggers, plan.loggers), depth: 1)
            try plan.take(plan.loggers, content.loggers)
        case .sites: content.sites = try sites(&plan)
        case .formats: content.formats = try formats(&plan)
        case .kind:
            // Also where it is not asked for: it says which rows other columns have.
            plan.kind = try ints(Picks(all: plan.rows.count), depth: 1)
            try Self.check(plan.kind, below: 128)
            content.kind = try gather(plan.kind, plan.rows)
        case .level:
            content.level = try ints(plan.picks(.level), depth: 1)
            try Self.check(content.level, below: 256)
        case .thread:
            content.thread = try ints(plan.picks(.thread), depth: 1)
            try Self.check(content.thread, below: plan.threads)
        case .time: content.time = try ints(plan.picks(.time), depth: 1)
        case .offset: content.offset = try ints(plan.picks(.offset), depth: 1)
        case .sequence: content.sequence = try ints(plan.picks(.sequence), depth: 1)
        case .logger:
            content.logger = try ints(plan.picks(.logger), depth: 1)
            try Self.check(content.logger, below: plan.loggers)
        case .context:
            content.context = try ints(plan.picks(.context), depth: 1)
            plan.contextMost = Self.most(content.context)
        case .format:
            plan.deferred = try share(plan.kind, BlockKind.deferred, plan.rows)
            plan.format = try ints(Picks(all: plan.deferred.count), depth: 1)
            try Self.check(plan.format, below: plan.types.count)
            content.format = try gather(plan.format, plan.deferred)
        case .contexts: try contexts(&plan, into: &content)
        case .arguments:
            let wanted = plan.isWanted(.arguments) ? plan.deferred : plan.none(plan.deferred.count)
            content.arguments = try argumentColumns(plan.types, plan.format, wanted)
            try plan.take(content.arguments.bytes)
        case .sections:
            let wanted = try share(plan.kind, BlockKind.hasSections, plan.rows)
            content.sections = try sectionColumns(
                plan.isWanted(.sections) ? wanted : plan.none(wanted.count), only: plan.only)
            try plan.take(content.sections.bytes)
        case .messages:
            let plain = try plain(plan)
            content.messages = try strings(plain, depth: 1)
            try plan.takeMessages(content.messages)
        }
    }

    /// The rows with a message, among all that have one.
    mutating func plain(_ plan: borrowing BlockPlan) throws(BlockProblem) -> Picks {
        try share(plan.kind, BlockKind.deferred, isSet: false, plan.rows)
    }

    private static func check(_ values: Flat<UInt64>, below end: Int) throws(BlockProblem) {
        if values.count == 0 { return }
        // No value exceeds all of their bits together, which cost less to find.
        let source = unsafe values.base
        var bits: UInt64 = 0
        for index in 0..<values.count { unsafe bits |= source[index] }
        guard bits < UInt64(end) || most(values) < UInt64(end) else { throw .damaged }
    }

    private static func most(_ values: Flat<UInt64>) -> UInt64 {
        let source = unsafe values.base
        var most: UInt64 = 0
        for index in 0..<values.count { unsafe most = max(most, source[index]) }
        return most
    }

    // MARK: dictionaries

    private mutating func processes(
        _ plan: inout BlockPlan
    ) throws(BlockProblem) -> BlockContent.Processes {
        let count = try leaves.count(ArchiveLimits.processesMax)
        plan.processes = count
        let all = plan.all(.processes, count)
        let found = BlockContent.Processes(
            lane: try strings(all, depth: 1), boot: try strings(all, depth: 1),
            processID: try ints(all, depth: 1), createdRealtime: try ints(all, depth: 1),
            createdMonotonic: try ints(all, depth: 1), name: try strings(all, depth: 1),
            // Also where they are not asked for: their sum is the number of keys.
            attributes: try ints(Picks(all: count), depth: 1), keys: plan.noTexts,
            values: plan.noTexts)
        for index in 0..<all.size {
            guard found.lane[index].count == 16, found.boot[index].count == 16 else {
                throw .damaged
            }
        }
        try Self.check(found.processID, below: 1 << 32)
        try Self.check(found.attributes, below: BlockLimits.dictionaryMax + 1)
        var sum = 0
        for index in 0..<count { sum += Int(found.attributes[index]) }
        guard sum <= BlockLimits.dictionaryMax else { throw .damaged }
        var whole = found
        whole.keys = try strings(plan.all(.processes, sum), depth: 1)
        whole.values = try strings(plan.all(.processes, sum), depth: 1)
        try plan.take(count + sum, whole.lane, whole.boot, whole.name, whole.keys, whole.values)
        return whole
    }

    private mutating func threads(
        _ plan: inout BlockPlan
    ) throws(BlockProblem) -> BlockContent.Threads {
        let count = try leaves.count(BlockLimits.dictionaryMax)
        plan.threads = count
        let all = plan.all(.threads, count)
        let found = BlockContent.Threads(
            process: try ints(all, depth: 1), serial: try ints(all, depth: 1),
            threadID: try ints(all, depth: 1), name: try strings(all, depth: 1))
        try Self.check(found.process, below: plan.processes)
        try Self.check(found.serial, below: 1 << 32)
        try Self.check(found.threadID, below: 1 << 32)
        try plan.take(count, found.name)
        return found
    }

    private mutating func places(_ picks: Picks) throws(BlockProblem) -> BlockContent.Sites {
        let found = BlockContent.Sites(
            line: try ints(picks, depth: 1), file: try strings(picks, depth: 1),
            function: try strings(picks, depth: 1))
        try Self.check(found.line, below: 1 << 32)
        return found
    }

    private mutating func sites(
        _ plan: inout BlockPlan
    ) throws(BlockProblem) -> BlockContent.Sites {
        let count = try leaves.count(BlockLimits.dictionaryMax)
        let found = try places(plan.all(.sites, count))
        try plan.take(count, found.file, found.function)
        return found
    }

    private mutating func formats(
        _ plan: inout BlockPlan
    ) throws(BlockProblem) -> BlockContent.Formats {
        let count = try leaves.count(BlockLimits.dictionaryMax)
        let all = plan.all(.formats, count)
        let found = BlockContent.Formats(
            place: try places(all), style: try ints(all, depth: 1),
            text: try strings(all, depth: 1),
            // Also where they are not asked for: they say which columns arguments have.
            types: try strings(Picks(all: count), depth: 1))
        try Self.check(found.style, below: 256)
        var sum = 0
        for index in 0..<count { sum &+= found.types[index].count }
        guard sum <= BlockLimits.partsMax else { throw .damaged }
        plan.types = found.types
        try plan.take(count, found.place.file, found.place.function, found.text, found.types)
        return found
    }

    private mutating func contexts(
        _ plan: inout BlockPlan, into content: inout BlockContent
    ) throws(BlockProblem) {
        let count = try leaves.count(BlockLimits.dictionaryMax)
        // A record without a context has 0, and the first context is 1.
        guard plan.contextMost <= UInt64(count) else { throw .damaged }
        let all = plan.all(.contexts, count)
        content.contexts = try fieldLists(all, depth: 1)
        content.traces = try traces(all, depth: 1)
        try plan.take(count, content.contexts)
    }
}

/// What reading one block found so far.
struct BlockPlan {
    var columns: BlockColumns
    /// Those that later columns are read of.
    var rows: Picks
    /// The sections that are read.
    var only = SectionKinds.all
    /// Of the block's size, what columns may still hold.
    private(set) var left: Int
    private let noPlaces: Flat<UInt32>
    let noTexts: Flat<Slice>
    var processes = 0
    var threads = 0
    var loggers = 0
    var contextMost: UInt64 = 0
    var types: Flat<Slice>
    var kind: Flat<UInt64>
    var format: Flat<UInt64>
    var deferred: Picks

    init(
        _ columns: BlockColumns, _ rows: Picks, _ size: Int, _ arena: inout Arena
    ) throws(BlockProblem) {
        left = size &- rows.count &* BlockSize.row
        self.columns = columns
        self.rows = rows
        noPlaces = try arena.flat(0)
        noTexts = try arena.flat(0)
        types = noTexts
        kind = try arena.flat(0)
        format = kind
        deferred = Picks(all: 0)
    }

    mutating func take(_ bytes: Int) throws(BlockProblem) {
        guard bytes <= left else { throw .damaged }
        left &-= bytes
    }

    /// Entries of a dictionary, and what they hold.
    mutating func take(_ entries: Int, _ strings: Flat<Slice>...) throws(BlockProblem) {
        try take(entries &* BlockSize.entry)
        for column in strings {
            for index in 0..<column.count { try take(column[index].count) }
        }
    }

    mutating func takeMessages(_ messages: Flat<Slice>) throws(BlockProblem) {
        try take(0, messages)
        try take(messages.count)
    }

    func isWanted(_ column: BlockColumn) -> Bool { columns.has(column) }

    func none(_ count: Int) -> Picks { Picks(noPlaces, of: count) }

    /// Of a column of rows.
    func picks(_ column: BlockColumn) -> Picks {
        isWanted(column) ? rows : none(rows.count)
    }

    /// Of a dictionary.
    func all(_ column: BlockColumn, _ count: Int) -> Picks {
        isWanted(column) ? Picks(all: count) : none(count)
    }
}
