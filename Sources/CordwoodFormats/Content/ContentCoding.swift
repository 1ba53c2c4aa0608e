// Unpacks HTTP bodies by their Content-Encoding, piece by piece and with a bound on the output,
// because a few bytes may stand for gigabytes. A cut body is unpacked as far as it goes. Any
// thread.
// SAFETY: decoders are made and ended within one call; they see input and output only while it
// lends both, with their counts.

import CZlib
import CZstd

package enum ContentCoding: Sendable {
    case gzip, deflate, zstd

    /// Of a word of Content-Encoding, in lower case; nil: it cannot be unpacked.
    package init?(word: [UInt8]) {
        switch String(decoding: word, as: UTF8.self) {
        case "gzip", "x-gzip": self = .gzip
        case "deflate": self = .deflate
        case "zstd": self = .zstd
        default: return nil
        }
    }

    package enum Ending: Sendable {
        /// The whole body.
        case whole
        /// The bytes ended too early, are damaged, or the caller wanted no more.
        case cut
        /// Nothing came out.
        case failed
    }

    /// True if the bytes may have this coding: hosts that unpack bodies leave the header.
    package func matches(_ bytes: UnsafeRawBufferPointer) -> Bool {
        func byte(_ index: Int) -> UInt8 { unsafe index < bytes.count ? bytes[index] : 0 }
        switch self {
        case .gzip: return byte(0) == 0x1F && byte(1) == 0x8B
        case .deflate: return unsafe isZlib(byte(0), byte(1)) || !ContentCoding.isText(bytes)
        case .zstd:
            return byte(0) == 0x28 && byte(1) == 0xB5 && byte(2) == 0x2F && byte(3) == 0xFD
        }
    }

    /// True if the first bytes are plain text.
    package static func isText(_ bytes: UnsafeRawBufferPointer) -> Bool {
        for i in 0..<min(bytes.count, 64) {
            let byte = unsafe bytes[i]
            if byte >= 0x7F || byte < 0x20 && byte != 0x09 && byte != 0x0A && byte != 0x0D {
                return false
            }
        }
        return true
    }

    private func isZlib(_ first: UInt8, _ second: UInt8) -> Bool {
        first & 0x0F == 8 && (UInt32(first) << 8 | UInt32(second)) % 31 == 0
    }

    private static let pieceBytes = 16 << 10

    /// Passes the output to `piece`, which returns false when it wants no more.
    package func unpack(
        _ bytes: UnsafeRawBufferPointer, _ piece: (UnsafeRawBufferPointer) -> Bool
    ) -> Ending {
        unsafe withUnsafeTemporaryAllocation(
            byteCount: ContentCoding.pieceBytes, alignment: 16
        ) { room in
            switch self {
            case .gzip: return unsafe inflate(bytes, room, windowBits: 15 + 16, piece)
            case .deflate:
                let isWrapped = unsafe bytes.count > 1 && isZlib(bytes[0], bytes[1])
                return unsafe inflate(bytes, room, windowBits: isWrapped ? 15 : -15, piece)
            case .zstd: return unsafe unpackZstd(bytes, room, piece)
            }
        }
    }

    private func inflate(
        _ bytes: UnsafeRawBufferPointer, _ room: UnsafeMutableRawBufferPointer, windowBits: Int32,
        _ piece: (UnsafeRawBufferPointer) -> Bool
    ) -> Ending {
        var stream = unsafe z_stream()
        guard
            unsafe inflateInit2_(
                &stream, windowBits, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK
        else { return .failed }
        defer { unsafe inflateEnd(&stream) }
        unsafe stream.next_in = UnsafeMutablePointer(
            mutating: bytes.baseAddress?.assumingMemoryBound(to: Bytef.self))
        unsafe stream.avail_in = uInt(clamping: bytes.count)
        var hasAny = false
        while true {
            unsafe stream.next_out = room.baseAddress?.assumingMemoryBound(to: Bytef.self)
            unsafe stream.avail_out = uInt(room.count)
            let code = unsafe CZlib.inflate(&stream, Z_NO_FLUSH)
            let made = unsafe room.count - Int(stream.avail_out)
            if made > 0 {
                hasAny = true
                guard unsafe piece(UnsafeRawBufferPointer(rebasing: room[0..<made])) else {
                    return .cut
                }
            }
            if code == Z_STREAM_END {
                // Members of gzip may follow one another.
                guard windowBits > 15, unsafe stream.avail_in > 0 else { return .whole }
                guard unsafe inflateReset(&stream) == Z_OK else { return .cut }
                continue
            }
            guard code == Z_OK, unsafe made > 0 || stream.avail_in > 0 else {
                return hasAny ? .cut : .failed
            }
        }
    }

    private func unpackZstd(
        _ bytes: UnsafeRawBufferPointer, _ room: UnsafeMutableRawBufferPointer,
        _ piece: (UnsafeRawBufferPointer) -> Bool
    ) -> Ending {
        guard let context = unsafe ZSTD_createDCtx() else { return .failed }
        defer { unsafe ZSTD_freeDCtx(context) }
        // A larger window takes more memory than any of our bodies is worth.
        unsafe ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, 23)
        var input = unsafe ZSTD_inBuffer(src: bytes.baseAddress, size: bytes.count, pos: 0)
        var hasAny = false
        while true {
            var output = unsafe ZSTD_outBuffer(dst: room.baseAddress, size: room.count, pos: 0)
            let before = unsafe input.pos
            let left = unsafe ZSTD_decompressStream(context, &output, &input)
            if unsafe output.pos > 0 {
                hasAny = true
                let made = unsafe UnsafeRawBufferPointer(rebasing: room[0..<output.pos])
                guard unsafe piece(made) else { return .cut }
            }
            if ZSTD_isError(left) != 0 { return hasAny ? .cut : .failed }
            if unsafe input.pos >= input.size, unsafe output.pos < output.size {
                return left == 0 ? .whole : hasAny ? .cut : .failed
            }
            if unsafe output.pos == 0, unsafe input.pos == before { return .cut }
        }
    }
}
