// Kind s3 against a bucket in this process that answers as it is told: keys, conditions, clocks,
// answers. Tests/Servers has the real servers.

import CordwoodStore
import Glibc
import XCTest

@testable import CordwoodShip

final class S3DialectTests: S3Case {
    // ── Names ──

    private func key(_ parameters: String, url: String = "https://h/logs") throws -> String {
        try target(parameters, url: url).dialect.url(delivery())
    }

    func testKeys() throws {
        // 1799999999 s: 2027-01-15T07:59:59Z.
        XCTAssertEqual(try key(""), "https://h/logs/2027-01-15/shop/\(id).cwa")
        XCTAssertEqual(
            try key("key=dt={date}/h={hour}/{host}/{name}+{id} ü:(1)'*~"),
            "https://h/logs/dt%3D2027-01-15/h%3D07/h1/lane.00000001-00000002%2B\(id)"
                + "%20%C3%BC%3A%281%29%27%2A~")
        XCTAssertEqual(try key("key={id}\nservice=a/b"), "https://h/logs/\(id)")
        XCTAssertEqual(try key("key={service}/{id}\nservice=../x"), "https://h/logs/.._x/\(id)")
        XCTAssertEqual(try key("key=../{id}/."), "https://h/logs/__/\(id)/_")
        XCTAssertEqual(
            try key("key={id}", url: "https://h/my%20logs/a%2Bb/"),
            "https://h/my%20logs/a%2Bb/\(id)")
        XCTAssertEqual(
            try key("key={id}\naddressing=virtual"), "https://logs.h/\(id)")
        XCTAssertEqual(
            try key("key={id}\naddressing=virtual", url: "https://logs.h:9000"),
            "https://logs.h:9000/\(id)")
    }

    func testExtensionSaysFormatAndEncoding() throws {
        let target = try target("key={id}.{ext}") { $0.format = "ndjson" }
        XCTAssertEqual(target.encoding, .zstd)
        XCTAssertEqual(target.dialect.url(delivery(.zstd)), "https://h/logs/\(id).ndjson.zst")
        XCTAssertEqual(target.dialect.url(delivery(.gzip)), "https://h/logs/\(id).ndjson.gz")
        XCTAssertEqual(target.dialect.contentType, "application/zstd")
    }

    func testWhatIsUnknownIsCalledSo() throws {
        let dialect = try target().dialect
        XCTAssertTrue(dialect.needsOrigin)
        XCTAssertFalse(try target("key={id}").dialect.needsOrigin)
        var delivery = delivery()
        delivery.origin = ArchiveOrigin()
        XCTAssertEqual(dialect.url(delivery), "https://h/logs/1970-01-01/unknown/\(id).cwa")
        delivery.origin.service = String(repeating: "ü", count: 100)
        XCTAssertTrue(dialect.url(delivery).contains(String(repeating: "%C3%BC", count: 48) + "/"))
    }

    func testBadOptionsSayWhatIsWrong() {
        let bad = [
            ("key=x", "https://h/b", "must hold {id}"), ("key={id", "https://h/b", "not closed"),
            ("key={id}{x}", "https://h/b", "'{x}' is none of"),
            ("", "https://h", "names no bucket"),
            ("", "https://h/b?x", "without query"), ("", "https://h/b/../c", "dots"),
            ("", "https://h/b/%zz", "wrongly encoded"), ("addressing=x", "https://h/b", "none of"),
            ("addressing=virtual", "https://h/b_c", "host's name"),
            ("part_bytes=1", "https://h/b", "part_bytes"), ("regio=x", "https://h/b", "regio"),
            ("if_none_match=2", "https://h/b", "if_none_match"),
            ("region=a b", "https://h/b", "region"),
            ("fields=text", "https://h/b", "for format ndjson"),
            ("fields=x", "https://h/b", "neither object nor text"),
        ]
        for (parameters, url, text) in bad {
            XCTAssertThrowsError(try target(parameters, url: url), parameters + url) { error in
                let said = (error as? UploadError)?.text ?? ""
                XCTAssertTrue(said.contains(text), "\(parameters) \(url): \(said)")
            }
        }
        XCTAssertThrowsError(try target { $0.encoding = "gzip" }, "an archive goes as it is")
    }

