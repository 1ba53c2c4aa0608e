// Writes Templates of FORMAT §11.9: mined lines become templates, and their variables columns.
// Which variables share a column only affects size: those that follow the same word do, so the
// values of one key lie together. Part of one encoder.
// SAFETY: leaves are filled at once, in the room measured for them.

import CordwoodCore

/// The templates that are written, in the order of their rows.
struct FinalTemplates {
    struct Template: BitwiseCopyable {
        var firstPiece: Int
        var firstVariable: Int
        var variables: Int
        var rows: Int
    }

    var templates: Growing<Template>
    var pieces: Growing<Slice>
    /// As `VariableKind` says.
    var kinds: Growing<UInt32>
    /// The source of each variable: its index in the line's variables, or -1 - the index of its
    /// word.
    var sources: Growing<Int>
    /// The final template of each mined one.
    var finals: Flat<Int>
    /// For each mined template with words that vary, its first word; otherwise -1.
    var firstWord: Flat<Int>
    var words: Growing<Slice>

    /// `pieces`: the pieces of all mined templates.
    init(mined: Int, pieces count: Int, _ arena: inout Arena) throws(BlockProblem) {
        templates = try Growing(&arena)
        pieces = try Growing(&arena, expected: count)
        kinds = try Growing(&arena, expected: count)
        sources = try Growing(&arena, expected: count)
        finals = try arena.flat(mined, of: 0)
        firstWord = try arena.flat(mined, of: -1)
        words = try Growing(&arena)
    }
}

/// Which variables share a column.
enum ColumnSharing {
    /// Those after the same word, in all templates: the values of a key, in whatever line.
    case word
    /// Those at the same place in templates with equally many variables: lines that tell one story
    /// in different words.
    case place
    /// No templates are used; lines are stored unchanged.
    case lines
}

/// The hash of a template's first pieces and variables; made only for the few variables that need
/// it.
private struct HashedPieces {
    private(set) var hash: UInt64
    private var count = 0

    init(hash: UInt64) { self.hash = hash }

    /// Adds the pieces not hashed yet, up to that of the variable.
    mutating func take(
        through variable: Int, of template: FinalTemplates.Template, _ found: FinalTemplates
    ) {
        while count <= variable {
            let kind = found.kinds[template.firstVariable + count]
            hash = SliceTable.hash(
                found.pieces[template.firstPiece + count],
                hash &+ UInt64(kind) &* 0x9E37_79B9_7F4A_7C15)
            count += 1
        }
    }
}

private struct VariableColumn: BitwiseCopyable {
    var kind: UInt32
    /// A time is an empty slice whose count is the number.
    var values: Flat<Slice>
}

extension BlockEncoder {
    private static let fineLeast = 256
    /// A machine that is starting logs hundreds of lines unlike each other.
    private static let coarseLeast = 2_048
    /// Long lines are given up sooner, if so many in a hundred are unlike all others.
    private static let longBytes = 256 << 10
    private static let unlikeMost = 95
    /// Blocks from one choice to the next.
    private static let choicePeriod = 16
    /// The size of a choice's sample.
    private static let choiceBytes = 24 << 10
    private static let choiceLinesLeast = 64
    /// A sample is not everything: the other way must be this much smaller, in hundredths.
    private static let choiceGain = 92
    /// The same for storing lines unchanged.
    private static let linesGain = 95
    /// Lines of a sample are tried unchanged only if templates leave over a fifth of their bytes.
    private static let unlikeLeast = 5

    /// The average number of rows that a template must have, times 4.
    private static func rowsLeast(_ kind: StringKind) -> Int {
        switch kind {
        case .line: 0
        case .prose: 5
        case .run: 16
        default: 12
        }
    }

