// What is kept of bodies in each form, of bodies without one, and of lines and addresses.

import XCTest

@testable import Cordwood
@testable import CordwoodCore
@testable import CordwoodTrace

final class BodyTests: RedactionCase {
    private func assertShown(
        _ texts: [(String, String)], type: String = "", isCut: Bool = false, line: UInt = #line
    ) throws {
        let rules = try rules()
        for (text, wanted) in texts {
            XCTAssertEqual(
                redact(Array(text.utf8), rules, type: type, isCut: isCut), wanted, text,
                line: line)
        }
    }

    func testWhatIsNotParsedIsNotKept() throws {
        for (text, type) in [
            ("password: hunter2", "text/plain"), ("[db]\npassword=hunter2", ""),
            ("[db]\npassword=hunter2", "application/x-www-form-urlencoded"),
            ("<html><body>hunter2</body></html>", ""), ("<p>hunter2</p>", "text/html"),
            ("<!DOCTYPE a [<!ENTITY e \"hunter2\">]><a>&e;</a>", "text/xml"),
            ("password=hunter2", ""), ("password=hunter2", "text/plain"),
            ("{\"password\": 'hunter2'}", "text/javascript"),
            ("user <password>hunter2", "application/xml"), ("hunter2", "application/json"),
            ("a\0b\0", "application/octet-stream"), ("--b\r\n\r\nhunter2\r\n--b--", ""),
            ("--b\r\n\r\nhunter2\r\n--b--", "multipart/form-data; boundary=c"),
            ("--b\r\n\r\nhunter2\r\n--b--", "multipart/form-data"),
            ("\u{FEFF}password: hunter2", ""), ("{\0\"\0p\0", "application/json"),
        ] {
            let shown = redact(text, try rules(), type: type)
            XCTAssertFalse(shown.contains("hunter2"), "\(text) -> \(shown)")
            XCTAssertLessThan(shown.utf8.count, 15, "\(text) -> \(shown)")
        }
        let kept = redact(
            Array("Bearer abc, password=x1, password: y".utf8), try rules(), type: "text/plain",
            keepsText: true)
        XCTAssertEqual(kept, "Bearer [redacted], password=[redacted] password: [redacted]")
    }

    func testJSONIsKeptAsFarAsItIsOne() throws {
        try assertShown([
            ("{\"a\":1,\"b\":\"xy", "{\"a\":1"), ("{\"a\":{\"b\":[1,{", "{\"a\":{\"b\":[1,{"),
            ("{\"a\":1} trailing: hunter2", "{\"a\":1}"), ("[1,2,", "[1,2"), ("[1,12", "[1"),
            ("{\"a\":1}\n{\"b\":2}\nhunter2\n", "{\"a\":1}\n{\"b\":2}"),
            (")]}',\n{\"token\":\"h\",\"a\":1}", ")]}',\n{\"token\":\"[redacted]\",\"a\":1}"),
            ("\u{FEFF}{\"pwd\":\"h\"}", "\u{FEFF}{\"pwd\":\"[redacted]\"}"),
            ("{\"a\":tru", ""), ("{\"a\":01}", ""), ("{\"a\":1 \"b\":2}", "{\"a\":1"),
            ("{'a':1}", ""), ("{\"a\":\"\\x\"}", ""), ("{\"a\":\"\t\"}", ""),
        ])
    }

    func testJSONInAnotherEncodingIsKeptAsFarAsItIsUTF8() throws {
        let latin =
            Array("{\"a\":1,\"b\":{\"c\":2},\"contrase".utf8) + [0xF1]
            + Array("a\":\"hunter2\"}".utf8)
        XCTAssertEqual(redact(latin, try rules()), "{\"a\":1,\"b\":{\"c\":2}")
    }

