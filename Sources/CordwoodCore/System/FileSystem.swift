// Which file systems the store may lie on, and what that means for it: whether a store into mapped
// pages whose blocks were preallocated always finds them (FORMAT §9, CONCURRENCY "Write mode"), and
// whether other machines may have the same files open. One table for both questions. Asked at open
// and by adopters; not in signal handlers, nor in a forked child before it has its own services.
// SAFETY: `statfs` is lent to one call.

import CShims
import Glibc

package struct FileSystem: Sendable {
    package enum Kind: Sendable {
        /// Overwrites in place what was preallocated.
        case mapped
        /// Passes on to another file system, which a probe finds out about.
        case overlay
        /// Other machines may have it mounted; its mappings promise nothing.
        case network
        /// Copies on write, or nothing is known of it.
        case other
    }

    /// `f_type` of statfs(2); 0: it does not say.
    package let type: UInt32
    package let kind: Kind
    /// As people call it; of one that is not in the table, the number.
    package let name: String

    /// An allowlist: what is not named as `mapped` is written by pwrite(2).
    private static let table: [(type: UInt32, kind: Kind, name: StaticString)] = [
        (0xEF53, .mapped, "ext4"), (0x5846_5342, .mapped, "xfs"), (0x0102_1994, .mapped, "tmpfs"),
        (0xF2F5_2010, .mapped, "f2fs"), (0x794C_7630, .overlay, "overlay"),
        (0x6969, .network, "NFS"), (0x517B, .network, "SMB"), (0xFF53_4D42, .network, "CIFS"),
        (0xFE53_4D42, .network, "SMB 2"), (0x6573_5546, .network, "FUSE"),
        (0x0102_1997, .network, "9P"), (0x00C3_6400, .network, "Ceph"),
        (0x5346_414F, .network, "AFS"), (0x786F_4256, .network, "VirtualBox"),
        (0x9123_683E, .other, "btrfs"), (0x2FC1_2FC1, .other, "ZFS"),
        (0xCA45_1A4E, .other, "bcachefs"), (0x8584_58F6, .other, "ramfs"),
    ]

    /// Of the disk, by a file. Some file systems count no blocks.
    package static func bytesTaken(_ status: stat) -> UInt64 {
        UInt64(clamping: status.st_blocks > 0 ? status.st_blocks * 512 : status.st_size)
    }

    package init(_ descriptor: Int32) {
        var status = statfs()
        let found = unsafe fstatfs(descriptor, &status) == 0
        let type = found ? UInt32(truncatingIfNeeded: status.f_type) : 0
        let row = FileSystem.table.first { $0.type == type }
        self.type = type
        kind = row?.kind ?? .other
        name = row.map { "\($0.name)" } ?? "type 0x" + String(type, radix: 16)
    }

    /// Whether mapped stores can be trusted there (R14). `directory`: a scratch file is made in it
    /// where the type alone does not tell.
    func keepsMappings(directory: Int32) -> Bool {
        switch kind {
        case .mapped: return true
        case .network, .other: return false
        case .overlay:
            return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
                var name = unsafe NameBuffer(buffer)
                // Killed in between, it is an unpublished lane's file to adopters.
                name.add(".probe-")
                name.add(hex: Machine.random())
                name.add(".lane")
                return unsafe cwi_upper_keeps_mappings(directory, name.pointer)
            }
        }
    }
}
