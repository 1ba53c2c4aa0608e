// The size of a run, as in Tests/TestSupport/cases.py: core (`./dev test`), full (`--full`, and
// what `swift test` runs by itself) or all (`--all`). A test that the core leaves out begins with
// `try full()`; how many rounds a test has, it says by `sized`.

import Glibc
import XCTest

public enum TestSize: String, Sendable {
    case core, full, all

    /// Of this run, from TEST_SIZE.
    public static let current =
        getenv("TEST_SIZE").flatMap { TestSize(rawValue: String(cString: $0)) } ?? .full
}

/// The value for this run's size, such as a number of rounds.
public func sized<Value>(_ core: Value, _ full: Value, _ all: Value) -> Value {
    switch TestSize.current {
    case .core: core
    case .full: full
    case .all: all
    }
}

/// At the start of a test, or of a class's `setUpWithError`: the core leaves it out.
/// Tests/TestSupport/swift_tests.py knows the message, and does not count it as skipped.
public func full() throws {
    if TestSize.current == .core { throw XCTSkip("not in the core") }
}

/// A small seeded generator (splitmix64).
public struct SplitMix: RandomNumberGenerator, Sendable {
    /// Seeds of a test with that many in the largest size: a quarter in the others, or what the
    /// test says of the core.
    public static func seeds(_ all: UInt64, core: UInt64? = nil) -> Range<UInt64> {
        0..<sized(core ?? all / 4, all / 4, all)
    }

    private var state: UInt64
    public init(_ seed: UInt64) { state = seed }

    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
    public mutating func below(_ limit: Int) -> Int { Int(next() % UInt64(limit)) }
    public mutating func chance(_ one: Int) -> Bool { next() % UInt64(one) == 0 }
    public mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: next() >> 24) }
    }
}
