// The bearer tokens that clients may send: those the host was given, and those in its file, which
// is read again every second (`Upkeep`). A file that cannot be read, or has no token, changes
// nothing. Blocking where it reads the file; otherwise any thread.

import Cordwood
import CordwoodServing
import Synchronization

extension CollectorOptions {
    /// Throws if the tokens, or their file, cannot be used.
    package func checkTokens() throws(CollectorError) { _ = try Tokens(self) }
}

package struct TokenFileProblem: Error {
    package let text: String
    /// False: it was read, and its content is wrong.
    package var isUnreadable = false
}

package final class Tokens: Sendable {
    static let fileBytesMax = 64 << 10

    /// The tokens of a client together.
    package typealias Client = [[UInt8]]

    private struct Content {
        /// As the file was last read.
        var listed: [Client]
        /// With the number of the client; empty until the senders are known.
        var all: [(token: [UInt8], client: UInt32)] = []
    }

    private let given: [Client]
    private let path: String?
    private let content: Mutex<Content>

    init(_ options: CollectorOptions) throws(CollectorError) {
        given = options.tokens.map { Tokens.client($0.utf8) }
        guard given.allSatisfy(Tokens.isWhole) else {
            throw .tokens("a token is empty, or has a character beyond ASCII")
        }
        path = options.tokenFile
        do throws(TokenFileProblem) {
            content = Mutex(Content(listed: try path.map(Tokens.read) ?? []))
        } catch {
            throw .tokens(error.text)
        }
        let listed = content.withLock { $0.listed }
        guard Tokens.repeated(given + listed) == nil else { throw .tokens(Tokens.repeatedText) }
    }

    private static let repeatedText =
        "a token is given twice: each belongs to one client, which is a line or an option"

    /// Of the clients, the first that has a token of one before it, or a token twice.
    private static func repeated(_ clients: [Client]) -> Int? {
        var seen: Set<[UInt8]> = []
        return clients.firstIndex { !$0.allSatisfy { seen.insert($0).inserted } }
    }

    /// Without tokens, anyone may store archives.
    var isOpen: Bool { given.isEmpty && path == nil }

    /// The number of the client that has the token; nil: no client has it. Takes the same time
    /// whichever token it is.
    func client(_ token: [UInt8]) -> UInt32? {
        var found: UInt32?
        for own in content.withLock({ $0.all }) where Secret.isSame(token, own.token) {
            found = own.client
        }
        return found
    }

    /// Call before the first client comes. Blocking.
    func begin(_ senders: Senders) throws(FileProblem) {
        try use(content.withLock { $0.listed }, senders)
    }

    /// Reads the file again, if there is one. Blocking. If that fails, returns the reason, and the
    /// tokens read last still count.
    func lookAgain(_ senders: Senders) -> String? {
        guard let path else { return nil }
        do throws(TokenFileProblem) {
            let listed = try Tokens.read(path)
            if content.withLock({ $0.listed == listed }) { return nil }
            guard Tokens.repeated(given + listed) == nil else {
                throw TokenFileProblem(text: "\(path): \(Tokens.repeatedText)")
            }
            do throws(FileProblem) {
                try use(listed, senders)
            } catch {
                throw TokenFileProblem(text: "\(error.operation): \(Errno.text(error.errno))")
            }
            return nil
        } catch {
            return error.text
        }
    }

    private func use(_ listed: [Client], _ senders: Senders) throws(FileProblem) {
        let clients = given + listed
        // What is revoked counts for nothing at once, whether the disk takes the lines or not.
        let left = Set(clients.joined())
        content.withLock { $0.all.removeAll { !left.contains($0.token) } }
        let numbers = try senders.learn(clients)
        var all: [(token: [UInt8], client: UInt32)] = []
        for (client, number) in zip(clients, numbers) {
            for token in client { all.append((token, number)) }
        }
        content.withLock { [all] in $0 = Content(listed: listed, all: all) }
    }

    /// A line a client: its tokens, with blanks between them. Empty lines, and those that begin
    /// with `#`, are skipped.
    package static func read(_ path: String) throws(TokenFileProblem) -> [Client] {
        guard let bytes = Files.content(FilePath(path), bytesMax: fileBytesMax) else {
            throw TokenFileProblem(
                text: "\(path): cannot be read, or has over \(fileBytesMax) bytes",
                isUnreadable: true)
        }
        var clients: [Client] = []
        let lines = bytes.split(separator: 0x0a, omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() {
            let line = line.last == 0x0d ? line.dropLast() : line
            if line.first == UInt8(ascii: "#") { continue }
            let client = Tokens.client(line)
            if client.isEmpty { continue }
            guard isWhole(client) else {
                throw TokenFileProblem(
                    text: "\(path): line \(index + 1) has a character beyond ASCII")
            }
            clients.append(client)
        }
        guard !clients.isEmpty else { throw TokenFileProblem(text: "\(path): has no token") }
        return clients
    }

    private static func client(_ text: some Collection<UInt8>) -> Client {
        text.split(separator: 0x20).map { Array($0) }
    }

    private static func isWhole(_ client: Client) -> Bool {
        !client.isEmpty && client.allSatisfy { $0.allSatisfy { (0x21...0x7e).contains($0) } }
    }
}
