// Reads lists of fields, traces and sections of FORMAT §11.7. A list or a trace is made whole, as
// §8.2 and §8.4 lay it out; sections are written from the columns of their kinds. Part of one
// decoder.
// SAFETY: output is measured before it is made, and stays below the block's size.

import CordwoodCore

/// The columns of one kind of section.
struct SectionColumn: BitwiseCopyable {
    var kind: UInt8
    /// Size of each body; 0: as long as the string.
    var bytes: Int
    var words: Flat<UInt64>
    var strings: Flat<Slice>
    var taken = 0
}

/// A set of kinds of sections.
struct SectionKinds: OptionSet {
    let rawValue: UInt32
    /// Includes those that readers do not know.
    static let all = SectionKinds(rawValue: .max)
    static let site = SectionKinds(SectionKind.site)
    static let place = SectionKinds(SectionKind.place)
    static let time = SectionKinds(SectionKind.time)

    init(rawValue: UInt32) { self.rawValue = rawValue }

    private init(_ kind: UInt8) { rawValue = 1 << UInt32(kind) }

    @inline(__always) func has(_ kind: UInt8) -> Bool {
        self == .all || kind < 32 && rawValue &>> UInt32(kind) & 1 != 0
    }

    /// Nothing after the columns up to that kind is wanted.
    func ends(at kind: UInt8) -> Bool { kind < 32 && rawValue &>> UInt32(kind) <= 1 }
}

struct SectionColumns {
    /// Number of records.
    var count: Int
    /// Sections of other kinds are left out.
    var only: SectionKinds
    /// Form 0: the sections of each record.
    var whole: Flat<Slice>?
    var shapes: Flat<Slice>
    var chosen: Flat<UInt64>
    var columns: [SectionColumn] = []
    /// Form 1: the size of each record's sections.
    var sizes: Flat<Int>

    func bytes(of index: Int) -> Int { whole?[index].count ?? sizes[index] }

    var bytes: Int {
        var sum = 0
        for index in 0..<count { sum &+= bytes(of: index) }
        return sum
    }
}

extension BlockDecoder {
    /// A column of lists of fields.
    mutating func fieldLists(_ picks: Picks, depth: Int) throws(BlockProblem) -> Flat<Slice> {
        let count = picks.count
        if count == 0 { return try arena.flat(0) }
        try leaves.takeValues(count, depth: depth)
        switch try leaves.byte() {
        case 0: return try strings(picks, depth: depth)
        case 1: break
        default: throw .damaged
        }
        let shapeCount = try leaves.count(BlockLimits.shapesMax)
        guard shapeCount > 0 else { throw .damaged }
        let shapes = try shapes(shapeCount, depth: depth)
        let all = try indices(count, below: shapeCount)
        let rows: Flat<Int> = try arena.flat(shapeCount, of: 0)
        for index in 0..<count { rows[Int(all[index])] += 1 }
        guard let fields = try FieldShapes(shapes, seed: seed, &arena) else { throw .damaged }
        let sizes: Flat<Int> = try arena.flat(fields.pairs.count, of: 0)
        for shape in 0..<shapeCount {
            for field in fields.first[shape]..<fields.first[shape + 1] {
                sizes[fields.column[field]] &+= rows[shape]
            }
        }
        try leaves.check(values: sizes)
        let none: Flat<Slice> = try arena.flat(0)
        let wanted = try self.picks(
            picks, all, first: fields.first, columns: fields.column, sizes: sizes)
        let chosen = try gather(all, picks)
        let columns: Flat<ArgumentColumn> = try arena.flat(fields.pairs.count)
        var total = 0
        for index in 0..<columns.count {
            let column = try fieldColumn(
                fields.pairs.entries[index][0], wanted[index], none, depth)
            columns[index] = column
            for value in 0..<column.strings.count { total &+= column.strings[value].count }
            total &+= wanted[index].size &* FieldShapes.fixedBytes(column.type)
        }
        for index in 0..<chosen.count { total &+= shapes[Int(chosen[index])].count }
        guard total <= rawBytes else { throw .damaged }

        let values: Flat<Slice> = try arena.flat(picks.size)
        var out = unsafe try arena.allocate(total)
        for index in 0..<values.count {
            let start = unsafe out
            let shape = Int(chosen[index])
            unsafe out = Self.write(shapes[shape], shape, fields, columns, to: out)
            values[index] = unsafe Slice(start: start, count: out - start)
        }
        return values
    }

