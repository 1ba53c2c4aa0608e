// Which segments go into which archive: the first one with the second, and small lanes of ended
// programs together.

import CordwoodCore
import CordwoodStore
import CordwoodTestSupport
import Foundation
import XCTest

@testable import Cordwood
@testable import CordwoodEngine

final class ArchivingTests: XCTestCase {
    private func directory() throws -> String {
        let path = StorePlace.path("archiving")
        addTeardownBlock { try? FileManager.default.removeItem(atPath: path) }
        return path
    }

    private func open(_ directory: String) throws -> Engine {
        var options = EngineOptions()
        options.segmentBytes = 64 << 10
        return try Engine(directory: directory, options: options)
    }

    /// The names in `folder` without the lane, and those of archives without the digits.
    private func names(_ directory: String, _ folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "\(directory)/\(folder)")
            .compactMap { name in
                let parts = name.split(separator: ".").dropFirst()
                guard let first = parts.first, let last = parts.last else { return nil }
                return parts.count == 3 ? ".\(first).\(last)" : "." + parts.joined(separator: ".")
            }.sorted()
    }

    private func messages(_ directory: String) throws -> [String] {
        let reader = try StoreReader(path: directory)
        var found: [String] = []
        while let record = reader.nextRecord() {
            if record.logger == "a" { found.append(record.message) }
        }
        XCTAssertEqual(reader.problems.count, 0)
        return found
    }

    func testTheFirstSegmentWaitsForTheSecond() throws {
        let directory = try directory()
        let engine = try open(directory)
        let log = engine.logger("a")
        let text = String(repeating: "x", count: 200)
        var written: [String] = []
        while try engine.stats().segmentsSealed < 5 {
            written.append("\(written.count) \(text)")
            log.info("\(written.last ?? "")")
        }
        try engine.roll()
        try engine.archiveWait(timeout: .seconds(60))
        let archives = try names(directory, "archives")
        XCTAssertEqual(archives.count { $0.hasPrefix(".00000000-") }, 1, "\(archives)")
        XCTAssertFalse(archives.contains(".00000000-00000000.cwa"), "\(archives)")
        XCTAssertEqual(try messages(directory), written)
        try engine.close()
    }

    func testTheFirstSegmentGoesAloneIfSomebodyWaits() throws {
        let directory = try directory()
        let engine = try open(directory)
        engine.logger("a").info("one")
        try engine.roll()
        try engine.archiveWait(timeout: .seconds(60))
        XCTAssertEqual(try names(directory, "archives"), [".00000000-00000000.cwa"])
        try engine.close()
    }

    func testSmallLanesOfEndedProgramsGoTogether() throws {
        let directory = try directory()
        var written: [String] = []
        for lane in 0..<3 {
            let engine = try open(directory)
            let log = engine.logger("a")
            for number in 0..<400 {
                written.append("\(lane) \(number) " + String(repeating: "y", count: 150))
                log.info("\(written.last ?? "")")
            }
            try engine.close()
        }
        let left = try names(directory, "lanes")
        XCTAssertEqual(left.count { $0.hasPrefix(".00000001-") }, 3, "\(left)")
        let summary = try StoreArchiver.archiveDead(directory: FilePath(directory))
        XCTAssertEqual(summary.damage, [])
        XCTAssertEqual(summary.lanes, 3)
        XCTAssertEqual(summary.segments, 6)
        let archives = try names(directory, "archives")
        XCTAssertEqual(archives, [".00000000-00000001+2.cwa"])
        XCTAssertEqual(try names(directory, "lanes"), [])
        XCTAssertEqual(try messages(directory), written)
        // Killed before the segments went: they are covered, so nothing is archived again.
        XCTAssertEqual(try StoreArchiver.archiveDead(directory: FilePath(directory)).archives, 0)
    }

    /// The nice value of a thread of this process; nil: there is no such thread.
    private func nice(of name: String) -> Int? {
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
        for task in tasks {
            guard
                let stat = try? String(
                    contentsOfFile: "/proc/self/task/\(task)/stat", encoding: .utf8),
                let end = stat.lastIndex(of: ")"), stat.contains("(\(name))")
            else { continue }
            return Int(stat[end...].split(separator: " ")[17])
        }
        return nil
    }

    /// The ship thread is nicer than the host. While too much waits for it, a thread at the host's
    /// priority archives, until it has caught up.
    func testThePriorityRisesWithWhatWaits() throws {
        try full()
        let directory = try directory()
        let engine = try open(directory)
        let services = try engine.services()
        let log = engine.logger("a")
        let text = String(repeating: "x", count: 200)
        var written: [String] = []
        func write(segments: Int) throws {
            let goal = try engine.stats().segmentsSealed + UInt64(segments)
            while try engine.stats().segmentsSealed < goal {
                for _ in 0..<50 {
                    written.append("\(written.count) \(text)")
                    log.info("\(written.last ?? "")")
                }
            }
        }
        func pause(until isDone: () -> Bool) {
            for _ in 0..<60_000 {
                if isDone() { return }
                Thread.sleep(forTimeInterval: 0.001)
            }
            XCTFail("nothing has happened for a minute")
        }
        // As if the ship thread were making an archive all the time.
        services.monitor.locked { services.archivingEpoch = -1 }
        try write(segments: services.raisesAbove / 2)
        XCTAssertEqual(services.raisedArchives, 0)
        XCTAssertFalse(services.monitor.locked { services.isArchiverRaised })
        try write(segments: services.raisesAbove)
        pause { services.monitor.locked { services.isArchiverRaised } }
        pause { nice(of: "cordwood-urgent") != nil }
        XCTAssertEqual(nice(of: "cordwood-urgent"), nice(of: "cordwood-supply"))
        pause { nice(of: "cordwood-ship") == nice(of: "cordwood-supply").map { min($0 + 10, 19) } }

        services.monitor.locked {
            services.archivingEpoch = nil
            services.monitor.notify()
        }
        pause { services.monitor.locked { !services.isArchiverRaised } }
        XCTAssertGreaterThan(services.raisedArchives, 0)
        XCTAssertLessThanOrEqual(
            services.monitor.locked { services.sealedWaiting.count }, Services.segmentsBehindMax)
        try engine.archiveWait(timeout: .seconds(60))
        // Not XCTAssertEqual, which would print all messages.
        XCTAssertTrue(try messages(directory) == written)
        try engine.close()
    }
}
