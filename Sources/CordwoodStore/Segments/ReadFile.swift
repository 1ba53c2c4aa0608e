// A file that is read only by pread (PROTOCOL R11: a mapping would show recycled content, and would
// raise SIGBUS if the file were cut). Owns the descriptor; any thread may read.

import CShims
import CordwoodCore
import Glibc

final class ReadFile {
    let descriptor: Int32
    let path: String
    /// The link's target, if the name is a link to a segment in memory.
    private let target: String?

    init(path: String) throws(ReadProblem) {
        var fd = ReadFile.open(path)
        target = fd < 0 && errno == ELOOP ? SegmentLink.target(path) : nil
        if let target { fd = ReadFile.open(target) }
        guard fd >= 0 else { throw .system("open \(path)", errno: errno) }
        var status = stat()
        guard unsafe fstat(fd, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            cwi_file_close(fd)
            throw .damaged("\(path): not a regular file")
        }
        descriptor = fd
        self.path = path
    }

    deinit { cwi_file_close(descriptor) }

    private static func open(_ path: String) -> Int32 {
        while true {
            let fd = unsafe cwi_file_open_own(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0)
            if fd >= 0 || errno != EINTR { return fd }
        }
    }

    /// Opens a segment and holds it by a shared lock while it is open, so its owner does not reuse
    /// the file meanwhile (FORMAT §6). Fails with ENOENT if the file was reused or renamed since it
    /// was listed.
    static func segment(path: String) throws(ReadProblem) -> ReadFile {
        let file = try ReadFile(path: path)
        // On a file system without such locks, no owner reuses files.
        let isTaken = flock(file.descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK
        guard !isTaken, file.hasItsName else { throw .system("open \(path)", errno: ENOENT) }
        return file
    }

    /// Whether a file or link of that name exists.
    static func hasName(_ path: String) -> Bool {
        var status = stat()
        return unsafe lstat(path, &status) == 0
    }

    private var hasItsName: Bool {
        var held = stat()
        var named = stat()
        if let target, SegmentLink.target(path) != target { return false }
        return unsafe fstat(descriptor, &held) == 0 && lstat(target ?? path, &named) == 0
            && held.st_ino == named.st_ino && held.st_dev == named.st_dev
    }

    /// UTC ns of its last change according to the file system; 0 if not known.
    var changedNs: UInt64 {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0, status.st_mtim.tv_sec > 0 else { return 0 }
        return UInt64(status.st_mtim.tv_sec) &* 1_000_000_000
    }

    var size: UInt64 {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0, status.st_size > 0 else { return 0 }
        return UInt64(status.st_size)
    }

    /// Fills `target` from `offset` on. Returns the bytes read, fewer only at the end of the file.
    func read(
        into target: UnsafeMutableRawBufferPointer, at offset: UInt64
    ) throws(ReadProblem) -> Int {
        guard let base = target.baseAddress else { return 0 }
        guard offset <= UInt64(Int64.max) &- UInt64(target.count) else { return 0 }
        var done = 0
        while done < target.count {
            let n = unsafe pread(
                descriptor, base + done, target.count &- done, off_t(offset) &+ off_t(done))
            if n < 0 && errno == EINTR { continue }
            guard n >= 0 else { throw .system("read \(path)", errno: errno) }
            if n == 0 { break }
            done &+= n
        }
        return done
    }

    /// A copy of `count` bytes from `offset` on, shorter if the file ends earlier.
    func copy(at offset: UInt64, count: Int) throws(ReadProblem) -> ReadBuffer {
        let buffer = ReadBuffer()
        try buffer.fill(from: self, at: offset, count: count)
        return buffer
    }
}

/// Private memory for bytes that were read. It grows, keeps its content, and is freed with the
/// object.
@safe final class ReadBuffer {
    /// SAFETY: allocated by this object alone, freed in deinit.
    private var memory = unsafe UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private(set) var count = 0

    deinit { unsafe memory.deallocate() }

    /// SAFETY: valid until the buffer grows and while a variable holds the object: `.bytes` of a
    /// call's result points to memory that has already been freed.
    var bytes: UnsafeRawBufferPointer {
        unsafe Bytes.slice(UnsafeRawBufferPointer(memory), 0, count) ?? Bytes.none
    }

    var capacity: Int { unsafe memory.count }

    func clear() { count = 0 }

    func cut(to size: Int) { count = min(count, max(size, 0)) }

    /// Makes room for `size` bytes; invalidates pointers handed out before.
    func reserve(_ size: Int) {
        guard unsafe size > memory.count else { return }
        let larger = UnsafeMutableRawBufferPointer.allocate(
            byteCount: max(size, 4_096), alignment: 16)
        unsafe larger.copyMemory(from: bytes)
        unsafe memory.deallocate()
        unsafe memory = larger
    }

    func fill(from file: ReadFile, at offset: UInt64, count wanted: Int)
        throws(ReadProblem)
    {
        count = 0
        try append(from: file, at: offset, count: wanted)
    }

    /// Reads `wanted` bytes and appends them.
    func append(from file: ReadFile, at offset: UInt64, count wanted: Int)
        throws(ReadProblem)
    {
        guard wanted > 0 else { return }
        let size = file.size
        guard offset < size else { return }
        let present = Int(min(UInt64(wanted), size &- offset))
        reserve(count &+ present)
        let part = unsafe UnsafeMutableRawBufferPointer(
            rebasing: memory[count..<(count &+ present)])
        unsafe count &+= try file.read(into: part, at: offset)
    }

    /// Zero-fills up to `size` bytes, so that `replace` may overwrite them.
    func extend(to size: Int) {
        guard size > count else { return }
        reserve(size)
        let part = unsafe UnsafeMutableRawBufferPointer(rebasing: memory[count..<size])
        unsafe part.initializeMemory(as: UInt8.self, repeating: 0)
        count = size
    }

    @safe func replace(at offset: Int, with source: UnsafeRawBufferPointer) {
        guard offset >= 0, offset <= count, source.count > 0 else { return }
        let part = Swift.min(source.count, count &- offset)
        guard part > 0 else { return }
        unsafe UnsafeMutableRawBufferPointer(rebasing: memory[offset..<(offset &+ part)])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: source[..<part]))
    }

    @safe func append(_ source: UnsafeRawBufferPointer) {
        let at = count
        let size = count &+ source.count
        // Doubled: a text consists of many small pieces and may reach 64 MiB.
        if size > capacity { reserve(max(size, capacity &* 2)) }
        extend(to: size)
        replace(at: at, with: source)
    }
}
