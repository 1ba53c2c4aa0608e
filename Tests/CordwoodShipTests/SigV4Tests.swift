// Signatures of S3 requests against AWS's published examples (Amazon S3 API Reference, "Using the
// Authorization header"), and how keys and queries are encoded.

import CordwoodFormats
import XCTest

@testable import CordwoodShip
@testable import CordwoodStore

final class SigV4Tests: XCTestCase {
    private let signer = SigV4(
        accessKey: "AKIAIOSFODNN7EXAMPLE", secretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        sessionToken: nil, region: "us-east-1")
    /// 2013-05-24T00:00:00Z.
    private let time: Int64 = 1_369_353_600

    private func request(
        _ method: String, _ path: String, query: [(name: String, value: String)] = [],
        _ headers: [RequestHeader] = [], body: String = ""
    ) -> SigV4.Request {
        SigV4.Request(
            method: method, host: "examplebucket.s3.amazonaws.com",
            path: URLText.percentEncoded(path, keeping: "-._~/"), query: query, headers: headers,
            bodyHash: ContentHash.hex(Array(body.utf8), bytes: 32))
    }

    private func authorization(_ request: SigV4.Request) -> String {
        signer.headers(request, unixSeconds: time).first { $0.name == "Authorization" }!.value
    }

    private func signature(_ request: SigV4.Request) -> Substring {
        authorization(request).suffix(64)
    }

    func testGetObject() {
        let example = request(
            "GET", "/test.txt", [RequestHeader(name: "Range", value: "bytes=0-9")])
        XCTAssertEqual(
            SigV4.canonical(example).text.split(separator: "\n", omittingEmptySubsequences: false)[
                0...3],
            ["GET", "/test.txt", "", "host:examplebucket.s3.amazonaws.com"])
        XCTAssertEqual(
            authorization(example),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
                + "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, Signature="
                + "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")
    }

    func testPutObject() {
        let example = request(
            "PUT", "/test$file.text",
            [
                RequestHeader(name: "Date", value: "Fri, 24 May 2013 00:00:00 GMT"),
                RequestHeader(name: "x-amz-storage-class", value: "REDUCED_REDUNDANCY"),
            ], body: "Welcome to Amazon S3.")
        XCTAssertEqual(example.path, "/test%24file.text")
        XCTAssertEqual(
            signature(example), "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd")
    }

    func testQueryWithoutValue() {
        XCTAssertEqual(
            signature(request("GET", "/", query: [("lifecycle", "")])),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543")
    }

    func testListObjects() {
        XCTAssertEqual(
            signature(request("GET", "/", query: [("prefix", "J"), ("max-keys", "2")])),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")
    }

    func testEmptyBody() {
        XCTAssertEqual(SigV4.emptyHash, ContentHash.hex([], bytes: 32))
    }

    func testSessionTokenIsSentAndSigned() {
        var signer = self.signer
        signer.sessionToken = "token"
        let headers = signer.headers(request("GET", "/a"), unixSeconds: time)
        XCTAssertEqual(headers.first { $0.name == "x-amz-security-token" }?.value, "token")
        XCTAssertTrue(
            headers.last!.value.contains("x-amz-date;x-amz-security-token"), headers.last!.value)
    }

    func testEncoding() {
        XCTAssertEqual(
            URLText.percentEncoded("a/b c:d+e=f(g)'h*i~jü%-._$@,;&", keeping: "-._~/"),
            "a/b%20c%3Ad%2Be%3Df%28g%29%27h%2Ai~j%C3%BC%25-._%24%40%2C%3B%26")
        XCTAssertEqual(URLText.percentEncoded("a/b"), "a%2Fb")
        XCTAssertEqual(
            SigV4.encode(query: [("b", "x y"), ("a", "2"), ("a", "1"), ("ä", "")]),
            "%C3%A4=&a=1&a=2&b=x%20y")
    }

    func testHeadersAreCollapsedAndJoined() {
        let request = SigV4.Request(
            method: "PUT", host: "h", path: "/",
            headers: [
                RequestHeader(name: "X-Amz-Meta-B", value: "  a   b\t c "),
                RequestHeader(name: "x-amz-meta-a", value: "1"),
                RequestHeader(name: "x-amz-meta-b", value: "2"),
            ], bodyHash: "x")
        XCTAssertEqual(
            SigV4.canonical(request).text,
            "PUT\n/\n\nhost:h\nx-amz-meta-a:1\nx-amz-meta-b:a b c,2\n\n"
                + "host;x-amz-meta-a;x-amz-meta-b\nx")
    }
}
