// A file that is read only by pread (RELIABILITY R11: a mapping would show recycled content, and
// would raise SIGBUS if the file were cut). Any thread may read.

import CordwoodCore
import Glibc

final class ReadFile {
    let path: FilePath
    private let file: OpenFile
    /// The link's target, if the name is a link to a segment in memory.
    private let target: FilePath?
    /// As the system last said.
    private var knownSize: UInt64
    /// Bytes of a file that nobody changes any more: one read serves several copies.
    private var ahead: (offset: UInt64, buffer: ReadBuffer)?

    /// - Parameter pool: may close the file between two reads.
    convenience init(path: FilePath, pool: OpenFiles? = nil) throws(ReadProblem) {
        try self.init(path: path, pool: pool, isSegment: false)
    }

    private init(path: FilePath, pool: OpenFiles?, isSegment: Bool) throws(ReadProblem) {
        var fd = ReadFile.open(path)
        target = fd < 0 && errno == ELOOP ? SegmentLink.target(path) : nil
        if let target { fd = ReadFile.open(target) }
        guard fd >= 0 else { throw .system("open \(path)", errno: errno) }
        guard let facts = FileFacts(of: fd), facts.isRegular,
            target.map({ SegmentLink.isTarget(facts, $0) }) ?? true
        else {
            Files.close(fd)
            throw .damaged("\(path): not a regular file")
        }
        self.path = path
        knownSize = facts.bytes
        file = OpenFile(
            fd, facts, path: target ?? path, isSegment: isSegment)
        if let pool { file.join(pool) }
    }

    deinit { file.end() }

    private static func open(_ path: FilePath) -> Int32 {
        while true {
            let fd = Files.openOwn(path, [.read, .nonBlocking, .noTerminal])
            if fd >= 0 || errno != EINTR { return fd }
        }
    }

    /// Opens a segment and holds a shared lock on it while it is open, so its owner does not reuse
    /// the file meanwhile (FORMAT §6). Fails with ENOENT if the file was reused or renamed since it
    /// was listed.
    static func segment(path: FilePath, pool: OpenFiles? = nil) throws(ReadProblem) -> ReadFile {
        let file = try ReadFile(path: path, pool: nil, isSegment: true)
        let isLocked = file.file.lend(OpenFile.lockSegment) ?? false
        guard isLocked, file.hasItsName else { throw .system("open \(path)", errno: ENOENT) }
        // A segment in memory may be put on the disk as another file, so it stays open.
        if let pool, file.target == nil { file.file.join(pool) }
        return file
    }

    /// Whether a file or link of that name exists.
    static func hasName(_ path: FilePath) -> Bool { FileFacts(at: path) != nil }

    /// It was closed between two reads, and its name does not lead to it any more: reads find
    /// nothing. An archive holds its content.
    var isGone: Bool { file.isGone }

    /// Whether the name by which it was opened still leads to it.
    var hasItsName: Bool {
        // By their names: each starts from a descriptor of its own.
        if let target, SegmentLink.target(path).map({ "\($0)" }) != "\(target)" { return false }
        return file.lend { FileFacts.isNamed($0, file.path) } ?? false
    }

    private var facts: FileFacts? { file.lend { FileFacts(of: $0) } ?? nil }

    /// UTC ns of its last change according to the file system; 0 if not known.
    var changedNs: UInt64 { (facts?.modifiedSeconds ?? 0) &* 1_000_000_000 }

    var size: UInt64 { size(reaching: .max) }

    /// Asks the system only if the file was shorter than that: somebody may have lengthened it.
    func size(reaching wanted: UInt64) -> UInt64 {
        if knownSize < wanted { knownSize = facts?.bytes ?? 0 }
        return knownSize
    }

    /// Reads what `read` then takes from memory. Only of a file that nobody changes any more.
    func readAhead(at offset: UInt64, count: Int) throws(ReadProblem) {
        ahead = (offset, try copy(at: offset, count: count))
    }

    func forgetAhead() { ahead = nil }

    /// Fills `target` from `offset` on. Returns the bytes read, fewer only at the end of the file.
    func read(
        into target: UnsafeMutableRawBufferPointer, at offset: UInt64
    ) throws(ReadProblem) -> Int {
        guard offset <= UInt64(Int64.max) &- UInt64(target.count) else { return 0 }
        if let ahead, offset >= ahead.offset,
            let from = Int(exactly: offset &- ahead.offset),
            let bytes = unsafe Bytes.slice(ahead.buffer.bytes, from, target.count)
        {
            unsafe target.copyMemory(from: bytes)
            return target.count
        }
        let count = unsafe file.read(into: target, at: offset)
        guard count >= 0 else {
            let number = errno
            if isGone { return 0 }
            throw .system("read \(path)", errno: number)
        }
        return count
    }

    /// A copy of `count` bytes from `offset` on, shorter if the file ends earlier.
    func copy(at offset: UInt64, count: Int) throws(ReadProblem) -> ReadBuffer {
        let buffer = ReadBuffer()
        try buffer.fill(from: self, at: offset, count: count)
        return buffer
    }
}

/// Bytes read from a file, in memory that is freed with the object.
@safe final class ReadBuffer {
    /// SAFETY: nothing calls back while it is used.
    @exclusivity(unchecked) private var memory = GrowingBytes()

    /// Memory for more is taken only if the file has as much.
    private static let smallMax = 64 << 10

    var count: Int { unsafe memory.count }

    /// SAFETY: valid until the buffer grows and while a variable holds the object: `.bytes` of a
    /// call's result points to memory that has already been freed.
    var bytes: UnsafeRawBufferPointer { unsafe memory.bytes }

    /// Memory ran out since the buffer was cleared: bytes passed to `append` are missing.
    var failed: Bool { unsafe memory.failed }

    func clear(keeping bytesMax: Int = .max) { unsafe memory.clear(keeping: bytesMax) }

    func cut(to size: Int) { unsafe memory.resize(min(count, size)) }

    func fill(from file: ReadFile, at offset: UInt64, count wanted: Int)
        throws(ReadProblem)
    {
        clear()
        try append(from: file, at: offset, count: wanted)
    }

    /// Reads `wanted` bytes and appends them.
    func append(from file: ReadFile, at offset: UInt64, count wanted: Int)
        throws(ReadProblem)
    {
        guard wanted > 0 else { return }
        var present = wanted
        if wanted > ReadBuffer.smallMax {
            let size = file.size
            guard offset < size else { return }
            present = Int(min(UInt64(wanted), size &- offset))
        }
        guard unsafe memory.reserve(present) else {
            throw .system("read \(file.path)", errno: ENOMEM)
        }
        let part = unsafe UnsafeMutableRawBufferPointer(start: memory.base + count, count: present)
        let got = unsafe try file.read(into: part, at: offset)
        unsafe memory.resize(count &+ got)
    }

    /// Zero-fills up to `size` bytes, so that `replace` may overwrite them.
    func extend(to size: Int) throws(ReadProblem) {
        let more = size &- count
        guard more > 0 else { return }
        guard let start = unsafe memory.claim(more) else {
            throw .system("read", errno: ENOMEM)
        }
        unsafe memset(start, 0, more)
    }

    @safe func replace(at offset: Int, with source: UnsafeRawBufferPointer) {
        guard offset >= 0, offset <= count, let start = source.baseAddress else { return }
        let part = Swift.min(source.count, count &- offset)
        unsafe memcpy(memory.base + offset, start, part)
    }

    @safe func append(_ source: UnsafeRawBufferPointer) { unsafe memory.append(source) }
}
