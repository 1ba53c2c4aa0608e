// The error of every call that throws.

/// The reason why the API refused or failed. `status` is the header's number; `text` gives the
/// cause and the place.
public struct CordwoodError: Error, Sendable, CustomStringConvertible {
    public let status: Int32
    public let text: String
    /// For an upload: the TransferError of the last failed transfer; nil if none failed.
    package var underlying: (any Error & Sendable)?

    public init(_ status: Int32, _ text: String) {
        self.status = status
        self.text = text
    }

    public var description: String { text }
}
