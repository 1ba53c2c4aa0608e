// Compacting encrypted archives: to the same recipients, and only if the identities of all of them
// were given. Which archives one replaces shows without a key.

import CordwoodCore
import CordwoodTestSupport
import Foundation
import XCTest

@testable import Cordwood
@testable import CordwoodEngine
@testable import CordwoodStore

final class CompactEncryptedTests: XCTestCase {
    private let first = AgeIdentity.generate()
    private let second = AgeIdentity.generate()

    /// A store with one archive for each of these sets of recipients.
    private func store(_ recipients: [[AgeIdentity]]) throws -> String {
        let directory = StorePlace.path("sealed")
        addTeardownBlock { try? FileManager.default.removeItem(atPath: directory) }
        for (number, keys) in recipients.enumerated() {
            let engine = try Engine(directory: directory)
            let log = engine.logger("a.b")
            for line in 0..<200 { log.info("order \(line) of \(number)") }
            try engine.close()
            let summary = try StoreArchiver.archiveDead(
                directory: FilePath(directory), recipients: keys.map(\.recipient))
            XCTAssertEqual(summary.archives, 1)
        }
        return directory
    }

    private func paths(_ directory: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory + "/archives").sorted()
            .map { "\(directory)/archives/\($0)" }
    }

    private func records(_ directory: String, _ identities: [AgeIdentity]) throws -> [String] {
        var options = ReaderOptions()
        options.identities = identities
        let reader = try StoreReader(path: directory, options: options)
        var found: [String] = []
        var record = RecordRef()
        while reader.skipProblems(&record) {
            found.append("\(record.id) \(Bytes.string(record.message))")
        }
        XCTAssertEqual(reader.problemCount, 0, "\(reader.problems)")
        return found
    }

    private func compact(
        _ directory: String, _ identities: [AgeIdentity]
    ) throws -> CompactingSummary {
        let summary = try StoreCompactor.compact(
            directory: FilePath(directory), ageSeconds: 0, identities: identities)
        XCTAssertEqual(summary.damage, [])
        let report = try StoreInspector.verify(directory: directory, identities: identities)
        XCTAssertEqual(report.problems, [])
        return summary
    }

    private func contents(_ directory: String) throws -> [Data] {
        try paths(directory).map { try Data(contentsOf: URL(fileURLWithPath: $0)) }
    }

    func testAllRecipientsCanReadWhatBecameOne() throws {
        let directory = try store([[first, second], [second, first], [first, second]])
        let before = try records(directory, [first])
        XCTAssertGreaterThanOrEqual(before.count, 600)
        let old = try paths(directory)
        let files = try contents(directory)
        // The header names no recipients: without every key they cannot be known.
        for identities in [[], [first], [AgeIdentity.generate()]] {
            let summary = try compact(directory, identities)
            XCTAssertEqual([summary.archivesIn, summary.archivesLocked], [0, 3])
            XCTAssertEqual(try contents(directory), files)
        }
        let ids = try old.map { try ArchiveInfo.peek(path: FilePath($0)).id }
        let summary = try compact(directory, [first, second])
        XCTAssertEqual(
            [summary.archivesIn, summary.archivesOut, summary.archivesLocked], [3, 1, 0])
        let made = try paths(directory)
        XCTAssertEqual(made.count, 1)
        let facts = try ArchiveInfo.peek(path: FilePath(made[0]))
        XCTAssertTrue(facts.isEncrypted)
        XCTAssertEqual(Set(facts.replaced.map(\.id)), Set(ids), "without a key")
        let inside = try ArchiveInfo.peek(path: FilePath(made[0]), identities: [second])
        XCTAssertEqual(inside.replaced, facts.replaced)
        for identity in [first, second] {
            XCTAssertTrue(try records(directory, [identity]) == before)
        }
        XCTAssertNil(try contents(directory)[0].range(of: Data("order".utf8)))
        XCTAssertEqual(try compact(directory, [first, second]).archivesIn, 0)
    }

    func testOnlyArchivesOfTheSameRecipientsBecomeOne() throws {
        let sets = [[first], [first, second], [], [second], [first], [second, first], []]
        let directory = try store(sets)
        let before = try records(directory, [first, second])
        let summary = try compact(directory, [first, second])
        XCTAssertEqual([summary.archivesIn, summary.archivesOut], [6, 3])
        var found: [[String]] = []
        for path in try paths(directory) {
            let file = try ArchiveFile(path: FilePath(path), identities: [first, second])
            let recipients = try XCTUnwrap(file.recipients([first, second]))
            XCTAssertEqual(file.isEncrypted, !recipients.isEmpty)
            found.append(recipients.map(\.text).sorted())
        }
        XCTAssertEqual(found.count, 4)
        XCTAssertEqual(
            Set(found), Set(sets.map { $0.map(\.recipient.text).sorted() }))
        XCTAssertTrue(try records(directory, [first, second]) == before)
    }

    /// A death between the new name and the removal of the old ones: readers need no key to skip
    /// them. They go once somebody with the key has seen that the new one has their records.
    func testWhatItReplacedGoesWithTheKey() throws {
        let directory = try store([[first], [first], [first]])
        let before = try records(directory, [first])
        let kept = try zip(paths(directory), contents(directory)).map { ($0, $1) }
        XCTAssertEqual(try compact(directory, [first]).archivesOut, 1)
        for (path, content) in kept { try content.write(to: URL(fileURLWithPath: path)) }
        XCTAssertEqual(try paths(directory).count, 4)
        XCTAssertTrue(try records(directory, [first]) == before)
        XCTAssertEqual(try StoreInspector.stats(directory: directory).encrypted.count, 1)
        XCTAssertEqual(try compact(directory, []).archivesLeft, 0)
        XCTAssertEqual(try paths(directory).count, 4)
        let summary = try compact(directory, [first])
        XCTAssertEqual([summary.archivesLeft, summary.archivesIn], [3, 0])
        XCTAssertEqual(try paths(directory).count, 1)
        XCTAssertTrue(try records(directory, [first]) == before)
    }

    /// The new archive is damaged: nothing that it replaces goes.
    func testNothingGoesForADamagedReplacement() throws {
        let directory = try store([[first], [first]])
        let kept = try zip(paths(directory), contents(directory)).map { ($0, $1) }
        XCTAssertEqual(try compact(directory, [first]).archivesOut, 1)
        let made = try paths(directory)[0]
        var content = try contents(directory)[0]
        content[content.count - 20] ^= 1
        try content.write(to: URL(fileURLWithPath: made))
        for (path, content) in kept { try content.write(to: URL(fileURLWithPath: path)) }
        for keys in [[], [first]] {
            let summary = try StoreCompactor.compact(
                directory: FilePath(directory), ageSeconds: 0, identities: keys)
            XCTAssertEqual(summary.archivesLeft, 0)
            XCTAssertEqual(try paths(directory).count, 3)
        }
    }
}
