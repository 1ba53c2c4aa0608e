// Makes the payload of FORMAT §11.4 from a dense block (§11.6, §11.7): inflates the frames, reads
// the columns in the order of the tree, then writes the 20 streams. One reader owns one decoder;
// its memory is reused for the next block.
// SAFETY: slices are of the stored bytes, which outlive `decode`, and of the arena, which is
// emptied at its end. Columns of records have as many values as the block has records, and picked
// rows are below that count.

import CordwoodCore

struct DenseDecoder: ~Copyable {
    var arena = Arena()
    var leaves = LeafReader()
    var opener = DenseOpener()
    /// Size of the payload; bounds what is written.
    var rawBytes = 0
    /// For tables of the names in a block; damage cannot choose it.
    let seed = UInt64.random(in: .min ... .max)

    static let arenaKept = 32 << 20

    init() {}

    /// The columns of streams 0 to 12, and 16.
    struct Heads {
        var slices: [Slice]
        var contexts: Flat<Slice>
        var traces: Flat<Slice>
        var kind: Flat<UInt64>
        var level: Flat<UInt64>
        var thread: Flat<UInt64>
        var time: Flat<UInt64>
        var offset: Flat<UInt64>
        var sequence: Flat<UInt64>
        var logger: Flat<UInt64>
        var context: Flat<UInt64>
    }

    private struct Bodies {
        var format: Flat<UInt64>
        var arguments: ArgumentColumns
        var sections: SectionColumns
        var messages: Flat<Slice>
        /// Size of stream 19 if it is already in its place; 0: it is not.
        var inPlace = 0
    }

    /// The bytes after the payload that `copyLoosely` may touch.
    private static let margin = 16

    /// Number of records in the last payload.
    private(set) var rowCount = 0
    /// Monotonic time of the block's first record if only some rows were made; otherwise 0.
    private(set) var firstTime: UInt64 = 0

    /// Replaces `out` with the payload. `stored`: the directory and the frames. `parts`: the wanted
    /// streams. `rows`: the wanted rows; if they are few, the payload has only them and those that
    /// decide about the order of others. If `endsEarly` returns true for the text of the block and
    /// its stream 16, `out` ends after times. Unwanted content is not inflated; then only checksums
    /// of frames are compared. False: it ends early, because no record is wanted.
    /// checksums of frames alone are compared. False: it ends early, since no record is wanted.
    @safe @discardableResult mutating func decode(
        _ stored: UnsafeRawBufferPointer, recordCount: Int, rawBytes: Int, rawCRC: UInt32,
        parts: BlockParts = .all, rows: DenseRows? = nil,
        endsEarly: ((Slice, Slice) -> Bool)? = nil, into out: inout GrowingBytes
    ) throws(DenseProblem) -> Bool {
        defer { arena.clear(keeping: Self.arenaKept) }
        out.removeAll()
        guard recordCount <= DenseLimits.recordsMax, rawBytes <= DenseLimits.payloadMax,
            recordCount <= rawBytes
        else { throw .damaged }
        self.rawBytes = rawBytes
        rowCount = recordCount
        let opened = try opener.open(Slice(stored), rawBytes: rawBytes, into: &arena)
        leaves = opened.leaves
        defer { leaves = LeafReader() }
        var heads = try readTexts()
        let isEarly = opened.hasLetters && endsEarly?(opened.text, heads.slices[4]) == true
        let parts = isEarly ? .times : parts
        if parts.last != .max {
            leaves.sumsUp = false
            try readHeads(recordCount, parts, into: &heads)
            try write(heads, parts, into: &out)
            if parts.last > BlockParts.heads {
                try writeMore(heads, parts, recordCount, into: &out)
            }
            if out.failed { throw .memory }
            return !isEarly
        }
        var found = Picks(all: recordCount)
        if let rows, rows.mayDecide(heads.slices[0]) {
            found = try readHeads(recordCount, rows, into: &heads)
        } else {
            try readHeads(recordCount, .all, into: &heads)
        }
        if found.places != nil {
            rowCount = found.size
            return try write(heads, found, into: &out)
        }
        guard try write(heads, rawCRC, into: &out),
            unsafe Checksum.crc(out.bytes) == opened.payloadCRC
        else { throw .damaged }
        return true
    }

