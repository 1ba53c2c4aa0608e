// The command from outside: what it prints, where, and how it ends.

import CordwoodTestSupport
import Foundation
import XCTest

final class VerbTests: CommandCase {
    private func log(_ text: String, logger: String = "app", level: String = "info") throws {
        let done = try run(
            "log", "--store", store, "--logger", logger, "--level", level,
            input: Data(text.utf8))
        XCTAssertEqual(done.code, 0, done.error)
        XCTAssertEqual(done.text, "")
    }

    // MARK: Bytes

    func testInputComesBackByteForByte() throws {
        var nasty = Data("plain\n\n\r\nlone \r inside\nnul \0 here\n".utf8)
        nasty += Data([0xff, 0xfe, 0x80, 10])
        nasty += Data(repeating: 120, count: 1_000_000) + Data([10])
        nasty += Data(repeating: 121, count: 10_000_000) + Data([10])
        for (index, end) in ["", "\n", "no newline", "\r", "\n\n\n"].enumerated() {
            store(index)
            let input = nasty + Data(end.utf8)
            let done = try run("log", "--store", numbered, "--logger", "a", input: input)
            XCTAssertEqual(done.code, 0, done.error)
            XCTAssertTrue(try run("export", numbered, "--format", "raw").out == input, end)
            XCTAssertEqual(try run("archive", numbered).code, 0)
            XCTAssertTrue(try run("export", numbered, "--format", "raw").out == input, end)
        }
    }

    private var numbered = ""
    private func store(_ index: Int) { numbered = "\(store)-\(index)" }

    /// Files are read in pieces of 256 KiB.
    func testLinesOfOneReadHaveOneTime() throws {
        try full()
        let lines = (0..<7_000).map { String(repeating: "x", count: 99 - $0 % 7) }
        let bytes = Data(lines.map { $0 + "\n" }.joined().utf8)
        XCTAssertEqual(try run("log", "--store", store, "--logger", "a", input: bytes).code, 0)
        let query = try run("cat", "--json", "--logger", "a", store)
        let times = try query.objects().compactMap { $0["time"] as? String }
        XCTAssertEqual(times.count, lines.count)
        // Each segment turns ticks into UTC by its own clock: a read on both sides of a roll has
        // two times, some nanoseconds apart.
        let reads = (bytes.count + (256 << 10) - 1) / (256 << 10)
        XCTAssertGreaterThanOrEqual(Set(times).count, reads)
        XCTAssertLessThanOrEqual(Set(times).count, 2 * reads)
        let archived = try run("archive", store, "--time-step", "10000")
        XCTAssertEqual(archived.code, 0, archived.error)
        let coarse = try run("cat", "--json", "--logger", "a", store).objects()
        XCTAssertEqual(coarse.compactMap { $0["message"] as? String }, lines)
        for (one, time) in zip(coarse.compactMap { $0["time"] as? String }, times) {
            XCTAssertLessThanOrEqual(one, time)
        }
    }

    func testFilesAreReadOneAfterAnother() throws {
        try Data("a1\na2".utf8).write(to: URL(fileURLWithPath: folder + "/a"))
        try Data("b1\n".utf8).write(to: URL(fileURLWithPath: folder + "/b"))
        let done = try run(
            "log", "--store", store, "--logger", "x", folder + "/a", folder + "/b")
        XCTAssertEqual(done.code, 0, done.error)
        XCTAssertEqual(try run("export", "--format", "raw", store).text, "a1\na2b1\n")
        XCTAssertEqual(
            try run("log", "--store", store, "--logger", "x", folder + "/c").code, 4)
    }

    // MARK: Formats

