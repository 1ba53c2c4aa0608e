// The arguments of tail, stats, export, log and the verbs that work on one store.

import CordwoodCore
import CordwoodEngine
import CordwoodShip
import CordwoodStore
import CordwoodTestSupport
import Foundation
import XCTest

final class ReadingVerbTests: CommandCase {
    private func log(_ text: String, logger: String = "app") throws {
        let done = try run(
            "log", "--store", store, "--logger", logger, input: Data(text.utf8))
        XCTAssertEqual(done.code, 0, done.error)
    }

    private func numbers(_ arguments: String...) throws -> [Int] {
        try run(prepare(arguments)).lines.map { Int($0.split(separator: " ").last ?? "") ?? -1 }
    }

    // MARK: tail

    func testTailsCounts() throws {
        try log((1...30).map { "line \($0)\n" }.joined())
        XCTAssertEqual(try numbers("tail", "-n1", store), [30])
        XCTAssertEqual(try numbers("tail", "-3", store), [28, 29, 30])
        XCTAssertEqual(try numbers("tail", store, "-2", "--utc"), [29, 30])
        XCTAssertEqual(try numbers("tail", "-n", "+28", store), [28, 29, 30])
        XCTAssertEqual(try numbers("tail", "-n+30", store), [30])
        XCTAssertEqual(try numbers("tail", "-n", "+31", store), [])
        XCTAssertEqual(try numbers("tail", "-n", "+1", store), Array(1...30))
        XCTAssertEqual(try numbers("tail", "-n", "+0", store), Array(1...30))
        for count in ["x", "+", "+x", "1.5", ""] {
            XCTAssertEqual(try run("tail", "-n", count, store).code, 2, count)
        }
        // `-5` as the value of another option, and as a store's name.
        XCTAssertEqual(try run("grep", "-e", "-5", store).code, 1)
        XCTAssertEqual(try run("tail", "--", "-5").code, 4)
    }

