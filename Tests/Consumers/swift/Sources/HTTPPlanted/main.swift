// A URLSession host that gets planted bodies and sends each on, as Tests/Behaviour's
// http_planted.py does.
//
//     HTTPPlanted STORE BASE FIRST COUNT

import Cordwood
import CordwoodHTTPCapture
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

let words = CommandLine.arguments
guard words.count == 5, let first = Int(words[3]), let count = Int(words[4]) else { exit(2) }

var settings = EngineOptions()
settings.segmentBytes = 1 << 20
settings.quotaBytes = 0
settings.expirationDays = 0
let engine = try Engine(directory: words[1], options: settings)
var capture = HTTPCaptureOptions()
capture.isEnabled = true
try engine.setHTTPCapture(capture)

let configuration = URLSessionConfiguration.ephemeral
configuration.timeoutIntervalForRequest = 30
let session = HTTPCapture.session(engine, configuration: configuration)
var whole = 0
for number in first..<first + count {
    guard let url = URL(string: "\(words[2])/\(number)") else { exit(2) }
    // Broken answers throw whatever error the session has for them.
    guard let (body, response) = try? await session.data(from: url) else { continue }
    whole += 1
    var request = URLRequest(url: url)
    request.httpMethod = "POST"
    request.httpBody = body
    let type = (response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Content-Type")
    request.setValue(type ?? "", forHTTPHeaderField: "Content-Type")
    _ = try? await session.data(for: request)
}
session.finishTasksAndInvalidate()
try engine.close()
print(whole)
