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
        return [
            name, camel, words.joined(separator: "-"), name.uppercased(), name.capitalized,
            "user_" + name, "user" + words.joined(), "LOGIN" + words.joined().uppercased(),
        ]
    }

    /// In UTF-8, percent-encoded and escaped, where the carrier allows it.
    private func encoded(_ name: String, _ value: String) -> [(String, String)] {
        let coded = name.utf8.map {
            $0 < 0x80 ? String(UnicodeScalar($0)) : "%" + String($0, radix: 16)
        }.joined()
        let all = name.utf8.map { "%" + String($0, radix: 16) }.joined()
        let escaped = name.utf16.map { String(format: "\\u%04x", $0) }.joined()
        let references = name.unicodeScalars.map { "&#x\(String($0.value, radix: 16));" }.joined()
        return [coded, all].flatMap {
            [
                ("url", "https://h.example/a?x=1&\($0)=\(value)#top"),
                ("form", "x=1&\($0)=\(value)&y=2"), ("line", "failed: \($0)=\(value) there"),
            ]
        } + [
            ("json", "{\"\(escaped)\":\"\(value)\",\"n\":1}"),
            ("json", "{\"name\":\"\(escaped)\",\"value\":\"\(value)\"}"),
            ("events", "data: {\"\(escaped)\":\"\(value)\"}\n\n"),
            ("xml", "<r><property name='\(references)'>\(value)</property></r>"),
        ]
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
                XCTAssertTrue(isHeader(spelling, rules), spelling)
                for (carrier, text) in carriers(of: spelling, secret) + encoded(spelling, secret) {
                    let out = shown(carrier, text, rules)
                    XCTAssertFalse(out.contains(secret), "\(carrier): \(text) as \(out)")
                    XCTAssertFalse(out.isEmpty, "\(carrier): \(text)")
                }
            }
        }
        for name in SecretDefaults.headers {
            XCTAssertTrue(isHeader(name, rules), name)
            XCTAssertFalse(shown("json", "{\"\(name)\":\"\(secret)\"}", rules).contains(secret))
        }
        for name in SecretDefaults.items + SecretDefaults.wholes {
            for (carrier, text) in carriers(of: name, secret)
            where carrier == "form" || carrier == "url" && text.contains("?") {
                XCTAssertFalse(shown(carrier, text, rules).contains(secret), text)
            }
        }
    }

    /// Also letters that change their number of bytes, or lose an accent, with their case.
    func testCaseBeyondASCII() throws {
        let rules = try rules(keys: ["κωδικός", "пинкод", "kapı", "ⱥbc", "große"])
        let secret = SecretListTests.secret
        for name in [
            "Пароль", "пАрОлЬ", "мойПароль", "LÖSENORD", "Lösenord", "ŞİFRE", "Şifre", "şıfre",
            "CONTRASEÑA", "contrasen\u{303}a", "HASŁO", "Hasło", "JELSZÓ", "JELSZO\u{301}",
            "ΚΩΔΙΚΌΣ", "Κωδικός", "userПинкод", "пользовательПинкод", "ПИНКОД", "KAPI", "kapI",
            "ȺBC", "GROẞE", "große", "ハ\u{309A}スワート\u{3099}",
            "비밀번호".decomposedStringWithCanonicalMapping,
        ] {
            XCTAssertTrue(isHeader(name, rules), name)
            for (carrier, text) in carriers(of: name, secret) + encoded(name, secret) {
                let out = shown(carrier, text, rules)
                XCTAssertFalse(out.contains(secret), "\(carrier): \(text) as \(out)")
            }
        }
        for name in [
            "опинкод", "ОПИНКОД", "ПарольСлов", "парол", "Ölsenord", "ΚΩΔΙΚΌΣΑ", "GROSSE", "スワート",
        ] {
            let text = "{\"\(name)\":\"\(secret)\"}"
            XCTAssertEqual(shown("json", text, rules), text)
        }
        // Not UTF-8, or only the end of it: neither traps nor matches.
        for bytes: [UInt8] in [
            [0x80], [0xD0], [0xFF, 0xBF, 0xBF, 0xBF], [0xF4, 0x90, 0x80, 0x80],
        ] {
            for name in [bytes, bytes + Array("pin".utf8)] {
                let isFound = unsafe name.withUnsafeBufferPointer {
                    unsafe rules.keys.contains(ByteText($0.baseAddress, $0.count))
                }
                XCTAssertFalse(isFound, "\(name)")
            }
        }
    }

    func testFrontsOfNames() throws {
        let rules = try rules()
        let secret = SecretListTests.secret
        let fronts = SecretDefaults.fronts
        for (index, front) in fronts.enumerated() {
            let other = fronts[(index + 7) % fronts.count]
            let key = SecretDefaults.keys[index % SecretDefaults.keys.count]
                .replacingOccurrences(of: "_", with: "")
            for name in [
                front + "pin", front.uppercased() + "PWD", "x_" + front + key + "2",
                other + front + key, "the" + front.capitalized + key,
            ] {
                for (carrier, text) in carriers(of: name, secret) {
                    let out = shown(carrier, text, rules)
                    XCTAssertFalse(out.contains(secret), "\(carrier): \(text) as \(out)")
                }
            }
            for name in [front + "name", front + "data", front + "value", front] {
                let text = "{\"\(name)\":\"\(secret)\"}"
                guard !SecretDefaults.keys.contains(name) else { continue }
                XCTAssertEqual(shown("json", text, rules), text)
            }
        }
        for name in [
            "mpin", "tpin", "usertpin", "atmpin", "upipin", "mssqlpwd", "mariadbpwd", "bindpwd",
            "keystorepwd", "truststorepass", "superuserpin", "xyzpwd",
        ] {
            XCTAssertTrue(isHeader(name, rules), name)
        }
        // Three of them, or anything else before them.
        let long = String(repeating: "mysql", count: 60) + "pin"
        for name in ["useruseruserpin", "xuserpin", "superpin", long] {
            XCTAssertFalse(isHeader(name, rules), name)
        }
    }

    func testWordsThatEndLikeNamesStay() throws {
        let rules = try rules()
        for name in [
            "shipping", "spinner", "opinion", "spin", "pinned", "hairpin", "clothespin", "linchpin",
            "compass", "bypass", "trespass", "surpass", "underpass", "encompass", "inside",
            "beside", "ssid", "bssid", "essid", "obsession", "possession", "design", "assign",
            "oauth", "preauth", "reauth", "username", "userdata", "userid", "loginname", "appendix",
            "testing", "sessions", "signatures", "crosspin", "lupin", "topspin", "kingpin",
            "Gaussian", "Caribbean", "tapin", "mapping", "typing", "cryptotp", "discotp",
            "supersession", "hatpin", "pwdx",
        ] {
            for (carrier, text) in carriers(of: name, SecretListTests.secret) {
                // Without the form of its carrier's structure, text stays or goes as a whole.
                guard carrier == "json" || carrier == "url" || carrier == "form" else { continue }
                XCTAssertEqual(shown(carrier, text, rules), text)
            }
        }
    }

    private func isHeader(_ name: String, _ rules: HTTPRules) -> Bool {
        unsafe Array(name.utf8).withUnsafeBufferPointer {
            unsafe rules.headerNames.containsHeader(ByteText($0.baseAddress, $0.count))
        }
    }

    // MARK: Tokens

    private struct Shape {
        let prefix: String
        let form: String
        let least: Int

        /// The shortest one: without its last byte it is no token.
        var token: String {
            let rest = String(
                repeating: form == "HEX" ? "4f07bd19" : "Qx7Kd2Zm", count: least / 8 + 1
            ).prefix(least)
            switch form {
            case "NUMBER_COLON": return prefix + "12345:" + rest
            case "NUMBER_PATH": return prefix + "123456789012345/" + rest
            case "SLACK": return prefix + "0AB12/B0AB12/" + rest
            case "TEAMS": return prefix + String(repeating: "0a1b", count: 8) + "/" + rest
            case "DOTTED": return prefix + "Ab12-Ab12_Ab12Cd." + rest
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
        ] + places(of: token)
    }

    /// Behind the last byte of an escape or of a character beyond ASCII.
    private func places(of token: String) -> [(String, String)] {
        let coded = ["%20", "%0A", "%0d", "%09", "%26", "%2C", "%3B", "%7C", "%E2%80%9C", "%5Cn"]
        let escaped = ["\\n", "\\t", "\\u0020", "\\u00e4", "\\x20"]
        let direct = ["\u{201C}", "令牌\u{FF1A}", "\u{A0}", "é"]
        return (coded + direct).flatMap {
            [
                ("url", "/a?b=x\($0)\(token)&c=1"), ("form", "a=1&b=x\($0)\(token)&c=2"),
                ("json", "{\"a\":\"https://h.example/?b=x\($0)\(token)\"}"),
            ]
        }
            + (coded + escaped + direct).flatMap {
                [("line", "not found: x\($0)\(token) there"), ("text", "x\($0)\(token)\n")]
            }
            + escaped.flatMap {
                [
                    (
                        "json",
                        "{\"a\":\"x\($0.replacingOccurrences(of: "x", with: "u00"))\(token)\"}"
                    ),
                    ("json", "{\"a\":\"x\\\($0)\(token)\"}"),
                ]
            }
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
        let section = guide[start.upperBound...].components(separatedBy: "\n## ")[0]
        let rows = section.split(separator: "\n").filter {
            $0.hasPrefix("| ") && !$0.hasPrefix("| maker")
        }
        XCTAssertLessThanOrEqual(rows.count, 40)
        for row in rows {
            let source = row.split(separator: "|").last.map(String.init) ?? ""
            XCTAssertNotNil(source.firstMatch(of: #/[GTD]/#), String(row))
        }
        // `a-`, `b-`: …, 16; `c-`: 8
        let told = rows.flatMap { row in
            row.split(separator: "|")[1].split(separator: ";").flatMap { part in
                let least = part.matches(of: #/\d+/#).last.map { String($0.0) } ?? ""
                let names = part.components(separatedBy: "`: ")[0] + "`"
                return names.matches(of: #/`([^`]+)`/#).map { "\($0.1) \(least)" }
            }
        }
        let listed = try shapes().map { "\($0.prefix) \($0.least)" }
        XCTAssertEqual(Set(told), Set(listed), "\(Set(told).symmetricDifference(listed))")
        XCTAssertEqual(told.count, listed.count)
    }

    /// With '-' and '_' early in the rest; of UUIDs.
    func testKeysWithManyParts() throws {
        let rules = try rules()
        let hex = String(repeating: "4f07bd19", count: 8)
        for key in [
            "sk-or-v1-" + hex, "sk-None-Qx7Kd2ZmQx7Kd2ZmQx7Kd2Zm", "sk-litellm-Qx7Kd2ZmQx7Kd2Zm",
            "sk-lf-4f07bd19-4f07-4f07-bd19-4f07bd194f07", "sk-a_-Qx7Kd2ZmQx7Kd2ZmQx7Kd2Zm",
            "sk-Q-x7Kd2ZmQx7Kd2ZmQx7Kd2Zm_Qx7K", "AKIAQX7KD2ZMQX7KD2ZM",
            "SG.Qx7Kd2ZmQx-_d2ZmQx7Kd2.Qx7Kd2ZmQx-_d2ZmQx7Kd2ZmQx7Kd2ZmQx7Kd2Zmabc",
        ] {
            XCTAssertEqual(shown("json", "{\"a\":\"\(key)\"}", rules), "{\"a\":\"[redacted]\"}")
        }
    }

    /// A form does not show whether its sender broke it off.
    func testTheEndsOfForms() throws {
        let rules = try rules()
        for text in [
            "a=1&lang=sk-SK", "kind=dapi", "next=/webhooks/5", "next=%2Fwebhooks%2F123456",
            "theme=sk-dark-and-blue", "a=%2Fbot12345%3A", "a=x%20sk-SK", "page=%2Fservices%2FTeams",
        ] {
            XCTAssertEqual(shown("form", text, rules), text)
        }
        for (text, wanted) in [
            ("a=ghp_zQ7s", "a=[redacted]"), ("a=x%20ghp_zQ7s", "a=x%20[redacted]"),
            ("a=sk-zQ7s3", "a=[redacted]"), ("a=%2Fx%20ghp_zQ7s", "a=%2Fx%20[redacted]"),
            (
                "a=%2Fwebhooks%2F123456789012345678%2FzQ7s",
                "a=%2Fwebhooks%2F[redacted]"
            ),
        ] {
            XCTAssertEqual(shown("form", text, rules), wanted)
        }
        let cut = redact(
            Array("a=ghp_".utf8), rules, type: SecretListTests.types["form"] ?? "", isCut: true)
        XCTAssertFalse(cut.contains("ghp_"), cut)
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
        "services":"/services/Tickets/B2B/overview","codes":["A1","B2"],"nodes":3,"includes":[],\
        "regions":["ASIA_SOUTHEAST_1","ASIA-PACIFIC-SOUTH","AKIA_PREFIX_OF_KEYS"],\
        "helper":"SG.Common.Utilities.StringHelper","icon":"sk-icon-24-chevron-left-and-right",\
        "fold":"sk-foldingcubeanimations"}
        """,
    ]
}
