// A time as people write it: RFC 3339, a date, or an age (`10m`, `2h`, `3d`). Converted to UTC
// nanoseconds since 1970. Pure, except for the clock that is passed in and the machine's time zone.
// SAFETY: `tm` is a struct on the stack; its pointer to a zone's name is never followed.

import Cordwood
import Glibc

enum TimeArgument {
    /// Nil if the text is not a time. `utc`: a time without an offset is UTC, not local time.
    static func parse(_ text: String, nowNs: UInt64, utc: Bool) -> UInt64? {
        if text == "now" { return nowNs }
        if let ago = duration(text) { return nowNs > ago ? nowNs - ago : 1 }
        return absolute(Array(text.utf8), utc)
    }

    /// `90s`, `10m`, `2h`, `3d`, `1w`, `500ms`.
    static func duration(_ text: String) -> UInt64? {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        guard !digits.isEmpty, let count = UInt64(digits) else { return nil }
        let unit: UInt64
        switch text.dropFirst(digits.count) {
        case "ms": unit = 1_000_000
        case "s": unit = 1_000_000_000
        case "m": unit = 60_000_000_000
        case "h": unit = 3_600_000_000_000
        case "d": unit = 86_400_000_000_000
        case "w": unit = 604_800_000_000_000
        default: return nil
        }
        let (product, overflow) = count.multipliedReportingOverflow(by: unit)
        return overflow ? .max : product
    }

    private static func absolute(_ text: [UInt8], _ utc: Bool) -> UInt64? {
        var scan = Scan(text)
        guard let year = scan.digits(4), scan.take("-"), let month = scan.digits(2),
            scan.take("-"), let day = scan.digits(2), (1...12).contains(month),
            (1...31).contains(day)
        else { return nil }
        var parts = unsafe tm()
        unsafe parts.tm_year = Int32(year - 1900)
        unsafe parts.tm_mon = Int32(month - 1)
        unsafe parts.tm_mday = Int32(day)
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

    static func now() -> UInt64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
