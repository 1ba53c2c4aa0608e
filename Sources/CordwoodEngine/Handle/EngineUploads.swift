// How uploads of an engine's targets failed.

import CordwoodCore
import CordwoodShip

extension Engine {
    /// How the last failed transfer of a target ended, since open; nil: none failed.
    /// - Parameter target: its name; nil: of any.
    public func lastTransferError(target: String? = nil) throws(CordwoodError) -> TransferError? {
        try services().uploads.failures.last(target: target).map { TransferError($0) }
    }

    package func uploadError(_ status: Int32, _ result: UploadResult) -> CordwoodError {
        var error = CordwoodError(status, Engine.uploadText(result))
        // Also of before the call, which tries nothing that a server asked to wait.
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
