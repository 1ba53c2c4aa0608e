// X25519 keys of age: recipients, to which a file is encrypted, and identities, which open it. They
// are parsed from user input (age1…, AGE-SECRET-KEY-1…, identity files) and never printed, except
// when the user asks for a new identity. Values; any thread.

import CordwoodCore

public struct AgeRecipient: Equatable, Sendable {
    static let stanzaKind = "X25519"
    static let prefix = "age"
    /// The most keys in one file.
    public static let countMax = 64
    private static let info = "age-encryption.org/v1/X25519"

    let point: [UInt8]

    /// `age1…`.
    public var text: String { Bech32.encode(AgeRecipient.prefix, point) }

    init(point: [UInt8]) { self.point = point }

    public init(_ text: String) throws(AgeError) {
        let bytes = Array(text.utf8)
        let lower = text.lowercased()
        guard !lower.hasPrefix("age-secret-key-") else {
            throw .argument("a secret key stands where a recipient (age1…) belongs")
        }
        guard lower.hasPrefix("age1") else {
            throw .argument("not an age recipient, which begins with age1")
        }
        do throws(Bech32.Problem) {
            let (prefix, data) = try Bech32.decode(bytes)
            guard prefix == AgeRecipient.prefix, data.count == AgeCrypto.keyBytes,
                bytes.first == UInt8(ascii: "a")
            else { throw .separator }
            point = data
        } catch {
            // A plugin's key, or a newer kind: age1yubikey1…, age1pq1….
            let isOther = lower.utf8.dropFirst(4).contains(UInt8(ascii: "1"))
            throw .argument(
                isOther
                    ? "\(text.prefix(16))… is no X25519 recipient, and others cannot be used"
                    : "recipient \(text.prefix(16))… \(error.text)")
        }
        let trial = AgeSecret(AgeCrypto.random(AgeCrypto.keyBytes))
        guard AgeCrypto.multiply(trial, point) != nil else {
            throw .argument("recipient \(text.prefix(16))… is a point that hides nothing")
        }
    }

    /// One or more recipients, separated by spaces or commas; duplicates are dropped.
    public static func list(_ text: String) throws(AgeError) -> [AgeRecipient] {
        var found: [AgeRecipient] = []
        for word in text.utf8.split(whereSeparator: { " ,\t\r\n".utf8.contains($0) }) {
            let recipient = try AgeRecipient(String(decoding: word, as: UTF8.self))
            if !found.contains(recipient) { found.append(recipient) }
        }
        guard !found.isEmpty else { throw .argument("no recipient is named") }
        guard found.count <= countMax else { throw .argument("more than \(countMax) recipients") }
        return found
    }

    /// Never nil for a parsed recipient.
    func stanza(_ fileKey: AgeSecret) -> AgeStanza? {
        let ephemeral = AgeSecret(AgeCrypto.random(AgeCrypto.keyBytes))
        let share = AgeCrypto.point(of: ephemeral)
        guard let shared = AgeCrypto.multiply(ephemeral, point) else { return nil }
        let key = AgeRecipient.wrapKey(shared, share: share, recipient: point)
        let text = String(decoding: AgeBase64.text(share), as: UTF8.self)
        return AgeStanza(
            arguments: [AgeRecipient.stanzaKind, text], body: AgeCrypto.wrap(fileKey, with: key))
    }

    static func wrapKey(_ shared: AgeSecret, share: [UInt8], recipient: [UInt8]) -> AgeSecret {
        AgeCrypto.hkdf(shared, salt: share + recipient, info: info)
    }
}

public struct AgeIdentity: Sendable {
    private static let prefix = "age-secret-key-"
    private static let fileBytesMax = 1 << 20

    private let scalar: AgeSecret
    public let recipient: AgeRecipient

    init(scalar: AgeSecret) {
        self.scalar = scalar
        recipient = AgeRecipient(point: AgeCrypto.point(of: scalar))
    }

    public static func generate() -> AgeIdentity {
        AgeIdentity(scalar: AgeSecret(AgeCrypto.random(AgeCrypto.keyBytes)))
    }

    /// `AGE-SECRET-KEY-1…`: only for an identity file.
    public var secretText: String {
        Bech32.encode(AgeIdentity.prefix, scalar.bytes).uppercased()
    }

