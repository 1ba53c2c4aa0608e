// The error of every call that throws.

/// Why the API refused or failed. `status` is the header's number; `text` says what and where.
public struct CordwoodError: Error, Sendable, CustomStringConvertible {
    public let status: Int32
    public let text: String
    /// Of an upload: the TransferError of the last transfer that failed; nil: none did.
    package var underlying: (any Error & Sendable)?

    public init(_ status: Int32, _ text: String) {
        self.status = status
        self.text = text
    }

    public var description: String { text }
}
