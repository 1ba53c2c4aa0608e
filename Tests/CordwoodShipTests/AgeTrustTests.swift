// Whether the clock is believed when archives are removed for their age: by hand, against a model,
// and with the file that keeps the state between runs.

import CordwoodCore
import XCTest

@testable import CordwoodShip
@testable import CordwoodStore

final class AgeTrustTests: XCTestCase {
    private let hour: UInt64 = 3_600_000_000_000
    private let day: UInt64 = 86_400_000_000_000
    private let start: UInt64 = 1_800_000_000_000_000_000

    private func look(_ boottime: UInt64, _ realtime: UInt64, boot: UInt64 = 1) -> ClockLook {
        ClockLook(boot: LaneID(high: boot, low: 7), boottimeNs: boottime, realtimeNs: realtime)
    }

    private func waits(_ left: UInt64, begins: Bool) -> AgeTrust.ClockVerdict {
        .waits(leftNs: left, begins: begins)
    }

    func testAJumpWaitsForADayOfBootTime() {
        var trust = AgeTrust()
        XCTAssertEqual(trust.look(look(hour, start), newestRecordNs: start), .believed)
        XCTAssertEqual(
            trust.look(look(40 * day, start + 40 * day - hour), newestRecordNs: start),
            .believed, "boot time vouches for forty days")
        let jumped = start + 80 * day
        XCTAssertEqual(
            trust.look(look(40 * day, jumped), newestRecordNs: start), waits(day, begins: true))
        XCTAssertEqual(
            trust.look(look(41 * day - 1, jumped + day - 1), newestRecordNs: start),
            waits(1, begins: false))
        XCTAssertEqual(
            trust.look(look(41 * day, jumped + day), newestRecordNs: start), .believed)
    }

    func testAJumpBackWaitsAndLessThanAnHourDoesNot() {
        var trust = AgeTrust()
        _ = trust.look(look(hour, start), newestRecordNs: start)
        XCTAssertEqual(
            trust.look(look(2 * hour, start + 2 * hour), newestRecordNs: start), .believed)
        XCTAssertEqual(
            trust.look(look(3 * hour, start + 2 * hour), newestRecordNs: start), .believed)
        XCTAssertEqual(
            trust.look(look(3 * hour, start - day), newestRecordNs: start),
            waits(day, begins: true))
    }

    func testWithoutAnAnchorTheNewestRecordTells() {
        var young = AgeTrust()
        XCTAssertEqual(young.look(look(hour, start + day), newestRecordNs: start), .believed)
        var old = AgeTrust()
        XCTAssertEqual(
            old.look(look(hour, start + day + 1), newestRecordNs: start), waits(day, begins: true))
        var unknown = AgeTrust()
        XCTAssertEqual(unknown.look(look(hour, start), newestRecordNs: 0), .believed)
    }

    func testAnotherBoot() {
        var trust = AgeTrust()
        _ = trust.look(look(hour, start), newestRecordNs: start)
        // Off for a night: believed. For a week: perhaps a jump.
        var night = trust
        XCTAssertEqual(
            night.look(look(0, start + 12 * hour, boot: 2), newestRecordNs: start), .believed)
        var week = trust
        XCTAssertEqual(
            week.look(look(0, start + 7 * day, boot: 2), newestRecordNs: start),
            waits(day, begins: true))
        // The rest of the wait goes on after the next boot, in that boot's time.
        XCTAssertEqual(
            week.look(look(6 * hour, start + 7 * day + 6 * hour, boot: 2), newestRecordNs: 0),
            waits(18 * hour, begins: false))
        XCTAssertEqual(
            week.look(look(hour, start + 7 * day + 8 * hour, boot: 3), newestRecordNs: 0),
            waits(17 * hour, begins: false))
        XCTAssertEqual(
            week.look(look(18 * hour, start + 8 * day + hour, boot: 3), newestRecordNs: 0),
            .believed)
    }

    func testEachMachineJudgesItsOwnClock() {
        var trust = AgeTrust()
        for machine in 1...3 as ClosedRange<UInt64> {
            _ = trust.look(look(machine * day, start, boot: machine), newestRecordNs: start)
        }
        XCTAssertEqual(
            trust.look(look(2 * day, start + 50 * day, boot: 2), newestRecordNs: start),
            waits(day, begins: true))
        XCTAssertEqual(
            trust.look(look(3 * day, start, boot: 3), newestRecordNs: start), .believed)
        XCTAssertEqual(
            trust.look(look(2 * day + hour, start + 50 * day + hour, boot: 2), newestRecordNs: 0),
            waits(23 * hour, begins: false))
        for boot in 10...30 as ClosedRange<UInt64> {
            _ = trust.look(look(day, start, boot: boot), newestRecordNs: start)
        }
        XCTAssertEqual(trust.anchors.count, AgeTrust.anchorsMax)
    }

    /// Days pass and clocks are set, in any order: removal waits exactly while the last change of
    /// more than an hour is younger than a day of boot time.
    func testAgainstAModel() {
        var seed: UInt64 = 20_261_123
        func random(_ bound: UInt64) -> UInt64 {
            seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (seed >> 33) % bound
        }
        for round in 0..<500 {
            var trust = AgeTrust()
            var (boottime, realtime) = (random(100) * hour, start)
            var until: UInt64 = 0
            _ = trust.look(look(boottime, realtime), newestRecordNs: start)
            for step in 0..<40 {
                let passed = random(40) * hour
                boottime += passed
                realtime += passed
                var begins = false
                if random(4) == 0 {
                    let by = random(60) * hour
                    realtime = random(2) == 0 ? realtime + by : realtime - by
                    begins = by > hour
                    if begins { until = boottime + day }
                }
                // One run ends and another begins.
                if random(3) == 0 { trust = try! ClockFile.parse(ClockFile.bytes(trust)) }
                let verdict = trust.look(look(boottime, realtime), newestRecordNs: random(2))
                let wanted: AgeTrust.ClockVerdict =
                    boottime >= until ? .believed : waits(until - boottime, begins: begins)
                XCTAssertEqual(verdict, wanted, "round \(round), step \(step)")
            }
        }
    }

