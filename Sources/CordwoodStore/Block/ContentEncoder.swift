// Stores a block (FORMAT §11.4): its columns in their order, as leaves, and the leaves in frames.
// One writer owns one encoder.
// SAFETY: slices are of the block, which does not change meanwhile, and of the arena, which is
// emptied at the end.

import CordwoodCore

extension BlockEncoder {
    /// Appends the directory and the frames. Returns the block's size, which its header has. What
    /// has more leaves than a block may have, once it is mined, is unfit; effort 0 fits.
    mutating func encode(
        _ block: inout Block, effort: BlockEffort, codec: Codec = .zstd,
        into frame: inout GrowingBytes
    ) throws(BlockProblem) -> Int {
        defer {
            arena.clear(keeping: Self.arenaKept)
            out.clear()
            self.effort = .dense
        }
        if block.failed { throw .memory }
        self.effort = effort
        packer.isThorough = effort == .compact
        guard block.summary.recordCount <= BlockLimits.recordsMax else { throw .unfit }
        contentSize =
            Int(block.summary.recordCount) &* BlockSize.row &+ block.arguments.count
            &+ block.sections.count &+ block.messages.count
        try columns(&block)
        if out.failed { throw .memory }
        guard contentSize <= BlockLimits.sizeMax else { throw .unfit }
        try packer.pack(out, effort, codec, to: &frame)
        return contentSize
    }

    private mutating func columns(_ block: inout Block) throws(BlockProblem) {
        try processes(unsafe Slice(block.people.processes.bytes), block.people.processCount)
        try threads(unsafe Slice(block.people.threads.bytes), block.people.threadCount)
        let names: Flat<Slice> = try arena.flat(block.loggers.count)
        for index in 0..<names.count { names[index] = unsafe Slice(block.loggers.bytes(index)) }
        try dictionary(names)
        try sites(&block)
        let types = try formats(&block)
        let kind = try numbers(block.kind)
        _ = try numbers(block.level, isNeeded: false)
        _ = try numbers(block.thread, isNeeded: false)
        let time = try numbers(block.time)
        let offset = try numbers(block.offset)
        _ = try numbers(block.sequence, isNeeded: false)
        _ = try numbers(block.logger, isNeeded: false)
        _ = try numbers(block.context, isNeeded: false)
        let format = try numbers(block.format)
        try contexts(&block)
        try arguments(types, format, unsafe Slice(block.arguments.bytes))
        let utc: Flat<UInt64> = try arena.flat(block.sectionLength.count)
        var next = 0
        if utc.count > 0 {
            for row in 0..<kind.count where kind[row] & UInt64(BlockKind.hasSections) != 0 {
                utc[next] = time[row] &+ offset[row]
                next += 1
            }
        }
        try sections(flat(block.sectionLength), unsafe Slice(block.sections.bytes), utc)
        try messages(flat(block.length), unsafe Slice(block.messages.bytes))
    }

    /// Words of a column, as 64 bits.
    private mutating func flat<Word>(
        _ column: borrowing NumberColumn<Word>
    ) throws(BlockProblem) -> Flat<UInt64> {
        let found: Flat<UInt64> = try arena.flat(column.count)
        column.copy(to: found)
        return found
    }

    /// Ints(n) of a column. If its words are not needed afterwards, a constant one takes no memory.
    private mutating func numbers<Word>(
        _ column: borrowing NumberColumn<Word>, isNeeded: Bool = true
    ) throws(BlockProblem) -> Flat<UInt64> {
        if column.isConst, !isNeeded {
            if column.count > 0 {
                out.meta.append(IntsCodec.const)
                out.meta.append(zigzag: UInt64(column[0]))
            }
            return try arena.flat(0)
        }
        let mark = arena.mark
        let found = try flat(column)
        try ints(found)
        if !isNeeded { arena.release(to: mark) }
        return found
    }

    // MARK: dictionaries

    /// varint n, Strings(n).
    private mutating func dictionary(_ names: Flat<Slice>) throws(BlockProblem) {
        out.meta.append(varint: UInt64(names.count))
        try strings(names, .mixed)
        hold(names.count, names)
    }

    /// Counts entries of a dictionary, and their strings.
    private mutating func hold(_ entries: Int, _ columns: Flat<Slice>...) {
        contentSize &+= entries &* BlockSize.entry
        for column in columns { contentSize &+= Self.bytes(column) }
    }