    /// Whether `decode` would return that payload, whose CRC is `payloadCRC`. `out` is scratch
    /// room.
    @safe mutating func gives(
        _ payload: UnsafeRawBufferPointer, payloadCRC: UInt32, from stored: UnsafeRawBufferPointer,
        recordCount: Int, rawCRC: UInt32, by out: inout GrowingBytes
    ) throws(DenseProblem) -> Bool {
        defer { arena.clear(keeping: Self.arenaKept) }
        out.removeAll()
        rawBytes = payload.count
        let opened = try opener.open(Slice(stored), rawBytes: rawBytes, into: &arena)
        leaves = opened.leaves
        defer { leaves = LeafReader() }
        guard opened.payloadCRC == payloadCRC else { return false }
        var heads = try readTexts()
        try readHeads(recordCount, .all, into: &heads)
        guard try write(heads, rawCRC, into: &out) else { return false }
        return unsafe Slice(out.bytes).isSame(Slice(payload))
    }

    /// The whole payload; its heads have been read. False: the leaves do not match rawCRC, or it is
    /// too short.
    private mutating func write(
        _ heads: Heads, _ rawCRC: UInt32, into out: inout GrowingBytes
    ) throws(DenseProblem) -> Bool {
        guard out.reserve(rawBytes &+ Self.margin) else { throw .memory }
        try write(heads, .all, into: &out)
        // Writing times reserved room that they did not fill, and may have moved the payload.
        let left = max(rawBytes &- out.count, 0)
        guard out.reserve(left &+ Self.margin) else { throw .memory }
        let room = unsafe LineRoom(end: out.base + (out.count &+ left), bytes: left)
        let bodies = try readBodies(heads, Picks(all: heads.kind.count), room)
        guard leaves.isSpent, leaves.crc == rawCRC else { return false }
        try write(heads, bodies, into: &out)
        return out.count == rawBytes
    }

    /// A plane leaf; a frame of its own is inflated here.
    mutating func plane(_ size: Int) throws(DenseProblem) -> Slice {
        try content(of: leaves.take(plane: size))
    }

    /// A text leaf; likewise.
    mutating func textLeaf() throws(DenseProblem) -> Slice {
        let (bytes, frame) = try leaves.takeText()
        if let frame, let stored = leaves.missing(frame: frame) {
            leaves.put(try opener.inflate(stored, into: &arena), frame: frame)
        }
        return leaves.text(bytes, frame)
    }

    /// The bytes of a plane leaf that was skipped.
    mutating func content(of number: Int) throws(DenseProblem) -> Slice {
        if let (frame, stored) = leaves.missing(number) {
            leaves.put(try opener.inflate(stored, into: &arena), frame: frame)
        }
        return leaves.plane(number)
    }

    /// The dictionaries, which come first.
    private mutating func readTexts() throws(DenseProblem) -> Heads {
        var slices: [Slice] = []
        for _ in 0..<5 { slices.append(try textLeaf()) }
        let contextCount = try leaves.count(DenseLimits.dictionaryMax)
        let contexts = try fieldLists(Picks(all: contextCount), depth: 1)
        let traces = try traces(Picks(all: contextCount), depth: 1)
        let none: Flat<UInt64> = try arena.flat(0)
        return Heads(
            slices: slices, contexts: contexts, traces: traces, kind: none, level: none,
            thread: none, time: none, offset: none, sequence: none, logger: none, context: none)
    }

