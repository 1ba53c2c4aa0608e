// Ids of the format: lanes, boots, machines and archives.

/// 16 raw bytes: lane, boot, machine and archive ids.
public struct LaneID: Hashable, Sendable {
    public var high: UInt64
    public var low: UInt64

    /// `high` holds bytes 0…7, `low` bytes 8…15, each as stored (little-endian load).
    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    public static let zero = LaneID(high: 0, low: 0)
}

extension Bytes {
    @safe @inlinable public static func id(_ b: UnsafeRawBufferPointer, _ at: Int) -> LaneID {
        LaneID(high: u64(b, at), low: u64(b, at &+ 8))
    }
}
