// Compacting: the same records in fewer and smaller archives, whoever reads or dies meanwhile.

import CordwoodCore
import CordwoodTestSupport
import Foundation
import XCTest

@testable import Cordwood
@testable import CordwoodEngine
@testable import CordwoodStore

final class CompactTests: XCTestCase {
    private func directory() throws -> String {
        let path = StorePlace.path("compact")
        addTeardownBlock { try? FileManager.default.removeItem(atPath: path) }
        return path
    }

    /// A store of that many programs, each with an archive for every 500 records.
    private func store(
        programs: Int = 2, archives: Int = 3, service: (Int) -> String = { _ in "shop" }
    ) throws -> String {
        let directory = try directory()
        for program in 0..<programs {
            let engine = try Engine(directory: directory)
            try engine.setResource("service.name", service(program))
            let log = engine.logger("a.b")
            for archive in 0..<archives {
                for number in 0..<500 {
                    log.info(
                        "order \(number) of \(program), \(archive)",
                        fields: ["price": .double(Double(number) / 4)])
                }
                try engine.roll()
                try engine.archiveWait(timeout: .seconds(60))
            }
            try engine.close()
        }
        _ = try StoreArchiver.archiveDead(directory: FilePath(directory))
        return directory
    }

    private func names(_ directory: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory + "/archives").sorted()
    }

    private func path(_ directory: String, _ name: String) -> String {
        "\(directory)/archives/\(name)"
    }

    /// Everything that a reader shows of each record.
    private func records(_ directory: String) throws -> [String] {
        let reader = try StoreReader(path: directory)
        var found: [String] = []
        var record = RecordRef()
        while reader.skipProblems(&record) {
            var line: [UInt8] = []
            JSONLine.append(record, to: &line)
            found.append("\(record.id) " + String(decoding: line, as: UTF8.self))
        }
        XCTAssertEqual(reader.problemCount, 0, "\(reader.problems)")
        return found
    }

    private func compact(_ directory: String) throws -> CompactingSummary {
        let summary = try StoreCompactor.compact(directory: FilePath(directory), ageSeconds: 0)
        XCTAssertEqual(summary.damage, [])
        let report = try StoreInspector.verify(directory: directory)
        XCTAssertEqual(report.problems, [])
        return summary
    }

    func testArchivesBecomeOneWithTheSameRecords() throws {
        let directory = try store()
        let before = try records(directory)
        let old = try names(directory)
        XCTAssertGreaterThanOrEqual(old.count, 6)
        let ids = try old.map { try ArchiveInfo.peek(path: FilePath(path(directory, $0))).idText }
        let summary = try compact(directory)
        XCTAssertEqual(summary.archivesIn, old.count)
        XCTAssertEqual(summary.archivesOut, 1)
        XCTAssertLessThan(summary.bytesOut, summary.bytesIn)
        let made = try names(directory)
        XCTAssertEqual(made.count, 1)
        XCTAssertTrue(try records(directory) == before)
        let info = try ArchiveInfo.peek(path: FilePath(path(directory, made[0])))
        XCTAssertEqual(Set(info.replaced.map { ArchiveIdentity.text($0.id) }), Set(ids))
        XCTAssertEqual(made[0], ArchiveIdentity.fileName(of: info.covers, info.id))
        XCTAssertEqual(info.covers.count, 2, "neighbours of a lane are one")
        XCTAssertEqual(try compact(directory).archivesIn, 0, "there is nothing left to do")
        XCTAssertEqual(try names(directory), made)
    }

    func testOnlyArchivesOfOneResourceBecomeOne() throws {
        let directory = try store(programs: 3, service: { $0 == 1 ? "other" : "shop" })
        let before = try records(directory)
        XCTAssertEqual(try compact(directory).archivesOut, 2)
        XCTAssertEqual(try names(directory).count, 2)
        XCTAssertTrue(try records(directory) == before)
    }

    func testWhatATargetHasBegunWithStays() throws {
        let directory = try store(programs: 1)
        let old = try names(directory)
        let begun = try XCTUnwrap(StorePaths.stem(ofFile: old[1]))
        let paths = StorePaths(FilePath(directory))
        try paths.makeDirectories()
        try Outbox(paths: paths).set(
            begun, TargetKey(name: "t"),
            to: .retry(attempts: 1, notBeforeMs: 5, reason: .failed), cause: "x")
        XCTAssertEqual(try compact(directory).archivesIn, old.count - 1)
        XCTAssertTrue(try names(directory).contains(old[1]))
        XCTAssertEqual(try Outbox(paths: paths).states(begun).count, 1)
    }

    func testWhatSomebodySendsStays() throws {
        let directory = try store(programs: 1)
        let old = try names(directory)
        let held = Files.open(FilePath(path(directory, old[0])), [.readWrite])
        defer { close(held) }
        XCTAssertTrue(Files.lockOpenFile(held))
        let before = try records(directory)
        XCTAssertEqual(try compact(directory).archivesIn, old.count - 1)
        XCTAssertTrue(try names(directory).contains(old[0]))
        XCTAssertTrue(try records(directory) == before)
    }

    /// A death between the new name and the removal of the old ones.
    func testWhatAnotherArchiveReplacesIsPassedOver() throws {
        let directory = try store()
        let before = try records(directory)
        let old = try names(directory)
        let kept = directory + "-kept"
        addTeardownBlock { try? FileManager.default.removeItem(atPath: kept) }
        try FileManager.default.copyItem(atPath: directory + "/archives", toPath: kept)
        _ = try compact(directory)
        for name in old {
            try FileManager.default.copyItem(
                atPath: "\(kept)/\(name)", toPath: path(directory, name))
        }
        XCTAssertEqual(try names(directory).count, old.count + 1)
        XCTAssertTrue(try records(directory) == before)
        XCTAssertEqual(try StoreInspector.stats(directory: directory).archives, 1)
        XCTAssertEqual(
            try StoreInspector.verify(directory: directory).records, UInt64(before.count))
        // Nothing is archived or replaced again; the rest is removed.
        XCTAssertEqual(try StoreArchiver.archiveDead(directory: FilePath(directory)).archives, 0)
        let summary = try compact(directory)
        XCTAssertEqual([summary.archivesLeft, summary.archivesIn], [old.count, 0])
        XCTAssertEqual(try names(directory).count, 1)
        XCTAssertTrue(try records(directory) == before)
    }

    /// An archive in progress when a compacting program died; a young one may be under way.
    func testOldUnfinishedArchivesGo() throws {
        let directory = try store(programs: 1, archives: 1)
        let lane = try XCTUnwrap(names(directory).first?.prefix { $0 != "." })
        let old = path(directory, "\(lane).00000003-00000004+1.part")
        let young = path(directory, "\(lane).00000005-00000006.part")
        for name in [old, young] {
            XCTAssertTrue(FileManager.default.createFile(atPath: name, contents: Data([1])))
        }
        try FileManager.default.setAttributes(
            [.modificationDate: Date().addingTimeInterval(-7_200)], ofItemAtPath: old)
        _ = try compact(directory)
        XCTAssertFalse(FileManager.default.fileExists(atPath: old))
        XCTAssertTrue(FileManager.default.fileExists(atPath: young))
    }

    /// A reader that has the old ones open goes on; a following one shows nothing again.
    func testReadersBesideIt() throws {
        let directory = try store(programs: 1)
        let before = try records(directory)
        var options = ReaderOptions()
        options.follow = true
        let follower = try StoreReader(path: directory, options: options)
        var record = RecordRef()
        var count = 0
        while try follower.advance(into: &record) { count += 1 }
        XCTAssertEqual(count, before.count)
        let open = try ArchiveSource.open(path: FilePath(path(directory, names(directory)[0])))
        XCTAssertNotNil(try open.advance())
        XCTAssertEqual(try compact(directory).archivesOut, 1)
        var left = 1
        while try open.advance() != nil { left += 1 }
        XCTAssertEqual(UInt64(left), open.header.recordCount)
        for _ in 0..<3 { XCTAssertFalse(try follower.advance(into: &record), "shown again") }
        let engine = try Engine(directory: directory)
        engine.logger("a.b").info("another")
        try engine.close()
        var later: [String] = []
        let bound = Date().addingTimeInterval(20)
        while !later.contains("another"), Date() < bound {
            while try follower.advance(into: &record) {
                later.append(Bytes.string(record.message))
            }
            usleep(10_000)
        }
        XCTAssertEqual(later.filter { $0.hasPrefix("order") }, [])
        XCTAssertTrue(later.contains("another"))
    }

    private func copy(of directory: String) throws -> String {
        let made = try self.directory()
        try FileManager.default.copyItem(atPath: directory, toPath: made)
        return made
    }

    /// What a reader returns if the archives are replaced after its first `count` records.
    private func read(
        _ directory: String, _ options: ReaderOptions = ReaderOptions(), compactAfter count: Int
    ) throws -> [String] {
        let reader = try StoreReader(path: directory, options: options)
        var found: [String] = []
        var record = RecordRef()
        while true {
            if found.count == count { _ = try compact(directory) }
            guard reader.skipProblems(&record) else { break }
            found.append("\(record.id) \(Bytes.string(record.message))")
        }
        XCTAssertEqual(reader.problemCount, 0, "after \(count): \(reader.problems)")
        return found
    }

    /// A reader that has listed archives finds their replacement, and shows every record once, in
    /// order.
    func testReadersThatListedBeforeIt() throws {
        try full()
        for (programs, archives) in [(1, 4), (2, 3)] {
            let store = try store(programs: programs, archives: archives)
            let whole = try read(store, compactAfter: .max)
            XCTAssertGreaterThanOrEqual(whole.count, programs * archives * 500)
            for count in stride(from: 0, to: whole.count, by: 167) {
                let found = try read(copy(of: store), compactAfter: count)
                XCTAssertTrue(found == whole, "\(programs) programs, after \(count)")
            }
        }
    }

    func testThreadsThatEndedBeforeAreNotShownAgain() throws {
        let store = try directory()
        let engine = try Engine(directory: store)
        for archive in 0..<4 {
            for name in ["one", "two"] {
                let ended = expectation(description: name)
                Thread.detachNewThread {
                    let log = engine.logger(name)
                    for number in 0..<200 { log.info("\(number) of \(archive)") }
                    ended.fulfill()
                }
                wait(for: [ended], timeout: 30)
            }
            try engine.roll()
            try engine.archiveWait(timeout: .seconds(60))
        }
        try engine.close()
        _ = try StoreArchiver.archiveDead(directory: FilePath(store))
        let whole = try read(store, compactAfter: .max)
        for count in stride(from: 100, to: whole.count, by: 150) {
            XCTAssertTrue(try read(copy(of: store), compactAfter: count) == whole, "after \(count)")
        }
    }

    func testReadersOfPartsThatListedBeforeIt() throws {
        try full()
        let store = try store(programs: 2, archives: 3)
        var containing = ReaderOptions()
        containing.containing = Array("order 49".utf8)
        var last = ReaderOptions()
        last.last = 700
        var unordered = ReaderOptions()
        unordered.isUnordered = true
        unordered.level = 9
        for (options, step) in [(containing, 5), (last, 1_000), (unordered, 400)] {
            let whole = try read(store, options, compactAfter: .max)
            XCTAssertGreaterThan(whole.count, 20)
            for count in stride(from: 0, to: whole.count, by: step) {
                let found = try read(copy(of: store), options, compactAfter: count)
                // Without order, records of several programs may be interleaved otherwise.
                XCTAssertTrue(found.sorted() == whole.sorted(), "after \(count)")
            }
        }
    }

    /// Archives that are gone without a replacement are reported.
    func testArchivesThatAreGoneAreTold() throws {
        let store = try store(programs: 1, archives: 4)
        let reader = try StoreReader(path: store)
        for name in try names(store) {
            try FileManager.default.removeItem(atPath: path(store, name))
        }
        var record = RecordRef()
        while reader.skipProblems(&record) {}
        XCTAssertGreaterThan(reader.problemCount, 0)
    }

    private func outbox(_ directory: String) throws -> Outbox {
        let paths = StorePaths(FilePath(directory))
        try paths.makeDirectories()
        return Outbox(paths: paths)
    }

    private func stems(_ directory: String) throws -> [String] {
        try names(directory).compactMap { StorePaths.stem(ofFile: $0) }
    }

    /// Archives that every target has, or wants nothing of, become one with the same states.
    func testArchivesOfEqualStatesBecomeOne() throws {
        let directory = try store(programs: 1, archives: 6)
        let before = try records(directory)
        let outbox = try outbox(directory)
        let (sent, none) = (TargetKey(name: "sent"), TargetKey(name: "none"))
        let old = try stems(directory)
        for (index, stem) in old.enumerated() where index > 0 {
            try outbox.set(stem, sent, to: .sent(httpStatus: index == 1 ? 201 : 200))
            try outbox.set(stem, none, to: .filtered)
        }
        try outbox.set(
            old[2], none, to: .retry(attempts: 1, notBeforeMs: 5, reason: .failed))
        let states = try old.map { try outbox.states($0) }
        XCTAssertEqual(try compact(directory).archivesIn, old.count - 3)
        let left = try stems(directory)
        XCTAssertEqual(left.count, 4)
        for (index, stem) in old.enumerated() {
            XCTAssertEqual(try outbox.states(stem), index < 3 ? states[index] : [:], stem)
        }
        let made = try XCTUnwrap(left.first { !old.contains($0) })
        XCTAssertEqual(try outbox.states(made), [sent: .sent(httpStatus: 200), none: .filtered])
        XCTAssertTrue(try records(directory) == before)
    }

    /// A death before the new archive had the states: it gets them before the old ones go.
    func testStatesAreInherited() throws {
        for survivors in [2, 1] {
            let directory = try store(programs: 1, archives: 2)
            let outbox = try outbox(directory)
            let target = TargetKey(name: "t")
            let old = try stems(directory)
            for stem in old { try outbox.set(stem, target, to: .sent(httpStatus: 200)) }
            let before = try copy(of: directory)
            XCTAssertEqual(try compact(directory).archivesOut, 1)
            let made = try XCTUnwrap(stems(directory).first)
            for stem in old.suffix(survivors) {
                try FileManager.default.copyItem(
                    atPath: path(before, stem + ".cwa"), toPath: path(directory, stem + ".cwa"))
                try outbox.set(stem, target, to: .sent(httpStatus: 200))
            }
            try outbox.set(made, target, to: .waiting)
            // While the new one is locked, nothing goes.
            let held = Files.open(FilePath(path(directory, made + ".cwa")), [.readWrite])
            XCTAssertTrue(Files.lockOpenFile(held))
            XCTAssertEqual(try compact(directory).archivesLeft, 0)
            XCTAssertEqual(try stems(directory).count, 1 + survivors)
            close(held)
            XCTAssertEqual(try compact(directory).archivesLeft, survivors)
            XCTAssertEqual(try outbox.states(made), [target: .sent(httpStatus: 200)])
            XCTAssertEqual(try stems(directory), [made])
        }
    }

    func testSmallBlocksBecomeLargeOnes() throws {
        try full()
        let directory = try directory()
        let engine = try Engine(directory: directory)
        let log = engine.logger("a")
        // Each block names all of these again. That outweighs the times, which differ from run to
        // run and may take more bytes in larger blocks.
        let texts = (1...500).map { number in
            (1...3).map { String(UInt64(number * $0) &* 0x9E37_79B9_7F4A_7C15, radix: 36) }
                .joined()
        }
        for number in 0..<40_000 {
            log.info("line \(number) of \(texts[number * 7 % 500]), \(number % 7) \(number * 31)")
        }
        try engine.roll()
        try engine.archiveWait(timeout: .seconds(60))
        try engine.close()
        _ = try StoreArchiver.archiveDead(directory: FilePath(directory))
        let before = try records(directory)
        let name = try XCTUnwrap(
            names(directory).first {
                (try? ArchiveInfo.peek(path: FilePath(path(directory, $0))).blockCount) ?? 0 > 1
            })
        let old = try ArchiveInfo.peek(path: FilePath(path(directory, name)))
        // An archive with a state at a target keeps its name and id, and is not merged.
        let paths = StorePaths(FilePath(directory))
        try paths.makeDirectories()
        let stem = try XCTUnwrap(StorePaths.stem(ofFile: name))
        try Outbox(paths: paths).set(stem, TargetKey(name: "t"), to: .sent(httpStatus: 200))
        _ = try compact(directory)
        let info = try ArchiveInfo.peek(path: FilePath(path(directory, name)))
        XCTAssertEqual(info.id, old.id)
        XCTAssertEqual(info.recordCount, old.recordCount)
        XCTAssertLessThan(info.blockCount, old.blockCount)
        XCTAssertLessThan(info.fileBytes, old.fileBytes)
        XCTAssertEqual(info.replaced, [])
        XCTAssertTrue(try records(directory) == before)
    }

    func testDamagedAndEncryptedAndYoungArchivesStay() throws {
        let directory = try store(programs: 1)
        let old = try names(directory)
        XCTAssertEqual(
            try StoreCompactor.compact(directory: FilePath(directory), ageSeconds: 3_600)
                .archivesIn, 0)
        XCTAssertEqual(try names(directory), old)
        var bytes = Array(try Data(contentsOf: URL(fileURLWithPath: path(directory, old[1]))))
        bytes[bytes.count / 2] ^= 0x40
        try Data(bytes).write(to: URL(fileURLWithPath: path(directory, old[1])))
        let summary = try StoreCompactor.compact(directory: FilePath(directory), ageSeconds: 0)
        XCTAssertEqual(summary.damage.count, 1, "\(summary.damage)")
        XCTAssertTrue(try names(directory).contains(old[1]))
        XCTAssertEqual(
            Array(try Data(contentsOf: URL(fileURLWithPath: path(directory, old[1])))), bytes)
    }
}
