// A record for Loggly: a line of JSON or text with its newline, because Loggly splits a batch
// there. Loggly files an event under `timestamp`, of which it reads six digits of a second; `time`
// has all nine. Pure.

import CordwoodFormats
import CordwoodStore

enum LogglyEntry {
    static let timestampDigits = 6

    static let json: RenderEntry = { record, out in
        Literal.append("{\"timestamp\":\"", &out)
        Times.append(record.timeNs, digits: timestampDigits, to: &out)
        Literal.append("Z\",", &out)
        CommonEntries.appendMembers(record, &out)
        Literal.append("}\n", &out)
    }

    /// As `cordwood cat --utc` shows it, except that newlines in a message become `\n`, so that one
    /// event stays one.
    static let text: RenderEntry = { record, out in
        TextLine.append(record, to: &out, utc: true, color: false, form: .oneLine)
    }
}
