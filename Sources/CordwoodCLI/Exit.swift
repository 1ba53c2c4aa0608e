// How a command ends: the exit codes of the API, the error that carries one, and complaints on
// stderr.

import Cordwood
import Glibc

enum Exit: Int32 {
    case fine = 0
    case nothingFound = 1
    case usage = 2
    case damaged = 3
    case cannotOpen = 4
    case failed = 5
}

/// Ends the command. The text goes to stderr; empty: everything was reported already.
struct Failure: Error {
    let code: Exit
    let text: String

    init(_ code: Exit, _ text: String = "") {
        self.code = code
        self.text = text
    }
}

enum Complaint {
    /// Writes one line, whatever the text: a name from a store moves no cursor and begins no new
    /// line.
    static func tell(_ text: String) { write("cordwood: \(PlainText.oneLine(text))\n") }

    /// The same if stderr accepts it now; false: it does not, and a stalled reader must hold up
    /// nothing.
    static func offer(_ text: String) -> Bool {
        var ready = pollfd(fd: 2, events: Int16(POLLOUT), revents: 0)
        // A writable pipe takes PIPE_BUF bytes at once, more than such a line has.
        guard unsafe poll(&ready, 1, 0) == 1, Int32(ready.revents) & POLLOUT != 0 else {
            return false
        }
        tell(text)
        return true
    }

    static func write(_ text: String, isProgress: Bool = false) {
        if !isProgress { ReadProgress.clear() }
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes {
                unsafe Glibc.write(2, $0.baseAddress, $0.count)
            }
            if count <= 0 {
                if count < 0 && errno == EINTR { continue }
                return
            }
            rest = rest.dropFirst(count)
        }
    }
}
