// Compares what a client sent with a secret. Pure.

package enum Secret {
    /// Takes the same time wherever the first difference is; reveals the length at most.
    package static func isSame(_ given: [UInt8], _ wanted: [UInt8]) -> Bool {
        var difference = UInt8(given.count == wanted.count ? 0 : 1)
        for index in 0..<given.count {
            difference |= given[index] ^ (wanted.isEmpty ? 1 : wanted[index % wanted.count])
        }
        return difference == 0
    }
}
