// A block beside what its header would say, and what any bytes must keep: for the tests, their tool
// (Tests/Oracle/block_tool.swift) and the fuzzer (Tests/Fuzz/block.swift).

import CordwoodCore

@testable import CordwoodStore

struct BlockFile {
    var facts: BlockFacts
    /// The directory and the frames.
    var bytes: [UInt8]

    init(_ facts: BlockFacts, _ bytes: [UInt8]) {
        self.facts = facts
        self.bytes = bytes
    }

    /// Its records stored again.
    init(
        _ block: inout Block, _ effort: BlockEffort, _ codec: Codec, by encoder: inout BlockEncoder
    ) throws(BlockProblem) {
        var frame = GrowingBytes()
        let size = try encoder.encode(&block, effort: effort, codec: codec, into: &frame)
        facts = BlockFacts(
            recordCount: Int(block.summary.recordCount), size: size, codec: codec)
        bytes = Array(frame.bytes)
    }

    static func little<Word: FixedWidthInteger>(_ word: Word) -> [UInt8] {
        withUnsafeBytes(of: word.littleEndian) { Array($0) }
    }

    /// Reads of it what is asked for; `out` then has the rows.
    @discardableResult
    func load(
        _ decoder: inout BlockDecoder, _ parts: BlockParts = .all, rows: WantedRows? = nil,
        unless letters: LetterRun? = nil, into out: inout RowBuffer
    ) throws(BlockProblem) -> LoadedRows {
        var loaded = LoadedRows()
        var problem: BlockProblem?
        bytes.withUnsafeBytes { bytes in
            do throws(BlockProblem) {
                loaded = try decoder.load(
                    Slice(bytes), facts, parts, rows: rows, unless: letters, into: &out)
            } catch { problem = error }
        }
        if let problem { throw problem }
        return loaded
    }

    /// Every record. With its text; without, a deferred one has its arguments as message.
    func each(
        _ decoder: inout BlockDecoder, hasTexts: Bool = true, rows wanted: WantedRows? = nil,
        _ use: (borrowing RecordRef) -> Void
    ) throws(BlockProblem) {
        let text = DeferredText()
        var buffer = RowBuffer()
        if try load(&decoder, rows: wanted, into: &buffer).isWithout { return }
        defer { buffer.clear() }
        var rows = BlockRecords(buffer.view())
        var record = RecordRef()
        while true {
            switch rows.next(into: &record) {
            case .end: return
            case .damaged: throw .damaged
            case .record:
                if hasTexts {
                    text.render(&record)
                } else if record.isDeferred {
                    record.message = record.arguments
                }
                use(record)
            }
        }
    }

    func lines(
        _ decoder: inout BlockDecoder, hasTexts: Bool = true
    ) throws(BlockProblem) -> [UInt8] {
        var lines: [UInt8] = []
        try each(&decoder, hasTexts: hasTexts) { JSONLine.append($0, to: &lines) }
        return lines
    }

    /// Its records in a block that is made of them.
    func block(_ decoder: inout BlockDecoder) throws(BlockProblem) -> Block {
        var block = Block(seed: 1, target: 1 << 16)
        try each(&decoder) {
            var record = copy $0
            block.add(&record)
        }
        return block
    }
}

/// Blocks in a file of many: a line `block NAME RECORDS SIZE CODEC BYTES` and the bytes of each.
struct BlockList {
    private let file: [UInt8]
    private var at = 0

    init(_ file: [UInt8]) { self.file = file }

    mutating func next() -> (name: String, block: BlockFile)? {
        guard let end = file[at...].firstIndex(of: 0x0A) else { return nil }
        let words = String(decoding: file[at..<end], as: UTF8.self).split(separator: " ")
        guard words.count == 6, words[0] == "block", let count = Int(words[2]),
            let size = Int(words[3]), let length = Int(words[5]),
            let codec = Codec.allCases.first(where: { "\($0)" == words[4] }),
            length <= file.count - end - 1
        else { return nil }
        at = end + 1 + length
        let facts = BlockFacts(recordCount: count, size: size, codec: codec)
        return (String(words[1]), BlockFile(facts, Array(file[end + 1..<at])))
    }

    static func entry(_ name: String, _ block: BlockFile) -> [UInt8] {
        let facts = block.facts
        let head =
            "block \(name) \(facts.recordCount) \(facts.size) \(facts.codec) \(block.bytes.count)\n"
        return Array(head.utf8) + block.bytes
    }
}

/// An input of the fuzzer: a byte of switches, u32 records, u32 size, and the bytes of a block.
enum BlockInput {
    static let repairs: UInt8 = 4

    static func of(_ block: BlockFile) -> [UInt8] {
        let (count, size) = (UInt32(block.facts.recordCount), UInt32(block.facts.size))
        return [block.facts.codec.rawValue | repairs] + BlockFile.little(count)
            + BlockFile.little(size) + block.bytes
    }

    /// Reads the block; traps where it breaks a promise. Whether it is whole.
    @discardableResult
    static func run(_ input: UnsafeRawBufferPointer) -> Bool {
        guard input.count >= 9 else { return false }
        let switches = input[0]
        let facts = BlockFacts(
            recordCount: Int(Bytes.u32(input, 1)), size: Int(Bytes.u32(input, 5)),
            codec: Codec(rawValue: switches & 3) ?? .none)
        var block = BlockFile(facts, Array(input.dropFirst(9)))
        if switches & repairs != 0 { block.repair() }
        // Most changes change the size, which only a reader of all rows compares.
        let some = block.readsSome()
        block.readsFew()
        var decoder = BlockDecoder()
        guard let lines = try? block.lines(&decoder) else { return false }
        precondition(some, "rows of a whole block are not read")
        if let again = block.again(BlockEffort(rawValue: switches >> 3 & 3) ?? .dense) {
            guard let found = try? again.lines(&decoder) else {
                preconditionFailure("what was written is not read")
            }
            precondition(found == lines, "other records come back")
        }
        return true
    }
}