    func testExportSAP_B_SAP_4() throws {
        try log("plain\na # b\r\n\n", logger: "net#x", level: "warn")
        let lines = try run("export", "--format", "sap", store).lines
        XCTAssertEqual(lines.count, 3)
        for line in lines { XCTAssertEqual(line.filter { $0 == "#" }.count, 7, String(line)) }
        XCTAssertTrue(lines[0].hasSuffix("+00:00#WARN##net_x##plain#"), String(lines[0]))
        XCTAssertTrue(lines[1].hasSuffix("##net_x##a _ b\\r#"), String(lines[1]))
        XCTAssertTrue(lines[2].hasSuffix("##net_x###"), String(lines[2]))
        let all = try run("export", "--format", "sap", "--all-kinds", store).lines
        XCTAssertEqual(all.count, try run("export", "--format", "ndjson", store).lines.count)
    }

    func testExportCSV() throws {
        try log("a,\"b\"\nplain\n", logger: "x,y")
        let lines = try run("export", "--format", "csv", store).lines
        XCTAssertEqual(lines.count, 3)
        XCTAssertTrue(lines[0].hasPrefix("time,level,logger,message,pid,tid,file,"))
        XCTAssertTrue(lines[1].contains(",INFO,\"x,y\",\"a,\"\"b\"\"\","), String(lines[1]))
        XCTAssertTrue(
            lines[0].hasSuffix(",kind,message_base64,process,service,host,resource,record_id"))
        // The process's resource as JSON with commas, then the id.
        XCTAssertNotNil(lines[2].firstMatch(of: /,log,,[^,]+,,[^,]+,\"{.*}\",[0-9a-f]{48}$/))
        let bad = try run("log", "--store", store, "--logger", "x", input: Data([0xff, 10]))
        XCTAssertEqual(bad.code, 0)
        let last = try XCTUnwrap(run("export", "--format", "csv", store).lines.last)
        XCTAssertTrue(last.contains(",\u{FFFD},") && last.contains(",log,/w==,"), String(last))
    }

    /// No cell of --safe begins as a formula does; without the apostrophes it is the other export.
    func testExportSafeCSV() throws {
        let lines = [
            "=1+1", "+cmd", "-2", "@SUM(A1)", "\t=x", "\r=x", "=\"a\",b", "a=1", "'=x", "",
            "＝1+1", "＋1", "－2", "＠SUM(A1)", "，x",
        ]
        try log(lines.joined(separator: "\n") + "\n", logger: "=logger,x")
        try log("x\n", logger: "\nx")
        let bad = try run("log", "--store", store, "--logger", "x", input: Data([0xfb, 0xef, 10]))
        XCTAssertEqual(bad.code, 0)
        let plain = try run("export", "--format", "csv", store).text
        let safe = try run("export", "--format", "csv", "--safe", store).text
        XCTAssertTrue(plain.contains(",=1+1,") && plain.contains(",++8=,"), plain)
        XCTAssertNil(safe.firstMatch(of: /(^|,|\n|,")[=+\-@\n\t\r＝＋－＠]/), safe)
        for line in lines.prefix(4) { XCTAssertTrue(safe.contains(",'\(line),"), line) }
        XCTAssertTrue(safe.contains(#","'=""a"",b","#) && safe.contains(#","'=logger,x","#), safe)
        XCTAssertTrue(safe.contains(",\"'\nx\",") && safe.contains(",，x,"), safe)
        XCTAssertTrue(safe.contains(",'++8=,") && safe.contains(",a=1,"), safe)
        XCTAssertEqual(
            safe.replacing(/([,"])'([=+\-@\n\t\r＝＋－＠])/) { "\($0.1)\($0.2)" },
            plain.replacing("'=x", with: "=x"))
        XCTAssertEqual(try run("export", "--format", "ndjson", "--safe", store).code, 2)
    }

    // MARK: Reading

    func testSelection() throws {
        try log("low\n", logger: "app.db", level: "debug")
        try log("high\n", logger: "app.db.pool", level: "error")
        try log("other\n", logger: "app.dbx")
        XCTAssertEqual(try run("cat", store).lines.count, 3)
        XCTAssertEqual(try run("cat", store, "--level", "warn").lines.count, 1)
        XCTAssertEqual(try run("cat", store, "--logger", "app.db").lines.count, 2)
        XCTAssertEqual(try run("cat", store, "--since", "1h").lines.count, 3)
        XCTAssertEqual(try run("cat", store, "--until", "1h").lines.count, 0)
        XCTAssertEqual(try run("cat", store, "--since", "2099-01-01").lines.count, 0)
        XCTAssertEqual(try run("cat", store, "--where", "a=b").lines.count, 0)
        XCTAssertEqual(try run("cat", store, store).lines.count, 3)
        XCTAssertTrue(try run("stats", store, "--json").text.contains("\"records\":3"))
        let stats = try run("stats", store, "--json", "--level", "warn")
        XCTAssertTrue(stats.text.contains("\"records\":1,"), stats.text)
        XCTAssertTrue(stats.text.contains("\"levels\":{\"ERROR\":1}"), stats.text)
    }

    func testJSONLines() throws {
        let before = Date().addingTimeInterval(-1)
        try log("say \"hi\"\n", logger: "net.http", level: "warn")
        let done = try run("cat", "--json", store)
        let object = try XCTUnwrap(
            try JSONSerialization.jsonObject(with: done.out) as? [String: Any])
        XCTAssertEqual(object["level"] as? String, "WARN")
        XCTAssertEqual(object["logger"] as? String, "net.http")
        XCTAssertEqual(object["message"] as? String, "say \"hi\"")
        XCTAssertEqual(object["kind"] as? String, "log")
        XCTAssertEqual(object["process"] as? String, "cordwood")
        XCTAssertTrue(object["service"] is NSNull)
        let host = try XCTUnwrap(object["host"] as? String)
        let resource = try XCTUnwrap(object["resource"] as? [String: String])
        XCTAssertEqual(resource["os.type"], "linux")
        XCTAssertNil(resource["host.name"])
        let id = try XCTUnwrap(object["record_id"] as? String)
        XCTAssertEqual(id.count, 48)
        let shown = try run("cat", "--origin", store).text
        XCTAssertTrue(shown.hasSuffix(" [\(id)]\n"), shown)
        XCTAssertTrue(shown.contains(" \(host) cordwood["), shown)
        XCTAssertFalse(try run("cat", store).text.contains(host), "this machine's is not shown")
        XCTAssertNotNil(object["pid"] as? Int)
        XCTAssertNotNil(object["tid"] as? Int)
        let time = try XCTUnwrap(object["time"] as? String)
        XCTAssertTrue(time.hasSuffix("Z") && time.count == 30, time)
        let parser = ISO8601DateFormatter()
        XCTAssertGreaterThan(
            try XCTUnwrap(parser.date(from: String(time.prefix(19)) + "Z")), before)
        XCTAssertEqual(try run("export", store, "--format", "ndjson").out, done.out)
        XCTAssertEqual(
            try run("export", store, "--format", "text").out, try run("cat", store).out)
    }

    func testTail() throws {
        try log((1...30).map { "line \($0)\n" }.joined())
        XCTAssertEqual(try run("tail", store).lines.count, 10)
        let last = try run("tail", "-n", "3", store)
        XCTAssertTrue(last.lines.first?.hasSuffix("line 28") == true, last.text)
        XCTAssertEqual(try run("tail", "-n", "0", store).lines.count, 0)
        XCTAssertEqual(try run("tail", "-n", "100", store).lines.count, 30)
    }

    func testTailFollows() throws {
        try log("before\n")
        let process = prepare(["tail", "-f", store])
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        defer { process.terminate() }
        var seen = ""
        func read(until word: String) {
            while !seen.contains(word) {
                let data = pipe.fileHandleForReading.availableData
                if data.isEmpty { return }
                seen += String(decoding: data, as: UTF8.self)
            }
        }
        read(until: "before")
        try log("after\n")
        read(until: "after")
        XCTAssertTrue(seen.contains("before") && seen.contains("after"), seen)
    }

    func testTailEndsWhenNobodyReads() throws {
        try log("only\n")
        let process = prepare(
            ["60", Self.program, "tail", "-f", store],
            program: URL(fileURLWithPath: "/usr/bin/timeout"))
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        XCTAssertFalse(pipe.fileHandleForReading.availableData.isEmpty)
        try pipe.fileHandleForReading.close()
        process.waitUntilExit()
        XCTAssertEqual(process.terminationStatus, 0)
    }

    func testGrep() throws {
        try log("one\ntwo\nthree\nTWO\n")
        XCTAssertEqual(try run("grep", "two", store).lines.count, 1)
        XCTAssertEqual(try run("grep", "-i", "two", store).lines.count, 2)
        XCTAssertEqual(try run("grep", "-v", "two", store).lines.count, 3)
        XCTAssertEqual(try run("grep", "-c", "^t", store).text, "2\n")
        XCTAssertEqual(try run("grep", "-F", "t.o", store).code, 1)
        XCTAssertEqual(try run("grep", "t.o", store).code, 0)
        let none = try run("grep", "-c", "zzz", store)
        XCTAssertEqual(none.text, "0\n")
        XCTAssertEqual(none.code, 1)
    }

    func testAClosedPipeEndsQuietly() throws {
        try log(String(repeating: "a line of some length to fill the pipe\n", count: 50_000))
        let process = prepare(["cat", store])
        let out = Pipe()
        let errors = Pipe()
        process.standardOutput = out
        process.standardError = errors
        try process.run()
        _ = out.fileHandleForReading.readData(ofLength: 100)
        try out.fileHandleForReading.close()
        process.waitUntilExit()
        XCTAssertEqual(process.terminationStatus, 0)
        XCTAssertEqual(errors.fileHandleForReading.readDataToEndOfFile(), Data())
    }

    // MARK: Endings

    func testUsageIsTwo() throws {
        for arguments in [
            ["bogus"], ["cat", "--bogus"], ["cat"], ["grep", "[", "x"], ["grep"],
            ["cat", "--since", "soon", "x"], ["cat", "--level", "loud", "x"],
            ["cat", "--where", "novalue", "x"], ["cat", "--where", "a!=b", "x"],
            ["cat", "--where", "a>=5", "x"], ["help", "nosuch"], ["help", "http", "nosuch"],
            ["grep", "\\d", "x"], ["export", "x"], ["export", "x", "--format", "y"],
            ["log", "--store", "x"], ["archive", "x", "--codec", "rar"], ["tail", "-n", "-1", "x"],
            ["collect", "--listen", "nowhere", "--directory", "x"], ["target", "x", "remove"],
        ] {
            let process = prepare(arguments)
            process.standardOutput = FileHandle.nullDevice
            process.standardError = FileHandle.nullDevice
            try process.run()
            process.waitUntilExit()
            XCTAssertEqual(process.terminationStatus, 2, "\(arguments)")
        }
    }

    func testWhatIsNotThereIsFour() throws {
        for verb in ["cat", "tail", "stats", "verify", "archive"] {
            let done = try run(verb, folder + "/nothing")
            XCTAssertEqual(done.code, 4, verb)
            XCTAssertTrue(done.error.contains("nothing"), done.error)
        }
        XCTAssertEqual(try run("grep", "x", folder + "/nothing").code, 4)
        XCTAssertEqual(
            try run("upload", folder + "/nothing", "--to", "http://127.0.0.1:1").code, 4)
        XCTAssertFalse(FileManager.default.fileExists(atPath: folder + "/nothing"))
        XCTAssertEqual(
            try run("log", "--store", "/dev/null/x", "--logger", "a").code, 4)
    }

    func testDamageIsThreeAndTheRestIsPrinted() throws {
        let lines = (0..<60_000).map { "line \($0) \(UInt64($0) &* 0x9E37_79B9_7F4A_7C15)\n" }
        try log(lines.joined())
        XCTAssertEqual(try run("archive", store, "--codec", "none").code, 0)
        let archives = store + "/archives/"
        let name = try XCTUnwrap(
            try FileManager.default.contentsOfDirectory(atPath: archives).first)
        var bytes = try Data(contentsOf: URL(fileURLWithPath: archives + name))
        XCTAssertEqual(try run("verify", store).code, 0)
        bytes[bytes.count / 2] ^= 1
        try bytes.write(to: URL(fileURLWithPath: archives + name))
        let done = try run("cat", store)
        XCTAssertEqual(done.code, 3)
        XCTAssertTrue((1..<60_000).contains(done.lines.count), "\(done.lines.count)")
        XCTAssertTrue(done.error.contains(name), done.error)
        for verb in ["verify", "stats"] { XCTAssertEqual(try run(verb, store).code, 3, verb) }
        XCTAssertEqual(try run("verify", archives + name).code, 3)
        XCTAssertEqual(try run("grep", "zzz", store).code, 3)
    }

    /// As if the machine had restarted, too: nothing had been synced, so the store is not "whole".
    private func verifyAfterAnotherBoot() throws {
        let lanes = store + "/lanes/"
        let name = try XCTUnwrap(
            try FileManager.default.contentsOfDirectory(atPath: lanes).first {
                $0.hasSuffix(".lane")
            })
        let url = URL(fileURLWithPath: lanes + name)
        let before = try Data(contentsOf: url)
        var after = before
        after[48] ^= 1  // FORMAT §3.1, bootID
        try after.write(to: url)
        defer { try? before.write(to: url) }
        let verified = try run("verify", store)
        XCTAssertEqual(verified.code, 3, verified.text)
        XCTAssertTrue(verified.text.contains("2 records unverified"), verified.text)
        XCTAssertFalse(verified.text.contains("whole"), verified.text)
        XCTAssertEqual(try run("verify", "--json", store).code, 3)
    }

    func testAKilledWriterIsUncleanAndNoDamage() throws {
        let process = prepare(["log", "--store", store, "--logger", "k"])
        let input = Pipe()
        process.standardInput = input
        try process.run()
        input.fileHandleForWriting.write(Data("kept 1\nkept 2\n".utf8))
        for _ in 0..<3_000 {
            if try run("cat", store).lines.count == 2 { break }
            usleep(10_000)
        }
        XCTAssertTrue(try run("verify", store).text.contains("live"))
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        let verified = try run("verify", store)
        XCTAssertEqual(verified.code, 0)
        XCTAssertTrue(verified.text.contains("unclean"), verified.text)
        let stats = try run("stats", store)
        XCTAssertEqual(stats.code, 0, stats.error)
        XCTAssertTrue(
            stats.text.contains("lanes     1 (0 live, 1 ended without closing)"), stats.text)
        let pid = process.processIdentifier
        XCTAssertTrue(stats.text.contains(", cordwood[\(pid)]\n"), stats.text)
        XCTAssertFalse((stats.text + stats.error).contains("damage"), stats.text)
        let json = try run("stats", "--json", store)
        XCTAssertTrue(json.text.contains("\"pid\":\(pid),"), json.text)
        try verifyAfterAnotherBoot()
        XCTAssertEqual(try run("archive", store).code, 0)
        XCTAssertEqual(try run("export", store, "--format", "raw").text, "kept 1\nkept 2\n")
        let left = try FileManager.default.subpathsOfDirectory(atPath: store)
        XCTAssertFalse(left.contains { $0.hasSuffix(".seg") || $0.hasSuffix(".sealed") }, "\(left)")
    }

    // MARK: Sending

    func testUploadToACollector() throws {
        try log("to be sent\n")
        let central = folder + "/central"
        let collector = prepare([
            "collect", "--listen", "127.0.0.1:0", "--directory", central, "--token", "t",
            "--refuse", "1", "--retry-after", "0",
        ])
        let out = Pipe()
        collector.standardOutput = out
        try collector.run()
        defer { collector.terminate() }
        let line = String(decoding: out.fileHandleForReading.availableData, as: UTF8.self)
        XCTAssertTrue(line.hasPrefix("listening on http://127.0.0.1:"), line)
        let url = line.dropFirst("listening on ".count)
            .trimmingCharacters(in: .whitespacesAndNewlines)

        let token = store + "-token"
        defer { try? FileManager.default.removeItem(atPath: token) }
        try "# ours\n\nt\r\nolder\n".write(toFile: token, atomically: true, encoding: .utf8)
        let refused = try run("upload", store, "--to", url, "--token", "wrong")
        XCTAssertEqual(refused.code, 5, refused.error)
        XCTAssertTrue(refused.text.contains("401"), refused.text)
        XCTAssertEqual(
            try run("upload", store, "--to", url, "--token", "t", "--token-file", token).code, 2)
        let none = try run("upload", store, "--to", url, "--token-file", token + "s")
        XCTAssertTrue(none.code == 4 && none.error.contains("cannot be read"), none.error)
        let words = store + "-words"
        defer { try? FileManager.default.removeItem(atPath: words) }
        try "# ours\nt older\n".write(toFile: words, atomically: true, encoding: .utf8)
        let two = try run("upload", store, "--to", url, "--token-file", words)
        XCTAssertTrue(two.code == 2 && two.error.contains("words: the first line"), two.error)
        XCTAssertEqual(try run("upload", store, "--to", url, "--token", "t").code, 5, "503")
        var sent = try run("upload", store, "--to", url, "--token-file", token, "--json")
        for _ in 0..<150 {
            if sent.code == 0 { break }
            usleep(200_000)
            sent = try run("upload", store, "--to", url, "--token", "t", "--json")
        }
        XCTAssertEqual(sent.code, 0, sent.error)
        XCTAssertTrue(sent.text.contains("\"uploaded\":1"), sent.text)
        XCTAssertEqual(try run("cat", store).lines.count, 0, "gone after 2xx")
        XCTAssertEqual(try run("export", central, "--format", "raw").text, "to be sent\n")

        let name = try XCTUnwrap(try run("target", store, "list").text.split(separator: " ").first)
        XCTAssertEqual(try run("target", store, "remove", String(name)).code, 0)
        XCTAssertEqual(try run("target", store, "list").text, "")
        collector.terminate()
        collector.waitUntilExit()
        XCTAssertEqual(collector.terminationStatus, 0)
        XCTAssertEqual(collector.terminationReason, .exit)
    }

    /// Each line of output names the path once, so that it can be copied.
    func testADamagedArchiveIsNamedOnce() throws {
        try log(String(repeating: "a line of a damaged archive\n", count: 500))
        XCTAssertEqual(try run("archive", store).code, 0)
        let names = try FileManager.default.contentsOfDirectory(atPath: store + "/archives")
        let path = "\(store)/archives/\(try XCTUnwrap(names.first))"
        var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        for at in bytes.count / 3..<bytes.count / 2 { bytes[at] ^= 0x55 }
        try bytes.write(to: URL(fileURLWithPath: path))
        let sent = try run(
            "upload", store, "--to", "http://127.0.0.1:9", "--kind", "http", "--format", "ndjson")
        let queue = try run("queue", store).text
        for text in [sent.error, queue] {
            let line = try XCTUnwrap(text.split(separator: "\n").first { $0.contains("block at") })
            XCTAssertEqual(line.components(separatedBy: store).count, 2, String(line))
        }
    }

    func testConsent() throws {
        try log("private\n")
        XCTAssertEqual(try run("consent", store).text, "granted\n")
        XCTAssertEqual(try run("consent", store, "pending").code, 0)
        XCTAssertEqual(try run("consent", store).text, "pending\n")
        let upload = try run("upload", store, "--to", "http://127.0.0.1:1")
        XCTAssertEqual(upload.code, 5)
        XCTAssertTrue(upload.error.contains("consent"), upload.error)
        XCTAssertEqual(try run("cat", store).lines.count, 1)
    }
}
