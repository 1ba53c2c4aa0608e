// `cordwood keygen`: makes an age identity like age-keygen; also defines the option of the verbs
// that write archives.
// SAFETY: writes take the rest of the array; strings are lent to one call each.

import ArgumentParser
import Cordwood

struct KeygenCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keygen",
        abstract: "Make a key for encrypted archives: an age identity and its recipient.",
        discussion: """
            Prints an identity file, or writes it with -o (mode 0600); an existing file is never \
            overwritten. Whoever has the file can read every archive encrypted to its recipient, \
            and without it nobody can: keep a copy elsewhere. The recipient (age1…) is not secret; \
            the file and stderr name it. The age tool takes the same files.

            Example:
              cordwood keygen -o key.txt
              cordwood archive logs --encrypt-to age1…
              cordwood cat logs --identity key.txt
            """)

    @Option(
        name: .shortAndLong, help: "Where to write the identity; standard output otherwise.",
        completion: .file())
    var output: String?

    func run() throws {
        let identity = AgeIdentity.generate()
        let text = """
            # created: \(Times.text(seconds: Int64(TimeArgument.now() / 1_000_000_000)))
            # public key: \(identity.recipient.text)
            \(identity.secretText)

            """
        guard let output else {
            // Someone who redirects a secret into a file wants to see its public half.
            if !Output.standard.isTerminal { tell(identity) }
            Output.standard.append(text)
            return
        }
        try KeygenCommand.write(Array(text.utf8), to: output)
        tell(identity)
    }

    private func tell(_ identity: AgeIdentity) {
        Complaint.write("Public key: \(identity.recipient.text)\n")
    }

    private static func write(_ content: [UInt8], to path: String) throws(Failure) {
        let file = Files.openKept(FilePath(path), [.write, .new])
        guard file >= 0 else {
            throw Failure(
                Errno.last == Errno.EEXIST ? .usage : .cannotOpen,
                Errno.last == Errno.EEXIST
                    ? "\(path) exists and is not overwritten"
                    : "\(path): \(Errno.text(Errno.last))")
        }
        let error = unsafe content.withUnsafeBytes { unsafe Files.write(file, $0) }
        // A key lost in a power failure takes its archives with it.
        let isKept = error == 0 && Files.sync(file)
        let number = error == 0 ? Errno.last : error
        FileCalls.close(file)
        guard isKept else {
            Files.remove(FilePath(path))
            throw Failure(.failed, "\(path): \(Errno.text(number))")
        }
    }
}

struct EncryptionOption: ParsableArguments {
    @Option(
        name: .customLong("encrypt-to"), parsing: .singleValue,
        help: ArgumentHelp(
            "Encrypt new archives to this age recipient (cordwood keygen). May be repeated.",
            valueName: "age1…"))
    var texts: [String] = []

    /// nil: no recipient is named.
    var text: String? { texts.isEmpty ? nil : texts.joined(separator: " ") }

    func recipients() throws(Failure) -> [AgeRecipient] {
        do throws(CordwoodError) {
            return try AgeKeys.recipients(text, option: "--encrypt-to")
        } catch {
            throw Failure(.usage, error.text)
        }
    }
}
