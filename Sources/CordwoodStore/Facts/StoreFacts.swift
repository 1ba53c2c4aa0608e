// The facts of one store's archives: read from a file of the cache, looked up by name, size, times
// and inode, and written again with what was learned. The file is an envelope with a checksum. It
// counts as missing if its format, store or owner is another one, or its checksum is wrong. Two
// processes may write at once: each renames its own file, and the last one stays. One thread at a
// time.
// SAFETY: views are of `bytes`, which never changes after it is read.

import CShims
import CordwoodCore

/// Identifies the file that an archive's facts describe. A changed file has another key.
struct FileKey: Equatable {
    var bytes: UInt64
    var modifiedNs: UInt64
    var changedNs: UInt64
    var inode: UInt64

    init(_ file: FileFacts) {
        bytes = file.bytes
        modifiedNs = file.modifiedNs
        changedNs = file.changedNs
        inode = file.inode
    }

    init?(_ cursor: inout ByteCursor) {
        guard let bytes = cursor.word(UInt64.self), let modified = cursor.word(UInt64.self),
            let changed = cursor.word(UInt64.self), let inode = cursor.word(UInt64.self)
        else { return nil }
        self.bytes = bytes
        modifiedNs = modified
        changedNs = changed
        self.inode = inode
    }

    func append(to out: inout GrowingBytes) {
        out.append(word: bytes)
        out.append(word: modifiedNs)
        out.append(word: changedNs)
        out.append(word: inode)
    }
}

final class StoreFacts {
    /// Stores with fewer archives open just as fast without.
    static let archivesMin = 32
    private static let bytesMax: UInt64 = 256 << 20
    private static let magic: UInt64 = 0x3130_5443_4146_5743  // "CWFACT01"
    /// Changes with every change of the content.
    private static let version: UInt32 = 5
    private static let headBytes = 32
    /// With less than this share of news, the file is not written again, unless archives are gone.
    private static let newsShare = 64

    private let folder: FilePath
    private let name: String
    private var file: FilePath { folder + "/" + name }
    private let device: UInt64
    private let inode: UInt64

    @safe private struct Entry {
        @safe var name: UnsafeRawBufferPointer
        @safe var content: UnsafeRawBufferPointer
    }

    private var bytes = GrowingBytes()
    /// Sorted by name; those before `next` have been passed.
    private var entries: [Entry] = []
    private var next = 0
    private var isLoaded = false
    /// Facts that are valid now.
    private var known = KnownFacts()
    /// Entries of the file that still belong to an archive.
    private var found = 0
    private var news = 0
    /// All archives of the store have been asked for.
    private var isComplete = false

    init(_ folder: FilePath, name: String, device: UInt64, inode: UInt64) {
        self.folder = folder
        self.name = name
        self.device = device
        self.inode = inode
    }

    /// Call before asking for archives, in the order of their names. `count`: how many there are.
    func begin(_ count: Int) {
        if isLoaded { return }
        isLoaded = true
        guard count >= Self.archivesMin else {
            // Facts of archives that are gone are not kept.
            Files.remove(file)
            return
        }
        isComplete = true
        known.reserve(count)
        load()
    }

    /// Not all archives could be listed.
    func fail() { isComplete = false }

    // MARK: Asking

    /// The facts of the archive as it is now, and its key for `note`.
    func find(_ path: FilePath) -> (key: FileKey?, facts: ArchiveFacts?) {
        guard isComplete, let status = FileFacts(at: path), status.isRegular else {
            return (nil, nil)
        }
        let key = FileKey(status)
        let name = String(path.lastName)
        let old = known.find(name)
        if let old, old.key == key { return (key, old.facts) }
        let isKnown = old != nil
        guard let content = unsafe entry(name) else { return (key, nil) }
        var cursor = ByteCursor(content)
        guard FileKey(&cursor) == key, let facts = ArchiveFacts(&cursor, path: path, key: key)
        else { return (key, nil) }
        found += 1
        if isKnown { known.set(name, key, facts) } else { known.add(name, key, facts) }
        return (key, facts)
    }

    /// Facts that `find` returned or `note` stored.
    func facts(of path: FilePath) -> ArchiveFacts? { known.find(String(path.lastName))?.facts }

