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
        case .kind: rows.have(content.kind) { UInt64($0.kind) }
        case .level: rows.have(content.level) { UInt64($0.level) }
        case .thread: rows.have(content.thread) { UInt64($0.thread) }
        case .time: rows.have(content.time) { $0.time }
        case .offset: rows.have(content.offset) { $0.offset }
        case .sequence: rows.have(content.sequence) { $0.sequence }
        case .logger: rows.have(content.logger) { UInt64($0.logger) }
        case .context: rows.have(content.context) { UInt64($0.context) }
        case .format: rows.have(content.format, where: \.isDeferred) { UInt64($0.text) }
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
        let all = rows.all
        var index = 0
        for row in 0..<all.count where all[row].hasSections {
            guard index < content.sections.count,
                content.sections.bytes(of: index) == Int(all[row].sections)
            else { return false }
            index += 1
        }
        guard index == content.sections.count else { return false }
        readBack.clear(keeping: .max)
        try content.sections.write(
            content.kind, content.time, content.offset, atMost: sections.count, into: &readBack)
        if readBack.failed { throw .memory }
        return unsafe Slice(readBack.bytes).isSame(Slice(sections.bytes))
    }

    private func hasMessages(_ found: Flat<Slice>) -> Bool {
        let (all, text) = unsafe (rows.all, Slice(messages.bytes))
        var (index, at) = (0, 0)
        for row in 0..<all.count where all[row].hasMessage {
            let size = Int(all[row].text)
            guard index < found.count, found[index].isSame(text.part(at, size)) else {
                return false
            }
            index += 1
            at += size + 1
        }
        return index == found.count && at == text.count
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
