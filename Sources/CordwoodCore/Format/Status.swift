// The header's status numbers under the names that Swift code uses. Numbers live in
// include/cordwood/cordwood.h alone; these are views of them.

import CCordwood
import CShims

public enum Status {
    @inlinable public static var ok: Int32 { 0 }
    @inlinable public static var disabled: Int32 { 1 }
    @inlinable public static var end: Int32 { 2 }
    @inlinable public static var again: Int32 { 3 }
    public static var argument: Int32 { Int32(CW_E_ARGUMENT) }
    public static var level: Int32 { Int32(CW_E_LEVEL) }
    public static var structSize: Int32 { Int32(CW_E_STRUCT_SIZE) }
    public static var structTail: Int32 { Int32(CW_E_STRUCT_TAIL) }
    public static var closed: Int32 { Int32(CW_E_CLOSED) }
    public static var noDirectory: Int32 { Int32(CW_E_NO_DIRECTORY) }
    public static var notDirectory: Int32 { Int32(CW_E_NOT_DIRECTORY) }
    public static var notFound: Int32 { Int32(CW_E_NOT_FOUND) }
    public static var permission: Int32 { Int32(CW_E_PERMISSION) }
    public static var io: Int32 { Int32(CW_E_IO) }
    public static var full: Int32 { Int32(CW_E_FULL) }
    public static var memory: Int32 { Int32(CW_E_MEMORY) }
    public static var limit: Int32 { Int32(CW_E_LIMIT) }
    public static var timeout: Int32 { Int32(CW_E_TIMEOUT) }
    public static var busy: Int32 { Int32(CW_E_BUSY) }
    public static var version: Int32 { Int32(CW_E_VERSION) }
    public static var damaged: Int32 { Int32(CW_E_DAMAGED) }
    public static var consent: Int32 { Int32(CW_E_CONSENT) }
    public static var noTarget: Int32 { Int32(CW_E_NO_TARGET) }
    public static var upload: Int32 { Int32(CW_E_UPLOAD) }
    public static var unsupported: Int32 { Int32(CW_E_UNSUPPORTED) }
    public static var exists: Int32 { Int32(CW_E_EXISTS) }
    public static var `internal`: Int32 { Int32(CW_E_INTERNAL) }
    public static var encrypted: Int32 { Int32(CW_E_ENCRYPTED) }
    public static var notEnabled: Int32 { Int32(CW_E_NOT_ENABLED) }

    /// The status for an errno of a file operation.
    public static func of(errno number: Int32) -> Int32 {
        switch number {
        case Errno.EACCES, Errno.EPERM, Errno.EROFS: return permission
        case Errno.ENOENT: return notFound
        case Errno.ENOTDIR, Errno.EEXIST, Errno.ELOOP: return notDirectory
        case Errno.ENOSPC, Errno.EDQUOT, Errno.EFBIG: return full
        case Errno.ENOMEM, Errno.EMFILE, Errno.ENFILE, Errno.EAGAIN: return memory
        case Errno.EOPNOTSUPP: return unsupported
        default: return io
        }
    }
}
