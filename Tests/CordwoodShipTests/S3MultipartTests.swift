// Kind s3 with bodies in parts: what is repeated, what is aborted, and what never may be, since it
// may be the object.

import CordwoodTestSupport
import XCTest

@testable import CordwoodShip

final class S3MultipartTests: S3Case {
    /// Repeats after a prime number of bytes, so that no two parts are equal.
    private static let large: [UInt8] = {
        var random = SplitMix(1)
        var bytes = random.bytes(65_521)
        while bytes.count < 12 << 20 { bytes += bytes }
        return Array(bytes.prefix(12 << 20))
    }()
    private let inParts = "key={id}\npart_bytes=5242880"

    func testLargeBodiesGoInParts() throws {
        let bucket = FakeBucket()
        let target = try target(inParts) { $0.headers = "x-amz-acl: private\nX-Tenant: t" }
        let outcome = try send(target, S3MultipartTests.large, bucket)
        XCTAssertEqual(outcome.httpStatus, 200)
        XCTAssertEqual(bucket.objects["/logs/\(id)"], S3MultipartTests.large)
        XCTAssertEqual(
            bucket.lines,
            [
                "GET /logs?max-uploads=10&prefix=\(id)&uploads=", "POST /logs/\(id)?uploads=",
                "PUT /logs/\(id)?partNumber=1&uploadId=id2",
                "PUT /logs/\(id)?partNumber=2&uploadId=id2",
                "PUT /logs/\(id)?partNumber=3&uploadId=id2", "POST /logs/\(id)?uploadId=id2",
            ])
        XCTAssertEqual(
            bucket.requests.map { $0.headers["x-amz-acl"] != nil },
            [false, true, false, false, false, false])
        XCTAssertEqual(Set(bucket.requests.map { $0.headers["x-tenant"] }), ["t"])
        XCTAssertEqual(
            bucket.requests.map { $0.headers["if-none-match"] }, [nil, nil, nil, nil, nil, "*"])
        XCTAssertTrue(
            String(decoding: bucket.requests[5].body, as: UTF8.self).contains(
                "<Part><PartNumber>3</PartNumber><ETag>\"e&lt;3\"</ETag></Part>"))
    }

    func testOneByteMoreThanAPartIsTwoParts() throws {
        let bucket = FakeBucket()
        let target = try target(inParts)
        _ = try send(target, Array(S3MultipartTests.large.prefix(5 << 20)), bucket)
        XCTAssertEqual(bucket.lines, ["PUT /logs/\(id)"])
        _ = try send(target, Array(S3MultipartTests.large.prefix(5 << 20 + 1)), bucket)
        XCTAssertEqual(bucket.requests.suffix(2).first?.body.count, 1)
    }

    func testAPartIsRepeated() throws {
        try full()
        let bucket = FakeBucket()
        var failures = 2
        bucket.answer = { request in
            guard request.line.contains("partNumber=2"), failures > 0 else { return nil }
            failures -= 1
            return failures == 0 ? FakeBucket.say(500) : .failed("the line broke")
        }
        XCTAssertEqual(try send(target(inParts), S3MultipartTests.large, bucket).httpStatus, 200)
        XCTAssertEqual(bucket.objects["/logs/\(id)"], S3MultipartTests.large)
        XCTAssertEqual(bucket.lines.filter { $0.contains("partNumber=2") }.count, 3)
    }

    func testAnUploadThatFailsIsEnded() throws {
        for status: Int32 in [503, 500, 403] {
            let bucket = FakeBucket()
            bucket.answer = {
                $0.line.contains("partNumber=3") ? FakeBucket.say(status) : nil
            }
            let outcome = try send(target(inParts), S3MultipartTests.large, bucket)
            XCTAssertEqual(outcome.httpStatus, status)
            XCTAssertTrue(outcome.cause.hasPrefix("part 3: HTTP"), outcome.cause)
            XCTAssertEqual(bucket.lines.last, "DELETE /logs/\(id)?uploadId=id2")
            XCTAssertTrue(bucket.uploads.isEmpty && bucket.objects.isEmpty)
        }
    }

    func testWhatAKilledAttemptLeftIsEnded() throws {
        let bucket = FakeBucket()
        bucket.uploads = ["old1": [:], "old2": [1: [1]]]
        XCTAssertEqual(try send(target(inParts), S3MultipartTests.large, bucket).httpStatus, 200)
        XCTAssertTrue(bucket.uploads.isEmpty)
        XCTAssertEqual(
            bucket.lines[1...3],
            [
                "HEAD /logs/\(id)", "DELETE /logs/\(id)?uploadId=old1",
                "DELETE /logs/\(id)?uploadId=old2",
            ])
    }

    /// A listed upload may be the object itself (SeaweedFS 4.47 clears its list where it can), and
    /// a client that may not look cannot tell.
    func testWhatMayBeTheObjectIsNotAborted() throws {
        for status: Int32 in [200, 403, 503] {
            let bucket = FakeBucket()
            bucket.uploads = ["old": [:]]
            bucket.answer = { $0.line.hasPrefix("HEAD") ? FakeBucket.say(status) : nil }
            XCTAssertEqual(
                try send(target(inParts), S3MultipartTests.large, bucket).httpStatus, 200)
            XCTAssertEqual(Array(bucket.uploads.keys), ["old"], "\(status)")
        }
    }

