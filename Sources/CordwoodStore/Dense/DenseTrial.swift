// Tries a block in dense columns, and reads it back before it is kept. A dense block replaces a
// plain one only if it is smaller and yields the same payload, byte for byte. One archive's writer
// owns it.
// SAFETY: the payload outlives the call; the frame's view is used before the next one.

import CordwoodCore

struct DenseTrial: ~Copyable {
    private var encoder: DenseEncoder
    private var decoder = DenseDecoder()
    private var choice = MethodChoice()
    /// What is read back, except messages.
    private var again = GrowingBytes()
    /// The block, after room for its header.
    private var frame = GrowingBytes()

    /// A larger payload is that of one huge record. It gains little, and would need several times
    /// its size in memory.
    private static let payloadMax = 8 << 20
    /// A larger block takes enough time already.
    private static let thoroughMax = 1 << 20

    /// nil: out of memory. `level`: a level of zstd.
    init?(level: Int32) {
        guard let encoder = DenseEncoder(level: level) else { return nil }
        self.encoder = encoder
    }

    /// Bytes of the block that `make` made, without its header.
    private(set) var storedBytes = 0
    private var headerBytes = 0
    private var recordCount = 0
    private var rawCRC: UInt32 = 0

    /// Makes `frame`: `headerBytes` for the caller to fill, then the block. `isOnly`: the
    /// only block of its archive, which may take more time for fewer bytes. Returns false if the
    /// method cannot hold these records or memory ran out.
    @safe mutating func make(
        _ payload: UnsafeRawBufferPointer, recordCount: Int, headerBytes: Int, isOnly: Bool
    ) -> Bool {
        guard payload.count <= Self.payloadMax else { return false }
        encoder.packer.isThorough = isOnly && payload.count <= Self.thoroughMax
        self.headerBytes = headerBytes
        self.recordCount = recordCount
        frame.clear(keeping: .max)
        guard unsafe frame.claim(headerBytes) != nil,
            let crc = try? encoder.encode(payload, recordCount: recordCount, into: &frame)
        else { return false }
        rawCRC = crc
        storedBytes = frame.count - headerBytes
        return payload.count / DenseLimits.ratioMax <= storedBytes
    }

    /// Whether the payload may take fewer bytes by method 1 than the block that `make` made of it.
    @safe mutating func mayBeLarger(than payload: UnsafeRawBufferPointer) -> Bool {
        choice.isWanted(Slice(payload), dense: storedBytes, &encoder.packer)
    }

    /// The size of the payload by method 1, or a lower bound of it.
    mutating func note(plain: Int) { choice.note(plain: plain) }

    /// Reads the block that `make` made. Returns its rawCRC; nil: it is not the payload, or memory
    /// ran out.
    @safe mutating func check(_ payload: UnsafeRawBufferPointer) -> UInt32? {
        again.clear(keeping: .max)
        // Only one of them needs memory for columns at a time.
        swap(&encoder.arena, &decoder.arena)
        defer { swap(&encoder.arena, &decoder.arena) }
        let isSame = try? decoder.gives(
            payload, payloadCRC: encoder.payloadCRC,
            from: unsafe Slice(frame.bytes).part(headerBytes, storedBytes).bytes,
            recordCount: recordCount, rawCRC: rawCRC, by: &again)
        return isSame == true ? rawCRC : nil
    }

    mutating func swapFrame(_ other: inout GrowingBytes) { swap(&frame, &other) }
}
