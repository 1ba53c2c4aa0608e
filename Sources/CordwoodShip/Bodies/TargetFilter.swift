// The records that a target gets: those from a level on, of certain loggers and the loggers below
// them. Pure.
// SAFETY: a record's views hold during the check, and are not kept.

import CordwoodStore

struct TargetFilter: Equatable, Sendable {
    let level: UInt8
    /// Empty: all.
    let loggers: [[UInt8]]
    static let loggersMax = 64

    /// As `init` takes them.
    var loggersText: String {
        loggers.map { String(decoding: $0, as: UTF8.self) }.joined(separator: ",")
    }

    var takesAll: Bool { level == 0 && loggers.isEmpty }

    /// - Parameter loggers: names separated by commas.
    init(level: UInt32, loggers text: String) throws(UploadError) {
        guard level <= 24 else {
            throw UploadError.argument("level \(level) is none of 1…24, nor 0 for all")
        }
        self.level = UInt8(level)
        let names = text.split(separator: ",").map {
            Array($0.utf8.drop { $0 == 0x20 }.reversed().drop { $0 == 0x20 }.reversed())
        }
        loggers = names.filter { !$0.isEmpty }
        guard loggers.count <= TargetFilter.loggersMax else {
            throw UploadError.argument("more than \(TargetFilter.loggersMax) loggers")
        }
    }

    /// Records without a level (gaps, starts and stops) match every level.
    func matches(_ record: borrowing RecordRef) -> Bool {
        if record.level > 0 && record.level < level { return false }
        return loggers.isEmpty
            || loggers.contains { QueryTest.covers($0, record.logger) }
    }
}
