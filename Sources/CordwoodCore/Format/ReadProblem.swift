// What is wrong with a file, in words.

/// What a reader may meet besides records. Text says what and where.
public enum ReadProblem: Error, Sendable {
    /// The rest is still readable: call again.
    case damaged(String)
    /// A newer format: this file or block is passed over.
    case version(String)
    case system(String, errno: Int32)
    /// An archive that is encrypted, and no identity that was given opens it. Nothing is damaged.
    case locked(String)
}
