// The bearer tokens that clients may send: those the host was given, and those in its file, which
// is read again every second (`Upkeep`). A file that cannot be read, or has no token, changes
// nothing. Blocking where it reads the file; otherwise any thread.

import Cordwood
import CordwoodServing
import Synchronization

package struct TokenFileProblem: Error {
    package let text: String
    /// False: it was read, and its content is wrong.
    package var isUnreadable = false
}

package final class Tokens: Sendable {
    static let fileBytesMax = 64 << 10

    private let given: [[UInt8]]
    private let path: String?
    private let listed: Mutex<[[UInt8]]>

    init(_ options: CollectorOptions) throws(CollectorError) {
        given = options.tokens.map { Array($0.utf8) }
        guard given.allSatisfy(Tokens.isToken) else {
            throw .tokens("a token is empty, or has a blank or a character beyond ASCII")
        }
        path = options.tokenFile
        do throws(TokenFileProblem) {
            listed = Mutex(try path.map(Tokens.read) ?? [])
        } catch {
            throw .tokens(error.text)
        }
    }

    /// Without tokens, anyone may store archives.
    var isOpen: Bool { given.isEmpty && path == nil }

    /// Takes the same time whichever token it is.
    func has(_ token: [UInt8]) -> Bool {
        var isKnown = false
        for own in given + listed.withLock({ $0 }) where Secret.isSame(token, own) {
            isKnown = true
        }
        return isKnown
    }

    /// Reads the file again, if there is one. Blocking. If that fails, returns the reason, and the
    /// tokens read last still count.
    func lookAgain() -> String? {
        guard let path else { return nil }
        do throws(TokenFileProblem) {
            let tokens = try Tokens.read(path)
            listed.withLock { $0 = tokens }
            return nil
        } catch {
            return error.text
        }
    }

    /// A token a line, at least one; empty lines, and those that begin with `#`, are skipped.
    package static func read(_ path: String) throws(TokenFileProblem) -> [[UInt8]] {
        guard let bytes = Files.content(FilePath(path), bytesMax: fileBytesMax) else {
            throw TokenFileProblem(
                text: "\(path): cannot be read, or has over \(fileBytesMax) bytes",
                isUnreadable: true)
        }
        var tokens: [[UInt8]] = []
        let lines = bytes.split(separator: 0x0a, omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() {
            let token = Array(line.last == 0x0d ? line.dropLast() : line)
            if token.isEmpty || token.first == UInt8(ascii: "#") { continue }
            guard isToken(token) else {
                throw TokenFileProblem(
                    text: "\(path): line \(index + 1) has a blank or a character beyond ASCII")
            }
            tokens.append(token)
        }
        guard !tokens.isEmpty else { throw TokenFileProblem(text: "\(path): has no token") }
        return tokens
    }

    private static func isToken(_ bytes: [UInt8]) -> Bool {
        !bytes.isEmpty && bytes.allSatisfy { (0x21...0x7e).contains($0) }
    }
}
