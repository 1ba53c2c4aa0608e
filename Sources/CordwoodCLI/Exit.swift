// How a command ends: the codes the API names, the error that carries one, and complaints on
// stderr.

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
    static func tell(_ text: String) { write("cordwood: \(text)\n") }

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