    /// The other columns, as far as wanted, in the order of the tree.
    private mutating func readHeads(
        _ records: Int, _ parts: BlockParts, into heads: inout Heads
    ) throws(DenseProblem) {
        if parts.last < 5 { return }
        let all = Picks(all: records)
        let none = Picks(try arena.flat(0), of: records)
        heads.kind = try ints(parts.last >= 10 ? all : none, depth: 1)
        heads.level = try ints(parts.last >= 9 ? all : none, depth: 1)
        heads.thread = try ints(all, depth: 1)
        heads.time = try ints(parts.hasTimes ? all : none, depth: 1)
        heads.offset = try ints(parts.hasTimes ? all : none, depth: 1)
        if parts.last < 8 { return }
        heads.sequence = try ints(parts.hasNumbers ? all : none, depth: 1)
        heads.logger = try ints(all, depth: 1)
        heads.context = try ints(parts.hasNumbers ? all : none, depth: 1)
    }

    /// Reads all columns of rows that may be few: returns these, and leaves only them in `heads`,
    /// or all in both.
    private mutating func readHeads(
        _ records: Int, _ rows: DenseRows, into heads: inout Heads
    ) throws(DenseProblem) -> Picks {
        let all = Picks(all: records)
        heads.kind = try ints(all, depth: 1)
        heads.level = try ints(all, depth: 1)
        heads.thread = try ints(all, depth: 1)
        heads.time = try ints(all, depth: 1)
        var found = rows.needsMore ? all : try self.rows(rows, heads, records)
        heads.offset = try ints(found, depth: 1)
        heads.sequence = try ints(all, depth: 1)
        heads.logger = try ints(found, depth: 1)
        heads.context = try ints(found, depth: 1)
        if rows.needsMore {
            found = try self.rows(rows, heads, records)
            heads.offset = try gather(heads.offset, found)
            heads.logger = try gather(heads.logger, found)
            heads.context = try gather(heads.context, found)
        }
        if found.places != nil { leaves.sumsUp = false }
        return found
    }

    /// A payload of these rows only; their heads have been read. False: none of them is wanted, and
    /// the payload ends after times.
    private mutating func write(
        _ all: Heads, _ picks: Picks, into out: inout GrowingBytes
    ) throws(DenseProblem) -> Bool {
        firstTime = all.time[0]
        var heads = all
        if picks.isNone {
            try write(heads, .times, into: &out)
            return false
        }
        let bodies = try readBodies(heads, picks)
        heads.sequence = try sequences(heads, picks)
        heads.kind = try gather(heads.kind, picks)
        heads.level = try gather(heads.level, picks)
        heads.thread = try gather(heads.thread, picks)
        heads.time = try gather(heads.time, picks)
        try write(heads, .all, into: &out)
        try write(heads, bodies, into: &out)
        return true
    }

    /// The numbers of stream 8 for the picked rows, without the rows between them.
    private mutating func sequences(
        _ heads: Heads, _ picks: Picks
    ) throws(DenseProblem) -> Flat<UInt64> {
        var cursor = ByteCursor(heads.slices[1].bytes)
        guard let threads = cursor.varint(), threads <= UInt64(DenseLimits.dictionaryMax) else {
            throw .damaged
        }
        let expected: Flat<UInt64> = try arena.flat(Int(threads), of: 0)
        let shown: Flat<UInt64> = try arena.flat(Int(threads), of: 0)
        let found: Flat<UInt64> = try arena.flat(picks.size)
        let (thread, step) = unsafe (heads.thread.base, heads.sequence.base)
        var row = 0
        for index in 0..<picks.size {
            let wanted = picks.place(index)
            while row < wanted {
                guard unsafe thread[row] < threads else { throw .damaged }
                let one = unsafe Int(truncatingIfNeeded: thread[row])
                unsafe expected.base[one] &+= step[row] &+ 1
                row &+= 1
            }
            guard unsafe thread[row] < threads else { throw .damaged }
            let one = unsafe Int(truncatingIfNeeded: thread[row])
            let sequence = unsafe expected[one] &+ step[row]
            found[index] = sequence &- shown[one]
            expected[one] = sequence &+ 1
            shown[one] = sequence &+ 1
            row &+= 1
        }
        return found
    }