    func testFollowingEndsWhenTheTimeHasPassed() throws {
        try log("before\n")
        let soon = Date().addingTimeInterval(5)
        let until = String(format: "@%.3f", soon.timeIntervalSince1970)
        let process = prepare(["tail", "-F", "--until", until, store])
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        defer { process.terminate() }
        XCTAssertTrue(
            String(decoding: pipe.fileHandleForReading.availableData, as: UTF8.self)
                .contains("before"))
        try log("after\n")
        let isInTime = Date() < soon
        let rest = String(
            decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        XCTAssertEqual(process.terminationStatus, 0)
        XCTAssertGreaterThanOrEqual(Date(), soon)
        XCTAssertTrue(!isInTime || rest.contains("after"), "written in time: \(rest)")
        // A time in the past.
        XCTAssertEqual(try run("tail", "-f", "--until", "0s ago", store).lines.count, 2)
        XCTAssertEqual(try run("http", "-f", "--until", "now", store).code, 0)
    }

    // MARK: stats

    func testStatsByLoggerProcessAndHour() throws {
        let hour: UInt64 = 3_600_000_000_000
        let first = Writer.start / hour * hour
        try write { writer in
            for index in 0..<UInt64(30) {
                for _ in 0...index {
                    writer.record(
                        kind: 0, logger: "app.n\(index % 12)", time: first + index * hour + 7, [])
                }
            }
        }
        for isArchived in [false, true] {
            if isArchived { XCTAssertEqual(try run("archive", store).code, 0) }
            let object = try XCTUnwrap(run("stats", "--json", store).objects().first)
            let loggers = try XCTUnwrap(object["loggers"] as? [String: Int])
            XCTAssertEqual(loggers.count, 12)
            XCTAssertEqual(loggers["app.n0"], 1 + 13 + 25)
            XCTAssertEqual(loggers["app.n11"], 12 + 24)
            let hours = try XCTUnwrap(object["hours"] as? [String: Int])
            XCTAssertEqual(hours.count, 30)
            XCTAssertEqual(hours.values.reduce(0, +), 465)
            let processes = try XCTUnwrap(object["processes"] as? [[String: Any]])
            XCTAssertEqual(processes.count, 1)
            XCTAssertEqual(processes[0]["records"] as? Int, 465)
            XCTAssertEqual(processes[0]["pid"] as? Int32, getpid())
            let text = try run("stats", store).text
            // n5 has 6 + 18 + 30 records, n4 5 + 17 + 29; the two that are not named are n6 and n7.
            XCTAssertTrue(text.contains("by logger:\n  app.n5: 54\n  app.n4: 51\n"), text)
            XCTAssertTrue(text.contains("  and 2 more: 54\n"), text)
            XCTAssertTrue(text.contains("[\(getpid())]: 465\n"), text)
            XCTAssertTrue(text.contains("by hour, UTC:\n  6 earlier: 21\n  2026-"), text)
            XCTAssertTrue(text.contains(":00: 30\n"), text)
        }
        let some = try run("stats", store, "--logger", "app.n3").text
        XCTAssertTrue(some.contains("by logger:\n  app.n3: 48\nby process:"), some)
    }

    /// Each archive has the service of its time.
    func testStatsOfAServiceThatIsNamedLate() throws {
        let engine = try Engine(directory: store)
        let writer = Writer(engine: engine)
        writer.record(kind: 0, logger: "app", [])
        try engine.roll()
        try engine.archiveWait(timeout: .seconds(10))
        try engine.setResource("service.name", "shop")
        for _ in 0..<3 { writer.record(kind: 0, logger: "app", []) }
        XCTAssertTrue(try engine.close())
        for isArchived in [false, true] {
            if isArchived { XCTAssertEqual(try run("archive", store).code, 0) }
            let shop = try run("cat", store, "-q", "service:shop").lines.count
            XCTAssertGreaterThanOrEqual(shop, 3)
            let object = try XCTUnwrap(run("stats", "--json", store).objects().first)
            XCTAssertEqual(object["services"] as? [String: Int], ["shop": shop])
            XCTAssertTrue(try run("stats", store).text.contains("\nservices  shop\n"))
        }
    }

    /// A few are named and the rest counted; processes of one service count once.
    func testStatsNameServicesAndHosts() throws {
        func writer(_ service: String, _ host: String) throws {
            let engine = try Engine(directory: store)
            try engine.setResource("service.name", service)
            try engine.setResource("host.name", host)
            Writer(engine: engine).record(kind: 0, logger: "app", [])
            XCTAssertTrue(try engine.close())
        }
        try writer("", "")
        var text = try run("stats", store).text
        XCTAssertFalse(text.contains("services"), text)
        XCTAssertFalse(text.contains("hosts"), text)
        try writer("shop\u{1B}", "a-1")
        try writer("till", "a-2")
        try writer("till", "a-2")
        for isArchived in [false, true] {
            if isArchived { XCTAssertEqual(try run("archive", store).code, 0) }
            text = try run("stats", store).text
            XCTAssertTrue(text.contains("\nservices  till, shop\\x1b\nhosts     a-2, a-1\n"), text)
        }
        let object = try XCTUnwrap(run("stats", "--json", store).objects().first)
        let (services, hosts) = (
            object["services"] as? [String: Int], object["hosts"] as? [String: Int]
        )
        XCTAssertEqual(services?.keys.sorted(), ["shop\u{1B}", "till"])
        XCTAssertEqual(hosts?["a-2"], services?["till"])
        let processes = try XCTUnwrap(object["processes"] as? [[String: Any]])
        XCTAssertEqual(processes.count(where: { $0["service"] as? String == "till" }), 1)
        XCTAssertEqual(processes.count(where: { $0["host"] == nil }), 1)
        for number in 1...5 { try writer("s\(number)", "b") }
        text = try run("stats", store).text
        XCTAssertTrue(text.contains(" and 2 more\n"), text)
        XCTAssertTrue(text.contains("hosts     b, a-2, a-1\n"), text)
    }

    /// The limits of programs that set none, those of a policy, and what limits have removed.
    func testStatsNameLimitsAndWhatTheyRemoved() throws {
        try log("line\n")
        var text = try run("stats", store).text
        let line = "\nlimits    30 days (default), 5368709120 bytes (default); beyond"
        XCTAssertTrue(text.contains(line), text)
        XCTAssertFalse(text.contains("not sent"), text)
        try keep("{\"quota_bytes\": 33554432, \"max_files\": 4, \"expiration_days\": 0}", allow: 1)
        let removed =
            "cordwood removed\nformat 1\nsum expired 2 30 1000000000 2000000000\n"
            + "archive quota lane.00000001-00000001 1 3000000000 3000000000 a @\n"
        try Data(removed.utf8).write(to: URL(fileURLWithPath: store + "/removed"))
        text = try run("stats", store).text
        XCTAssertTrue(
            text.contains("\nlimits    33554432 bytes (policy), 10 archives (policy); beyond"), text
        )
        XCTAssertTrue(
            text.contains(
                "not sent  30 records of 2 archives, deleted: expired; "
                    + "1970-01-01T00:00:01.000Z to 1970-01-01T00:00:02.000Z\n"), text)
        XCTAssertTrue(text.contains("not sent  1 record of 1 archive, deleted: quota; 1970"), text)
        let object = try XCTUnwrap(run("stats", "--json", store).objects().first)
        let limits = try XCTUnwrap(object["limits"] as? [String: Any])
        XCTAssertEqual(limits["quota_bytes"] as? Int, 33_554_432)
        XCTAssertEqual(limits["expiration_days"] as? Int, 0)
        let sums = try XCTUnwrap(object["not_sent"] as? [[String: Any]])
        XCTAssertEqual(sums.map { $0["reason"] as? String }, ["quota", "expired"])
        XCTAssertEqual(sums.map { $0["records"] as? Int }, [1, 30])
    }

    /// Archives that contradict those of a collector's store lie in quarantine/, each with a text.
    func testStatsCountWhatLiesAside() throws {
        try log("line\n")
        func aside() throws -> Int? {
            try run("stats", "--json", store).objects().first?["aside"] as? Int
        }
        XCTAssertEqual(try aside(), 0)
        XCTAssertFalse(try run("stats", store).text.contains("\naside "))
        try FileManager.default.createDirectory(
            atPath: store + "/quarantine", withIntermediateDirectories: false)
        for name in ["a.cwa", "a.why", "b.cwa", "b.why"] {
            try Data().write(to: URL(fileURLWithPath: "\(store)/quarantine/\(name)"))
        }
        XCTAssertEqual(try aside(), 2)
        XCTAssertTrue(
            try run("stats", store).text.contains("\naside     2 archives in quarantine/\n"))
    }

    private func keep(_ json: String, allow: Int) throws {
        let policy =
            "cordwood policy\nformat 1\nurl \(String(repeating: "0", count: 32))\n"
            + "origin http://localhost\nsaved 1\nallow \(allow)\n\n" + json
        try Data(policy.utf8).write(to: URL(fileURLWithPath: store + "/policy"))
    }

    /// A policy binds other programs of the store only as far as the program that keeps it says.
    func testByDefaultAKeptPolicyErasesNothing() throws {
        for number in 0..<12 {
            try log("line \(number)\n")
            XCTAssertEqual(try run("archive", store).code, 0)
        }
        for (allow, left) in [(0, 12), (2, 12), (1, 10)] {
            try keep("{\"max_files\": 1, \"expiration_days\": 0}", allow: allow)
            let limit = allow & 1 == 0 ? "bytes (default); beyond" : "10 archives (policy)"
            XCTAssertTrue(try run("stats", store).text.contains(limit), limit)
            try log("more\n")
            let names = try FileManager.default.contentsOfDirectory(atPath: store + "/archives")
            XCTAssertEqual(names.filter { $0.hasSuffix(".cwa") }.count, left, "\(allow)")
        }
    }

    /// More hours than are told apart; the rest is only counted.
    func testStatsHoldALimitedNumberOfNames() throws {
        try full()
        let hour: UInt64 = 3_600_000_000_000
        try write { writer in
            for index in 1...UInt64(66_000) {
                writer.record(kind: 0, logger: "app", time: index * hour, [])
            }
        }
        let object = try XCTUnwrap(run("stats", "--json", store).objects().first)
        // The engine's own records are among them.
        let records = try XCTUnwrap(object["records"] as? Int)
        XCTAssertGreaterThanOrEqual(records, 66_000)
        XCTAssertEqual((object["hours"] as? [String: Int])?.count, 65_536)
        XCTAssertEqual(object["not_told_apart"] as? Int, records - 65_536)
    }

    // MARK: export

    func testExportsJSONIsAFormat() throws {
        try log("one\n")
        let object = try run("export", "--json", store)
        XCTAssertEqual(object.out, try run("export", "--format", "ndjson", store).out)
        XCTAssertEqual(
            try run("export", "--format", "ndjson", "--json", "--utc", store).out, object.out)
        for format in ["raw", "text", "csv", "sap"] {
            let done = try run("export", "--format", format, "--json", store)
            XCTAssertEqual(done.code, 2, format)
            XCTAssertTrue(done.error.contains(format), done.error)
        }
        let none = try run("export", store)
        XCTAssertEqual(none.code, 2)
        XCTAssertTrue(none.error.contains("ndjson"), none.error)
    }

    // MARK: log

    /// The level of a store is obeyed, and a pipe's writer must not die of it.
    func testLogObeysTheLevelOfTheStore() throws {
        try log("one\n")
        XCTAssertEqual(try run("level", store, "warn", "app.loud=trace").code, 0)
        let two = try run("log", "--store", store, "--logger", "app", input: Data("2\n3\n".utf8))
        XCTAssertEqual(two.code, 0, two.error)
        XCTAssertTrue(two.error.contains("2 lines were left out: info is below"), two.error)
        let one = try run("log", "--store", store, "--logger", "app", input: Data("2\n".utf8))
        XCTAssertTrue(one.error.contains("1 line was left out: info is below"), one.error)
        try log("four\n", logger: "app.loud")
        let five = try run(
            "log", "--store", store, "--logger", "app", "--level", "error", input: Data("5\n".utf8))
        XCTAssertEqual(five.code, 0)
        XCTAssertEqual(five.error, "")
        XCTAssertEqual(try run("level", store, "default").code, 0)
        try log("six\n")
        XCTAssertEqual(try run("export", store, "--format", "raw").text, "one\nfour\n5\nsix\n")
    }

    // MARK: Stores of the environment

    func testEveryVerbTakesTheStoreOfTheEnvironment() throws {
        try full()
        try log("one\n")
        func answer(_ words: String, code: Int32 = 0, _ text: String) throws {
            for (before, variable) in [("", store), (store, ""), (store, folder + "/none")] {
                var all = words.split(separator: " ").map(String.init)
                if !before.isEmpty { all.insert(before, at: all[0] == "http" ? 2 : 1) }
                let process = prepare(all)
                if !variable.isEmpty { process.environment?["CORDWOOD_DIR"] = variable }
                let done = try run(process)
                XCTAssertEqual(done.code, code, "\(all) \(done.error)")
                XCTAssertTrue(
                    text.isEmpty || (done.text + done.error).contains(text), "\(all) \(done.text)")
            }
        }
        try answer("queue", "")
        try answer("queue list", "")
        try answer("queue retry", "0 pairs")
        try answer("target", "")
        try answer("target list", "")
        try answer("target remove nothing", code: 4, "nothing")
        try answer("consent pending", "")
        try answer("consent", "pending\n")
        try answer("policy", code: 1, "keeps no policy")
        try answer("policy show", code: 1, "keeps no policy")
        try answer("level app.db=debug warn", "=warn")
        try answer("level", "app.db=debug")
        try answer("http enable", "on")
        try answer("http disable", "off")
        try answer("http auto", "as each")
        for verb in ["queue", "target", "consent", "policy", "level", "http enable", "http auto"] {
            let done = try run(prepare(verb.split(separator: " ").map(String.init)))
            XCTAssertEqual(done.code, 2, verb)
            XCTAssertTrue(done.error.contains("CORDWOOD_DIR"), "\(verb): \(done.error)")
        }
        for words in ["queue \(store) lost", "queue \(store) list list", "consent \(store) maybe"] {
            let done = try run(prepare(words.split(separator: " ").map(String.init)))
            XCTAssertEqual(done.code, 2, words)
        }
        let process = prepare(["log", "--logger", "x"])
        process.environment?["CORDWOOD_DIR"] = store + "-new"
        XCTAssertEqual(try run(process, Data("two\n".utf8)).code, 0)
        XCTAssertEqual(try run("cat", store + "-new").lines.count, 1)
    }

    /// A path stays a path when CORDWOOD_DIR is set.
    func testADirectoryCalledLikeAnAction() throws {
        try log("one\n")
        try FileManager.default.moveItem(atPath: store, toPath: folder + "/list")
        for (word, variable, code) in [
            ("list", "", Int32(0)), ("./list", folder + "/none", 0), ("list", folder + "/none", 4),
        ] {
            let process = prepare(["queue", word])
            process.currentDirectoryURL = URL(fileURLWithPath: folder)
            if !variable.isEmpty { process.environment?["CORDWOOD_DIR"] = variable }
            XCTAssertEqual(try run(process).code, code, "\(word) \(variable)")
        }
    }

    // MARK: Damage

    /// The other archive, and the blocks of the damaged one, are read all the same.
    func testEveryVerbNamesAnArchiveWithADamagedHeader() throws {
        for text in ["first\nsecond\n", "third\n"] {
            try log(text)
            XCTAssertEqual(try run("archive", store).code, 0)
        }
        let name = try XCTUnwrap(archiveNames().min())
        let file = URL(fileURLWithPath: "\(store)/archives/\(name)")
        var bytes = try Data(contentsOf: file)
        bytes[25] ^= 1
        try bytes.write(to: file)
        let verbs: [(words: [String], lines: Int?)] = [
            (["cat"], 3), (["tail", "-n", "9"], 3), (["grep", "ir"], 2),
            (["export", "--format", "raw"], 3), (["stats"], nil), (["verify"], nil),
        ]
        for (words, lines) in verbs {
            let done = try run(prepare(words + [store]))
            XCTAssertEqual(done.code, 3, words[0])
            XCTAssertTrue((done.text + done.error).contains(name), "\(words[0]): \(done.error)")
            if let lines { XCTAssertEqual(done.lines.count, lines, "\(words[0]): \(done.text)") }
        }
    }

    // MARK: log

    /// The store's archives; each run of `log` leaves segments that the next run archives.
    private func archiveNames() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: store + "/archives")
            .filter { $0.hasSuffix(".cwa") }
    }

    /// Makes an archive as if it had been written forty days ago.
    private func age(_ path: String) throws {
        let source = Aged(try ArchiveSource.open(path: FilePath(path)))
        let info = source.source.header
        let folder = String(path.prefix(upTo: try XCTUnwrap(path.lastIndex(of: "/"))))
        _ = try ArchiveWriter.write(
            source: source, covers: info.covers, archivesDirectory: FilePath(folder),
            name: String(path.dropFirst(folder.count + 1)), codec: .zstd, level: 1,
            now: info.createdRealtime - Aged.agoNs)
    }

    private final class Aged: RecordSource {
        static let agoNs: UInt64 = 40 * 86_400 * 1_000_000_000
        let source: ArchiveSource
        var process: CordwoodStore.ProcessInfo? { source.process }
        var createdMonotonicNs: UInt64 { source.createdMonotonicNs }

        init(_ source: ArchiveSource) { self.source = source }

        func next(_ record: inout RecordRef) throws(ReadProblem) -> Bool {
            guard try source.next(&record) else { return false }
            record.writtenNs -= Aged.agoNs
            return true
        }
    }

    func testLogDeletesNothingThatTheStoreKeeps() throws {
        // The newest record is from now, so the clock is believed.
        try write { $0.record(kind: 0, logger: "app", message: "new", []) }
        XCTAssertEqual(try run("archive", store).code, 0)
        // Records of a program that tells today what happened long ago, and of one that keeps
        // records longer than 30 days.
        var known: [String] = []
        for logger in ["told", "old"] {
            known = try archiveNames()
            try write { writer in
                writer.record(
                    kind: 0, logger: logger, time: 1_000_000_000_000_000_000, message: logger, [])
            }
            XCTAssertEqual(try run("archive", store).code, 0)
        }
        for name in try archiveNames() where !known.contains(name) {
            try age("\(store)/archives/\(name)")
        }
        XCTAssertEqual(try archiveNames().count, 3)
        try log("newer\n")
        XCTAssertTrue(try run("cat", store).text.contains("old: old"), "it was deleted")
        let done = try run(
            "log", "--store", store, "--logger", "x", "--expiration-days", "30",
            input: Data("newest\n".utf8))
        XCTAssertEqual(done.code, 0, done.error)
        XCTAssertFalse(try run("cat", store).text.contains("old: old"), "this was asked for")
        XCTAssertTrue(try run("cat", store).text.contains("told: told"), "it is of today")
        XCTAssertTrue(try run("cat", store).text.contains("app: new"))
    }
}
