// What can go wrong with keys and encrypted files. The texts say what is wrong and where; they
// never hold a secret key, nor what somebody may have typed in place of a public one.

public enum AgeError: Error, Equatable, Sendable {
    /// What the host gave is no recipient or no identity.
    case argument(String)
    /// Text is what was tried, and on what.
    case system(String, errno: Int32)
    /// Not an age file, or not as its writer left it.
    case damaged(String)
    /// A version of the format that we do not know.
    case version(String)
}
