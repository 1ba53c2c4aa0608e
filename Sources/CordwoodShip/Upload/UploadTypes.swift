// What UploadService is given and gives: clock, what is known of an archive, the result of a pass,
// diagnostics. Values and closures; nothing here decides anything.

import CShims
import CordwoodCore
import CordwoodStore
import Glibc

/// The clocks in milliseconds; handed in, so that tests own the time.
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

/// What an archive says of itself.
package struct ArchiveSummary: Sendable {
    /// The archive id as a UUID: `8-4-4-4-12` lowercase hex digits.
    package var idText: String
    /// UTC ns of the newest record; 0: not known.
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
    /// Of bodies that were answered with 2xx.
    public var bytesSent: UInt64 = 0
    public var lastHTTPStatus: Int32 = 0
    public var lastOutcome: OutcomeKind = .none
    /// Records that a target will not take.
    public var refused: UInt32 = 0
    /// Records in bodies that were answered with 2xx; 0 for archives as they are.
    public var records: UInt64 = 0
    /// Pairs of archive and target that were given up, whole or for some records; the archives are
    /// kept.
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

/// What waits in a store, at one moment.
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

/// Since the service was made (cw_stats).
package struct UploadTotals: Sendable {
    package var succeeded: UInt64 = 0
    package var failed: UInt64 = 0
    package var bytes: UInt64 = 0
    package var refused: UInt64 = 0
    /// Of transactions, at targets of theirs.
    package var events: UInt64 = 0
    /// What those refused: events, and pairs that were given up whole or in part.
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

/// What the service uses of archives, segments and its host; UploadWiring makes it.
package struct UploadHooks: Sendable {
    package var openRecords: OpenRecords
    package var archiveInfo: ReadSummary
    /// Lists what stands now, for archives by file name: whether segments that one covers still
    /// stand (FORMAT §11).
    package var covering: @Sendable () -> IsCovered
    package var diagnostics: @Sendable (UploadDiagnostic) -> Void
    /// Starts a thread of the engine's; false: there is none. Without it all is sent by the caller.
    package var startThread: StartThread
    /// A server says that a policy forbids it: the policy is to be read again.
    package var policyWanted: @Sendable () -> Void
    /// A background run has ended: the next may have something to do.
    package var runEnded: @Sendable () -> Void
    /// When the background has something to do was planned anew.
    package var replanned: @Sendable () -> Void
    /// By file name; once for an archive that left the disk without being sent everywhere.
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

/// Throws what keeps an archive from being read.
package typealias ReadSummary = @Sendable (_ path: String) throws(ReadProblem) -> ArchiveSummary

package typealias StartThread = @Sendable (_ body: @escaping @Sendable () -> Void) -> Bool