    /// Shapes of fields or of sections. Together they have at most as many bytes as the block.
    private mutating func shapes(_ count: Int, depth: Int) throws(BlockProblem) -> Flat<Slice> {
        let found = try strings(count, depth: depth)
        for index in 0..<count { try leaves.takeShape(found[index].count) }
        return found
    }

    private mutating func fieldColumn(
        _ type: UInt8, _ picks: Picks, _ none: Flat<Slice>, _ depth: Int
    ) throws(BlockProblem) -> ArgumentColumn {
        if type == FieldType.string {
            return ArgumentColumn(
                type: type, words: try arena.flat(0), strings: try strings(picks, depth: depth))
        }
        let words =
            type == FieldType.double
            ? try doubles(picks, bytes: 8, depth: depth) : try ints(picks, depth: depth)
        return ArgumentColumn(type: type, words: words, strings: none)
    }

    /// SAFETY: the caller has measured all values and shapes.
    private static func write(
        _ bytes: Slice, _ shape: Int, _ fields: FieldShapes, _ columns: Flat<ArgumentColumn>,
        to target: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        if bytes.count == 0 { return unsafe target }
        var out = unsafe bytes.part(0, 2).copy(to: target)
        for field in fields.first[shape]..<fields.first[shape + 1] {
            unsafe out = fields.headers[field].copy(to: out)
            let index = fields.column[field]
            var column = columns[index]
            if column.type == FieldType.string {
                let value = column.strings[column.taken]
                let size = UInt32(truncatingIfNeeded: value.count)
                unsafe out.storeBytes(of: size.littleEndian, as: UInt32.self)
                unsafe out = value.copy(to: out + 4)
            } else if column.type == FieldType.bool {
                let byte = UInt8(truncatingIfNeeded: column.words[column.taken])
                unsafe out.storeBytes(of: byte, as: UInt8.self)
                unsafe out += 1
            } else {
                let word = column.words[column.taken]
                unsafe out.storeBytes(of: word.littleEndian, as: UInt64.self)
                unsafe out += 8
            }
            column.taken += 1
            columns[index] = column
        }
        return unsafe out
    }

    /// A column of traces, 25 bytes each.
    mutating func traces(_ picks: Picks, depth: Int) throws(BlockProblem) -> Flat<Slice> {
        let size = TraceLayout.bytes
        try leaves.takeValues(picks.count, depth: depth)
        let values: Flat<Slice> = try arena.flat(picks.size)
        if picks.count == 0 { return values }
        guard picks.count <= rawBytes / size else { throw .damaged }
        let out = unsafe try arena.allocate(values.count * size)
        unsafe out.initializeMemory(as: UInt8.self, repeating: 0, count: values.count * size)
        for index in 0..<values.count {
            values[index] = unsafe Slice(start: out + index * size, count: size)
        }
        switch try leaves.byte() {
        case 0: return values
        case 1: break
        default: throw .damaged
        }
        let ids = try strings(picks, depth: depth)
        let spans = try strings(picks, depth: depth)
        let flags = try ints(picks, depth: depth)
        for index in 0..<values.count {
            guard ids[index].count == 16, spans[index].count == 8 else { throw .damaged }
            let start = unsafe out + index * size
            _ = unsafe ids[index].copy(to: start)
            _ = unsafe spans[index].copy(to: start + 16)
            let byte = UInt8(truncatingIfNeeded: flags[index])
            unsafe start.storeBytes(of: byte, toByteOffset: 24, as: UInt8.self)
        }
        return values
    }

