// Whether a block must also be made by method 1 (FORMAT §11.2), because that may be smaller than
// its dense form. Two samples of the payload, compressed as method 1 would, estimate its size.
// Method 1 finds more repetitions in a whole block than in samples, so it is tried unless the
// samples leave a margin for that. Part of one writer.
// SAFETY: samples are used only within the call that takes them.

import CordwoodCore

struct MethodChoice: ~Copyable {
    private var lines = GrowingBytes()
    /// The actual size by method 1 relative to its estimate, in hundredths, at most 100; and the
    /// number of blocks for which that holds.
    private var share = 0
    private var left = 0
    private var estimate = 0

    static let sampleBytes = 32 << 10
    /// The same in all writers, so the same payload always gets the same method. Lines chosen to
    /// mislead it can only cost size, as lines of random letters do anyway.
    private static let seed: UInt64 = 0x9E37_79B9_7F4A_7C15
    /// Method 1 is tried on every smaller payload.
    static let payloadLeast = 4 * sampleBytes
    /// The assumed minimum of the actual size by method 1 relative to its estimate, in hundredths.
    static let shareLeast = 40
    /// After a trial: relative to the size then.
    static let sameLeast = 75
    private static let period = 16

    /// `dense`: bytes of the block.
    mutating func isWanted(
        _ payload: Slice, dense: Int, _ packer: inout DensePacker
    ) -> Bool {
        estimate = 0
        guard payload.count >= Self.payloadLeast,
            let run = packer.packedBytes(payload.part(payload.count / 2, Self.sampleBytes))
        else { return true }
        estimate = payload.count / Self.sampleBytes * run
        if takeLines(payload) {
            // Of few lines that recur often, the sample may by chance contain none or one.
            guard lines.count >= Self.sampleBytes / 4,
                let other = packer.packedBytes(unsafe Slice(lines.bytes))
            else { return true }
            estimate = min(estimate, payload.count * other / lines.count)
        }
        guard left > 0 else { return estimate * Self.shareLeast < dense * 100 }
        left -= 1
        return estimate / 100 * share / 100 * Self.sameLeast < dense
    }

    /// Method 1 took so many bytes, or more.
    mutating func note(plain: Int) {
        guard estimate > 0 else { return }
        share = min(plain * 100 / estimate, 100)
        left = Self.period - 1
    }

    /// A sample that contains all lines equal to any of its lines, wherever they are: each line
    /// with one of certain hashes, in order. False: less than half of the payload is text.
    private mutating func takeLines(_ payload: Slice) -> Bool {
        lines.removeAll()
        let count = Int(Bytes.u32(payload.bytes, 4 * DenseLimits.streams))
        guard count * 2 >= payload.count, count <= payload.count, var at = unsafe payload.start
        else { return false }
        var rest = count
        unsafe at += payload.count - count
        var mask: UInt64 = 0
        while count >> mask.nonzeroBitCount > Self.sampleBytes { mask = mask << 1 | 1 }
        while rest > 0, lines.count < 2 * Self.sampleBytes {
            let end = unsafe Memory.find(0x0A, in: at, rest) ?? at + (rest - 1)
            let line = unsafe Slice(start: at, count: end - at + 1)
            if SliceTable.hash(line, Self.seed) &>> 32 & mask == 0 { lines.append(line.bytes) }
            unsafe at += line.count
            rest -= line.count
        }
        return true
    }
}
