// Some rows of an inflated block as an independent payload (FORMAT §11.4), with all dictionaries:
// if memory is short, a reader keeps it and releases the block. Called once per piece; one thread.
// SAFETY: views are of the payload, which the caller keeps during the call.

import CordwoodCore

struct BlockCut {
    private static let rowStreams = 5...19
    private static let dictionaryOfFormats = 16
    private enum Column {
        static let (thread, time, offset, sequence, kind, context) = (5, 6, 7, 8, 10, 12)
        static let (length, sectionLength, sections) = (13, 14, 15)
        static let (format, arguments, messages) = (17, 18, 19)
        static let (level, logger) = (9, 11)
    }

    private let shapes: [ArgumentShape]
    private var cursors: [ByteCursor]
    private var expected: [UInt64]
    private var lastTime: UInt64 = 0
    private var lastOffset: UInt64 = 0
    private var lastSequence: UInt64 = 0
    private var lastThread = 0

    /// Replaces `out` with a payload of these rows. False: a row is damaged, or memory ran out.
    @safe static func cut(
        _ payload: UnsafeRawBufferPointer, _ dictionaries: BlockDictionaries, rows: Range<Int>,
        of recordCount: Int, into out: inout GrowingBytes
    ) -> Bool {
        guard let streams = BlockRecords.streams(payload) else { return false }
        var walk = BlockCut(streams, dictionaries)
        for _ in 0..<rows.lowerBound where !walk.step() { return false }
        let before = walk
        // The base of the first row's steps: zero in an independent payload.
        var times = GrowingBytes()
        var offsets = GrowingBytes()
        var sequences = GrowingBytes()
        var seen = [UInt64](repeating: 0, count: dictionaries.threads.count)
        var afterFirst = walk
        for row in rows {
            guard walk.step() else { return false }
            sequences.append(zigzag: walk.lastSequence &- seen[walk.lastThread])
            seen[walk.lastThread] = walk.lastSequence &+ 1
            if row > rows.lowerBound { continue }
            afterFirst = walk
            times.append(zigzag: walk.lastTime)
            offsets.append(zigzag: walk.lastOffset)
        }
        // Bytes that no row uses show as damage at the last row.
        let isLast = rows.upperBound == recordCount
        func rest(_ column: Int, since start: BlockCut) -> UnsafeRawBufferPointer {
            let all = unsafe start.cursors[column].rest
            let left = isLast ? 0 : walk.cursors[column].left
            return unsafe UnsafeRawBufferPointer(rebasing: all[..<(all.count - left)])
        }
        unsafe times.append(rest(Column.time, since: afterFirst))
        unsafe offsets.append(rest(Column.offset, since: afterFirst))
        if isLast { unsafe sequences.append(walk.cursors[Column.sequence].rest) }
        out.removeAll()
        out.append(word: UInt32(ArchiveLimits.streams))
        for _ in 0..<ArchiveLimits.streams { out.append(word: UInt32(0)) }
        for index in 0..<ArchiveLimits.streams {
            let start = out.count
            switch index {
            case Column.time: unsafe out.append(times.bytes)
            case Column.offset: unsafe out.append(offsets.bytes)
            case Column.sequence: unsafe out.append(sequences.bytes)
            case dictionaryOfFormats: unsafe out.append(streams[index])
            case rowStreams: unsafe out.append(rest(index, since: before))
            default: unsafe out.append(streams[index])
            }
            out.store(UInt32(truncatingIfNeeded: out.count - start), at: 4 + 4 * index)
        }
        return !out.failed && !times.failed && !offsets.failed && !sequences.failed
    }

    @safe private init(
        _ streams: [UnsafeRawBufferPointer], _ dictionaries: BlockDictionaries
    ) {
        shapes = dictionaries.shapes
        cursors = unsafe streams.map { ByteCursor($0) }
        expected = Array(repeating: 0, count: dictionaries.threads.count)
    }

    /// Passes over a row as `BlockRecords` reads it. False: damage.
    private mutating func step() -> Bool {
        guard let who = cursors[Column.thread].varint(), who < UInt64(expected.count),
            let timeStep = cursors[Column.time].zigzag(),
            let offsetStep = cursors[Column.offset].zigzag(),
            let sequenceStep = cursors[Column.sequence].zigzag(),
            cursors[Column.level].byte() != nil, let bits = cursors[Column.kind].byte(),
            cursors[Column.logger].varint() != nil, cursors[Column.context].varint() != nil
        else { return false }
        lastTime &+= timeStep
        lastOffset &+= offsetStep
        lastThread = Int(who)
        lastSequence = expected[lastThread] &+ sequenceStep
        expected[lastThread] = lastSequence &+ 1
        if bits & BlockKind.deferred != 0 {
            guard let index = cursors[Column.format].varint(), index < UInt64(shapes.count),
                let size = shapes[Int(index)].size(unsafe cursors[Column.arguments].rest),
                cursors[Column.arguments].skip(UInt64(size))
            else { return false }
        } else {
            guard let size = cursors[Column.length].varint(),
                cursors[Column.messages].skip(size), cursors[Column.messages].skip(1)
            else { return false }
        }
        guard bits & BlockKind.hasSections != 0 else { return true }
        guard let size = cursors[Column.sectionLength].varint() else { return false }
        return cursors[Column.sections].skip(size)
    }
}
