// Like writer.c, with interpolated messages: eight threads write at full rate until it is killed. A
// shared mapping, which outlives the process, counts what each thread was told is kept.
//
//     Writer STORE KEPT_FILE SEGMENT_BYTES SEED [HOW RECORDS]  HOW: how main dies by itself
//     Writer STORE values [close]  all kinds of arguments once, for the oracle
//     Writer STORE places          one call as 66,550 places, more than a process has
//
// Threads 1, 5: a number, a number, a string. 2, 6: one string. 3, 7: the same with fields.
// 0: in a task's context. 4: by swift-log.

import Cordwood
import Glibc

let threads = 8, longest = 3_000
let letters = (0..<longest + 26).map { UInt8(ascii: "a") + UInt8($0 % 26) }

func fail(_ why: String) -> Never {
    var text = "writer: \(why)\n"
    text.withUTF8 { _ = write(2, $0.baseAddress, $0.count) }
    exit(1)
}

final class Job: Sendable {
    let log: Logger
    let front: FrontEnd
    let thread: Int
    let seed: UInt64
    nonisolated(unsafe) let kept: UnsafeMutablePointer<UInt64>

    init(_ engine: Engine, _ thread: Int, _ seed: UInt64, _ kept: UnsafeMutablePointer<UInt64>) {
        log = engine.logger("crash")
        front = FrontEnd("crash", engine)
        self.thread = thread
        self.seed = seed
        self.kept = kept
    }

    private func fillerLength(_ number: UInt64) -> Int {
        if number % 997 == 996 { return longest }
        return Int(20 + (number &* 7_919 &+ UInt64(thread) &* 104_729 &+ seed) % 180)
    }

    private func filler(_ number: UInt64) -> Substring {
        // A view of one string: nothing is allocated.
        let start = text.index(text.startIndex, offsetBy: Int(number % 26))
        return text[start..<text.index(start, offsetBy: fillerLength(number))]
    }
    private let text = String(decoding: letters, as: UTF8.self)

    func run() {
        if thread == 4 {
            loop { front.info("t\(thread) n\($0) \(filler($0))", number: $0) }
            return
        }
        switch thread % 4 {
        case 1: loop { log.info("t\(thread) n\($0) \(filler($0))") }
        case 2: loop { log.info("t\(thread) n\($0) \(filler($0))" as String) }
        case 3: loop { log.info("t\(thread) n\($0) \(filler($0))", fields: ["number": $0]) }
        default:
            Context.with(["thread": thread]) {
                loop { log.info("t\(thread) n\($0) \(filler($0))") }
            }
        }
    }

    private func loop(_ write: (UInt64) -> Int32) {
        var number: UInt64 = 0
        while true {
            let status = write(number)
            // CW_E_FULL: see writer.c. A refused record is not kept; this thread ends.
            if status == -11 { return }
            guard status == 0 else { fail("status \(status)") }
            number += 1
            kept[thread * 8] = number
        }
    }
}

func start(_ job: Job) -> pthread_t {
    var id = pthread_t()
    let failed = pthread_create(
        &id, nil,
        { job in
            Unmanaged<Job>.fromOpaque(job!).takeRetainedValue().run()
            return nil
        }, Unmanaged.passRetained(job).toOpaque())
    guard failed == 0 else { fail("no thread") }
    return id
}

