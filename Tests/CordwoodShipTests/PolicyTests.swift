// B-SAP-9: policies as documents, what a store keeps of them, and one look at a URL, against a
// server on loopback that answers as it is told.

import CordwoodCore
import CordwoodStore
import CordwoodTestSupport
import Foundation
import XCTest

@testable import CordwoodShip

final class PolicyTests: XCTestCase {
    private func document(_ text: String) throws -> PolicyDocument {
        try PolicyDocument(json: Array(text.utf8))
    }

    private func problem(_ text: String) -> String {
        do {
            _ = try document(text)
            return ""
        } catch {
            return (error as? UploadError)?.text ?? "?"
        }
    }

    func testB_SAP_9_everyKey() throws {
        let policy = try document(
            """
            {"enabled": false, "levels": {"": "warn", "app.db": "DEBUG", "a": "INFO+2", "b": 7,
             "c": "off", "d": 255, "e": "24"}, "expiration_days": 3, "max_files": 0,
             "max_file_size_bytes": 65536, "quota_bytes": 9223372036854775807,
             "upload_interval_s": 4294967295, "enable": true, "x\\ty": []}
            """)
        XCTAssertEqual(policy.isEnabled, false)
        XCTAssertEqual(
            policy.levels.map { "\($0.prefix)=\($0.number)" },
            ["=13", "app.db=5", "a=11", "b=7", "c=255", "d=255", "e=24"])
        XCTAssertEqual(policy.expirationDays, 3)
        XCTAssertEqual(policy.filesMax, 0)
        XCTAssertEqual(policy.fileBytesMax, 65_536)
        XCTAssertEqual(policy.quotaBytes, 9_223_372_036_854_775_807)
        XCTAssertEqual(policy.uploadIntervalSeconds, .max)
        XCTAssertEqual(policy.unknownKeys, ["enable", "x?y"])
        XCTAssertEqual(try document("{}"), PolicyDocument())
        XCTAssertEqual(try document(#"{"max_file_size_bytes": 0}"#).fileBytesMax, 0)
        XCTAssertEqual(try document(#"{"max_files": 1e3}"#).filesMax, 1_000)
    }

    /// Each problem names the key that is wrong, and why.
    func testB_SAP_9_whatIsNotValid() {
        let wrong: [(String, String)] = [
            ("", "no JSON"), ("[]", "a list"), ("7", "the number 7"), ("{", "line 1"),
            (#"{"enabled": 1}"#, "'enabled' is the number 1, not true or false"),
            (#"{"enabled": null}"#, "'enabled' is null"),
            (#"{"enabled": "false"}"#, "'enabled' is \"false\""),
            (#"{"levels": []}"#, "'levels' is a list"),
            (#"{"levels": {"app": "loud"}}"#, "'levels.app' is \"loud\""),
            (#"{"levels": {"app": 0}}"#, "'levels.app' is the number 0"),
            (#"{"levels": {"app": 25}}"#, "'levels.app'"),
            (#"{"levels": {"app": -1}}"#, "'levels.app'"),
            (#"{"levels": {"app": 5.5}}"#, "'levels.app'"),
            (#"{"levels": {"app": null}}"#, "'levels.app' is null"),
            (#"{"expiration_days": -1}"#, "'expiration_days' is the number -1"),
            (#"{"expiration_days": 4294967296}"#, "'expiration_days'"),
            (#"{"expiration_days": 1.5}"#, "'expiration_days'"),
            (#"{"max_files": "7"}"#, "'max_files' is \"7\", not a whole number"),
            (#"{"max_file_size_bytes": 65535}"#, "outside 65536 … 1073741824"),
            (#"{"max_file_size_bytes": 1073741825}"#, "outside 65536 … 1073741824"),
            (#"{"quota_bytes": 1e19}"#, "'quota_bytes'"),
            (#"{"quota_bytes": 18446744073709551616}"#, "no JSON"),
            (#"{"upload_interval_s": true}"#, "'upload_interval_s' is true"),
            (#"{"archive_method": "zip"}"#, "'archive_method' is \"zip\", not plain or dense"),
            (#"{"enabled": true, "enabled": false}"#, "duplicate"),
            (#"{"max_files": 1, "quota_bytes": {}}"#, "'quota_bytes' is an object"),
        ]
        for (text, part) in wrong {
            let problem = problem(text)
            XCTAssertTrue(problem.contains(part), "\(text): \(problem)")
        }
        let bytes = PolicyDocument.bytesMax
        let head = #"{"max_files": 1, "a": ""#
        let large = head + String(repeating: "x", count: bytes - head.utf8.count - 2) + "\"}"
        XCTAssertEqual(problem(large), "")
        XCTAssertTrue(problem(large + " ").contains("65537 bytes"))
        let prefix = String(repeating: "p", count: 256)
        XCTAssertTrue(problem("{\"levels\": {\"\(prefix)\": 5}}").contains("over 255 bytes"))
        let many = (0...4_096).map { "\"p\($0)\":5" }.joined(separator: ",")
        XCTAssertTrue(problem("{\"levels\": {\(many)}}").contains("over 4096 prefixes"))
    }

    /// Most likely another service's answer, or an error that came as 200.
    func testB_SAP_9_noKeyOfOursIsRefused() throws {
        XCTAssertEqual(
            problem(#"{"status": "ok", "Levels": {}, "a\nb": 1}"#),
            "the policy has no key that means anything here, but 'status', 'Levels', 'a?b'")
        let many = (1...21).map { "\"k\($0)\":0" }.joined(separator: ",")
        XCTAssertTrue(problem("{\(many)}").hasSuffix("'k19', 'k20', …"))
        XCTAssertEqual(try document(#"{"status": 1, "max_files": 2}"#).unknownKeys, ["status"])
    }

    /// Days, MB, and words for levels; numbers and booleans may be text.
    func testB_SAP_9_keysOfSAP() throws {
        let policy = try document(
            #"""
            {"logUploadEnabled": false, "entryExpiry": 7, "logLevel": "ERROR", "maxFileNum": 10,
             "maxFileSize": 5, "levels": {"app": "debug"}, "quota_bytes": 7}
            """#)
        XCTAssertEqual(policy.isEnabled, false)
        XCTAssertEqual(policy.expirationDays, 7)
        XCTAssertEqual(policy.levels.map { "\($0.prefix)=\($0.number)" }, ["=17", "app=5"])
        XCTAssertEqual(policy.filesMax, 10)
        XCTAssertEqual(policy.fileBytesMax, 5 << 20)
        XCTAssertEqual(policy.unknownKeys, [])
        let text = try document(
            #"{"logUploadEnabled": "true", "entryExpiry": "0", "maxFileSize": "99999"}"#)
        XCTAssertEqual(text.isEnabled, true)
        XCTAssertEqual(text.expirationDays, 0)
        XCTAssertEqual(text.fileBytesMax, 1 << 30, "our largest")
        XCTAssertNil(try document(#"{"maxFileSize": 0}"#).fileBytesMax, "no limit of theirs")
        let words: [(String, UInt8)] = [
            ("off", 255), ("NONE", 255), ("Fatal", 21), ("error", 17), ("warn", 13),
            ("Warning", 13), ("info", 9), ("debug", 5), ("path", 1), ("all", 1),
        ]
        for (word, number) in words {
            let policy = try document("{\"logLevel\": \"\(word)\"}")
            XCTAssertEqual(policy.levels.map(\.number), [number], word)
        }
        for (text, part) in [
            (#"{"logUploadEnabled": 1}"#, "'logUploadEnabled' is the number 1, not true or false"),
            (#"{"logLevel": "loud"}"#, "'logLevel' is \"loud\", not the name of a level"),
            (#"{"logLevel": 5}"#, "'logLevel' is the number 5"),
            (#"{"entryExpiry": "soon"}"#, "'entryExpiry' is \"soon\", not a whole number"),
            (#"{"maxFileNum": -1}"#, "'maxFileNum' is the number -1"),
            (#"{"maxFileSize": 4294967296}"#, "'maxFileSize' is"),
            (#"{"enabled": true, "logUploadEnabled": true}"#, "'enabled' and 'logUploadEnabled'"),
            (#"{"maxFileNum": 1, "max_files": 1}"#, "'max_files' and 'maxFileNum' say the same"),
            (#"{"logLevel": "info", "levels": {"": "info"}}"#, "'logLevel' say the same"),
        ] {
            XCTAssertTrue(problem(text).contains(part), "\(text): \(problem(text))")
        }
    }

    // ── What a store keeps ──

    private let url = "http://127.0.0.1:9/policy?key=secret"

    private func file(_ json: String, etag: String = "", modified: String = "") -> PolicyFile {
        PolicyFile(
            url: url, origin: "http://127.0.0.1:9", etag: etag, modified: modified,
            savedUnixSeconds: 1_800_000_000, allow: [.erase, .http], json: Array(json.utf8))
    }

    func testB_SAP_9_keptInTheStore() throws {
        let store = try TestStore()
        XCTAssertNil(try PolicyFile.read(storeDirectory: FilePath(store.root)))
        let source = try PolicySource(PolicyOptions(url: url))
        XCTAssertNil(try source.kept(storeDirectory: FilePath(store.root)))
        let kept = file("{\"max_files\": 3}\n\n", etag: "\"a b\"", modified: "Fri, 04 Nov 2014")
        try source.keep(kept, storeDirectory: FilePath(store.root))
        XCTAssertEqual(try PolicyFile.read(storeDirectory: FilePath(store.root)), kept)
        XCTAssertEqual(try source.kept(storeDirectory: FilePath(store.root))?.0.filesMax, 3)
        let text = String(decoding: kept.bytes, as: UTF8.self)
        XCTAssertFalse(text.contains("secret"))
        let path = store.root + "/policy"
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions]
        XCTAssertEqual(mode as? Int, 0o600)
        // The policy of another URL is not ours.
        let other = try PolicySource(PolicyOptions(url: "http://127.0.0.1:9/policy?key=other"))
        XCTAssertNil(try other.kept(storeDirectory: FilePath(store.root)))
        // Nor is one that is no longer valid, was cut, or is not our file.
        let whole = kept.bytes
        for count in 0..<whole.count {
            let cut = PolicyFile.parse(Array(whole.prefix(count)))
            XCTAssertTrue(cut == nil || cut?.urlHash == kept.urlHash || cut?.json == [])
        }
        XCTAssertNil(PolicyFile.parse(Array("cordwood store\nformat 1\n\n{}".utf8)))
        XCTAssertNil(PolicyFile.parse(Array("cordwood policy\nformat 2\n\n{}".utf8)))
        try source.keep(file("{\"max_files\": -3}"), storeDirectory: FilePath(store.root))
        XCTAssertNil(try source.kept(storeDirectory: FilePath(store.root)))
        // Values that cannot go back in a header are not kept.
        XCTAssertEqual(file("{}", etag: "a\nb", modified: "é").etag, "")
        XCTAssertEqual(file("{}", etag: String(repeating: "x", count: 2_000)).etag, "")
    }

    /// Whatever is written into a store, a kept policy never ends the program that opens it.
    func testB_SAP_9_noKeptFileTraps() {
        let head = "cordwood policy\nformat 1\n"
        for spaces in [" ", "   ", " \t ", "  url"] {
            let kept = PolicyFile.parse(Array("\(head)\(spaces)\n\n{}".utf8))
            XCTAssertEqual(kept?.json, Array("{}".utf8), "'\(spaces)'")
        }
        XCTAssertNil(PolicyFile.parse(Array(" \n\n{}".utf8)))
        let whole = file("{\"max_files\": 3}", etag: "\"v\"", modified: "now").bytes
        let pieces: [[UInt8]] = [
            [0x20], [0x0A], [0x20, 0x0A], [0x0A, 0x0A], [0], [0xFF], [0xE2, 0x80, 0xA8],
            Array("format ".utf8), Array("saved -9223372036854775809".utf8),
        ]
        for seed in UInt64(1)...20 {
            var random = SplitMix(seed)
            for _ in 0..<500 {
                var bytes = random.chance(2) ? whole : Array(head.utf8)
                for _ in 0...random.below(6) {
                    let at = random.below(bytes.count + 1)
                    let piece = pieces.randomElement(using: &random)!
                    bytes.insert(contentsOf: random.chance(2) ? piece : random.bytes(3), at: at)
                }
                if random.chance(4) { bytes = random.bytes(random.below(200)) }
                let kept = PolicyFile.parse(bytes)
                XCTAssertLessThanOrEqual(kept?.json.count ?? 0, bytes.count, "seed \(seed)")
            }
        }
    }

    func testB_SAP_9_optionsAreChecked() {
        func refusal(_ change: (inout PolicyOptions) -> Void) -> String? {
            var options = PolicyOptions(url: "http://127.0.0.1/p")
            change(&options)
            do {
                _ = try PolicySource(options)
                return nil
            } catch {
                return error.text
            }
        }
        XCTAssertNil(refusal { $0.headers = "Authorization: Bearer s" })
        XCTAssertEqual(
            refusal { $0.url = "file:///etc/passwd" }?.hasPrefix("policy: url '"), true)
        XCTAssertEqual(
            refusal { $0.headers = "If-None-Match: x" },
            "policy: header If-None-Match is set by the library")
        XCTAssertEqual(
            refusal { $0.headers = "nothing" }, "policy: header line 1 has no colon")
    }

    func testWhereAPolicyMayComeFrom() {
        func refusal(_ url: String, _ allow: PolicyAllowance) -> String? {
            do throws(UploadError) {
                _ = try PolicySource(PolicyOptions(url: url), allow: allow)
                return nil
            } catch {
                return error.text
            }
        }
        for url in [
            "http://config.example.com/p", "http://127.0.0.1.example.com", "http://[::2]/",
            "http://10.0.0.1:8080/p", "http://localhost.example.com", "http://128.0.0.1",
        ] {
            for allow: PolicyAllowance in [[], [.erase, .off]] {
                XCTAssertEqual(refusal(url, allow)?.contains("CW_POLICY_HTTP"), true, url)
            }
            XCTAssertNil(refusal(url, .http), url)
        }
        for url in ["http://localhost:9", "http://127.8.9.1:9/p", "http://[::1]:9/", "https://h"] {
            XCTAssertNil(refusal(url, []), url)
        }
    }

    // ── Looking ──

    private func look(
        _ server: FaultServer, known: PolicyFile? = nil, headers: String? = nil,
        shouldStop: () -> Bool = { false }
    ) throws -> PolicySource.PolicyAnswer {
        var options = PolicyOptions(url: server.url + "/policy?key=s")
        options.headers = headers
        let source = try PolicySource(options)
        return source.look(known: known, nowUnixMs: 1_800_000_000_000, shouldStop: shouldStop)
    }

    func testB_SAP_9_aLookAndTheNext() throws {
        let server = try FaultServer(
            """
            [{"body": "{\\"max_files\\": 7}", "headers": {"ETag": "\\"v1\\"",
              "Last-Modified": "Fri, 04 Nov 2014 23:59:59 GMT"}}, {"status": 304, "body": ""}]
            """)
        guard case .fresh(let document, let file) = try look(server, headers: "X-Key: secret")
        else { return XCTFail("nothing came") }
        XCTAssertEqual(document.filesMax, 7)
        XCTAssertEqual(file.etag, "\"v1\"")
        XCTAssertEqual(file.savedUnixSeconds, 1_800_000_000)
        guard case .unchanged = try look(server, known: file) else { return XCTFail("no 304") }
        let requests = server.requests
        XCTAssertEqual(requests.map(\.method), ["GET", "GET"])
        XCTAssertEqual(requests[0].path, "/policy?key=s")
        XCTAssertEqual(requests[0].headers["x-key"], "secret")
        XCTAssertNil(requests[0].headers["if-none-match"])
        XCTAssertEqual(requests[1].headers["if-none-match"], "\"v1\"")
        XCTAssertEqual(requests[1].headers["if-modified-since"], "Fri, 04 Nov 2014 23:59:59 GMT")
    }

    func testB_SAP_9_whatIsNoPolicy() throws {
        let long = String(repeating: "x", count: 70_000)
        let server = try FaultServer(
            """
            [{"body": "{\\"max_files\\": -7}"}, {"body": "<html>"}, {"body": "\(long)"},
             {"status": 204, "body": ""}, {"status": 404}, {"status": 304, "body": ""},
             {"status": 503, "headers": {"Retry-After": "9"}}, {"action": "drop"},
             {"action": "half"}, {"status": 302, "headers": {"Location": "/x?k=s"}}]
            """)
        var said: [String] = []
        for _ in 0..<10 {
            switch try look(server) {
            case .fresh, .unchanged, .stopped: said.append("?")
            case .invalid(let text): said.append("invalid " + text.prefix(30))
            case .failed(let detail, let delay):
                said.append("\(detail.kind.word) \(detail.httpStatus) \(delay ?? 0)")
            }
        }
        XCTAssertEqual(
            said,
            [
                "invalid policy key 'max_files' is the ", "invalid the policy is no JSON: line 1:",
                "invalid the policy has 70000 bytes, ov", "success 204 0", "client 404 0",
                "redirection 304 0", "server 503 9000", "request_failed 0 0",
                "request_failed 0 0", "redirection 302 0",
            ])
    }

    /// A server that keeps us waiting is abandoned when the engine closes.
    func testB_SAP_9_aSlowServerIsLeft() throws {
        let server = try FaultServer(#"[{"action": "hang"}]"#)
        var asked = 0
        let answer = try look(server) {
            asked += 1
            return asked > 3
        }
        guard case .stopped = answer else { return XCTFail("\(answer)") }
    }

    func testB_SAP_9_whenToLookAgain() throws {
        var options = PolicyOptions(url: url)
        var source = try PolicySource(options)
        XCTAssertEqual(source.delayMs(after: .unchanged, failures: 0, random: 0), 3_600_000)
        XCTAssertEqual(source.delayMs(after: .unchanged, failures: 0, random: .max), 3_240_000)
        XCTAssertFalse(PolicySource.PolicyAnswer.unchanged.isFailure)
        // A proxy's page in its place is no reason to wait for an hour.
        XCTAssertTrue(PolicySource.PolicyAnswer.invalid("").isFailure)
        XCTAssertEqual(source.delayMs(after: .invalid(""), failures: 3, random: .max), 8_000)
        func failed(_ wished: UInt64?) -> PolicySource.PolicyAnswer {
            .failed(FailureDetail(.failed("x"), nowUnixMs: 0), delayMs: wished)
        }
        XCTAssertEqual(source.delayMs(after: failed(nil), failures: 1, random: .max), 2_000)
        XCTAssertEqual(source.delayMs(after: failed(nil), failures: 3, random: .max), 8_000)
        XCTAssertEqual(source.delayMs(after: failed(nil), failures: 3, random: 0), 1_000)
        XCTAssertEqual(source.delayMs(after: failed(nil), failures: 90, random: .max), 3_600_000)
        XCTAssertEqual(source.delayMs(after: failed(9_000), failures: 1, random: 0), 9_000)
        options.intervalSeconds = 60
        source = try PolicySource(options)
        XCTAssertEqual(
            source.delayMs(after: failed(nil), failures: 90, random: .max), 60_000,
            "never later than at the interval")
    }
}
