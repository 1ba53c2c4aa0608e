// The cost of capturing a URLSession request, compared with the same session without it: `none`,
// `off` (installed, capture off), `on`. HTTPHooks URL [REQUESTS [ROUNDS]]; the server is
// Benchmarks/http_hooks.py --serve, which prints its URL. The three take turns; microseconds.

import Cordwood
import CordwoodHTTPCapture
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

guard CommandLine.arguments.count > 1, let url = URL(string: CommandLine.arguments[1]) else {
    exit(2)
}
let words = CommandLine.arguments.dropFirst(2).compactMap { Int($0) }
let requests = words.first ?? 200
let rounds = words.dropFirst().first ?? 9
let store = NSTemporaryDirectory() + "cordwood-bench-" + UUID().uuidString
let engine = try Engine(directory: store)

@Sendable func mean(_ session: URLSession, _ url: URL, _ requests: Int) -> Double {
    let done = DispatchSemaphore(value: 0)
    let began = DispatchTime.now().uptimeNanoseconds
    for _ in 0..<requests {
        session.dataTask(with: url) { _, _, _ in done.signal() }.resume()
        done.wait()
    }
    return Double(DispatchTime.now().uptimeNanoseconds - began) / Double(requests) / 1000
}

func capture(_ isOn: Bool) throws {
    var options = HTTPCaptureOptions()
    options.isEnabled = isOn
    try engine.setHTTPCapture(options)
}

let plain = URLSession(configuration: .ephemeral)
let hooked = URLSession(configuration: HTTPCapture.install(engine, in: .ephemeral))
var took: [String: [Double]] = ["none": [], "off": [], "on": []]
_ = mean(plain, url, requests)
for _ in 0..<rounds {
    took["none"]?.append(mean(plain, url, requests))
    try capture(false)
    took["off"]?.append(mean(hooked, url, requests))
    try capture(true)
    took["on"]?.append(mean(hooked, url, requests))
}
for way in ["none", "off", "on"] {
    let sorted = (took[way] ?? []).sorted()
    let text = [sorted[sorted.count / 2], sorted[0]].map { String(format: "%8.1f", $0) }
    print("URLSession \(way)".padding(toLength: 16, withPad: " ", startingAt: 0), text[0], text[1])
}
try engine.close()
try? FileManager.default.removeItem(atPath: store)
