// Hostile texts for the tool beside this file: records by seed, in runs of one kind, of which a
// block's columns may get something wrong. Any amount.

import CordwoodCore

@testable import CordwoodStore

/// A record that was put into a block, to be compared with the one that comes out.
struct TextRecord {
    var time: UInt64 = 0
    var sequence: UInt64 = 0
    var level: UInt8 = 9
    var logger = 0
    var message: [UInt8] = []
    var sections: [UInt8] = []
    var context: [UInt8] = []
    /// Of a deferred record: its text is the message.
    var isDeferred = false
}

struct TextMaker {
    static let largest = 8 << 20
    /// An 8 MiB record comes after about so many bytes.
    static let largeEvery = 64 << 20
    static let loggers = (0..<7).map { Array("app.part\($0)".utf8) }

    private var random: SplitMix
    private var left = 0
    private var kind = 0
    private var counter: UInt64 = 0
    private var last: [UInt8] = []
    private var untilLarge = 1 << 20
    private var dress = 0
    private var now = TextRecord()

    init(seed: UInt64) { random = SplitMix(seed) }

    mutating func next() -> TextRecord {
        if left == 0 {
            left = 1 + random.below([3, 40, 800, 3_000][random.below(4)])
            kind = random.below(13)
            dress = random.below(6)
            counter = Self.limits[random.below(Self.limits.count)] &- UInt64(random.below(50))
            if kind == 12 { left = min(left, 3) }
        }
        left -= 1
        now.time &+= UInt64(random.below(4) * random.below(5_000))
        now.sequence &+= 1
        now.level = dress == 0 ? UInt8(random.below(25)) : 9
        now.logger = dress < 2 ? random.below(Self.loggers.count) : 0
        (now.sections, now.context, now.isDeferred) = ([], [], false)
        now.message = message()
        if untilLarge <= 0 {
            untilLarge = Self.largeEvery
            now.message = large()
        }
        untilLarge -= now.message.count
        // A text is also a field, of the record or of its context, or an argument.
        let short = Array(now.message.prefix(300))
        if dress == 3, random.chance(3) { now.sections = section(2, fields(short)) }
        if dress == 4, random.chance(3) { now.context = fields(Array(short.prefix(9))) }
        now.isDeferred = dress == 5 && now.message.count < 1 << 16
        last = short
        return now
    }

    private static let limits: [UInt64] = [
        0, 9, 99, 127, 255, 65_535, 1 << 31, 1 << 32, 1 << 53, 1 << 63, .max,
        10_000_000_000_000_000_000, 999_999_999_999_999_999,
    ]

    private mutating func message() -> [UInt8] {
        switch kind {
        case 0: return random.bytes(random.below(200))
        case 1: return random.chance(3) ? [] : service() + [0x0D]
        case 2: return text(random.pick(["", "\0", "\0\0", "a\0b", "\u{1}\u{7f}"]), 5)
        case 3: return invalid()
        case 4: return Array(json(0).utf8)
        case 5: return Array(number().utf8)
        case 6:
            counter &+= 1
            return Array("tick \(counter) of \(random.chance(40) ? number() : "7")".utf8)
        case 7: return Array("\(date()) \(number()): \(random.pick(words))".utf8)
        case 8: return text("two\nlines\r\n", random.below(4))
        case 9: return mutated()
        case 10: return Array(repeating: random.pick([0x61, 0x30, 0xFF, 0x0A]), count: 70)
        case 12: return large(10_000 + random.below(400_000))
        default: return service()
        }
    }

    private mutating func service() -> [UInt8] {
        let id = String(random.next() & 0xFFFF_FFFF, radix: 16)
        return Array(
            "\(date()) INFO [10.0.\(random.below(4)).\(random.below(255))] GET /api/\(id) -> "
                .utf8) + Array("\(200 + random.below(5)) in \(random.below(99_999)) us".utf8)
    }

    private let words = ["order", "été", "", "a b", "null", "%s", "{}", "\\", "\"", "٣٤", "１２"]

