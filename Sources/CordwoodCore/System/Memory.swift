// The C library's heap: it returns NULL where Swift's would trap, and C hosts can free what they
// get. Any thread; not in signal handlers.
// SAFETY: the caller owns what it gets and says how many bytes of it are read.

import CShims
import Glibc

package enum Memory {
    /// nil: out of memory.
    package static func allocate(_ bytes: Int) -> UnsafeMutableRawPointer? { unsafe malloc(bytes) }

    /// Memory that is used as a whole: the system may provide pages of `largePage` bytes, each of
    /// which saves hundreds of faults. `bytes`: a multiple of that. nil: out of memory.
    package static func allocateLarge(_ bytes: Int) -> UnsafeMutableRawPointer? {
        guard let start = unsafe aligned_alloc(largePage, bytes) else { return nil }
        _ = unsafe madvise(start, bytes, MADV_HUGEPAGE)
        return unsafe start
    }

    package static let largePage = 2 << 20

    package static func allocateZeroed(_ bytes: Int) -> UnsafeMutableRawPointer? {
        unsafe calloc(1, bytes)
    }

    /// nil: out of memory; the old block stays.
    package static func resize(
        _ start: UnsafeMutableRawPointer?, to bytes: Int
    ) -> UnsafeMutableRawPointer? {
        unsafe realloc(start, bytes)
    }

    /// Whether so many bytes can be had now. Any thread.
    package static func hasRoom(_ bytes: Int) -> Bool { cwi_has_room(bytes) }

    package static func free(_ start: UnsafeMutableRawPointer?) { unsafe Glibc.free(start) }

    /// Returns free memory to the system. Otherwise the heap of each thread keeps the most that it
    /// ever had.
    package static func giveBack() { cw_heap_give_back() }

    /// For programs of our own: one heap for all threads, which keeps little free memory. By
    /// default glibc makes one for each thread and raises what it keeps. Call before threads start.
    package static func keepLittle() {
        _ = mallopt(M_ARENA_MAX, 1)
        _ = mallopt(M_TRIM_THRESHOLD, 128 << 10)
    }

    package static func isSame(
        _ one: UnsafeRawPointer, _ other: UnsafeRawPointer, _ bytes: Int
    ) -> Bool {
        unsafe memcmp(one, other, bytes) == 0
    }

    /// The first byte of that value.
    package static func find(
        _ byte: UInt8, in start: UnsafeRawPointer, _ bytes: Int
    ) -> UnsafeRawPointer? {
        unsafe UnsafeRawPointer(memchr(start, Int32(byte), bytes))
    }

    /// Bytes before the NUL.
    package static func length(_ text: UnsafePointer<CChar>) -> Int { Int(unsafe strlen(text)) }

    /// A copy that ends with NUL; nil: out of memory.
    package static func copy(_ text: String) -> UnsafeMutablePointer<CChar>? { unsafe strdup(text) }

    /// Overwrites a secret; the compiler may not omit this.
    package static func wipe(_ start: UnsafeMutableRawPointer, _ bytes: Int) {
        unsafe explicit_bzero(start, bytes)
    }
}
