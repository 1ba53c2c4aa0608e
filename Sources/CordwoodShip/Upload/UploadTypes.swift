// What UploadService is given and gives: clock, what is known of an archive, the result of a pass,
// diagnostics. Values and closures; nothing here decides anything.

import CShims

/// Both clocks in milliseconds; handed in, so that tests own the time.
public struct UploadClock: Sendable {
    public var realtimeMs: @Sendable () -> UInt64
    public var monotonicMs: @Sendable () -> UInt64

    public init(
        realtimeMs: @escaping @Sendable () -> UInt64, monotonicMs: @escaping @Sendable () -> UInt64
    ) {
        self.realtimeMs = realtimeMs
        self.monotonicMs = monotonicMs
    }

    public static let system = UploadClock(
        realtimeMs: { cw_realtime_ns() / 1_000_000 },
        monotonicMs: { cw_monotonic_ns() / 1_000_000 })
}

/// What an archive says of itself.
public struct ArchiveSummary: Sendable {
    /// The archive id as a UUID: `8-4-4-4-12` lowercase hex digits.
    public var idText: String
    /// UTC ns of the newest record; 0: not known.
    public var timeMaxNs: UInt64
    public var bytes: UInt64

    public init(idText: String, timeMaxNs: UInt64, bytes: UInt64) {
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

    public init() {}
}

/// Since the service was made (cw_stats).
public struct UploadTotals: Equatable, Sendable {
    public var succeeded: UInt64 = 0
    public var failed: UInt64 = 0
    public var bytes: UInt64 = 0
    public var archivesRemoved: UInt64 = 0
}

public enum DiagnosticValue: Equatable, Sendable {
    case text(String)
    case number(Int64)
}

/// One line of the engine's own log, under Cordwood.Uploader.
public struct UploadDiagnostic: Sendable {
    public var level: UInt8
    public var message: String
    public var fields: [(key: String, value: DiagnosticValue)]

    static let debug: UInt8 = 5
    static let warn: UInt8 = 13
    static let error: UInt8 = 17
}

/// Everything the service needs of the rooms it does not see.
public struct UploadHooks: Sendable {
    public var openRecords: OpenRecords
    /// nil: the file is gone or is no archive.
    public var archiveInfo: @Sendable (_ path: String) -> ArchiveSummary?
    /// By file name: whether segments that the archive covers still stand (FORMAT §11).
    public var isCovered: @Sendable (_ archiveName: String) -> Bool
    public var diagnostics: @Sendable (UploadDiagnostic) -> Void
    /// By file name; once for an archive that left the disk without being sent everywhere.
    public var archiveRemoved: @Sendable (_ archiveName: String, _ reason: RemovalReason) -> Void

    public init(
        openRecords: @escaping OpenRecords,
        archiveInfo: @escaping @Sendable (_ path: String) -> ArchiveSummary?,
        isCovered: @escaping @Sendable (_ archiveName: String) -> Bool,
        diagnostics: @escaping @Sendable (UploadDiagnostic) -> Void = { _ in },
        archiveRemoved:
            @escaping @Sendable (_ archiveName: String, _ reason: RemovalReason) -> Void = { _, _ in
            }
    ) {
        self.openRecords = openRecords
        self.archiveInfo = archiveInfo
        self.isCovered = isCovered
        self.diagnostics = diagnostics
        self.archiveRemoved = archiveRemoved
    }
}

/// How records become lines of a body.
public struct LineRenderers: Sendable {
    public var json: RenderLine
    public var text: RenderLine

    public init(json: @escaping RenderLine, text: @escaping RenderLine) {
        self.json = json
        self.text = text
    }
}