    func testWhatSecretsLookLikeAndWhatDoesNot() throws {
        try assertShown([
            (
                "{\"errors\":{\"password\":[\"is too short\",\"h\"]}}",
                "{\"errors\":{\"password\":[\"is too short\",\"[redacted]\"]}}"
            ),
            (
                "{\"token\":null,\"secret\":true,\"tokens\":17}",
                "{\"token\":null,\"secret\":true,\"tokens\":17}"
            ),
            (
                "{\"tokens\":1700,\"max_tokens\":1700,\"pin\":1234,\"pwd\":12}",
                "{\"tokens\":1700,\"max_tokens\":1700,\"pin\":\"[redacted]\",\"pwd\":12}"
            ),
            (
                "{\"nextPageToken\":\"abc\",\"page_token\":\"d\",\"token\":\"e\"}",
                "{\"nextPageToken\":\"abc\",\"page_token\":\"d\",\"token\":\"[redacted]\"}"
            ),
            (
                "{\"properties\":{\"password\":{\"type\":\"string\",\"title\":\"Password\","
                    + "\"minLength\":8,\"example\":\"hunter2\"}}}",
                "{\"properties\":{\"password\":{\"type\":\"string\",\"title\":\"Password\","
                    + "\"minLength\":8,\"example\":\"[redacted]\"}}}"
            ),
            (
                "{\"properties\":{\"password\":\"hunter2\",\"a\":{\"password\":{\"titl"
                    + "e\":\"h\"}}}}",
                "{\"properties\":{\"password\":\"[redacted]\",\"a\":{\"password\":"
                    + "{\"title\":\"[redacted]\"}}}}"
            ),
            (
                "{\"required\":[\"username\",\"password\"],\"type\":\"token\",\"text\":\"foo\"}",
                "{\"required\":[\"username\",\"password\"],\"type\":\"token\",\"text\":\"foo\"}"
            ),
            (
                "{\"error\":\"invalid token: unexpected end\",\"tokenizer\":\"x\"}",
                "{\"error\":\"invalid token: unexpected end\",\"tokenizer\":\"x\"}"
            ),
            (
                "{\"passwort\":\"h\",\"contraseña\":\"h\",\"mot_de_passe\":\"h\"}",
                "{\"passwort\":\"[redacted]\",\"contraseña\":\"[redacted]\","
                    + "\"mot_de_passe\":\"[redacted]\"}"
            ),
            (
                "{\"a\":\"https://x/?token=h&b=1\",\"u\":\"//joe:h@host/a\"}",
                "{\"a\":\"https://x/?token=[redacted]&b=1\",\"u\":\"//joe:[redacted]@host/a\"}"
            ),
        ])
    }

    func testNamesThatAreValues() throws {
        let named = "\"name\":\"password\""
        try assertShown([
            ("{\(named),\"value\":\"h\",\"n\":1}", "{\(named),\"value\":\"[redacted]\",\"n\":1}"),
            (
                "{\"value\":\"h\",\"n\":\"k\",\(named)}",
                "{\"value\":\"[redacted]\",\"n\":\"k\",\(named)}"
            ),
            (
                "{\"value\":{\"a\":[\"h\",\"h\"]},\(named)}",
                "{\"value\":{\"a\":[\"[redacted]\",\"[redacted]\"]},\(named)}"
            ),
            ("{\"name\":\"db.a\",\"value\":\"k\"}", "{\"name\":\"db.a\",\"value\":\"k\"}"),
            ("{\"a\":{\(named)},\"value\":\"x\"}", "{\"a\":{\(named)},\"value\":\"x\"}"),
            ("[{\(named)},{\"value\":\"x\"}]", "[{\(named)},{\"value\":\"x\"}]"),
            (
                "{\"na\\u006de\":\"pass\\u0077ord\",\"val\\u0075e\":\"h\"}",
                "{\"na\\u006de\":\"pass\\u0077ord\",\"val\\u0075e\":\"[redacted]\"}"
            ),
            (
                "{\"headers\":[{\"name\":\"Authorization\",\"value\":\"Digest h\"}]}",
                "{\"headers\":[{\"name\":\"Authorization\",\"value\":\"[redacted]\"}]}"
            ),
            (
                "{\"value\":[{\"name\":\"a\",\"text\":\"b\"}],\"name\":\"list\"}",
                "{\"value\":[{\"name\":\"a\",\"text\":\"b\"}],\"name\":\"list\"}"
            ),
            // The name may have been in the missing part.
            ("{\"value\":\"h\",\"na", "{\"value\":\"[redacted]\""),
            ("[{\"value\":[\"h\"],\"na", "[{\"value\":[\"[redacted]\"]"),
            ("{\"value\":[{\"a\":\"k\"},{\"b", "{\"value\":[{\"a\":\"k\"},{"),
        ])
    }

