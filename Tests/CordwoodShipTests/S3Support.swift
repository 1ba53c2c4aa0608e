// What tests of kind s3 share: a bucket in this process, targets and bodies for it.

import Glibc
import XCTest

@testable import CordwoodShip
@testable import CordwoodStore

/// One bucket. Records every request; `answer` may answer before the bucket does.
final class FakeBucket {
    struct Request {
        var line: String
        var headers: [String: String]
        var body: [UInt8]

        /// True for the end of an upload in parts.
        var isEnd: Bool { line.hasPrefix("POST") && line.contains("uploadId") }
    }

    var requests: [Request] = []
    var uploads: [String: [Int: [UInt8]]] = [:]
    var objects: [String: [UInt8]] = [:]
    var answer: (Request) -> TransferOutcome? = { _ in nil }
    /// An upload stays listed after it became the object, as when SeaweedFS could not clear it.
    var keepsEnded = false
    var lines: [String] { requests.map(\.line) }

    /// The first end of an upload in parts makes the object, but its answer does not say so; the
    /// upload stays listed.
    func carriesOutTheFirstEnd(saying first: TransferOutcome, later: TransferOutcome) {
        keepsEnded = true
        answer = { [unowned self] request in
            guard request.isEnd else { return nil }
            // Recorded before it is answered.
            guard requests.filter(\.isEnd).count == 1 else { return later }
            _ = usual(request)
            return first
        }
    }

    func perform(_ request: TransferRequest) -> TransferOutcome {
        var body: [UInt8] = []
        if let source = request.body {
            body = [UInt8](repeating: 0, count: Int(source.count))
            let got = body.withUnsafeMutableBytes { source.read(into: $0, at: 0) }
            XCTAssertEqual(got, body.count)
        }
        let path = request.url.dropFirst("https://h".count)
        var headers: [String: String] = [:]
        for header in request.headers {
            XCTAssertNil(headers[header.lowercasedName], "\(header.name) twice")
            headers[header.lowercasedName] = header.value
        }
        XCTAssertEqual(headers["x-amz-content-sha256"], ContentHash.hex(body, bytes: 32))
        let noted = Request(line: "\(request.method) \(path)", headers: headers, body: body)
        requests.append(noted)
        return answer(noted) ?? usual(noted)
    }

    func usual(_ request: Request) -> TransferOutcome {
        let words = request.line.split(separator: " ", maxSplits: 1)
        let (method, path, body) = (String(words[0]), String(words[1]), request.body)
        let parts = path.split(separator: "?", maxSplits: 1)
        let key = String(parts[0])
        var query: [String: String] = [:]
        for pair in parts.count > 1 ? parts[1].split(separator: "&") : [] {
            let words = pair.split(separator: "=", omittingEmptySubsequences: false)
            query[String(words[0])] = String(words[1])
        }
        switch (method, query["uploads"] != nil, query["uploadId"]) {
        case ("GET", true, _):
            let entries = uploads.keys.sorted().map {
                "<Upload><Key>\(query["prefix"]!)</Key><UploadId>\($0)</UploadId></Upload>"
            }
            return FakeBucket.say(200, "<L><Prefix>p</Prefix>\(entries.joined())</L>")
        case ("POST", true, _):
            uploads["id\(requests.count)"] = [:]
            return FakeBucket.say(
                200, "<I><Key>x</Key><UploadId>id\(requests.count)</UploadId></I>")
        case ("DELETE", _, let id?):
            uploads[id] = nil
            return FakeBucket.say(204)
        case ("PUT", _, let id?):
            guard uploads[id] != nil else {
                return FakeBucket.say(404, "<Error><Code>NoSuchUpload</Code></Error>")
            }
            uploads[id]![Int(query["partNumber"]!)!] = body
            var outcome = FakeBucket.say(200)
            outcome.headers = [("etag", "\"e<\(query["partNumber"]!)\"")]
            return outcome
        case ("POST", _, let id?):
            guard let parts = uploads[id] else {
                return FakeBucket.say(404, "<Error><Code>NoSuchUpload</Code></Error>")
            }
            if !keepsEnded { uploads[id] = nil }
            objects[key] = parts.keys.sorted().flatMap { parts[$0]! }
            return FakeBucket.say(200, "<CompleteMultipartUploadResult/>")
        case ("HEAD", _, _): return FakeBucket.say(objects[key] == nil ? 404 : 200)
        default:
            objects[key] = body
            return FakeBucket.say(200)
        }
    }

    static func say(_ status: Int32, _ body: String = "") -> TransferOutcome {
        var outcome = TransferOutcome(
            kind: TransferOutcome.kind(httpStatus: status), httpStatus: status,
            cause: "HTTP \(status)")
        outcome.body = Array(body.utf8)
        return outcome
    }
}

class S3Case: XCTestCase {
    let id = "00000000-0000-4000-8000-000000000001"

    func target(
        _ parameters: String = "", url: String = "https://h/logs",
        _ change: (inout TargetOptions) -> Void = { _ in }
    ) throws -> Target {
        var options = TargetOptions(url: url)
        options.kind = "s3"
        options.authUser = "AK"
        options.authPassword = "SK"
        options.parameters = parameters
        change(&options)
        return try Target(options)
    }

    func delivery(_ encoding: BodyEncoding = .none) -> Delivery {
        var delivery = Delivery(
            id: id, archiveID: id, range: nil, fileName: "lane.00000001-00000002.cwa",
            encoding: encoding, credentials: Credentials(user: "AK", password: "SK"),
            nowUnixMs: 1_800_000_000_000)
        delivery.origin = ArchiveOrigin(
            timeUnixMs: 1_799_999_999_000, service: "shop", host: "h1")
        return delivery
    }

    func body(_ bytes: [UInt8]) -> Body {
        Body(BodyStream(bytes), contentBytes: UInt64(bytes.count), encoding: .none)
    }

    func send(
        _ target: Target, _ bytes: [UInt8], _ bucket: FakeBucket, _ delivery: Delivery? = nil
    ) throws -> TransferOutcome {
        let delivery = delivery ?? self.delivery()
        var request = target.request(delivery, bytesPerSecond: 0)
        let body = body(bytes)
        request.body = body.request()
        return try target.dialect.send(request, delivery, body) { bucket.perform($0) }
    }
}
