// Shapes in which secrets were seen or sought: names that are values, blocks, credentials of
// addresses, private keys, text within text. Each must be hidden, and what stands beside it kept;
// ordinary texts stay whole.

import XCTest

@testable import Cordwood
@testable import CordwoodCore

final class RedactionShapeTests: XCTestCase {
    private let directory =
        NSTemporaryDirectory() + "cordwood-shapes-\(UInt64.random(in: 0...(.max)))"
    private var engine: Engine?

    override func setUpWithError() throws { engine = try Engine(directory: directory) }

    override func tearDownWithError() throws {
        try engine?.close()
        try FileManager.default.removeItem(atPath: directory)
    }

    private func redact(_ text: String, isCut: Bool = false) throws -> String {
        let rules = try unsafe HTTPRules(
            logger: XCTUnwrap(engine).findLogger("HTTP").block, HTTPCaptureOptions())
        var edits = Edits()
        var out = ByteBuffer()
        unsafe Array(text.utf8).withUnsafeBufferPointer {
            unsafe Redactor(Unmanaged.passUnretained(rules)).body(
                ByteText($0.baseAddress, $0.count), contentType: ByteText.empty, isCut: isCut,
                &edits, into: &out)
        }
        return String(decoding: out.text.array, as: UTF8.self)
    }

    private func assertHidden(
        _ texts: [String], _ secret: String = "HUNTER2", isCut: Bool = false, line: UInt = #line
    ) throws {
        for text in texts {
            let shown = try redact(text, isCut: isCut)
            XCTAssertFalse(shown.contains(secret), "\(text) -> \(shown)", line: line)
            XCTAssertTrue(shown.contains("[redacted]"), text, line: line)
            XCTAssertEqual(
                text.contains("KEPT"), shown.contains("KEPT"), "\(text) -> \(shown)", line: line)
        }
    }

    private static let named: [String] = [
        "{\"name\":\"password\",\"value\":\"HUNTER2\",\"n\":\"KEPT\"}",
        "{\"value\":\"HUNTER2\",\"name\":\"password\",\"n\":\"KEPT\"}",
        "{\"id\":\"7\",\"value\":\"HUNTER2\",\"x\":{\"a\":[1,{\"b\":\"}\"}]},\"key\":\"api_ke"
            + "y\",\"n\":\"KEPT\"}",
        "[{\"name\":\"Accept\",\"value\":\"KEPT\"},{\"name\":\"Authorization\",\"value\":\"Di"
            + "gest HUNTER2\"}]",
        "[{\"name\":\"Authorization\",\"value\":[\"HUNTER2\"]},{\"name\":\"Accept\",\"value\""
            + ":\"KEPT\"}]",
        "{ \"Name\" : \"/prod/db/password\" , \"Type\":\"SecureString\", \"Value\" : \"HUNTER"
            + "2\", \"x\":\"KEPT\" }",
        "{\"env\":[{\"name\":\"A\",\"value\":\"KEPT\"},{\"name\":\"DB_PASSWORD\",\"value\":\""
            + "HUNTER2\"}]}",
        "{\"type\":\"password\",\"value\":\"HUNTER2\",\"temporary\":\"KEPT\"}",
        "{\"o\": \"{\\\"name\\\": \\\"token\\\", \\\"value\\\": \\\"HUNTER2\\\"}\", \"k\": \""
            + "KEPT\"}",
        "{\"o\": \"{\\\"p\\\": \\\"{\\\\\\\"value\\\\\\\": \\\\\\\"HUNTER2 \\\\\\\\\\\\\\\"x"
            + "\\\\\\\\\\\\\\\"\\\\\\\", \\\\\\\"name\\\\\\\": \\\\\\\"token\\\\\\\"}\\\"}\", \"k\""
            + ": \"KEPT\"}",
        "{\"attr\":\"userPassword\",\"values\":[\"HUNTER2\"],\"k2\":\"KEPT\"}",
        "x\"y {\"a\": \"{\"name\":\"password\",\"value\":\"HUNTER2\",\"b\":\"KEPT\"}",
        "{\"name\":\"X-Auth-Key\",\"value\":\"HUNTER2\",\"b\":\"KEPT\"}",
        "{\"key\":\"client_secret\",\"value\":\"HUNTER2\",\"type\":\"text\",\"b\":\"KEPT\"}",
        "--b\r\nContent-Disposition: form-data; name=\"j\"\r\nContent-Type: application/json"
            + "\r\n\r\n{\"password\":\"HUNTER2\",\"name\":\"KEPT\"}\r\n--b--",
    ]