    func testTextsInTexts() throws {
        try assertShown([
            (
                "{\"a\":\"{\\\"pwd\\\":\\\"h\\\",\\\"n\\\":1}\"}",
                "{\"a\":\"{\\\"pwd\\\":\\\"[redacted]\\\",\\\"n\\\":1}\"}"
            ),
            ("{\"a\":\"{\\\"pin\\\":1234}\"}", "{\"a\":\"{\\\"pin\\\":\\\"[redacted]\\\"}\"}"),
            // The unfinished end of an inner text is replaced.
            ("{\"a\":\"{\\\"b\\\":1,\\\"pwd\\\":\\\"h\"}", "{\"a\":\"{\\\"b\\\":1[redacted]\"}"),
            (
                "{\"a\":\"<p><password>h</password></p>\"}",
                "{\"a\":\"<p><password>[redacted]</password></p>\"}"
            ),
            ("{\"a\":\"[INFO] \\\"x\\\" {0}\"}", "{\"a\":\"[INFO] \\\"x\\\" {0}\"}"),
            ("{\"a\":\"<p>k<br>k</p>\"}", "{\"a\":\"<p>k<br>k</p>\"}"),
            ("{\"a\":\"<p>k<pwd>h\"}", "{\"a\":\"<p>k<pwd>[redacted]\"}"),
            ("{\"a\":\"<!DOCTYPE x><pwd>h</pwd>\"}", "{\"a\":\"[redacted]\"}"),
            (
                "{\"a\":\"%7B%22pwd%22%3A%22h%22%7D\"}",
                "{\"a\":\"%7B%22pwd%22%3A%22[redacted]%22%7D\"}"
            ),
            (
                "{\"a\":\"x=%252F%252Fjoe%253Ah%2540host\"}",
                "{\"a\":\"x=%252F%252Fjoe%253A[redacted]%2540host\"}"
            ),
            (
                "{\"k\":\"-----BEGIN PRIVATE KEY-----\\nMII\\n-----END PRIVATE KEY-----\"}",
                "{\"k\":\"-----BEGIN PRIVATE KEY-----[redacted]-----END PRIVATE KEY-----\"}"
            ),
        ])
        try assertShown(
            [
                ("a=%7B%22pwd%22%3A%22h%22%7D&b=1", "a=%7B%22pwd%22%3A%22[redacted]%22%7D&b=1"),
                (
                    "u=https%3A%2F%2Fx%3Ftoken%3Dh%26y&code=h",
                    "u=https%3A%2F%2Fx%3Ftoken%3D[redacted]%26y&code=[redacted]"
                ),
                ("a=1&pass%77ord=h", "a=1&pass%77ord=[redacted]"), ("a=1&b={x}", "a=1"),
                ("a=see+ghp_0123", "a=see+[redacted]"),
                ("a=https%3A%2F%2Fjoe%3Ahun", "a=https%3A%2F%2Fjoe%3A[redacted]"),
                ("a=1&hunter2", "a=1"), ("a=1&contrase%F1a=h", "a=1&contrase%F1a=[redacted]"),
            ],
            type: "application/x-www-form-urlencoded")
        let deep = (0..<8).reduce("{\"pwd\":\"HUNTER2\"}") { text, _ in
            let escaped = text.replacingOccurrences(of: "\\", with: "\\\\")
                .replacingOccurrences(of: "\"", with: "\\\"")
            return "{\"a\":\"\(escaped)\"}"
        }
        XCTAssertFalse(redact(deep, try rules()).contains("HUNTER2"))
    }

