// What grep finds and prints, seen from outside, in lanes and in archives.

import CordwoodTestSupport
import Foundation
import Glibc
import XCTest

final class GrepTests: CommandCase {
    private let traceID: [UInt8] = (1...24).map { UInt8($0) }

    /// Ten plain records with two others in the middle.
    private func fill() throws {
        try write { writer in
            for number in 1...5 {
                writer.record(kind: 0, logger: "app", message: "line \(number)", [])
            }
            writer.record(
                kind: 0, logger: "app.db", level: 13, message: "slow", trace: traceID,
                [("order", .uint(7)), ("who", .text("anna b")), ("took", .double(1.5))])
            writer.record(
                kind: 0, logger: "app", level: 17, message: "it failed",
                [
                    ("exception.type", .text("ValueError")),
                    ("exception.stacktrace", .text("Traceback:\n  File \"shop.py\", line 3\n")),
                ])
            for number in 6...10 {
                writer.record(kind: 0, logger: "app", message: "line \(number)", [])
            }
        }
    }

    /// Runs `body` with the records in the lane, then in an archive.
    private func both(_ body: () throws -> Void) throws {
        try fill()
        try body()
        XCTAssertEqual(try run("archive", store).code, 0)
        try body()
    }

    private func lines(_ arguments: String...) throws -> [String] {
        try run(prepare(["grep"] + arguments)).lines
    }

    private func count(_ arguments: String...) throws -> Int {
        let done = try run(prepare(["grep", "-c"] + arguments + [store]))
        XCTAssertEqual(done.code, done.text == "0\n" ? 1 : 0, "\(arguments) \(done.error)")
        return Int(done.text.dropLast()) ?? -1
    }

    func testFindsWhatLinesShow() throws {
        try full()
        try both {
            for (text, found) in [
                ("order=7", 1), ("order=8", 0), ("slow order=7", 1), ("7 who", 1), ("slow o", 1),
                ("\"anna b\"", 1), ("who=\"anna", 1), ("anna", 1), ("b\" took=1.5", 1), ("=1.5", 1),
                ("1.5", 1), ("7", 2), ("ValueError", 1), ("exception.type", 1), ("tion.ty", 1),
                ("Traceback", 1), ("\"shop.py\"", 1), ("failed exception.type=ValueError", 1),
                ("exception.stacktrace", 0), ("app.db", 0), ("WARN", 0), ("line 3", 2),
            ] {
                XCTAssertEqual(try count("-F", text), found, text)
                XCTAssertEqual(try count("-iF", text.uppercased()), found, text)
            }
            for (pattern, found) in [
                ("order=[0-9]$", 0), ("^slow$", 1), ("^slow order", 1), ("took=1.5$", 1),
                ("^order", 0), ("line [0-9]$", 10), ("^line 1", 2),
            ] {
                XCTAssertEqual(try count(pattern), found, pattern)
            }
        }
    }

    /// Searches for random pieces of the lines that are shown.
    func testAnyPieceOfALineIsFound() throws {
        try full()
        let values = [
            "plain", "two words", "say \"hi\"", "back\\slash", "new\nline\u{1B}[2J", "é=1",
        ]
        try write { writer in
            for (index, value) in values.enumerated() {
                writer.record(
                    kind: 0, logger: "app", message: "m\(index)",
                    [
                        ("k\(index)", .text(value)), ("n", .int(-12)), ("x", .double(1e-7)),
                        ("yes", .bool(true)),
                    ])
            }
        }
        XCTAssertEqual(try run("archive", store).code, 0)
        let all = try run("cat", store).lines.map { line in
            String(line[line.range(of: "app: ")!.upperBound...])
        }
        XCTAssertEqual(all.count, values.count)
        var seed: UInt64 = 11
        func below(_ limit: Int) -> Int {
            seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(seed >> 33) % limit
        }
        for round in 0..<60 {
            let line = Array(all[below(all.count)])
            let start = below(line.count)
            let piece = String(line[start..<min(line.count, start + 1 + below(9))])
            let expected = all.count { $0.contains(piece) }
            XCTAssertEqual(
                try count("-F", "-e", piece), expected, "seed 11 round \(round): \(piece)")
        }
    }

    func testContext() throws {
        try full()
        try both {
            let plain = try lines("-C1", "slow", store)
            XCTAssertEqual(plain.count, 3 + 2, "a stack trace has two more lines: \(plain)")
            XCTAssertTrue(
                plain[0].hasSuffix("line 5") && plain[2].contains("it failed"), "\(plain)")
            XCTAssertEqual(plain, try lines("-1", "slow", store))
            XCTAssertEqual(plain, try lines("-A", "1", "-B", "1", "slow", store))
            XCTAssertEqual(try lines("-A2", "line 1$", store).count, 3)
            XCTAssertEqual(try lines("-B2", "^line 3", store).count, 3)
            let groups = try lines("-C1", "line [29]", store)
            XCTAssertEqual(groups.map { $0.suffix(2) }, [" 1", " 2", " 3", "--", " 8", " 9", "10"])
            XCTAssertEqual(try lines("-C1", "^line [123]$", store).count, 4, "one group")
            XCTAssertEqual(try lines("-C1", "^line [24]$", store).count, 5, "adjacent groups")
            let objects = try run("grep", "--json", "-C1", "line [29]", store).objects()
            XCTAssertEqual(objects.count, 6, "no -- among objects")
        }
        XCTAssertEqual(try run("grep", "-C", "-1", "x", store).code, 2)
        XCTAssertEqual(try run("grep", "-C", "999999999", "x", store).code, 2)
    }

