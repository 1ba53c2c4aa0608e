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
        let rows = block.rows.all
        try numbers(rows) { UInt64($0.kind) }
        try numbers(rows) { UInt64($0.level) }
        try numbers(rows) { UInt64($0.thread) }
        try numbers(rows) { $0.time }
        try numbers(rows) { $0.offset }
        try numbers(rows) { $0.sequence }
        try numbers(rows) { UInt64($0.logger) }
        try numbers(rows) { UInt64($0.context) }
        let format = try flat(rows, where: \.isDeferred) { UInt64($0.text) }
        try ints(format)
        try contexts(&block)
        try arguments(types, format, unsafe Slice(block.arguments.bytes))
        try sections(
            flat(rows, where: \.hasSections) { UInt64($0.sections) },
            unsafe Slice(block.sections.bytes),
            flat(rows, where: \.hasSections) { $0.time &+ $0.offset })
        try messages(
            flat(rows, where: \.hasMessage) { UInt64($0.text) },
            unsafe Slice(block.messages.bytes))
    }

    /// The numbers of a column, in the rows where `isIn` is true.
    @inline(__always)
    private mutating func flat(
        _ rows: Flat<BlockRow>, where isIn: (BlockRow) -> Bool, _ column: (BlockRow) -> UInt64
    ) throws(BlockProblem) -> Flat<UInt64> {
        let source = unsafe rows.base
        var count = 0
        for index in 0..<rows.count { unsafe count &+= isIn(source[index]) ? 1 : 0 }
        let found: Flat<UInt64> = try arena.flat(count)
        if count == 0 { return found }
        let target = unsafe found.base
        var next = 0
        for index in 0..<rows.count where unsafe isIn(source[index]) {
            unsafe target[next] = column(source[index])
            next &+= 1
        }
        return found
    }

    /// Writes Ints(n) of a column of all rows. A constant column takes no memory.
    @inline(__always)
    private mutating func numbers(
        _ rows: Flat<BlockRow>, _ column: (BlockRow) -> UInt64
    ) throws(BlockProblem) {
        if rows.count == 0 { return }
        let source = unsafe rows.base
        let first = unsafe column(source[0])
        var same = 1
        while same < rows.count, unsafe column(source[same]) == first { same &+= 1 }
        if same == rows.count {
            out.meta.append(IntsCodec.const)
            out.meta.append(zigzag: first)
            return
        }
        let mark = arena.mark
        let found: Flat<UInt64> = try arena.flat(rows.count)
        let target = unsafe found.base
        for index in 0..<rows.count { unsafe target[index] = column(source[index]) }
        try ints(found)
        arena.release(to: mark)
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