    private static let markup: [String] = [
        "<form><input name=\"password\" value=\"HUNTER2\"><b>KEPT</b>",
        "<input value='HUNTER2' type=text name=password><b>KEPT</b>",
        "<input type=password value=HUNTER2/><b>KEPT</b>",
        "<INPUT TYPE='hidden' NAME='csrf_token' VALUE='HUNTER2'>KEPT",
        "<input disabled id=\"pin\" value=\"HUNTER2\"/>KEPT",
        "<property name=\"password\">HUNTER2</property><b>KEPT</b>",
        "<add key=\"Password\" value=\"HUNTER2\"/><b>KEPT</b>",
        "<property name=\"db.password\"><value>HUNTER2</value></property><b>KEPT</b>",
        "<entry key=\"token\"><![CDATA[HUNTER2]]></entry><b>KEPT</b>",
        "<meta name=\"csrf-token\" content=\"HUNTER2\"><p>KEPT",
        "<dict><key>password</key>\n <string>HUNTER2</string><key>a</key><string>KEPT</string"
            + "></dict>",
        "<member><name>password</name><value><string>HUNTER2</string></value></member><b>KEPT"
            + "</b>",
        "<tr><td>HTTP_COOKIE</td><td class=\"code\"><pre>&#x27;HUNTER2&#x27;</pre></td><td>KE"
            + "PT</td>",
        "<textarea name=\"private_key\">HUNTER2</textarea>KEPT",
        "{\"html\": \"<input name=\\\"password\\\" value=\\\"HUNTER2\\\">\", \"x\": \"KEPT\"}",
        "{\"html\":\"<input name='password' value='HUNTER2'>\",\"x\":\"KEPT\"}",
        "<s:Envelope><wsse:Security><wsse:BinarySecurityToken>HUNTER2</wsse:BinarySecurityTok"
            + "en></wsse:Security><b>KEPT</b></s:Envelope>",
        "<Error><AWSAccessKeyId>KEPT</AWSAccessKeyId><SecretAccessKey>HUNTER2</SecretAccessKe"
            + "y><SessionToken>HUNTER2</SessionToken></Error>",
        "<user password=\"HUNTER2\" name=\"KEPT\"/>",
        "<user password='HUNTER2' name='KEPT'/>",
        "<user password = \"HUNTER2\" n=\"KEPT\"/>",
        "<password><![CDATA[HUNTER2]]></password><b>KEPT</b>",
        "&lt;password&gt;HUNTER2&lt;/password&gt; KEPT",
        "<x>{\"password\":\"HUNTER2\"}</x><b>KEPT</b>",
        "<script>var c={apiKey:\"HUNTER2\",a:\"KEPT\"}</script>",
        "{&quot;password&quot;:&quot;HUNTER2&quot;,&quot;a&quot;:&quot;KEPT&quot;}",
        "xml=%3Cpassword%3EHUNTER2%3C%2Fpassword%3E&a=KEPT",
    ]

    private static let blocks: [String] = [
        "password: |\n  HUNTER2\n  HUNTER2\nuser: KEPT",
        "a:\n  password: >-\n    HUNTER2\n\n    HUNTER2\n  user: KEPT",
        "token:\n  HUNTER2\nuser: KEPT",
        "tokens:\n- HUNTER2\n- HUNTER2\nuser: KEPT",
        "credentials:\n  user: HUNTER2\n  x: HUNTER2\nuser: KEPT",
        "password: x\n   HUNTER2\nuser: KEPT",
        "a: KEPT\r\npassword: |\r\n  HUNTER2\r\n  HUNTER2\r\nb: c",
        "Cookie: a=1;\r\n b=HUNTER2\r\nX: KEPT",
        "password: | # note\n  HUNTER2\nuser: KEPT",
        "password: |\n\n  HUNTER2\nuser: KEPT",
        "X-Api-Key:HUNTER2\r\nA: KEPT",
        "X-Functions-Key: HUNTER2\nA: KEPT",
        "Authorization: Digest username=\"a\", response=\"HUNTER2\"\nA: KEPT",
        "event: x\ndata: {\"token\":\"HUNTER2\"}\n\ndata: {\"a\":\"KEPT\"}\n\n",
        "password:\n\tHUNTER2\nuser: KEPT",
        "password:   \"HUNTER2\"\nuser: KEPT",
    ]

