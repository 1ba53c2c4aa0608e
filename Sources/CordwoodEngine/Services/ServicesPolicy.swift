// What a policy changes while an engine runs (B-SAP-9), and what holds without one. One at a time;
// any thread. A policy is checked before it comes here, so nothing of it can fail half way. It
// replaces the one before: what it does not name is as the host set it.

import CordwoodCore
import CordwoodShip
import CordwoodStore
import CordwoodTrace

/// The host's settings under a policy.
struct RunningLimits: Equatable, Sendable {
    var isUploadEnabled: Bool
    var retention: RetentionLimits
    var segmentBytes: UInt64
    var ringMax: UInt32
    var uploadIntervalSeconds: UInt32
    /// At most so often what is open is made an archive for the events in it.
    var transactionIntervalSeconds: UInt32

    private static let uploadIntervalSecondsDefault: UInt32 = 30
    private static let transactionIntervalSecondsDefault: UInt32 = 300

    init(_ settings: Settings, _ policy: PolicyDocument?) {
        let host = settings.options
        isUploadEnabled = policy?.isEnabled ?? true
        let quota = policy?.quotaBytes ?? host.quotaBytes
        retention = RetentionLimits(
            quotaBytes: quota, archivesMax: policy?.filesMax ?? host.archivesMax,
            expirationDays: policy?.expirationDays ?? host.expirationDays)
        let wanted = policy?.fileBytesMax ?? host.segmentBytes
        segmentBytes = Settings.segmentBytes(
            wanted == 0 ? Settings.segmentBytesDefault : wanted, quotaBytes: quota)
        ringMax = Settings.ringMax(segmentBytes: segmentBytes, quotaBytes: quota)
        let interval = policy?.uploadIntervalSeconds ?? host.uploadIntervalSeconds
        uploadIntervalSeconds =
            interval == 0 ? RunningLimits.uploadIntervalSecondsDefault : interval
        transactionIntervalSeconds =
            interval == 0 ? RunningLimits.transactionIntervalSecondsDefault : interval
    }
}

extension Services {
    /// In a store that is opened: what its last run was told, before the first record.
    func beginPolicy() {
        let kept = policyKeeper?.begin()
        // It was followed when it came.
        applying.locked { retryWord = kept?.retryQuarantined }
        put(kept)
    }

    /// A policy from the host. Throws where it is not valid; then nothing was changed.
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

    /// False: not all of it could be done; it is worth applying again.
    func apply(_ policy: PolicyDocument, from origin: String) -> Bool {
        put(policy)
        limitsChanged()
        tell(policy, from: origin)
        return retryQuarantined(policy, from: origin)
    }

    /// Once for each word; one that could not be followed counts as not given.
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

    private func tell(_ policy: PolicyDocument, from origin: String) {
        var fields: [(key: String, value: DiagnosticValue)] = [("origin", .text(origin))]
        let areNew = applying.locked {
            defer { unknownPolicyKeys = policy.unknownKeys }
            return unknownPolicyKeys != policy.unknownKeys
        }
        if areNew, !policy.unknownKeys.isEmpty {
            let keys = policy.unknownKeys.prefix(PolicyDocument.keysShownMax)
                .joined(separator: ", ")
            report(
                UploadDiagnostic(
                    level: 13, message: "a policy has keys that mean nothing here",
                    fields: fields + [("keys", .text(keys))]))
        }
        fields.append(("enabled", .text(policy.isEnabled == false ? "false" : "true")))
        report(UploadDiagnostic(level: 9, message: "a policy was applied", fields: fields))
    }

    private func put(_ policy: PolicyDocument?) {
        let running = RunningLimits(settings, policy)
        applying.locked {
            uploads.setLimits(running.retention)
            uploads.setEnabled(running.isUploadEnabled)
            setLimits(running)
            unsafe EngineCore.setSegmentBytes(
                engine, running.segmentBytes, ringMax: running.ringMax)
            _ = changeLevels {
                $0.following((policy?.levels ?? []).map { (prefix: $0.prefix, level: $0.number) })
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
        }
    }

    /// The ship thread looks at what a policy changed.
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
        if let kept = policyKeeper.begun { tell(kept, from: "the store") }
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
