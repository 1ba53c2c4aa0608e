// Every name and every shape of the lists, in everything that may carry it: headers, addresses,
// forms, JSON, XML, multipart, event streams, texts. And ordinary texts that look like them.

import CordwoodTestSupport
import XCTest

@testable import CordwoodCore
@testable import CordwoodTrace

final class SecretListTests: RedactionCase {
    private static let secret = "zQ7s3cRmK9x"
    private static let types = [
        "form": "application/x-www-form-urlencoded", "json": "application/json",
        "xml": "application/xml", "parts": "multipart/form-data; boundary=b0und",
        "events": "text/event-stream", "text": "text/plain",
    ]

    private func shown(_ carrier: String, _ text: String, _ rules: HTTPRules) -> String {
        switch carrier {
        case "line": return line(text, rules)
        case "url": return line(text, rules, isURL: true)
        default:
            return redact(
                Array(text.utf8), rules, type: SecretListTests.types[carrier] ?? "",
                keepsText: carrier == "text")
        }
    }

    // MARK: Names

    /// As APIs write it: smsCode, sms-code, SMS_CODE, user_sms_code.
    private func spellings(_ name: String) -> [String] {
        let words = name.split(separator: "_").map(String.init)
        let camel = words.dropFirst().reduce(words[0]) {
            $0 + $1.prefix(1).uppercased() + $1.dropFirst()
        }
        return [name, camel, words.joined(separator: "-"), name.uppercased(), "user_" + name]
    }

    private func carriers(of name: String, _ value: String) -> [(String, String)] {
        let named = "{\"name\":\"\(name)\",\"value\":\"\(value)\",\"n\":1}"
        return [
            ("url", "https://h.example/a?x=1&\(name)=\(value)#top"),
            ("url", "https://h.example/a;\(name)=\(value)/b"),
            ("form", "x=1&\(name)=\(value)&y=2"),
            ("json", "{\"a\":{\"\(name)\":\"\(value)\"},\"n\":1}"),
            ("json", "{\"\(name)\":[\"\(value)\",{\"x\":\"\(value)\"}]}"), ("json", named),
            ("xml", "<r><\(name)>\(value)</\(name)><a \(name)='\(value)'/></r>"),
            ("xml", "<r><property name='\(name)'>\(value)</property></r>"),
            (
                "parts",
                "--b0und\r\nContent-Disposition: form-data; name=\"\(name)\"\r\n\r\n\(value)\r\n"
                    + "--b0und--\r\n"
            ),
            ("events", "data: {\"\(name)\":\"\(value)\"}\n\n"),
            ("text", "\(name): \(value)\n"), ("line", "failed: \(name)=\(value) there"),
        ]
    }

    func testEveryName() throws {
        let rules = try rules()
        let secret = SecretListTests.secret
        for name in SecretDefaults.endings + SecretDefaults.keys {
            for spelling in spellings(name) {
                XCTAssertTrue(rules.headerNames.containsHeader(bytes(spelling)), spelling)
                for (carrier, text) in carriers(of: spelling, secret) {
                    let out = shown(carrier, text, rules)
                    XCTAssertFalse(out.contains(secret), "\(carrier): \(text) as \(out)")
                    XCTAssertFalse(out.isEmpty, "\(carrier): \(text)")
                }
            }
        }
        for name in SecretDefaults.headers {
            XCTAssertTrue(rules.headerNames.containsHeader(bytes(name)), name)
            XCTAssertFalse(shown("json", "{\"\(name)\":\"\(secret)\"}", rules).contains(secret))
        }
        for name in SecretDefaults.items + SecretDefaults.wholes {
            for (carrier, text) in carriers(of: name, secret)
            where carrier == "form" || carrier == "url" && text.contains("?") {
                XCTAssertFalse(shown(carrier, text, rules).contains(secret), text)
            }
        }
    }