    func testXML() throws {
        try assertShown([
            (
                "<a><password>h</password><b>k</b></a>",
                "<a><password>[redacted]</password><b>k</b></a>"
            ),
            (
                "<s:E><w:UserToken x='h' type='t'><y>h</y></w:UserToken></s:E>",
                "<s:E><w:UserToken x='[redacted]' type='t'><y>[redacted]</y></w:UserToken></s:E>"
            ),
            ("<u password = \"h\" name='k'/>", "<u password = \"[redacted]\" name='k'/>"),
            (
                "<p><property name=\"db.password\"><value>h</value></property>k</p>",
                "<p><property name=\"db.password\"><value>[redacted]</value></property>k</p>"
            ),
            ("<add key=\"Password\" value=\"h\"/>", "<add key=\"Password\" value=\"[redacted]\"/>"),
            ("<input type='password' value='h'/>", "<input type='password' value='[redacted]'/>"),
            (
                "<d><key>password</key>\n <string>h</string><key>a</key><string>k</string></d>",
                "<d><key>password</key>\n <string>[redacted]</string><key>a</key><stri"
                    + "ng>k</string></d>"
            ),
            (
                "<e><value>h</value><name>token</name></e>",
                "<e><value>[redacted]</value><name>token</name></e>"
            ),
            ("<a><!-- password: h --><b>k</b></a>", "<a><!--[redacted]--><b>k</b></a>"),
            ("<a><![CDATA[{\"pwd\":\"h\"}]]></a>", "<a>[redacted]</a>"),
            ("<a>&lt;pwd&gt;h&lt;/pwd&gt;</a>", "<a>[redacted]</a>"),
            ("<a>&lt;b&gt;k&lt;/b&gt;</a>", "<a>&lt;b&gt;k&lt;/b&gt;</a>"),
            ("<a><password><![CDATA[h]]></password></a>", "<a><password>[redacted]</password></a>"),
            (
                "<a><tokens>17</tokens><pin>1234</pin><secret>true</secret></a>",
                "<a><tokens>17</tokens><pin>[redacted]</pin><secret>true</secret></a>"
            ),
            (
                "<errors><password>is too short</password></errors>",
                "<errors><password>is too short</password></errors>"
            ),
            (
                "<EntityType Name=\"Session\"><Property Name=\"Token\" Type=\"Edm.Stri"
                    + "ng\"/></EntityType>",
                "<EntityType Name=\"Session\"><Property Name=\"Token\" Type=\"Edm.Stri"
                    + "ng\"/></EntityType>"
            ),
            // Kept as far as it is XML.
            ("<a><b>k</b><password>hun", "<a><b>k</b><password>"), ("<a><b>k</b", "<a><b>"),
            ("<a><b>k</c></a>", "<a><b>"), ("<a>k</a><b/>", "<a>k</a>"),
            (
                "\u{FEFF}<?xml version=\"1.0\"?><a>k</a>\n",
                "\u{FEFF}<?xml version=\"1.0\"?><a>k</a>\n"
            ),
        ])
    }

    func testPartsAndEvents() throws {
        let head = "--b\r\nContent-Disposition: form-data; name="
        try assertShown(
            [
                (
                    head + "\"password\"\r\n\r\nh\r\n" + head + "\"n\"\r\n\r\nk\r\n--b--\r\n",
                    head + "\"password\"\r\n\r\n[redacted]\r\n" + head
                        + "\"n\"\r\n\r\nk\r\n--b--\r\n"
                ),
                (
                    head
                        + "j\r\nContent-Type: application/json\r\n\r\n{\"pwd\":\"h"
                        + "\",\"n\":1}\r\n--b--",
                    head
                        + "j\r\nContent-Type: application/json\r\n\r\n{\"pwd\":\"[reda"
                        + "cted]\",\"n\":1}\r\n--b--"
                ),
                (
                    head
                        + "f; filename=x.txt\r\nContent-Type: text/plain\r\n\r\npasswo"
                        + "rd: h\r\n--b--",
                    head
                        + "f; filename=x.txt\r\nContent-Type: text/plain\r\n\r\n[redacted]\r\n--b--"
                ),
                (
                    "a preamble: h\r\n" + head + "n\r\n\r\nk\r\n--b--",
                    "[redacted]\r\n" + head + "n\r\n\r\nk\r\n--b--"
                ),
                (
                    "--b\nContent-Type: application/http\n\nGET /?token=h HTTP/1.1\nX-Api-Key: h\n"
                        + "Content-Type: application/json\n\n{\"pwd\":\"h\"}\n--b--",
                    "--b\nContent-Type: application/http\n\nGET /?token=[redacted] HTT"
                        + "P/1.1\nX-Api-Key: "
                        + "[redacted]\nContent-Type: application/json\n\n{\"pwd\":\"[r"
                        + "edacted]\"}\n--b--"
                ),
                // The last part is incomplete.
                (head + "n\r\n\r\nk\r\n" + head + "m\r\n\r\nhun", head + "n\r\n\r\nk\r\n--b\r\n"),
            ], type: "multipart/form-data; boundary=\"b\"")
        try assertShown(
            [
                (
                    "event: x\ndata: {\"token\":\"h\"}\n\ndata: {\"a\":1}\n\ndata: [DONE]\n\n",
                    "event: x\ndata: {\"token\":\"[redacted]\"}\n\ndata: {\"a\":1}\n\n"
                        + "data: [DONE]\n\n"
                ),
                (
                    ": password is h\ndata: password: h\ndata:{\"a\":1,\"p\nx\n",
                    ": [redacted]\ndata: [redacted]\ndata:{\"a\":1[redacted]\n[redacted]\n"
                ),
            ], type: "text/event-stream; charset=utf-8")
    }

