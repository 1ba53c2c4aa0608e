// One UInt64 per thread, mapped shared: how many of its lines a thread has kept. In a file, the
// kernel keeps them if the program is killed: they say which records must be in the store.
// Owner: main, for the life of the process. Each word is written by its own thread alone.

import Glibc

struct Counters: @unchecked Sendable {
    // SAFETY: mapped for the life of the process; one writer per word.
    let words: UnsafeMutablePointer<UInt64>
    let count: Int

    init(path: String?, count: Int) {
        let size = count * MemoryLayout<UInt64>.size
        var file: Int32 = -1
        if let path {
            file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
            guard file >= 0, ftruncate(file, size) == 0 else { fail("\(path): cannot be made") }
        }
        let flags = MAP_SHARED | (file < 0 ? MAP_ANONYMOUS : 0)
        let mapped = mmap(nil, size, PROT_READ | PROT_WRITE, flags, file, 0)
        guard let mapped, mapped != MAP_FAILED else { fail("--kept: cannot be mapped") }
        words = mapped.assumingMemoryBound(to: UInt64.self)
        self.count = count
    }

    var total: UInt64 {
        (0..<count).reduce(0) { $0 + words[$1] }
    }
}
