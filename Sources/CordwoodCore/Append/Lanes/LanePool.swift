// Allocates lane blocks in memory that reads as zero at first, and again in every forked child. Any
// thread that opens an engine or renews a lane.
// SAFETY: a pool is never unmapped and a block never handed out twice.

import CShims

/// Lane blocks, wiped in a forked child and never reused. Many share a mapping, because each
/// mapping of its own kind counts against the process's limit (R22).
enum LanePool {
    static let bytesEach = 4096
    private static let countEach: UInt64 = 1024
    // SAFETY: one atomic word: the pool's address | the number of blocks taken in its low 12 bits;
    // never freed.
    nonisolated(unsafe) private static let word: UnsafeMutableRawPointer = {
        let word = UnsafeMutableRawPointer.allocate(byteCount: 8, alignment: 8)
        unsafe word.initializeMemory(as: UInt64.self, repeating: 0, count: 1)
        return unsafe word
    }()

    static func take() -> UnsafeMutableRawPointer? {
        while true {
            let seen = unsafe cwa_load_acquire_u64(word)
            let taken = seen & 0xFFF
            if seen != 0, taken < countEach {
                guard unsafe cwa_cas_u64(word, seen, seen + 1) else { continue }
                let pool = unsafe UnsafeMutableRawPointer(bitPattern: UInt(seen & ~0xFFF))
                return unsafe pool.map { unsafe $0 + Int(taken) * bytesEach }
            }
            let bytes = Int(countEach) * bytesEach
            guard let fresh = unsafe Mapping.anonymous(bytes: bytes, wipedOnFork: true) else {
                return nil
            }
            if unsafe !cwa_cas_u64(word, seen, UInt64(UInt(bitPattern: fresh)) + 1) {
                unsafe Mapping.release(fresh, bytes: bytes)
                continue
            }
            return unsafe fresh
        }
    }
}