    /// False: templates are useless here; nothing was written.
    mutating func templates(
        _ values: Flat<Slice>, _ kind: StringKind, _ depth: Int
    ) throws(BlockProblem) -> Bool {
        let mark = arena.mark
        defer { arena.release(to: mark) }
        let isFine = kind == .run
        var miner = try TemplateMiner(seed: seed, lines: values.count, &arena)
        var bytes = 0
        for index in 0..<values.count {
            if isFine {
                try miner.fine(values[index], &arena)
                if index >= Self.fineLeast, miner.templates.count * 2 > index { return false }
            } else {
                try miner.coarse(values[index], &arena)
                bytes &+= values[index].count
                let count = miner.templates.count
                if index >= Self.coarseLeast && count * 10 > index * 7
                    || bytes >= Self.longBytes && count * 100 > (index + 1) * Self.unlikeMost
                {
                    return false
                }
            }
        }
        let found = try merged(miner)
        let count = found.templates.count
        guard count <= BlockLimits.templatesMax,
            found.kinds.count <= BlockLimits.variablesMax,
            count <= 16 || count * Self.rowsLeast(kind) <= values.count * 4
        else { return false }

        let order: Flat<Int> = try arena.flat(count)
        for index in 0..<count { order[index] = index }
        order.sort { one, other in
            let (first, second) = (found.templates[one].rows, found.templates[other].rows)
            return first != second ? first > second : one < other
        }
        let ranks: Flat<UInt64> = try arena.flat(count)
        for index in 0..<count { ranks[order[index]] = UInt64(index) }
        let columnOf: Flat<Int> = try arena.flat(found.kinds.count)
        guard let columns = try columns(found, order, columnOf) else { return false }

        out.meta.append(StringsCodec.templates)
        out.meta.append(varint: UInt64(count))
        out.meta.append(varint: UInt64(columns.count))
        try writeText(found, order)
        try writeColumns(found, order, columnOf)
        let chosen: Flat<UInt64> = try arena.flat(values.count)
        for row in 0..<values.count {
            chosen[row] = ranks[found.finals[Int(miner.rows[row])]]
        }
        try indices(chosen, below: count)
        try fill(columns, columnOf, found, miner)
        for index in 0..<columns.count {
            let column = columns[index]
            switch column.kind {
            case VariableKind.quoted: try strings(column.values, .quoted, depth: depth + 1)
            case VariableKind.word: try strings(column.values, .word, depth: depth + 1)
            case VariableKind.run:
                try strings(column.values, isFine ? .digits : .run, depth: depth + 1)
            default:
                let numbers: Flat<UInt64> = try arena.flat(column.values.count)
                for row in 0..<numbers.count {
                    numbers[row] = UInt64(bitPattern: Int64(column.values[row].count))
                }
                try ints(numbers)
            }
        }
        return true
    }

    /// The column of each variable; nil: too many.
    private mutating func columns(
        _ found: FinalTemplates, _ order: Flat<Int>, _ columnOf: Flat<Int>
    ) throws(BlockProblem) -> Flat<VariableColumn>? {
        var known = try NumberTable(&arena)
        var occurrences = try NumberTable(&arena)
        var kinds = try Growing<UInt32>(&arena)
        var counts = try Growing<Int>(&arena)
        for index in 0..<order.count {
            let template = found.templates[order[index]]
            var before = HashedPieces(hash: seed)
            for variable in 0..<template.variables {
                let kind = found.kinds[template.firstVariable + variable]
                let key = try self.key(
                    variable, kind, template, index, found, &before, &occurrences)
                let slot = try known.slot(of: key, &arena)
                var column = Int(known.values[slot]) - 1
                // Hashes may be equal, and a string is not a time: then the variable gets its own
                // column.
                if column < 0 || kinds[column] != kind {
                    column = kinds.count
                    try kinds.append(kind, &arena)
                    try counts.append(0, &arena)
                    known.values[slot] = UInt64(column) + 1
                }
                columnOf[template.firstVariable + variable] = column
                counts[column] += template.rows
            }
        }
        guard kinds.count <= BlockLimits.templatesMax else { return nil }
        let columns: Flat<VariableColumn> = try arena.flat(kinds.count)
        for index in 0..<kinds.count {
            columns[index] = VariableColumn(
                kind: kinds[index], values: try arena.flat(counts[index]))
        }
        return columns
    }

