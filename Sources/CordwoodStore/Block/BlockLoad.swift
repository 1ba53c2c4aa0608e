// Reads of a block what a reader wants: the columns of the rows that may be wanted, as far as
// columns that come first tell, into a buffer that the reader keeps.
// SAFETY: columns lie in the decoder's arena until its next block; the buffer gets copies.

import CordwoodCore

/// Of a block, what its reader gets besides the rows.
struct LoadedRows {
    /// No row is wanted. The buffer has the times of all rows.
    var isWithout = false
    /// Monotonic time of the block's first row if only some rows were read.
    var firstTime: UInt64?
}

extension BlockDecoder {
    /// Replaces `out`. `rows`: if these are few, only they are read, and those that decide about
    /// the order of others. `letters`: nothing is read if texts show that they are in no record.
    /// What is not wanted is not inflated, and damage in it may go unnoticed.
    mutating func load(
        _ stored: Slice, _ facts: BlockFacts, _ parts: BlockParts = .all,
        rows wanted: WantedRows? = nil, unless letters: LetterRun? = nil, into out: inout RowBuffer
    ) throws(BlockProblem) -> LoadedRows {
        let opened = try open(stored, facts)
        defer {
            leaves = LeafReader()
            arena.clear(keeping: Self.arenaKept)
        }
        var found = LoadedRows()
        var content = try BlockContent(&arena)
        let all = Picks(all: facts.recordCount)
        var plan = try BlockPlan(parts.columns, all, facts.size, &arena)
        plan.only = parts.sections
        var wanted = parts == .all ? wanted : nil
        for column in BlockColumn.allCases where column != .messages {
            guard let last = plan.columns.last, column.rawValue <= last.rawValue else { break }
            let rows = plan.rows
            // Each row's number counts on from that of the thread's row before.
            if column == .sequence { plan.rows = all }
            try read(column, &plan, into: &content)
            plan.rows = rows
            switch column {
            case .formats:
                // Of rows of several processes, it is unknown which decide about the order.
                if content.processes.lane.count != 1 { wanted = nil }
                guard let letters, opened.hasAllTexts, parts == .all,
                    letters.isMissing(in: opened.text, BlockDictionaries.formats(content))
                else { break }
                (found.isWithout, wanted) = (true, nil)
                plan.columns = BlockParts.times.columns
            case .time:
                guard let chosen = wanted, !chosen.needsMore else { break }
                plan.rows = try self.rows(chosen, content, facts.recordCount)
            case .context:
                guard let chosen = wanted, chosen.needsMore else { break }
                plan.rows = try self.rows(chosen, content, facts.recordCount)
                content.offset = try gather(content.offset, plan.rows)
                content.logger = try gather(content.logger, plan.rows)
                content.context = try gather(content.context, plan.rows)
            default: break
            }
            if plan.rows.places != nil, plan.rows.isNone {
                found.isWithout = true
                plan.columns = BlockParts.times.columns
                plan.rows = all
                // Nobody asks for it.
                content.offset = try arena.flat(0)
                break
            }
        }
        if plan.rows.places != nil { found.firstTime = content.time[0] }
        if parts.columns.has(.sequence) {
            content.sequence = try sequences(content, plan.threads)
        }
        try keep(content, &plan, found.isWithout, into: &out)
        let isAll = parts == .all && plan.rows.places == nil && !found.isWithout
        guard !isAll || leaves.isSpent && plan.left == 0 else { throw .damaged }
        return found
    }

    /// Turns the numbers of a block of all rows into the sequences of its records, in their place.
    private mutating func sequences(
        _ content: borrowing BlockContent, _ threads: Int
    ) throws(BlockProblem) -> Flat<UInt64> {
        let expected: Flat<UInt64> = try arena.flat(threads, of: 0)
        let numbers = content.sequence
        let (thread, number, next) = unsafe (content.thread.base, numbers.base, expected.base)
        for row in 0..<min(numbers.count, content.thread.count) {
            // `read` has compared it with the number of threads.
            let who = unsafe Int(truncatingIfNeeded: thread[row])
            let sequence = unsafe next[who] &+ number[row]
            unsafe number[row] = sequence
            unsafe next[who] = sequence &+ 1
        }
        return numbers
    }

    private mutating func keep(
        _ content: borrowing BlockContent, _ plan: inout BlockPlan, _ isWithout: Bool,
        into out: inout RowBuffer
    ) throws(BlockProblem) {
        let rows = plan.rows
        out.begin(rows: rows.size)
        out.names = try BlockNames(content)
        let kind = try gather(content.kind, rows)
        let time = try gather(content.time, rows)
        try out.append(time, as: .time)
        try out.append(gather(content.thread, rows), as: .thread)
        if isWithout { return try out.finish() }
        try out.append(content.offset, as: .offset)
        try out.append(kind, as: .kind)
        try out.append(gather(content.level, rows), as: .level)
        try out.append(gather(content.sequence, rows), as: .sequence)
        try out.append(content.logger, as: .logger)
        try out.append(content.context, as: .context)
        let deferred = content.format.count
        if deferred > 0 {
            try out.append(spread(content.format, kind, BlockKind.deferred), as: .format)
        }
        if plan.isWanted(.arguments), deferred > 0 {
            let ends: Flat<UInt64> = try arena.flat(deferred)
            try out.append(.arguments) { bytes throws(BlockProblem) in
                try content.arguments.write(
                    content.format, atMost: rawBytes, into: &bytes, ends: ends)
            }
            try out.append(spread(ends, kind, BlockKind.deferred, rises: true), as: .argumentEnd)
        }
        if plan.isWanted(.sections), content.sections.count > 0 {
            let ends: Flat<UInt64> = try arena.flat(content.sections.count)
            var end = 0
            for index in 0..<ends.count {
                end &+= content.sections.bytes(of: index)
                ends[index] = UInt64(end)
            }
            let offset = content.offset
            try out.append(.sections) { bytes throws(BlockProblem) in
                try content.sections.write(
                    kind, time, offset, atMost: rawBytes, into: &bytes)
            }
            try out.append(spread(ends, kind, BlockKind.hasSections, rises: true), as: .sectionEnd)
        }
        if plan.isWanted(.messages) { try keepMessages(&plan, kind, into: &out) }
        try out.finish()
    }

