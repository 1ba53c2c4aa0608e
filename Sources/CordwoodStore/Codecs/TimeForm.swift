// The forms of times in templates (FORMAT §11.9): a time found in text becomes a number, and
// printing the number yields the same bytes. Only dates that exist are accepted. Values; any
// thread.
// SAFETY: `print` writes exactly `bytes` bytes.

import CordwoodCore

struct TimeForm {
    private static let clock: UInt16 = 0
    private static let date: UInt16 = 1
    private static let named: UInt16 = 2
    /// As syslog prints it: `Jun  4 15:16:01`, without a year.
    private static let stamp: UInt16 = 3
    private static let day: Int64 = 86_400
    /// A stamp counts from the beginning of a year of 366 days, as this one was.
    private static let stampYear: Int64 = 10_957

    let code: UInt16

    private var form: UInt16 { code & 3 }
    private var mark: UInt16 { code &>> 4 & 3 }
    fileprivate var digits: Int { Int(code &>> 6 & 15) }
    /// Numbers per second.
    fileprivate var scale: UInt64 { Decimals.power(digits) }

    /// nil: no form of this version.
    init?(_ code: UInt16) {
        self.code = code
        guard code &>> 10 == 0, form == Self.date || code & 0xC == 0,
            digits <= 9, (mark == 0) == (digits == 0), form < Self.named || mark == 0
        else { return nil }
    }

    private init(form: UInt16, slash: Bool, letter: Bool, mark: UInt16, digits: Int) {
        code =
            form | (slash ? 4 : 0) | (letter ? 8 : 0) | mark &<< 4
            | UInt16(truncatingIfNeeded: digits) &<< 6
    }

    /// Size of a time as text.
    var bytes: Int {
        let body = dateBytes &+ 8
        return digits == 0 ? body : body &+ 1 &+ digits
    }

    /// The least and the greatest number that can be printed.
    var range: ClosedRange<Int64> {
        let scale = Int64(Decimals.power(digits))
        if form == Self.clock { return 0...(Self.day &* scale &- 1) }
        if form == Self.stamp { return 0...(366 &* Self.day &- 1) }
        // -719,528 and 2,932,897 days from 1970: the years 0 and 10,000.
        let least = -719_528 &* Self.day
        let end = 2_932_897 &* Self.day
        let (first, low) = least.multipliedReportingOverflow(by: scale)
        let (after, high) = end.multipliedReportingOverflow(by: scale)
        return (low ? .min : first)...(high ? .max : after &- 1)
    }

    // MARK: printing

    /// Size of the date and of its separator from the clock.
    fileprivate var dateBytes: Int {
        switch form {
        case Self.clock: 0
        case Self.date: 11
        case Self.named: 12
        default: 7
        }
    }

    /// The text before the clock depends on this part of the code.
    fileprivate var dateCode: UInt16 { code & 15 }

    /// Seconds, and the fraction of one.
    @inline(__always)
    fileprivate func parts(_ number: Int64) -> (seconds: Int64, fraction: Int64) {
        if digits == 0 { return (number, 0) }
        let scale = digits == 3 ? 1_000 : Int64(Decimals.power(digits))
        let seconds = digits == 3 ? number / 1_000 : number / scale
        let fraction = number &- seconds &* scale
        return fraction < 0 ? (seconds &- 1, fraction &+ scale) : (seconds, fraction)
    }

    /// Days from 1970, and seconds of the day.
    @inline(__always)
    fileprivate static func days(_ seconds: Int64) -> (days: Int64, ofDay: Int64) {
        let days = seconds / day
        let ofDay = seconds &- days &* day
        return ofDay < 0 ? (days &- 1, ofDay &+ day) : (days, ofDay)
    }

    /// SAFETY: room for `dateBytes`.
    fileprivate func printDate(_ days: Int64, to target: UnsafeMutableRawPointer) {
        let out = unsafe target.assumingMemoryBound(to: UInt8.self)
        let (year, month, day) = Self.civil(form == Self.stamp ? Self.stampYear + days : days)
        if form == Self.stamp {
            unsafe Self.letters(month, out)
            unsafe out[3] = 0x20
            unsafe Self.two(day, out + 4)
            if day < 10 { unsafe out[4] = 0x20 }
            unsafe out[6] = 0x20
        } else if form == Self.date {
            let between: UInt8 = code & 4 != 0 ? 0x2F : 0x2D
            unsafe Self.two(year / 100, out)
            unsafe Self.two(year % 100, out + 2)
            unsafe out[4] = between
            unsafe Self.two(month, out + 5)
            unsafe out[7] = between
            unsafe Self.two(day, out + 8)
            unsafe out[10] = code & 8 != 0 ? 0x54 : 0x20
        } else {
            unsafe Self.two(day, out)
            unsafe out[2] = 0x2F
            unsafe Self.letters(month, out + 3)
            unsafe out[6] = 0x2F
            unsafe Self.two(year / 100, out + 7)
            unsafe Self.two(year % 100, out + 9)
            unsafe out[11] = 0x3A
        }
    }

