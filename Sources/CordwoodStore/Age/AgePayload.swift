// Reads the payload of an age file at any offset. It decrypts only the chunks that hold the
// requested bytes, keeps one in memory, and writes nothing to the disk. The end is checked first: a
// payload that was cut or extended between two chunks is still genuine and readable up to there.
// Owned by one open file, whose descriptor it borrows; one thread at a time.
// SAFETY: a chunk is read into an array of its size, and opened into the caller's memory only if
// all of it was requested; `read` fills the count that the caller reserved.

import CSodium
import CordwoodCore

final class AgePayload {
    /// Number of readable plain bytes.
    let size: UInt64
    /// nil: the payload ends where its writer ended it.
    private(set) var problem: AgeError?

    private let key: AgeStreamKey
    private let descriptor: Int32
    private let start: UInt64
    private let chunkCount: UInt64
    /// Plain bytes of the last chunk.
    private let lastBytes: Int
    private let endsHere: Bool
    private var sealed = [UInt8](repeating: 0, count: AgeStreamKey.sealedBytes)
    private var opened = [UInt8](repeating: 0, count: AgeStreamKey.chunkBytes)
    /// Number of the chunk in `opened`.
    private var number: UInt64?

    /// start: offset of the payload, which begins with its salt. fileBytes: size of the whole file.
    init(
        descriptor: Int32, start: UInt64, fileBytes: UInt64, fileKey: AgeSecret
    ) throws(AgeError) {
        var salt = [UInt8](repeating: 0, count: AgeStreamKey.saltBytes)
        let first = start + UInt64(salt.count)
        guard fileBytes >= first,
            try AgePayload.fill(&salt, salt.count, descriptor, at: start)
        else { throw .damaged("the payload is missing") }
        let end = AgePayload.End(
            sealedBytes: fileBytes - first, key: AgeStreamKey(fileKey: fileKey, salt: salt),
            descriptor: descriptor, start: first)
        let found = try end.find()
        key = end.key
        self.descriptor = descriptor
        self.start = first
        chunkCount = found.chunkCount
        lastBytes = found.lastBytes
        endsHere = found.isLast
        problem = found.problem
        size =
            chunkCount == 0
            ? 0 : (chunkCount - 1) * UInt64(AgeStreamKey.chunkBytes) + UInt64(lastBytes)
    }

    deinit { unsafe sodium_memzero(&opened, opened.count) }

    /// Fills `out` with [offset, + count) of the plain bytes. The caller stays within `size`.
    func read(
        _ count: Int, at offset: UInt64, into out: UnsafeMutableRawPointer
    ) throws(AgeError) {
        var done = 0
        while done < count {
            let at = offset + UInt64(done)
            let wanted = at / UInt64(AgeStreamKey.chunkBytes)
            let skipped = Int(at % UInt64(AgeStreamKey.chunkBytes))
            let plain = wanted == chunkCount - 1 ? lastBytes : AgeStreamKey.chunkBytes
            if skipped == 0, count - done >= plain, wanted != number {
                try unsafe open(wanted, plain, into: out + done)
                done += plain
                continue
            }
            if wanted != number {
                number = nil
                try unsafe opened.withUnsafeMutableBufferPointer { (room) throws(AgeError) in
                    try unsafe open(wanted, plain, into: room.baseAddress!)
                }
                number = wanted
            }
            let taken = min(plain - skipped, count - done)
            unsafe opened.withUnsafeBytes {
                unsafe (out + done).copyMemory(from: $0.baseAddress! + skipped, byteCount: taken)
            }
            done += taken
        }
    }

    private func open(
        _ wanted: UInt64, _ plain: Int, into out: UnsafeMutableRawPointer
    ) throws(AgeError) {
        let count = plain + AgeCrypto.tagBytes
        let at = start + wanted * UInt64(AgeStreamKey.sealedBytes)
        guard try AgePayload.fill(&sealed, count, descriptor, at: at) else {
            throw .damaged("cut in encrypted chunk \(wanted)")
        }
        let isLast = endsHere && wanted == chunkCount - 1
        let isGenuine = unsafe sealed.withUnsafeBytes {
            unsafe key.open(
                UnsafeRawBufferPointer(rebasing: $0[..<count]), number: wanted, isLast: isLast,
                into: out)
        }
        guard isGenuine else { throw .damaged("encrypted chunk \(wanted) is not genuine") }
    }

    /// The first `count` bytes of a file; empty if the file is shorter.
    static func prefix(of descriptor: Int32, _ count: Int) throws(AgeError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        return try fill(&bytes, count, descriptor, at: 0) ? bytes : []
    }

    /// False: the file ends too early.
    private static func fill(
        _ bytes: inout [UInt8], _ count: Int, _ descriptor: Int32, at offset: UInt64
    ) throws(AgeError) -> Bool {
        guard offset <= UInt64(Int64.max) - UInt64(count), count <= bytes.count else {
            return false
        }
        let got = unsafe bytes.withUnsafeMutableBytes {
            unsafe Files.read(
                descriptor, into: UnsafeMutableRawBufferPointer(rebasing: $0[..<count]), at: offset)
        }
        guard got >= 0 else { throw .system("read", errno: Errno.last) }
        return got == count
    }

    /// Finds the chunk that was written as the last one.
    private struct End {
        let sealedBytes: UInt64
        let key: AgeStreamKey
        let descriptor: Int32
        let start: UInt64

        struct Found {
            var chunkCount: UInt64
            var lastBytes: Int
            /// True if the chunk was sealed as the last one.
            var isLast: Bool
            var problem: AgeError?
        }

        func find() throws(AgeError) -> Found {
            let whole = UInt64(AgeStreamKey.sealedBytes)
            let count = (sealedBytes + whole - 1) / whole
            guard count > 0 else { throw .damaged("the payload is missing") }
            let rest = Int(sealedBytes - (count - 1) * whole)
            let plain = rest - AgeCrypto.tagBytes
            if plain > 0 || plain == 0 && count == 1 {
                if try opens(count - 1, rest, isLast: true) {
                    return Found(chunkCount: count, lastBytes: plain, isLast: true)
                }
                if rest == AgeStreamKey.sealedBytes, try opens(count - 1, rest, isLast: false) {
                    return Found(
                        chunkCount: count, lastBytes: plain, isLast: false,
                        problem: .damaged("the payload is cut behind encrypted chunk \(count - 1)"))
                }
            }
            guard count > 1 else { throw .damaged("encrypted chunk 0 is cut or not genuine") }
            // The preceding chunks are complete, and the last of them may have been sealed as the
            // last.
            let isLonger = try opens(count - 2, AgeStreamKey.sealedBytes, isLast: true)
            return Found(
                chunkCount: count - 1, lastBytes: AgeStreamKey.chunkBytes, isLast: isLonger,
                problem: .damaged(
                    isLonger
                        ? "\(rest) bytes behind the last encrypted chunk"
                        : "the last encrypted chunk, \(count - 1), is cut or not genuine"))
        }

        private func opens(
            _ number: UInt64, _ count: Int, isLast: Bool
        ) throws(AgeError) -> Bool {
            var sealed = [UInt8](repeating: 0, count: count)
            var opened = [UInt8](repeating: 0, count: AgeStreamKey.chunkBytes)
            let at = start + number * UInt64(AgeStreamKey.sealedBytes)
            guard try AgePayload.fill(&sealed, count, descriptor, at: at) else { return false }
            return unsafe sealed.withUnsafeBytes { from in
                unsafe opened.withUnsafeMutableBytes {
                    unsafe key.open(from, number: number, isLast: isLast, into: $0.baseAddress!)
                }
            }
        }
    }
}
