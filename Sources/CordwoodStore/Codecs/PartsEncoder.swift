// Writes lists of fields, traces and sections of FORMAT §11.7: by shapes and columns if all of them
// are laid out as §8.1, §8.2 and §8.4 say, otherwise as they are. Part of one encoder.

import CordwoodCore

extension BlockEncoder {
    /// Each pair of type and key is a column of up to 8 leaves, of which a block has 65,536.
    private static let pairsMost = 1_024

    mutating func fieldLists(_ lists: Flat<Slice>) throws(BlockProblem) {
        let count = lists.count
        if count == 0 { return }
        let mark = arena.mark
        defer { arena.release(to: mark) }
        var table = try SliceTable(
            limit: min(count, BlockLimits.shapesMax), seed: seed, &arena)
        let chosen: Flat<UInt64> = try arena.flat(count)
        for index in 0..<count {
            guard let shape = try shape(of: lists[index]),
                let found = try table.index(shape, &arena)
            else { return try wholeLists(lists) }
            chosen[index] = UInt64(found)
        }
        let shapes = table.entries.prefix(table.count)
        guard let fields = try FieldShapes(shapes, seed: seed, &arena),
            fields.pairs.count <= Self.pairsMost
        else {
            return try wholeLists(lists)
        }
        out.meta.append(1)
        out.meta.append(varint: UInt64(shapes.count))
        try strings(shapes, .mixed)
        try indices(chosen, below: shapes.count)

        let rows: Flat<Int> = try arena.flat(shapes.count, of: 0)
        for index in 0..<count { rows[Int(chosen[index])] += 1 }
        let sizes: Flat<Int> = try arena.flat(fields.pairs.count, of: 0)
        for shape in 0..<shapes.count {
            for field in fields.first[shape]..<fields.first[shape + 1] {
                sizes[fields.column[field]] &+= rows[shape]
            }
        }
        let noWords: Flat<UInt64> = try arena.flat(0)
        let noStrings: Flat<Slice> = try arena.flat(0)
        let columns: Flat<ArgumentColumn> = try arena.flat(fields.pairs.count)
        for index in 0..<columns.count {
            let type = fields.pairs.entries[index][0]
            let isString = type == FieldType.string
            columns[index] = ArgumentColumn(
                type: type, words: isString ? noWords : try arena.flat(sizes[index]),
                strings: isString ? try arena.flat(sizes[index]) : noStrings)
        }
        for index in 0..<count {
            Self.take(lists[index], Int(chosen[index]), fields, columns)
        }
        for index in 0..<columns.count {
            let column = columns[index]
            switch column.type {
            case FieldType.string: try strings(column.strings, .quoted)
            case FieldType.double: try doubles(column.words, bytes: 8)
            default: try ints(column.words)
            }
        }
    }

    private mutating func wholeLists(_ lists: Flat<Slice>) throws(BlockProblem) {
        out.meta.append(0)
        try strings(lists, .mixed)
    }

    /// The list without its values; nil: it is not laid out as FORMAT §8.2 says.
    private mutating func shape(of list: Slice) throws(BlockProblem) -> Slice? {
        if list.count == 0 { return list }
        guard list.count >= 2 else { return nil }
        let mark = arena.mark
        let room = unsafe try arena.allocate(list.count)
        var target = unsafe list.part(0, 2).copy(to: room)
        var at = 2
        for _ in 0..<Bytes.u16(list.bytes, 0) {
            let header = list.part(at, 4 + Int(Bytes.u16(list.bytes, at + 2)))
            at += header.count
            guard header.count >= 4, at <= list.count else {
                arena.release(to: mark)
                return nil
            }
            unsafe target = header.copy(to: target)
            at += FieldShapes.fixedBytes(header[0])
            if header[0] == FieldType.string { at += Int(Bytes.u32(list.bytes, at - 4)) }
        }
        guard at == list.count else {
            arena.release(to: mark)
            return nil
        }
        return unsafe Slice(start: room, count: target - room)
    }

    private static func take(
        _ list: Slice, _ shape: Int, _ fields: FieldShapes, _ columns: Flat<ArgumentColumn>
    ) {
        var at = 2
        for field in fields.first[shape]..<fields.first[shape + 1] {
            at += fields.headers[field].count
            let index = fields.column[field]
            var column = columns[index]
            switch column.type {
            case FieldType.string:
                let size = Int(Bytes.u32(list.bytes, at))
                column.strings[column.taken] = list.part(at + 4, size)
                at += 4 + size
            case FieldType.bool:
                column.words[column.taken] = UInt64(list[at])
                at += 1
            default:
                column.words[column.taken] = Bytes.u64(list.bytes, at)
                at += 8
            }
            column.taken += 1
            columns[index] = column
        }
    }

