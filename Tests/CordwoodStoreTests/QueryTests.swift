// Queries: what is parsed, what is refused and where; a printed query is the same query; a reader
// that leaves out blocks and texts finds what a test of each record finds.

import CordwoodCore
import CordwoodTestSupport
import Glibc
import XCTest

@testable import CordwoodStore

final class QueryTests: XCTestCase {
    private let now: UInt64 = 1_800_000_000_000_000_000

    private func parse(_ text: String) throws -> QueryNode {
        try Query(text, nowNs: now, utc: true).node
    }

    private func word(_ text: String) -> QueryNode { .text(.literal(Array(text.utf8))) }

    private func named(_ name: String, _ operation: QueryOperator, _ value: QueryValue)
        -> QueryNode
    { .compare(QueryName(Array(name.utf8)), operation, value) }

    private func text(_ text: String) -> QueryValue { .text(.literal(Array(text.utf8))) }

    func testPrecedence() throws {
        let (a, b, c, d) = (word("a"), word("b"), word("c"), word("d"))
        for (text, tree) in [
            ("a", a), (" a\t", a), ("a b", .all([a, b])), ("a AND b", .all([a, b])),
            ("a OR b", .any([a, b])), ("a b OR c d", .any([.all([a, b]), .all([c, d])])),
            ("a (b OR c) d", .all([a, .any([b, c]), d])), ("-a b", .all([.not(a), b])),
            ("NOT a OR b", .any([.not(a), b])), ("-(a b)", .not(.all([a, b]))),
            ("--a", .not(.not(a))), ("NOT -a", .not(.not(a))), ("((a))", a),
            ("(a b) c", .all([.all([a, b]), c])), ("a OR (b OR c)", .any([a, .any([b, c])])),
            ("a-b", word("a-b")), ("or and not", .all([word("or"), word("and"), word("not")])),
            ("\"OR\" a", .all([word("OR"), a])), ("ORDER", word("ORDER")),
            ("a OR -b AND c", .any([a, .all([.not(b), c])])),
        ] {
            XCTAssertEqual(try parse(text), tree, text)
        }
    }

