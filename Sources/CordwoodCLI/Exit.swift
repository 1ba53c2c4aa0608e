// How a command ends: the exit codes of the API, the error that carries one, and complaints on
// stderr.

import Cordwood

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
        // A writable pipe takes PIPE_BUF bytes at once, more than such a line has.
        guard Files.isWritable(2, timeoutMs: 0) else { return false }
        tell(text)
        return true
    }

    static func write(_ text: String, isProgress: Bool = false) {
        if !isProgress { ReadProgress.clear() }
        _ = unsafe Array(text.utf8).withUnsafeBytes { unsafe Files.write(2, $0) }
    }
}
