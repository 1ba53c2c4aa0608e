// What must hold at a place if the protocol is right: bounds of chunks, states, offsets that only
// grow. Builds with CORDWOOD_INVARIANTS check it and trap; `./dev test` makes one. No other build
// evaluates the condition, so a host pays nothing and is never stopped.
// Not for what a file says: files can be damaged, and readers report that.

@inlinable @inline(__always)
package func invariant(_ holds: @autoclosure () -> Bool, _ what: StaticString) {
    #if CORDWOOD_INVARIANTS
    if !holds() { fatalError("invariant: \(what)") }
    #endif
}