    func testQuoting() throws {
        XCTAssertEqual(try parse("\"timed out\""), word("timed out"))
        XCTAssertEqual(
            try parse(#""a\"b\\c\n\x41\xff""#),
            .text(.literal(Array("a\"b\\c\nA".utf8) + [0xFF])))
        XCTAssertEqual(try parse("\"odd key\"=7"), named("odd key", .equal, .number(.int(7))))
        XCTAssertEqual(try parse("\"7d\"=7"), named("7d", .equal, .number(.int(7))))
        XCTAssertEqual(try parse("order=\"\""), named("order", .equal, text("")))
        XCTAssertEqual(try parse("i:TimeOut"), .text(.folded(Array("timeout".utf8))))
        XCTAssertEqual(try parse("i:\"A b\""), .text(.folded(Array("a b".utf8))))
        XCTAssertEqual(
            try parse(#"/a\/b c\.\\/"#),
            .text(.expression(try SearchExpression(#"a/b c\.\\"#, ignoresCase: false))))
        XCTAssertEqual(
            try parse("i:/x/"),
            .text(.expression(try SearchExpression("x", ignoresCase: true))))
        XCTAssertEqual(try parse("no!"), word("no!"))
        XCTAssertEqual(try parse("path:/orders/7"), named("path", .contains, text("/orders/7")))
    }

    func testTypes() throws {
        for (query, tree) in [
            ("order=7", named("order", .equal, .number(.int(7)))),
            ("order:7", named("order", .equal, .number(.int(7)))),
            ("order=\"7\"", named("order", .equal, text("7"))),
            ("order=i:7", named("order", .equal, .text(.folded([0x37])))),
            ("order==7", named("order", .written, text("7"))),
            ("order=07", named("order", .equal, text("07"))),
            ("x>=-2.5e1", named("x", .atLeast, .number(.double(-25)))),
            ("x<18446744073709551615", named("x", .less, .number(.uint(.max)))),
            (
                "x=-18446744073709551616",
                named(
                    "x", .equal,
                    .number(.whole(isNegative: true, digits: Array("18446744073709551616".utf8))))
            ),
            ("logger=*", .compare(.logger, .equal, .anything)),
            ("message:*", .compare(.message, .equal, .anything)),
            ("x!=true", named("x", .unequal, .bool(true))),
            ("x=True", named("x", .equal, text("True"))),
            ("x=*", named("x", .equal, .anything)), ("x:*", named("x", .equal, .anything)),
            ("x=\"*\"", named("x", .equal, text("*"))),
            ("fields.level=3", .compare(.field(Array("level".utf8)), .equal, .number(.int(3)))),
            ("level>=warn", .compare(.level, .atLeast, .level(13))),
            ("level:INFO+2", .compare(.level, .equal, .level(11))),
            ("level!=none", .compare(.level, .unequal, .level(0))),
            ("kind:http", .compare(.kind, .equal, .kind(4))),
            ("kind=7", .compare(.kind, .equal, .kind(7))),
            ("logger:7", .compare(.logger, .below, text("7"))),
            ("message=7", .compare(.message, .equal, text("7"))),
            ("trace:4BF9", named("trace", .begins, .text(.folded(Array("4bf9".utf8))))),
            ("trace=45", named("trace", .equal, .text(.folded(Array("45".utf8))))),
            ("time>=2h", .compare(.time, .atLeast, .time(now - 7_200_000_000_000))),
            (
                "time<2026-11-21T08:15:30.5Z",
                .compare(.time, .less, .time(1_795_248_930_500_000_000))
            ),
            ("url:https://a/b", named("url", .contains, text("https://a/b"))),
        ] {
            XCTAssertEqual(try parse(query), tree, query)
        }
    }

    func testErrorsNameTheColumn() {
        for (query, column, words) in [
            ("", 1, "empty"), ("  ", 1, "empty"), ("a OR", 5, "missing"),
            ("(a", 1, "without its )"),
            ("a)", 2, "without its ("), ("()", 2, "missing"), ("\"a", 1, "without its end"),
            ("a \"b\\z\"", 5, "in quotes"), ("/a", 1, "second /"), ("//", 1, "empty expression"),
            ("a /[/", 3, "nvalid"), ("/\\d/", 1, "[0-9]"), ("=5", 1, "name is missing"),
            ("order=", 7, "missing after order"), ("order= 7", 7, "missing"),
            ("level>=loud", 8, "no level: loud"), ("level~/x/", 6, "level takes"),
            ("kind:web", 6, "no kind"), ("kind<http", 5, "kind takes"),
            ("time>=tomorrow", 7, "no time"), ("time>=i:2h", 7, "no case"),
            ("logger<app", 7, "logger takes"), ("logger:i:app", 8, "i: goes"),
            ("x>i:a", 3, "i: goes"), ("x==i:a", 4, "i: goes"), ("x<*", 3, "* goes"),
            ("x~y", 3, "x~/"), ("x:/y/", 3, "after ~"), ("x=>5", 3, "no such operator"),
            ("https://a", 7, "quote a URL"), ("08:15", 1, "begins with a digit"),
            ("a(b)", 2, "blank is missing"), ("\"a\"b", 4, "blank is missing"),
            ("x=a\"b\"", 4, "blank is missing"), ("- a", 1, "without what"),
            ("a AND", 6, "missing"),
            ("OR a", 1, "between"), ("a AND OR b", 7, "between"), ("\"\"", 1, "empty"),
            ("i:", 3, "after 'i:'"), ("grün é level>=x", 15, "no level"),
            ("i:x=5", 4, "blank is missing"), ("a /(b)\\1/", 3, "back reference"),
            ("/((a{99}){99}){99}/", 1, "repeats too much"),
        ] {
            XCTAssertThrowsError(try parse(query), query) {
                let error = $0 as? QueryError
                XCTAssertEqual(error?.column, column, "\(query): \($0)")
                XCTAssertTrue(error?.text.contains(words) ?? false, "\(query): \($0)")
            }
        }
    }

    func testLimits() {
        func column(_ text: String) -> Int? {
            do {
                _ = try parse(text)
                return nil
            } catch { return (error as? QueryError)?.column }
        }
        XCTAssertNil(column(String(repeating: "a ", count: 256)))
        XCTAssertEqual(column(String(repeating: "a ", count: 257)), 513)
        XCTAssertNil(column(String(repeating: "-", count: 63) + "a"))
        XCTAssertEqual(column(String(repeating: "-", count: 64) + "a"), 65)
        XCTAssertEqual(column(String(repeating: "(", count: 5_000)), 65)
        XCTAssertNil(column(String(repeating: "a", count: 8_192)))
        XCTAssertNotNil(column(String(repeating: "a", count: 8_193)))
    }

    func testExpressionsThatRepeatTooMuchAreRefused() throws {
        for text in [
            "a{20000}", "[0-9]{4}-[0-9]{2}", "(a{100}){100}", "[]{99}]{5}", "[^]{99}]", "\\{99}",
            "a{,5}", "(ab{3,7}|c)*",
        ] {
            XCTAssertNoThrow(try SearchExpression(text, ignoresCase: false), text)
        }
        for text in [
            "(a{255}){255}", "(((a{99}){99}){99}){99}", "([a-z]{255,}){255}", "(a{30000}b{30000})",
        ] {
            XCTAssertThrowsError(try SearchExpression(text, ignoresCase: false), text) {
                XCTAssertTrue(($0 as? ExpressionError)?.text.contains("repeats") ?? false, text)
            }
        }
    }

    func testNumbersAreComparedExactly() throws {
        let big = Int64(1) << 53
        func whole(_ text: String) throws -> QueryNumber {
            try XCTUnwrap(QueryNumber(Array(text.utf8)))
        }
        let ordered: [QueryNumber] = [
            .double(-.infinity), try whole("-1" + String(repeating: "0", count: 400)),
            try whole("-18446744073709551617"), .double(-0x1p64),
            try whole("-18446744073709551615"), .double(-0x1p63 - 2048),
            try whole("-9223372036854775809"), .int(.min), .int(-1), .double(-0.5), .int(0),
            .double(0.5), .int(1), .int(big), .int(big + 1), .double(0x1p53 + 2), .int(.max),
            .double(0x1p63), .uint(1 << 63 + 1), .uint(.max), .double(0x1p64),
            try whole("18446744073709551617"), .double(0x1p64 + 4096),
            .double(1e22), try whole("10000000000000000000001"),
            try whole("99999999999999991611391"), .double(1e23),
            try whole("99999999999999991611393"), .double(.greatestFiniteMagnitude),
            try whole("1" + String(repeating: "0", count: 309)), .double(.infinity),
        ]
        for (i, a) in ordered.enumerated() {
            for (j, b) in ordered.enumerated() {
                XCTAssertEqual(a.order(to: b), (i - j).signum(), "\(a) \(b)")
            }
            XCTAssertNil(a.order(to: .double(.nan)))
        }
        XCTAssertEqual(QueryNumber.double(-0x1p63).order(to: .int(.min)), 0)
        XCTAssertEqual(QueryNumber.double(7).order(to: .uint(7)), 0)
        XCTAssertEqual(try whole("18446744073709551616").order(to: .double(0x1p64)), 0)
        XCTAssertEqual(try whole("-0"), .int(0))
    }

    /// For fields whose names have no meaning of their own.
    func testAValueIsComparedWithValuesOfItsType() throws {
        let both: [(String, TestField)] = [("x", .int(7)), ("x", .string("8"))]
        for (fields, query, isTrue) in [
            (both, "x=7", true), (both, "x=8", false), (both, "x=\"8\"", true),
            (both, "x=\"7\"", false), (both, "x==8", true), (both, "x!=7", false),
            (both, "x!=8", true), (both, "x=*", true), (both, "y=*", false), (both, "-y=1", true),
            (both, "y!=1", false), (both, "x~/^8$/", true), (both, "x>7.5", false),
            ([("x", .string("7"))], "x=7", true), ([("x", .string("7.0"))], "x=7", true),
            ([("x", .string("7a"))], "x=7", false), ([("x", .string("12"))], "x>9", true),
            ([("x", .int(7))], "x=\"7\"", true), ([("x", .int(7))], "x>\"1\"", false),
            ([("x", .double(7))], "x=\"7.0\"", true), ([("x", .double(7))], "x==7", false),
            ([("x", .bool(true))], "x=true", true), ([("x", .string("true"))], "x=true", true),
            ([("x", .int(1))], "x=true", false), ([("x", .bool(true))], "x=\"true\"", true),
            ([("x", .double(.nan))], "x!=1", true), ([("x", .double(.nan))], "x<1", false),
            ([("x", .string("Anna"))], "x=anna", false),
            ([("x", .string("Anna"))], "x=i:aNNA", true),
            ([("x", .string("b"))], "x>a", true), ([("x", .string("b"))], "x>=b", true),
            ([("x", .string("b"))], "x<b", false), ([("level", .int(3))], "fields.level=3", true),
            ([("file", .string("a/b.csv"))], "file:b.c", true),
            ([("file", .string("a/b.csv"))], "file=b.csv", false),
        ] as [([(String, TestField)], String, Bool)] {
            XCTAssertEqual(try matches(query, section(2, fieldBytes(fields))), isTrue, query)
        }
    }

    func testTextsAreInTheMessageOrInAField() throws {
        let sections = section(2, fieldBytes([("order", .int(7)), ("who", .string("a \"b\""))]))
        for (query, isTrue) in [
            ("message", true), ("\"order=7\"", true), ("\"er=7\"", true), ("\"7 who\"", false),
            ("\"a \\\"b\\\"\"", true), ("Message", false), ("i:MESSAGE", true), ("i:WHO", true),
            ("/^order=[0-9]$/", true), ("/^the message$/", true), ("/ssage order/", false),
            ("message:order", false), ("message:\"the m\"", true),
            ("message=\"the message\"", true),
            ("message!=\"the message\"", false), ("message~/e$/", true), ("message=i:THE_", false),
        ] {
            XCTAssertEqual(try matches(query, sections), isTrue, query)
        }
    }

    func testPathsOfURLs() throws {
        for (url, path) in [
            ("https://a.b/c/d?e#f", "/c/d"), ("http://a:8080", "/"), ("https://a?x=/y", "/"),
            ("/only/path#x", "/only/path"), ("a:b/c", "a:b/c"), ("", "/"),
        ] {
            let sections = section(2, fieldBytes([("url.full", .string(url))]))
            XCTAssertTrue(try matches("path=\"\(path)\"", sections), url)
        }
    }

    private func matches(_ query: String, _ sections: [UInt8]) throws -> Bool {
        var record = RecordRef()
        record.level = 9
        let message = Array("the message".utf8)
        let query = try Query(query)
        return message.withUnsafeBytes { message in
            sections.withUnsafeBytes { sections in
                record.message = message
                record.sections = sections
                return query.matches(record)
            }
        }
    }

    // MARK: Properties

    func testAPrintedQueryIsTheSameQuery() throws {
        for seed in SplitMix.seeds(40_000) {
            var maker = QueryMaker(random: SplitMix(seed))
            let tree = maker.node()
            let text = Query(tree).description
            guard let parsed = try? parse(text), parsed == tree else {
                return XCTFail("seed \(seed): \(text) is parsed to \(try parse(text)), not \(tree)")
            }
        }
    }

    func testNoTextMakesTheParserFail() {
        let pieces = [
            "a", "(", ")", "\"", "\\", "-", " ", "OR", "AND", "NOT", "i:", ":", "=", "!=", "<", "~",
            "/", "*", "level", "time", "é", "\u{0}", "2h", "[", "order",
        ]
        for seed in SplitMix.seeds(40_000) {
            var random = SplitMix(seed)
            let text = (0..<random.below(12)).map { _ in pieces[random.below(pieces.count)] }
                .joined()
            do {
                let tree = try parse(text)
                XCTAssertEqual(try parse(Query(tree).description), tree, "seed \(seed): \(text)")
            } catch let error as QueryError {
                XCTAssertTrue((1...text.unicodeScalars.count + 1).contains(error.column), text)
            } catch { XCTFail("\(error)") }
        }
    }

    func testAPlannedReadFindsWhatAskingEveryRecordFinds() throws {
        let store = TestFiles.directory()
        defer { TestFiles.remove(store) }
        var (found, asked, given, all): (Int, Int, UInt64, UInt64) = (0, 0, 0, 0)
        for seed in SplitMix.seeds(60, core: 5) {
            var random = SplitMix(seed)
            let processes = 1 + random.below(2)
            let source = AskedRecords(count: 300, processes: processes, random: random)
            let cover = ArchiveCover(
                laneID: LaneID(high: 7, low: 0), first: 0, last: 0, laneName: "lane")
            let info = try ArchiveWriter.write(
                source: source, covers: [cover], archivesDirectory: FilePath(store), codec: .lz4,
                level: 1,
                now: 5, blockBytes: 400 + random.below(6_000))
            var maker = QueryMaker(random: random)
            for _ in 0..<40 {
                let query = Query(maker.node())
                let wanted = try read("\(info.path)", ReaderOptions()) { query.matches($0) }
                var options = ReaderOptions()
                options.query = query
                let seen = try read("\(info.path)", options) { _ in true }
                guard seen == wanted else {
                    return XCTFail("seed \(seed): \(query): \(seen), not \(wanted)")
                }
                options.last = 5
                let last = try read("\(info.path)", options) { _ in true }
                XCTAssertEqual(last, Array(wanted.suffix(5)), "seed \(seed): \(query)")
                found += wanted.count
                asked += 1
                given += try looked("\(info.path)", options)
                all += 300
            }
        }
        XCTAssertGreaterThan(found, asked * 3)
        XCTAssertLessThan(given, all * 3 / 4, "most are made")
    }

    private func read(
        _ path: String, _ options: ReaderOptions, _ isWanted: (RecordRef) -> Bool
    ) throws -> [UInt64] {
        let reader = try StoreReader(path: path, options: options)
        var found: [UInt64] = []
        while reader.next({ if isWanted($0) { found.append($0.sequence) } }) == .record {}
        XCTAssertEqual(reader.problemCount, 0)
        return found
    }

    /// How many records the archive returns.
    private func looked(_ path: String, _ options: ReaderOptions) throws -> UInt64 {
        let source = try ArchiveSource.open(path: FilePath(path))
        ArchiveShelf.prepare(source, options.narrowed)
        var count: UInt64 = 0
        var record = RecordRef()
        while try source.next(&record) { count += 1 }
        return count
    }
}