    func testPlaces() throws {
        try both {
            let found = try lines("-n", "-B1", "line 6", store)
            XCTAssertTrue(found[0].hasPrefix("7-2") && found[0].contains("it failed"), "\(found)")
            XCTAssertTrue(found.last?.hasPrefix("8:2") == true, "\(found)")
            let place = try XCTUnwrap(found.last?.split(separator: ":").first)
            let tail = try run("tail", "-n", "+\(place)", store)
            XCTAssertTrue(tail.lines[0].hasSuffix("line 6") && tail.lines.count == 5, tail.text)
            // Counted among the records that the options select.
            XCTAssertEqual(try lines("-n", "failed", store, "--level", "warn")[0].prefix(2), "2:")
        }
    }

    func testOnlyWhatMatches() throws {
        try both {
            XCTAssertEqual(try lines("-o", "[a-z]+=[^ ]*", store, "--level", "warn").count, 4)
            XCTAssertEqual(try lines("-o", "order=.", store), ["order=7"])
            XCTAssertEqual(try lines("-o", "-i", "LINE", "-m1", store), ["line"])
            XCTAssertEqual(try lines("-on", "^slow$", store), ["6:slow"])
            XCTAssertEqual(try lines("-o", "-v", "line", store), [])
            XCTAssertEqual(try lines("-o", "Traceback:.  F", store), ["Traceback:\\n  F"])
        }
        XCTAssertEqual(try run("grep", "-o", "--json", "x", store).code, 2)
        XCTAssertEqual(try run("grep", "-n", "--json", "x", store).code, 2)
    }