    private static let others: [String] = [
        "{\"na\\u006de\":\"pass\\u0077ord\",\"val\\u0075e\":\"HUNTER2\",\"x\":\"KEPT\"}",
        "{\"ParameterKey\":\"DbPassword\",\"ParameterValue\":\"HUNTER2\",\"x\":\"KEPT\"}",
        "{\"headers\":{\"X-Functions-Key\":\"HUNTER2\",\"b\":\"KEPT\"}}",
        "{\"field\":\"pin\",\"content\":\"HUNTER2\",\"b\":\"KEPT\"}",
        "see //joe:HUNTER2@host/KEPT",
        "a=\"//joe:HUNTER2@host/\" KEPT",
        "{\"u\":\"//joe:HUNTER2@host/KEPT\"}",
        "(//joe:HUNTER2@h) KEPT",
        "{\"u\":\"https:\\/\\/joe:HUNTER2@host\\/KEPT\"}",
        "{\"u\":\"\\/\\/joe:HUNTER2@host\\/KEPT\"}",
        "git remote: https://joe:HUNTER2@github.com/KEPT.git",
        "{\"dsn\":\"postgres://joe:HUNTER2@db/KEPT\"}",
        "- password: |2\n    HUNTER2\n  user: KEPT",
        "{\"yaml\": \"password: |\\n  HUNTER2\\nuser: KEPT\\n\"}",
        "-----BEGIN RSA PRIVATE KEY-----\nHUNTER2\nHUNTER2\n-----END RSA PRIVATE KEY-----\nKEPT",
        "KEPT -----BEGIN PRIVATE KEY-----\nHUNTER2",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nHUNTER2\n-----END PGP PRIVATE KEY BLOCK----"
            + "-\nKEPT",
        "{\"pem\": \"-----BEGIN EC PRIVATE KEY-----\\nHUNTER2\\n-----END EC PRIVATE KEY-----"
            + "\\n-----BEGIN PRIVATE KEY-----\\nHUNTER2\\n-----END PRIVATE KEY-----\\n\", \"a\": \""
            + "KEPT\"}",
        "{\"access_token\":\"HUNTER2\",\"token_type\":\"KEPT\",\"refresh_token\":\"HUNTER2\","
            + "\"id_token\":\"HUNTER2\"}",
        "{\"query\":\"mutation($p:String!){login(p:$p)}\",\"variables\":{\"password\":\"HUNTE"
            + "R2\",\"u\":\"KEPT\"}}",
        "{\"a\":\"KEPT\"}\n{\"password\":\"HUNTER2\"}\n{\"token\":\"HUNTER2\"}",
        "{\"cookie\":\"sid=HUNTER2; a=b\",\"x\":\"KEPT\"}",
        "{\"h\":\"Cookie: sid=HUNTER2 KEPT\"}",
        "{\"headers\":[\"Authorization: Bearer HUNTER2\",\"A: KEPT\"]}",
        "https://s3/x?X-Amz-Credential=HUNTER2&X-Amz-Signature=HUNTER2&X-Amz-Security-Token=H"
            + "UNTER2&a=KEPT",
        "AWS4-HMAC-SHA256 Credential=HUNTER2/x, SignedHeaders=KEPT, Signature=HUNTER2",
        "curl -H \"X-Api-Key: HUNTER2\" KEPT",
        "curl -H 'Authorization: Token HUNTER2' KEPT",
        "headers={'X-Api-Key': 'HUNTER2', 'A': 'KEPT'}",
        "{b'authorization': b'HUNTER2', b'a': b'KEPT'}",
        "array(1) {\n  [\"password\"]=>\n  string(7) \"HUNTER2\"\n  [\"a\"]=>\n string(4) \"K"
            + "EPT\"",
        "User(name=KEPT, password=HUNTER2)",
        "password = \"HUNTER2\" # KEPT",
        "export DB_PASSWORD=HUNTER2\nA=KEPT",
        "ConnectionString=\"Server=KEPT;Password=HUNTER2;\"",
        "{\"cs\":\"Server=KEPT;Password=HUNTER2;x=y\"}",
        "{\"password\" : null, \"Password\":\"HUNTER2\",\"x\":\"KEPT\"}",
        "fields[password]=HUNTER2&a=KEPT",
        "{\"user\":{\"pass\":\"HUNTER2\"},\"x\":\"KEPT\"}",
        "callback({\"token\":\"HUNTER2\",\"a\":\"KEPT\"})",
        ")]}',\n{\"token\":\"HUNTER2\",\"a\":\"KEPT\"}",
        "while(1);{\"token\":\"HUNTER2\",\"a\":\"KEPT\"}",
        "a,KEPT\n\"password\":\"HUNTER2\"",
        "data:{\"token\":\"HUNTER2\"}\n\nKEPT",
        "window.__STATE__ = JSON.parse(\"{\\\"token\\\":\\\"HUNTER2\\\",\\\"a\\\":\\\"KEPT\\"
            + "\"}\")",
        "%7B%22name%22%3A%22password%22%2C%22value%22%3A%22HUNTER2%22%7D&a=KEPT",
        "u=//joe:HUNTER2@h&a=KEPT",
        "u=%2F%2Fjoe%3AHUNTER2%40h&a=KEPT",
        "{\"headers\":{\"Authorization\":[\"Basic HUNTER2\"],\"A\":[\"KEPT\"]}}",
        "{\"passwords\":{\"a\":\"HUNTER2\"},\"b\":\"KEPT\"}",
    ]