    private mutating func processes(_ stream: Slice, _ count: Int) throws(BlockProblem) {
        var cursor = ByteCursor(stream.bytes)
        let ids = try (arena.flat(count, Slice.self), arena.flat(count, Slice.self))
        let numbers = try (
            arena.flat(count, UInt64.self), arena.flat(count, UInt64.self),
            arena.flat(count, UInt64.self)
        )
        let names: Flat<Slice> = try arena.flat(count)
        let counts: Flat<UInt64> = try arena.flat(count)
        var keys = try Growing<Slice>(&arena)
        var values = try Growing<Slice>(&arena)
        for index in 0..<count {
            ids.0[index] = try cursor.taken(16)
            ids.1[index] = try cursor.taken(16)
            numbers.0[index] = try cursor.takenNumber()
            numbers.1[index] = try cursor.takenNumber()
            numbers.2[index] = try cursor.takenNumber()
            names[index] = try cursor.takenString()
            counts[index] = try cursor.takenNumber()
            for _ in 0..<counts[index] {
                try keys.append(cursor.takenString(), &arena)
                try values.append(cursor.takenString(), &arena)
            }
        }
        out.meta.append(varint: UInt64(count))
        try strings(ids.0, .binary)
        try strings(ids.1, .binary)
        try ints(numbers.0)
        try ints(numbers.1)
        try ints(numbers.2)
        try strings(names, .mixed)
        try ints(counts)
        try strings(keys.all, .mixed)
        try strings(values.all, .mixed)
        hold(count + keys.count, ids.0, ids.1, names, keys.all, values.all)
    }

    private mutating func threads(_ stream: Slice, _ count: Int) throws(BlockProblem) {
        var cursor = ByteCursor(stream.bytes)
        let numbers = try (
            arena.flat(count, UInt64.self), arena.flat(count, UInt64.self),
            arena.flat(count, UInt64.self)
        )
        let names: Flat<Slice> = try arena.flat(count)
        for index in 0..<count {
            numbers.0[index] = try cursor.takenNumber()
            numbers.1[index] = try cursor.takenNumber()
            numbers.2[index] = try cursor.takenNumber()
            names[index] = try cursor.takenString()
        }
        out.meta.append(varint: UInt64(count))
        try ints(numbers.0)
        try ints(numbers.1)
        try ints(numbers.2)
        try strings(names, .mixed)
        hold(count, names)
    }

    private mutating func sites(_ block: inout Block) throws(BlockProblem) {
        let count = block.sites.count
        let lines: Flat<UInt64> = try arena.flat(count)
        let files: Flat<Slice> = try arena.flat(count)
        let functions: Flat<Slice> = try arena.flat(count)
        for index in 0..<count {
            var cursor = ByteCursor(unsafe block.sites.bytes(index))
            lines[index] = try cursor.takenNumber()
            files[index] = try cursor.takenString()
            functions[index] = try cursor.takenString()
        }
        out.meta.append(varint: UInt64(count))
        try ints(lines)
        try strings(files, .mixed)
        try strings(functions, .mixed)
        hold(count, files, functions)
    }

    /// Returns the types of each one's arguments.
    private mutating func formats(_ block: inout Block) throws(BlockProblem) -> Flat<Slice> {
        let count = block.formats.count
        let lines: Flat<UInt64> = try arena.flat(count)
        let files: Flat<Slice> = try arena.flat(count)
        let functions: Flat<Slice> = try arena.flat(count)
        let styles: Flat<UInt64> = try arena.flat(count)
        let texts: Flat<Slice> = try arena.flat(count)
        let types: Flat<Slice> = try arena.flat(count)
        for index in 0..<count {
            var cursor = ByteCursor(unsafe block.formats.bytes(index))
            lines[index] = try cursor.takenNumber()
            files[index] = try cursor.takenString()
            functions[index] = try cursor.takenString()
            styles[index] = UInt64(try cursor.taken(1)[0])
            texts[index] = try cursor.takenString()
            types[index] = try cursor.takenString()
        }
        out.meta.append(varint: UInt64(count))
        try ints(lines)
        try strings(files, .mixed)
        try strings(functions, .mixed)
        try ints(styles)
        try strings(texts, .mixed)
        try strings(types, .mixed)
        hold(count, files, functions, texts, types)
        return types
    }

    private mutating func contexts(_ block: inout Block) throws(BlockProblem) {
        let count = block.contexts.count
        let lists: Flat<Slice> = try arena.flat(count)
        let traces: Flat<Slice> = try arena.flat(count)
        for index in 0..<count {
            var cursor = ByteCursor(unsafe block.contexts.bytes(index))
            lists[index] = try cursor.takenString()
            traces[index] = try cursor.taken(TraceLayout.bytes)
        }
        out.meta.append(varint: UInt64(count))
        try fieldLists(lists)
        try self.traces(traces)
        hold(count, lists)
    }
}

extension ByteCursor {
    fileprivate mutating func taken(_ size: Int) throws(BlockProblem) -> Slice {
        guard let found = bytes(UInt64(size)) else { throw .unfit }
        return Slice(found)
    }

    fileprivate mutating func takenNumber() throws(BlockProblem) -> UInt64 {
        guard let found = varint() else { throw .unfit }
        return found
    }

    fileprivate mutating func takenString() throws(BlockProblem) -> Slice {
        guard let found = string() else { throw .unfit }
        return Slice(found)
    }
}
