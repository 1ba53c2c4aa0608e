// One record, seen from a Swift host: HotSwift STORE MODE N WORKLOAD
//
//   bursts N    mean of each burst of 1,000 calls, one a millisecond, like Benchmarks/hot.c
//   count N     N / 4 calls, then N, for callgrind, which counts in write_WORKLOAD (with _ for -).
//               Strip the program of its debug information first (strip -g): valgrind cannot read
//               it.
//   costs N     allocations of the writing thread in N bursts of 100
//
// w1 a constant text; w2 an Int and a Double interpolated; w3 a String of 40 bytes and an Int; w4 a
// ready String of 100 bytes; fields w2 with two fields; context w2 in a task's context; off a debug
// call below the threshold; swiftlog-cordwood swift-log's front end over our handler and
// swiftlog-stream over its own StreamLogHandler, to the file STORE: both the message of w2.
//
// swift build -c release --package-path Benchmarks/swift; the last line is a JSON object. Records
// are read back and counted afterwards; messages differ from call to call.

import Cordwood
import CordwoodLogging
import Counting
import Glibc
import Logging

struct Bench: Sendable {
    let log: Cordwood.Logger
    let front: Logging.Logger
    let prices: [Double]
    let names: [String]
    let texts: [String]

    init(engine: Engine?) {
        log = engine?.logger("bench.hot") ?? Cordwood.Logger.none
        front = Logging.Logger(label: "bench.hot") { label in
            if let engine { return CordwoodLogHandler(label: label, engine: engine) }
            return StreamLogHandler.standardOutput(label: label, metadataProvider: nil)
        }
        var state: UInt64 = 88_172_645_463_325_252
        func text(_ count: Int) -> String {
            String(
                decoding: (0..<count).map { _ -> UInt8 in
                    state ^= state << 13
                    state ^= state >> 7
                    state ^= state << 17
                    return UInt8(32 + state % 95)
                }, as: UTF8.self)
        }
        texts = (0..<64).map { _ in text(100) }
        names = (0..<64).map { _ in text(40) }
        prices = (0..<64).map { Double($0) * 1.25 + 32 }
    }
}

extension Cordwood.Logger {
    static var none: Cordwood.Logger {
        guard let engine = try? Engine(directory: ":memory:") else { fail("no engine in memory") }
        defer { _ = try? engine.close() }
        return engine.logger("none")
    }
}

nonisolated(unsafe) var shared: Bench!

// Not inlined and with names of C: callgrind counts from here.
@_cdecl("write_w1") public func writeW1(_ count: Int) {
    let bench = shared!
    for _ in 0..<count { bench.log.info("a record of constant text") }
}
@_cdecl("write_w2") public func writeW2(_ count: Int) {
    let bench = shared!
    for i in 0..<count { bench.log.info("order \(i) at \(bench.prices[i & 63])") }
}
@_cdecl("write_w3") public func writeW3(_ count: Int) {
    let bench = shared!
    for i in 0..<count { bench.log.info("user \(bench.names[i & 63]) did \(i)") }
}
@_cdecl("write_w4") public func writeW4(_ count: Int) {
    let bench = shared!
    for i in 0..<count { bench.log.info(bench.texts[i & 63]) }
}
@_cdecl("write_fields") public func writeFields(_ count: Int) {
    let bench = shared!
    for i in 0..<count {
        bench.log.info(
            "order \(i) at \(bench.prices[i & 63])", fields: ["user": bench.names[i & 63], "n": i])
    }
}
@_cdecl("write_context") public func writeContext(_ count: Int) {
    let bench = shared!
    Context.with(["request": 812, "user": bench.names[0]]) {
        for i in 0..<count { bench.log.info("order \(i) at \(bench.prices[i & 63])") }
    }
}
@_cdecl("write_off") public func writeOff(_ count: Int) {
    let bench = shared!
    for i in 0..<count { bench.log.debug("order \(i) at \(bench.prices[i & 63])") }
}
@_cdecl("write_swiftlog_cordwood") public func writeFront(_ count: Int) {
    let bench = shared!
    for i in 0..<count { bench.front.info("order \(i) at \(bench.prices[i & 63])") }
}
@_cdecl("write_swiftlog_stream") public func writeStream(_ count: Int) {
    let bench = shared!
    for i in 0..<count { bench.front.info("order \(i) at \(bench.prices[i & 63])") }
}

