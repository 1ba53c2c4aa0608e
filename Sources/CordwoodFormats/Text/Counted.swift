// Numbers of things in messages: "1 record", "2 records". Pure; any thread.

package enum Counted {
    /// A count and its noun, which takes an s unless the count is 1.
    package static func text(_ count: some BinaryInteger, _ noun: String) -> String {
        "\(count) \(noun)\(count == 1 ? "" : "s")"
    }
}
