// Whose a lane is: which tokens are one client's, what becomes of the lanes of a token that is
// gone, and that the file says the same after a restart.

import Cordwood
import Foundation
import Glibc
import XCTest

@testable import CordwoodCollector

final class SendersTests: CollectorCase {
    private var owners: [LaneID: UInt32] = [:]

    override func setUpWithError() throws {
        try super.setUpWithError()
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true)
    }

    private func open() throws -> Senders {
        owners = [:]
        return try Senders(directory: directory) { self.owners[$0] = $1 }
    }

    /// The list of tokens changes as `rounds` says; each time, or at the end, the file is opened
    /// again. What the last token may do with a lane that the first one sent at first.
    private func right(_ rounds: [[String]], _ first: String, _ last: String) throws
        -> Set<Senders.Right>
    {
        var found: Set<Senders.Right> = []
        for reopens in [true, false] {
            try? FileManager.default.removeItem(atPath: "\(directory)/senders")
            let lane = LaneID(high: 7, low: 8)
            var senders = try open()
            var numbers: [String: UInt32] = [:]
            for (index, lines) in rounds.enumerated() {
                if reopens { senders = try open() }
                let clients = lines.map { $0.split(separator: " ").map { Array($0.utf8) } }
                for (line, number) in zip(lines, try senders.learn(clients)) {
                    for token in line.split(separator: " ") { numbers[String(token)] = number }
                }
                if index == 0 {
                    try senders.note([lane], Sender(client: numbers[first] ?? 0))
                }
            }
            senders = try open()
            found.insert(senders.right(of: numbers[last] ?? 0, to: owners[lane]))
            let text = try String(contentsOfFile: "\(directory)/senders", encoding: .utf8)
            XCTAssertFalse(text.contains("token-"), text)
        }
        return found
    }

    func testWhoseALaneIs() throws {
        let (a, b, c) = ("token-a", "token-b", "token-c")
        for (rounds, first, last, wanted) in [
            ([[a, b]], a, a, .own),
            ([[a, b]], a, b, .another),
            // Two tokens of a line are one client's, also when one is gone.
            ([[a, b], ["\(a) \(c)", b]], a, c, .own),
            ([[a, b], ["\(a) \(c)", b], [c, b]], a, c, .own),
            ([[a, b], ["\(a) \(c)", b], [c, b]], a, b, .another),
            ([[a, c], ["\(a) \(c)"], [c]], a, c, .own),
            // A token that takes another one's place.
            ([[a, b], [c, b]], a, c, .open),
            ([[a, b], [c, b]], a, b, .another),
            ([[a], [c]], a, c, .open),
            ([[a], [c], [a]], a, a, .own),
            // One that comes back was known beside it all the same.
            ([[c, a], [a], [b], [a]], c, a, .another),
            ([[a], [a, c], [c]], a, c, .open),
            ([[a], [a, c]], a, c, .another),
            // Without tokens nobody can be told from others.
            ([[], [a, b]], "", a, .open),
            ([[a], []], a, "", .own),
        ] as [([[String]], String, String, Senders.Right)] {
            XCTAssertEqual(try right(rounds, first, last), [wanted], "\(rounds) \(first) \(last)")
        }
    }

    /// What a power cut leaves of the last line counts for nothing, and the next line is whole.
    func testATornLineIsSkipped() throws {
        let (one, two) = (LaneID(high: 1, low: 1), LaneID(high: 2, low: 2))
        let path = "\(directory)/senders"
        try open().note([one], Sender(client: 12))
        let whole = try Data(contentsOf: URL(fileURLWithPath: path))
        for length in 0..<whole.count {
            try whole.prefix(length).write(to: URL(fileURLWithPath: path))
            try open().note([two], Sender(client: 3))
            _ = try open()
            XCTAssertEqual(owners[two], 3, "\(length)")
            XCTAssertTrue([nil, 12].contains(owners[one]), "\(length)")
        }
        // Clients are one only if the whole line says so.
        try FileManager.default.removeItem(atPath: path)
        let tokens = (1...13).map { [Array("token-\($0)".utf8)] }
        XCTAssertEqual(try open().learn(tokens), Array(1...13))
        let before = try Data(contentsOf: URL(fileURLWithPath: path))
        let together = Array(tokens.prefix(11)) + [tokens[11] + tokens[12]]
        XCTAssertEqual(try open().learn(together), Array(1...12))
        let after = try Data(contentsOf: URL(fileURLWithPath: path))
        for length in before.count..<after.count {
            try after.prefix(length).write(to: URL(fileURLWithPath: path))
            try open().note([two], Sender(client: 3))
            XCTAssertEqual(try open().right(of: 1, to: 13), .another, "\(length)")
        }
        let foreign = "something else, that is longer than what a new file begins with, by far\n"
        try Data(foreign.utf8).write(to: URL(fileURLWithPath: path))
        XCTAssertThrowsError(try open())
    }

    // MARK: The table

    private func facts(_ lane: UInt64, _ segments: [UInt64]) -> (ArchiveFacts, LaneID) {
        var facts = ArchiveFacts(id: "", laneName: "", first: segments[0], last: segments[0])
        facts.segments = LaneRanges(LaneID(high: lane, low: 0), segments.map { $0...$0 })
        return (facts, LaneID(high: lane, low: segments[0]))
    }

    private enum Outcome: Equatable { case stored, busy, full, foreign }

    /// Stores the archive if it may be; `settles`: false: it is still being judged.
    private func enter(
        _ table: ArchiveTable, _ made: (ArchiveFacts, LaneID), _ client: UInt32,
        _ senders: Senders, settles: Bool = true
    ) -> Outcome {
        switch table.enter(made.0, made.1, from: client, senders) {
        case .entered(let number, _, let claims):
            guard table.hasRoom(number, made.0, claims: claims, senders) else {
                table.leave(number, made.0)
                return .full
            }
            if settles {
                table.settle(number, name: "\(made.1.hex) \(client)", claims: claims)
            }
            return .stored
        case .busy: return .busy
        case .foreign: return .foreign
        }
    }

    func testTwoAtOnce() throws {
        let senders = try open()
        _ = try senders.learn([[Array("token-a".utf8)], [Array("token-b".utf8)]])
        let table = ArchiveTable(coversMax: 100)
        let (a, b) = (facts(1, [1]), facts(1, [2]))
        guard case .entered(let number, _, _) = table.enter(a.0, a.1, from: 1, senders) else {
            return XCTFail()
        }
        XCTAssertEqual(enter(table, a, 1, senders), .busy, "the same archive")
        XCTAssertEqual(
            enter(table, b, 2, senders), .busy, "of a lane that is nobody's yet, by another client")
        table.leave(number, a.0)
        XCTAssertEqual(enter(table, b, 2, senders), .stored)
        // It may be stored soon, and then another client that has it gets an answer.
        let c = facts(1, [3])
        XCTAssertEqual(enter(table, c, 2, senders, settles: false), .stored)
        XCTAssertEqual(enter(table, c, 1, senders), .busy)
        XCTAssertEqual(enter(table, facts(1, [4]), 1, senders), .foreign)
    }

    func testNoClientTakesTheRoomOfOthers() throws {
        let senders = try open()
        let alone = ArchiveTable(coversMax: 16)
        let even = (0..<17).map { 2 * UInt64($0) }
        XCTAssertEqual(enter(alone, facts(1, even), 1, senders), .full)
        XCTAssertEqual(enter(alone, facts(1, even.dropLast()), 1, senders), .stored)
        XCTAssertEqual(enter(alone, facts(2, [1]), 1, senders), .full)

        let tokens = (1...20).map { [Array("token-\($0)".utf8)] }
        XCTAssertEqual(try senders.learn(tokens), Array(1...20))
        // Nobody lacks room yet: a fleet that has one token gets a second one.
        let fleet = ArchiveTable(coversMax: 16)
        XCTAssertEqual(enter(fleet, facts(1, Array(even.prefix(8))), 1, senders), .stored)
        XCTAssertEqual(enter(fleet, facts(1, [17]), 1, senders), .full)
        XCTAssertEqual(enter(fleet, facts(2, [1]), 2, senders), .stored)

        let table = ArchiveTable(coversMax: 16)
        for client in 2...9 as ClosedRange<UInt32> {
            XCTAssertEqual(enter(table, facts(UInt64(client), [1]), client, senders), .stored)
        }
        // Neighbours are one.
        XCTAssertEqual(enter(table, facts(1, [1, 2, 3, 4, 5]), 1, senders), .stored)
        XCTAssertEqual(enter(table, facts(1, [7, 9, 11]), 1, senders), .full, "an eighth")
        XCTAssertEqual(enter(table, facts(1, [7]), 1, senders), .stored)
        XCTAssertEqual(enter(table, facts(99, [1]), 1, senders), .full)
        for client in 10...15 as ClosedRange<UInt32> {
            XCTAssertEqual(enter(table, facts(UInt64(client), [1]), client, senders), .stored)
        }
        XCTAssertEqual(enter(table, facts(16, [1]), 16, senders), .full, "a lane too many")
        XCTAssertEqual(enter(table, facts(15, [3]), 15, senders), .stored, "its own lane")
        // What is gone takes no room.
        for rival in table.stored where rival.name.hasSuffix(" 1") { table.forget(rival) }
        table.tidyUp()
        XCTAssertEqual(enter(table, facts(1, [21]), 1, senders), .stored)
        // Two that have become one have one share.
        let together = [tokens[1] + tokens[2]] + tokens.dropFirst(3)
        XCTAssertEqual(try senders.learn(together).first, 2)
        XCTAssertEqual(enter(table, facts(3, [3]), 2, senders), .full)
    }

    func testALaneHasAsManyCoversAsAnArchive() throws {
        let senders = try open()
        let table = ArchiveTable(coversMax: 1 << 20)
        let most = UInt64(ArchiveTable.laneCoversMax)
        let even = (0..<most).map { 2 * $0 }
        XCTAssertEqual(enter(table, facts(1, even), 1, senders), .stored)
        XCTAssertEqual(enter(table, facts(1, [2 * most]), 1, senders), .full)
        XCTAssertEqual(enter(table, facts(2, [2 * most]), 1, senders), .stored)
    }

    /// Somebody else may have seen that it is gone, and one may have its name again.
    func testAnArchiveIsForgottenOnce() throws {
        let senders = try open()
        let table = ArchiveTable(coversMax: 16)
        XCTAssertEqual(enter(table, facts(1, [1]), 1, senders), .stored)
        let rival = try XCTUnwrap(table.stored.first)
        table.forget(rival)
        XCTAssertFalse(table.has(name: rival.name))
        XCTAssertTrue(table.reserve(name: rival.name))
        table.forget(rival)
        XCTAssertTrue(table.has(name: rival.name))
    }

    /// Two archives with as many covers as a lane may have: the lock is held for a moment.
    func testManyCovers() throws {
        let senders = try open()
        let table = ArchiveTable(coversMax: 1 << 20)
        let made = [0, 1].map { (start: UInt64) in
            facts(1, (0..<32_768).map { 4 * $0 + 2 * start }.reversed())
        }
        let begin = clock()
        for made in made { XCTAssertEqual(enter(table, made, 1, senders), .stored) }
        guard
            case .entered(let number, let rivals, _) = table.enter(
                made[0].0, LaneID(high: 9, low: 9), from: 1, senders)
        else { return XCTFail() }
        XCTAssertEqual(rivals.count, 1)
        table.leave(number, made[0].0)
        XCTAssertLessThan(Double(clock() - begin) / Double(CLOCKS_PER_SEC), 5)
    }

    // MARK: A full disk

    /// Revoked tokens need no room.
    func testATokenGoesWhenTheDiskIsFull() throws {
        let path = "\(directory)/tokens"
        func write(_ text: String) throws {
            try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        }
        var options = CollectorOptions(directory: directory)
        options.tokenFile = path
        try write("token-a\ntoken-b\n")
        let senders = try open()
        let tokens = try Tokens(options)
        try tokens.begin(senders)
        func counts() -> [Bool] {
            ["a", "b", "c"].map { tokens.client(Array("token-\($0)".utf8)) != nil }
        }
        XCTAssertEqual(counts(), [true, true, false])
        for (text, isTold, wanted) in [
            ("token-b\ntoken-c\n", true, [false, true, false]),
            ("token-b\n", false, [false, true, false]),
        ] {
            try write(text)
            XCTAssertEqual(FullDisk.during { tokens.lookAgain(senders) != nil }, isTold, text)
            XCTAssertEqual(counts(), wanted, text)
        }
        try write("token-b\ntoken-c\n")
        XCTAssertNil(tokens.lookAgain(senders))
        XCTAssertEqual(counts(), [false, true, true])
    }

    func testATokenHasOneClient() throws {
        let path = "\(directory)/tokens"
        func problem(_ given: [String], _ text: String) throws -> String? {
            try Data(text.utf8).write(to: URL(fileURLWithPath: path))
            var options = CollectorOptions(directory: directory)
            (options.tokens, options.tokenFile) = (given, path)
            do throws(CollectorError) {
                _ = try Tokens(options)
                return nil
            } catch { return "\(error)" }
        }
        XCTAssertNil(try problem(["token-a"], "token-b token-c\ntoken-d\n"))
        for (given, text) in [
            ([], "token-a\ntoken-a\n"), ([], "token-a token-b\ntoken-b\n"),
            (["token-a"], "token-a\n"), (["token-a", "token-a"], "token-b\n"),
            ([], "token-a token-a\n"),
        ] as [([String], String)] {
            let told = try XCTUnwrap(try problem(given, text), text)
            XCTAssertTrue(told.contains("twice"), told)
            XCTAssertFalse(told.contains("token-a"), told)
        }
    }
}

/// No file may grow.
private enum FullDisk {
    static func during<Result>(_ work: () throws -> Result) rethrows -> Result {
        var before = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &before)
        let handler = signal(SIGXFSZ, SIG_IGN)
        var none = before
        none.rlim_cur = 1
        setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &none)
        defer {
            setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &before)
            signal(SIGXFSZ, handler)
        }
        return try work()
    }
}
