// Names of levels and their numbers, 1 to 24 (OpenTelemetry's).

public enum Levels {
    static let named: [(number: UInt8, name: StaticString)] = [
        (1, "TRACE"), (5, "DEBUG"), (9, "INFO"), (10, "NOTICE"), (13, "WARN"), (17, "ERROR"),
        (21, "FATAL"),
    ]

    /// Names from Python's logging, syslog(3) and swift-log, accepted beside ours.
    static let others: [(number: UInt8, name: StaticString)] = [
        (13, "WARNING"), (17, "ERR"), (21, "CRITICAL"), (21, "CRIT"), (21, "ALERT"),
        (21, "EMERG"), (21, "PANIC"),
    ]

    /// Returns 1 to 24 unchanged. Maps 30, 40 and 50, which we do not use, as Python's logging
    /// does.
    public static func number(_ number: UInt64) -> UInt8? {
        switch number {
        case 1...24: UInt8(number)
        case 30: 13
        case 40: 17
        case 50: 21
        default: nil
        }
    }

    /// "INFO", or "INFO+2" for a level without a name; empty for 0.
    package static func append(_ level: UInt8, to out: inout [UInt8]) {
        guard level > 0 else { return }
        var best = named[0]
        for candidate in named where candidate.number <= level { best = candidate }
        unsafe out.append(contentsOf: Bytes.literal(best.name))
        guard level > best.number else { return }
        out.append(0x2b)
        out.append(contentsOf: "\(level &- best.number)".utf8)
    }
}

/// The name of a level: "INFO+2" for 12, empty for 0 (no level).
public func levelName(_ level: UInt8) -> String {
    var text: [UInt8] = []
    Levels.append(level, to: &text)
    return String(decoding: text, as: UTF8.self)
}

/// A level's number from its name in any case, from a number, or from the form "INFO+2".
public func parseLevel(_ text: String) -> UInt8? {
    func number(_ digits: Substring) -> UInt8? {
        digits.utf8.allSatisfy { $0 >= 0x30 && $0 <= 0x39 } ? UInt8(digits) : nil
    }
    if let plain = number(text[...]) { return Levels.number(UInt64(plain)) }
    let parts = text.split(separator: "+", omittingEmptySubsequences: false)
    guard parts.count <= 2, let name = parts.first else { return nil }
    let upper = name.uppercased()
    let found = (Levels.named + Levels.others).first { $0.name.description == upper }
    guard let found else { return nil }
    guard parts.count == 2 else { return found.number }
    guard let more = number(parts[1]), more <= 24, found.number + more <= 24 else { return nil }
    return found.number + more
}
