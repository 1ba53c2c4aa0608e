// The last failed transfer to each target of a process: the answer to hosts that ask, and the
// fields of its record (B-NET-2, B-NET-4). In memory only; any thread.

import CordwoodCore
import CordwoodFormats

/// A failed transfer, with its target and archive.
public struct TransferFailure: Equatable, Sendable {
    public var detail: FailureDetail
    /// The target's name.
    public var target: String
    /// The archive's file name.
    public var archive: String
    /// From 1.
    public var attempt: UInt32
    public var unixMs: UInt64

    public init(
        detail: FailureDetail, target: String, archive: String, attempt: UInt32, unixMs: UInt64
    ) {
        self.detail = detail
        self.target = target
        self.archive = archive
        self.attempt = attempt
        self.unixMs = unixMs
    }
}

package final class FailureLog: @unchecked Sendable {
    // SAFETY: `failures` is used under the monitor only.
    private let monitor = Monitor()

    /// Targets may come and go throughout a process's life.
    private static let targetsMax = 256

    /// Oldest first; one per target.
    private var failures: [TransferFailure] = []

    func note(_ failure: TransferFailure) {
        monitor.locked {
            failures.removeAll { $0.target == failure.target }
            if failures.count >= FailureLog.targetsMax { failures.removeFirst() }
            failures.append(failure)
        }
    }

    /// - Parameter target: nil: any target.
    package func last(target: String?) -> TransferFailure? {
        monitor.locked { failures.last { target == nil || $0.target == target } }
    }
}

extension FailureDetail {
    /// Fields besides status and cause, for the record of a failed transfer.
    public var fields: [(key: String, value: DiagnosticValue)] {
        var fields: [(key: String, value: DiagnosticValue)] = []
        func add(_ key: String, _ text: String) {
            if !text.isEmpty { fields.append((key, .text(text))) }
        }
        add("outcome", kind.word)
        add("location", location)
        if let retryAfterSeconds {
            fields.append(("retry_after_s", .number(Int64(clamping: retryAfterSeconds))))
        }
        guard let odata else { return fields }
        add("transaction.id", odata.transactionID)
        add("error.code", odata.code)
        add("error.message", odata.message)
        for (index, detail) in odata.details.prefix(FailureDetail.detailsLogged).enumerated() {
            let place = detail.property.isEmpty ? "" : " (\(detail.property))"
            // Keeps keys unique: of two equal keys most JSON readers show only the last.
            add(
                index == 0 ? "error.detail" : "error.detail_\(index + 1)",
                "\(detail.severity) \(detail.code): \(detail.message)\(place)")
        }
        return fields
    }

    package static let detailsLogged = 8
}