    func testTokensOfKnownMakers() throws {
        for token in [
            "ghp_0123456789abcdefghijABCDEFGHIJ012345", "github_pat_11ABCDEFG0aBcDeFgHiJkL_abc",
            "glpat-abcdefghij1234567890", "xoxb-1234-5678-abcdef", "AKIAIOSFODNN7EXAMPLE",
            "ASIAIOSFODNN7EXAMPLE", "AIzaSyA0123456789abcdefghijklmnopqrstuv",
            "sk_live_abcdefghijklmnop", "sk-proj-abcdefghijklmnopqrstuv",
            "npm_abcdefghij0123456789",
            "SG.abcdefghijklmnop.klmnopqrstuvwxyz", "hf_abcdefghijklmnopqrstuvwx",
            "ya29.abcdefghijklmnopq",
            "shpat_0123456789abcdef0123456789abcdef", "dop_v1_0123456789abcdef0123456789",
            "pypi-AgEIcHlwaS5vcmcCJDAwMDAwMDAw", "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.c2ln",
        ] {
            try assertShown([
                (
                    "{\"note\":\"see \(token) there\",\"n\":1}",
                    "{\"note\":\"see [redacted] there\",\"n\":1}"
                ),
                ("<a>\(token)</a>", "<a>[redacted]</a>"),
            ])
        }
        try assertShown([
            (
                "{\"a\":\"sk-1 AKIA ghp_ risk_live_ task-management-for-all-of-you\"}",
                "{\"a\":\"sk-1 AKIA ghp_ risk_live_ task-management-for-all-of-you\"}"
            )
        ])
    }

    func testLinesAndAddresses() throws {
        let rules = try rules()
        for (text, wanted, isURL, isCut) in [
            ("at https://joe:HUNT", "at https://joe:[redacted]", false, true),
            ("https://joe:HUNT", "https://joe:[redacted]", true, true),
            ("https://h:8080", "https://h:8080", true, false),
            ("//joe:HUNTER2@h/", "//joe:[redacted]@h/", true, false),
            ("joe:h@example.com/a", "joe:[redacted]@example.com/a", true, false),
            ("example.com:8080", "example.com:8080", true, false),
            ("https://h/cb?token=o'HUNT<ER2&a=b", "https://h/cb?token=[redacted]&a=b", true, false),
            (
                "/a?key=h&code=x&PHPSESSID=y&country_code=de&pageToken=p",
                "/a?key=[redacted]&code=[redacted]&PHPSESSID=[redacted]&country_code=d"
                    + "e&pageToken=p",
                true, false
            ),
            (
                "/a?f=%7B%22pwd%22%3A%22h%22%7D#access_token=h",
                "/a?f=%7B%22pwd%22%3A%22[redacted]%22%7D#access_token=[redacted]", true, false
            ),
            (
                "url: '/x?token=o'HUNTER2' (Caused", "url: '/x?token=[redacted]' (Caused", false,
                false
            ),
            ("x password=o'HUNTER2 KEPT", "x password=[redacted] KEPT", false, false),
            ("a Bearer 1|HUNTER2 KEPT", "a Bearer [redacted] KEPT", false, false),
            ("a Bearer: HUNTER2 KEPT", "a Bearer: [redacted] KEPT", false, false),
            ("Bearer realm=\"a\", error=\"b\"", "Bearer realm=\"a\", error=\"b\"", false, false),
            ("x basic am9lOkhVTlRFUjJwdw== y", "x basic [redacted] y", false, false),
            (
                "Basic information about Basic auth", "Basic information about Basic auth", false,
                false
            ),
            ("{\"password\":\"h\"}", "{\"password\":\"[redacted]\"}", false, false),
            ("sid=h; a=b", "sid=[redacted] a=b", false, false),
            (
                "password: h and h\n  Cookie: a=h; b=h\nX: k",
                "password: [redacted]\n  Cookie: [redacted]\nX: k", false, false
            ),
            ("{'pin': 'h', 'a': 'k'}", "{'pin': '[redacted]', 'a': 'k'}", false, false),
            ("Forgot your password: ask us", "Forgot your password: ask us", false, false),
            ("std::token::x at 12:30", "std::token::x at 12:30", false, false),
        ] {
            XCTAssertEqual(line(text, rules, isURL: isURL, isCut: isCut), wanted, text)
        }
    }