    /// Remembers an archive that was opened, unless it is damaged or encrypted.
    func note(_ path: FilePath, _ key: FileKey?, _ info: ArchiveInfo, _ blocks: [BlockEntry]?) {
        guard let key, let blocks, info.isWhole, !info.isEncrypted, info.fileBytes == key.bytes
        else { return }
        known.set(String(path.lastName), key, ArchiveFacts(info, blocks))
        news += 1
    }

    /// The archive disagrees with its facts: the archive is right.
    func forget(_ path: FilePath) {
        if known.remove(String(path.lastName)) { news += entries.count }
    }

    /// Names are asked for in order: looking at the next entry suffices.
    private func entry(_ name: String) -> UnsafeRawBufferPointer? {
        var name = name
        return name.withUTF8 { utf8 in
            let wanted = UnsafeRawBufferPointer(utf8)
            while next < entries.count {
                let entry = entries[next]
                let shared = min(entry.name.count, wanted.count)
                let order =
                    unsafe shared == 0
                    ? 0
                    : memcmp(
                        entry.name.baseAddress.unsafelyUnwrapped,
                        wanted.baseAddress.unsafelyUnwrapped, shared)
                if order == 0, entry.name.count == wanted.count {
                    next += 1
                    return entry.content
                }
                if order > 0 || order == 0 && entry.name.count > wanted.count { return nil }
                next += 1
            }
            return nil
        }
    }

    // MARK: The file

    private func load() {
        let opened = Files.open(file, [.read, .nonBlocking, .noTerminal])
        guard opened >= 0 else { return }
        defer { Files.close(opened) }
        guard let status = FileFacts(of: opened), status.isRegular, FactsCache.isOwn(status),
            status.bytes > UInt64(Self.headBytes + 4), status.bytes <= Self.bytesMax,
            bytes.reserve(Int(status.bytes))
        else { return }
        let room = unsafe UnsafeMutableRawBufferPointer(
            start: bytes.base, count: Int(status.bytes))
        guard unsafe Files.read(opened, into: room, at: 0) == room.count else { return }
        bytes.resize(room.count)
        if !parse(unsafe bytes.bytes) { entries = [] }
    }

    @safe private func parse(_ all: UnsafeRawBufferPointer) -> Bool {
        let body = unsafe UnsafeRawBufferPointer(rebasing: all[..<(all.count - 4)])
        guard checksum(body, from: 0) == all.word(body.count, UInt32.self) else { return false }
        var cursor = ByteCursor(body)
        guard cursor.word(UInt64.self) == Self.magic, cursor.word(UInt32.self) == Self.version,
            let count = cursor.word(UInt32.self), cursor.word(UInt64.self) == device,
            cursor.word(UInt64.self) == inode
        else { return false }
        entries.reserveCapacity(min(Int(count), body.count / 64))
        for _ in 0..<count {
            guard let size = cursor.word(UInt32.self), let name = cursor.string(),
                let content = cursor.bytes(UInt64(size))
            else { return false }
            unsafe entries.append(Entry(name: name, content: content))
        }
        return cursor.left == 0
    }

    /// Enough is new, or archives are gone.
    var isWorthWriting: Bool {
        isComplete
            && (found < entries.count || news + known.learned > known.count / Self.newsShare)
    }

    /// Writes the file again. True: it was written.
    func write() -> Bool {
        let out = made()
        if out.failed || out.count > Int(Self.bytesMax) { return false }
        let number = UInt32.random(in: 0 ... .max)
        let temporary = folder + "/.\(name).\(Machine.processID())-\(number)"
        let opened = Files.open(temporary, [.write, .new])
        guard opened >= 0 else { return false }
        let isWhole = unsafe Files.write(opened, out.bytes) == 0
        Files.close(opened)
        guard isWhole, Files.move(temporary, to: file) else {
            Files.remove(temporary)
            return false
        }
        news = 0
        found = entries.count
        return true
    }

    private func made() -> GrowingBytes {
        var out = GrowingBytes()
        out.append(word: Self.magic)
        out.append(word: Self.version)
        out.append(word: UInt32(truncatingIfNeeded: known.count))
        out.append(word: device)
        out.append(word: inode)
        var content = GrowingBytes()
        for (name, key, facts) in known.all.sorted(by: { $0.name < $1.name }) {
            content.removeAll()
            key.append(to: &content)
            facts.append(to: &content)
            out.append(word: UInt32(truncatingIfNeeded: content.count))
            out.append(string: name, max: 4_096)
            out.append(unsafe content.bytes)
        }
        out.append(word: unsafe checksum(out.bytes, from: 0))
        return out
    }
}
