// The settings an engine was opened with: checked, copied, and never changed, so that a forked
// child can use them without a lock.

import CordwoodFormats
import CordwoodCore
import CordwoodShip
import CordwoodStore

public enum Console: UInt32, Sendable { case off, text, json, auto }
public enum Overflow: UInt32, Sendable { case grow, drop, block }

/// Options of `Engine(directory:options:)`; the defaults are those of the C header.
public struct EngineOptions: Sendable {
    public var processName: String?
    public var level: Level? = nil
    public var segmentBytes: UInt64 = 16 << 20
    public var rollAgeSeconds: UInt32 = 86_400
    public var quotaBytes: UInt64 = RetentionLimits.standard.quotaBytes
    public var archivesMax: UInt32 = RetentionLimits.standard.archivesMax
    public var expirationDays: UInt32 = RetentionLimits.standard.expirationDays
    public var codec: Codec = .zstd
    public var codecLevel: Int32 = 0
    /// Of archives with codec zstd; with the others, they are plain.
    public var archiveMethod: ArchiveMethod = .dense
    /// Times in archives are rounded down to a multiple of so many ns, 1 to 10,000; 0: 1.
    public var archiveTimeStepNs: UInt32 = 0
    public var consent: Consent = .granted
    public var overflow: Overflow = .grow
    public var console: Console? = nil
    public var consoleLevel: UInt8 = 0
    public var syncConsole = false
    /// Takes times in kernel ticks (1 to 10 ms) instead of nanoseconds. Cheaper only where the
    /// system does not trust the processor's counter (TSC).
    public var coarseClock = false
    /// Keeps segments in memory (/dev/shm) until they are archived. Writers cause no writeback, but
    /// a restart of the machine loses everything that is not archived or flushed to the machine.
    public var segmentsInMemory = false
    /// Installs a SIGBUS handler in the process, so that truncating a store's file, or a file
    /// system that turns read-only, does not kill it.
    public var guardsAgainstBusErrors = false
    /// The store's directory gets mode 2750: its group may read what is made in it from then on.
    public var groupReads = false
    /// 0: 30.
    public var uploadIntervalSeconds: UInt32 = 0
    /// Archives are encrypted to these age recipients (`age1…`, separated by spaces or commas);
    /// nil: they are plain. The store keeps nothing of them in plain form, and close archives what
    /// is left.
    public var encryptTo: String?
    /// An age identity file that opens encrypted archives for targets that need plain records;
    /// read at open, and kept in memory. nil: such targets wait.
    public var identityFile: String?
    /// The source of a policy for this engine; nil: none.
    public var policy: PolicyOptions?
    /// What policies may do to this engine, from a URL or by `applyPolicy`.
    public var policyAllow: PolicyAllowance = []
    /// Called once per archive that retention removed, on an engine thread.
    public var archiveRemoved: (@Sendable (_ archive: String, _ reason: RemovalReason) -> Void)?
    /// Whether `Engine.holdTime` has an effect. It makes each record slightly more expensive.
    package var holdsTime = false

    public init() {}
}

struct Settings: Sendable {
    static let segmentBytesMin: UInt64 = 64 << 10
    static let segmentBytesMax: UInt64 = 1 << 30
    static let segmentBytesDefault: UInt64 = 16 << 20

    var directory: String
    var isMemory: Bool
    var options: EngineOptions
    var rootLevel: UInt8
    var levels: [(prefix: String, level: UInt8)]
    var console: Console
    var segmentBytes: UInt64
    var form: ArchiveForm
    var identities: [AgeIdentity]
    var policySource: PolicySource?