    /// SAFETY: room for three.
    private static func letters(_ month: Int64, _ out: UnsafeMutablePointer<UInt8>) {
        let name = Self.month(month)
        unsafe out[0] = UInt8(truncatingIfNeeded: name &>> 16)
        unsafe out[1] = UInt8(truncatingIfNeeded: name &>> 8)
        unsafe out[2] = UInt8(truncatingIfNeeded: name)
    }

    /// SAFETY: room for what `bytes` leaves behind the date.
    @inline(__always)
    fileprivate func printClock(
        _ seconds: Int64, _ fraction: Int64, to target: UnsafeMutableRawPointer
    ) {
        let out = unsafe target.assumingMemoryBound(to: UInt8.self)
        let ofDay = UInt32(truncatingIfNeeded: seconds)
        let minutes = ofDay / 60
        let hours = minutes / 60
        unsafe Self.two(Int64(hours), out)
        unsafe out[2] = 0x3A
        unsafe Self.two(Int64(minutes &- hours &* 60), out + 3)
        unsafe out[5] = 0x3A
        unsafe Self.two(Int64(ofDay &- minutes &* 60), out + 6)
        if digits > 0 {
            unsafe out[8] = mark == 1 ? 0x2E : mark == 2 ? 0x2C : 0x3A
            unsafe Decimals.write(
                digits: UInt64(truncatingIfNeeded: fraction), digits, to: target + 9)
        }
    }

    /// 0 … 99.
    @inline(__always)
    fileprivate static func two(_ number: Int64, _ out: UnsafeMutablePointer<UInt8>) {
        let value = UInt32(truncatingIfNeeded: number)
        let tens = (value &* 103) &>> 10
        unsafe out[0] = UInt8(truncatingIfNeeded: 0x30 &+ tens)
        unsafe out[1] = UInt8(truncatingIfNeeded: 0x30 &+ value &- tens &* 10)
    }

    /// Three letters in the low bytes; 1 … 12.
    private static func month(_ number: Int64) -> UInt32 {
        switch number {
        case 1: 0x4A_616E
        case 2: 0x46_6562
        case 3: 0x4D_6172
        case 4: 0x41_7072
        case 5: 0x4D_6179
        case 6: 0x4A_756E
        case 7: 0x4A_756C
        case 8: 0x41_7567
        case 9: 0x53_6570
        case 10: 0x4F_6374
        case 11: 0x4E_6F76
        default: 0x44_6563
        }
    }

    /// 1 … 12 of such letters; nil: no month.
    static func month(named name: UInt32) -> Int64? {
        switch name {
        case 0x4A_616E: 1
        case 0x46_6562: 2
        case 0x4D_6172: 3
        case 0x41_7072: 4
        case 0x4D_6179: 5
        case 0x4A_756E: 6
        case 0x4A_756C: 7
        case 0x41_7567: 8
        case 0x53_6570: 9
        case 0x4F_6374: 10
        case 0x4E_6F76: 11
        case 0x44_6563: 12
        default: nil
        }
    }

