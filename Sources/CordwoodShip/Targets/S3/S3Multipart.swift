// A multipart upload, for bodies too large to be sent twice: begin, parts, end. A failed part is
// repeated here, and so is the end; after any other failure the whole upload is tried anew, later.
// An upload is aborted only if it cannot have become the object: its end was never requested, or
// was explicitly refused. Some servers abort even what they have committed: the object then remains
// without its bytes (SeaweedFS 4.47, Ceph before 17.2.8), and 412 would count it as sent. The next
// attempt therefore aborts the remains of an interrupted or killed attempt if there is no object
// yet; a lifecycle rule of the bucket ends all others (docs/UPLOADS.md). Until its end an upload is
// invisible. Lives on an attempt's thread.

import CordwoodStore
import Synchronization

struct S3Multipart {
    let exchange: S3Exchange
    /// Encoded.
    let path: String
    let key: String
    let partBytes: UInt64
    let isOnlyIfAbsent: Bool
    let openEnds: OpenEnds

    typealias Perform = (TransferRequest) -> TransferOutcome

    /// How often one part is sent, and the end requested.
    private static let triesMax = 3
    /// The limit of one key's unfinished uploads: attempts that could not request the end leave
    /// several.
    private static let leftoversMax = 10

    func send(_ body: borrowing Body, _ perform: Perform) throws(UploadError) -> TransferOutcome {
        abortLeftovers(perform)
        let begun = exchange.perform("POST", path, query: [("uploads", "")], perform)
        guard begun.kind == .success else { return begun }
        guard let upload = S3Answer.element("UploadId", in: begun.body, bytesMax: 2_048),
            !upload.isEmpty
        else { return .failed("the server began no upload: no UploadId in its answer") }
        do throws(UploadError) {
            var list = ""
            let sent = try sendParts(body, upload, &list, perform)
            if sent.kind == .success { return try complete(list, upload, perform) }
            abort(upload, perform)
            return sent
        } catch {
            // Nothing throws any more once the end was requested.
            abort(upload, perform)
            throw error
        }
    }

    // ── Parts ──

    /// - Parameter list: the parts as the end lists them.
    /// - Returns: the outcome of the last part, or of one that failed.
    private func sendParts(
        _ body: borrowing Body, _ upload: String, _ list: inout String, _ perform: Perform
    ) throws(UploadError) -> TransferOutcome {
        var outcome = TransferOutcome.failed("the body is empty")
        var offset: UInt64 = 0
        var number = 1
        while offset < body.bytes {
            let count = min(partBytes, body.bytes - offset)
            let hash = try body.sha256(offset: offset, count: count)
            let part = body.request(offset: offset, count: count)
            outcome = sendPart(part, hash, number, upload, perform)
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
        return outcome
    }

    private func sendPart(
        _ part: RequestBody, _ hash: String, _ number: Int, _ upload: String, _ perform: Perform
    ) -> TransferOutcome {
        var outcome = TransferOutcome.failed("not sent")
        for _ in 0..<S3Multipart.triesMax {
            outcome = exchange.perform(
                "PUT", path, query: [("partNumber", "\(number)"), ("uploadId", upload)], body: part,
                bodyHash: hash, isPut: false, perform)
            guard S3Multipart.mayPass(outcome) else { break }
        }
        return outcome
    }

    // ── The end ──

    private func complete(
        _ list: String, _ upload: String, _ perform: Perform
    ) throws(UploadError) -> TransferOutcome {
        let bytes = Array("<CompleteMultipartUpload>\(list)</CompleteMultipartUpload>".utf8)
        let memory = try MemoryBody(bytes)
        let hash = ContentHash.hex(bytes, bytes: 32)
        var outcome = TransferOutcome.failed("not sent")
        for number in 1...S3Multipart.triesMax {
            outcome = ask(memory.whole, hash, upload, perform)
            if outcome.kind == .success { return outcome }
            // A refusal after a lost answer may concern a request that took effect.
            if number == 1, S3Multipart.isRefusal(outcome) {
                abort(upload, perform)
                return outcome
            }
            guard S3Multipart.mayPass(outcome) else { break }
        }
        openEnds.note(upload)
        return outcome
    }

    /// Requests the end. A repeated request finds the object, or gets 412 by our own condition.
    private func ask(
        _ list: RequestBody, _ hash: String, _ upload: String, _ perform: Perform
    ) -> TransferOutcome {
        let xml = RequestHeader(name: "Content-Type", value: "application/xml")
        var outcome = S3Dialect.onlyIfAbsent(isOnlyIfAbsent) { more in
            exchange.perform(
                "POST", path, query: [("uploadId", upload)], body: list, bodyHash: hash,
                isPut: false, more: more + [xml], perform)
        }
        guard outcome.kind == .success else { return outcome }
        // S3 says 200 before it knows; an error may follow.
        let answer = S3Answer(exchange.secrets.cleaned(outcome.body))
        if answer.code != nil || !S3Answer.isCompletion(outcome.body) {
            outcome.kind = .server
            outcome.httpStatus = 500
            outcome.cause = "the upload's end failed: \(answer.text)"
        }
        return outcome
    }

    private func abort(_ upload: String, _ perform: Perform) {
        _ = exchange.perform("DELETE", path, query: [("uploadId", upload)], isPut: false, perform)
    }

    /// No other process sends this key: the archive is ours while its lock is held.
    private func abortLeftovers(_ perform: Perform) {
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
        // One of each per entry; otherwise the answer is not what we expect.
        guard keys.count == uploads.count else { return }
        let left = zip(keys, uploads).filter { $0 == key && !openEnds.has($1) }
        guard !left.isEmpty else { return }
        let object = exchange.perform("HEAD", path, isPut: false, perform)
        guard object.httpStatus == 404 else { return }
        for (_, upload) in left { abort(upload, perform) }
    }

    /// Whether asking again at once is worthwhile.
    private static func mayPass(_ outcome: TransferOutcome) -> Bool {
        outcome.kind == .requestFailed && !outcome.isStopped && !outcome.isUnreachable
            || [500, 502, 504].contains(outcome.httpStatus)
    }

    /// The upload is not the object, and will not be. 404 means that the upload does not exist; 409
    /// and 412 mean that an object exists, which may be this upload.
    private static func isRefusal(_ outcome: TransferOutcome) -> Bool {
        outcome.kind == .client && ![404, 408, 409, 412, 425, 429].contains(outcome.httpStatus)
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

/// Uploads whose end was requested without a conclusive answer: the server may still be working on
/// it. Shared by a target's requests; lives as long as the process.
final class OpenEnds: Sendable {
    private let uploads = Mutex<[String]>([])
    private static let countMax = 1_000

    func note(_ upload: String) {
        uploads.withLock {
            if $0.count == OpenEnds.countMax { $0.removeFirst() }
            $0.append(upload)
        }
    }

    func has(_ upload: String) -> Bool { uploads.withLock { $0.contains(upload) } }
}
