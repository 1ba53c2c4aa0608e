// The mapped input file and the ranges of its lines, without their newlines. Every other byte stays
// as it is. Owner: main, for the life of the process; read-only, so any thread may use it.

import Glibc

struct Lines: @unchecked Sendable {
    // SAFETY: mapped read-only for the life of the process.
    let bytes: UnsafeRawBufferPointer
    let ranges: [Range<Int>]

    init(path: String) {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        var info = stat()
        guard file >= 0, fstat(file, &info) == 0 else { fail("\(path): cannot be read") }
        let size = Int(info.st_size)
        let mapped = size == 0 ? nil : mmap(nil, size, PROT_READ, MAP_PRIVATE, file, 0)
        guard mapped != MAP_FAILED else { fail("\(path): cannot be mapped") }
        close(file)
        bytes = UnsafeRawBufferPointer(start: mapped, count: size)
        ranges = Lines.split(bytes)
    }

    subscript(index: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: bytes[ranges[index]])
    }

    private static func split(_ bytes: UnsafeRawBufferPointer) -> [Range<Int>] {
        var found: [Range<Int>] = []
        var start = 0
        while start < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[start...])
            let newline = memchr(rest.baseAddress!, 0x0A, rest.count)
            let length = newline.map { UnsafeRawPointer($0) - rest.baseAddress! } ?? rest.count
            found.append(start..<start + length)
            start += length + 1
        }
        return found
    }
}
