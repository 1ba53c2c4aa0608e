// Problems with files, in words.

/// Problems that a reader may meet. The text gives the cause and the place.
public enum ReadProblem: Error, Sendable {
    /// The rest is still readable: call again.
    case damaged(String)
    /// A newer format: the reader skips this file or block.
    case version(String)
    case system(String, errno: Int32)
    /// An encrypted archive that none of the given identities opens. Nothing is damaged.
    case locked(String)
}

extension ReadProblem {
    /// The process or the system lacks descriptors or memory now; the file itself may be whole.
    package var isForLack: Bool {
        switch self {
        case .system(_, Errno.EMFILE), .system(_, Errno.ENFILE), .system(_, Errno.ENOMEM): true
        default: false
        }
    }

    /// A line for people.
    package var line: String {
        switch self {
        case .damaged(let text): "damaged: \(text)"
        case .version(let text): "newer format: \(text)"
        case .system(let text, let number): "\(text): \(Errno.text(number))"
        case .locked(let text): text
        }
    }
}
