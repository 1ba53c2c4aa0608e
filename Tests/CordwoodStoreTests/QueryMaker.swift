// Seeded random queries and records for them: words, names and values that often match, and a few
// that never do.

import CordwoodCore
import CordwoodTestSupport
import XCTest

@testable import CordwoodStore

struct QueryMaker {
    var random: SplitMix

    static let words = ["order", "anna", "time", "out", "true", "7", "zz", "=", "e", "42", "ba"]
    static let keys = [
        "order", "user", "price", "ok", "level", "file", "odd key", "exception.type",
    ]
    static let loggers = ["app", "app.db", "app.db.pool", "app.dbx", "noise", ""]
    /// Names other than the keys.
    static let names =
        QueryColumn.allCases.map(\.rawValue) + ["host.name", "service.name", "nothing"]

    mutating func pick<T>(_ all: [T]) -> T { all[random.below(all.count)] }

    mutating func node(depth: Int = 3) -> QueryNode {
        if depth > 0, random.chance(2) {
            let parts = (0..<(2 + random.below(2))).map { _ in node(depth: depth - 1) }
            switch random.below(5) {
            case 0: return .any(parts)
            case 1: return .not(parts[0])
            default: return .all(parts)
            }
        }
        return leaf()
    }

    private mutating func leaf() -> QueryNode {
        let orders: [QueryOperator] = [.equal, .unequal, .less, .atMost, .more, .atLeast]
        switch random.below(12) {
        case 0, 1: return .text(pattern(isText: true))
        case 2: return .text(.expression(expression()))
        case 3:
            let level = UInt8(random.below(25))
            return .compare(.level, pick(orders), .level(level))
        case 4:
            return .compare(.kind, pick([.equal, .unequal]), .kind(UInt8(random.below(8))))
        case 5:
            let time = UInt64(1_000 + random.below(400_000))
            return .compare(.time, pick(orders), .time(time))
        case 6:
            let logger = Array(pick(QueryMaker.loggers).utf8)
            let isLike = random.chance(5)
            if isLike { return .compare(.logger, .like, .text(.expression(expression()))) }
            let operation: QueryOperator = pick([.below, .below, .equal, .unequal])
            return .compare(.logger, operation, .text(logger))
        case 7:
            if random.chance(4) {
                return .compare(.message, .like, .text(.expression(expression())))
            }
            let operation: QueryOperator = pick([.contains, .contains, .equal, .unequal])
            return .compare(.message, operation, .text(pattern(isText: false)))
        default: return general()
        }
    }

    private mutating func general() -> QueryNode {
        let text = random.chance(3) ? pick(QueryMaker.names) : pick(QueryMaker.keys)
        let key = Array(text.utf8)
        var name = QueryName(key)
        if random.chance(4) { name = .field(key) }
        var column: QueryColumn?
        if case .any(_, let found) = name { column = found }
        // `level` alone would mean the level: use the field.
        if case .level = name { name = .field(key) }
        switch random.below(8) {
        case 0: return .compare(name, .equal, .anything)
        case 1: return .compare(name, .written, .text(word()))
        case 2: return .compare(name, .like, .text(.expression(expression())))
        default: break
        }
        var operation: QueryOperator =
            pick([.equal, .equal, .unequal, .less, .atMost, .more, .atLeast])
        if random.chance(3), let has = column?.isOperator { operation = has }
        let isFolded = column?.isFolded ?? false && !operation.isOrder
        if column?.isText ?? false || random.chance(3) {
            let bytes = word()
            let mayFold = !operation.isOrder
            return .compare(
                name, operation,
                .text(.bytes(bytes, ignoresCase: isFolded || mayFold && random.chance(3))))
        }
        return .compare(name, operation, value())
    }

    private mutating func value() -> QueryValue {
        switch random.below(5) {
        case 0: .number(pick([.int(7), .int(-3), .int(42), .uint(.max), .int(0)]))
        case 1: .number(pick([.double(7.5), .double(1e300), .double(-0.25), .double(7)]))
        case 2: .bool(random.chance(2))
        default: .text(word())
        }
    }

    private mutating func word() -> [UInt8] {
        if random.chance(12) { return random.bytes(random.below(4)) }
        var made = pick(QueryMaker.words)
        if random.chance(4) { made += pick([" ", "\"", "\\", "-", "(", "é", "\n"]) }
        if random.chance(4) { made += pick(QueryMaker.words) }
        return Array(made.utf8)
    }

    private mutating func pattern(isText: Bool) -> TextPattern {
        var bytes = word()
        if isText, bytes.isEmpty { bytes = [0x61] }
        return .bytes(bytes, ignoresCase: random.chance(4))
    }