    /// If the text is not a key, the error does not show it.
    init(_ text: some Collection<UInt8>) throws(AgeError) {
        do throws(Bech32.Problem) {
            let (prefix, data) = try Bech32.decode(text)
            guard prefix == AgeIdentity.prefix, data.count == AgeCrypto.keyBytes else {
                throw .separator
            }
            self.init(scalar: AgeSecret(data))
        } catch {
            throw .argument("the secret key \(error.text)")
        }
    }

    /// Reads an identity file as age-keygen writes it: one identity per line, with empty lines and
    /// lines that begin with # between them. The file may be a pipe; blocks until all of it is
    /// read.
    public static func file(_ path: String) throws(AgeError) -> [AgeIdentity] {
        let content = try read(path)
        return try parse(content.bytes, path)
    }

    static func parse(_ content: [UInt8], _ name: String) throws(AgeError) -> [AgeIdentity] {
        guard !AgeHeader.isStart(content), !content.starts(with: "-----BEGIN AGE".utf8) else {
            throw .argument("\(name) is encrypted itself: open it with age first")
        }
        var found: [AgeIdentity] = []
        let lines = content.split(separator: 0x0A, omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() {
            let text = line.last == 0x0D ? line.dropLast() : line
            if text.isEmpty || text.first == UInt8(ascii: "#") { continue }
            guard text.starts(with: "AGE-SECRET-KEY-1".utf8) else {
                throw .argument(
                    "\(name), line \(index + 1): not an X25519 identity (AGE-SECRET-KEY-1…)")
            }
            do throws(AgeError) {
                found.append(try AgeIdentity(text))
            } catch .argument(let what) {
                throw .argument("\(name), line \(index + 1): \(what)")
            }
        }
        guard !found.isEmpty else { throw .argument("\(name) holds no identity") }
        return found
    }

    /// SAFETY: each read fills at most the rest of the array.
    private static func read(_ path: String) throws(AgeError) -> AgeSecret {
        // The caller chose this path, unlike the files of a store: links and pipes are allowed.
        let descriptor = Files.openFollowing(FilePath(path), [.read, .noTerminal])
        guard descriptor >= 0 else { throw .system("open \(path)", errno: Errno.last) }
        defer { FileCalls.close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: fileBytesMax)
        var count = 0
        while count < bytes.count {
            let got = unsafe bytes.withUnsafeMutableBytes {
                unsafe Files.readNext(
                    descriptor, into: UnsafeMutableRawBufferPointer(rebasing: $0[count...]))
            }
            guard got >= 0 else { throw .system("read \(path)", errno: Errno.last) }
            if got == 0 { break }
            count += got
        }
        guard count < bytes.count else { throw .argument("\(path) is no identity file") }
        bytes.removeLast(bytes.count - count)
        return AgeSecret(bytes)
    }

    /// The file key from the first stanza for this identity; nil if no stanza is for it.
    func open(_ header: AgeHeader) throws(AgeError) -> AgeSecret? {
        for stanza in header.stanzas {
            if let fileKey = try open(stanza) { return fileKey }
        }
        return nil
    }

    /// nil: the stanza is for another identity.
    func open(_ stanza: AgeStanza) throws(AgeError) -> AgeSecret? {
        guard stanza.kind == AgeRecipient.stanzaKind else { return nil }
        guard stanza.arguments.count == 2,
            let share = AgeBase64.bytes(Array(stanza.arguments[1].utf8)),
            share.count == AgeCrypto.keyBytes
        else { throw .damaged("age header: arguments of an X25519 stanza") }
        // Checked before decrypting: a longer one could be made to fit several keys.
        guard stanza.body.count == AgeHeader.fileKeyBytes + AgeCrypto.tagBytes else {
            throw .damaged("age header: length of an X25519 stanza")
        }
        guard let shared = AgeCrypto.multiply(scalar, share) else {
            throw .damaged("age header: an X25519 share that hides nothing")
        }
        let key = AgeRecipient.wrapKey(shared, share: share, recipient: recipient.point)
        return AgeCrypto.unwrap(stanza.body, with: key)
    }
}
