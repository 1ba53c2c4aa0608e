// Readable forms of the header's numbers: a sentence for a status, the version as text.

import CCordwood
import CShims

/// One sentence for a status of the header.
public func statusText(_ status: Int32) -> String {
    switch status {
    case Status.ok: "done"
    case Status.disabled: "the level is below the logger's"
    case Status.end: "nothing more"
    case Status.argument: "an argument is not valid"
    case Status.closed: "the engine was closed"
    case Status.permission: "the system refused access"
    case Status.io: "a read, write or sync failed"
    case Status.full: "no room: the disk is full, or a quota or limit is reached"
    case Status.memory: "memory, threads or descriptors ran out"
    case Status.limit: "a documented limit would be exceeded"
    case Status.timeout: "time ran out"
    case Status.busy: "the same operation is already running"
    case Status.consent: "the store has no consent to upload"
    case Status.notEnabled: "a policy has switched uploading off"
    case Status.noTarget: "no target was added"
    case Status.encrypted: "an archive is encrypted, and no identity opens it"
    case Status.upload: "something was not uploaded"
    default: "status \(status)"
    }
}

/// The system's text for an errno, with the value of the process limit that it refers to.
package func systemText(_ number: Int32) -> String {
    let text = Errno.text(number)
    switch number {
    case Errno.EFBIG: return "\(text) (RLIMIT_FSIZE is \(cw_file_size_limit()))"
    case Errno.EMFILE: return "\(text) (RLIMIT_NOFILE is \(cw_descriptor_limit()))"
    default: return text
    }
}

/// The library's version, from the header.
public let versionText = "\(CW_VERSION_MAJOR).\(CW_VERSION_MINOR).\(CW_VERSION_PATCH)"