    /// Few of these are what they look like.
    private mutating func number() -> String {
        let n = random.chance(2) ? random.next() >> UInt64(random.below(64)) : counter
        let zeros = String(repeating: "0", count: random.below(22))
        switch random.below(14) {
        case 0: return "\(zeros)\(n)"
        case 1: return "-\(n)"
        case 2: return "-0\(n)"
        case 3: return "+\(n)"
        case 4: return "\(n)\(n)\(n)"
        case 5: return String(n, radix: 16)
        case 6: return "0x" + String(n, radix: 16, uppercase: true)
        case 7: return "\(n % 1_000).\(n % 97)"
        case 8: return "-\(n % 10).\(zeros)\(n)"
        case 9: return "\(n)."
        case 10: return ".\(n)"
        case 11: return "\(Double(n) / 7)"
        case 12: return random.pick(["-0", "-0.0", "00", "1e400", "NaN", "inf", "-", "1.2.3", ""])
        default: return "\(n)"
        }
    }

    private mutating func date() -> String {
        func two(_ n: Int) -> String { n < 10 ? "0\(n)" : "\(n)" }
        let day = "\(random.pick([0, 1969, 2026, 9999, 10_000]))-\(two(random.below(14)))-"
        let clock = "\(two(random.below(26))):\(two(random.below(62))):\(two(random.below(63)))"
        let months = ["Jan", "feb", "Mar", "Foo"]
        switch random.below(4) {
        case 0: return day + two(random.below(34)) + "T" + clock + "." + number()
        case 1: return "2026-02-2\(random.below(10)) \(clock),\(random.below(999))"
        case 2: return "\(random.pick(months)) \(random.below(33)) \(clock)"
        default: return "2026-11-\(two(1 + random.below(30)))T\(clock)"
        }
    }

    /// JSON, sometimes torn.
    private mutating func json(_ depth: Int) -> String {
        switch random.below(depth < 3 ? 8 : 4) {
        case 0: return number()
        case 1: return "\"\(random.pick(words))\\u00\(random.below(99))\""
        case 2: return random.pick(["true", "nul", "{", "\"", "[}"])
        case 3: return "\"\(date())\""
        case 4, 5:
            let parts = (0..<random.below(4)).map { _ in json(depth + 1) }
            return "[" + parts.joined(separator: ", ") + "]"
        default:
            let parts = (0..<random.below(5)).map { _ in
                "\"\(random.pick(words))\": \(json(depth + 1))"
            }
            return "{" + parts.joined(separator: ",") + "}"
        }
    }

    private mutating func invalid() -> [UInt8] {
        let parts: [[UInt8]] = [
            [0xC3], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xFF, 0xFE], [0xC0, 0x80],
            [0xE4, 0xB8, 0x96], [0x80], Array("id=".utf8), Array("7 ".utf8),
        ]
        return (0..<random.below(12)).flatMap { _ in random.pick(parts) }
    }

    private func text(_ part: String, _ times: Int) -> [UInt8] {
        Array(String(repeating: part, count: times).utf8)
    }

    private mutating func mutated() -> [UInt8] {
        var bytes = last.isEmpty ? service() : last
        let at = random.below(bytes.count)
        switch random.below(4) {
        case 0: bytes[at] ^= 1 << UInt8(random.below(8))
        case 1: bytes.remove(at: at)
        case 2: bytes.insert(UInt8(random.below(256)), at: at)
        default: bytes += bytes.prefix(20)
        }
        return bytes
    }

    private mutating func large(_ size: Int = largest) -> [UInt8] {
        switch random.below(3) {
        case 0: return random.bytes(size)
        case 1: return Array(repeating: UInt8(random.below(256)), count: size)
        default:
            var bytes: [UInt8] = []
            while bytes.count < size { bytes += service() + Array(json(0).utf8) }
            return Array(bytes.prefix(size))
        }
    }

    /// FORMAT §8.2.
    private mutating func fields(_ text: [UInt8]) -> [UInt8] {
        let string = BlockFile.little(UInt32(text.count)) + text
        let number = BlockFile.little((Double(text.count) / 8).bitPattern)
        return [2, 0, 5, 0, 1, 0, 0x74] + string + [3, 0, 1, 0, 0x64] + number
    }

    private func section(_ kind: UInt8, _ body: [UInt8]) -> [UInt8] {
        [kind, 0, 0, 0] + BlockFile.little(UInt32(body.count)) + body
    }
}

/// Seeded numbers: splitmix64, as in CordwoodTestSupport, which needs XCTest.
private struct SplitMix {
    private var state: UInt64
    init(_ seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
    mutating func below(_ limit: Int) -> Int { Int(next() % UInt64(limit)) }
    mutating func chance(_ one: Int) -> Bool { next() % UInt64(one) == 0 }
    mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: next() >> 24) }
    }
    mutating func pick<Element>(_ from: [Element]) -> Element { from[below(from.count)] }
}
