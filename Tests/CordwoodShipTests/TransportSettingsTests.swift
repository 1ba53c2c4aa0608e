// Settings that cannot be right are refused when a target is added, with the name and the reason
// but no secret; where redirections may lead; headers and credentials that cannot be sent.

import CordwoodStore
import Foundation
import Glibc
import XCTest

@testable import CordwoodShip

final class TransportSettingsTests: XCTestCase {
    private func refusal(_ change: (inout TargetOptions) -> Void) -> String {
        var options = TargetOptions(url: "https://logs.example")
        change(&options)
        do {
            _ = try Target(options)
            return ""
        } catch {
            XCTAssertEqual(error.status, .argument)
            return error.text
        }
    }

    func testFilesAreCheckedWhenTheTargetIsAdded() throws {
        let made = try XCTUnwrap(Authority.made)
        let missing = made("missing.pem")
        let empty = made("empty.pem")
        let fifo = made("fifo.pem")
        let huge = made("huge.pem")
        let locked = made("locked.pem")
        _ = FileManager.default.createFile(atPath: empty, contents: Data())
        _ = FileManager.default.createFile(atPath: huge, contents: nil)
        _ = FileManager.default.createFile(atPath: locked, contents: Data("x".utf8))
        XCTAssertEqual(truncate(huge, 5 << 20), 0)
        mkfifo(fifo, 0o600)
        chmod(locked, 0)
        XCTAssertEqual(
            refusal { $0.caFile = missing }, "ca_file '\(missing)': No such file or directory")
        XCTAssertEqual(
            refusal { $0.caFile = empty }, "ca_file '\(empty)' holds no PEM of a certificate")
        XCTAssertEqual(refusal { $0.caFile = fifo }, "ca_file '\(fifo)': is not a regular file")
        XCTAssertEqual(
            refusal { $0.caFile = made.directory },
            "ca_file '\(made.directory)': is not a regular file")
        XCTAssertEqual(refusal { $0.caFile = huge }, "ca_file '\(huge)': is over 4194304 bytes")
        XCTAssertEqual(
            refusal { $0.caFile = made("client-key.pem") },
            "ca_file '\(made("client-key.pem"))' holds no PEM of a certificate")
        if getuid() != 0 {
            XCTAssertEqual(refusal { $0.caFile = locked }, "ca_file '\(locked)': Permission denied")
        }
        XCTAssertEqual(refusal { $0.caFile = made("ca.pem") }, "")
        XCTAssertEqual(refusal { $0.caFile = "" }, "")
        XCTAssertTrue(refusal { $0.caFile = "a\nb" }.hasPrefix("ca_file is over"))
        XCTAssertTrue(refusal { $0.caFile = "no/such/place.pem" }.contains("/no/such/place.pem'"))

        let certificate = made("client.pem")
        XCTAssertEqual(
            refusal { $0.clientKeyFile = made("client-key.pem") },
            "client_key_file and client_key_password need client_certificate_file")
        XCTAssertTrue(refusal { $0.clientCertificateFile = certificate }.contains("private key"))
        XCTAssertEqual(
            refusal {
                $0.clientCertificateFile = certificate
                $0.clientKeyFile = certificate
                $0.clientKeyPassword = "key-secret"
            }, "client_key_file '\(certificate)' holds no PEM of a private key")
        XCTAssertEqual(refusal { $0.clientCertificateFile = made("client-both.pem") }, "")
        XCTAssertEqual(
            refusal {
                $0.clientCertificateFile = certificate
                $0.clientKeyFile = made("client-locked.pem")
            }, "")
    }

    func testProxies() {
        for proxy in ["http://proxy", "https://proxy:3128", "socks5h://[::1]:1080/", "HTTP://p:1"] {
            XCTAssertEqual(refusal { $0.proxy = proxy }, "", proxy)
        }
        let wrong = [
            "proxy:3128", "socks4://proxy", "http://", "http://proxy:0", "http://user:secret@proxy",
            "http://proxy/path", "http://pro xy", "://proxy", "http:/proxy", "http://proxy?secret",
        ]
        for proxy in wrong {
            let text = refusal { $0.proxy = proxy }
            XCTAssertTrue(text.hasPrefix("proxy is not SCHEME://HOST:PORT"), "\(proxy): \(text)")
            XCTAssertFalse(text.contains("secret"))
        }
        XCTAssertEqual(refusal { $0.proxy = "" }, "")
        XCTAssertTrue(
            refusal {
                $0.proxy = ""
                $0.proxyAuthentication = "a:secret"
            }.hasPrefix("proxy_auth is given"))
        for word in ["secret", ":secret", "a\nsecret:b"] {
            let text = refusal { $0.proxyAuthentication = word }
            XCTAssertTrue(text.hasPrefix("proxy_auth"), text)
            XCTAssertFalse(text.contains("secret"), text)
        }
        XCTAssertEqual(refusal { $0.proxyAuthentication = "a:b:c" }, "")
    }

