// Blocks that several tests use: deferred records with arguments of all types, and log lines that
// resemble one another.

import CordwoodCore
import CordwoodTestSupport

@testable import CordwoodStore

extension Block {
    init(_ records: [Staged]) {
        self.init(seed: 1, target: 64 << 20)
        let source = FakeSource(records)
        while let record = try? source.advance() { add(record) }
    }

    mutating func add(_ record: RecordRef) {
        var copy = record
        add(&copy)
    }
}

/// What a test compares of a deferred record.
struct DeferredRecord: Equatable {
    var time: UInt64
    var line: UInt32
    var format: [UInt8]
    var types: [UInt8]
    var arguments: [UInt8]

    init(_ record: borrowing RecordRef) {
        time = record.timeNs
        line = record.line
        format = Array(record.format)
        types = Array(record.argumentTypes)
        arguments = Array(record.arguments)
    }
}

/// Deferred records of several formats with arguments of all types.
struct DeferredBlock: ~Copyable {
    var block: Block
    private(set) var records: [DeferredRecord] = []

    /// `changed`: a record with another first argument, if that is a number.
    init(seed: UInt64, count: Int, changed: Int? = nil) {
        var random = SplitMix(seed)
        block = Block(seed: seed, target: 1 << 20)
        let thread = RecordMaker(seed: seed).threads[0]
        let formats = (0..<5).map { _ in (0..<random.below(9)).map { _ in 1 + random.below(13) } }
        var time: UInt64 = 1 << 40
        for index in 0..<count {
            let number = random.below(formats.count)
            let types = formats[number].map { UInt8($0) }
            var arguments: [UInt8] = []
            for type in types { arguments += Self.argument(type, index, &random) }
            if index == changed, let type = types.first, !ArgumentForm.isString(type) {
                arguments[0] ^= 1
            }
            let format = Array("format \(number) %d".utf8)
            var record = RecordRef(thread: thread)
            time &+= UInt64(random.below(4_000))
            record.monotonicNs = time
            record.writtenNs = time &+ 5
            record.timeNs = random.chance(10) ? time : record.writtenNs
            record.sequence = UInt64(index)
            record.level = 9
            record.isDeferred = true
            record.style = 0
            record.line = UInt32(10 * number)
            format.withUnsafeBytes { format in
                types.withUnsafeBytes { types in
                    arguments.withUnsafeBytes { arguments in
                        record.format = format
                        record.argumentTypes = types
                        record.arguments = arguments
                        block.add(record)
                        records.append(DeferredRecord(record))
                    }
                }
            }
        }
    }

    private static func argument(_ type: UInt8, _ index: Int, _ random: inout SplitMix) -> [UInt8] {
        switch type {
        case ArgumentType.text, ArgumentType.wide:
            if random.chance(9) { return little(LengthWord.null) }
            let units = random.below(12)
            let cut = random.chance(7) ? LengthWord.cut : 0
            let size = type == ArgumentType.wide ? 4 * units : units
            return little(UInt32(units) | cut)
                + (random.chance(2) ? Array("customer-\(index % 9)".utf8.prefix(size)) : [])
                .padded(to: size)
        case ArgumentType.extended: return random.bytes(16)
        case ArgumentType.double: return little((Double(random.below(9_999)) / 100).bitPattern)
        case ArgumentType.float: return little(Float(random.below(99)).bitPattern)
        case ArgumentType.bool: return [UInt8(random.below(2))]
        case ArgumentType.char: return random.bytes(1)
        case ArgumentType.int, ArgumentType.error: return little(Int32(random.below(100)) - 50)
        case ArgumentType.uint: return little(UInt32(truncatingIfNeeded: random.next()))
        default: return little(random.chance(3) ? random.next() : UInt64(index))
        }
    }
}

extension [UInt8] {
    fileprivate func padded(to size: Int) -> [UInt8] {
        self + Array(repeating: 0x2E, count: Swift.max(0, size - count))
    }
}

extension Staged {
    /// Lines of a log.
    static func texts(_ count: Int) -> [Staged] {
        var random = SplitMix(8)
        let maker = RecordMaker(seed: 8)
        return (0..<count).map { index -> Staged in
            var staged = Staged(thread: maker.threads[0])
            staged.model = ModelRecord(RecordRef(thread: staged.thread))
            let seconds = String(index % 60)
            let text =
                "2024-01-31 12:00:\(seconds.count == 1 ? "0" : "")\(seconds),\(100 + index % 900) "
                + "INFO [worker-\(index % 7)] GET /items/\(random.below(90)) \"agent \(index % 3)\""
                + " took \(random.below(1_000)).5 ms"
            staged.model.message = Array(text.utf8)
            staged.model.originalLength = UInt64(text.utf8.count)
            return staged
        }
    }
}
