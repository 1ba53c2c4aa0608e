// A body in parts, for what is too large to be worth sending twice: begin, parts, end. A part that
// fails is repeated here; whatever else fails ends the upload and is tried anew as a whole, later.
// What an attempt leaves that was broken off or killed is ended by the next one, which asks for
// unfinished uploads of its key; where it may not ask, a lifecycle rule of the bucket ends them
// (docs/UPLOADS.md). Until its end nothing of an upload is seen. Lives on an attempt's thread.

import CShims
import Glibc

struct S3Multipart {
    let exchange: S3Exchange
    /// Encoded.
    let path: String
    let key: String
    let partBytes: UInt64
    let isOnlyIfAbsent: Bool

    typealias Perform = (TransferRequest) -> TransferOutcome

    /// Times that one part is sent.
    private static let triesMax = 3
    /// Of one key's unfinished uploads: more than one were left by attempts that could not ask.
    private static let leftoversMax = 10

    func send(_ body: borrowing Body, _ perform: Perform) throws(UploadError) -> TransferOutcome {
        endLeftovers(perform)
        let begun = exchange.perform("POST", path, query: [("uploads", "")], perform)
        guard begun.kind == .success else { return begun }
        guard let upload = S3Answer.element("UploadId", in: begun.body, bytesMax: 2_048),
            !upload.isEmpty
        else { return .failed("the server began no upload: no UploadId in its answer") }
        var outcome: TransferOutcome
        do throws(UploadError) {
            outcome = try sendParts(body, upload, perform)
        } catch {
            end(upload, perform)
            throw error
        }
        if outcome.kind != .success { end(upload, perform) }
        return outcome
    }

    // ── Parts ──

    private func sendParts(
        _ body: borrowing Body, _ upload: String, _ perform: Perform
    ) throws(UploadError) -> TransferOutcome {
        var list = "<CompleteMultipartUpload>"
        var offset: UInt64 = 0
        var number = 1
        while offset < body.bytes {
            let count = min(partBytes, body.bytes - offset)
            let hash = try body.sha256(offset: offset, count: count)
            let part = RequestBody(descriptor: body.descriptor, offset: offset, count: count)
            var outcome = sendPart(part, hash, number, upload, perform)
            guard outcome.kind == .success else {
                outcome.cause = "part \(number): \(outcome.cause)"
                return outcome
            }
            guard let tag = outcome.header("etag"), !tag.isEmpty else {
                return .failed("part \(number): the answer has no ETag")
            }
            list += "<Part><PartNumber>\(number)</PartNumber><ETag>\(S3Multipart.escaped(tag))"
            list += "</ETag></Part>"
            offset += count
            number += 1
        }
        return try complete(list + "</CompleteMultipartUpload>", upload, perform)
    }

    private func sendPart(
        _ part: RequestBody, _ hash: String, _ number: Int, _ upload: String, _ perform: Perform
    ) -> TransferOutcome {
        var outcome = TransferOutcome.failed("not sent")
        for _ in 0..<S3Multipart.triesMax {
            outcome = exchange.perform(
                "PUT", path, query: [("partNumber", "\(number)"), ("uploadId", upload)], body: part,
                bodyHash: hash, isPut: false, perform)
            let mayPass =
                outcome.kind == .requestFailed && !outcome.isStopped && !outcome.isUnreachable
                || [500, 502, 504].contains(outcome.httpStatus)
            guard mayPass else { break }
        }
        return outcome
    }

    // ── The end ──

    private func complete(
        _ list: String, _ upload: String, _ perform: Perform
    ) throws(UploadError) -> TransferOutcome {
        let bytes = Array(list.utf8)
        let descriptor = cwi_file_memory()
        guard descriptor >= 0 else {
            throw UploadError.system(call: "memfd_create", path: "cordwood", errno: errno)
        }
        defer { cwi_file_close(descriptor) }
        try unsafe bytes.withUnsafeBufferPointer { (buffer) throws(UploadError) in
            try Files.write(
                descriptor, UnsafeRawBufferPointer(buffer), path: "the list of parts")
        }
        let body = RequestBody(descriptor: descriptor, count: UInt64(bytes.count))
        let xml = RequestHeader(name: "Content-Type", value: "application/xml")
        var outcome = S3Dialect.onlyIfAbsent(isOnlyIfAbsent) { more in
            exchange.perform(
                "POST", path, query: [("uploadId", upload)], body: body,
                bodyHash: ContentHash.hex(bytes, bytes: 32), isPut: false, more: more + [xml],
                perform)
        }
        // S3 says 200 before it knows, and an error behind it.
        let answer = S3Answer(outcome.body)
        if outcome.kind == .success, answer.code != nil || !S3Answer.isCompletion(outcome.body) {
            outcome.kind = .server
            outcome.httpStatus = 500
            outcome.cause = "the upload's end failed: \(answer.text)"
        }
        return outcome
    }

    private func end(_ upload: String, _ perform: Perform) {
        _ = exchange.perform(
            "DELETE", path, query: [("uploadId", upload)], isPut: false, perform)
    }

    /// Nobody else sends this key: the archive is ours alone as long as its lock is held.
    private func endLeftovers(_ perform: Perform) {
        let outcome = exchange.perform(
            "GET", exchange.place.bucketPath,
            query: [
                ("uploads", ""), ("prefix", key), ("max-uploads", "\(S3Multipart.leftoversMax)"),
            ], isPut: false, perform)
        guard outcome.kind == .success else { return }
        let keys = S3Answer.elements(
            "Key", in: outcome.body, bytesMax: 4_096, countMax: S3Multipart.leftoversMax)
        let uploads = S3Answer.elements(
            "UploadId", in: outcome.body, bytesMax: 2_048, countMax: S3Multipart.leftoversMax)
        // One of each in every entry, or the answer is not what we think.
        guard keys.count == uploads.count else { return }
        for (found, upload) in zip(keys, uploads) where found == key { end(upload, perform) }
    }

    private static func escaped(_ text: String) -> String {
        var out = ""
        for character in text {
            switch character {
            case "&": out += "&amp;"
            case "<": out += "&lt;"
            case ">": out += "&gt;"
            default: out.append(character)
            }
        }
        return out
    }
}
