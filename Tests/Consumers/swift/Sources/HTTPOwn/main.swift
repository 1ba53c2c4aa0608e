// A host whose transport is an actor that sends uploads through a captured URLSession.
//
//     HTTPOwn STORE URL UPLOADS

import Cordwood
import CordwoodHTTPCapture
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

actor Sender {
    private let session: URLSession

    init(_ session: URLSession) { self.session = session }

    func send(_ request: URLRequest) async throws -> Int {
        let (_, response) = try await session.data(for: request)
        return (response as? HTTPURLResponse)?.statusCode ?? 0
    }
}

final class ActorTransport: UploadTransport {
    private let sender: Sender

    init(_ sender: Sender) { self.sender = sender }

    func send(_ request: UploadRequest) throws -> UploadResponse {
        guard let url = URL(string: request.url) else { throw UploadTransportError("no URL") }
        var made = URLRequest(url: url)
        made.httpMethod = request.method
        for (name, value) in request.headers { made.setValue(value, forHTTPHeaderField: name) }
        var body = Data(count: Int(request.bodyBytes))
        var offset = 0
        while offset < body.count {
            offset += try body.withUnsafeMutableBytes {
                try request.readBody(
                    at: UInt64(offset), into: UnsafeMutableRawBufferPointer(rebasing: $0[offset...])
                )
            }
        }
        made.httpBody = body
        let ready = made
        let done = DispatchSemaphore(value: 0)
        nonisolated(unsafe) var status = 0
        Task { [sender] in
            status = (try? await sender.send(ready)) ?? 0
            done.signal()
        }
        done.wait()
        return UploadResponse(status: status)
    }
}

let words = CommandLine.arguments
guard words.count == 4, let uploads = Int(words[3]) else { exit(2) }
let engine = try Engine(directory: words[1])
var capture = HTTPCaptureOptions()
capture.isEnabled = true
try engine.setHTTPCapture(capture)
let session = HTTPCapture.session(engine, configuration: .ephemeral)
var target = TargetOptions(url: words[2])
target.kind = "http"
target.transport = ActorTransport(Sender(session))
try engine.addTarget(target)
engine.logger("x").info("the only record")
for _ in 0..<uploads { _ = try engine.upload() }
session.finishTasksAndInvalidate()
try engine.close()