    func testOptionsOfLibcurlAreRefusedBesideATransport() {
        let host = ToldTransport { _ in UploadResponse(status: 200) }
        XCTAssertEqual(refusal { $0.transport = host }, "")
        let changes: [(String, (inout TargetOptions) -> Void)] = [
            ("ca_file", { $0.caFile = "/ca.pem" }), ("proxy", { $0.proxy = "" }),
            ("http_version", { $0.httpVersion = 2 }),
            ("client_certificate_file", { $0.clientCertificateFile = "/a" }),
        ]
        for (name, change) in changes {
            let text = refusal {
                $0.transport = host
                change(&$0)
            }
            XCTAssertTrue(text.hasPrefix("\(name) is libcurl's"), text)
        }
    }

    func testCredentialsThatCannotBeSent() {
        XCTAssertTrue(refusal { $0.authToken = "geheimnis-ü" }.hasPrefix("auth_token is not"))
        XCTAssertTrue(refusal { $0.authToken = "two words" }.hasPrefix("auth_token is not"))
        XCTAssertTrue(refusal { $0.authUser = "a:b" }.hasPrefix("auth_user holds a colon"))
        XCTAssertTrue(refusal { $0.authPassword = "secret" }.hasPrefix("auth_password is given"))
        for text in ["a\r\nX-Evil: 1", "a\nb", "a\u{0}b", "a\u{7F}"] {
            XCTAssertTrue(refusal { $0.authToken = text }.hasPrefix("auth_token"))
            XCTAssertTrue(refusal { $0.authUser = text }.hasPrefix("auth_user"))
            XCTAssertTrue(
                refusal {
                    $0.authUser = "a"
                    $0.authPassword = text
                }.hasPrefix("auth_password"))
        }
        let long = String(repeating: "s", count: 16_385)
        XCTAssertFalse(refusal { $0.authToken = long }.contains("sss"))
        XCTAssertTrue(
            refusal {
                $0.credentials = { _ in nil }
                $0.headers = "Authorization: Basic x"
            }.contains("exclude"))
        let basic = Credentials(user: "Jörg", password: "pass:wört").authorization
        XCTAssertEqual(
            basic?.value, "Basic " + Data("Jörg:pass:wört".utf8).base64EncodedString())
        XCTAssertEqual(Credentials(token: "t", user: "u").authorization?.value, "Bearer t")
        XCTAssertNil(Credentials().authorization)
    }

    func testErrorsShowNoPathOfAURL() {
        let urls = [
            "http://h/secret x", "https://u:secret@h/", "ftp://h/secret", "h/secret",
            "http://h:99999/secret", "http://[::1/secret", "https:///secret", "http://h/\\secret",
            "http://h?secret y", "http://h#secret y", "secret@h", "http:/secret",
        ]
        for url in urls {
            let text = refusal { $0.url = url }
            XCTAssertNotEqual(text, "", url)
            XCTAssertFalse(text.contains("secret"), text)
        }
    }

    func testHeadersStartNoSecondLine() throws {
        for text in ["A: b\rC: d", "A: b\u{0}", "A : b", ": b", "Ä: b", "A\u{B}: b", "A: \u{8}"] {
            XCTAssertThrowsError(try RequestHeader.parse(text), text)
        }
        for name in ["Content-Length", "TRANSFER-ENCODING", "Proxy-Authorization"] {
            XCTAssertThrowsError(try RequestHeader.parse("\(name): x"), name)
        }
        let two = try RequestHeader.parse("A: ä\t \nB:")
        XCTAssertEqual(two.map(\.value), ["ä", ""])
        XCTAssertEqual(two[1].lineBytes, "B;".utf8.map { CChar($0) } + [0])
        XCTAssertThrowsError(
            try RequestHeader.parse(String(repeating: "A: b\n", count: 65)))
    }

    func testWhereRedirectionsMayLead() {
        let from = "https://Logs.example:8443/a/b?c=d"
        let fine = [
            ("/x", "https://Logs.example:8443/x"), ("x", "https://Logs.example:8443/a/x"),
            ("?y=z", "https://Logs.example:8443/a/b?y=z"),
            ("https://logs.example:8443/n#f", "https://logs.example:8443/n"),
            ("//logs.EXAMPLE:8443/n", "https://logs.EXAMPLE:8443/n"),
        ]
        for (location, to) in fine {
            XCTAssertEqual(Redirection.target(location, from: from), to)
        }
        let refused = [
            "", "#f", "https://logs.example/n", "http://logs.example:8443/n", "//evil.example/n",
            "https://logs.example:8443@evil.example/", "https://evil.example", "ftp://logs.example",
            "javascript:x", "https:/logs.example:8443/n", "/a b", "/a\\b", "\\\\evil.example",
            "https://logs.example:8443\\@evil.example",
        ]
        for location in refused {
            XCTAssertNil(Redirection.target(location, from: from), location)
        }
        XCTAssertEqual(
            Redirection.target("x", from: "http://h?q"), "http://h/x")
        XCTAssertEqual(Redirection.target("/x", from: "http://h"), "http://h/x")
    }
}
