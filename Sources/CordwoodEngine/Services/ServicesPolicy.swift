// Applies policies to a running engine (B-SAP-9), and restores the host's settings without one. One
// at a time; any thread. A policy is checked before it gets here, so it cannot fail half way. It
// replaces the previous policy: settings that it does not name return to the host's values.

import CordwoodCore
import CordwoodShip
import CordwoodStore
import CordwoodTrace

/// The host's settings, overlaid by a policy as far as the host allows that.
struct RunningLimits: Equatable, Sendable {
    var isUploadEnabled: Bool
    var retention: RetentionLimits
    var segmentBytes: UInt64
    var ringMax: UInt32
    var uploadIntervalSeconds: UInt32
    /// The shortest interval between archives that are made for the events in open segments.
    var transactionIntervalSeconds: UInt32
    var archiveMethod: ArchiveMethod
    /// The policy's alone.
    var levels: [PolicyDocument.Level]
    /// Keys of the policy that the host does not allow to take effect in full.
    var withheld: [String]

    private static let uploadIntervalSecondsDefault: UInt32 = 30
    private static let transactionIntervalSecondsDefault: UInt32 = 300

    init(_ settings: Settings, _ policy: PolicyDocument?) {
        let host = settings.options
        let own = RetentionLimits(
            quotaBytes: host.quotaBytes, archivesMax: host.archivesMax,
            expirationDays: host.expirationDays)
        let standard = Settings.segmentBytesDefault
        let ownSegment = host.segmentBytes == 0 ? standard : host.segmentBytes
        var wished = policy ?? PolicyDocument()
        if wished.fileBytesMax == 0 { wished.fileBytesMax = standard }
        let (policy, withheld) = wished.allowed(
            by: host.policyAllow, over: own, segmentBytes: ownSegment)
        isUploadEnabled = policy.isEnabled ?? true
        retention = RetentionLimits(
            quotaBytes: policy.quotaBytes ?? own.quotaBytes,
            archivesMax: policy.filesMax ?? own.archivesMax,
            expirationDays: policy.expirationDays ?? own.expirationDays)
        let quota = retention.quotaBytes
        segmentBytes = Settings.segmentBytes(
            policy.fileBytesMax ?? ownSegment, quotaBytes: quota)
        ringMax = Settings.ringMax(segmentBytes: segmentBytes, quotaBytes: quota)
        let interval = policy.uploadIntervalSeconds ?? host.uploadIntervalSeconds
        uploadIntervalSeconds =
            interval == 0 ? RunningLimits.uploadIntervalSecondsDefault : interval
        transactionIntervalSeconds =
            interval == 0 ? RunningLimits.transactionIntervalSecondsDefault : interval
        archiveMethod = policy.archiveMethod ?? host.archiveMethod
        levels = policy.levels
        self.withheld = withheld
    }
}

extension Services {
    /// In a store being opened: applies the last run's policy before the first record.
    func beginPolicy() throws(UploadError) {
        let kept = try policyKeeper?.begin()
        // It was followed when it arrived.
        applying.locked { retryWord = kept?.retryQuarantined }
        put(RunningLimits(settings, kept))
    }