    /// With `room`, messages are made there if that saves copying them: they come last.
    private mutating func readBodies(
        _ heads: Heads, _ picks: Picks, _ room: LineRoom? = nil
    ) throws(DenseProblem) -> Bodies {
        let deferred = try share(heads.kind, PayloadBits.deferred, picks)
        let sectioned = try share(heads.kind, PayloadBits.hasSections, picks)
        let plain = try share(heads.kind, PayloadBits.deferred, isSet: false, picks)
        let format = try ints(deferred.count, depth: 1)
        let types = try types(of: heads.slices[4])
        let arguments = try argumentColumns(types, format, deferred)
        let sections = try sectionColumns(sectioned)
        var bodies = Bodies(
            format: try gather(format, deferred), arguments: arguments, sections: sections,
            messages: try arena.flat(plain.size))
        guard let room, plain.count > 0, leaves.next == StringsCodec.templates else {
            bodies.messages = try strings(plain, depth: 1)
            return bodies
        }
        try leaves.takeValues(plain.count, depth: 1)
        _ = try leaves.byte()
        bodies.inPlace = try templates(bodies.messages, plain, 1, lines: room)
        return bodies
    }

    /// Those of the picked rows whose kind has the bit set (or clear), counted among all rows of
    /// which this is true.
    mutating func share(
        _ kind: Flat<UInt64>, _ bit: UInt8, isSet: Bool = true, _ picks: Picks
    ) throws(DenseProblem) -> Picks {
        let shift = UInt64(bit.trailingZeroBitCount)
        let bits = unsafe kind.base
        /// How many of these rows have it.
        func count(_ rows: Range<Int>) -> Int {
            var found: UInt64 = 0
            for row in rows { unsafe found &+= bits[row] &>> shift & 1 }
            return isSet ? Int(found) : rows.count &- Int(found)
        }
        guard let rows = picks.places else { return Picks(all: count(0..<kind.count)) }
        let places: Flat<UInt32> = try arena.flat(picks.size)
        var (found, before, last) = (0, 0, 0)
        for index in 0..<rows.count {
            let row = Int(rows[index])
            before &+= count(last..<row)
            last = row
            if count(row..<row &+ 1) == 0 { continue }
            places[found] = UInt32(truncatingIfNeeded: before)
            found &+= 1
        }
        return Picks(places.prefix(found), of: before &+ count(last..<kind.count))
    }

    // MARK: writing

    private func put(_ bytes: Slice, _ out: inout GrowingBytes) throws(DenseProblem) {
        guard bytes.count <= rawBytes - out.count else { throw .damaged }
        out.append(bytes.bytes)
    }

    /// Ends the stream that began at `start`.
    private func close(
        _ stream: Int, _ start: inout Int, _ out: inout GrowingBytes
    ) throws(DenseProblem) {
        guard out.count <= rawBytes else { throw .damaged }
        out.store(UInt32(out.count - start), at: 4 + 4 * stream)
        start = out.count
    }

