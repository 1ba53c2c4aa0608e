// Finds the request's secrets in its answer. Error pages often repeat the URL, headers and tokens,
// plain or escaped, and their first words go into logs and the queue. An answer is cleaned before
// it is cut for display, because a cut could leave half a secret. Lives for one answer.

import CordwoodFormats

struct SentSecrets {
    /// In UTF-8, the longest first.
    private let texts: [[UInt8]]

    static let mark = "***"
    /// Shorter values of headers and parameters would match by chance. Credentials that short are
    /// found as whole words only.
    private static let valueBytesMin = 4
    /// Shorter path segments are more likely names than tokens.
    private static let segmentBytesMin = 8
    /// Our own headers, or those of every request.
    static let plainHeaders: Set<String> = [
        "accept", "content-encoding", "content-length", "content-type", "host", "idempotency-key",
        "if-none-match", "user-agent",
    ]

    /// - Parameter credentials: secrets that the request holds in encoded form.
    init(_ request: TransferRequest, also credentials: [String] = []) {
        var found: Set<String> = []
        func add(_ text: some StringProtocol, from bytesMin: Int = 1) {
            guard text.utf8.count >= bytesMin else { return }
            found.insert(String(text))
        }
        for text in credentials { add(text) }
        for header in request.headers
        where !SentSecrets.plainHeaders.contains(header.lowercasedName) {
            add(header.value, from: SentSecrets.valueBytesMin)
            // `Bearer …`, `Basic …`, `Splunk …`.
            if let space = header.value.firstIndex(of: " ") {
                let behind = header.value[header.value.index(after: space)...]
                add(behind, from: SentSecrets.valueBytesMin)
            }
        }
        let address = request.url.prefix { $0 != "#" }
        let origin = (try? WebAddress(request.url))?.origin.utf8.count ?? 0
        let pathAndQuery = address.utf8.dropFirst(origin).drop { $0 != 0x2F && $0 != 0x3F }
        // Error pages quote the path: `Cannot POST /in/…?key=…`.
        add(String(decoding: pathAndQuery, as: UTF8.self), from: SentSecrets.valueBytesMin)
        let parts = pathAndQuery.split(separator: 0x3F, maxSplits: 1)
        if let path = parts.first {
            add(String(decoding: path, as: UTF8.self), from: SentSecrets.valueBytesMin)
        }
        for segment in parts.first?.split(separator: 0x2F) ?? [] {
            add(
                String(decoding: segment, as: UTF8.self), from: SentSecrets.segmentBytesMin)
        }
        for pair in parts.count == 2 ? parts[1].split(separator: 0x26) : [] {
            let value = pair.split(separator: 0x3D, maxSplits: 1).last ?? pair
            add(String(decoding: value, as: UTF8.self), from: SentSecrets.valueBytesMin)
        }
        texts = found.map { Array($0.utf8) }.sorted { $0.count > $1.count }
    }

    /// Replaces secrets in the cause and in a refusal's body. Headers are never shown. Call it
    /// after the protocol has read the answer.
    func clean(_ outcome: inout TransferOutcome) {
        guard !texts.isEmpty else { return }
        outcome.cause = cleaned(outcome.cause)
        if outcome.kind != .success { outcome.body = cleaned(outcome.body) }
    }

    func cleaned(_ text: String) -> String {
        String(decoding: cleaned(Array(text.utf8)), as: UTF8.self)
    }

    func cleaned(_ bytes: [UInt8]) -> [UInt8] {
        var mayBegin = [Bool](repeating: false, count: 256)
        for first in texts.compactMap(\.first) + Escape.firstBytes { mayBegin[Int(first)] = true }
        guard !texts.isEmpty, bytes.contains(where: { mayBegin[Int($0)] }) else { return bytes }
        var out: [UInt8] = []
        var at = 0
        while at < bytes.count {
            if mayBegin[Int(bytes[at])], let end = secretEnd(bytes, at) {
                out += SentSecrets.mark.utf8
                at = end
            } else {
                out.append(bytes[at])
                at += 1
            }
        }
        return out
    }

    /// The end of the longest secret that begins there; nil: none does.
    private func secretEnd(_ bytes: [UInt8], _ start: Int) -> Int? {
        for text in texts {
            let end =
                bytes[start...].starts(with: text)
                ? start + text.count : SentSecrets.escapedEnd(text, bytes, start)
            if let end, text.count >= SentSecrets.valueBytesMin || isWord(bytes, start..<end) {
                return end
            }
        }
        return nil
    }

    private func isWord(_ bytes: [UInt8], _ range: Range<Int>) -> Bool {
        func isLetter(_ index: Int) -> Bool {
            bytes.indices.contains(index) && ASCII.isWordByte(bytes[index])
        }
        return !isLetter(range.lowerBound - 1) && !isLetter(range.upperBound)
    }

    private static func escapedEnd(_ text: [UInt8], _ bytes: [UInt8], _ start: Int) -> Int? {
        var at = start
        var found = 0
        while found < text.count {
            guard at < bytes.count else { return nil }
            if let escape = Escape.read(bytes, at), text[found...].starts(with: escape.bytes) {
                found += escape.bytes.count
                at = escape.end
            } else if bytes[at] == text[found] {
                found += 1
                at += 1
            } else {
                return nil
            }
        }
        return at
    }
}