    /// Variables with the same key share a column. `number`: of the template.
    private mutating func key(
        _ variable: Int, _ kind: UInt32, _ template: FinalTemplates.Template, _ number: Int,
        _ found: FinalTemplates, _ before: inout HashedPieces, _ occurrences: inout NumberTable
    ) throws(BlockProblem) -> UInt64 {
        if sharing == .place {
            let place = UInt64(template.variables) &<< 32 | UInt64(variable)
            return SliceTable.mixed(
                seed ^ place ^ UInt64(kind) &* 0x9E37_79B9_7F4A_7C15, 0xA076_1D64_78BD_642F)
        }
        guard let word = Self.lastWord(found.pieces[template.firstPiece + variable]) else {
            before.take(through: variable, of: template, found)
            return before.hash
        }
        let base = SliceTable.hash(word, seed ^ 0x5bd1)
        let place = SliceTable.mixed(base ^ UInt64(number), 0xA076_1D64_78BD_642F)
        let slot = try occurrences.slot(of: place, &arena)
        let times = occurrences.values[slot]
        occurrences.values[slot] = times &+ 1
        return SliceTable.mixed(
            base ^ (times &* 77 &+ UInt64(kind) &* 131_071), 0xD6E8_FEB8_6659_FD93)
    }

    // MARK: choosing

    /// Chooses for this block and the next ones by the size of some lines from the middle of a
    /// block (of a small archive: of all), because neither way of sharing is better for all logs.
    /// The first lines of a log may be unlike the others, so a change is checked again at once.
    mutating func chooseSharing(_ lines: Flat<Slice>) throws(BlockProblem) {
        guard blocksUntilChoice == 0 else {
            blocksUntilChoice -= 1
            return
        }
        let sample = try self.sample(of: lines)
        let isWhole = sample.count == lines.count
        let least = isWhole ? Self.templatesLeast : Self.choiceLinesLeast
        guard sample.count >= least else { return }
        let before = sharing
        let gain = packer.isThorough ? 100 : Self.choiceGain
        sharing = .word
        guard var size = try size(of: sample) else { return }
        var found = sharing
        sharing = .place
        if let other = try self.size(of: sample), other * 100 < size * gain {
            (found, size) = (sharing, other)
        }
        sharing = .lines
        // Neighbouring lines resemble each other, which helps both ways. So a sample can only show
        // that lines have little in common.
        let bytes = Self.bytes(sample)
        let isUnlike = isWhole || size > bytes / Self.unlikeLeast
        let linesGain = isWhole && bytes <= Self.choiceBytes ? 100 : Self.linesGain
        if isUnlike, let other = try self.size(of: sample), other * 100 < size * linesGain {
            found = sharing
        }
        sharing = found
        blocksUntilChoice = sharing == before ? Self.choicePeriod - 1 : 0
    }

    private mutating func sample(of lines: Flat<Slice>) throws(BlockProblem) -> Flat<Slice> {
        var first = lines.count / 2
        var end = first
        var bytes = 0
        let most = packer.isThorough ? Int.max : Self.choiceBytes
        while bytes < most, end - first < lines.count {
            if first > 0 {
                first -= 1
                bytes += lines[first].count
            }
            if end < lines.count {
                bytes += lines[end].count
                end += 1
            }
        }
        let sample: Flat<Slice> = try arena.flat(end - first)
        for index in 0..<sample.count { sample[index] = lines[first + index] }
        return sample
    }

    /// The approximate size of the lines; nil: templates are of no use to them.
    private mutating func size(of lines: Flat<Slice>) throws(BlockProblem) -> Int? {
        let mark = out.mark
        let room = arena.mark
        defer {
            out.cut(to: mark)
            arena.release(to: room)
        }
        do throws(BlockProblem) {
            try strings(lines, .line)
        } catch {
            if case .unfit = error { return nil }
            throw error
        }
        return try packer.size(of: out, from: mark)
    }

    /// The last run of word bytes with everything after it; nil: no word byte.
    private static func lastWord(_ piece: Slice) -> Slice? {
        guard let first = unsafe piece.start else { return nil }
        let bytes = unsafe first.assumingMemoryBound(to: UInt8.self)
        var end = piece.count
        while end > 0, unsafe !ByteClass.isWord(bytes[end &- 1]) { end &-= 1 }
        var start = end
        while start > 0, unsafe ByteClass.isWord(bytes[start &- 1]) { start &-= 1 }
        return start < end ? piece.part(start, piece.count - start) : nil
    }

