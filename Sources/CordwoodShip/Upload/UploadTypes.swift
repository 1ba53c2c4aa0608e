// Input and output of UploadService: clock, summaries of archives, the result of a pass. Values and
// closures; nothing here decides anything.

import CShims
import CordwoodCore
import CordwoodStore

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
        boottimeMs: { Machine.sharedBoottimeNs() / 1_000_000 }, boot: { BootID.running() })

    var look: ClockLook {
        ClockLook(
            boot: boot(), boottimeNs: boottimeMs() &* 1_000_000,
            realtimeNs: realtimeMs() &* 1_000_000)
    }
}

/// The parts of an archive's own description that uploads need.
struct ArchiveSummary: Sendable {
    /// The archive id as a UUID: `8-4-4-4-12` lowercase hex digits.
    let idText: String
    /// UTC ns when its newest record was written; 0: unknown.
    let writtenNs: UInt64
    let bytes: UInt64
    let recordCount: UInt64
    /// UTC ns of the first and the last record.
    let timeMin: UInt64
    let timeMax: UInt64
    /// Ids of archives that it replaces.
    let replaced: Set<String>

    /// Throws the reason that it cannot be read.
    init(path: FilePath, identities: [AgeIdentity] = []) throws(ReadProblem) {
        let info = try ArchiveInfo.peek(path: path, identities: identities)
        idText = info.idText
        writtenNs = info.writtenNs
        bytes = info.fileBytes
        recordCount = info.recordCount
        timeMin = info.timeMin
        timeMax = info.timeMax
        replaced = Set(info.replaced.map { ArchiveIdentity.text($0.id) })
    }
}

extension Delivery {
    /// What is known before its body is made.
    init(
        _ target: Target, _ summary: ArchiveSummary, stem: String, range: PartRange?,
        round: UInt32, encoding: BodyEncoding, nowUnixMs: UInt64
    ) {
        self.init(
            id: Delivery.id(archiveID: summary.idText, range: range, round: round),
            archiveID: summary.idText, range: range, fileName: StorePaths.file(ofStem: stem),
            encoding: encoding, credentials: target.keeper.current, nowUnixMs: nowUnixMs)
        archiveRecords = summary.recordCount
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

    public mutating func add(_ other: UploadResult) {
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

/// What waits for a target at the end of a run.
struct UploadStock: Equatable {
    /// Archives that the run found when it began and that are still to be sent.
    var waiting: UInt32 = 0
    /// All that are still to be sent, with those that other threads and processes made meanwhile.
    var left: UInt32 = 0

    mutating func add(_ other: UploadStock) {
        waiting &+= other.waiting
        left &+= other.left
    }
}

/// The archives that a run found when it began: a call answers for these and no others, or a busy
/// program would never see a call succeed.
struct UploadCover {
    private let stems: Set<String>
    private let ids: Set<String>

    init(_ archives: [UploadWork.Archive]) {
        stems = Set(archives.map(\.stem))
        ids = Set(archives.compactMap { $0.summary?.idText })
    }

    /// Also true for an archive that replaced some of them meanwhile.
    func has(_ archive: UploadWork.Archive) -> Bool {
        stems.contains(archive.stem)
            || archive.summary.map { !ids.isDisjoint(with: $0.replaced) } ?? false
    }
}

/// Totals since the service was made (cw_stats).
package struct UploadTotals: Sendable {
    package var succeeded: UInt64 = 0
    package var failed: UInt64 = 0
    package var bytes: UInt64 = 0
    /// Records in bodies that got a 2xx.
    package var records: UInt64 = 0
    /// The status of the last archive that a target took.
    package var lastTakenHTTPStatus: Int32 = 0
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
