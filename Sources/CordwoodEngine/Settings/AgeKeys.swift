// Keys of age in the form that hosts and people give them: recipients as text, identities by the
// path of a file. Errors name the option and the problem, never a secret. Values; any thread.

import CordwoodCore
import CordwoodStore

public enum AgeKeys {
    /// Parses `age1…`, separated by spaces or commas; nil: no recipients. Errors name `option`.
    public static func recipients(
        _ text: String?, option: String
    ) throws(CordwoodError) -> [AgeRecipient] {
        guard let text else { return [] }
        do throws(AgeError) {
            return try AgeRecipient.list(text)
        } catch {
            throw CordwoodError(error, option: option)
        }
    }

    /// Reads an identity file, which may be a pipe, at once; nil: no identities.
    public static func identities(
        _ path: String?, option: String
    ) throws(CordwoodError) -> [AgeIdentity] {
        guard let path else { return [] }
        do throws(AgeError) {
            return try AgeIdentity.file(path)
        } catch {
            throw CordwoodError(error, option: option)
        }
    }
}

extension CordwoodError {
    fileprivate init(_ error: AgeError, option: String) {
        switch error {
        case .argument(let text), .damaged(let text), .version(let text):
            self.init(Status.argument, "\(option): \(text)")
        case .system(let text, let number):
            self.init(
                Status.of(errno: number),
                "\(option): could not \(text): \(Errno.text(number))")
        }
    }
}
