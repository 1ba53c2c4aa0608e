// Captures a request of URLSession: HTTP STORE URL
//
//     swift run --package-path examples/swift -c release HTTP STORE URL

import Cordwood
import CordwoodHTTPCapture
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

guard CommandLine.arguments.count == 3, let url = URL(string: CommandLine.arguments[2]) else {
    exit(2)
}
let engine = try Engine(directory: CommandLine.arguments[1])
var options = HTTPCaptureOptions()
options.isEnabled = true
options.redactHeaders = ["X-Shop-Key"]
try engine.setHTTPCapture(options)

// The host's own configuration; what the session asks is recorded.
let configuration = URLSessionConfiguration.ephemeral
configuration.timeoutIntervalForRequest = 10
let session = URLSession(configuration: HTTPCapture.install(engine, in: configuration))
let (body, _) = try await session.data(from: url)
FileHandle.standardOutput.write(body)
try engine.close()