    func testRegion() throws {
        func region(_ url: String, _ parameters: String = "") throws -> String {
            try (target(parameters, url: url).dialect as? S3Dialect)!.place.region
        }
        XCTAssertEqual(try region("https://h/b"), "us-east-1")
        XCTAssertEqual(try region("https://s3.amazonaws.com/b"), "us-east-1")
        XCTAssertEqual(try region("https://s3.eu-central-1.amazonaws.com/b"), "eu-central-1")
        XCTAssertEqual(try region("https://s3.dualstack.eu-west-1.amazonaws.com/b"), "eu-west-1")
        XCTAssertEqual(try region("https://h/b", "region=fr-par"), "fr-par")
    }

    // ── One request ──

    func testPutIsSignedAndConditional() throws {
        let bucket = FakeBucket()
        let target = try target("key={id}") { $0.headers = "x-amz-storage-class: GLACIER_IR" }
        XCTAssertEqual(try send(target, [1, 2, 3], bucket).httpStatus, 200)
        let request = bucket.requests[0]
        XCTAssertEqual(request.line, "PUT /logs/\(id)")
        XCTAssertEqual(request.headers["if-none-match"], "*")
        XCTAssertEqual(request.headers["x-amz-date"]?.hasPrefix("20270115T0800"), true)
        XCTAssertEqual(request.headers["content-type"], "application/vnd.cordwood.archive")
        let authorization = request.headers["authorization"]!
        XCTAssertTrue(
            authorization.hasPrefix(
                "AWS4-HMAC-SHA256 Credential=AK/20270115/us-east-1/s3/aws4_request, SignedHeaders="
                    + "content-type;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class"),
            authorization)
        XCTAssertEqual(bucket.objects["/logs/\(id)"], [1, 2, 3])
    }

    func testWithoutAKeyNothingIsSigned() throws {
        let bucket = FakeBucket()
        bucket.answer = { request in
            XCTAssertNil(request.headers["authorization"])
            return FakeBucket.say(200)
        }
        var delivery = delivery()
        delivery.credentials = Credentials()
        let target = try target()
        let body = body([])
        let request = target.request(delivery, bytesPerSecond: 0)
        let outcome = try target.dialect.send(request, delivery, body) { request in
            XCTAssertFalse(request.headers.contains { $0.lowercasedName == "authorization" })
            return FakeBucket.say(200)
        }
        XCTAssertEqual(outcome.httpStatus, 200)
    }

    func testCompressedObjectsAreFilesNotEncodings() throws {
        let bucket = FakeBucket()
        let target = try target("key={id}.{ext}") { $0.format = "ndjson" }
        _ = try send(target, [1], bucket, delivery(.zstd))
        XCTAssertNil(bucket.requests[0].headers["content-encoding"])
        XCTAssertEqual(bucket.requests[0].headers["content-type"], "application/zstd")
        // What zstd becomes after a 415; a host's own type stays.
        _ = try send(target, [1], bucket, delivery(.gzip))
        XCTAssertEqual(bucket.requests[1].headers["content-type"], "application/gzip")
        XCTAssertEqual(bucket.requests[1].line, "PUT /logs/\(id).ndjson.gz")
        _ = try send(target, [1], bucket, delivery(.none))
        XCTAssertEqual(bucket.requests[2].headers["content-type"], "application/x-ndjson")
        let own = try self.target("key={id}.{ext}") {
            $0.format = "ndjson"
            $0.headers = "Content-Type: text/x-own"
        }
        _ = try send(own, [1], bucket, delivery(.gzip))
        XCTAssertEqual(bucket.requests[3].headers["content-type"], "text/x-own")
    }

