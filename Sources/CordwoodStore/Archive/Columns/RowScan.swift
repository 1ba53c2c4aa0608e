// Checks ahead of the reader which rows of a block may be wanted, in the few columns that tell, and
// has the reader step over the others column by column. Owned by the block's BlockRecords.
// SAFETY: cursors and views are the block's; `expected` is indexed below its count.

import CordwoodCore

/// A second walk over the rows.
struct RowScan {
    private var level: ByteCursor
    private var kind: ByteCursor
    private var logger: ByteCursor
    private var context: ByteCursor
    private var length: ByteCursor
    private var sectionLength: ByteCursor
    private var sections: ByteCursor
    private var messages: ByteCursor
    private var format: ByteCursor
    private var arguments: ByteCursor
    private var messageHits = ColumnHits([])
    private var argumentHits = ColumnHits([])
    private var sectionHits = ColumnHits([])
    /// A row does not parse: all rows from it on may be wanted.
    private var isDamaged = false

    /// Begins at the reader's position.
    init(_ block: borrowing BlockRecords, _ test: borrowing RowTest) {
        level = block.level
        kind = block.kind
        logger = block.logger
        context = block.context
        length = block.length
        sectionLength = block.sectionLength
        sections = block.sections
        messages = block.messages
        format = block.format
        arguments = block.arguments
        guard let text = test.text else { return }
        messageHits = ColumnHits(text.mayBePlain ? [text.wanted] : [])
        argumentHits = ColumnHits(text.pieces)
        sectionHits = ColumnHits(text.fieldPieces)
    }

    /// Steps over rows that the level alone excludes, at most this many; returns their number.
    mutating func passLevels(below least: UInt8, most: UInt32) -> UInt32 {
        let levels = unsafe level.rest
        let end = min(Int(most), levels.count)
        // Sets the highest bit of each byte that is not less, and of invalid levels.
        let more = UInt64(128 &- min(least, 127)) &* 0x0101_0101_0101_0101
        var at = 0
        while at < end {
            if at &+ 8 <= end {
                let word = Bytes.u64(levels, at)
                if (word | (word &+ more)) & 0x8080_8080_8080_8080 == 0 {
                    at &+= 8
                    continue
                }
            }
            if RowTest.has(Bytes.u8(levels, at), least) { break }
            at &+= 1
        }
        _ = level.skip(UInt64(at))
        if !kind.skip(UInt64(at)) { isDamaged = true }
        return UInt32(at)
    }

    /// Steps over a row. False: it is not wanted.
    mutating func next(
        _ test: borrowing RowTest, _ text: TextTest?, _ block: borrowing BlockDictionaries
    ) -> Bool {
        if isDamaged { return true }
        guard let isWanted = look(test, text, block) else {
            isDamaged = true
            return true
        }
        return isWanted
    }

    /// nil: the row does not parse.
    private mutating func look(
        _ test: borrowing RowTest, _ text: TextTest?, _ block: borrowing BlockDictionaries
    ) -> Bool? {
        guard let level = level.byte(), let bits = kind.byte() else { return nil }
        var isWanted =
            RowTest.has(level, test.level)
            && test.kinds & (1 &<< UInt32(bits & BlockKind.mask)) != 0
        if !test.loggers.isEmpty {
            guard let name = logger.varint(), name < UInt64(test.loggers.count) else { return nil }
            isWanted = isWanted && test.loggers[Int(name)]
        }
        guard let text else { return isWanted }
        guard var hasBytes = lookAtText(bits, text, block) else { return nil }
        guard let context = context.varint(), context <= UInt64(block.contexts.count) else {
            return nil
        }
        if context > 0, text.mayBeInFields {
            hasBytes = hasBytes || text.contexts[Int(context) - 1]
        }
        if bits & BlockKind.hasSections != 0 {
            guard let size = sectionLength.varint(), size <= UInt64(sections.left) else {
                return nil
            }
            if text.mayBeInFields, !hasBytes {
                hasBytes = mayBeInSections(text, Int(size))
            }
            _ = sections.skip(size)
        }
        return isWanted && hasBytes
    }

