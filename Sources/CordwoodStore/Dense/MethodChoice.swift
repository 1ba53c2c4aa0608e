// Whether a block has to be made by method 1 as well (FORMAT §11.2), because that may be smaller
// than its dense form. Two samples of the payload, compressed as method 1 would, say about how much
// it takes. Method 1 finds more to repeat in a whole block than in samples: it is tried unless they
// leave room for that. Part of one writer.
// SAFETY: samples are used within the call that takes them.

import CordwoodCore

struct MethodChoice: ~Copyable {
    private var lines = GrowingBytes()
    private let seed = UInt64.random(in: .min ... .max)
    /// What method 1 took of its estimate, in hundredths, at most 100; and for how many blocks that
    /// holds.
    private var share = 0
    private var left = 0
    private var estimate = 0

    static let sampleBytes = 32 << 10
    /// Method 1 is tried on every smaller payload.
    static let payloadLeast = 4 * sampleBytes
    /// What method 1 takes at least of its estimate, in hundredths, is assumed to be this.
    static let shareLeast = 40
    /// After a trial: of what it took then.
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
            // Of few lines that come again and again, by chance none or one is among them.
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

    /// A sample that has all lines equal to one of it, wherever they are: in its order, each line
    /// whose hash is one of some. False: less than half of the payload is text.
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
            if SliceTable.hash(line, seed) &>> 32 & mask == 0 { lines.append(line.bytes) }
            unsafe at += line.count
            rest -= line.count
        }
        return true
    }
}
