// The system's error codes by their usual names, and the calling thread's last one. All modules
// read and compare errors through this; only System knows where they come from. Any thread; signal
// handlers may read and restore the last code.

import Glibc

package enum Errno {
    /// Why the calling thread's last call of System failed. A call that succeeds may change it:
    /// read it right after the failure.
    package static var last: Int32 {
        get { errno }
        set { errno = newValue }
    }

    /// The system's words, in the host's language.
    package static func text(_ code: Int32) -> String { unsafe String(cString: strerror(code)) }

    package static var EACCES: Int32 { Glibc.EACCES }
    package static var EAGAIN: Int32 { Glibc.EAGAIN }
    package static var EBADF: Int32 { Glibc.EBADF }
    package static var EDQUOT: Int32 { Glibc.EDQUOT }
    package static var EEXIST: Int32 { Glibc.EEXIST }
    package static var EFBIG: Int32 { Glibc.EFBIG }
    package static var EINTR: Int32 { Glibc.EINTR }
    package static var EIO: Int32 { Glibc.EIO }
    package static var EISDIR: Int32 { Glibc.EISDIR }
    package static var ELOOP: Int32 { Glibc.ELOOP }
    package static var EMFILE: Int32 { Glibc.EMFILE }
    package static var ENFILE: Int32 { Glibc.ENFILE }
    package static var ENOENT: Int32 { Glibc.ENOENT }
    package static var ENOMEM: Int32 { Glibc.ENOMEM }
    package static var ENOSPC: Int32 { Glibc.ENOSPC }
    package static var ENOSYS: Int32 { Glibc.ENOSYS }
    package static var ENOTDIR: Int32 { Glibc.ENOTDIR }
    package static var ENOTSUP: Int32 { Glibc.ENOTSUP }
    package static var ENXIO: Int32 { Glibc.ENXIO }
    package static var EOPNOTSUPP: Int32 { Glibc.EOPNOTSUPP }
    package static var EPERM: Int32 { Glibc.EPERM }
    package static var EPIPE: Int32 { Glibc.EPIPE }
    package static var EROFS: Int32 { Glibc.EROFS }
    package static var EWOULDBLOCK: Int32 { Glibc.EWOULDBLOCK }
}