    /// Nothing is looked for that was not asked for, and nothing is shown that did not match.
    func testBytesThatAreNotUTF8() throws {
        let text: [UInt8] = Array("caf".utf8) + [0xE9, 0x0A, 0x31, 0x32, 0xA4, 0xA4, 0x20]
        try run(
            "log", "--store", store, "--logger", "app", input: Data(text + Array("grün\n".utf8)))
        for option in ["-F", "-E"] {
            let done = try shell(
                "\(Self.program) grep \(option) \"$(printf 'caf\\351')\" \(store)")
            XCTAssertEqual(done.code, 2)
            XCTAssertTrue(done.error.contains("argument 3 is not UTF-8"), done.error)
        }
        XCTAssertEqual(try run("cat", store, "-q", #""caf\xe9""#).out.split(separator: 10).count, 1)
        XCTAssertEqual(try run("grep", "-o", "[0-9]+", store).text, "12\n")
        XCTAssertEqual(try run("grep", "-o", "gr.", store).text, "grü\n")
    }

    func testManyPatternsAndCounts() throws {
        try full()
        try both {
            XCTAssertEqual(try count("-e", "line 1$", "-e", "order=7"), 2)
            XCTAssertEqual(try count("-eline 1$", "-eslow"), 2)
            XCTAssertEqual(try count("-E", "-e", "-e|line 2"), 1, "a pattern may begin with -")
            XCTAssertEqual(try count("-v", "-e", "line", "-e", "slow"), 0)
            XCTAssertEqual(try count("-v", "-e", "line .$", "-e", "slow"), 1)
            XCTAssertEqual(try count("-v", "order="), 11)
            XCTAssertEqual(try count("-m", "3", "line"), 3)
            XCTAssertEqual(try lines("-m3", "^line", store).count, 3)
            XCTAssertEqual(try lines("-m1", "-A1", "line 9", store).count, 2)
            XCTAssertEqual(try run("grep", "-m0", "line", store).code, 1)
        }
        XCTAssertEqual(try run("grep", "-E", "-F", "x", store).code, 2)
        XCTAssertEqual(try run("grep", "-e", "x").code, 2, "no store")
    }

    func testNamesOfStores() throws {
        try fill()
        let other = store + "-other"
        let done = try run("log", "--store", other, "--logger", "x", input: Data("other\n".utf8))
        XCTAssertEqual(done.code, 0)
        XCTAssertEqual(try lines("-l", "slow", store, other), [store])
        XCTAssertEqual(try lines("-L", "slow", store, other), [other])
        XCTAssertEqual(try lines("-l", "o", store, other), [store, other])
        XCTAssertEqual(try run("grep", "-L", "o", store, other).code, 1)
        let missing = try run("grep", "-l", "slow", folder + "/none", store)
        XCTAssertEqual(missing.code, 4)
        XCTAssertEqual(missing.lines, [store])
        XCTAssertTrue(missing.error.contains("none"), missing.error)
        for (pattern, code) in [("slow", Int32(0)), ("nothing", 1)] {
            let quiet = try run("grep", "--quiet", pattern, store)
            XCTAssertEqual(quiet.code, code)
            XCTAssertEqual(quiet.text + quiet.error, "")
        }
    }

    // MARK: Where records come from

    func testTracesProcessesThreadsServices() throws {
        try full()
        try both {
            let id = traceID.prefix(16).map { String(format: "%02x", $0) }.joined()
            for trace in [id, String(id.prefix(8)), String(id.prefix(9)).uppercased()] {
                XCTAssertEqual(try run("cat", store, "--trace", trace).lines.count, 1, trace)
            }
            XCTAssertEqual(try run("cat", store, "--trace", "00000000").lines.count, 0)
            XCTAssertEqual(try run("cat", store, "--trace", id.dropLast() + "f").lines.count, 0)
            XCTAssertEqual(try run("tail", "-n1", store, "--trace", id).lines.count, 1)
            let object = try XCTUnwrap(run("tail", "-n1", "--json", store).objects().first)
            let pid = try XCTUnwrap(object["pid"] as? Int)
            let tid = try XCTUnwrap(object["tid"] as? Int)
            let stats = try XCTUnwrap(run("stats", "--json", store).objects().first)
            let processes = try XCTUnwrap(stats["processes"] as? [[String: Any]])
            let name = try XCTUnwrap(processes[0]["process"] as? String)
            for (option, value, count) in [
                ("--process", "\(pid)", 12), ("--process", name, 12), ("--process", "other", 0),
                ("--process", "\(pid + 1)", 0), ("--thread", "\(tid)", 12), ("--thread", "0", 0),
                ("--service", "shop", 0),
            ] {
                XCTAssertEqual(
                    try run("grep", "-c", "", store, option, value).text, "\(count)\n",
                    "\(option) \(value)")
            }
        }
        for trace in ["1234567", "0x123456", "", String(repeating: "1", count: 33)] {
            let done = try run("cat", store, "--trace", trace)
            XCTAssertEqual(done.code, 2)
            XCTAssertTrue(done.error.contains("8 to 32"), done.error)
        }
    }

    func testAServiceIsThatOfTheResource() throws {
        try write { writer in
            try writer.engine.setResource("service.name", "shop")
            writer.record(kind: 0, logger: "app", message: "sold", [])
        }
        for _ in 0..<2 {
            XCTAssertEqual(try lines("", store, "--service", "shop").count, 1)
            XCTAssertEqual(try lines("", store, "--service", "sho").count, 0)
            XCTAssertEqual(try run("archive", store).code, 0)
        }
    }

    // MARK: Terminals

    /// The output that a terminal receives.
    private func onTerminal(_ arguments: [String], environment: [String: String] = [:]) throws
        -> String
    {
        // Swift imports neither posix_openpt(3) nor ptsname(3), hence TIOCSPTLCK and TIOCGPTN.
        let master = open("/dev/ptmx", O_RDWR | O_NOCTTY)
        var (lock, number): (Int32, UInt32) = (0, 0)
        XCTAssertEqual(ioctl(master, 0x4004_5431, &lock), 0)
        XCTAssertEqual(ioctl(master, 0x8004_5430, &number), 0)
        let slave = open("/dev/pts/\(number)", O_RDWR | O_NOCTTY)
        let process = prepare(arguments)
        process.environment?.merge(environment) { $1 }
        process.standardOutput = FileHandle(fileDescriptor: slave, closeOnDealloc: false)
        try process.run()
        close(slave)
        var seen: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(master, &buffer, buffer.count)
            if count <= 0 { break }  // the last one has closed it
            seen += buffer[..<count]
        }
        close(master)
        process.waitUntilExit()
        return String(decoding: seen, as: UTF8.self).replacingOccurrences(of: "\r\n", with: "\n")
    }

    func testMarksWhatMatches() throws {
        try both {
            let seen = try onTerminal(["grep", "slow order|anna", store])
            XCTAssertTrue(
                seen.contains(
                    "\u{1B}[1;31mslow\u{1B}[0m\u{1B}[1;31m order\u{1B}[0m=7 "
                        + "who=\"\u{1B}[1;31manna\u{1B}[0m b\""), seen)
            let trace = try onTerminal(["grep", "k:.  File", store])
            XCTAssertTrue(
                trace.contains("    | Tracebac\u{1B}[1;31mk:\n    |   File\u{1B}[0m \"shop"), trace)
        }
    }

    func testMarksNothingWithoutColours() throws {
        try fill()
        for environment in [["NO_COLOR": "1"], ["TERM": "dumb"]] {
            let seen = try onTerminal(["grep", "slow", store], environment: environment)
            XCTAssertFalse(seen.contains("\u{1B}"), seen)
            XCTAssertTrue(seen.contains("slow order=7"), seen)
        }
        XCTAssertFalse(try run("grep", "slow", store).text.contains("\u{1B}"), "a pipe")
        let json = try onTerminal(["grep", "--json", "slow", store])
        XCTAssertFalse(json.contains("\u{1B}"), json)
    }
}