    /// A separate function, so that rows without sections cost nothing.
    @inline(never)
    private mutating func mayBeInSections(_ text: TextTest, _ size: Int) -> Bool {
        if let digits = text.digits {
            let own = unsafe Bytes.slice(sections.rest, 0, size) ?? Bytes.none
            return digits.mayBeIn(sections: own, text.printer)
        }
        return text.fieldPieces.isEmpty
            || sectionHits.areIn(unsafe sections.rest, first: size)
    }

    private mutating func lookAtText(
        _ bits: UInt8, _ text: TextTest, _ block: borrowing BlockDictionaries
    ) -> Bool? {
        if bits & BlockKind.deferred == 0 {
            guard let size = length.varint(), size < UInt64(messages.left) else { return nil }
            let isIn = messageHits.areIn(unsafe messages.rest, first: Int(size))
            return messages.skip(size &+ 1) ? isIn : nil
        }
        guard let index = format.varint(), index < UInt64(block.shapes.count),
            let size = block.shapes[Int(index)].size(unsafe arguments.rest)
        else { return nil }
        let way = text.ways[Int(index)]
        var isIn = way.odds == .any
        if way.odds == .with {
            isIn = argumentHits.areIn(unsafe arguments.rest, first: size)
            var need = way.needsStart
            while !isIn, need < way.needsEnd {
                let types = block.formats[Int(index)].types
                isIn = unsafe text.needs[need].isMet(types, arguments.rest, text.printer)
                need &+= 1
            }
        }
        return arguments.skip(UInt64(size)) ? isIn : nil
    }
}

extension BlockRecords {
    /// Passes over rows that the test leaves out and that do not affect the order of later rows,
    /// because the next one is in this block and not older. Returns the number of rows. `next`
    /// reports damage.
    mutating func pass(_ test: borrowing RowTest) -> UInt32 {
        if !isAheadWanted, left > 0 { lookAhead(test) }
        guard unwanted > 0, left > 1, !isDamaged else { return 0 }
        let count = stepInOrder(min(unwanted, left &- 1))
        if count == 0 { return 0 }
        isDamaged = !step(count)
        if isDamaged { return 0 }
        left &-= count
        unwanted &-= count
        return count
    }

    /// Passes over the rows before the first one at that monotonic time or later. Returns the
    /// number of rows. `next` reports damage.
    mutating func pass(before start: UInt64) -> UInt32 {
        var steps = time
        var (here, latest, count) = (time, lastTime, UInt32(0))
        while count < left, let step = steps.zigzag(), latest &+ step < start {
            latest &+= step
            here = steps
            count &+= 1
        }
        if count == 0 { return 0 }
        (time, lastTime) = (here, latest)
        isDamaged = !step(count)
        if isDamaged { return 0 }
        left &-= count
        return count
    }

    private mutating func lookAhead(_ test: borrowing RowTest) {
        if scan == nil { scan = RowScan(self, test) }
        let text = test.text
        while unwanted < left {
            if test.isOfLevels {
                unwanted &+= scan!.passLevels(below: test.level, most: left &- unwanted)
                if unwanted == left { return }
            }
            if scan!.next(test, text, dictionaries) {
                isAheadWanted = true
                return
            }
            unwanted &+= 1
        }
    }

    /// Steps over the times of at most this many rows, as long as the next one is not older.
    /// Returns the number of rows.
    private mutating func stepInOrder(_ most: UInt32) -> UInt32 {
        var steps = time
        guard var step = steps.zigzag() else { return 0 }
        var count: UInt32 = 0
        while count < most {
            let here = steps
            guard let next = steps.zigzag(), Int64(bitPattern: next) >= 0 else { break }
            lastTime &+= step
            time = here
            step = next
            count &+= 1
        }
        return count
    }

