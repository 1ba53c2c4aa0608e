// Compresses bytes as exactly one gzip member, zstd or lz4 frame, or leaves them plain. Owned by
// one encoding on one thread, which takes what was made.
// SAFETY: the coder is freed once, in deinit; it accesses its input and output only within the call
// that lends both, with their counts.

import CLZ4
import CZlib
import CZstd
import CordwoodCore
import CordwoodStore

@safe struct CompressingSink: ~Copyable {
    static let chunkBytes = 256 << 10
    static let gzipLevel: Int32 = 6
    static let zstdLevel: Int32 = 3

    @safe private enum Coder {
        case plain
        /// SAFETY: zlib keeps a pointer to the struct, so it stays where it was allocated.
        case gzip(UnsafeMutablePointer<z_stream>)
        case zstd(OpaquePointer)
        case lz4(OpaquePointer)
    }

    private let path: String
    private let coder: Coder
    private var output: [UInt8]
    private var made: [UInt8] = []
    private var hasBegun = false
    /// Bytes before compression, so far.
    private(set) var contentBytes: UInt64 = 0

    /// - Parameter path: for the texts of failures.
    init(path: String, encoding: BodyEncoding) throws(UploadError) {
        self.path = path
        output = [UInt8](repeating: 0, count: CompressingSink.chunkBytes)
        switch encoding {
        case .none: coder = .plain
        case .gzip:
            let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
            unsafe stream.initialize(to: z_stream())
            // 15 + 16: the largest window, in a gzip wrapper whose time stays zero.
            guard
                unsafe deflateInit2_(
                    stream, CompressingSink.gzipLevel, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY,
                    ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK
            else {
                unsafe stream.deallocate()
                throw UploadError.system(call: "deflateInit2", path: path, errno: Errno.ENOMEM)
            }
            coder = unsafe .gzip(stream)
        case .zstd:
            guard let context = unsafe ZSTD_createCCtx() else {
                throw UploadError.system(call: "ZSTD_createCCtx", path: path, errno: Errno.ENOMEM)
            }
            unsafe ZSTD_CCtx_setParameter(
                context, ZSTD_c_compressionLevel, CompressingSink.zstdLevel)
            coder = unsafe .zstd(context)
        case .lz4:
            var made: OpaquePointer?
            let code = unsafe LZ4F_createCompressionContext(&made, UInt32(LZ4F_VERSION))
            guard LZ4F_isError(code) == 0, let context = unsafe made else {
                throw UploadError.system(
                    call: "LZ4F_createCompressionContext", path: path, errno: Errno.ENOMEM)
            }
            // Room for the largest piece that one call can make.
            let bound = LZ4F_compressBound(CompressingSink.chunkBytes, nil)
            output = [UInt8](repeating: 0, count: max(CompressingSink.chunkBytes, bound + 64))
            coder = unsafe .lz4(context)
        }
    }

    deinit {
        switch coder {
        case .plain: break
        case .gzip(let stream):
            unsafe deflateEnd(stream)
            unsafe stream.deallocate()
        case .zstd(let context): unsafe ZSTD_freeCCtx(context)
        case .lz4(let context): unsafe LZ4F_freeCompressionContext(context)
        }
    }

    mutating func append(_ bytes: ArraySlice<UInt8>) throws(UploadError) {
        guard !bytes.isEmpty else { return }
        contentBytes += UInt64(bytes.count)
        try process(bytes, isLast: false)
    }

    /// Ends the member or frame.
    mutating func finish() throws(UploadError) { try process([], isLast: true) }

    /// Moves what was made since the last call.
    mutating func take(_ out: inout [UInt8]) {
        if out.isEmpty {
            swap(&out, &made)
        } else {
            out += made
        }
        made.removeAll(keepingCapacity: true)
    }

    private mutating func process(
        _ bytes: ArraySlice<UInt8>, isLast: Bool
    ) throws(UploadError) {
        switch coder {
        case .plain:
            write(bytes)
        case .gzip(let stream):
            try unsafe deflateAll(bytes, stream, flush: isLast ? Z_FINISH : Z_NO_FLUSH)
        case .zstd(let context):
            try unsafe zstdAll(bytes, context, isLast ? ZSTD_e_end : ZSTD_e_continue)
        case .lz4(let context):
            if !hasBegun { try unsafe beginLZ4(context) }
            try unsafe lz4All(bytes, context)
            if isLast { try unsafe endLZ4(context) }
        }
    }

    private mutating func deflateAll(
        _ bytes: ArraySlice<UInt8>, _ stream: UnsafeMutablePointer<z_stream>, flush: Int32
    ) throws(UploadError) {
        var consumed = bytes.startIndex
        while true {
            var code = Z_OK
            var produced = 0
            var left = 0
            unsafe bytes[consumed...].withUnsafeBufferPointer { source in
                unsafe output.withUnsafeMutableBufferPointer { target in
                    unsafe stream.pointee.next_in = UnsafeMutablePointer(
                        mutating: source.baseAddress)
                    unsafe stream.pointee.avail_in = UInt32(source.count)
                    unsafe stream.pointee.next_out = target.baseAddress
                    unsafe stream.pointee.avail_out = UInt32(target.count)
                    code = unsafe deflate(stream, flush)
                    produced = unsafe target.count - Int(stream.pointee.avail_out)
                    left = unsafe Int(stream.pointee.avail_in)
                }
            }
            guard code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR else {
                throw UploadError.damaged("gzip failed with \(code)")
            }
            consumed = bytes.endIndex - left
            write(output[0..<produced])
            let isDone = flush == Z_FINISH ? code == Z_STREAM_END : produced < output.count
            if isDone && left == 0 { return }
        }
    }

    private mutating func zstdAll(
        _ bytes: ArraySlice<UInt8>, _ context: OpaquePointer, _ directive: ZSTD_EndDirective
    ) throws(UploadError) {
        var consumed = 0
        while true {
            var remaining = 0
            var produced = 0
            unsafe bytes.withUnsafeBytes { source in
                unsafe output.withUnsafeMutableBytes { target in
                    var from = unsafe ZSTD_inBuffer(
                        src: source.baseAddress, size: source.count, pos: consumed)
                    var to = unsafe ZSTD_outBuffer(
                        dst: target.baseAddress, size: target.count, pos: 0)
                    remaining = unsafe ZSTD_compressStream2(context, &to, &from, directive)
                    produced = unsafe to.pos
                    consumed = unsafe from.pos
                }
            }
            guard ZSTD_isError(remaining) == 0 else {
                let cause = unsafe String(cString: ZSTD_getErrorName(remaining))
                throw UploadError.damaged("zstd failed: \(cause)")
            }
            write(output[0..<produced])
            let isDone = directive == ZSTD_e_end ? remaining == 0 : true
            if isDone && consumed == bytes.count { return }
        }
    }

    private mutating func beginLZ4(_ context: OpaquePointer) throws(UploadError) {
        let made = unsafe output.withUnsafeMutableBytes {
            unsafe LZ4F_compressBegin(context, $0.baseAddress, $0.count, nil)
        }
        try putLZ4(made)
    }

    private mutating func lz4All(
        _ bytes: ArraySlice<UInt8>, _ context: OpaquePointer
    ) throws(UploadError) {
        var rest = bytes
        while !rest.isEmpty {
            let piece = rest.prefix(CompressingSink.chunkBytes)
            let made = unsafe piece.withUnsafeBytes { source in
                unsafe output.withUnsafeMutableBytes { target in
                    unsafe LZ4F_compressUpdate(
                        context, target.baseAddress, target.count, source.baseAddress,
                        source.count, nil)
                }
            }
            try putLZ4(made)
            rest = rest.dropFirst(piece.count)
        }
    }

    private mutating func endLZ4(_ context: OpaquePointer) throws(UploadError) {
        let made = unsafe output.withUnsafeMutableBytes {
            unsafe LZ4F_compressEnd(context, $0.baseAddress, $0.count, nil)
        }
        try putLZ4(made)
    }

    private mutating func putLZ4(_ made: Int) throws(UploadError) {
        guard LZ4F_isError(made) == 0 else {
            let cause = unsafe String(cString: LZ4F_getErrorName(made))
            throw UploadError.damaged("lz4 failed: \(cause)")
        }
        write(output[0..<made])
    }

    private mutating func write(_ bytes: ArraySlice<UInt8>) {
        hasBegun = true
        made += bytes
    }
}