    func testAlreadyThere() throws {
        let bucket = FakeBucket()
        bucket.answer = { _ in FakeBucket.say(412, "<Error><Code>PreconditionFailed</Code></Error>")
        }
        let target = try target()
        let outcome = try send(target, [1], bucket)
        XCTAssertEqual(target.dialect.verdict(outcome, delivery()), .sent(.none))
        let plain = try self.target("if_none_match=0")
        _ = try send(plain, [1], bucket)
        XCTAssertNil(bucket.requests[1].headers["if-none-match"])
        XCTAssertNil(plain.dialect.verdict(outcome, delivery()))
    }

    func testServersWithoutConditionsGetNone() throws {
        let bucket = FakeBucket()
        bucket.answer = { request in
            request.headers["if-none-match"] == nil
                ? nil : FakeBucket.say(501, "<Error><Code>NotImplemented</Code></Error>")
        }
        XCTAssertEqual(try send(target(), [1], bucket).httpStatus, 200)
        XCTAssertEqual(bucket.requests.count, 2)
        XCTAssertEqual(bucket.objects.count, 1)
    }

    func testWrongClockSignsTheServersTime() throws {
        let bucket = FakeBucket()
        bucket.answer = { request in
            guard request.headers["x-amz-date"]!.hasPrefix("20270115T08") else { return nil }
            var outcome = FakeBucket.say(
                403, "<Error><Code>RequestTimeTooSkewed</Code><Message>m</Message></Error>")
            outcome.headers = [("date", "Fri, 15 Jan 2027 10:00:07 GMT")]
            return outcome
        }
        let target = try target()
        XCTAssertEqual(try send(target, [1], bucket).httpStatus, 200)
        let last = bucket.requests.last?.headers["x-amz-date"]
        XCTAssertEqual(last?.hasPrefix("20270115T1000"), true)
        XCTAssertEqual(bucket.requests.count, 2)
        // The server's time is known from now on.
        XCTAssertEqual(try send(target, [2], bucket).httpStatus, 200)
        XCTAssertEqual(bucket.requests.count, 3)
        // Without a date: tried later.
        bucket.answer = { _ in
            FakeBucket.say(403, "<Error><Code>RequestTimeTooSkewed</Code></Error>")
        }
        let outcome = try send(target, [3], bucket)
        XCTAssertEqual(bucket.requests.count, 4)
        XCTAssertEqual(
            target.dialect.verdict(outcome, delivery()), .retry(.failed, delayMs: nil))
    }

    /// Other servers use other words for it; a refusal near our own time is not about the clock.
    func testAnyRefusalFarFromOurTimeIsAboutTheClock() throws {
        for (date, tries) in [
            ("Fri, 15 Jan 2027 07:50:00 GMT", 2), ("Fri, 15 Jan 2027 07:59:00 GMT", 1),
            ("Fri, 15 Jan 2027 08:04:00 GMT", 1), ("no date", 1),
        ] {
            let bucket = FakeBucket()
            bucket.answer = { _ in
                var outcome = FakeBucket.say(400, "<Error><Code>AccessDenied</Code></Error>")
                outcome.headers = [("date", date)]
                return outcome
            }
            let target = try target()
            let outcome = try send(target, [1], bucket)
            XCTAssertEqual(bucket.requests.count, tries, date)
            XCTAssertEqual(target.dialect.verdict(outcome, delivery()), .pause)
        }
    }