func nowNs() -> UInt64 {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    return UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
}

func fail(_ why: String) -> Never {
    var text = "hot: \(why)\n"
    text.withUTF8 { _ = write(2, $0.baseAddress, $0.count) }
    exit(1)
}

/// Means of bursts, ns a record. Sleeps between them, as a host waits for its next request.
func bursts(_ run: (Int) -> Void, _ count: Int) -> [Double] {
    var means = [Double](repeating: 0, count: count)
    run(10_000)
    var next = nowNs()
    for index in 0..<count {
        let begin = nowNs()
        run(1_000)
        means[index] = Double(nowNs() - begin) / 1_000
        next += 1_000_000
        var until = timespec(
            tv_sec: Int(next / 1_000_000_000), tv_nsec: Int(next % 1_000_000_000))
        while clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nil) == EINTR {}
    }
    return means
}

func rounded(_ value: Double) -> Double { (value * 10).rounded() / 10 }

/// Counts records of the store, or lines of the file.
func countRecords(_ path: String, isFile: Bool) throws -> Int {
    if isFile {
        guard let file = fopen(path, "r") else { return 0 }
        defer { fclose(file) }
        var (lines, buffer) = (0, [UInt8](repeating: 0, count: 1 << 16))
        while case let got = fread(&buffer, 1, buffer.count, file), got > 0 {
            for byte in buffer[..<got] where byte == 10 { lines += 1 }
        }
        return lines
    }
    let reader = try StoreReader(paths: [path], options: ReaderOptions())
    var count = 0
    while let record = try reader.advance() {
        if record.logger.elementsEqual("bench.hot".utf8) { count += 1 }
    }
    return count
}

let words = CommandLine.arguments
guard words.count == 5, let count = Int(words[3]),
    let run = counting_find(words[4].map { $0 == "-" ? "_" : String($0) }.joined())
else { exit(2) }
let (path, mode, name) = (words[1], words[2], words[4])
let isStream = name == "swiftlog-stream"
let out = dup(1)
if isStream {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    guard file >= 0, dup2(file, 1) == 1 else { fail("no file") }
}
let engine = isStream ? nil : try Engine(directory: path)
shared = Bench(engine: engine)

func say(_ text: String) {
    fflush(nil)
    var text = text + "\n"
    text.withUTF8 { _ = write(out, $0.baseAddress, $0.count) }
}

switch mode {
case "count":
    run(count / 4)
    run(count)
    try engine?.close()
case "costs":
    run(100_000)  // until chunks have their full size
    let before = counting_allocations()
    for _ in 0..<count { run(100) }
    let allocated = counting_allocations() - before
    try engine?.close()
    say("{\"records\":\(count * 100),\"allocations\":\(allocated)}")
default:
    let means = bursts(run, count)
    try engine?.close()
    fflush(nil)
    let written = name == "off" ? 0 : count * 1_000 + 10_000
    let found = try countRecords(path, isFile: isStream)
    guard found == written else { fail("\(found) records read, \(written) written") }
    let sorted = means.sorted()
    func quantile(_ part: Double) -> Double {
        rounded(sorted[min(Int(part * Double(count)), count - 1)])
    }
    let mean = rounded(means.reduce(0, +) / Double(count))
    say(
        "{\"\(name)\":{\"mean\":\(mean),\"p50\":\(quantile(0.5)),\"p99\":\(quantile(0.99)),"
            + "\"p99.9\":\(quantile(0.999)),\"max\":\(rounded(sorted[count - 1])),"
            + "\"records\":\(found)}}")
}