extension BlockFile {
    /// Reads columns of some rows, which are those of the whole. Does without the comparison with
    /// the size, so that most changes get further here.
    fileprivate func readsSome() -> Bool {
        var whole = BlockDecoder()
        var part = BlockDecoder()
        return bytes.withUnsafeBytes { bytes in
            guard
                let all = try? whole.read(Slice(bytes), facts, rows: 0..<facts.recordCount)
            else { return false }
            let (start, end) = (all.rows / 3, all.rows - all.rows / 4)
            let columns = BlockColumns(.kind, .time, .messages, .contexts, .logger)
            guard let some = try? part.read(Slice(bytes), facts, columns, rows: start..<end) else {
                return false
            }
            let deferred = UInt64(BlockKind.deferred)
            let plain = (0..<start).count { all.kind[$0] & deferred == 0 }
            for row in start..<end {
                precondition(some.kind[row - start] == all.kind[row])
                precondition(some.time[row - start] == all.time[row])
                precondition(some.logger[row - start] == all.logger[row])
            }
            for row in 0..<some.messages.count {
                precondition(some.messages[row].isSame(all.messages[plain + row]))
            }
            precondition(some.contexts.count == all.contexts.count)
            return true
        }
    }

    /// Reads a few records, which are those of the whole.
    fileprivate func readsFew() {
        let few = WantedRows(level: 17, kinds: .max, since: 0, until: 0, isLogger: nil)
        var whole = BlockDecoder()
        var part = BlockDecoder()
        var (some, all) = ([[UInt8]](), [[UInt8]]())
        func line(_ record: borrowing RecordRef) -> [UInt8] {
            var line: [UInt8] = []
            JSONLine.append(record, to: &line)
            return line
        }
        let isRead = (try? each(&part, rows: few) { some.append(line($0)) }) != nil
        guard (try? each(&whole, { all.append(line($0)) })) != nil else { return }
        precondition(isRead, "a few rows of a whole block are not read")
        var next = all[...]
        for one in some {
            guard let found = next.firstIndex(of: one) else {
                preconditionFailure("a record that the whole block does not have")
            }
            next = next[(found + 1)...]
        }
    }

    /// The records stored anew, if they are within a writer's limits.
    fileprivate func again(_ effort: BlockEffort) -> BlockFile? {
        var decoder = BlockDecoder()
        guard facts.size < ArchiveLimits.stringMax else { return nil }
        let fits = bytes.withUnsafeBytes { bytes in
            let found = try? decoder.read(Slice(bytes), facts, BlockColumns(.formats))
            return (0..<(found?.formats.types.count ?? 0)).allSatisfy {
                found?.formats.types[$0].count ?? 0 < 256
            }
        }
        guard fits, var block = try? block(&decoder), var encoder = BlockEncoder(level: 1, seed: 1)
        else { return nil }
        return try? BlockFile(&block, effort, facts.codec, by: &encoder)
    }

    /// Makes all sizes and checksums right that changed bytes have made wrong.
    mutating func repair() {
        let directory = SkippableFrame.headerBytes
        let least = BlockDirectory.bytes + BlockFrame.bytes + BlockDirectory.crcBytes
        let content = word(4)
        guard bytes.count >= directory + least, content >= least,
            content <= bytes.count - directory
        else { return }
        set(SkippableFrame.magicValue, 0)
        set(BlockDirectory.magicValue, directory)
        let count = word(directory + BlockDirectory.frameCount) & 0xFFFF
        var start = directory + content
        for frame in 0..<count {
            let entry = directory + BlockDirectory.entries + frame * BlockFrame.bytes
            guard entry + BlockFrame.bytes + BlockDirectory.crcBytes <= directory + content else {
                break
            }
            var size = word(entry + BlockFrame.storedBytes)
            if frame == count - 1 || size > bytes.count - start { size = bytes.count - start }
            set(UInt32(size), entry + BlockFrame.storedBytes)
            if facts.codec == .none, size >= SkippableFrame.headerBytes {
                set(SkippableFrame.magicValue, start)
                set(UInt32(size - SkippableFrame.headerBytes), start + 4)
                set(UInt32(size - SkippableFrame.headerBytes), entry + BlockFrame.rawBytes)
            }
            set(crc(start..<start + size), entry + BlockFrame.crc)
            start += size
        }
        let end = directory + content - BlockDirectory.crcBytes
        set(crc(directory..<end), end)
    }

    private func word(_ at: Int) -> Int { bytes.withUnsafeBytes { Int(Bytes.u32($0, at)) } }

    private func crc(_ range: Range<Int>) -> UInt32 {
        bytes.withUnsafeBytes { Checksum.crc(UnsafeRawBufferPointer(rebasing: $0[range])) }
    }

    private mutating func set<Word: FixedWidthInteger>(_ word: Word, _ at: Int) {
        bytes.replaceSubrange(at..<at + MemoryLayout<Word>.size, with: Self.little(word))
    }
}
