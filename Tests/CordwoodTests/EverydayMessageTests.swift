// Lines as Swift programs write them: each shows what Swift's own interpolation gives. The place is
// the one that was passed to the call.

import Cordwood
import CordwoodCore
import CordwoodEngine
import CordwoodStore
import Foundation
import XCTest

final class EverydayMessageTests: MessageCase {
    private enum Colour: String { case red, green }
    private enum Shape { case circle(radius: Double), none }
    private struct User: CustomStringConvertible {
        let name: String
        var description: String { "User(\(name))" }
    }
    private struct Plain { var id = 7, note: String? = "x" }
    private final class Box {}
    private struct OrderError: Error, LocalizedError {
        let code: Int
        var errorDescription: String? { "order error \(code)" }
    }
    private struct Tagged<Value> { let value: Value }

    /// Logs a text and expects the same text, made by Swift.
    private func same(_ status: Int32, _ text: String, line: UInt = #line) {
        XCTAssertEqual(status, 0, text, line: line)
        expected.append(text)
    }

    func testOptionals() throws {
        let (name, nobody): (String?, String?) = ("Ann", nil)
        let (age, noAge): (Int?, Int?) = (41, nil)
        let nested: Int?? = .some(nil)
        let (user, noUser): (User?, User?) = (User(name: "Bo"), nil)
        same(log.info("name \(String(describing: name))"), "name \(String(describing: name))")
        same(log.info("name \(name ?? "nobody")"), "name \(name ?? "nobody")")
        same(log.info("none \(nobody ?? "nobody")"), "none \(nobody ?? "nobody")")
        same(log.info("age \(age)"), "age \(String(describing: age))")
        same(log.info("age \(noAge)"), "age \(String(describing: noAge))")
        same(log.info("nested \(nested as Int??)"), "nested \(String(describing: nested))")
        same(log.info("name \(name as String?)"), "name \(String(describing: name))")
        same(
            log.info("user \(user as User?) \(noUser as User?)"),
            "user \(String(describing: user)) nil")
        same(log.info("first \([1, 2].first)"), "first \(String(describing: [1, 2].first))")
        same(log.info("key \(["a": 1]["b"])"), "key \(String(describing: ["a": 1]["b"]))")
        same(log.info("flag \(true as Bool?)"), "flag \(String(describing: true as Bool?))")
        same(log.info("url \(URL(string: "http://a/b") as URL?)"), "url Optional(http://a/b)")
        try check()
    }

    func testQuotesAndBraces() throws {
        let (words, key, path) = (["a", "b"], "k", "C:\\new")
        same(log.info("say \"\(key)\""), "say \"\(key)\"")
        same(log.info("\(words.joined(separator: ", "))"), "\(words.joined(separator: ", "))")
        same(log.info("\("nested \("deep \(key)")")"), "\("nested \("deep \(key)")")")
        same(log.info("{\"a\": \(1)}"), "{\"a\": \(1)}")
        same(log.info("{} {0} {{ }} %d %s %% \(key)"), "{} {0} {{ }} %d %s %% \(key)")
        same(log.info("\(path) \\n \(#"raw \(key)"#)"), "\(path) \\n \(#"raw \(key)"#)")
        same(log.info(#"raw "quotes" \#(key)"#), #"raw "quotes" \#(key)"#)
        same(
            log.info(
                """
                two
                  lines of \(key)
                """), "two\n  lines of \(key)")
        same(log.info("tab\t nul \0 bell \u{7}|"), "tab\t nul \0 bell \u{7}|")
        same(log.info(""), "")
        same(log.info("\(key)\(key)"), "\(key)\(key)")
        same(log.info("\(key == "k" ? "yes" : "no \(key)")"), "yes")
        try check()
    }

    func testTextOfTheWorld() throws {
        let (family, flag, accent) = ("👨‍👩‍👧‍👦", "🇩🇪", "e\u{301}")
        let large = String(repeating: "日本語 ", count: 50_000)
        same(log.info("\(family) \(flag) \(accent)"), "\(family) \(flag) \(accent)")
        same(log.info("👋 \(family.count) ünï"), "👋 \(family.count) ünï")
        same(log.info("\("é" as Character) \("x" as Unicode.Scalar)"), "é x")
        same(log.info("\(large)"), large)
        same(log.info(large), large)
        same(log.info("\(large.prefix(3)) \(large.dropFirst(199_998))"), "日本語 語 ")
        same(log.info("\(family.unicodeScalars.count)"), "\(family.unicodeScalars.count)")
        for count in [0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 999, 1_100] {
            let text = String(decoding: (0..<count).map { UInt8(33 + $0 % 90) }, as: UTF8.self)
            same(log.info(text), text)
            same(log.info("\(text)"), text)
            same(log.info("\(text.dropFirst(0)) of \(count)"), "\(text) of \(count)")
        }
        try check()
    }

    func testValues() throws {
        let price = Decimal(string: "12.30")!
        let date = Date(timeIntervalSince1970: 0)
        let id = UUID(uuidString: "E621E1F8-C36C-495A-93FC-0C247A3E6E5F")!
        let bytes = Data([1, 2, 255])
        let error: any Error = OrderError(code: 7)
        same(log.info("price \(price)"), "price \(price)")
        same(log.info("at \(date)"), "at \(date)")
        same(log.info("id \(id)"), "id \(id)")
        same(log.info("body \(bytes)"), "body \(bytes)")
        same(
            log.info("\(Array(bytes)) \(Set([1])) \(["a": [1: 2]])"),
            "[1, 2, 255] [1] [\"a\": [1: 2]]")
        same(log.info("\((1, "b")) \(0..<3) \(1...2)"), "\((1, "b")) \(0..<3) \(1...2)")
        same(log.info("failed: \(error)"), "failed: \(error)")
        same(log.info("failed: \(error.localizedDescription)"), "failed: order error 7")
        same(log.info("\(Result<Int, OrderError>.success(1))"), "success(1)")
        same(log.info("\(Colour.red) \(Colour.green.rawValue)"), "red green")
        same(log.info("\(Shape.circle(radius: 1.5)) \(Shape.none)"), "circle(radius: 1.5) none")
        same(log.info("\(User(name: "Cy")) \(Plain())"), "\(User(name: "Cy")) \(Plain())")
        same(log.info("\(Tagged(value: 3)) \(Int.self)"), "\(Tagged(value: 3)) Int")
        same(log.info("\(Box())"), "\(Box())")
        same(log.info("\(type(of: error)) \(\User.name)"), "\(type(of: error)) \(\User.name)")
        same(log.info("\(1 + 1) \(-7 % 3) \(UInt8.max) \(Int64.min)"), "2 -1 255 \(Int64.min)")
        same(log.info("\(0.1 + 0.2) \(1e21) \(Float(0.1))"), "\(0.1 + 0.2) \(1e21) \(Float(0.1))")
        same(log.info("\(10.0 / 3, format: .fixed(2)) \(255, format: .hex)"), "3.33 ff")
        same(log.info("\("secret", privacy: .redacted) \(42, privacy: .public)"), "<redacted> 42")
        same(log.info("\(Duration.seconds(2)) \(true)"), "\(Duration.seconds(2)) true")
        let message: LogMessage = "made before \(price)"
        same(log.info(message), "made before \(price)")
        let text = "a ready String \(price)"
        same(log.info(text), text)
        same(log.info("" + text), text)
        try check()
    }

    /// One place in the source under several names, as with helpers that forward theirs.
    func testOnePlaceUnderSeveralNames() throws {
        let (text, number) = ("ready", 5)
        for _ in 0..<2 {
            for (file, function) in [
                ("a/one.swift" as StaticString, "first()" as StaticString),
                ("a/one.swift", "second()"), ("b/two.swift", "first()"),
            ] {
                for line in [7, 8] as [UInt32] {
                    log.info(text, file: file, function: function, line: line, column: 1)
                    log.info(
                        "n \(number) of \(text)", file: file, function: function, line: line,
                        column: 1)
                    expected += ["\(file) \(function) \(line)"] + ["\(file) \(function) \(line)"]
                }
            }
        }
        let found = try records().map { "\($0.file) \($0.function) \($0.line)" }
        XCTAssertEqual(found, expected)
    }

    /// The same place with other literals between the same arguments.
    func testOnePlaceWithOtherLiterals() throws {
        for round in 0..<6 {
            let message: () -> LogMessage = [
                { "one \(1) and \(2.5) a" }, { "two \(1) and \(2.5) a" },
                { "one \(1) und \(2.5) a" },
            ][round % 3]
            same(
                log.info(message(), file: "f", function: "g", line: 1, column: 1),
                "\(round % 3 == 1 ? "two" : "one") 1 \(round % 3 == 2 ? "und" : "and") 2.5 a")
        }
        try check()
    }
}
