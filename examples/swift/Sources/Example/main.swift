// A Swift host of Cordwood: logs every line of a file as one record, from several threads.
//
//   swift run -c release Example STORE INPUT_FILE [--threads N] [--repeat R] [--kept FILE]
//       [--progress]
//
// Like examples/c/main.c: lines are dealt to the threads, and each counts the lines it has kept.

import Cordwood
import Glibc

let given = Arguments(Array(CommandLine.arguments.dropFirst()))
let lines = Lines(path: given.input)
let kept = Counters(path: given.kept, count: given.threads)

/// One thread's lines. Stops at a refused record, so that the counter counts a prefix.
@Sendable func writeLines(
    _ log: Logger, first: Int, lines: Lines, given: Arguments, kept: Counters
) {
    for _ in 0..<given.repeats {
        for index in stride(from: first, to: lines.ranges.count, by: given.threads) {
            guard write(log, lines[index], number: index + 1) == 0 else { return }
            kept.words[first] += 1
        }
    }
}

/// One line in four carries its number, another one in four is interpolated. Swift's strings are
/// UTF-8, so a line that is not UTF-8 is written as bytes.
@Sendable func write(_ log: Logger, _ line: UnsafeRawBufferPointer, number: Int) -> Int32 {
    if number.isMultiple(of: 4), let text = String(validating: line, as: UTF8.self) {
        return log.info(text, fields: ["line": number])
    }
    if number % 4 == 2 { return log.info("\(utf8: line)") }
    return log.write(.info, bytes: line)
}

func nowNanoseconds() -> UInt64 {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    return UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
}

/// A running count, until the program ends.
@Sendable func showProgress(_ kept: Counters) {
    while true {
        say("\r\(kept.total)")
        usleep(200_000)
    }
}

/// Starts the threads and waits for them.
func runAll(_ log: Logger) {
    if given.progress { pthread_detach(startThread { [kept] in showProgress(kept) }) }
    let bodies = (0..<given.threads).map { first in
        { @Sendable [lines, given, kept] in
            writeLines(log, first: first, lines: lines, given: given, kept: kept)
        }
    }
    let threads = bodies.map(startThread)
    for thread in threads {
        pthread_join(thread, nil)
    }
}

final class Body: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
}

func startThread(_ run: @escaping @Sendable () -> Void) -> pthread_t {
    var thread = pthread_t()
    let body = Unmanaged.passRetained(Body(run)).toOpaque()
    let failed = pthread_create(
        &thread, nil,
        { body in
            Unmanaged<Body>.fromOpaque(body!).takeRetainedValue().run()
            return nil
        }, body)
    guard failed == 0 else { fail("thread: cannot be started") }
    return thread
}

do {
    let engine = try Engine(directory: given.store)
    let log = engine.logger("demo.swift")
    let begin = nowNanoseconds()
    runAll(log)
    let elapsed = nowNanoseconds() - begin
    try engine.close()

    // The time of one call, as its thread sees it.
    let total = kept.total
    let perRecord = total == 0 ? 0 : Double(elapsed) * Double(given.threads) / Double(total)
    let rounded = (perRecord * 10).rounded() / 10
    print("{\"host\":\"swift\",\"kept\":\(total),\"ns_per_record\":\(rounded)}")
    exit(total == UInt64(lines.ranges.count * given.repeats) ? 0 : 1)
} catch {
    fail("\(error)")
}