    /// The sections of the picked records among those with sections. `only`: just the sections of
    /// these kinds; nothing is read after their columns.
    mutating func sectionColumns(
        _ picks: Picks, only: SectionKinds = .all
    ) throws(BlockProblem) -> SectionColumns {
        let count = picks.count
        let none: Flat<Slice> = try arena.flat(0)
        var found = SectionColumns(
            count: picks.size, only: only, whole: nil, shapes: none, chosen: try arena.flat(0),
            sizes: try arena.flat(picks.size, of: 0))
        if count == 0 { return found }
        switch try leaves.byte() {
        case 0:
            found.whole = try strings(picks, depth: 1)
            return found
        case 1: break
        default: throw .damaged
        }
        let shapeCount = try leaves.count(BlockLimits.shapesMax)
        guard shapeCount > 0 else { throw .damaged }
        found.shapes = try shapes(shapeCount, depth: 1)
        let all = try indices(count, below: shapeCount)
        found.chosen = try gather(all, picks)
        let rows: Flat<Int> = try arena.flat(shapeCount, of: 0)
        for index in 0..<count { rows[Int(all[index])] += 1 }
        let sizes: Flat<Int> = try arena.flat(256, of: 0)
        let isNamed: Flat<Bool> = try arena.flat(256, of: false)
        var total = 0
        for shape in 0..<shapeCount { total += found.shapes[shape].count }
        guard total <= BlockLimits.partsMax else { throw .damaged }
        let first: Flat<Int> = try arena.flat(shapeCount + 1)
        let kinds: Flat<Int> = try arena.flat(total)
        total = 0
        for shape in 0..<shapeCount {
            first[shape] = total
            for position in 0..<found.shapes[shape].count {
                let kind = Int(found.shapes[shape][position])
                kinds[total] = kind
                sizes[kind] &+= rows[shape]
                isNamed[kind] = true
                total += 1
            }
        }
        first[shapeCount] = total
        try leaves.check(values: sizes)
        if only != .all, !(0..<32).contains(where: { isNamed[$0] && only.has(UInt8($0)) }) {
            return found
        }
        let wanted = try self.picks(picks, all, first: first, columns: kinds, sizes: sizes)
        for kind in 0..<256 where isNamed[kind] {
            var picks = wanted[kind]
            if !only.has(UInt8(kind)) { picks = Picks(try arena.flat(0), of: sizes[kind]) }
            found.columns.append(try sectionColumn(UInt8(kind), picks, none))
            // Nothing after it is wanted.
            if only.ends(at: UInt8(kind)) { break }
        }
        try measure(found)
        return found
    }

    private mutating func sectionColumn(
        _ kind: UInt8, _ picks: Picks, _ none: Flat<Slice>
    ) throws(BlockProblem) -> SectionColumn {
        switch kind {
        case SectionKind.site:
            return SectionColumn(
                kind: kind, bytes: 4, words: try ints(picks, depth: 1), strings: none)
        case SectionKind.time, SectionKind.originalLength:
            return SectionColumn(
                kind: kind, bytes: 8, words: try ints(picks, depth: 1), strings: none)
        case SectionKind.fields:
            return SectionColumn(
                kind: kind, bytes: 0, words: try arena.flat(0),
                strings: try fieldLists(picks, depth: 1))
        case SectionKind.trace:
            return SectionColumn(
                kind: kind, bytes: 0, words: try arena.flat(0),
                strings: try traces(picks, depth: 1))
        default:
            return SectionColumn(
                kind: kind, bytes: 0, words: try arena.flat(0),
                strings: try strings(picks, depth: 1))
        }
    }

    private func measure(_ found: SectionColumns) throws(BlockProblem) {
        var columns = found.columns
        var total = 0
        for record in 0..<found.count {
            let shape = found.shapes[Int(found.chosen[record])]
            var size = 0
            for position in 0..<shape.count where found.only.has(shape[position]) {
                guard let index = columns.firstIndex(where: { $0.kind == shape[position] }) else {
                    throw .damaged
                }
                size &+= SectionKind.headerBytes
                size &+=
                    columns[index].bytes > 0
                    ? columns[index].bytes : columns[index].strings[columns[index].taken].count
                columns[index].taken += 1
            }
            found.sizes[record] = size
            total &+= size
            guard total <= rawBytes else { throw .damaged }
        }
    }
}

