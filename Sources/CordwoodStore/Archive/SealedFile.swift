// An archive file that may be encrypted, from the reader's side: a plain one, an age file that one
// of the identities opens, or one that stays closed. Made once when a file is opened, before
// anything else of it is read.

import CShims
import CordwoodCore

struct SealedFile {
    /// nil: an age file without our summary, or with a damaged one.
    let facts: SealedFacts?
    /// Set if a key opens the file although its header is damaged.
    let headProblem: ReadProblem?
    /// Offset of the salt, which the chunks follow.
    let payloadStart: UInt64
    /// nil: no key opens it.
    let payload: AgePayload?
    /// The reason why it stays closed.
    let locked: ReadProblem?

    /// nil: not an age file. The text form of age (armour) does not count as one.
    /// - Parameter start: the first bytes of the file.
    static func find(
        _ descriptor: Int32, path: FilePath, fileBytes: UInt64, identities: [AgeIdentity],
        start: [UInt8]
    ) throws(ReadProblem) -> SealedFile? {
        guard AgeHeader.isStart(start) else { return nil }
        do throws(AgeError) {
            guard let header = try header(descriptor, fileBytes) else { return nil }
            return try SealedFile(descriptor, path, fileBytes, header, identities)
        } catch {
            throw problem(error, path)
        }
    }

    private init(
        _ descriptor: Int32, _ path: FilePath, _ fileBytes: UInt64, _ header: AgeHeader,
        _ identities: [AgeIdentity]
    ) throws(AgeError) {
        var damage: String?
        switch SealedFacts.find(header) {
        case .facts(let found): facts = found
        case .none: facts = nil
        case .newer(let what): throw .version(what)
        case .bad(let what):
            facts = nil
            damage = what
        }
        payloadStart = UInt64(header.count)
        for identity in identities {
            guard let fileKey = try identity.open(header) else { continue }
            // The chunks are authenticated by the same key, so what they hold is genuine.
            if !header.isGenuine(fileKey) {
                damage = damage ?? "age header: the MAC is not that of the header"
            }
            headProblem = damage.map { .damaged("\(path): \($0)") }
            payload = try AgePayload(
                descriptor: descriptor, start: payloadStart, fileBytes: fileBytes, fileKey: fileKey)
            locked = nil
            return
        }
        if let damage { throw .damaged(damage) }
        payload = nil
        headProblem = nil
        let recipients = header.stanzas.count { $0.kind != SealedFacts.stanzaKind }
        locked = .locked(
            "\(path): encrypted for \(recipients) recipient\(recipients == 1 ? "" : "s"), "
                + (identities.isEmpty
                    ? "and no identity was given" : "of whom none is an identity that was given"))
    }

    /// The recipients of an age file. A header does not name them: nil if one of them is not among
    /// the identities.
    static func recipients(
        _ descriptor: Int32, path: FilePath, fileBytes: UInt64, identities: [AgeIdentity]
    ) throws(ReadProblem) -> [AgeRecipient]? {
        do throws(AgeError) {
            guard let header = try header(descriptor, fileBytes) else { return nil }
            var found: [AgeRecipient] = []
            for stanza in header.stanzas where stanza.kind != SealedFacts.stanzaKind {
                var owner: AgeRecipient?
                for identity in identities where owner == nil {
                    guard let fileKey = try identity.open(stanza), header.isGenuine(fileKey)
                    else { continue }
                    owner = identity.recipient
                }
                guard let owner else { return nil }
                if !found.contains(owner) { found.append(owner) }
            }
            return found
        } catch {
            throw problem(error, path)
        }
    }

    /// The first bytes of the file: all of a small one.
    static func start(
        _ descriptor: Int32, path: FilePath, fileBytes: UInt64
    ) throws(ReadProblem) -> [UInt8] {
        do throws(AgeError) {
            return try AgePayload.prefix(of: descriptor, Int(min(startBytes, fileBytes)))
        } catch {
            throw problem(error, path)
        }
    }

    private static let startBytes: UInt64 = 4_096

    private static func header(
        _ descriptor: Int32, _ fileBytes: UInt64
    ) throws(AgeError) -> AgeHeader? {
        var wanted = Int(startBytes)
        while true {
            let bytes = try AgePayload.prefix(
                of: descriptor, Int(min(UInt64(wanted), fileBytes)))
            guard AgeHeader.isStart(bytes) else { return nil }
            if let header = try AgeHeader.parse(bytes) { return header }
            guard UInt64(wanted) < fileBytes else { throw .damaged("age header: cut") }
            guard wanted < AgeHeader.bytesMax else { throw .damaged("age header: too long") }
            wanted = min(wanted * 8, AgeHeader.bytesMax)
        }
    }

    static func problem(_ error: AgeError, _ path: FilePath) -> ReadProblem {
        switch error {
        case .damaged(let text), .argument(let text): .damaged("\(path): \(text)")
        case .version(let text): .version("\(path): \(text)")
        case .system(let text, let number): .system("\(text) \(path)", errno: number)
        }
    }

    /// Checks everything that needs no key. Returns nil, or the part of the file that is not as
    /// written.
    /// SAFETY: reads and sums at most the buffer's own count.
    func check(
        _ descriptor: Int32, path: FilePath, fileBytes: UInt64
    ) throws(ReadProblem) -> String? {
        guard let facts else { return nil }
        guard fileBytes >= payloadStart, fileBytes - payloadStart == facts.payloadBytes else {
            return "size of the encrypted payload"
        }
        var buffer = [UInt8](repeating: 0, count: 256 << 10)
        var at = payloadStart
        var crc: UInt32 = 0
        while at < fileBytes {
            let wanted = min(buffer.count, Int(fileBytes - at))
            let got = Files.readOnce(descriptor, into: &buffer, wanted, at: at)
            guard got >= 0 else { throw .system("read \(path)", errno: Errno.last) }
            if got == 0 { return "size of the encrypted payload" }
            crc = unsafe cwi_crc32c(crc, buffer, got)
            at += UInt64(got)
        }
        return crc == facts.payloadCRC ? nil : "checksum of the encrypted payload"
    }
}
