// How a command ends: the codes the API names, the error that carries one, and complaints on
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

/// Ends the command. The text goes to stderr; empty: everything was said.
struct Failure: Error {
    let code: Exit
    let text: String

    init(_ code: Exit, _ text: String = "") {
        self.code = code
        self.text = text
    }
}

enum Complaint {
    /// One line, whatever is in it: a name from a store moves no cursor and begins no new line.
    static func tell(_ text: String) { write("cordwood: \(PlainText.oneLine(text))\n") }

    /// The same where stderr takes it now; false: a reader that stands still holds up nobody.
    static func offer(_ text: String) -> Bool {
        var ready = pollfd(fd: 2, events: Int16(POLLOUT), revents: 0)
        // A pipe that can be written to takes PIPE_BUF bytes at once, more than such a line has.
        guard unsafe poll(&ready, 1, 0) == 1, Int32(ready.revents) & POLLOUT != 0 else {
            return false
        }
        tell(text)
        return true
    }

    static func write(_ text: String) {
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
