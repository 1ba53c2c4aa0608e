// Errors of the store's own files and of uploads, and their statuses in the C interface. The texts
// name path, value and cause; they never hold a URL's path or query, a header or a token, because
// those carry secrets. The numbers are the header's; a test compares them.

import CordwoodCore

/// The statuses of these errors (include/cordwood/cordwood.h).
public enum UploadStatus: Int32, Sendable {
    case ok = 0
    case end = 2
    case argument = -1
    case closed = -5
    case notFound = -8
    case permission = -9
    case io = -10
    case full = -11
    case memory = -12
    case limit = -13
    case timeout = -14
    case busy = -15
    case version = -16
    case damaged = -17
    case consent = -18
    case noTarget = -19
    case upload = -20
    case unsupported = -21
    case exists = -22
    case encrypted = -24
    case notEnabled = -25
}

public enum UploadError: Error, Equatable, Sendable {
    /// A system call failed. The caller may try again later.
    case system(call: String, path: String, errno: Int32)
    /// The host passed something invalid; the text names it.
    case argument(String)
    /// A newer, incompatible format: do not write.
    case version(String)
    case damaged(String)
    /// Another user could have written it.
    case notOurs(String)
    case notFound(String)
    case exists(String)
    /// libcurl is not available.
    case unsupported(String)
    case limit(String)
    /// An encrypted archive that none of the available keys opens.
    case locked(String)

    public var status: UploadStatus {
        switch self {
        case .system(_, _, let code): return UploadError.status(errno: code)
        case .argument: return .argument
        case .version: return .version
        case .damaged: return .damaged
        case .notOurs: return .permission
        case .notFound: return .notFound
        case .exists: return .exists
        case .unsupported: return .unsupported
        case .limit: return .limit
        case .locked: return .encrypted
        }
    }

    public var text: String {
        switch self {
        case .system(let call, let path, let code):
            return "\(call) \(path): \(Errno.text(code))"
        case .argument(let text), .version(let text), .damaged(let text), .notOurs(let text),
            .notFound(let text), .exists(let text), .unsupported(let text), .limit(let text),
            .locked(let text):
            return text
        }
    }
}
