// The name of one record (FORMAT §7.1): the same while it is live, sealed or archived, in whichever
// archive and copy of a store. A value: any thread.
// SAFETY: the only view is of a local value, for one call.

import CordwoodCore
import CordwoodFormats

public struct RecordID: Hashable, Sendable {
    /// The 24 bytes as big-endian words: sorting by them sorts by lane, thread and sequence.
    private let first: UInt64
    private let second: UInt64
    private let third: UInt64

    public static let bytes = 24

    package init(lane: LaneID, threadSerial: UInt32, sequence: UInt64) {
        // A LaneID holds bytes of the file as little-endian words.
        first = lane.high.byteSwapped
        second = lane.low.byteSwapped & ~UInt64(UInt32.max) | UInt64(threadSerial)
        third = sequence
    }

    /// 48 lowercase hex digits; nil: other text.
    public init?(_ text: String) {
        guard let bytes = Hex.bytes(text.utf8) else { return nil }
        self.init(bytes: bytes[...])
    }

    /// 24 bytes; nil: another number of bytes.
    package init?(bytes: ArraySlice<UInt8>) {
        guard bytes.count == RecordID.bytes else { return nil }
        func word(_ at: Int) -> UInt64 {
            bytes.dropFirst(at).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        }
        (first, second, third) = (word(0), word(8), word(16))
    }

    func isOfLane(of other: RecordID) -> Bool {
        first == other.first && second >> 32 == other.second >> 32
    }

    func isOfThread(of other: RecordID) -> Bool {
        first == other.first && second == other.second
    }

    /// Calls `body` with each of the 24 bytes in turn.
    public func forEachByte(_ body: (UInt8) -> Void) {
        for word in [first, second, third] {
            for at in 0..<UInt64(8) { body(UInt8(truncatingIfNeeded: word >> (56 - 8 * at))) }
        }
    }

    /// The 24 bytes, as they lie in memory.
    package var bytes: (UInt64, UInt64, UInt64) {
        (first.bigEndian, second.bigEndian, third.bigEndian)
    }

    /// 48 hex digits; in each group of eight, the first digit is in the byte stored first.
    package var digits: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) {
        func upper(_ word: UInt64) -> UInt64 { Hex.digits(UInt32(word &>> 32)) }
        func lower(_ word: UInt64) -> UInt64 { Hex.digits(UInt32(truncatingIfNeeded: word)) }
        return (
            upper(first), lower(first), upper(second), lower(second), upper(third), lower(third)
        )
    }

    /// Appends 48 hex digits.
    package func append(to out: inout [UInt8]) {
        unsafe withUnsafeBytes(of: digits) { unsafe out.append(contentsOf: $0) }
    }
}

extension GrowingBytes {
    /// 16 hex digits: the sequence at the end of a record's id.
    mutating func append(hex number: UInt64) {
        append(word: Hex.digits(UInt32(number &>> 32)))
        append(word: Hex.digits(UInt32(truncatingIfNeeded: number)))
    }
}

extension RecordID: CustomStringConvertible {
    /// 48 lowercase hex digits.
    public var description: String {
        var out: [UInt8] = []
        append(to: &out)
        return String(decoding: out, as: UTF8.self)
    }
}

extension RecordID: Comparable {
    public static func < (left: RecordID, right: RecordID) -> Bool {
        (left.first, left.second, left.third) < (right.first, right.second, right.third)
    }
}

extension RecordRef {
    /// FORMAT §7.1.
    public var id: RecordID {
        RecordID(
            lane: thread.process.laneID, threadSerial: thread.serial, sequence: sequence)
    }
}
