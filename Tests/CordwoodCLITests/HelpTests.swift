// The help of every verb, and what the command tells newcomers.

import CordwoodTestSupport
import Foundation
import XCTest

final class HelpTests: CommandCase {
    /// Every verb, and the verbs below `http`.
    private func verbs() throws -> [[String]] {
        let error = try run("nonsense").error
        let names = try XCTUnwrap(error.split(separator: ";").last)
            .split(whereSeparator: \.isWhitespace).dropFirst(2)
        XCTAssertGreaterThan(names.count, 15, error)
        return names.map { [String($0)] }
            + ["list", "show", "enable", "disable", "auto"].map { ["http", $0] }
    }

    private func help(_ words: [String], columns: Int) throws -> [String] {
        let process = prepare(words + ["--help"])
        process.environment?["COLUMNS"] = "\(columns)"
        let done = try run(process)
        XCTAssertEqual(done.code, 0, "\(words)")
        return done.text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    func testEveryVerbHasAnExample() throws {
        try full()
        for words in try [[]] + verbs() {
            let text = try help(words, columns: 80).joined(separator: "\n")
            XCTAssertNotNil(
                text.range(
                    of: "Examples?:\n  (cordwood|my-program|CORDWOOD_TOKEN|export)",
                    options: .regularExpression), "\(words)")
        }
    }

    /// Examples and tables fit 80 columns, to be pasted: the parser breaks none of their lines.
    func testIndentedLinesFitEightyColumns() throws {
        try full()
        for words in try [[]] + verbs() {
            func indented(_ columns: Int) throws -> [String] {
                try help(words, columns: columns)
                    .prefix { !$0.hasPrefix("USAGE:") }
                    .filter { $0.hasPrefix("  ") }
            }
            XCTAssertEqual(try indented(80), try indented(300), "\(words)")
        }
    }

    func testUnknownVerbsAreAnsweredWithTheKnownOnes() throws {
        for (words, known) in [(["catt"], " grep "), (["help", "catt"], " grep ")] {
            let done = try run(prepare(words))
            XCTAssertEqual(done.code, 2)
            XCTAssertTrue(done.error.contains("there is no verb 'catt'; there are log"), done.error)
            XCTAssertTrue(done.error.contains(known), done.error)
        }
        XCTAssertTrue(try run("help", "http", "catt").error.contains(" enable "))
        let below = try run("help", "cat", "catt")
        XCTAssertEqual(below.error, "cordwood: help: there is no verb 'catt'\n")
        XCTAssertEqual(try run("help", "http", "show").code, 0)
        XCTAssertEqual(try run("--version").code, 0)
        XCTAssertEqual(try run().code, 0)
    }

    func testTheOnlyOrFirstActionIsTheDefault() throws {
        XCTAssertEqual(try run("log", "--store", store, "--logger", "x").code, 0)
        let policy = try run("policy", store)
        XCTAssertEqual(policy.code, 1)
        XCTAssertTrue(policy.error.contains("keeps no policy"), policy.error)
        XCTAssertEqual(try run("target", store).code, 0)
        XCTAssertEqual(try run("upload", store, "--to", "http://127.0.0.1:1").code, 0)
        let all = try run("target", store)
        XCTAssertTrue(all.text.contains("http://127.0.0.1:1"), all.text)
        XCTAssertEqual(all.text, try run("target", store, "list").text)
        let test = try run("target", "test")
        XCTAssertEqual(test.code, 2)
        XCTAssertTrue(test.error.contains("target test URL"), test.error)
    }

    /// Leaves room for a few more options.
    func testGrepsHelpFitsAScreen() throws {
        XCTAssertLessThanOrEqual(try help(["grep"], columns: 80).count, 56)
    }

    func testHelpOfQueriesFitsEightyColumns() throws {
        let lines = try run("help", "query").text.split(
            separator: "\n", omittingEmptySubsequences: false)
        XCTAssertLessThanOrEqual(lines.map(\.count).max() ?? 0, 80)
        XCTAssertLessThanOrEqual(lines.count, 41)
    }

    func testErrorsNameTheWayOut() throws {
        XCTAssertEqual(try run("log", "--store", store, "--logger", "x").code, 0)
        let since = try run("cat", store, "--since", "soon")
        XCTAssertEqual(since.code, 2)
        for form in [
            "2026-11-21T08:15", "now", "90s", "1w", "1h30m", "yesterday 14:30", "today",
            "@1763800000",
        ] {
            XCTAssertTrue(since.error.contains(form), since.error)
        }
        let level = try run("archive", store, "--codec", "lz4", "--level", "13")
        XCTAssertEqual(level.code, 2)
        XCTAssertTrue(level.error.contains("1 to 12"), level.error)
        let method = try run("archive", store, "--method", "thin")
        XCTAssertEqual(method.code, 2)
        XCTAssertTrue(method.error.contains("dense or plain"), method.error)
        for step in ["0", "10001"] {
            let done = try run("archive", store, "--time-step", step)
            XCTAssertEqual(done.code, 2)
            XCTAssertTrue(done.error.contains("1 to 10000"), done.error)
        }
        XCTAssertEqual(try run("archive", store, "--method", "dense", "--codec", "lz4").code, 2)
        for options in [["--kind", "foo"], ["--format", "foo"], ["--http-version", "3"]] {
            for more in [[], ["--dry-run"]] {
                let words = ["upload", store, "--to", "http://127.0.0.1:1"] + options + more
                XCTAssertEqual(try run(prepare(words)).code, 2, "\(words)")
            }
        }
        XCTAssertEqual(try run("target", store).text, "", "nothing was registered")
    }
}