extension SectionColumns {
    /// The sections of the records that have some (FORMAT §8.1): at most so many bytes.
    func write(
        _ kind: Flat<UInt64>, _ time: Flat<UInt64>, _ offset: Flat<UInt64>, atMost size: Int,
        into out: inout GrowingBytes
    ) throws(BlockProblem) {
        let most = out.count &+ size
        var columns = columns
        var next = 0
        for record in 0..<kind.count {
            guard kind[record] & UInt64(BlockKind.hasSections) != 0 else { continue }
            guard bytes(of: next) <= most - out.count else { throw .damaged }
            if let whole {
                out.append(whole[next].bytes)
            } else {
                let shape = shapes[Int(chosen[next])]
                for position in 0..<shape.count where only.has(shape[position]) {
                    guard let index = columns.firstIndex(where: { $0.kind == shape[position] })
                    else { throw .damaged }
                    Self.write(
                        columns[index], utc: time[record] &+ offset[record], into: &out)
                    columns[index].taken += 1
                }
            }
            next += 1
        }
    }

    private static func write(
        _ column: SectionColumn, utc: UInt64, into out: inout GrowingBytes
    ) {
        out.append(word: UInt32(column.kind))
        switch column.bytes {
        case 4:
            out.append(word: UInt32(4))
            out.append(word: UInt32(truncatingIfNeeded: column.words[column.taken]))
        case 8:
            out.append(word: UInt32(8))
            let base = column.kind == SectionKind.time ? utc : 0
            out.append(word: column.words[column.taken] &+ base)
        default:
            let body = column.strings[column.taken]
            out.append(word: UInt32(truncatingIfNeeded: body.count))
            out.append(body.bytes)
        }
    }
}

/// The fields of shapes (FORMAT §11.7, FieldLists), and the columns that they share.
struct FieldShapes {
    /// Type, key length and key of each field.
    private(set) var headers: Flat<Slice>
    private(set) var column: Flat<Int>
    /// The first field of each shape. One more entry: the end.
    private(set) var first: Flat<Int>
    /// Headers in the order in which they first appear.
    private(set) var pairs: SliceTable

    /// nil: not shapes, or too many fields.
    init?(
        _ shapes: Flat<Slice>, seed: UInt64, _ arena: inout Arena
    ) throws(BlockProblem) {
        var total = 0
        for shape in 0..<shapes.count {
            if shapes[shape].count > 0 { total += Int(Bytes.u16(shapes[shape].bytes, 0)) }
            guard total <= BlockLimits.partsMax else { return nil }
        }
        headers = try arena.flat(total)
        column = try arena.flat(total)
        first = try arena.flat(shapes.count + 1, of: 0)
        pairs = try SliceTable(limit: total, seed: seed, &arena)
        var field = 0
        for shape in 0..<shapes.count {
            first[shape] = field
            let bytes = shapes[shape]
            if bytes.count == 0 { continue }
            guard bytes.count >= 2 else { return nil }
            var at = 2
            for _ in 0..<Bytes.u16(bytes.bytes, 0) {
                let size = 4 + Int(Bytes.u16(bytes.bytes, at + 2))
                let header = bytes.part(at, size)
                guard header.count == size, Self.fixedBytes(header[0]) > 0, header[1] == 0,
                    let index = try pairs.index(header, &arena)
                else { return nil }
                headers[field] = header
                column[field] = index
                field += 1
                at += size
            }
            guard at == bytes.count else { return nil }
        }
        first[shapes.count] = field
    }

    /// Size of a value besides a string's content; 0: an unknown type.
    static func fixedBytes(_ type: UInt8) -> Int {
        switch type {
        case FieldType.int, FieldType.uint, FieldType.double: 8
        case FieldType.bool: 1
        case FieldType.string: 4
        default: 0
        }
    }
}
