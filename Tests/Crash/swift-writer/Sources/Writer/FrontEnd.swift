// swift-log over Cordwood's handler. The front end returns no status, so a call counts as kept
// while the engine has refused no record of any thread. After the first refusal, none counts.

import Cordwood
import CordwoodLogging
import Logging

struct FrontEnd: Sendable {
    private let engine: Engine
    private let log: Logging.Logger

    init(_ label: String, _ engine: Engine) {
        self.engine = engine
        log = Logging.Logger(label: label) { CordwoodLogHandler(label: $0, engine: engine) }
    }

    /// Every second record has metadata. Returns like Cordwood's own calls: 0, or -11 if the record
    /// may have been refused.
    func info(_ message: Logging.Logger.Message, number: UInt64) -> Int32 {
        if number % 2 == 0 {
            log.info(message)
        } else {
            log.info(message, metadata: ["number": "\(number)"])
        }
        return (try? engine.stats().recordsDropped) == 0 ? 0 : -11
    }
}