    func testWhoMayNotListUploadsSendsAllTheSame() throws {
        let bucket = FakeBucket()
        bucket.answer = { $0.line.hasPrefix("GET") ? FakeBucket.say(403) : nil }
        XCTAssertEqual(try send(target(inParts), S3MultipartTests.large, bucket).httpStatus, 200)
    }

    /// S3 answers 200 before it knows the result.
    func testAnErrorBehind200IsAnError() throws {
        let bucket = FakeBucket()
        bucket.answer = {
            $0.isEnd ? FakeBucket.say(200, "<Error><Code>InternalError</Code></Error>") : nil
        }
        let target = try target(inParts)
        let outcome = try send(target, S3MultipartTests.large, bucket)
        XCTAssertEqual(outcome.kind, .server)
        XCTAssertEqual(outcome.httpStatus, 500)
        XCTAssertEqual(outcome.cause, "the upload's end failed: InternalError")
        XCTAssertEqual(bucket.requests.filter(\.isEnd).count, 3)
        XCTAssertEqual(bucket.uploads.count, 1, "it may be the object by now")
    }

    /// SeaweedFS 4.47 commits and answers 500 (filer_multipart.go), others are too slow. Aborting
    /// that upload would destroy the object's bytes, and 412 would then call it sent.
    func testAnEndWithoutAnAnswerIsAskedForAgainAndNeverAborted() throws {
        try full()
        let lost: [TransferOutcome] = [
            .failed("timed out"), .failed("connection reset"), FakeBucket.say(500),
            FakeBucket.say(502), FakeBucket.say(504),
        ]
        for answer in lost {
            let bucket = FakeBucket()
            bucket.carriesOutTheFirstEnd(saying: answer, later: FakeBucket.say(412))
            let target = try target(inParts)
            let outcome = try send(target, S3MultipartTests.large, bucket)
            XCTAssertEqual(target.dialect.verdict(outcome, delivery()), .sent(.none))
            XCTAssertEqual(bucket.requests.filter(\.isEnd).count, 2)
            XCTAssertEqual(bucket.objects["/logs/\(id)"], S3MultipartTests.large)
            XCTAssertFalse(bucket.lines.contains { $0.hasPrefix("DELETE") }, answer.cause)
        }
    }

    /// The first end was carried out, its answer lost: later answers do not show what became of it.
    func testARefusalBehindALostAnswerAbortsNothing() throws {
        try full()
        for status: Int32 in [400, 403, 404] {
            let bucket = FakeBucket()
            bucket.carriesOutTheFirstEnd(
                saying: .failed("timed out"), later: FakeBucket.say(status))
            let outcome = try send(target(inParts), S3MultipartTests.large, bucket)
            XCTAssertEqual(outcome.httpStatus, status)
            XCTAssertEqual(bucket.objects.count, 1)
            XCTAssertFalse(bucket.lines.contains { $0.hasPrefix("DELETE") }, "\(status)")
        }
    }

    func testAnEndThatIsRefusedIsAborted() throws {
        try full()
        for (status, isAborted) in [
            (400, true), (403, true), (404, false), (408, false), (409, false), (429, false),
            (503, false),
        ] as [(Int32, Bool)] {
            let bucket = FakeBucket()
            bucket.answer = { $0.isEnd ? FakeBucket.say(status) : nil }
            let outcome = try send(target(inParts), S3MultipartTests.large, bucket)
            XCTAssertEqual(outcome.httpStatus, status)
            XCTAssertEqual(bucket.uploads.isEmpty, isAborted, "\(status)")
            XCTAssertEqual(bucket.requests.filter(\.isEnd).count, 1, "\(status)")
        }
    }

    /// A slow server is still ending the upload: there is no object, and the upload is listed.
    func testAnEndThatMayBeUnderWayIsNotAbortedLater() throws {
        let bucket = FakeBucket()
        bucket.answer = { $0.isEnd ? .failed("timed out") : nil }
        let target = try target(inParts)
        XCTAssertEqual(try send(target, S3MultipartTests.large, bucket).kind, .requestFailed)
        XCTAssertEqual(bucket.requests.filter(\.isEnd).count, 3)
        let slow = Set(bucket.uploads.keys)
        bucket.uploads["killed"] = [:]
        bucket.answer = { _ in nil }
        XCTAssertEqual(try send(target, S3MultipartTests.large, bucket).httpStatus, 200)
        XCTAssertEqual(Set(bucket.uploads.keys), slow)
    }

    func testAlreadyThereAtTheEndOfParts() throws {
        try full()
        let bucket = FakeBucket()
        bucket.answer = {
            $0.headers["if-none-match"] != nil ? FakeBucket.say(412) : nil
        }
        let target = try target(inParts)
        let outcome = try send(target, S3MultipartTests.large, bucket)
        XCTAssertEqual(target.dialect.verdict(outcome, delivery()), .sent(.none))
        XCTAssertEqual(bucket.uploads.count, 1, "libcurl may have asked twice")
    }

    func testNoMorePartsThanThereMayBe() throws {
        let dialect = try (target("part_bytes=5242880").dialect as? S3Dialect)!
        let whole: UInt64 = 100 << 30
        XCTAssertLessThanOrEqual(
            (whole + dialect.partSize(whole) - 1) / dialect.partSize(whole), 10_000)
    }
}