    /// Steps over this many rows in every column except the times; false: damaged.
    private mutating func step(_ count: UInt32) -> Bool {
        guard stepThreads(count), let offsets = offset.sum(ofSteps: Int(count)),
            level.skip(UInt64(count)), let bits = kind.bytes(UInt64(count)),
            logger.skipVarints(Int(count)), context.skipVarints(Int(count))
        else { return false }
        lastOffset &+= offsets
        let deferred = Self.count(BlockKind.deferred, in: bits)
        for _ in 0..<deferred {
            guard let index = format.varint(), index < UInt64(dictionaries.shapes.count),
                let size = dictionaries.shapes[Int(index)].size(unsafe arguments.rest),
                arguments.skip(UInt64(size))
            else { return false }
        }
        let plain = Int(count) &- deferred
        // Each is followed by a newline.
        guard let bytes = length.sum(of: plain, most: messages.left), messages.skip(bytes),
            messages.skip(UInt64(plain)),
            let parts = sectionLength.sum(
                of: Self.count(BlockKind.hasSections, in: bits), most: sections.left)
        else { return false }
        return sections.skip(parts)
    }

    private mutating func stepThreads(_ count: UInt32) -> Bool {
        var (threads, sequences) = (thread, sequence)
        let isWhole = unsafe expected.withUnsafeMutableBufferPointer { expected in
            for _ in 0..<count {
                guard let who = threads.varint(), who < UInt64(expected.count),
                    let step = sequences.zigzag()
                else { return false }
                unsafe expected[Int(who)] &+= step &+ 1
            }
            return true
        }
        (thread, sequence) = (threads, sequences)
        return isWhole
    }

    /// The number of bytes that have that bit.
    @safe private static func count(_ bit: UInt8, in bytes: UnsafeRawBufferPointer) -> Int {
        let bits = UInt64(bit) &* 0x0101_0101_0101_0101
        var found = 0
        var at = 0
        while at &+ 8 <= bytes.count {
            let word = unsafe bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self)
            found &+= (word & bits).nonzeroBitCount
            at &+= 8
        }
        while at < bytes.count {
            if Bytes.u8(bytes, at) & bit != 0 { found &+= 1 }
            at &+= 1
        }
        return found
    }
}

extension ByteCursor {
    /// False: there are fewer numbers.
    fileprivate mutating func skipVarints(_ count: Int) -> Bool {
        let bytes = unsafe rest
        var left = count
        var at = 0
        // So that no number continues beyond eight of them.
        while left > 8, at &+ 8 <= bytes.count {
            let word = unsafe bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self)
            left &-= (~word & 0x8080_8080_8080_8080).nonzeroBitCount
            at &+= 8
        }
        _ = skip(UInt64(at))
        while left > 0 {
            guard let byte = byte() else { return false }
            if byte < 0x80 { left &-= 1 }
        }
        return true
    }

    /// The sum of `count` numbers; nil: there are fewer, or one is larger than `most`.
    fileprivate mutating func sum(of count: Int, most: Int) -> UInt64? {
        var sum: UInt64 = 0
        for _ in 0..<count {
            guard let number = varint(), number <= UInt64(most) else { return nil }
            sum &+= number
        }
        return sum
    }

    /// The sum of `count` steps; nil: there are fewer.
    fileprivate mutating func sum(ofSteps count: Int) -> UInt64? {
        var sum: UInt64 = 0
        var left = count
        while left > 0 {
            // Most of them are 0.
            while left >= 8, self.left >= 8, unsafe rest.word(0, UInt64.self) == 0 {
                _ = skip(8)
                left &-= 8
            }
            if left == 0 { break }
            guard let step = zigzag() else { return nil }
            sum &+= step
            left &-= 1
        }
        return sum
    }
}
