import Cordwood
import Glibc

let engine = try Engine(directory: CommandLine.arguments[1])
let log = engine.logger("bench.hot")
let prices = (0..<64).map { Double($0) * 1.25 + 0.5 }
let names = (0..<64).map { String(repeating: "n", count: 38) + "\($0 + 10)" }
let texts = (0..<64).map { String(repeating: "t", count: 98) + "\($0 + 10)" }

@inline(never) func write_w1(_ log: Logger, _ count: Int) {
    for _ in 0..<count { log.info("a record of constant text") }
}
@inline(never) func write_w2(_ log: Logger, _ prices: [Double], _ count: Int) {
    for i in 0..<count { log.info("order \(i) at \(prices[i & 63])") }
}
@inline(never) func write_w3(_ log: Logger, _ names: [String], _ count: Int) {
    for i in 0..<count { log.info("user \(names[i & 63]) did \(i)") }
}
@inline(never) func write_w4(_ log: Logger, _ texts: [String], _ count: Int) {
    for i in 0..<count { log.info(texts[i & 63]) }
}
@inline(never) func write_off(_ log: Logger, _ prices: [Double], _ count: Int) {
    for i in 0..<count { log.debug("order \(i) at \(prices[i & 63])") }
}
func now() -> UInt64 { var t = timespec(); clock_gettime(CLOCK_MONOTONIC, &t); return UInt64(t.tv_sec) * 1_000_000_000 + UInt64(t.tv_nsec) }
func run(_ w: String, _ n: Int) {
    switch w {
    case "w1": write_w1(log, n)
    case "w2": write_w2(log, prices, n)
    case "w3": write_w3(log, names, n)
    case "w4": write_w4(log, texts, n)
    default: write_off(log, prices, n)
    }
}
let n = Int(CommandLine.arguments[3])!
if CommandLine.arguments.count > 4 {
    run(CommandLine.arguments[2], n)
} else {
for w in ["w1", "w2", "w3", "w4", "off"] {
    run(w, 10000)
    var best = 1e9, sum = 0.0
    for _ in 0..<n {
        let a = now()
        run(w, 1000)
        let t = Double(now() - a) / 1000
        best = min(best, t); sum += t
        usleep(1000)
    }
    print(w, best, sum / Double(n))
}
}
print("status", log.info("x \(1)"))
try engine.close()
