// Causes of refused records: bits in drop slots and gap records (FORMAT §3.2, §8.6), words for
// people, and counts for stats. Pure; the number of a bit is never reused for another cause.

public enum GapCause: UInt32, CaseIterable, Sendable {
    case diskFull = 0
    case diskQuota = 1
    case storeQuota = 2
    case fileLimit = 3
    case descriptors = 4
    case memory = 5
    case notReady = 6
    case permission = 7
    case other = 8

    public var bit: UInt64 { 1 << UInt64(rawValue) }

    /// The cause behind a failed system call.
    public static func of(errno number: Int32) -> GapCause {
        switch number {
        case Errno.ENOSPC: diskFull
        case Errno.EDQUOT: diskQuota
        case Errno.EFBIG: fileLimit
        case Errno.EMFILE, Errno.ENFILE: descriptors
        case Errno.ENOMEM, Errno.EAGAIN: memory
        case Errno.EACCES, Errno.EPERM, Errno.EROFS: permission
        default: other
        }
    }

    /// The name used in `gap.causes`.
    public var name: StaticString {
        switch self {
        case .diskFull: "disk_full"
        case .diskQuota: "disk_quota"
        case .storeQuota: "store_quota"
        case .fileLimit: "file_limit"
        case .descriptors: "descriptors"
        case .memory: "memory"
        case .notReady: "not_ready"
        case .permission: "permission"
        case .other: "other"
        }
    }

    /// The phrase after `records were not kept: `.
    public var words: StaticString {
        switch self {
        case .diskFull: "the disk is full"
        case .diskQuota: "the user's disk quota is used up"
        case .storeQuota: "the store's quota is reached"
        case .fileLimit: "the limit of file sizes is reached"
        case .descriptors: "no file descriptor is free"
        case .memory: "memory ran out"
        case .notReady: "no segment was ready"
        case .permission: "permission is denied"
        case .other: "the file system refuses"
        }
    }
}
