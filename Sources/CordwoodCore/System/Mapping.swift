// Memory mappings. Anonymous ones hold the append path's private words; file mappings hold
// segments. No policy; functions return pointers or nil.
// SAFETY: a mapping belongs to the caller, who decides when no thread uses it any more; this code
// never dereferences an address.

import CShims
import Glibc

enum Mapping {
    /// Zeroed private memory, committed when touched. wipedOnFork: a child sees zero.
    static func anonymous(bytes: Int, wipedOnFork: Bool) -> UnsafeMutableRawPointer? {
        guard
            let start = unsafe mmap(
                nil, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                0),
            unsafe start != MAP_FAILED
        else { return nil }
        if wipedOnFork, unsafe madvise(start, bytes, 18 /* MADV_WIPEONFORK */) != 0 {
            unsafe munmap(start, bytes)
            return nil
        }
        return unsafe start
    }

    static func file(_ descriptor: Int32, offset: UInt64, bytes: Int) -> UnsafeMutableRawPointer? {
        guard
            let start = unsafe mmap(
                nil, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, off_t(offset)),
            unsafe start != MAP_FAILED
        else { return nil }
        return unsafe start
    }

    /// Maps one page of a file, without access rights; children do not inherit the mapping. While
    /// it is mapped, the kernel keeps the descriptor's open file description and the locks on it.
    /// nil: the file system supports no mappings.
    static func hold(_ descriptor: Int32) -> UnsafeMutableRawPointer? {
        guard
            let page = unsafe mmap(nil, holdBytes, PROT_NONE, MAP_SHARED, descriptor, 0),
            unsafe page != MAP_FAILED
        else { return nil }
        guard unsafe madvise(page, holdBytes, 10 /* MADV_DONTFORK */) == 0 else {
            unsafe munmap(page, holdBytes)
            return nil
        }
        return unsafe page
    }

    static var holdBytes: Int { Int(getpagesize()) }

    static func release(_ start: UnsafeMutableRawPointer, bytes: Int) {
        unsafe munmap(start, bytes)
    }

    /// Replaces the mapping there by zeroed private memory; addresses stay valid.
    static func overlay(_ start: UnsafeMutableRawPointer, bytes: Int) {
        _ = unsafe mmap(
            start, bytes, PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0)
    }

    /// Returns private memory to the system; it reads as zero from now on.
    static func discard(_ start: UnsafeMutableRawPointer, bytes: Int) {
        _ = unsafe madvise(start, bytes, MADV_DONTNEED)
    }

    /// True if all pages of a mapping are in memory.
    static func isResident(_ start: UnsafeMutableRawPointer, bytes: Int) -> Bool {
        let page = Int(getpagesize())
        let window = 4096 * page
        return unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 4096) { states in
            var offset = 0
            while offset < bytes {
                let count = min(window, bytes - offset)
                guard unsafe mincore(start + offset, count, states.baseAddress) == 0 else {
                    return false
                }
                let pages = (count + page - 1) / page
                for i in 0..<pages where unsafe states[i] & 1 == 0 { return false }
                offset += count
            }
            return true
        }
    }

    /// Pre-faults the pages of these bytes for writing. False: they cannot be provided (EFAULT
    /// instead of a SIGBUS).
    static func populate(_ start: UnsafeMutableRawPointer, bytes: Int) -> Bool {
        let before = Int(bitPattern: start) & (Int(getpagesize()) - 1)
        if unsafe madvise(start - before, bytes + before, 23 /* MADV_POPULATE_WRITE */) == 0 {
            return true
        }
        // Kernels before 5.14 lack the call. Blocks are preallocated, so a fault will succeed.
        return errno == EINVAL || errno == EINTR || errno == EAGAIN
    }
}
