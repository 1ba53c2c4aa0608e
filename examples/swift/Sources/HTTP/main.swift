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
// If the store cannot be opened, that is reported once, and requests go on without capture.
let engine = HTTPCapture.engine {
    let engine = try Engine(directory: CommandLine.arguments[1])
    var options = HTTPCaptureOptions()
    options.isEnabled = true
    options.redactHeaders = ["X-Shop-Key"]
    try engine.setHTTPCapture(options)
    return engine
}

// The host's own configuration; the session's requests are recorded.
let configuration = URLSessionConfiguration.ephemeral
configuration.timeoutIntervalForRequest = 10
let session = HTTPCapture.session(engine, configuration: configuration)
// The record belongs to the conversation, and so do the server's records of the request.
let body = try await Context.withConversation { _ in
    try await session.data(for: HTTPCapture.propagated(URLRequest(url: url))).0
}
FileHandle.standardOutput.write(body)
try engine?.close()
