// A time as people write it: RFC 3339, a date, a day's name and a time of day, an age (`10m`,
// `1h30m ago`), or seconds since 1970. Converted to UTC nanoseconds since 1970. Pure, except for
// the clock that is passed in and the machine's time zone.
// SAFETY: `tm` is a struct on the stack; its pointer to a zone's name is never followed.

import Glibc

package enum TimeArgument {
    /// The forms, for errors.
    package static let forms = """
        a time as in 2026-11-21, '2026-11-21 08:15', 2026-11-21T08:15:30Z, 'yesterday 14:30', \
        today, now, @1763800000, or how long ago as in 90s, 10m, 1h30m, 2h, 3d, 1w
        """

    /// Nil if the text is not a time. `utc`: a time without an offset is UTC, not local time.
    package static func parse(_ text: String, nowNs: UInt64, utc: Bool) -> UInt64? {
        if text == "now" { return nowNs }
        if text.hasPrefix("@") { return sinceEpoch(Array(text.utf8.dropFirst())) }
        if let ago = age(text) { return nowNs > ago ? nowNs - ago : 1 }
        return absolute(Array(text.utf8), nowNs, utc)
    }

    /// `10m`, `-10m` and `10m ago` are the same age.
    private static func age(_ text: String) -> UInt64? {
        var text = text[...]
        if text.hasPrefix("-") {
            text = text.dropFirst()
        } else if text.hasSuffix(" ago") {
            text = text.dropLast(4)
        }
        return duration(text)
    }

    /// `90s`, `10m`, `1h30m`, `2h`, `3d`, `1w`, `500ms`; the sum of its parts, in ns.
    package static func duration(_ text: Substring) -> UInt64? {
        guard !text.isEmpty else { return nil }
        var rest = text
        var sum: UInt64 = 0
        while !rest.isEmpty {
            let digits = rest.prefix { $0.isASCII && $0.isNumber }
            let unit = rest.dropFirst(digits.count).prefix { $0.isASCII && $0.isLetter }
            guard let count = UInt64(digits), let ns = unitNs[String(unit)] else { return nil }
            let (product, isTooMuch) = count.multipliedReportingOverflow(by: ns)
            let (next, isOver) = sum.addingReportingOverflow(product)
            sum = isTooMuch || isOver ? .max : next
            rest = rest.dropFirst(digits.count + unit.count)
        }
        return sum
    }

    private static let unitNs: [String: UInt64] = [
        "ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000, "h": 3_600_000_000_000,
        "d": 86_400_000_000_000, "w": 604_800_000_000_000,
    ]

    private static func sinceEpoch(_ text: [UInt8]) -> UInt64? {
        let whole = text.prefix { (0x30...0x39).contains($0) }
        guard let seconds: UInt64 = Digits.number(whole) else { return nil }
        var scan = Scan(Array(text.dropFirst(whole.count)))
        var nanoseconds: UInt64 = 0
        if scan.take(".") {
            guard let fraction = scan.fraction() else { return nil }
            nanoseconds = fraction
        }
        let (ns, isOver) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        guard scan.isAtEnd, !isOver, ns <= UInt64.max - nanoseconds else { return nil }
        return ns + nanoseconds
    }

    private static func absolute(_ text: [UInt8], _ nowNs: UInt64, _ utc: Bool) -> UInt64? {
        var scan = Scan(text)
        guard var parts = unsafe scan.day(nowNs, utc) else { return nil }
        var nanoseconds: UInt64 = 0
        if !scan.isAtEnd {
            guard scan.take("T") || scan.take("t") || scan.take(" "),
                let hour = scan.digits(2), hour < 24, scan.take(":"),
                let minute = scan.digits(2), minute < 60
            else { return nil }
            unsafe parts.tm_hour = Int32(hour)
            unsafe parts.tm_min = Int32(minute)
            if scan.take(":") {
                guard let second = scan.digits(2), second <= 60 else { return nil }
                unsafe parts.tm_sec = Int32(second)
                if scan.take(".") {
                    guard let fraction = scan.fraction() else { return nil }
                    nanoseconds = fraction
                }
            }
        }
        guard let seconds = unsafe scan.zone(&parts, utc), scan.isAtEnd, seconds >= 0 else {
            return nil
        }
        return UInt64(seconds) * 1_000_000_000 + nanoseconds
    }

    private struct Scan {
        var rest: ArraySlice<UInt8>
        init(_ text: [UInt8]) { rest = text[...] }
        var isAtEnd: Bool { rest.isEmpty }

        mutating func take(_ character: Unicode.Scalar) -> Bool {
            guard rest.first == UInt8(ascii: character) else { return false }
            rest.removeFirst()
            return true
        }

        mutating func take(word: String) -> Bool {
            guard rest.starts(with: word.utf8) else { return false }
            rest.removeFirst(word.utf8.count)
            return true
        }

        /// The midnight that `today`, `yesterday` or a date begins with.
        mutating func day(_ nowNs: UInt64, _ utc: Bool) -> tm? {
            var parts = unsafe tm()
            let isYesterday = take(word: "yesterday")
            if isYesterday || take(word: "today") {
                var now = time_t(nowNs / 1_000_000_000)
                var today = unsafe tm()
                _ = unsafe utc ? gmtime_r(&now, &today) : localtime_r(&now, &today)
                unsafe parts.tm_year = today.tm_year
                unsafe parts.tm_mon = today.tm_mon
                // mktime and timegm accept day 0, the last one of the month before.
                unsafe parts.tm_mday = today.tm_mday - (isYesterday ? 1 : 0)
                return unsafe parts
            }
            guard let year = digits(4), take("-"), let month = digits(2), take("-"),
                let day = digits(2), (1...12).contains(month),
                (1...Times.days(inMonth: month, of: year)).contains(day)
            else { return nil }
            unsafe parts.tm_year = Int32(year - 1900)
            unsafe parts.tm_mon = Int32(month - 1)
            unsafe parts.tm_mday = Int32(day)
            return unsafe parts
        }

        mutating func digits(_ count: Int) -> Int? {
            guard rest.count >= count, let value: Int = Digits.number(rest.prefix(count)) else {
                return nil
            }
            rest.removeFirst(count)
            return value
        }

        /// 1 … 9 digits as nanoseconds; further digits are ignored.
        mutating func fraction() -> UInt64? {
            let all = rest.prefix { (0x30...0x39).contains($0) }
            guard !all.isEmpty, var value: Int = Digits.number(all.prefix(9)) else { return nil }
            for _ in all.prefix(9).count..<9 { value *= 10 }
            rest.removeFirst(all.count)
            return UInt64(value)
        }

        /// Seconds since 1970 of the parts, in the zone that follows.
        mutating func zone(_ parts: inout tm, _ utc: Bool) -> Int? {
            if isAtEnd {
                unsafe parts.tm_isdst = -1
                return unsafe utc ? timegm(&parts) : mktime(&parts)
            }
            if take("Z") || take("z") { return unsafe timegm(&parts) }
            let isEast = take("+")
            guard isEast || take("-"), let hours = digits(2) else { return nil }
            _ = take(":")
            guard let minutes = digits(2), hours < 24, minutes < 60 else { return nil }
            let offset = (hours * 60 + minutes) * 60
            return unsafe timegm(&parts) - (isEast ? offset : -offset)
        }
    }
}