    func testBodiesTakeLinearTime() throws {
        let rules = try rules()
        let open = String(repeating: "{\"value\":", count: 60)
        for piece in [
            "{\"value\":", "{\"value\":1,\"name\":\"password\"},", "\"value\":\"a\",", "[", "\\\"",
            "<a b=\"", "<x name=\"token\"><value>", "<key>token</key><string>", "&quot;", "a=",
            "a=%7B", "%25", "Basic dXNl", "-----BEGIN PRIVATE KEY-----", "\"//a:b@", "%3Ctoken%3E",
            "--a\n", "data: {\n", "ghp_", "SG.", "eyJ", "token=\"", "<!--", open + "1" + "}",
        ] {
            let text = String(repeating: piece, count: (32 << 10) / piece.utf8.count)
            for begin in ["{\"a\":\"", "[", "<a>"] {
                let start = threadSeconds()
                for type in ["", "multipart/form-data; boundary=a", "text/event-stream"] {
                    _ = redact(Array((begin + text).utf8), rules, type: type, isCut: true)
                }
                _ = redact(
                    Array((begin + text).utf8), rules, type: "application/x-www-form-urlencoded",
                    keepsText: true)
                XCTAssertLessThan(threadSeconds() - start, 4, begin + piece)
            }
        }
    }

    /// However far the next '=' is, and however many keys may begin.
    func testLongFormsTakeLinearTime() throws {
        let rules = try rules()
        let long = String(repeating: "a", count: 8 << 20)
        for text in [
            String(repeating: "%5F&", count: 120_000) + long,
            String(repeating: "sk-", count: 100_000),
        ] {
            let start = threadSeconds()
            let out = redact(
                Array(text.utf8), rules, type: "application/x-www-form-urlencoded", keepsText: true)
            XCTAssertLessThan(threadSeconds() - start, 4)
            XCTAssertEqual(out.utf8.count, text.utf8.count)
        }
    }

    func testWhatIsKeptIsSaid() throws {
        var options = HTTPCaptureOptions()
        options.keepKeys = ["session", "api.example.com/v1/:cursor_token"]
        options.keepText = ["api.example.com text/plain", "*.other.org text/*", "* errors"]
        let rules = try unsafe HTTPRules(
            logger: XCTUnwrap(engine).findLogger("HTTP").block, options)
        func bits(_ url: String) -> (UInt64, UInt64) {
            unsafe Array(url.utf8).withUnsafeBufferPointer {
                let text = unsafe ByteText($0.baseAddress, $0.count)
                let parts = URLParts(text)
                return (rules.keep.texts(text, parts), rules.keep.keys(text, parts))
            }
        }
        func keeps(_ url: String, _ type: String, _ status: Int32) -> Bool {
            unsafe Array(type.utf8).withUnsafeBufferPointer {
                rules.keep.keepsText(
                    bits(url).0, unsafe ByteText($0.baseAddress, $0.count), status: status)
            }
        }
        XCTAssertTrue(keeps("https://api.example.com/x", "text/plain; charset=utf-8", 200))
        XCTAssertFalse(keeps("https://api.example.com/x", "text/html", 200))
        XCTAssertTrue(keeps("https://a.other.org/x", "TEXT/html", 200))
        XCTAssertFalse(keeps("https://b.org/x", "text/plain", 200))
        XCTAssertTrue(keeps("https://b.org/x", "text/plain", 500))
        XCTAssertFalse(keeps("https://b.org/x", "text/html", 500))
        XCTAssertEqual(bits("https://api.example.com/v1/list?a").1, 1)
        XCTAssertEqual(bits("https://api.example.com/v2/list").1, 0)
        XCTAssertEqual(
            redact("{\"session\":\"k\",\"userSession\":\"h\",\"cursor_token\":\"h\"}", rules),
            "{\"session\":\"k\",\"userSession\":\"[redacted]\",\"cursor_token\":\"[redacted]\"}")
        for wrong in ["api.example.com", "a b c", "* text", "^ text/plain"] {
            options.keepText = [wrong]
            XCTAssertThrowsError(
                try unsafe HTTPRules(
                    logger: XCTUnwrap(engine).findLogger("HTTP").block, options), wrong)
        }
        options.keepText = []
        for wrong in ["", "--", "a/b:", "^/x:name"] {
            options.keepKeys = [wrong]
            XCTAssertThrowsError(
                try unsafe HTTPRules(
                    logger: XCTUnwrap(engine).findLogger("HTTP").block, options), wrong)
        }
    }
}