    /// A proxy's date beside a refusal for another reason must not spoil every later signature.
    func testAClockThatDidNotHelpIsTakenBack() throws {
        let bucket = FakeBucket()
        var date = "Fri, 15 Jan 2027 10:00:30 GMT"
        var isRefused = { (_: String) in true }
        bucket.answer = { request in
            guard isRefused(request.headers["x-amz-date"]!) else { return nil }
            var outcome = FakeBucket.say(403, "<Error><Code>AccessDenied</Code></Error>")
            outcome.headers = [("date", date)]
            return outcome
        }
        func dates() -> [String] {
            defer { bucket.requests = [] }
            return bucket.requests.map { String($0.headers["x-amz-date"]!.dropLast(3)) }
        }
        let target = try target()
        XCTAssertEqual(try send(target, [1], bucket).httpStatus, 403)
        XCTAssertEqual(dates(), ["20270115T0800", "20270115T1000"])
        XCTAssertEqual(try send(target, [1], bucket).httpStatus, 403)
        XCTAssertEqual(dates(), ["20270115T0800", "20270115T1000"], "it was taken back")
        // A correction that helps is kept, and a later one that does not help leaves it.
        isRefused = { !$0.hasPrefix("20270115T10") }
        XCTAssertEqual(try send(target, [1], bucket).httpStatus, 200)
        XCTAssertEqual(try send(target, [1], bucket).httpStatus, 200)
        XCTAssertEqual(dates(), ["20270115T0800", "20270115T1000", "20270115T1000"])
        date = "Fri, 15 Jan 2027 12:00:30 GMT"
        isRefused = { _ in true }
        XCTAssertEqual(try send(target, [1], bucket).httpStatus, 403)
        isRefused = { _ in false }
        XCTAssertEqual(try send(target, [1], bucket).httpStatus, 200)
        XCTAssertEqual(dates(), ["20270115T1000", "20270115T1200", "20270115T1000"])
    }

    func testVerdicts() throws {
        let dialect = try target().dialect
        func verdict(_ status: Int32, _ code: String) -> AnswerVerdict? {
            dialect.verdict(
                FakeBucket.say(status, "<?xml?>\n<Error><Code>\(code)</Code></Error>"), delivery())
        }
        XCTAssertNil(verdict(200, ""))
        XCTAssertNil(verdict(403, "AccessDenied"))
        for code in ["InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken"] {
            XCTAssertEqual(verdict(403, code), .pause, code)
        }
        XCTAssertEqual(verdict(403, "RequestTimeTooSkewed"), .retry(.failed, delayMs: nil))
        XCTAssertNil(verdict(503, "SlowDown"))
        XCTAssertEqual(verdict(404, "NoSuchBucket"), .stray)
        XCTAssertEqual(verdict(301, "PermanentRedirect"), .stray)
        XCTAssertEqual(verdict(400, "ExpiredToken"), .pause)
        XCTAssertEqual(verdict(400, "RequestTimeout"), .retry(.failed, delayMs: nil))
        XCTAssertEqual(verdict(400, "EntityTooLarge"), .shrink)
        XCTAssertEqual(verdict(400, "InvalidArgument"), .refuse)
        XCTAssertEqual(
            verdict(409, "ConditionalRequestConflict"), .retry(.failed, delayMs: nil))
        XCTAssertEqual(verdict(404, "NoSuchUpload"), .retry(.failed, delayMs: nil))
    }

    func testCauseHasCodeAndMessageAndNothingElse() throws {
        let bucket = FakeBucket()
        bucket.answer = { _ in
            FakeBucket.say(
                403,
                "<Error><Code>SignatureDoesNotMatch</Code><Message>not &lt;ours&gt;\n</Message>"
                    + "<StringToSign>secret</StringToSign></Error>")
        }
        let outcome = try send(target(), [1], bucket)
        XCTAssertEqual(outcome.cause, "HTTP 403: SignatureDoesNotMatch: not <ours> ")
    }

    func testHostileAnswersSayNothing() {
        XCTAssertNil(S3Answer(Array("<Error><Code>cut off".utf8)).code)
        XCTAssertNil(S3Answer([]).code)
        let far = [UInt8](repeating: 0x20, count: S3Answer.scannedBytesMax)
        XCTAssertNil(S3Answer(far + Array("<Code>x</Code>".utf8)).code)
        let long = "<Code>\(String(repeating: "x", count: 5_000))</Code>"
        XCTAssertEqual(S3Answer(Array(long.utf8)).code?.utf8.count, 200)
        XCTAssertEqual(S3Answer([0x3C]).text, "")
    }
}
