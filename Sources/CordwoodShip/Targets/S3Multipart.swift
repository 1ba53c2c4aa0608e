// A body in parts, for what is too large to be worth sending twice: begin, parts, end. A part that
// fails is repeated here; whatever else fails ends the upload and is tried anew as a whole, later.
// What an attempt leaves that was broken off or killed is ended by the next one, which asks for
// unfinished uploads of its key, and asks again later where no answer came; where it may not ask, a
// lifecycle rule of the bucket ends them (docs/UPLOADS.md). Until its end nothing of an upload is
// seen. Lives on an attempt's thread.

import CShims
import Glibc
import Synchronization

struct S3Multipart {
    let exchange: S3Exchange
    /// Encoded.
    let path: String
    let key: String
    let partBytes: UInt64
    let isOnlyIfAbsent: Bool
    let unasked: UnaskedKeys

    typealias Perform = (TransferRequest) -> TransferOutcome

    /// Times that one part is sent.
    private static let triesMax = 3
    /// Of one key's unfinished uploads: more than one were left by attempts that could not ask.
    private static let leftoversMax = 10

    func send(_ body: borrowing Body, _ perform: Perform) throws(UploadError) -> TransferOutcome {
        let isAsked = endLeftovers(of: key, perform)
        let outcome = try sendWhole(body, perform)
        // The object exists, so any unfinished upload of its key is a leftover.
        guard outcome.kind == .success else { return outcome }
        if !isAsked { unasked.note(key) }
        for key in unasked.take() where !endLeftovers(of: key, perform) { unasked.note(key) }
        return outcome
    }

    private func sendWhole(
        _ body: borrowing Body, _ perform: Perform
    ) throws(UploadError) -> TransferOutcome {
        let begun = exchange.perform("POST", path, query: [("uploads", "")], perform)
        guard begun.kind == .success else { return begun }
        guard let upload = S3Answer.element("UploadId", in: begun.body, bytesMax: 2_048),
            !upload.isEmpty
        else { return .failed("the server began no upload: no UploadId in its answer") }
        var outcome: TransferOutcome
        do throws(UploadError) {
            outcome = try sendParts(body, upload, perform)
        } catch {
            _ = end(upload, of: key, perform)
            throw error
        }
        if outcome.kind != .success { _ = end(upload, of: key, perform) }
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
        let memory = try MemoryBody(bytes)
        let xml = RequestHeader(name: "Content-Type", value: "application/xml")
        var outcome = S3Dialect.onlyIfAbsent(isOnlyIfAbsent) { more in
            exchange.perform(
                "POST", path, query: [("uploadId", upload)], body: memory.whole,
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

    /// False: to be tried again.
    private func end(_ upload: String, of key: String, _ perform: Perform) -> Bool {
        let outcome = exchange.perform(
            "DELETE", exchange.place.path(ofObject: key), query: [("uploadId", upload)],
            isPut: false, perform)
        return !S3Multipart.mayPass(outcome)
    }

    /// Nobody else sends this key: the archive is ours alone as long as its lock is held.
    /// - Returns: false: to be asked again, no answer came.
    private func endLeftovers(of key: String, _ perform: Perform) -> Bool {
        let outcome = exchange.perform(
            "GET", exchange.place.bucketPath,
            query: [
                ("uploads", ""), ("prefix", key), ("max-uploads", "\(S3Multipart.leftoversMax)"),
            ], isPut: false, perform)
        // 403 and the like are its last word.
        guard outcome.kind == .success else { return !S3Multipart.mayPass(outcome) }
        let keys = S3Answer.elements(
            "Key", in: outcome.body, bytesMax: 4_096, countMax: S3Multipart.leftoversMax)
        let uploads = S3Answer.elements(
            "UploadId", in: outcome.body, bytesMax: 2_048, countMax: S3Multipart.leftoversMax)
        // One of each in every entry, or the answer is not what we think.
        guard keys.count == uploads.count else { return true }
        var isDone = true
        for (found, upload) in zip(keys, uploads) where found == key {
            isDone = end(upload, of: key, perform) && isDone
        }
        return isDone
    }

    private static func mayPass(_ outcome: TransferOutcome) -> Bool {
        outcome.kind == .requestFailed || outcome.httpStatus >= 500 && outcome.httpStatus != 501
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

/// Keys whose unfinished uploads could not be listed. Shared by a target's requests; lives as long
/// as the process.
final class UnaskedKeys: Sendable {
    private let keys = Mutex<[String]>([])
    private static let countMax = 1_000
    private static let atOnce = 8

    func note(_ key: String) {
        keys.withLock { if $0.count < UnaskedKeys.countMax { $0.append(key) } }
    }

    /// The oldest few.
    func take() -> [String] {
        keys.withLock {
            let oldest = Array($0.prefix(UnaskedKeys.atOnce))
            $0.removeFirst(oldest.count)
            return oldest
        }
    }
}
