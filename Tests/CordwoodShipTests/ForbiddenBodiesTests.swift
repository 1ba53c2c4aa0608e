// The count of 403s, by the hour and in a row, against times that are handed in.

import XCTest

@testable import CordwoodShip

final class ForbiddenBodiesTests: XCTestCase {
    func testRefusalsAreCountedByTheHour() {
        var count = ForbiddenBodies()
        for second in 0..<16 {
            let now = UInt64(second) * 1_000
            XCTAssertEqual(count.left(nowMs: now), 16 - second)
            XCTAssertEqual(count.freeMs(again: false, nowMs: now), 0)
            XCTAssertEqual(count.freeMs(again: true, nowMs: now) == 0, second < 12)
            count.noteBody(nowMs: now)
        }
        count.noteTaken()
        XCTAssertEqual(count.left(nowMs: 16_000), 0)
        XCTAssertEqual(count.freeMs(again: false, nowMs: 16_000), 3_600_000)
        XCTAssertEqual(count.freeMs(again: true, nowMs: 16_000), 3_604_000)
        XCTAssertEqual(count.freeMs(again: false, nowMs: 3_600_000), 0)
        count.noteBody(nowMs: 3_600_000)
        XCTAssertEqual(count.freeMs(again: false, nowMs: 3_600_000), 3_601_000)
        XCTAssertEqual(ForbiddenBodies().freeMs(again: true, nowMs: 0), 0)
        var set = ForbiddenBodies()
        for _ in 0..<16 { set.noteBody(nowMs: 9_000_000) }
        XCTAssertEqual(set.freeMs(again: true, nowMs: 8_000_000), 0, "the clock was set back")
        // Attempts that ran side by side count once.
        var row = ForbiddenBodies()
        for _ in 0..<3 { row.noteRefused(before: 0, nowMs: 0, random: 0) }
        XCTAssertEqual(row.inRow, 1)
        row.noteRefused(before: 1, nowMs: 0, random: 0)
        XCTAssertTrue(row.refusesUs)
        XCTAssertEqual(row.untilMs, 60_000)
        row.noteRefused(before: 2, nowMs: 0, random: 0)
        XCTAssertEqual(row.untilMs, 120_000)
        row.noteCertain()
        row.noteRefused(before: .max, nowMs: 0, random: 0)
        XCTAssertTrue(row.isCertain)
        row.noteTaken()
        XCTAssertEqual(row, ForbiddenBodies())
    }
}