    func testTheFile() {
        var trust = AgeTrust()
        _ = trust.look(look(5, start, boot: 0x0123_4567_89AB_CDEF), newestRecordNs: start)
        _ = trust.look(look(9, start + 9 * day, boot: 2), newestRecordNs: start)
        let text = String(decoding: ClockFile.bytes(trust), as: UTF8.self)
        XCTAssertTrue(
            text.hasPrefix(
                "cordwood clock\nformat 1\nseen efcdab89674523010700000000000000 5 \(start) 0\n"),
            text)
        XCTAssertEqual(try ClockFile.parse(Array(text.utf8)), trust)
        func read(_ text: String) throws -> AgeTrust? {
            let store = try TestStore()
            try text.write(toFile: store.root + "/clock", atomically: true, encoding: .utf8)
            return ClockFile.read(storeDirectory: FilePath(store.root))
        }
        XCTAssertEqual(try read("junk\n"), AgeTrust())
        XCTAssertNil(try read("cordwood clock\nformat 2\n"))
        // Nothing makes it wait longer than a day.
        let long = text.replacingOccurrences(of: "\(9 + day)\n", with: "\(UInt64.max)\n")
        XCTAssertNotEqual(long, text)
        XCTAssertEqual(try ClockFile.parse(Array(long.utf8)).anchors.last?.waitsUntilNs, 0)
        let many =
            "cordwood clock\nformat 1\n"
            + String(repeating: "seen \(String(repeating: "a", count: 32)) 1 2 3\n", count: 99)
        XCTAssertEqual(try ClockFile.parse(Array(many.utf8)).anchors.count, AgeTrust.anchorsMax)
    }

    func testWhatIsWorthWriting() {
        var trust = AgeTrust()
        _ = trust.look(look(hour, start), newestRecordNs: start)
        XCTAssertTrue(trust.differs(from: AgeTrust()))
        let written = trust
        _ = trust.look(look(hour + 60, start + 60), newestRecordNs: start)
        XCTAssertFalse(trust.differs(from: written))
        var later = written
        _ = later.look(look(2 * hour, start + hour), newestRecordNs: start)
        XCTAssertTrue(later.differs(from: written))
        var jumped = written
        _ = jumped.look(look(hour + 60, start + 9 * day), newestRecordNs: start)
        XCTAssertTrue(jumped.differs(from: written))
    }

    // ── In a store ──

    /// A clock set forward by forty days deletes nothing for a day; quota and count still apply.
    func testAStoreSurvivesAJump() throws {
        let store = try TestStore()
        for number in 1...4 { store.addArchive(number) }
        var service = try store.service()
        let byAge = RetentionLimits(quotaBytes: 0, archivesMax: 0, expirationDays: 30)
        service.setLimits(byAge)
        XCTAssertEqual(try service.applyRetention(otherBytes: 0), 0)
        // Another run.
        service = try store.service()
        service.setLimits(byAge)
        store.clock.jump(ms: 40 * 86_400_000)
        XCTAssertEqual(try service.applyRetention(otherBytes: 0), 0)
        XCTAssertEqual(try service.applyRetention(otherBytes: 0), 0)
        XCTAssertEqual(store.events.diagnostics.count, 1, "\(store.events.diagnostics)")
        XCTAssertTrue(store.events.diagnostics[0].hasPrefix("the clock may have jumped"))
        service.setLimits(RetentionLimits(quotaBytes: 0, archivesMax: 3, expirationDays: 30))
        XCTAssertEqual(try service.applyRetention(otherBytes: 0), 1)
        XCTAssertEqual(store.events.all, ["removed count"])
        store.clock.advance(ms: 86_400_000 - 1)
        XCTAssertEqual(try service.applyRetention(otherBytes: 0), 0)
        store.clock.advance(ms: 1)
        XCTAssertEqual(try service.applyRetention(otherBytes: 0), 3)
        XCTAssertEqual(store.events.all.last, "removed expired")
    }

    /// If the wait cannot be written down, this process remembers it.
    func testAStoreWhoseClockFileCannotBeWritten() throws {
        let store = try TestStore()
        store.addArchive(1)
        let service = try store.service()
        service.setLimits(RetentionLimits(quotaBytes: 0, archivesMax: 0, expirationDays: 30))
        XCTAssertEqual(try service.applyRetention(otherBytes: 0), 0)
        let temporary = store.root + "/.clock.new"
        XCTAssertEqual(mkdir(temporary, 0o700), 0)
        store.clock.jump(ms: 40 * 86_400_000)
        for _ in 1...23 {
            XCTAssertEqual(try service.applyRetention(otherBytes: 0), 0)
            store.clock.advance(ms: 3_600_000)
        }
        XCTAssertEqual(store.events.diagnostics.count, 1, "\(store.events.diagnostics)")
        store.clock.advance(ms: 3_600_000)
        XCTAssertEqual(try service.applyRetention(otherBytes: 0), 1)
        XCTAssertEqual(rmdir(temporary), 0)
    }
}
