// Compares a block with what was read from its stored form, column by column, before anything that
// it holds is removed elsewhere.

import CordwoodCore

extension Block {
    /// Whether the column that was read has what the block has. Columns that it depends on were
    /// read and compared before.
    mutating func has(
        _ column: BlockColumn, _ content: borrowing BlockContent
    ) throws(BlockProblem) -> Bool {
        switch column {
        case .processes: hasProcesses(content.processes)
        case .threads: hasThreads(content.threads)
        case .loggers: hasLoggers(content.loggers)
        case .sites: hasSites(content.sites)
        case .formats: hasFormats(content.formats)
        case .kind: kind.isSame(as: content.kind)
        case .level: level.isSame(as: content.level)
        case .thread: thread.isSame(as: content.thread)
        case .time: time.isSame(as: content.time)
        case .offset: offset.isSame(as: content.offset)
        case .sequence: sequence.isSame(as: content.sequence)
        case .logger: logger.isSame(as: content.logger)
        case .context: context.isSame(as: content.context)
        case .format: format.isSame(as: content.format)
        case .contexts: hasContexts(content.contexts, content.traces)
        case .arguments: hasArguments(content.arguments, content.format)
        case .sections: try hasSections(content)
        case .messages: hasMessages(content.messages)
        }
    }

    private func hasProcesses(_ found: BlockContent.Processes) -> Bool {
        var cursor = ByteCursor(unsafe people.processes.bytes)
        guard found.lane.count == people.processCount else { return false }
        var attribute = 0
        for index in 0..<found.lane.count {
            guard cursor.has(found.lane[index]), cursor.has(found.boot[index]),
                cursor.has(found.processID[index]), cursor.has(found.createdRealtime[index]),
                cursor.has(found.createdMonotonic[index]), cursor.has(string: found.name[index]),
                cursor.has(found.attributes[index])
            else { return false }
            for _ in 0..<found.attributes[index] {
                guard cursor.has(string: found.keys[attribute]),
                    cursor.has(string: found.values[attribute])
                else { return false }
                attribute += 1
            }
        }
        return cursor.left == 0
    }

    private func hasThreads(_ found: BlockContent.Threads) -> Bool {
        var cursor = ByteCursor(unsafe people.threads.bytes)
        guard found.name.count == people.threadCount else { return false }
        for index in 0..<found.name.count {
            guard cursor.has(found.process[index]), cursor.has(found.serial[index]),
                cursor.has(found.threadID[index]), cursor.has(string: found.name[index])
            else { return false }
        }
        return cursor.left == 0
    }

    private func hasLoggers(_ found: Flat<Slice>) -> Bool {
        guard found.count == loggers.count else { return false }
        for index in 0..<found.count
        where unsafe !found[index].isSame(Slice(loggers.bytes(index))) {
            return false
        }
        return true
    }

    private func hasSites(_ found: BlockContent.Sites) -> Bool {
        guard found.line.count == sites.count else { return false }
        for index in 0..<sites.count {
            var cursor = ByteCursor(unsafe sites.bytes(index))
            guard cursor.has(found, index), cursor.left == 0 else { return false }
        }
        return true
    }

    private func hasFormats(_ found: BlockContent.Formats) -> Bool {
        guard found.types.count == formats.count else { return false }
        for index in 0..<formats.count {
            var cursor = ByteCursor(unsafe formats.bytes(index))
            guard cursor.has(found.place, index),
                cursor.byte().map(UInt64.init) == found.style[index],
                cursor.has(string: found.text[index]), cursor.has(string: found.types[index]),
                cursor.left == 0
            else { return false }
        }
        return true
    }

    private func hasContexts(_ lists: Flat<Slice>, _ traces: Flat<Slice>) -> Bool {
        guard lists.count == contexts.count, traces.count == contexts.count else { return false }
        for index in 0..<lists.count {
            var cursor = ByteCursor(unsafe contexts.bytes(index))
            guard cursor.has(string: lists[index]), cursor.has(traces[index]), cursor.left == 0
            else { return false }
        }
        return true
    }

    private func hasArguments(_ found: ArgumentColumns, _ format: Flat<UInt64>) -> Bool {
        var cursor = ByteCursor(unsafe arguments.bytes)
        return found.areNext(in: &cursor, of: format) && cursor.left == 0
    }

    private mutating func hasSections(
        _ content: borrowing BlockContent
    ) throws(BlockProblem) -> Bool {
        guard content.sections.count == sectionLength.count else { return false }
        for index in 0..<sectionLength.count
        where content.sections.bytes(of: index) != Int(sectionLength[index]) {
            return false
        }
        readBack.clear(keeping: .max)
        try content.sections.write(
            content.kind, content.time, content.offset, atMost: sections.count, into: &readBack)
        if readBack.failed { throw .memory }
        return unsafe Slice(readBack.bytes).isSame(Slice(sections.bytes))
    }

    private func hasMessages(_ found: Flat<Slice>) -> Bool {
        guard found.count == length.count else { return false }
        let text = unsafe Slice(messages.bytes)
        var at = 0
        for index in 0..<found.count {
            let size = Int(length[index])
            guard found[index].isSame(text.part(at, size)) else { return false }
            at += size + 1
        }
        return at == text.count
    }
}

extension ByteCursor {
    fileprivate mutating func has(_ wanted: Slice) -> Bool {
        guard let found = bytes(UInt64(wanted.count)) else { return false }
        return Slice(found).isSame(wanted)
    }

    fileprivate mutating func has(_ number: UInt64) -> Bool { varint() == number }

    fileprivate mutating func has(string wanted: Slice) -> Bool {
        guard let found = string() else { return false }
        return Slice(found).isSame(wanted)
    }

    fileprivate mutating func has(_ place: BlockContent.Sites, _ index: Int) -> Bool {
        has(place.line[index]) && has(string: place.file[index])
            && has(string: place.function[index])
    }
}