/// Numbers and strings that a reader could misread.
func writeValues(_ log: Logger) {
    let doubles: [Double] = [
        0, -0.0, 1, 5, 0.1, 1e15, 1e16, 1e17, 1e22, 9_007_199_254_740_992, 9_007_199_254_740_994,
        1e-3, 1e-4, 1e-5, .leastNonzeroMagnitude, 123456.789, .greatestFiniteMagnitude, .infinity,
        -.infinity, .nan,
        -.nan, .signalingNaN, Double(nan: 77, signaling: false), Double(nan: 77, signaling: true),
        .leastNormalMagnitude, 1.0 / 3, 2.675,
    ]
    for value in doubles {
        log.info("\(value) \(-value) \(Float(value)) \(value as Double?)")
        log.info("\(value, format: .fixed(2)) \(value, format: .exponential(3))")
    }
    var state: UInt64 = 88_172_645_463_325_252
    for _ in 0..<5_000 {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        let double = Double(bitPattern: state)
        let float = Float(bitPattern: UInt32(truncatingIfNeeded: state))
        log.info("\(double) \(float) \(Double(state % 100_000) / 100)")
        let int = Int(bitPattern: UInt(state))
        log.info(
            "\(int) \(state) \(Int8(truncatingIfNeeded: int)) \(int, format: .hex(digits: 20))")
    }
    for text in ["", "a\0b", "日本語 👩‍👩‍👧‍👦", "{} %d", String(repeating: "ö", count: 70_000)] {
        log.info("{\(text)}|\(text.dropFirst())|\(text == "")", fields: ["text": text])
        log.error("\(text, privacy: .redacted) \([text].count)", error: CancellationError())
    }
    log.info("\(String(repeating: "z", count: 1 << 21)) cut", fields: ["a": 1])
}

/// Other digits make other places. The last cannot be registered and carry their definition.
func writePlaces(_ log: Logger) {
    for a in 0..<55 {
        for b in 0..<55 {
            for c in 0..<22 {
                let value = Double(a * b) + 1.0 / Double(c + 1)
                let status = log.info(
                    "\(value, format: .fixed(a)) \(1, format: .hex(digits: b + 1)) \(c) \("text") "
                        as LogMessage,
                    fields: c % 2 == 0 ? [:] : ["a": a])
                let other = log.info(
                    """
                    \(value, format: .fixed(a)) \(c, format: .decimal(digits: b + 1)) \
                    \(value, format: .exponential(c))
                    """)
                guard status == 0, other == 0 else { fail("places: \(status) \(other)") }
            }
        }
    }
}

let arguments = CommandLine.arguments
guard arguments.count >= 3 else { exit(2) }
if arguments[2] == "places" {
    let engine = try Engine(directory: arguments[1])
    writePlaces(engine.logger("places"))
    exit(0)
}
if arguments[2] == "values" {
    let engine = try Engine(directory: arguments[1])
    writeValues(engine.logger("values"))
    if arguments.count > 3 { try engine.close() }
    exit(0)
}
guard arguments.count >= 5, let segment = UInt64(arguments[3]), let seed = UInt64(arguments[4])
else { exit(2) }
let file = open(arguments[2], O_RDWR | O_CREAT, 0o600)
guard file >= 0, ftruncate(file, 4_096) == 0,
    let mapped = mmap(nil, 4_096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0),
    mapped != MAP_FAILED
else { fail("no counters") }
let kept = mapped.assumingMemoryBound(to: UInt64.self)

var options = EngineOptions()
options.segmentBytes = segment
let engine = try Engine(directory: arguments[1], options: options)
let ids = (0..<threads).map { start(Job(engine, $0, seed, kept)) }

/// Traps, and an end without close, while the others log.
func die(_ how: String, _ empty: [Int], _ none: Int?) {
    switch how {
    case "index": print(empty[1])
    case "unwrap": print(none!)
    case "add": print(Int(arguments[4])! + Int.max)
    case "fatal": fatalError("as asked")
    case "exit": exit(3)
    default: fail("no death \(how)")
    }
}
if arguments.count > 6, let records = UInt64(arguments[6]) {
    var turns = 600_000  // two minutes
    while (0..<threads).reduce(0, { $0 + kept[$1 * 8] }) < records, turns > 0 {
        usleep(200)
        turns -= 1
    }
    if turns == 0 { exit(4) }
    die(arguments[5], [], Int(arguments[5]))
}
pthread_join(ids[0], nil)