    private func bytes(_ text: String) -> ByteText {
        // Of static length: names live as long as the test's process.
        let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: text.utf8.count)
        _ = unsafe copy.initialize(fromContentsOf: text.utf8)
        return unsafe ByteText(UnsafePointer(copy.baseAddress), copy.count)
    }

    // MARK: Tokens

    private struct Shape {
        let prefix: String
        let form: String
        let least: Int

        /// Without the last byte it is none.
        var token: String {
            let rest = String(
                repeating: form == "HEX" ? "4f07bd19" : "Qx7Kd2Zm", count: least / 8 + 1
            ).prefix(least)
            switch form {
            case "NUMBER_COLON": return prefix + "12345:" + rest
            case "NUMBER_PATH": return prefix + "123456789012345/" + rest
            case "SLACK": return prefix + "0AB12/B0AB12/" + rest
            case "TEAMS": return prefix + String(repeating: "0a1b", count: 8) + "/" + rest
            default: return prefix + rest
            }
        }
    }

    private func file(_ path: String) throws -> String {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        return try String(
            contentsOf: root.appendingPathComponent("../../" + path), encoding: .utf8)
    }

    private func shapes() throws -> [Shape] {
        let source = try file("Sources/CShims/tokens.c")
        let shape = #/SHAPE\("([^"]+)", \d+, ([A-Z0-9_]+), (\d+)\)/#
        return source.matches(of: shape).map {
            Shape(prefix: String($0.1), form: String($0.2), least: Int($0.3) ?? 0)
        }
    }

    private func carriers(ofToken token: String) -> [(String, String)] {
        let path = token.hasPrefix("/") ? token : "/\(token)"
        let escaped = token.replacingOccurrences(of: "/", with: "\\/")
        let coded = token.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
        return [
            ("url", "https://h.example/v1\(path)/last?x=1"), ("url", "/a?b=\(token)&c=1"),
            ("url", "/a?b=\(coded)&c=1"), ("line", token), ("line", "not found: \(token), sorry"),
            ("form", "a=1&b=\(token)&c=2"), ("form", "a=1&b=\(coded)&c=2"),
            ("json", "{\"a\":\"see \(token) there\",\"n\":1}"), ("json", "[\"\(token)\"]"),
            ("json", "{\"a\":\"\(escaped)\"}"), ("xml", "<r><a>\(token)</a><b c='\(token)'/></r>"),
            (
                "parts",
                "--b0und\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\(token)\r\n"
                    + "--b0und--\r\n"
            ),
            ("events", "data: {\"a\":\"\(token)\"}\n\n"), ("text", "curl \(token)\n"),
        ]
    }

    func testEveryTokenOfAMaker() throws {
        let rules = try rules()
        let shapes = try shapes()
        XCTAssertGreaterThan(shapes.count, 90)
        for shape in shapes {
            let token = shape.token
            let secret = String(token.dropFirst(shape.prefix.count))
            for (carrier, text) in carriers(ofToken: token) {
                let out = shown(carrier, text, rules)
                XCTAssertFalse(out.contains(secret), "\(carrier): \(text) as \(out)")
                XCTAssertTrue(out.contains("[redacted]"), "\(carrier): \(text) as \(out)")
            }
            let short = "{\"a\":\"\(token.dropLast()) x\"}"
            XCTAssertEqual(shown("json", short, rules), short)
            let inside = "{\"a\":\"x\(token)\"}"
            let isAddress = token.hasPrefix("/")
            XCTAssertEqual(shown("json", inside, rules) == inside, !isAddress, inside)
        }
    }

    func testTokensAreThoseOfTheGuide() throws {
        let guide = try file("docs/HTTP.md")
        let start = try XCTUnwrap(guide.range(of: "### Tokens"))
        let section = guide[start.upperBound...].prefix { $0 != "#" || true }
            .components(separatedBy: "\n## ")[0]
        let rows = section.split(separator: "\n").filter {
            $0.hasPrefix("| ") && !$0.hasPrefix("| maker")
        }
        XCTAssertLessThanOrEqual(rows.count, 40)
        for row in rows {
            let source = row.split(separator: "|").last.map(String.init) ?? ""
            XCTAssertNotNil(source.firstMatch(of: #/[GTD]/#), String(row))
        }
        let told = Set(section.matches(of: #/`([^`…]+)[^`]*`(?:,|:|;| )/#).map { String($0.1) })
        for shape in try shapes() {
            let prefix = shape.form == "SLACK" ? String(shape.prefix.dropLast()) : shape.prefix
            XCTAssertTrue(told.contains { $0.hasPrefix(prefix) }, shape.prefix)
        }
    }

    // MARK: What only looks like it

    func testOrdinaryAnswersStay() throws {
        let rules = try rules()
        for text in SecretListTests.ordinary {
            XCTAssertEqual(shown("json", text, rules), text)
        }
        for text in [
            "https://api.example.com/v1/services/Team-Management/employees/of/the/month/2026",
            "https://example.com/webhooks/1234/deliveries/56789", "/bots/12345/messages",
            "https://example.com/bot/12345:67/x", "https://example.com/workflows/TEST/runs/123456",
        ] {
            XCTAssertEqual(shown("url", text, rules), text)
        }
    }

    /// In the form of answers of public APIs.
    private static let ordinary = [
        """
        {"id":1296269,"node_id":"MDEwOlJlcG9zaXRvcnkxMjk2MjY5","full_name":"octocat/Hello-World",\
        "ssh_url":"git@github.com:octocat/Hello-World.git","license":{"key":"mit","spdx_id":"MIT"},\
        "hooks_url":"https://api.github.com/repos/octocat/Hello-World/hooks","size":108,\
        "keys_url":"https://api.github.com/repos/octocat/Hello-World/keys{/key_id}",\
        "status_code":200,"topics":["sk-learn","task-management-for-all-of-you","glass-ui"]}
        """,
        """
        {"name":"npm_package_devDependencies","description":"npm_config_cache_directory_for_all",\
        "dist":{"shasum":"bbf102d5ae73afe2c553295e0fb02230216f65b1","fileCount":12,\
        "tarball":"https://registry.npmjs.org/left-pad/-/left-pad-1.3.0.tgz"},\
        "keywords":["hf_hub_download_everything","dapi","pypi-server-and-more","glide"]}
        """,
        """
        {"batchcomplete":"","query":{"pages":{"736":{"pageid":736,"title":"Albert Einstein",\
        "extract":"A global theory; the discount code and the country code differ."}}},\
        "country_code":"DE","postal_code":"10115","color_code":"#aabbcc","error_code":17,\
        "primary_key":"id","sort_key":"name","cache_key":"a:b","public_key":"ssh-ed25519 AAAA"}
        """,
        """
        {"css":"sk-fading-circle-animation sk-cube-grid-loading","class":"SG.Common.Util",\
        "aws":"arn:aws:iam::123456789012:role/AKIATeam","sign":"ATBBQ","path":"/bot/12/x",\
        "services":"/services/Tickets/B2B/overview","codes":["A1","B2"],"nodes":3,"includes":[]}
        """,
    ]
}
