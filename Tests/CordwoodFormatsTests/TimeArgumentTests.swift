// Times as people type them.

import CordwoodFormats
import XCTest

final class TimeArgumentTests: XCTestCase {
    private let now: UInt64 = 1_800_000_000_000_000_000

    private func parse(_ text: String) -> UInt64? {
        TimeArgument.parse(text, nowNs: now, utc: true)
    }

    func testAgo() {
        XCTAssertEqual(parse("10m"), now - 600_000_000_000)
        XCTAssertEqual(parse("2h"), now - 7_200_000_000_000)
        XCTAssertEqual(parse("3d"), now - 259_200_000_000_000)
        XCTAssertEqual(parse("1w"), now - 604_800_000_000_000)
        XCTAssertEqual(parse("250ms"), now - 250_000_000)
        XCTAssertEqual(parse("0s"), now)
        XCTAssertEqual(parse("now"), now)
        XCTAssertEqual(parse("999999d"), 1, "before 1970 is the beginning")
    }

    func testAgesInWords() {
        let hour: UInt64 = 3_600_000_000_000
        for text in ["1h30m", "-1h30m", "1h30m ago", "90m", "90m ago", "1h1800s"] {
            XCTAssertEqual(parse(text), now - hour * 3 / 2, text)
        }
        XCTAssertEqual(parse("1w2d"), now - 9 * 24 * hour)
    }

    /// `now` is 2027-01-15 08:00:00 UTC.
    func testDays() {
        let midnight = now - 8 * 3_600_000_000_000
        let day: UInt64 = 86_400_000_000_000
        let minute: UInt64 = 60_000_000_000
        XCTAssertEqual(parse("today"), midnight)
        XCTAssertEqual(parse("yesterday"), midnight - day)
        XCTAssertEqual(parse("today 10:00"), midnight + 600 * minute, "may be to come")
        XCTAssertEqual(parse("yesterday 14:30"), midnight - day + 870 * minute)
        XCTAssertEqual(
            parse("yesterday 14:30:15.5"), midnight - day + 870 * minute + 15_500_000_000)
        XCTAssertEqual(parse("yesterday 14:30+02:00"), midnight - day + 750 * minute)
        // The first day of a month.
        let first = TimeArgument.parse("2026-03-01T12:00Z", nowNs: now, utc: true) ?? 0
        XCTAssertEqual(
            TimeArgument.parse("yesterday", nowNs: first, utc: true), parse("2026-02-28"))
    }

    /// A day begins at the user's midnight and need not have 24 hours.
    func testDaysOfAZone() {
        setenv("TZ", "Europe/Berlin", 1)
        tzset()
        defer {
            unsetenv("TZ")
            tzset()
        }
        func local(_ text: String, at time: String) -> UInt64? {
            TimeArgument.parse(text, nowNs: parse(time) ?? 0, utc: false)
        }
        XCTAssertEqual(local("today", at: "2026-11-21T23:30:00Z"), parse("2026-11-21T23:00Z"))
        XCTAssertEqual(
            local("yesterday 10:00", at: "2026-11-21T23:30:00Z"), parse("2026-11-21T09:00Z"))
        // Summer time ended at 01:00 UTC on the day before.
        XCTAssertEqual(local("yesterday", at: "2026-10-26T12:00Z"), parse("2026-10-24T22:00Z"))
        XCTAssertEqual(local("10m ago", at: "2026-10-26T12:00Z"), parse("2026-10-26T11:50Z"))
    }

    func testSecondsSince1970() {
        XCTAssertEqual(parse("@1763800000"), 1_763_800_000_000_000_000)
        XCTAssertEqual(parse("@1763800000.25"), 1_763_800_000_250_000_000)
        XCTAssertEqual(parse("@0"), 0)
    }

    func testRFC3339() {
        let second: UInt64 = 1_795_248_930
        XCTAssertEqual(parse("2026-11-21T08:15:30Z"), second * 1_000_000_000)
        XCTAssertEqual(parse("2026-11-21t08:15:30z"), second * 1_000_000_000)
        let exact = second * 1_000_000_000 + 123_456_789
        XCTAssertEqual(parse("2026-11-21T08:15:30.123456789Z"), exact)
        XCTAssertEqual(parse("2026-11-21T08:15:30.5Z"), second * 1_000_000_000 + 500_000_000)
        XCTAssertEqual(parse("2026-11-21T10:15:30+02:00"), second * 1_000_000_000)
        XCTAssertEqual(parse("2026-11-20T22:45:30-09:30"), second * 1_000_000_000)
        XCTAssertEqual(parse("2026-11-21 08:15:30"), second * 1_000_000_000)
        XCTAssertEqual(parse("2026-11-21 08:15"), (second - 30) * 1_000_000_000)
        XCTAssertEqual(parse("2026-11-21"), (second - 29_730) * 1_000_000_000)
    }

    func testLastDaysOfMonths() {
        for text in ["2024-02-29", "2026-02-28", "2000-02-29", "2026-12-31", "2026-04-30"] {
            XCTAssertNotNil(parse(text), text)
        }
    }

    func testNoTimes() {
        for text in [
            "", "x", "10", "10x", "--5m", "-", "ago", " ago", "5 ago", "1h30", "h", "2026", "@",
            "@x", "@-1", "@1.", "@99999999999999999999", "yesterdayx", "today 10", "tomorrow",
            "yesterday ago", "2026-13-01", "2026-02-29", "2026-04-31", "2026-11-31", "2100-02-29",
            "2026-11-00", "2026-11-21T", "2026-11-21T25:00",
            "2026-11-21T08:15:30.Z", "2026-11-21T08:15:30Zx", "1960-01-01", "99999999999999999999d",
            "2026-11-21T08:15:30+25:00",
        ] {
            XCTAssertNil(parse(text), text)
        }
    }
}