    /// Each has 25 bytes.
    mutating func traces(_ traces: Flat<Slice>) throws(BlockProblem) {
        let count = traces.count
        if count == 0 { return }
        let mark = arena.mark
        defer { arena.release(to: mark) }
        let ids: Flat<Slice> = try arena.flat(count)
        let spans: Flat<Slice> = try arena.flat(count)
        let flags: Flat<UInt64> = try arena.flat(count)
        var isNone = true
        for index in 0..<count {
            let trace = traces[index]
            guard trace.count == TraceLayout.bytes else { throw .unfit }
            ids[index] = trace.part(0, 16)
            spans[index] = trace.part(16, 8)
            flags[index] = UInt64(trace[24])
            if unsafe isNone && trace.bytes.contains(where: { $0 != 0 }) { isNone = false }
        }
        out.meta.append(isNone ? 0 : 1)
        if isNone { return }
        try strings(ids, .binary)
        try strings(spans, .binary)
        try ints(flags)
    }

    /// `utc`: the UTC of each record with sections.
    mutating func sections(
        _ lengths: Flat<UInt64>, _ stream: Slice, _ utc: Flat<UInt64>
    ) throws(BlockProblem) {
        let count = lengths.count
        let whole: Flat<Slice> = try arena.flat(count)
        var at = 0
        for index in 0..<count {
            guard lengths[index] <= UInt64(stream.count - at) else { throw .unfit }
            whole[index] = stream.part(at, Int(lengths[index]))
            at += Int(lengths[index])
        }
        guard at == stream.count else { throw .unfit }
        if count == 0 { return }
        let chosen: Flat<UInt64> = try arena.flat(count)
        var table = try SliceTable(
            limit: min(count, BlockLimits.shapesMax), seed: seed, &arena)
        let sizes: Flat<Int> = try arena.flat(256, of: 0)
        for index in 0..<count {
            guard let kinds = try kinds(of: whole[index], sizes),
                let found = try table.index(kinds, &arena)
            else {
                out.meta.append(0)
                return try strings(whole, .mixed)
            }
            chosen[index] = UInt64(found)
        }
        let shapes = table.entries.prefix(table.count)
        guard Self.bytes(shapes) <= BlockLimits.partsMax else {
            out.meta.append(0)
            return try strings(whole, .mixed)
        }
        out.meta.append(1)
        out.meta.append(varint: UInt64(shapes.count))
        try strings(shapes, .binary)
        try indices(chosen, below: shapes.count)
        for kind in 0..<256 where sizes[kind] > 0 {
            try bodies(of: UInt8(kind), sizes[kind], whole, utc)
        }
    }

    /// The kinds of a record's sections, one byte each, which are counted; nil: the sections are
    /// not laid out as FORMAT §8.1 says.
    private mutating func kinds(
        of sections: Slice, _ sizes: Flat<Int>
    ) throws(BlockProblem) -> Slice? {
        let room = unsafe try arena.allocate(sections.count / SectionKind.headerBytes + 1)
        var found = 0
        var at = 0
        while at < sections.count {
            let word = Bytes.u32(sections.bytes, at)
            let size = Int(Bytes.u32(sections.bytes, at + 4))
            guard at + SectionKind.headerBytes <= sections.count, word <= 0xFF,
                size <= sections.count - at - SectionKind.headerBytes
            else { return nil }
            let kind = UInt8(word)
            switch kind {
            case SectionKind.site: guard size == 4 else { return nil }
            case SectionKind.time, SectionKind.originalLength: guard size == 8 else { return nil }
            case SectionKind.trace: guard size == TraceLayout.bytes else { return nil }
            default: break
            }
            unsafe room.storeBytes(of: kind, toByteOffset: found, as: UInt8.self)
            found += 1
            sizes[Int(kind)] += 1
            at += SectionKind.headerBytes + size
        }
        return unsafe Slice(start: room, count: found)
    }

    /// The column of one kind.
    private mutating func bodies(
        of wanted: UInt8, _ count: Int, _ whole: Flat<Slice>, _ utc: Flat<UInt64>
    ) throws(BlockProblem) {
        let mark = arena.mark
        defer { arena.release(to: mark) }
        let found: Flat<Slice> = try arena.flat(count)
        let words: Flat<UInt64> = try arena.flat(count)
        var next = 0
        for record in 0..<whole.count {
            let sections = whole[record]
            var at = 0
            while at < sections.count {
                let size = Int(Bytes.u32(sections.bytes, at + 4))
                if sections[at] == wanted {
                    let body = sections.part(at + SectionKind.headerBytes, size)
                    found[next] = body
                    words[next] =
                        wanted == SectionKind.site
                        ? UInt64(Bytes.u32(body.bytes, 0)) : Bytes.u64(body.bytes, 0)
                    if wanted == SectionKind.time { words[next] &-= utc[record] }
                    next += 1
                }
                at += SectionKind.headerBytes + size
            }
        }
        switch wanted {
        case SectionKind.site, SectionKind.time, SectionKind.originalLength: try ints(words)
        case SectionKind.fields: try fieldLists(found)
        case SectionKind.trace: try traces(found)
        default: try strings(found, .quoted)
        }
    }
}
