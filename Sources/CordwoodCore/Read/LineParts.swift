// The small pieces that lines are made of, written as bytes into a growing array:
// numbers, times, levels. No String is made for any of them but a floating-point
// number.
// SAFETY: the scratch of 20 digits is filled from its end and never beyond; times use a struct on
// the stack.

import Glibc

public enum Levels {
    static let named: [(number: UInt8, name: StaticString)] = [
        (1, "TRACE"), (5, "DEBUG"), (9, "INFO"), (10, "NOTICE"), (13, "WARN"), (17, "ERROR"),
        (21, "FATAL"),
    ]

    /// Names that Python's logging, syslog(3) and swift-log have beside ours.
    static let others: [(number: UInt8, name: StaticString)] = [
        (13, "WARNING"), (17, "ERR"), (21, "CRITICAL"), (21, "CRIT"), (21, "ALERT"),
        (21, "EMERG"), (21, "PANIC"),
    ]

    /// 1 to 24 as they are. 30, 40 and 50, which we do not use, as in Python's logging.
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
        Digits.append(UInt64(level &- best.number), to: &out)
    }
}

/// "INFO+2" of 12; empty for 0, no level.
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

package enum Digits {
    package static func append(_ value: UInt64, to out: inout [UInt8], width: Int = 0) {
        // 20 digits hold every 64-bit number.
        unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
            var rest = value
            var at = 20
            repeat {
                at &-= 1
                unsafe digits[at] = 0x30 &+ UInt8(truncatingIfNeeded: rest % 10)
                rest /= 10
            } while rest != 0 || 20 &- at < min(width, 20)
            unsafe out.append(contentsOf: digits[at...])
        }
    }

    package static func append(signed value: Int64, to out: inout [UInt8]) {
        if value < 0 { out.append(0x2d) }
        append(value.magnitude, to: &out)
    }

    @safe package static func appendHex(_ bytes: UnsafeRawBufferPointer, to out: inout [UInt8]) {
        for at in 0..<bytes.count {
            let byte = Bytes.u8(bytes, at)
            out.append(hex(byte >> 4))
            out.append(hex(byte & 15))
        }
    }

    package static func hex(_ nibble: UInt8) -> UInt8 {
        nibble < 10 ? 0x30 &+ nibble : 0x57 &+ nibble
    }
}

package enum FieldText {
    package static func append(_ value: FieldValue, to out: inout [UInt8]) {
        switch value {
        case .int(let number): Digits.append(signed: number, to: &out)
        case .uint(let number): Digits.append(number, to: &out)
        case .double(let number): append(number, to: &out)
        case .bool(let flag): unsafe out.append(contentsOf: Bytes.literal(flag ? "true" : "false"))
        case .string(let text): unsafe out.append(contentsOf: text)
        }
    }

    static func append(_ number: Double, to out: inout [UInt8]) {
        if number.isNaN {
            unsafe out.append(contentsOf: Bytes.literal("NaN"))
        } else if number.isInfinite {
            unsafe out.append(contentsOf: Bytes.literal(number < 0 ? "-Infinity" : "Infinity"))
        } else {
            out.append(contentsOf: number.description.utf8)
        }
    }
}

package enum Times {
    /// UTC ns as servers count them that have 64 bits and a sign: until 2262.
    package static func signed(_ ns: UInt64) -> UInt64 { min(ns, UInt64(Int64.max)) }

    /// Year, month, day of a count of days since 1970 (proleptic Gregorian, years from March on).
    static func civil(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days &+ 719_468
        let era = (shifted >= 0 ? shifted : shifted &- 146_096) / 146_097
        let inEra = shifted &- era &* 146_097
        let inEraYears = (inEra &- inEra / 1_460 &+ inEra / 36_524 &- inEra / 146_096) / 365
        let inYear = inEra &- (365 &* inEraYears &+ inEraYears / 4 &- inEraYears / 100)
        let shiftedMonth = (5 &* inYear &+ 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth &+ 3 : shiftedMonth &- 9
        let year = inEraYears &+ era &* 400 &+ (month <= 2 ? 1 : 0)
        return (year, month, inYear &- (153 &* shiftedMonth &+ 2) / 5 &+ 1)
    }

    /// `2026-11-21T08:15:30` with that separator, of seconds since 1970.
    package static func append(seconds: Int64, separator: UInt8, to out: inout [UInt8]) {
        let days = seconds >= 0 ? seconds / 86_400 : (seconds &- 86_399) / 86_400
        let inDay = UInt64(seconds &- days &* 86_400)
        let (year, month, day) = civil(days)
        Digits.append(UInt64(max(year, 0)), to: &out, width: 4)
        out.append(0x2d)
        Digits.append(UInt64(month), to: &out, width: 2)
        out.append(0x2d)
        Digits.append(UInt64(day), to: &out, width: 2)
        out.append(separator)
        Digits.append(inDay / 3_600, to: &out, width: 2)
        out.append(0x3a)
        Digits.append(inDay / 60 % 60, to: &out, width: 2)
        out.append(0x3a)
        Digits.append(inDay % 60, to: &out, width: 2)
    }

    /// `2026-11-21T08:15:30.123456789Z`.
    package static func appendExact(_ ns: UInt64, to out: inout [UInt8]) {
        append(ns, digits: 9, to: &out)
        out.append(0x5a)
    }

    /// `2026-11-21T08:15:30.123` with so many digits of the second, 1 to 9, cut rather than
    /// rounded; in UTC, without saying so.
    package static func append(_ ns: UInt64, digits: Int, to out: inout [UInt8]) {
        append(seconds: Int64(ns / 1_000_000_000), separator: 0x54, to: &out)
        out.append(0x2e)
        var fraction = ns % 1_000_000_000
        for _ in digits..<9 { fraction /= 10 }
        Digits.append(fraction, to: &out, width: digits)
    }

    /// `2026-11-21 09:15:30.123+01:00`, or in UTC with a Z.
    package static func appendReadable(_ ns: UInt64, utc: Bool, to out: inout [UInt8]) {
        let seconds = Int64(ns / 1_000_000_000)
        var offset: Int64 = 0
        if !utc {
            var clock = time_t(seconds)
            var parts = unsafe tm()
            if unsafe localtime_r(&clock, &parts) != nil { offset = unsafe Int64(parts.tm_gmtoff) }
        }
        append(seconds: seconds &+ offset, separator: 0x20, to: &out)
        out.append(0x2e)
        Digits.append(ns / 1_000_000 % 1_000, to: &out, width: 3)
        if utc { return out.append(0x5a) }
        out.append(offset < 0 ? 0x2d : 0x2b)
        let minutes = UInt64(offset.magnitude / 60)
        Digits.append(minutes / 60, to: &out, width: 2)
        out.append(0x3a)
        Digits.append(minutes % 60, to: &out, width: 2)
    }
}
