// How uploads to an engine's targets failed.

import CordwoodCore
import CordwoodShip

extension Engine {
    /// How the last failed transfer to a target ended, since open; nil: no transfer failed.
    /// - Parameter target: the target's name; nil: any target.
    public func lastTransferError(target: String? = nil) throws(CordwoodError) -> TransferError? {
        try services().uploads.failures.last(target: target).map { TransferError($0) }
    }

    package func uploadError(_ status: Int32, _ result: UploadResult) -> CordwoodError {
        var error = CordwoodError(status, Engine.uploadText(result))
        // Includes failures before the call: an upload does not retry while a server asked to wait.
        if status == Status.upload || status == Status.timeout {
            error.underlying = try? lastTransferError()
        }
        return error
    }

    static func uploadText(_ result: UploadResult) -> String {
        "\(result.failed) not sent, \(result.waiting) waiting; "
            + "last HTTP status \(result.lastHTTPStatus)"
    }
}
