// The host's stderr: carries echoed records and complaints about the environment. The writing
// thread may be the host's, so a closed pipe must not kill it. Any thread.

import CordwoodCore
import CordwoodStore
import Synchronization

enum StandardError {
    /// Drops whatever cannot be written now.
    static func write(_ bytes: [UInt8]) {
        Signals.withoutPipe {
            _ = unsafe bytes.withUnsafeBytes { unsafe Files.write(2, $0) }
        }
    }

    /// Reports a problem with an environment variable, once per variable and process: the person
    /// who set it sees no record.
    static func complain(_ variable: String, _ text: String) {
        guard told.withLock({ $0.insert(variable).inserted }) else { return }
        write(Array("cordwood: \(variable): \(PlainText.oneLine(text))\n".utf8))
    }

    private static let told = Mutex<Set<String>>([])
}