    /// Messages, each with a newline.
    private mutating func keepMessages(
        _ plan: inout BlockPlan, _ kind: Flat<UInt64>, into out: inout RowBuffer
    ) throws(BlockProblem) {
        let plain = try plain(plan)
        if plain.size == 0 { return try skipStrings(plain.count, depth: 1) }
        let ends: Flat<UInt64> = try arena.flat(plain.size)
        let most = plan.left
        try out.append(.messages) { bytes throws(BlockProblem) in
            try lines(plain, atMost: most, to: &bytes, ends: ends)
        }
        try plan.take(Int(ends[ends.count - 1]))
        try out.append(
            spread(ends, kind, BlockKind.deferred, isSet: false, rises: true), as: .messageEnd)
    }

    /// Strings(n) as lines. `ends`: where each ends, with its newline.
    private mutating func lines(
        _ picks: Picks, atMost most: Int, to out: inout GrowingBytes, ends: Flat<UInt64>
    ) throws(BlockProblem) {
        let isAll = picks.places == nil
        if isAll, leaves.next == StringsCodec.sizedLines {
            return try sizedLines(picks.count, atMost: most, to: &out, ends: ends)
        }
        let values: Flat<Slice>
        let start = out.count
        if leaves.next == StringsCodec.templates {
            try leaves.takeValues(picks.count, depth: 1)
            _ = try leaves.byte()
            values = try arena.flat(picks.size)
            try templates(values, picks, atMost: most, to: &out)
        } else {
            let hasNewlines = isAll && leaves.next == StringsCodec.lines
            values = try strings(picks, depth: 1)
            try append(values, hasNewlines, atMost: most, to: &out)
        }
        var end: UInt64 = 0
        for index in 0..<values.count {
            end &+= UInt64(values[index].count &+ 1)
            ends[index] = end
        }
        guard Int(end) == out.count - start else { throw .damaged }
    }

    /// All lines of codec sizedLines, which are stored as they are wanted: a leaf in a frame of its
    /// own is inflated in its place.
    private mutating func sizedLines(
        _ count: Int, atMost most: Int, to out: inout GrowingBytes, ends: Flat<UInt64>
    ) throws(BlockProblem) {
        try leaves.takeValues(count, depth: 1)
        _ = try leaves.byte()
        let lengths = try ints(count, depth: 2)
        let (bytes, frame) = try leaves.takeText()
        let missing = frame.flatMap { leaves.missing(frame: $0) }
        let size = missing?.rawBytes ?? leaves.text(bytes, frame).count
        guard size <= most else { throw .damaged }
        let start = out.count
        guard out.reserve(size &+ Arena.margin), let target = unsafe out.claim(size) else {
            throw .memory
        }
        if let missing {
            unsafe try opener.inflate(missing, to: target)
        } else {
            _ = unsafe leaves.text(bytes, frame).copy(to: target)
        }
        let text = unsafe Slice(out.bytes).part(start, size)
        var end = 0
        for index in 0..<count {
            let length = lengths[index]
            guard length < UInt64(size &- end), text[end &+ Int(length)] == 0x0A else {
                throw .damaged
            }
            end &+= Int(length) &+ 1
            ends[index] = UInt64(end)
        }
        guard end == size else { throw .damaged }
    }

    /// `hasNewlines`: one follows each value, where it lies.
    private func append(
        _ values: Flat<Slice>, _ hasNewlines: Bool, atMost most: Int, to out: inout GrowingBytes
    ) throws(BlockProblem) {
        var size = values.count
        for index in 0..<values.count { size &+= values[index].count }
        guard size <= most else { throw .damaged }
        guard out.reserve(size &+ Arena.margin), var target = unsafe out.claim(size) else {
            throw .memory
        }
        let (first, last) = (values[0], values[values.count - 1])
        if hasNewlines, let start = unsafe first.start, let end = unsafe last.start,
            unsafe end + (last.count &+ 1) == start + size
        {
            unsafe target.copyMemory(from: start, byteCount: size)
            return
        }
        for index in 0..<values.count {
            unsafe target = values[index].copy(to: target)
            unsafe target.storeBytes(of: 0x0A, as: UInt8.self)
            unsafe target += 1
        }
    }

    /// The numbers of the rows whose kind has the bit set (or clear), for all rows: others have 0,
    /// or, if numbers rise, that of the row before.
    private mutating func spread(
        _ values: Flat<UInt64>, _ kind: Flat<UInt64>, _ bit: UInt8, isSet: Bool = true,
        rises: Bool = false
    ) throws(BlockProblem) -> Flat<UInt64> {
        if values.count == kind.count { return values }
        let spread: Flat<UInt64> = try arena.flat(kind.count)
        var (next, last): (Int, UInt64) = (0, 0)
        for row in 0..<kind.count {
            let has = kind[row] & UInt64(bit) != 0
            if has == isSet {
                last = values[next]
                next += 1
                spread[row] = last
            } else {
                spread[row] = rises ? last : 0
            }
        }
        return spread
    }
}
