// Errors of keys and encrypted files. The texts give the cause and the place; they never hold a
// secret key, nor input that was meant to be a public one.

public enum AgeError: Error, Equatable, Sendable {
    /// The host passed something that is not a recipient or an identity.
    case argument(String)
    /// The text gives the operation and its object.
    case system(String, errno: Int32)
    /// Not an age file, or not in the state in which its writer left it.
    case damaged(String)
    /// A version of the format that this code does not support.
    case version(String)
}
