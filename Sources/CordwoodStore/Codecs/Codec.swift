// Turns bytes into one standard frame and back (FORMAT §11): a zstd frame with its content size, an
// LZ4 frame with its content size, or a skippable frame that holds the bytes unchanged.
// The owners of the C contexts live as long as one writer or reader; one thread at a time.
// SAFETY: a context is freed once, in deinit; the C libraries get the reserved room as their bound,
// and frames by their count.

import CLZ4
import CZstd
import CordwoodCore

/// The numbers are the header's CW_CODEC_….
public enum Codec: UInt8, Sendable, CaseIterable {
    case zstd = 0
    case lz4 = 1
    case none = 2

    /// 0 gives the default; values outside the codec's range are clamped.
    func level(_ wanted: Int32) -> Int32 {
        switch self {
        case .zstd: wanted == 0 ? 3 : min(max(wanted, 1), 19)
        case .lz4: wanted == 0 ? 1 : min(max(wanted, 1), 12)
        case .none: 0
        }
    }
}

extension Codec {
    /// Appends one frame; false: out of memory. zstd's frames are made by BlockPacker.
    @safe func append(
        _ content: UnsafeRawBufferPointer, level: Int32, to out: inout GrowingBytes
    ) -> Bool {
        self == .lz4
            ? Self.appendLZ4(content, level: level, to: &out) : Self.appendPlain(content, to: &out)
    }

    @safe private static func appendLZ4(
        _ content: UnsafeRawBufferPointer, level: Int32, to out: inout GrowingBytes
    ) -> Bool {
        var preferences = LZ4F_preferences_t()
        preferences.frameInfo.blockSizeID = LZ4F_max4MB
        preferences.frameInfo.contentSize = UInt64(content.count)
        preferences.compressionLevel = level
        let bound = unsafe LZ4F_compressFrameBound(content.count, &preferences)
        guard out.reserve(bound) else { return false }
        let size = unsafe LZ4F_compressFrame(
            out.base + out.count, bound, content.baseAddress, content.count, &preferences)
        guard LZ4F_isError(size) == 0 else { return false }
        out.resize(out.count + size)
        return true
    }

    @safe private static func appendPlain(
        _ content: UnsafeRawBufferPointer, to out: inout GrowingBytes
    ) -> Bool {
        out.append(word: SkippableFrame.magicValue)
        out.append(word: UInt32(truncatingIfNeeded: content.count))
        out.append(content)
        return !out.failed
    }
}

@safe struct BlockDecompressor: ~Copyable {
    private var zstd: OpaquePointer?
    private var lz4: OpaquePointer?

    init() {}

    deinit {
        if let zstd = unsafe zstd { unsafe ZSTD_freeDCtx(zstd) }
        if let lz4 = unsafe lz4 { unsafe LZ4F_freeDecompressionContext(lz4) }
    }

    /// Makes what the codec needs; false: out of memory.
    mutating func isReady(_ codec: Codec) -> Bool {
        if codec == .zstd, unsafe zstd == nil { unsafe zstd = ZSTD_createDCtx() }
        if codec == .lz4, unsafe lz4 == nil,
            unsafe LZ4F_isError(LZ4F_createDecompressionContext(&lz4, UInt32(LZ4F_VERSION))) != 0
        {
            unsafe lz4 = nil
        }
        return switch codec {
        case .zstd: unsafe zstd != nil
        case .lz4: unsafe lz4 != nil
        case .none: true
        }
    }

    /// Inflates one whole frame into exactly `raw` bytes of `room`; false if the frame is anything
    /// else.
    mutating func inflate(
        _ frame: UnsafeRawBufferPointer, codec: Codec, raw: Int,
        into room: UnsafeMutableRawPointer
    ) -> Bool {
        switch codec {
        case .zstd: unsafe inflateZstd(frame, raw: raw, into: room)
        case .lz4: unsafe inflateLZ4(frame, raw: raw, into: room)
        case .none: unsafe inflatePlain(frame, raw: raw, into: room)
        }
    }

    private mutating func inflateZstd(
        _ frame: UnsafeRawBufferPointer, raw: Int, into out: UnsafeMutableRawPointer
    ) -> Bool {
        guard unsafe ZSTD_getFrameContentSize(frame.baseAddress, frame.count) == UInt64(raw),
            unsafe ZSTD_findFrameCompressedSize(frame.baseAddress, frame.count) == frame.count
        else { return false }
        guard isReady(.zstd), let zstd = unsafe zstd else { return false }
        let size = unsafe ZSTD_decompressDCtx(zstd, out, raw, frame.baseAddress, frame.count)
        return size == raw
    }

    private mutating func inflateLZ4(
        _ frame: UnsafeRawBufferPointer, raw: Int, into out: UnsafeMutableRawPointer
    ) -> Bool {
        guard isReady(.lz4), let lz4 = unsafe lz4, let start = frame.baseAddress else {
            return false
        }
        unsafe LZ4F_resetDecompressionContext(lz4)
        var info = LZ4F_frameInfo_t()
        var read = frame.count
        guard unsafe LZ4F_isError(LZ4F_getFrameInfo(lz4, &info, start, &read)) == 0,
            info.contentSize == UInt64(raw), info.dictID == 0
        else { return false }
        var written = 0
        var options = LZ4F_decompressOptions_t()
        while true {
            var inSize = frame.count - read
            var outSize = raw - written
            let hint = unsafe LZ4F_decompress(
                lz4, out + written, &outSize, start + read, &inSize, &options)
            if LZ4F_isError(hint) != 0 { return false }
            read += inSize
            written += outSize
            if hint == 0 { return read == frame.count && written == raw }
            // No progress: the frame wants more bytes than there are, or holds more than it
            // declared.
            if inSize == 0 && outSize == 0 { return false }
        }
    }

    private func inflatePlain(
        _ frame: UnsafeRawBufferPointer, raw: Int, into out: UnsafeMutableRawPointer
    ) -> Bool {
        guard frame.count == raw + SkippableFrame.headerBytes, let start = frame.baseAddress,
            frame.word(0, UInt32.self) == SkippableFrame.magicValue,
            frame.word(4, UInt32.self) == UInt32(raw)
        else { return false }
        unsafe out.copyMemory(from: start + SkippableFrame.headerBytes, byteCount: raw)
        return true
    }
}

extension Codec {
    /// The level that 0 selects.
    package var defaultLevel: Int32 { self == .zstd ? 3 : 1 }
}