    private static let cut: [String] = [
        "[{\"a\":\"KEPT\"},{\"value\":\"HUNTER2\",\"na",
        "[{\"a\":\"KEPT\"},{\"name\":\"password\",\"value\":\"HUNTER2",
        "[{\"a\":\"KEPT\"},{\"value\":\"HUNTER2 and",
        "{\"a\":\"KEPT\",\"b\":{\"value\":\"HUNTER2\",\"name\":\"pass",
        "<a><b>KEPT</b><input name=\"password\" value=\"HUNTER2",
        "<a><b>KEPT</b><property name=\"password\">HUNTER2",
        "user: KEPT\npassword: |\n  HUNTER2",
    ]

    private static let plain: [String] = [
        "Basic information about basic authentication: use Basic auth, basically",
        "It became basic. Basic understanding of Basic: x",
        "{\"name\":\"Alice\",\"value\":\"x\"}",
        "{\"value\":[{\"name\":\"a\",\"text\":\"b\"}],\"name\":\"list\"}",
        "{\"id\":\"session\",\"text\":\"Session\"}",
        "{\"type\":\"token\",\"text\":\"foo\"}",
        "{\"id\":1,\"name\":\"tokenizer\",\"value\":5}",
        "[{\"name\":\"password\"},{\"value\":\"x\"}]",
        "{\"a\":{\"name\":\"password\"},\"value\":\"x\"}",
        "{\"value\":\"x\",\"a\":{\"name\":\"password\"}}",
        "{\"a\":[\"name\",\"password\"],\"value\":\"x\"}",
        "{\"required\":[\"username\",\"password\"]}",
        "{\"name\":\"password\",\"label\":\"Your password\",\"required\":true}",
        "<form action=\"/login\"><input name=\"username\" value=\"joe\"><input type=\"submit"
            + "\" name=\"reset_password\" value=\"Reset\"></form>",
        "<a name=\"token\">Tokens</a><div id=\"session\"><p value=\"3\">hello</p></div>",
        "<label for=\"password\">Password</label><input id=\"password\" name=\"password\" typ"
            + "e=\"password\">",
        "<tr><td>Password</td><td><input name=\"password\" type=\"password\"></td></tr>",
        "<EntityType Name=\"Session\"><Key><PropertyRef Name=\"Token\"/></Key><Property Name="
            + "\"Token\" Type=\"Edm.String\"/></EntityType>",
        "<select name=\"token\"><option value=\"1\">One</option></select>",
        "// a comment: foo@bar.com",
        "http://h//a:8080/b@c",
        "see http://h/x//y:z@w",
        "mailto:a@b // x y@z",
        "Your password:\n  must have 8 characters",
        "note: a\n  b\nsecretary: x\n  y",
        "To: a\r\n b\r\nSubject: x",
        "Forgot your password: ask us",
        "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
        "PRIVATE KEY ----- no",
        "-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----",
        "{\"key\":\"a\",\"value\":\"b\"}",
        "<key>name</key><string>x</string>",
        "<td>Tokenizer</td><td>x</td>",
        "{\"@odata.context\":\"$metadata#S\",\"value\":[{\"Name\":\"a\",\"Value\":\"b\"}]}",
        "Unexpected token: nothing",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"what is a token?\"}],\"type\":\"toke"
            + "n\"}",
        "{\"name\":\"Reset your mail\",\"value\":\"https://x\"}",
        "std::token::x",
        "Token::new(x)",
        "<p>password</p><p>x</p>",
    ]

