// What the system says about a file: one stat(2) of a descriptor, of a name, or of what a name
// leads to. Any thread. `init?` returns nil with the reason in `Errno.last`.
// SAFETY: each `stat` is lent to one call.

import CShims
import Glibc

package struct FileFacts {
    private let status: stat

    /// Of no file.
    init() { status = stat() }

    package init?(of descriptor: Int32) {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { return nil }
        self.status = status
    }

    /// Describes a link of that name itself.
    package init?(at path: FilePath) {
        self.init(path, AT_SYMLINK_NOFOLLOW)
    }

    /// Follows a link of that name.
    package init?(following path: FilePath) {
        self.init(path, 0)
    }

    private init?(_ path: FilePath, _ flags: Int32) {
        var status = stat()
        guard unsafe path.lend({ unsafe fstatat($0, $1, &status, flags) }) == 0 else { return nil }
        self.status = status
    }

    /// True if the name still leads to the open file.
    package static func isNamed(_ descriptor: Int32, _ path: FilePath) -> Bool {
        guard let held = FileFacts(of: descriptor), let named = FileFacts(at: path) else {
            return false
        }
        return held.isSameFile(as: named)
    }

    package func isSameFile(as other: FileFacts) -> Bool {
        status.st_ino == other.status.st_ino && status.st_dev == other.status.st_dev
    }

    /// Its last name was removed.
    package var isNameless: Bool { status.st_nlink == 0 }
    package var isRegular: Bool { status.st_mode & S_IFMT == S_IFREG }
    package var isLink: Bool { status.st_mode & S_IFMT == S_IFLNK }
    package var isDirectory: Bool { status.st_mode & S_IFMT == S_IFDIR }
    package var isPipe: Bool { status.st_mode & S_IFMT == S_IFIFO }
    package var inode: UInt64 { UInt64(status.st_ino) }
    package var device: UInt64 { UInt64(status.st_dev) }
    /// Only its owner has permissions.
    package var isPrivate: Bool { status.st_mode & 0o077 == 0 }
    /// Others than its owner and root may change it.
    package var isOpenToOthers: Bool { status.st_mode & 0o022 != 0 }
    /// Of a directory: only root, and the user that this process can only be, may change the names
    /// in it.
    var isOurs: Bool { !isOpenToOthers && (owner == 0 || owner == cwi_bound_user()) }
    /// Whether a process goes on with it in the place of another user's. One that can only be one
    /// user has no rights that could be led away; nor has one that has given root's up since.
    func mayFollow(owner former: UInt32) -> Bool {
        owner == former || cwi_bound_user() != UInt32(CWI_NO_USER)
            || (owner != 0 && owner == Machine.userID())
    }
    /// Its permissions.
    package var mode: UInt32 { status.st_mode & 0o7777 }
    package var owner: UInt32 { status.st_uid }
    package var group: UInt32 { status.st_gid }
    package var bytes: UInt64 { UInt64(clamping: status.st_size) }

    /// The disk space that it takes. Some file systems count no blocks.
    package var bytesOnDisk: UInt64 {
        UInt64(clamping: status.st_blocks > 0 ? status.st_blocks * 512 : status.st_size)
    }

    /// When its content was last changed, in UTC ns.
    package var modifiedNs: UInt64 { FileFacts.ns(status.st_mtim) }
    /// The same in whole seconds.
    package var modifiedSeconds: UInt64 { UInt64(clamping: status.st_mtim.tv_sec) }
    /// When its content, names or owner were last changed, in UTC ns.
    package var changedNs: UInt64 { FileFacts.ns(status.st_ctim) }
    /// Negative if the clock was set back since.
    package var secondsSinceModified: Int { time(nil) - status.st_mtim.tv_sec }

    private static func ns(_ time: timespec) -> UInt64 {
        UInt64(clamping: time.tv_sec) &* 1_000_000_000 &+ UInt64(clamping: time.tv_nsec)
    }
}