    private mutating func expression() -> SearchExpression {
        let text = pick(["o[a-z]d", "^order", "(an)+a", "a/b", "7$", "=4?2", "\\.t", ".", "é|out"])
        return try! SearchExpression(text, ignoresCase: random.chance(4))
    }
}

/// Records of one thread or several processes in order of time, some with a format instead of text.
final class AskedRecords: RecordSource {
    private var maker: QueryMaker
    private var left: Int
    private var threads: [ThreadInfo] = []
    private var time: UInt64 = 1_000
    private var memory: [UnsafeMutableRawBufferPointer] = []
    private var contexts: [[UInt8]] = []

    var createdMonotonicNs: UInt64 { 0 }
    var process: CordwoodStore.ProcessInfo? { threads.first?.process }

    init(count: Int, processes: Int, random: SplitMix) {
        maker = QueryMaker(random: random)
        left = count
        for index in 0..<processes {
            let process = ProcessInfo(
                laneID: LaneID(high: 7, low: UInt64(index)), bootID: LaneID(high: 1, low: 1),
                processID: 7 + UInt32(index), name: ["shop", "42"][index % 2],
                createdRealtime: 1_000, createdMonotonic: 1_000,
                resource: index == 0 ? [] : [("host.name", "dev-7"), ("order", "out")])
            threads.append(
                ThreadInfo(process: process, serial: 1, threadID: 42, name: "worker"))
        }
        contexts = (0..<3).map { _ in fields(2) }
    }

    deinit { for buffer in memory { buffer.deallocate() } }

    @safe private func view(_ bytes: [UInt8]) -> UnsafeRawBufferPointer {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 8)
        buffer.copyBytes(from: bytes)
        memory.append(buffer)
        return UnsafeRawBufferPointer(buffer)
    }

    private func text() -> String {
        (0..<(1 + maker.random.below(3))).map { _ in maker.pick(QueryMaker.words) }
            .joined(separator: maker.pick([" ", "", "/"]))
    }

    private func fields(_ most: Int) -> [UInt8] {
        let made = (0..<maker.random.below(most + 1)).map { _ -> (String, TestField) in
            let key = maker.pick(QueryMaker.keys)
            switch maker.random.below(6) {
            case 0: return (key, .int(maker.pick([7, -3, 42, 0])))
            case 1: return (key, .uint(maker.pick([7, .max, 42])))
            case 2: return (key, .double(maker.pick([7.5, 7, .nan, -0.25, .infinity])))
            case 3: return (key, .bool(maker.random.chance(2)))
            default: return (key, .string(text()))
            }
        }
        return fieldBytes(made)
    }

    func next(_ record: inout RecordRef) throws(ReadProblem) -> Bool {
        guard left > 0 else { return false }
        left -= 1
        time += UInt64(maker.random.below(1_000))
        record = RecordRef(thread: maker.pick(threads))
        record.monotonicNs = time
        record.writtenNs = time
        record.timeNs = time
        record.sequence = UInt64(left)
        record.level = UInt8(maker.random.below(25))
        record.kind = [0, 0, 0, 2, 3, 4][maker.random.below(6)]
        record.logger = view(Array(maker.pick(QueryMaker.loggers).utf8))
        if maker.random.chance(2) { record.context = view(maker.pick(contexts)) }
        var sections: [UInt8] = []
        if maker.random.chance(2) { sections += section(2, fields(3)) }
        if maker.random.chance(6) {
            let (type, message) = (Array("zz.out".utf8), Array(text().utf8))
            let sizes = [type.count, message.count, 0].flatMap { little(UInt32($0)) }
            sections += section(7, sizes + type + message)
        }
        if maker.random.chance(4) {
            record.file = view(Array("src/order.c".utf8))
            record.line = 42
        }
        record.sections = view(sections)
        if maker.random.chance(2) {
            record.message = view(Array(text().utf8))
            record.originalLength = UInt64(record.message.count)
            return true
        }
        record.isDeferred = true
        record.style = 0
        let name = Array(text().utf8)
        switch maker.random.below(3) {
        case 0: deferred(&record, "order %d", [1], little(Int32(maker.pick([7, 42, -3]))))
        case 1: deferred(&record, "\(text()) %s", [6], little(UInt32(name.count)) + name)
        default: deferred(&record, "zz of time", [], [])
        }
        return true
    }

    private func deferred(
        _ record: inout RecordRef, _ format: String, _ types: [UInt8], _ arguments: [UInt8]
    ) {
        record.format = view(Array(format.utf8))
        record.argumentTypes = view(types)
        record.arguments = view(arguments)
    }
}
