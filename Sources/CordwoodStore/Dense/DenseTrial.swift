// Tries a block in dense columns, and reads it again before anybody keeps it: a dense block takes
// the place of a plain one only if it is smaller and gives the same payload, byte for byte. One
// archive's writer owns it.
// SAFETY: the payload outlives the call; the frame's view is used before the next one.

import CordwoodCore

struct DenseTrial: ~Copyable {
    private var encoder: DenseEncoder
    private var decoder = DenseDecoder()
    private var choice = MethodChoice()
    /// What is read again, but messages.
    private var again = GrowingBytes()
    /// The block, behind room for its header.
    private var frame = GrowingBytes()

    /// A larger payload is that of one huge record. It gains little, and would take several times
    /// its size in memory.
    private static let payloadMax = 8 << 20
    /// A block that is larger takes time enough.
    private static let thoroughMax = 1 << 20

    /// nil: out of memory. `level`: as zstd counts them.
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

    /// What the payload took by method 1, or less.
    mutating func note(plain: Int) { choice.note(plain: plain) }

    /// Reads the block that `make` made; its rawCRC, or nil if it is not the payload, or no memory
    /// is left.
    @safe mutating func check(_ payload: UnsafeRawBufferPointer) -> UInt32? {
        again.clear(keeping: .max)
        // One at a time needs memory for columns.
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
