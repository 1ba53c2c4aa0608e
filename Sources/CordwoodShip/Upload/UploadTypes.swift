// Input and output of UploadService: clock, summaries of archives, the result of a pass,
// diagnostics. Values and closures; nothing here decides anything.

import CShims
import CordwoodCore
import CordwoodStore
import Glibc

/// The clocks in milliseconds; injected, so that tests control the time.
package struct UploadClock: Sendable {
    package var realtimeMs: @Sendable () -> UInt64
    package var monotonicMs: @Sendable () -> UInt64
    /// CLOCK_BOOTTIME, and the boot that it counts from.
    package var boottimeMs: @Sendable () -> UInt64
    package var boot: @Sendable () -> LaneID

    package init(
        realtimeMs: @escaping @Sendable () -> UInt64,
        monotonicMs: @escaping @Sendable () -> UInt64,
        boottimeMs: @escaping @Sendable () -> UInt64, boot: @escaping @Sendable () -> LaneID
    ) {
        self.realtimeMs = realtimeMs
        self.monotonicMs = monotonicMs
        self.boottimeMs = boottimeMs
        self.boot = boot
    }

    package static let system = UploadClock(
        realtimeMs: { cw_realtime_ns() / 1_000_000 },
        monotonicMs: { cw_monotonic_ns() / 1_000_000 },
        boottimeMs: { cw_clock_ns(CLOCK_BOOTTIME) / 1_000_000 }, boot: { BootID.running() })

    var look: ClockLook {
        ClockLook(
            boot: boot(), boottimeNs: boottimeMs() &* 1_000_000,
            realtimeNs: realtimeMs() &* 1_000_000)
    }
}

/// An archive's description of itself.
package struct ArchiveSummary: Sendable {
    /// The archive id as a UUID: `8-4-4-4-12` lowercase hex digits.
    package var idText: String
    /// UTC ns of the newest record; 0: unknown.
    package var timeMaxNs: UInt64
    package var bytes: UInt64

    package init(idText: String, timeMaxNs: UInt64, bytes: UInt64) {
        self.idText = idText
        self.timeMaxNs = timeMaxNs
        self.bytes = bytes
    }
}

/// cw_upload_result.
public struct UploadResult: Equatable, Sendable {
    public var uploaded: UInt32 = 0
    public var failed: UInt32 = 0
    public var waiting: UInt32 = 0
    public var expired: UInt32 = 0
    /// Bytes of bodies that got a 2xx.
    public var bytesSent: UInt64 = 0
    public var lastHTTPStatus: Int32 = 0
    public var lastOutcome: OutcomeKind = .none
    /// Records that a target refuses.
    public var refused: UInt32 = 0
    /// Records in bodies that got a 2xx; 0 for archives sent as files.
    public var records: UInt64 = 0
    /// Pairs of archive and target that were given up, entirely or for some records; the archives
    /// are kept.
    public var quarantined: UInt32 = 0

    public init() {}

    mutating func add(_ other: UploadResult) {
        uploaded &+= other.uploaded
        failed &+= other.failed
        waiting &+= other.waiting
        expired &+= other.expired
        bytesSent &+= other.bytesSent
        refused &+= other.refused
        records &+= other.records
        quarantined &+= other.quarantined
        guard other.lastOutcome != .none else { return }
        lastHTTPStatus = other.lastHTTPStatus
        lastOutcome = other.lastOutcome
    }
}

/// The waiting work of a store at one moment.
struct UploadWork: Sendable {
    struct Archive: Sendable {
        var stem: String
        /// nil: it could not be read.
        var summary: ArchiveSummary?
    }

    /// Oldest first.
    var archives: [Archive]
    var snapshot: OutboxSnapshot
}

/// Totals since the service was made (cw_stats).
package struct UploadTotals: Sendable {
    package var succeeded: UInt64 = 0
    package var failed: UInt64 = 0
    package var bytes: UInt64 = 0
    package var refused: UInt64 = 0
    /// Events of transactions that their targets accepted.
    package var events: UInt64 = 0
    /// Refusals of those targets: events, and pairs that were given up in whole or in part.
    package var eventsRefused: UInt64 = 0
    package var eventsQuarantined: UInt64 = 0
    /// Pairs of archive and target that were refused for good, and how the last of them ended.
    package var quarantined: UInt64 = 0
    package var lastRefusal: (httpStatus: Int32, outcome: OutcomeKind) = (0, .none)
    package var archivesRemoved: UInt64 = 0
}

public enum DiagnosticValue: Equatable, Sendable {
    case text(String)
    case number(Int64)
}

/// One line of the engine's own log, under Cordwood.Uploader.
package struct UploadDiagnostic: Sendable {
    package var level: UInt8
    package var message: String
    package var fields: [(key: String, value: DiagnosticValue)]

    package init(
        level: UInt8, message: String, fields: [(key: String, value: DiagnosticValue)]
    ) {
        self.level = level
        self.message = message
        self.fields = fields
    }

    package static let debug: UInt8 = 5
    package static let warn: UInt8 = 13
    package static let error: UInt8 = 17
}

/// The service's access to archives, segments and its host; UploadWiring makes it.
package struct UploadHooks: Sendable {
    package var openRecords: OpenRecords
    package var archiveInfo: ReadSummary
    /// Lists the present segments and returns a check, by an archive's file name, whether segments
    /// that it covers still exist (FORMAT §11).
    package var covering: @Sendable () -> IsCovered
    package var diagnostics: @Sendable (UploadDiagnostic) -> Void
    /// Starts an engine thread; false: none is available. Without it the caller sends everything.
    package var startThread: StartThread
    /// A server reports that a policy forbids it: the policy should be read again.
    package var policyWanted: @Sendable () -> Void
    /// A background run has ended: the next may have work.
    package var runEnded: @Sendable () -> Void
    /// The time of the background's next work was changed.
    package var replanned: @Sendable () -> Void
    /// By file name; called once for an archive that left the disk without being sent everywhere.
    package var archiveRemoved: @Sendable (_ archiveName: String, _ reason: RemovalReason) -> Void

    package init(
        openRecords: @escaping OpenRecords,
        archiveInfo: @escaping ReadSummary,
        covering: @escaping @Sendable () -> IsCovered,
        diagnostics: @escaping @Sendable (UploadDiagnostic) -> Void = { _ in },
        startThread: @escaping StartThread = { _ in false },
        policyWanted: @escaping @Sendable () -> Void = {},
        runEnded: @escaping @Sendable () -> Void = {},
        replanned: @escaping @Sendable () -> Void = {},
        archiveRemoved:
            @escaping @Sendable (_ archiveName: String, _ reason: RemovalReason) -> Void = { _, _ in
            }
    ) {
        self.openRecords = openRecords
        self.archiveInfo = archiveInfo
        self.covering = covering
        self.diagnostics = diagnostics
        self.startThread = startThread
        self.policyWanted = policyWanted
        self.runEnded = runEnded
        self.replanned = replanned
        self.archiveRemoved = archiveRemoved
    }

    func isCovered(_ stem: String) -> Bool { covering()(StorePaths.file(ofStem: stem)) }
}

package typealias IsCovered = @Sendable (_ archiveName: String) -> Bool

/// Throws the reason that an archive cannot be read.
package typealias ReadSummary = @Sendable (_ path: String) throws(ReadProblem) -> ArchiveSummary

package typealias StartThread = @Sendable (_ body: @escaping @Sendable () -> Void) -> Bool
