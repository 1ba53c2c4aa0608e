// The file systems that a store may lie on, and their consequences: whether a store into mapped
// pages with preallocated blocks always finds those blocks (FORMAT §9, CONCURRENCY "Write mode"),
// and whether other machines may have the same files open. One table answers both questions. Used
// at open and by adopters; not in signal handlers, nor in a forked child before it has its own
// services.
// SAFETY: `statfs` is lent to one call.

import CShims
import Glibc

package struct FileSystem: Sendable {
    package enum Kind: Sendable {
        /// Overwrites preallocated blocks in place.
        case mapped
        /// Passes calls on to another file system, which a probe identifies.
        case overlay
        /// Other machines may have mounted it; its mappings promise nothing.
        case network
        /// Copies on write, or its behaviour is unknown.
        case other
    }

    /// `f_type` of statfs(2); 0 if it does not say.
    package let type: UInt32
    package let kind: Kind
    /// Its common name; for a file system outside the table, the number.
    package let name: String

    /// An allowlist: file systems not listed as `mapped` are written by pwrite(2).
    private static let table: [(type: UInt32, kind: Kind, name: StaticString)] = [
        (0xEF53, .mapped, "ext4"), (0x5846_5342, .mapped, "xfs"), (UInt32(tmpfs), .mapped, "tmpfs"),
        (0xF2F5_2010, .mapped, "f2fs"), (0x794C_7630, .overlay, "overlay"),
        (0x6969, .network, "NFS"), (0x517B, .network, "SMB"), (0xFF53_4D42, .network, "CIFS"),
        (0xFE53_4D42, .network, "SMB 2"), (0x6573_5546, .network, "FUSE"),
        (0x0102_1997, .network, "9P"), (0x00C3_6400, .network, "Ceph"),
        (0x5346_414F, .network, "AFS"), (0x786F_4256, .network, "VirtualBox"),
        (0x9123_683E, .other, "btrfs"), (0x2FC1_2FC1, .other, "ZFS"),
        (0xCA45_1A4E, .other, "bcachefs"), (0x8584_58F6, .other, "ramfs"),
    ]

    package init(_ descriptor: Int32) {
        var status = statfs()
        let found = unsafe fstatfs(descriptor, &status) == 0
        let type = found ? UInt32(truncatingIfNeeded: status.f_type) : 0
        let row = FileSystem.table.first { $0.type == type }
        self.type = type
        kind = row?.kind ?? .other
        name = row.map { "\($0.name)" } ?? "type 0x" + String(type, radix: 16)
    }

    /// Whether a file lies on tmpfs.
    static func isMemory(_ descriptor: Int32) -> Bool {
        var status = statfs()
        return unsafe fstatfs(descriptor, &status) == 0 && Int(status.f_type) == tmpfs
    }

    private static let tmpfs = 0x0102_1994

    /// All blocks of a file system, and those that users may still have, in bytes; nil: not
    /// known.
    static func bytes(_ descriptor: Int32) -> (all: UInt64, free: UInt64)? {
        var status = statfs()
        guard unsafe fstatfs(descriptor, &status) == 0 else { return nil }
        let block = UInt64(status.f_bsize)
        return (UInt64(status.f_blocks) &* block, UInt64(status.f_bavail) &* block)
    }

    /// Whether mapped stores can be trusted there (R14). If the type alone does not tell, makes a
    /// scratch file in `directory`.
    func keepsMappings(directory: Int32) -> Bool {
        switch kind {
        case .mapped: return true
        case .network, .other: return false
        case .overlay:
            return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
                var name = unsafe NameBuffer(buffer)
                // If the process is killed in between, adopters see an unpublished lane's file.
                name.add(".probe-")
                name.add(hex: Machine.random())
                name.add(".lane")
                return unsafe cwi_upper_keeps_mappings(directory, name.pointer)
            }
        }
    }
}
