// What the depot does when the archives that one is compared with are many, or gone, or cannot be
// read, and when there is no room left.

import Cordwood
import Foundation
import Glibc
import Synchronization
import XCTest

@testable import CordwoodCollector

final class DepotTests: CollectorCase {
    private final class Count: Sendable {
        let value = Mutex(0)
    }

    private final class Relation: Sendable {
        let value = Mutex(StoredArchive.Relation.other)
    }

    private func id(_ number: Int) -> String {
        String(format: "%08x-2222-3333-4444-555555555555", number)
    }

    private func make(
        _ inspector: ArchiveInspector = .text, _ change: (inout CollectorOptions) -> Void = { _ in }
    ) throws -> Depot {
        var options = CollectorOptions(directory: directory)
        change(&options)
        return try Depot(options, inspector: inspector)
    }

    private func take(_ text: String, _ depot: Depot) throws -> String {
        let file = try depot.admit()
        try Array(text.utf8).withUnsafeBytes { try depot.append($0, to: file) }
        switch depot.take(file, key: nil, from: Sender(client: 0)) {
        case .stored: return "stored"
        case .aside(_, _, let reason): return "aside: \(reason)"
        case .refused(let reason): return "refused: \(reason)"
        case .busy: return "busy"
        case .crowded: return "crowded"
        case .failed(let problem): return "failed \(problem.errno)"
        }
    }

    func testRoomComesBackWithWhatIsRemoved() throws {
        let depot = try make { $0.coversMax = 2 }
        for number in 1...2 {
            let text = archive(id: id(number), first: 3 * number, last: 3 * number)
            XCTAssertEqual(try take(text, depot), "stored")
        }
        unlink("\(directory)/archives/\(stored()[0])")
        let third = archive(id: id(3), first: 9, last: 9)
        XCTAssertEqual(try take(third, depot), "stored")
        let fourth = archive(id: id(4), first: 12, last: 12)
        XCTAssertEqual(try take(fourth, depot), "crowded")
        XCTAssertEqual(try take(third, depot), "stored", "what is known needs no room")
    }

    func testWhatGoesWhileItIsComparedIsGone() throws {
        var inspector = ArchiveInspector.text
        inspector.relate = { _, stored in
            unlink(stored)
            throw FileProblem(operation: "read", errno: ENOENT)
        }
        let depot = try make(inspector)
        XCTAssertEqual(try take(archive(id: id(1), first: 1, last: 1), depot), "stored")
        XCTAssertEqual(try take(archive(id: id(2), first: 1, last: 2), depot), "stored")
        XCTAssertEqual(stored().count, 1)
        XCTAssertNil(depot.problem)
    }

    func testWhatTakesItsPlaceMeanwhileIsCompared() throws {
        let merged = archive(id: id(3), first: 1, last: 3)
        let path = "\(directory)/archives/merged.cwa"
        var inspector = ArchiveInspector.text
        inspector.relate = { _, stored in
            if stored == path { return .contradiction("merged") }
            unlink(stored)
            try Data(merged.utf8).write(to: URL(fileURLWithPath: path))
            return .other
        }
        let depot = try make(inspector)
        XCTAssertEqual(try take(archive(id: id(1), first: 1, last: 1), depot), "stored")
        let taken = try take(archive(id: id(2), first: 1, last: 2), depot)
        XCTAssertEqual(taken, "aside: merged.cwa: merged")
    }

    func testAnArchiveThatCannotBeReadIsNoFullDisk() throws {
        var inspector = ArchiveInspector.text
        inspector.relate = { _, _ in throw FileProblem(operation: "read", errno: EIO) }
        let depot = try make(inspector)
        XCTAssertEqual(try take(archive(id: id(1), first: 1, last: 1), depot), "stored")
        XCTAssertEqual(try take(archive(id: id(2), first: 1, last: 2), depot), "failed \(EIO)")
        XCTAssertNil(depot.problem)
    }

    func testOneArchiveIsComparedWithFew() throws {
        let count = Count()
        var inspector = ArchiveInspector.text
        let relation = Relation()
        inspector.relate = { _, _ in
            count.value.withLock { $0 += 1 }
            return relation.value.withLock { $0 }
        }
        let folder = "\(directory)/archives"
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
        for number in 1...Depot.rivalsMax + 1 {
            let text = archive(id: id(number), first: 2 * number, last: 2 * number)
            try Data(text.utf8).write(to: URL(fileURLWithPath: "\(folder)/\(number).cwa"))
        }
        let depot = try make(inspector)
        func take(upTo rivals: Int) throws -> (result: String, compared: Int) {
            count.value.withLock { $0 = 0 }
            let text = archive(id: id(9_000 + rivals), first: 0, last: 2 * rivals + 1)
            let result = try self.take(text, depot)
            return (result, count.value.withLock { $0 })
        }
        // Headers alone.
        var taken = try take(upTo: Depot.rivalsMax + 1)
        XCTAssertTrue(taken.result.hasSuffix("too much to compare"), taken.result)
        XCTAssertEqual(taken.compared, 1)
        taken = try take(upTo: Depot.readMax + 1)
        XCTAssertEqual(taken.result, "stored")
        XCTAssertEqual(taken.compared, Depot.readMax + 1)
        // Records: what `cordwood compact` merges, and more, but not all.
        relation.value.withLock { $0 = .superset }
        taken = try take(upTo: 1_100)
        XCTAssertEqual(taken.result, "stored")
        taken = try take(upTo: Depot.readMax + 2)
        XCTAssertTrue(
            taken.result.hasPrefix("aside: ") && taken.result.hasSuffix("too much to compare"),
            taken.result)
        XCTAssertEqual(taken.compared, Depot.readMax)
    }

    /// What it is compared with counts, too: small checks wait for none of these.
    func testWhatIsComparedMakesACheckLarge() throws {
        var inspector = ArchiveInspector.text
        inspector.identify = {
            var facts = try ArchiveInspector.parse($0)
            facts.rawBytes = 40 << 20
            return facts
        }
        inspector.verify = inspector.identify
        let depot = try make(inspector)
        XCTAssertEqual(try take(archive(id: id(1), first: 1, last: 2), depot), "stored")
        for (first, wanted) in [(2, true), (3, false)] {
            let file = try depot.admit()
            defer { file.discard() }
            let text = Array(archive(id: id(2), first: first, last: 4).utf8)
            try text.withUnsafeBytes { try depot.append($0, to: file) }
            XCTAssertEqual(depot.isLarge(file), wanted)
        }
    }

    /// Of large ones, fewer.
    func testOneArchiveIsComparedWithLittle() throws {
        var inspector = ArchiveInspector.text
        inspector.verify = {
            var facts = try ArchiveInspector.parse($0)
            facts.rawBytes = 5 << 30
            return facts
        }
        inspector.relate = { _, _ in .superset }
        let depot = try make(inspector)
        for (first, last, wanted) in [(2, 2, "stored"), (4, 4, "stored"), (1, 2, "stored")] {
            let text = archive(id: id(100 * first + last), first: first, last: last)
            XCTAssertEqual(try take(text, depot), wanted)
        }
        let many = try take(archive(id: id(1), first: 1, last: 4), depot)
        XCTAssertTrue(many.hasSuffix("too much to compare"), many)
    }
}
