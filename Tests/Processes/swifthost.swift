// A Swift program with its own runtime that loads the shared library, which contains another:
// threads use generic types, existentials and reference counts of both at the same time.

import Glibc

typealias Run =
    @convention(c) (
        UnsafePointer<CChar>, UnsafePointer<CChar>, Int, UnsafeMutablePointer<Int32>
    ) -> Int32

protocol Shape { var area: Double { get } }
struct Square: Shape { var side: Double; var area: Double { side * side } }
final class Disc: Shape {
    let radius: Double
    init(_ radius: Double) { self.radius = radius }
    var area: Double { radius * radius * 3 }
}

func work(_ seed: Int) -> Double {
    var byName: [String: [any Shape]] = [:]
    for i in 0..<200 {
        let shape: any Shape = i % 2 == 0 ? Square(side: Double(i)) : Disc(Double(i + seed))
        byName["shape \(i % 17)", default: []].append(shape)
    }
    return byName.values.joined().map(\.area).reduce(0, +)
}

guard CommandLine.arguments.count == 4, let module = dlopen(CommandLine.arguments[1], RTLD_NOW),
    let symbol = dlsym(module, "plugin_run")
else { exit(2) }
let run = unsafeBitCast(symbol, to: Run.self)
let store = CommandLine.arguments[2]
let rounds = Int(CommandLine.arguments[3]) ?? 10
var threads = [pthread_t](repeating: pthread_t(), count: 2)
for i in threads.indices {
    pthread_create(
        &threads[i], nil,
        { _ in
            for seed in 0..<200 { precondition(work(seed) > 0) }
            return nil
        }, nil)
}
for round in 0..<rounds {
    let text = "s \(round)"
    var fails: Int32 = 1
    guard run(store, text, text.utf8.count, &fails) == 0, fails == 0 else { exit(3) }
    precondition(work(round) > 0)
}
for thread in threads { pthread_join(thread, nil) }
print("\(rounds) rounds")