    private mutating func writeText(
        _ found: FinalTemplates, _ order: Flat<Int>
    ) throws(BlockProblem) {
        var size = order.count
        var escapes = 0
        for index in 0..<order.count {
            let template = found.templates[order[index]]
            for piece in 0...template.variables {
                let bytes = found.pieces[template.firstPiece + piece]
                size += bytes.count
                escapes += bytes.lowBytes(below: 6)
                if piece < template.variables {
                    let kind = found.kinds[template.firstVariable + piece]
                    size += kind >= VariableKind.time ? 3 : 1
                }
            }
        }
        size += escapes
        let room = unsafe try out.text(size)
        var at = 0
        func put(_ byte: UInt8) {
            invariant(at < size, "the text of templates was measured")
            unsafe room.storeBytes(of: byte, toByteOffset: at, as: UInt8.self)
            at &+= 1
        }
        func put(_ bytes: Slice) {
            if escapes == 0 || bytes.lowBytes(below: 6) == 0 {
                invariant(at + bytes.count <= size, "the text of templates was measured")
                _ = unsafe bytes.copy(to: room + at)
                at &+= bytes.count
                return
            }
            for place in 0..<bytes.count {
                if bytes[place] < 6 { put(5) }
                put(bytes[place])
            }
        }
        for index in 0..<order.count {
            let template = found.templates[order[index]]
            for piece in 0...template.variables {
                put(found.pieces[template.firstPiece + piece])
                guard piece < template.variables else { break }
                let kind = found.kinds[template.firstVariable + piece]
                if kind >= VariableKind.time {
                    let form = kind - VariableKind.time
                    put(4)
                    put(UInt8(form & 0xFF))
                    put(UInt8(form >> 8))
                } else {
                    put(UInt8(kind))
                }
            }
            put(0)
        }
    }

    private mutating func writeColumns(
        _ found: FinalTemplates, _ order: Flat<Int>, _ columnOf: Flat<Int>
    ) throws(BlockProblem) {
        var numbers = GrowingBytes()
        var named = 0
        for index in 0..<order.count {
            let template = found.templates[order[index]]
            for variable in 0..<template.variables {
                let column = columnOf[template.firstVariable + variable]
                numbers.append(varint: column == named ? 0 : UInt64(column) + 1)
                if column == named { named += 1 }
            }
        }
        if numbers.failed { throw .memory }
        out.meta.append(varint: UInt64(numbers.count))
        let target = unsafe try out.plane(numbers.count)
        _ = unsafe Slice(numbers.bytes).copy(to: target)
    }

    /// Gives each row's values to their columns.
    private mutating func fill(
        _ columns: Flat<VariableColumn>, _ columnOf: Flat<Int>, _ found: FinalTemplates,
        _ miner: TemplateMiner
    ) throws(BlockProblem) {
        // SAFETY: the columns of the variables were sized by the rows of all templates.
        let targets: Flat<UnsafeMutablePointer<Slice>> = unsafe try arena.flat(columns.count)
        for index in 0..<columns.count { unsafe targets[index] = columns[index].values.base }
        var part = 0
        var values = unsafe miner.variables[0].values.base
        for row in 0..<miner.rows.count {
            if part &+ 1 < miner.variables.count, row == miner.variables[part &+ 1].firstRow {
                part &+= 1
                unsafe values = miner.variables[part].values.base
            }
            let mined = Int(miner.rows[row])
            let template = found.templates[found.finals[mined]]
            let sources = unsafe found.sources.base + template.firstVariable
            let numbers = unsafe columnOf.base + template.firstVariable
            for index in 0..<template.variables {
                let source = unsafe sources[index]
                let target = unsafe targets.base + numbers[index]
                unsafe target.pointee.pointee =
                    source >= 0
                    ? values[source] : found.words[found.firstWord[mined] &- 1 &- source]
                unsafe target.pointee += 1
            }
            unsafe values += miner.templates[mined].variables
        }
    }
}
