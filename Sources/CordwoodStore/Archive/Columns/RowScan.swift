// Checks ahead of the reader which rows of a block may be wanted, in the few columns that tell.
// Owned by the block's BlockRecords.
// SAFETY: views are the block's.

import CordwoodCore

/// A second walk over the rows, in their order.
struct RowScan {
    private let view: BlockView
    private var messageHits = ColumnHits([])
    private var argumentHits = ColumnHits([])
    private var sectionHits = ColumnHits([])

    init(_ view: BlockView, _ test: borrowing RowTest) {
        self.view = view
        guard let text = test.text else { return }
        messageHits = ColumnHits(text.mayBePlain ? [text.wanted] : [])
        argumentHits = ColumnHits(text.pieces)
        sectionHits = ColumnHits(text.fieldPieces)
    }

    /// The first row from this one on that the level alone does not exclude.
    func next(withLevel least: UInt8, from row: Int) -> Int {
        guard let levels = view.level.octets else {
            var at = row
            while at < view.count, !has(at, least) { at &+= 1 }
            return at
        }
        // Sets the highest bit of each byte that is not less, and of invalid levels.
        let more = UInt64(128 &- min(least, 127)) &* 0x0101_0101_0101_0101
        var at = row
        while at < levels.count {
            if at &+ 8 <= levels.count {
                let word = Bytes.u64(levels, at)
                if (word | (word &+ more)) & 0x8080_8080_8080_8080 == 0 {
                    at &+= 8
                    continue
                }
            }
            if has(at, least) { break }
            at &+= 1
        }
        return at
    }

    private func has(_ row: Int, _ least: UInt8) -> Bool {
        RowTest.has(UInt8(truncatingIfNeeded: view.level[row]), least)
    }

    mutating func mayBeWanted(
        _ row: Int, _ test: borrowing RowTest, _ text: TextTest?,
        _ block: borrowing BlockDictionaries
    ) -> Bool {
        let bits = UInt8(truncatingIfNeeded: view.kind[row])
        guard has(row, test.level), test.kinds & (1 &<< UInt32(bits & BlockKind.mask)) != 0,
            test.loggers.isEmpty || test.loggers[Int(truncatingIfNeeded: view.logger[row])]
        else { return false }
        guard let text else { return true }
        if mayBeInText(row, bits, text, block) { return true }
        guard text.mayBeInFields else { return false }
        let context = Int(truncatingIfNeeded: view.context[row])
        if context > 0, text.contexts[context &- 1] { return true }
        return bits & BlockKind.hasSections != 0 && mayBeInSections(row, text)
    }

    /// A separate function, so that rows without sections cost nothing.
    @inline(never)
    private mutating func mayBeInSections(_ row: Int, _ text: TextTest) -> Bool {
        let own = view.sections(row)
        if let digits = text.digits { return digits.mayBeIn(sections: own, text.printer) }
        return text.fieldPieces.isEmpty
            || sectionHits.areIn(view.sections(from: row), first: own.count)
    }

    private mutating func mayBeInText(
        _ row: Int, _ bits: UInt8, _ text: TextTest, _ block: borrowing BlockDictionaries
    ) -> Bool {
        if bits & BlockKind.deferred == 0 {
            return messageHits.areIn(
                view.messages(from: row), first: view.message(row).count)
        }
        let index = Int(truncatingIfNeeded: view.format[row])
        let way = text.ways[index]
        if way.odds == .any { return true }
        guard way.odds == .with else { return false }
        let own = view.arguments(row)
        if argumentHits.areIn(view.arguments(from: row), first: own.count) { return true }
        let types = block.formats[index].types
        for need in way.needsStart..<way.needsEnd
        where text.needs[need].isMet(types, own, text.printer) {
            return true
        }
        return false
    }
}