    /// Days from 1970-01-01, Gregorian.
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let ofEra = shifted - era * 400
        let ofYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + ofEra * 365 + ofEra / 4 - ofEra / 100 + ofYear - 719_468
    }

    private static func civil(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let ofEra = shifted - era * 146_097
        let year = (ofEra - ofEra / 1_460 + ofEra / 36_524 - ofEra / 146_096) / 365
        let ofYear = ofEra - (365 * year + year / 4 - year / 100)
        let turn = (5 * ofYear + 2) / 153
        let month = turn < 10 ? turn + 3 : turn - 9
        return (
            year + era * 400 + (month <= 2 ? 1 : 0), month, ofYear - (153 * turn + 2) / 5 + 1
        )
    }

    // MARK: reading

    /// A date that was read, as its 11 bytes, or the 7 of a stamp: most lines have the date of the
    /// line before.
    struct LastDate {
        fileprivate var years: UInt64 = 0
        /// From the fourth byte on.
        fileprivate var rest: UInt64 = 0
        fileprivate var days: Int64 = 0

        init() {}

        fileprivate init(years: UInt64, rest: UInt64, days: Int64) {
            (self.years, self.rest, self.days) = (years, rest, days)
        }
    }

    struct Found {
        let form: TimeForm
        let number: Int64
        let bytes: Int
    }

    /// Reads the time that begins with the digit at `at`. nil: it is not a time, or digits follow.
    @inline(__always)
    static func read(_ text: Slice, at: Int, after last: inout LastDate) -> Found? {
        guard text.count &- at >= 8, let start = unsafe text.start else { return nil }
        let bytes = unsafe (start + at).assumingMemoryBound(to: UInt8.self)
        if unsafe bytes[2] == 0x3A { return unsafe clock(text, at, bytes) }
        if unsafe bytes[4] == 0x2D || bytes[4] == 0x2F {
            return unsafe date(text, at, bytes, &last)
        }
        if unsafe bytes[2] == 0x2F && bytes[6] == 0x2F { return unsafe named(text, at, bytes) }
        return nil
    }

    // SAFETY: the callers of these have seen 8, and these see 19 or 20, bytes from `bytes` on.

    private static func clock(
        _ text: Slice, _ at: Int, _ bytes: UnsafePointer<UInt8>
    ) -> Found? {
        guard let seconds = unsafe seconds(bytes) else { return nil }
        return end(text, at, 8, seconds, form: clock, slash: false, letter: false)
    }

    private static func date(
        _ text: Slice, _ at: Int, _ bytes: UnsafePointer<UInt8>, _ last: inout LastDate
    ) -> Found? {
        guard text.count &- at >= 19, let seconds = unsafe seconds(bytes + 11) else { return nil }
        let raw = unsafe UnsafeRawPointer(bytes)
        let years = unsafe raw.loadUnaligned(as: UInt64.self)
        let rest = unsafe (raw + 3).loadUnaligned(as: UInt64.self)
        if last.years != years || last.rest != rest {
            guard let days = unsafe daysOfDate(bytes) else { return nil }
            last = LastDate(years: years, rest: rest, days: days)
        }
        let isSlash = unsafe bytes[4] == 0x2F
        let isLetter = unsafe bytes[10] == 0x54
        return end(
            text, at, 19, last.days &* Self.day &+ seconds, form: date, slash: isSlash,
            letter: isLetter)
    }

    /// From 11 bytes: the date and its separator from the clock.
    private static func daysOfDate(_ bytes: UnsafePointer<UInt8>) -> Int64? {
        let between = unsafe bytes[4]
        let middle = unsafe bytes[10]
        var worst: UInt8 = 0
        let century = unsafe pair(bytes, &worst)
        let years = unsafe pair(bytes + 2, &worst)
        let month = unsafe pair(bytes + 5, &worst)
        let day = unsafe pair(bytes + 8, &worst)
        guard worst < 10, unsafe bytes[7] == between, middle == 0x20 || middle == 0x54,
            isDay(century &* 100 &+ years, month, day)
        else { return nil }
        return days(century &* 100 &+ years, month, day)
    }

    private static func named(
        _ text: Slice, _ at: Int, _ bytes: UnsafePointer<UInt8>
    ) -> Found? {
        guard text.count &- at >= 20, unsafe bytes[11] == 0x3A else { return nil }
        var worst: UInt8 = 0
        let day = unsafe pair(bytes, &worst)
        let century = unsafe pair(bytes + 7, &worst)
        let years = unsafe pair(bytes + 9, &worst)
        let name = unsafe UInt32(bytes[3]) << 16 | UInt32(bytes[4]) << 8 | UInt32(bytes[5])
        guard worst < 10, let seconds = unsafe seconds(bytes + 12),
            let month = month(named: name), isDay(century &* 100 &+ years, month, day),
            !isDigit(text[at &+ 20])
        else { return nil }
        return Found(
            form: TimeForm(form: named, slash: false, letter: false, mark: 0, digits: 0),
            number: days(century &* 100 &+ years, month, day) &* Self.day &+ seconds, bytes: 20)
    }

    /// Reads the stamp of 15 bytes that begins with the month at `at`. nil: it is not a stamp, or a
    /// digit follows.
    static func stamp(_ text: Slice, at: Int, after last: inout LastDate) -> Found? {
        guard text.count &- at >= 15, let start = unsafe text.start else { return nil }
        let bytes = unsafe (start + at).assumingMemoryBound(to: UInt8.self)
        let date =
            unsafe UInt64(
                littleEndian: (start + at).loadUnaligned(as: UInt64.self)) &<< 8
        if last.years != date {
            guard let days = unsafe daysOfStamp(bytes) else { return nil }
            last = LastDate(years: date, rest: 0, days: days)
        }
        guard let seconds = unsafe seconds(bytes + 7), !isDigit(text[at &+ 15]) else { return nil }
        return Found(
            form: TimeForm(form: stamp, slash: false, letter: false, mark: 0, digits: 0),
            number: last.days &* Self.day &+ seconds, bytes: 15)
    }

    /// From 7 bytes: the date and the blank before the clock.
    private static func daysOfStamp(_ bytes: UnsafePointer<UInt8>) -> Int64? {
        let name = unsafe UInt32(bytes[0]) << 16 | UInt32(bytes[1]) << 8 | UInt32(bytes[2])
        let tens = unsafe bytes[4] == 0x20 ? 0 : bytes[4] &- 0x30
        let ones = unsafe bytes[5] &- 0x30
        let day = Int64(tens) &* 10 &+ Int64(ones)
        // A day below 10 has a blank in place of its tens.
        guard tens < 10, ones < 10, unsafe bytes[3] == 0x20 && bytes[4] != 0x30 && bytes[6] == 0x20,
            let month = month(named: name), isDay(2_000, month, day)
        else { return nil }
        return days(2_000, month, day) &- stampYear
    }

    private static func end(
        _ text: Slice, _ at: Int, _ size: Int, _ seconds: Int64, form: UInt16, slash: Bool,
        letter: Bool
    ) -> Found? {
        let next = text[at + size]
        let mark: UInt16 = next == 0x2E ? 1 : next == 0x2C ? 2 : next == 0x3A ? 3 : 0
        if mark > 0 {
            var digits = 0
            var fraction: Int64 = 0
            let first = at &+ size &+ 1
            while digits < 9, isDigit(text[first &+ digits]) {
                fraction = fraction &* 10 &+ Int64(text[first &+ digits] &- 0x30)
                digits &+= 1
            }
            if digits > 0, !isDigit(text[first &+ digits]) {
                // With nine digits of fraction, there is only room for 292 years around 1970.
                let (scaled, overflow) = seconds.multipliedReportingOverflow(
                    by: Int64(Decimals.power(digits)))
                let (number, second) = scaled.addingReportingOverflow(fraction)
                if !overflow, !second {
                    return Found(
                        form: TimeForm(
                            form: form, slash: slash, letter: letter, mark: mark, digits: digits),
                        number: number, bytes: size + 1 + digits)
                }
            }
        }
        guard !isDigit(next) else { return nil }
        return Found(
            form: TimeForm(form: form, slash: slash, letter: letter, mark: 0, digits: 0),
            number: seconds, bytes: size)
    }

    @inline(__always) private static func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }

    /// The number formed by two digits. `worst`: the greatest of all digits; above 9: not a digit.
    @inline(__always) private static func pair(
        _ bytes: UnsafePointer<UInt8>, _ worst: inout UInt8
    ) -> Int64 {
        let high = unsafe bytes[0] &- 0x30
        let low = unsafe bytes[1] &- 0x30
        worst = max(worst, high, low)
        return Int64(high) &* 10 &+ Int64(low)
    }

    @inline(__always) private static func seconds(_ bytes: UnsafePointer<UInt8>) -> Int64? {
        // All eight at once: each digit without its high half, and zeros for the colons.
        let text = unsafe UInt64(
            littleEndian: UnsafeRawPointer(bytes).loadUnaligned(as: UInt64.self))
        let plain = text ^ 0x3030_3A30_303A_3030
        // A digit plus six has no high half.
        guard (plain | (plain &+ 0x0606_0006_0600_0606)) & 0xF0F0_FFF0_F0FF_F0F0 == 0 else {
            return nil
        }
        // Ten times each digit, plus the next one; nothing carries.
        let pairs = plain &* 10 &+ plain &>> 8
        let hours = Int64(pairs & 0xFF)
        let minutes = Int64(pairs &>> 24 & 0xFF)
        let seconds = Int64(pairs &>> 48 & 0xFF)
        guard hours < 24, minutes < 60, seconds < 60 else { return nil }
        return hours &* 3_600 &+ minutes &* 60 &+ seconds
    }

    private static func isDay(_ year: Int64, _ month: Int64, _ day: Int64) -> Bool {
        guard month >= 1, month <= 12, day >= 1 else { return false }
        let isLeap = year % 4 == 0 && year % 100 != 0 || year % 400 == 0
        switch month {
        case 2: return day <= (isLeap ? 29 : 28)
        case 4, 6, 9, 11: return day <= 30
        default: return day <= 31
        }
    }
}

