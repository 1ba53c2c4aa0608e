// Of codecs, what payloads need (FORMAT §11.4): their bounds, and a payload's beginning.
// SAFETY: zstd gets the reserved room as its bound, and frames by their count.

import CZstd
import CordwoodCore

extension Codec {
    /// Whether a frame of `stored` bytes can hold `raw` bytes at all. Checked before memory is
    /// allocated.
    func plausible(raw: UInt64, stored: UInt64) -> Bool {
        guard raw <= UInt64(ArchiveLimits.payloadMax) else { return false }
        switch self {
        case .zstd: return raw / UInt64(ArchiveLimits.zstdRatioMax) <= stored
        case .lz4: return raw / UInt64(ArchiveLimits.lz4RatioMax) <= stored
        case .none: return stored == raw &+ UInt64(SkippableFrame.headerBytes)
        }
    }

    /// The largest possible frame of a payload within the limits.
    static let storedMax = UInt64(ArchiveLimits.payloadMax) + UInt64(ArchiveLimits.payloadMax >> 6)
}

extension BlockDecompressor {
    /// As `inflate`, but if the codec can, inflates only the beginning, at least up to the end of
    /// that stream (FORMAT §11.4).
    @safe mutating func inflate(
        _ frame: UnsafeRawBufferPointer, codec: Codec, raw: Int, through stream: Int,
        into out: inout GrowingBytes
    ) -> Bool {
        out.removeAll()
        guard codec == .zstd, out.reserve(max(raw, 1)),
            unsafe ZSTD_getFrameContentSize(frame.baseAddress, frame.count) == UInt64(raw),
            let count = unsafe inflateStart(frame, raw: raw, through: stream, into: out.base)
        else { return inflate(frame, codec: codec, raw: raw, into: &out) }
        out.resize(count)
        return true
    }

    /// The size of the pieces in which compressed bytes are passed.
    private static let pieceBytes = 16 << 10

    /// nil: the beginning alone cannot be inflated.
    private mutating func inflateStart(
        _ frame: UnsafeRawBufferPointer, raw: Int, through stream: Int,
        into start: UnsafeMutableRawPointer
    ) -> Int? {
        if unsafe zstdStream == nil { unsafe zstdStream = ZSTD_createDCtx() }
        guard let context = unsafe zstdStream,
            unsafe ZSTD_isError(ZSTD_DCtx_reset(context, ZSTD_reset_session_only)) == 0,
            // stableOutBuffer: the decoder keeps no copy of its output.
            unsafe ZSTD_isError(
                ZSTD_DCtx_setParameter(context, ZSTD_d_experimentalParam2, 1)) == 0
        else { return nil }
        var out = unsafe ZSTD_outBuffer(dst: start, size: raw, pos: 0)
        var read = unsafe ZSTD_inBuffer(src: frame.baseAddress, size: 0, pos: 0)
        while true {
            let known = unsafe UnsafeRawBufferPointer(start: start, count: out.pos)
            if let end = BlockRecords.end(ofStream: stream, known), end <= known.count {
                return unsafe out.pos
            }
            let isAll = unsafe read.size == frame.count && read.pos == frame.count
            if isAll { return unsafe out.pos == raw ? raw : nil }
            unsafe read.size = min(frame.count, read.pos + Self.pieceBytes)
            let (before, after) = unsafe (read.pos, out.pos)
            guard unsafe ZSTD_isError(ZSTD_decompressStream(context, &out, &read)) == 0,
                unsafe read.pos > before || out.pos > after
            else { return nil }
        }
    }
}