    /// Applies a policy from the host. Throws if it is not valid, and changes nothing then.
    func applyPolicy(json: [UInt8]) throws(CordwoodError) {
        do throws(UploadError) {
            _ = apply(try PolicyDocument(json: json), from: "the host")
        } catch {
            report(
                UploadDiagnostic(
                    level: 13, message: "a policy is not valid; nothing was changed",
                    fields: [("origin", .text("the host")), ("cause", .text(error.text))]))
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }

    /// False: not all of it could be applied; a later attempt is worthwhile.
    func apply(_ policy: PolicyDocument, from origin: String) -> Bool {
        let running = RunningLimits(settings, policy)
        put(running)
        limitsChanged()
        tell(policy, running, from: origin)
        return retryQuarantined(policy, from: origin)
    }

    /// Once for each word. A word that could not be followed counts as not given.
    private func retryQuarantined(_ policy: PolicyDocument, from origin: String) -> Bool {
        let word = policy.retryQuarantined
        let former = applying.locked {
            defer { retryWord = word }
            return retryWord
        }
        guard let word, word != former else { return true }
        var fields: [(key: String, value: DiagnosticValue)] = [("origin", .text(origin))]
        do throws(UploadError) {
            let count = try uploads.retryQuarantined(target: nil)
            fields.append(("pairs", .number(Int64(count))))
            report(
                UploadDiagnostic(
                    level: 9, message: "a policy lets what was refused be tried again",
                    fields: fields))
            return true
        } catch {
            applying.locked { if retryWord == word { retryWord = former } }
            fields.append(("cause", .text(error.text)))
            report(
                UploadDiagnostic(
                    level: 13, message: "not all that was refused can be tried again",
                    fields: fields))
            return false
        }
    }

    private func tell(_ policy: PolicyDocument, _ running: RunningLimits, from origin: String) {
        var fields: [(key: String, value: DiagnosticValue)] = [("origin", .text(origin))]
        let areNew = applying.locked {
            defer { unknownPolicyKeys = policy.unknownKeys }
            return unknownPolicyKeys != policy.unknownKeys
        }
        if areNew, !policy.unknownKeys.isEmpty {
            reportOfPolicy(
                13, "a policy has keys that mean nothing here",
                fields + [("keys", .text(shown(policy.unknownKeys)))])
        }
        fields.append(("enabled", .text(policy.isEnabled == false ? "false" : "true")))
        let levels = running.levels.map {
            "\($0.prefix)=\($0.number == 255 ? "off" : levelName($0.number))"
        }
        if !levels.isEmpty { fields.append(("levels", .text(shown(levels)))) }
        let numbers: [(String, Bool, UInt64)] = [
            ("quota_bytes", policy.quotaBytes != nil, running.retention.quotaBytes),
            ("max_files", policy.filesMax != nil, UInt64(running.retention.archivesMax)),
            (
                "expiration_days", policy.expirationDays != nil,
                UInt64(running.retention.expirationDays)
            ),
            ("max_file_size_bytes", policy.fileBytesMax != nil, running.segmentBytes),
            (
                "upload_interval_s", policy.uploadIntervalSeconds != nil,
                UInt64(running.uploadIntervalSeconds)
            ),
        ]
        for (key, isNamed, value) in numbers where isNamed {
            fields.append((key, .number(Int64(clamping: value))))
        }
        if policy.archiveMethod != nil {
            fields.append(("archive_method", .text(running.archiveMethod.rawValue)))
        }
        if !running.withheld.isEmpty {
            fields.append(("withheld", .text(running.withheld.joined(separator: ", "))))
        }
        reportOfPolicy(running.withheld.isEmpty ? 9 : 13, "a policy was applied", fields)
    }

    private func shown(_ words: [String]) -> String {
        words.prefix(PolicyDocument.keysShownMax).joined(separator: ", ")
            + (words.count > PolicyDocument.keysShownMax ? ", …" : "")
    }

    /// The host's threshold decides, not the policy's: a policy cannot hide that it was applied.
    private func reportOfPolicy(
        _ level: UInt8, _ message: String, _ fields: [(key: String, value: DiagnosticValue)]
    ) {
        let own = monitor.locked { levels.following([]).threshold(Services.uploaderName) }
        report(
            UploadDiagnostic(level: level, message: message, fields: fields),
            as: Services.uploaderName, isOwed: level >= own)
    }

    private func put(_ running: RunningLimits) {
        applying.locked {
            uploads.setLimits(running.retention)
            uploads.setEnabled(running.isUploadEnabled)
            setLimits(running)
            unsafe EngineCore.setSegmentBytes(engine, running.segmentBytes)
            monitor.locked { keeping.leftovers.ringMax = running.ringMax }
            limitRing()
            _ = changeLevels {
                $0.following(running.levels.map { (prefix: $0.prefix, level: $0.number) })
            }
        }
    }

    private func setLimits(_ running: RunningLimits) {
        limits.set(
            LimitKeeper.Bounds(
                quotaBytes: running.retention.quotaBytes, segmentBytes: running.segmentBytes))
        monitor.locked {
            uploadInterval = running.uploadIntervalSeconds
            transactionInterval = running.transactionIntervalSeconds
            archiveMethod = running.archiveMethod
        }
    }

    /// Makes the ship thread check the limits that a policy changed.
    private func limitsChanged() {
        monitor.locked { haveLimitsChanged = true }
        wakeShipper()
    }

    func takesNewLimits() -> Bool {
        monitor.locked {
            defer { haveLimitsChanged = false }
            return haveLimitsChanged
        }
    }

    func policyLoop() {
        guard let policyKeeper else { return }
        if let kept = policyKeeper.begun {
            tell(kept, RunningLimits(settings, kept), from: "the store")
        }
        policyKeeper.run(
            apply: { [self] in apply($0, from: policyKeeper.source.origin) },
            report: { [self] in report($0) })
    }
}

extension Services {
    func setHTTP(host: Bool) {
        monitor.locked { unsafe HTTPSwitch.set(engine, host: host) }
    }
}