/// Prints times. Most have the minute or the day of the one before, whose text is kept.
/// SAFETY: the texts have room for 16 and 32 bytes, more than any date takes, or any time up to the
/// mark before its fraction.
@safe struct TimePrinter {
    private let text: UnsafeMutableRawPointer
    private var days = Int64.min
    private var code = UInt16.max
    private var minute = Minute()
    private let minuteText: UnsafeMutableRawPointer

    /// The minute of the previous time.
    private struct Minute {
        var code = UInt32.max
        /// Its first number; `span`: the count of its numbers.
        var first: Int64 = 0
        var span: UInt64 = 0
        /// Numbers per second.
        var scale: UInt64 = 1
        /// Multiplying by this, of 2^64, replaces dividing by `scale`.
        var inverse: UInt64 = 0
        var digits = 0
        var bytes = 0
        /// The offset of the seconds.
        var at = 0
    }

    init(_ arena: inout Arena) throws(BlockProblem) {
        unsafe text = try arena.allocate(16)
        unsafe minuteText = try arena.allocate(32)
    }

    /// `code`: of a known form. SAFETY: room for its `bytes`, and a margin of 16 after them; the
    /// number is in its `range`. Returns what follows.
    @unsafe @inline(__always) mutating func print(
        _ code: UInt32, _ number: Int64, to target: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        let into = UInt64(bitPattern: number &- minute.first)
        guard code == minute.code, into < minute.span else {
            return unsafe printAll(code, number, to: target)
        }
        unsafe Slice.copyBlock(minuteText, target)
        if minute.at > 13 { unsafe Slice.copyBlock(minuteText + 16, target + 16) }
        let out = unsafe target + minute.at
        if minute.digits == 0 {
            unsafe TimeForm.two(
                Int64(truncatingIfNeeded: into), out.assumingMemoryBound(to: UInt8.self))
            return unsafe target + minute.bytes
        }
        // Cheaper than a division. The result is exact, or one too small.
        var seconds = into.multipliedFullWidth(by: minute.inverse).high
        var fraction = into &- seconds &* minute.scale
        if fraction >= minute.scale {
            seconds &+= 1
            fraction &-= minute.scale
        }
        unsafe TimeForm.two(
            Int64(truncatingIfNeeded: seconds), out.assumingMemoryBound(to: UInt8.self))
        unsafe Decimals.write(digits: fraction, minute.digits, to: out + 3)
        return unsafe target + minute.bytes
    }

