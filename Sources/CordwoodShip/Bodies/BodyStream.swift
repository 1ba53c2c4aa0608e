// A body that is made while it is sent: a small one is kept in memory, a larger one is made again
// from its archive each time somebody reads it from the start, because it needs room nowhere. The
// same archive gives the same bytes. One thread at a time.
// SAFETY: bytes are copied into the caller's buffer, at most as many as it holds.

import CSodium
import CordwoodCore
import CordwoodFormats
import CordwoodStore

/// Makes the bytes of one body once, in order.
protocol BodyMaker: AnyObject {
    /// Appends the next bytes; false: there are no more.
    func more(_ out: inout [UInt8]) throws(UploadError) -> Bool
}

final class BodyStream {
    typealias Start = () throws(UploadError) -> any BodyMaker

    /// Larger bodies are not kept.
    static let keptBytesMax = 1 << 20

    let bytes: UInt64
    /// SHA-256 of the whole body in lowercase hex; nil: it was not asked for.
    let digest: String?
    /// nil: the window holds all of it.
    private let start: Start?
    private var maker: (any BodyMaker)?
    /// The bytes from `windowStart` on.
    private var window: [UInt8]
    private var windowStart: UInt64 = 0

    init(_ whole: [UInt8], digest: String? = nil) {
        bytes = UInt64(whole.count)
        self.digest = digest
        start = nil
        window = whole
    }

    init(bytes: UInt64, digest: String? = nil, start: @escaping Start) {
        self.bytes = bytes
        self.digest = digest
        self.start = start
        window = []
    }

    /// Runs a maker to its end, to learn the length of what it makes; keeps a small body.
    /// - Parameter start: makes it again; nil: it is kept, whatever its size.
    /// - Returns: nil: stopped.
    static func measure(
        _ maker: any BodyMaker, hashes: Bool, shouldStop: () -> Bool, start: Start?
    ) throws(UploadError) -> BodyStream? {
        var sum = BodySum(hashes, keepsAll: start == nil)
        var piece: [UInt8] = []
        while try maker.more(&piece) {
            sum.add(piece)
            piece.removeAll(keepingCapacity: true)
            if shouldStop() { return nil }
        }
        return make(sum, start)
    }

    static func make(_ sum: consuming BodySum, _ start: Start?) -> BodyStream {
        let digest = sum.finish()
        if let kept = sum.kept { return BodyStream(kept, digest: digest) }
        guard let start else { return BodyStream([], digest: digest) }
        return BodyStream(bytes: sum.bytes, digest: digest, start: start)
    }

    /// Copies bytes from `offset` on. Returns their number; 0: there are no more; or a negative
    /// errno.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) -> Int {
        do throws(UploadError) {
            guard try seek(offset) else { return 0 }
        } catch {
            return -Int(Errno.EIO)
        }
        let from = Int(offset - windowStart)
        let count = min(buffer.count, window.count - from)
        unsafe window.withUnsafeBytes {
            unsafe buffer.copyMemory(
                from: UnsafeRawBufferPointer(rebasing: $0[from..<from + count]))
        }
        return count
    }

    /// Moves the window to a byte; false: the body ends before.
    private func seek(_ offset: UInt64) throws(UploadError) -> Bool {
        if let start, maker == nil || offset < windowStart {
            maker = try start()
            windowStart = 0
            window = []
        }
        while offset >= windowStart + UInt64(window.count) {
            guard let maker else { return false }
            windowStart += UInt64(window.count)
            window.removeAll(keepingCapacity: true)
            guard try maker.more(&window) else { return false }
        }
        return true
    }
}

/// The length of a body, its bytes if it is small, and, if wanted, its SHA-256.
struct BodySum {
    private(set) var bytes: UInt64 = 0
    /// nil: they are too many.
    private(set) var kept: [UInt8]? = []
    private let keepsAll: Bool
    private var state: crypto_hash_sha256_state?

    init(_ hashes: Bool, keepsAll: Bool) {
        self.keepsAll = keepsAll
        guard hashes else { return }
        var state = crypto_hash_sha256_state()
        unsafe crypto_hash_sha256_init(&state)
        self.state = state
    }

    mutating func add(_ piece: [UInt8]) {
        bytes += UInt64(piece.count)
        if keepsAll || bytes <= UInt64(BodyStream.keptBytesMax) {
            kept?.append(contentsOf: piece)
        } else {
            kept = nil
        }
        guard var known = state else { return }
        unsafe crypto_hash_sha256_update(&known, piece, UInt64(piece.count))
        state = known
    }

    /// In lowercase hex; nil: not wanted.
    mutating func finish() -> String? {
        guard var known = state else { return nil }
        var hash = [UInt8](repeating: 0, count: 32)
        unsafe crypto_hash_sha256_final(&known, &hash)
        return Hex.text(hash)
    }
}