    /// Fills options that the host left unset from the environment, and checks the bounds.
    init(directory: String?, options: EngineOptions) throws(CordwoodError) {
        let named = directory ?? Environment.value("CORDWOOD_DIR")
        guard let named, !named.isEmpty else {
            throw CordwoodError(
                Status.noDirectory,
                "no store: neither a directory was given nor is CORDWOOD_DIR "
                    + (Machine.isPrivileged ? "read in a privileged program" : "set"))
        }
        self.options = options
        isMemory = named == ":memory:"
        self.directory = named
        let size = options.segmentBytes == 0 ? Settings.segmentBytesDefault : options.segmentBytes
        guard size >= Settings.segmentBytesMin, size <= Settings.segmentBytesMax else {
            throw CordwoodError(
                Status.limit, "segment_bytes \(size) is outside 65,536 … 1,073,741,824")
        }
        segmentBytes = Settings.segmentBytes(size, quotaBytes: options.quotaBytes)
        let limit: Int32 = options.codec == .zstd ? 19 : 12
        guard options.codecLevel >= 0, options.codecLevel <= limit else {
            throw CordwoodError(
                Status.limit, "codec_level \(options.codecLevel) is outside 0 … \(limit)")
        }
        let recipients = try AgeKeys.recipients(options.encryptTo, option: "encrypt_to")
        form = ArchiveForm(
            codec: options.codec, level: options.codecLevel, recipients: recipients)
        form.method = options.archiveMethod
        guard options.archiveTimeStepNs <= StoreArchiver.timeStepNsMax else {
            throw CordwoodError(
                Status.limit,
                "archive_time_step_ns \(options.archiveTimeStepNs) is outside 0 … "
                    + "\(StoreArchiver.timeStepNsMax)")
        }
        form.timeStepNs = UInt64(max(options.archiveTimeStepNs, 1))
        identities = try AgeKeys.identities(options.identityFile, option: "identity_file")
        (rootLevel, levels) = Settings.levels(options)
        console = options.console ?? Settings.console()
        if let policy = options.policy {
            do throws(UploadError) {
                policySource = try PolicySource(policy, allow: options.policyAllow)
                try PolicySource.load()
            } catch {
                throw CordwoodError(error.status.rawValue, error.text)
            }
        }
    }

    /// The segment size that results from a requested size within the bounds.
    static func segmentBytes(_ wanted: UInt64, quotaBytes quota: UInt64) -> UInt64 {
        let whole = (wanted + 65_535) & ~65_535
        // Segments that are not archived yet must leave room for archives.
        let eighth = max(Settings.segmentBytesMin, quota / 8 & ~65_535)
        return quota == 0 ? whole : min(whole, eighth)
    }

    var ringMax: UInt32 {
        Settings.ringMax(segmentBytes: segmentBytes, quotaBytes: options.quotaBytes)
    }

    /// Files kept for reuse take at most an eighth of the quota.
    static func ringMax(segmentBytes: UInt64, quotaBytes quota: UInt64) -> UInt32 {
        let most = UInt64(Recycling.segmentsMax)
        return UInt32(quota == 0 ? most : min(most, quota / 8 / segmentBytes))
    }

    private static func levels(
        _ options: EngineOptions
    ) -> (UInt8, [(prefix: String, level: UInt8)]) {
        var root: UInt8 = 9
        var levels: [(prefix: String, level: UInt8)] = []
        for part in (Environment.value("CORDWOOD_LEVEL") ?? "").split(separator: ",") {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let word = pair.last.map { ASCII.trimmed($0.utf8) } ?? ""
            guard let level = threshold(word) else {
                StandardError.complain(
                    "CORDWOOD_LEVEL",
                    "'\(word)' is no level: trace debug info notice warn error "
                        + "fatal off, or 1 to 24, as in warn,app.db=debug")
                continue
            }
            if word == "10" || word == "20" {
                StandardError.complain(
                    "CORDWOOD_LEVEL",
                    "\(word) is \(levelName(level)) here, not what Python's "
                        + "logging calls \(word): use a name")
            }
            if pair.count == 2 {
                levels.append((ASCII.trimmed(pair[0].utf8), level))
            } else {
                root = level
            }
        }
        return (options.level?.number ?? root, levels)
    }

    private static func threshold(_ text: String) -> UInt8? {
        text.lowercased() == "off" ? 255 : parseLevel(text)
    }

    private static func console() -> Console {
        let word = Environment.value("CORDWOOD_CONSOLE") ?? ""
        switch word.lowercased() {
        case "text": return .text
        case "json": return .json
        case "auto": return .auto
        case "", "off": return .off
        default:
            StandardError.complain(
                "CORDWOOD_CONSOLE", "'\(word)' is not known; use off, text, json or auto")
            return .off
        }
    }
}