    /// The same for a time in another minute, which is kept.
    @unsafe private mutating func printAll(
        _ code: UInt32, _ number: Int64, to target: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        guard let form = TimeForm(UInt16(truncatingIfNeeded: code)) else { return unsafe target }
        let (seconds, fraction) = form.parts(number)
        let size = form.dateBytes
        var ofDay = seconds
        if size > 0 {
            let found = TimeForm.days(seconds)
            ofDay = found.ofDay
            if found.days != days || form.dateCode != self.code {
                unsafe form.printDate(found.days, to: text)
                (days, self.code) = (found.days, form.dateCode)
            }
            // A stamp has 15 bytes, others 19 or more.
            unsafe target.copyMemory(from: text, byteCount: size < 8 ? 8 : 16)
        }
        unsafe form.printClock(ofDay, fraction, to: target + size)
        keep(form, code, number, ofDay % 60, fraction)
        unsafe minuteText.copyMemory(from: target, byteCount: min(form.bytes, size + 9))
        return unsafe target + form.bytes
    }

    private mutating func keep(
        _ form: TimeForm, _ code: UInt32, _ number: Int64, _ seconds: Int64, _ fraction: Int64
    ) {
        let scale = form.scale
        let (first, overflow) = number.subtractingReportingOverflow(
            seconds &* Int64(truncatingIfNeeded: scale) &+ fraction)
        minute = Minute(
            code: code, first: first, span: overflow ? 0 : 60 &* scale, scale: scale,
            inverse: .max / scale, digits: form.digits, bytes: form.bytes,
            at: form.dateBytes &+ 6)
    }
}