    /// Streams 0 to 12, as far as they are wanted.
    private func write(
        _ heads: Heads, _ parts: BlockParts, into out: inout GrowingBytes
    ) throws(DenseProblem) {
        let table = 4 + 4 * DenseLimits.streams
        guard let room = unsafe out.claim(table) else { throw .memory }
        unsafe room.initializeMemory(as: UInt8.self, repeating: 0, count: table)
        out.store(UInt32(DenseLimits.streams), at: 0)
        var stream = 0
        var start = out.count
        func close(_ out: inout GrowingBytes) throws(DenseProblem) {
            try self.close(stream, &start, &out)
            stream += 1
        }
        for index in 0..<4 {
            try put(heads.slices[index], &out)
            try close(&out)
        }
        out.append(varint: UInt64(heads.contexts.count))
        for index in 0..<heads.contexts.count {
            out.append(varint: UInt64(heads.contexts[index].count))
            try put(heads.contexts[index], &out)
            try put(heads.traces[index], &out)
        }
        try close(&out)
        try heads.thread.writeVarints(to: &out)
        try close(&out)
        try heads.time.writeSteps(to: &out)
        try close(&out)
        try heads.offset.writeSteps(to: &out)
        try close(&out)
        if parts.last < 8 { return }
        try heads.sequence.writeZigzags(to: &out)
        try close(&out)
        try heads.level.writeOctets(to: &out)
        try close(&out)
        try heads.kind.writeOctets(to: &out)
        try close(&out)
        try heads.logger.writeVarints(to: &out)
        try close(&out)
        try heads.context.writeVarints(to: &out)
        try close(&out)
    }

    /// Streams 14 and 15, with only some sections, and 16 and 17, if they are wanted.
    private mutating func writeMore(
        _ heads: Heads, _ parts: BlockParts, _ records: Int, into out: inout GrowingBytes
    ) throws(DenseProblem) {
        let all = Picks(all: records)
        let sectioned = try share(heads.kind, PayloadBits.hasSections, all)
        if sectioned.isNone, parts.last < BlockParts.places { return }
        let deferred = try share(heads.kind, PayloadBits.deferred, all)
        let format = try ints(deferred.count, depth: 1)
        var start = out.count
        if !sectioned.isNone {
            _ = try argumentColumns(
                types(of: heads.slices[4]), format,
                Picks(try arena.flat(0), of: deferred.count))
            let sections = try sectionColumns(sectioned, only: parts.sections)
            try write(sections, heads, into: &out, from: &start)
        }
        if parts.last < BlockParts.places { return }
        try put(heads.slices[4], &out)
        try close(16, &start, &out)
        try format.writeVarints(to: &out)
        try close(17, &start, &out)
    }

    /// Streams 14 and 15.
    private func write(
        _ sections: SectionColumns, _ heads: Heads, into out: inout GrowingBytes,
        from start: inout Int
    ) throws(DenseProblem) {
        if sections.whole == nil, sections.columns.isEmpty {
            for _ in 0..<sections.count { out.append(UInt8(0)) }
            return try close(14, &start, &out)
        }
        for index in 0..<sections.count {
            out.append(varint: UInt64(sections.bytes(of: index)))
        }
        try close(14, &start, &out)
        try sections.write(
            heads.kind, heads.time, heads.offset, atMost: rawBytes, into: &out)
        try close(15, &start, &out)
    }

    /// Streams 13 to 19.
    private func write(
        _ heads: Heads, _ bodies: Bodies, into out: inout GrowingBytes
    ) throws(DenseProblem) {
        var start = out.count
        for index in 0..<bodies.messages.count {
            out.append(varint: UInt64(bodies.messages[index].count))
        }
        try close(13, &start, &out)
        try write(bodies.sections, heads, into: &out, from: &start)
        try put(heads.slices[4], &out)
        try close(16, &start, &out)
        try bodies.format.writeVarints(to: &out)
        try close(17, &start, &out)
        try bodies.arguments.write(bodies.format, atMost: rawBytes, into: &out)
        try close(18, &start, &out)
        if bodies.inPlace > 0 {
            // Otherwise there is a gap before them, or they were overwritten.
            guard out.count &+ bodies.inPlace == rawBytes else { throw .damaged }
            out.resize(rawBytes)
        } else {
            for index in 0..<bodies.messages.count {
                try put(bodies.messages[index], &out)
                out.append(0x0A)
            }
        }
        try close(19, &start, &out)
        if out.failed { throw .memory }
    }
}

/// FORMAT §11.4, stream 10.
enum PayloadBits {
    static let kind: UInt8 = 7
    static let hasSections: UInt8 = 32
    static let deferred: UInt8 = 64
}
