// Asks a server with URLSession, and says how the request failed: HTTPErrors STORE URL
//
//     swift run --package-path examples/swift -c release HTTPErrors STORE URL

import Cordwood
import CordwoodHTTPCapture
import CordwoodURLSession
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
try engine.setHTTPCapture(options)
let session = HTTPCapture.session(engine, configuration: .ephemeral)

// A failure is thrown typed, after the logger has recorded it with the exchange's id.
do throws(NetworkError) {
    _ = try await session.checkedData(from: url, log: engine.logger("shop.net"))
} catch {
    let detail = error.detail
    print(detail.kind.word, detail.httpStatus, detail.odata?.code ?? "", error.transactionID)
    print(error)
    print(error.localizedDescription(language: "de"))
    // If the case matters.
    if case .client(let refused) = error, refused.detail.httpStatus == 401 {
        print("sign in again")
    }
}
try engine.close()
