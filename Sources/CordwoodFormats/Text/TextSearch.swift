// Whether a text holds another. String.contains(String), replacing and trimmingPrefix would link
// the standard library's regular expressions, 2 MB, into every host: tools/build.sh leaves them
// out. No state: any thread.

extension StringProtocol {
    /// Compares bytes. Every text contains the empty one.
    package func holds(_ part: some StringProtocol) -> Bool {
        let (text, wanted) = (Array(utf8), Array(part.utf8))
        guard wanted.count <= text.count else { return false }
        return (0...text.count - wanted.count).contains { text[$0...].starts(with: wanted) }
    }
}