    func testNamesThatAreValues() throws { try assertHidden(Self.named) }
    func testMarkupWhoseNamesAreValuesAndTextInIt() throws { try assertHidden(Self.markup) }
    func testLinesAndBlocksBelowAName() throws { try assertHidden(Self.blocks) }
    func testOtherShapes() throws { try assertHidden(Self.others) }
    func testShapesThatWereCut() throws { try assertHidden(Self.cut, isCut: true) }

    private static let attacked: [String] = [
        "[tls]\nkey = \"\"\"\n-----BEGIN RSA PRIVATE KEY-----\nHUNTER2\n-----END RSA PRIVATE "
            + "KEY-----\n\"\"\"\nKEPT",
        "[2026-11-22 10:00:01] KEPT\npassword: HUNTER2",
        "[x] &lt;password&gt;HUNTER2&lt;/password&gt; KEPT",
        "<r><token><tokenType>Bearer</tokenType><value>HUNTER2</value></token><b>KEPT</b></r>",
        "KEPT <password> then\n<input name=\"password\" value=\"HUNTER2\">",
        "{\"u\":\"https://h/x?Signature=~HUNTER2&b=KEPT\"}",
        "a KEPT password==HUNTER2",
        "{\"u\":\"https%3A//user%3AHUNTER2%40host/KEPT\"}",
        "{\"name\":\"spring.\(String(repeating: "app.", count: 40))password\","
            + "\"value\":\"HUNTER2\",\"n\":\"KEPT\"}",
        "<p><property name=\"password\">HUNTER2\(String(repeating: "x", count: 20_000))</property>"
            + "KEPT</p>",
        "<p><key>password</key><string>HUNTER2\(String(repeating: "x", count: 20_000))</string>"
            + "KEPT</p>",
    ]

    func testShapesThatWereFoundByAttack() throws { try assertHidden(Self.attacked) }

    /// Texts in texts of several kinds multiply: what is looked into is bounded, the rest is
    /// replaced whole.
    func testTextsInTextsAreBounded() throws {
        let slashes = String(repeating: "\\", count: 63)
        let inner = String(repeating: "<k>pin</k><val>", count: 4_000)
        let text = "x \"\(slashes)\"&amp;amp;amp;amp;lt;%2525252522\(inner)\""
        let began = threadSeconds()
        let shown = try redact(text)
        let seconds = threadSeconds() - began
        XCTAssertTrue(shown.contains("[redacted]"))
        XCTAssertLessThan(seconds, 5, "a debug build; minutes where nothing is bounded")
    }

    func testOrdinaryTextsStayWhole() throws {
        for text in Self.plain { XCTAssertEqual(try redact(text), text) }
    }

    func testBasicCredentials() throws {
        let secret = "am9lOkhVTlRFUjJwdw=="
        try assertHidden(
            [
                "{\"a\":\"Basic \(secret)\",\"b\":\"KEPT\"}", "x basic \(secret) KEPT",
                "auth=Basic%20\(secret)&a=KEPT", "<td>Basic \(secret)</td>KEPT",
                "{\"headers\":[\"Authorization: Basic \(secret)\",\"A: KEPT\"]}",
            ], secret)
        try assertHidden(["KEPT Basic \(secret.prefix(12))"], secret, isCut: true)
    }

    func testShapesTakeLinearTime() throws {
        for piece in [
            ",\"value\":1", "{\"value\":", "{\"value\":[", "\"value\":\"a\",", "<a b=\"",
            "<x name=\"token\"><value>", "<td>token</td><td>", "&quot;", "&lt;token&gt;",
            "{&quot;token&quot;:", "Basic dXNl", "-----BEGIN PRIVATE KEY-----", "token:\n ",
            "token:\n\n", "- - - ", "\"//a:b@", "[\"token\"]=>", "%3Ctoken%3E",
        ] {
            let text = String(repeating: piece, count: (48 << 10) / piece.utf8.count)
            let start = threadSeconds()
            _ = try redact(text, isCut: true)
            _ = try redact(text + "\"")
            XCTAssertLessThan(threadSeconds() - start, 4, piece)
        }
    }
}
