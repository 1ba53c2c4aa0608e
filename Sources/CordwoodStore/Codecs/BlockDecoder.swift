// Reads the codecs of a block (FORMAT §11.7 to §11.9): inflates the frames that are needed, and
// makes columns of leaves, in the order of the tree. One reader owns one decoder; its memory is
// reused for the next block.
// SAFETY: slices are of the stored bytes, which outlive their use, and of the arena, which is
// emptied before the next block. Picked rows are below the number of rows.

import CordwoodCore

struct BlockDecoder: ~Copyable {
    var arena = Arena()
    var leaves = LeafReader()
    var opener = BlockOpener()
    /// Size of the block; bounds what is made.
    var rawBytes = 0
    /// For tables of the names in a block; damage cannot choose it.
    let seed = UInt64.random(in: .min ... .max)

    static let arenaKept = 32 << 20

    init() {}

    /// A plane leaf; a frame of its own is inflated here.
    mutating func plane(_ size: Int) throws(BlockProblem) -> Slice {
        try content(of: leaves.take(plane: size))
    }

    /// A text leaf; likewise.
    mutating func textLeaf() throws(BlockProblem) -> Slice {
        let (bytes, frame) = try leaves.takeText()
        if let frame, let stored = leaves.missing(frame: frame) {
            leaves.put(try opener.inflate(stored, into: &arena), frame: frame)
        }
        return leaves.text(bytes, frame)
    }

    /// The bytes of a plane leaf that was skipped.
    mutating func content(of number: Int) throws(BlockProblem) -> Slice {
        if let (frame, stored) = leaves.missing(number) {
            leaves.put(try opener.inflate(stored, into: &arena), frame: frame)
        }
        return leaves.plane(number)
    }

    /// Those of the picked rows whose kind has the bit set (or clear), counted among all rows of
    /// which this is true.
    mutating func share(
        _ kind: Flat<UInt64>, _ bit: UInt8, isSet: Bool = true, _ picks: Picks
    ) throws(BlockProblem) -> Picks {
        let shift = UInt64(bit.trailingZeroBitCount)
        let bits = unsafe kind.base
        /// How many of these rows have it.
        func count(_ rows: Range<Int>) -> Int {
            var found: UInt64 = 0
            for row in rows { unsafe found &+= bits[row] &>> shift & 1 }
            return isSet ? Int(found) : rows.count &- Int(found)
        }
        guard let rows = picks.places else { return Picks(all: count(0..<kind.count)) }
        let places: Flat<UInt32> = try arena.flat(picks.size)
        var (found, before, last) = (0, 0, 0)
        for index in 0..<rows.count {
            let row = Int(rows[index])
            before &+= count(last..<row)
            last = row
            if count(row..<row &+ 1) == 0 { continue }
            places[found] = UInt32(truncatingIfNeeded: before)
            found &+= 1
        }
        return Picks(places.prefix(found), of: before &+ count(last..<kind.count))
    }
}
