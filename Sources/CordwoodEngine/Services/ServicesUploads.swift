// Uploads that the host requests, and reports from the background about uploads.

import CShims
import CordwoodCore
import CordwoodShip
import CordwoodStore
import CordwoodTrace

extension Services {
    /// Archives everything written so far and tries every waiting archive once.
    /// - Parameter kind: nil: targets of every kind.
    func upload(
        _ deadline: Deadline, kind: TargetKind? = nil, _ result: inout UploadResult
    ) throws(CordwoodError) -> Int32 {
        // In a callback: whatever the upload would wait for is itself waiting for the callback.
        if uploads.isPassing || limits.isRunningHere || isShipper { return Status.busy }
        return try uploads.holdingBackground { () throws(CordwoodError) in
            // From here on, the work of a background run under way counts as part of this call.
            let before = uploads.totals
            try prepareUpload(deadline)
            let status = uploads.pass(
                explicit: true, kind: kind, deadlineMonotonicMs: deadline.monotonicMs,
                result: &result
            ).rawValue
            if kind == .transactions {
                // Work for other targets meanwhile does not count for this call.
                let after = uploads.totals
                result.records = max(result.records, after.events &- before.events)
                result.refused = max(
                    result.refused,
                    UInt32(truncatingIfNeeded: after.eventsRefused &- before.eventsRefused))
                result.quarantined = max(
                    result.quarantined,
                    UInt32(truncatingIfNeeded: after.eventsQuarantined &- before.eventsQuarantined))
                if result.quarantined > 0 { return status >= 0 ? Status.upload : status }
                return status == Status.end && result.records > 0 ? Status.ok : status
            }
            return Services.add(uploads.totals, since: before, to: &result, status)
        }
    }

    private static func add(
        _ after: UploadTotals, since before: UploadTotals, to result: inout UploadResult,
        _ status: Int32
    ) -> Int32 {
        let sent = UInt32(truncatingIfNeeded: after.succeeded &- before.succeeded)
        if sent > result.uploaded {
            result.uploaded = sent
            result.bytesSent = after.bytes &- before.bytes
            if result.lastOutcome == .none {
                result.lastOutcome = .success
                result.lastHTTPStatus = after.lastTakenHTTPStatus
            }
        }
        result.records = max(result.records, after.records &- before.records)
        result.refused = max(
            result.refused, UInt32(truncatingIfNeeded: after.refused &- before.refused))
        let quarantined = UInt32(truncatingIfNeeded: after.quarantined &- before.quarantined)
        result.quarantined = max(result.quarantined, quarantined)
        if quarantined > result.failed {
            result.failed = quarantined
            if result.lastOutcome == .none {
                result.lastOutcome = after.lastRefusal.outcome
                result.lastHTTPStatus = after.lastRefusal.httpStatus
            }
            return status >= 0 ? Status.upload : status
        }
        return status == Status.end && sent > 0 ? Status.ok : status
    }

    /// Archives everything written before the call, including the records of dead processes.
    func prepareUpload(_ deadline: Deadline) throws(CordwoodError) {
        adoption.now(deadline) { wakeShipper() }
        try rollForUpload()
        try archiveWait(deadline)
        let bytes = uploadRoomBytes
        guard hasRoom(bytes) else { throw Services.noRoom(bytes) }
    }

    /// Like `upload`, but on a thread of its own. False: an upload is already under way.
    func uploadAsync(
        _ done: (@Sendable (Int32, UploadResult) -> Void)?
    ) throws(CordwoodError) -> Bool {
        let begins = monitor.locked {
            defer { isAsyncUploading = true }
            return !isAsyncUploading
        }
        guard begins else { return false }
        let started = startThread("cordwood-upload") { [self] in
            var result = UploadResult()
            var status = Status.ok
            do throws(CordwoodError) {
                status = try upload(Deadline.never, &result)
            } catch {
                status = error.status
            }
            monitor.locked { isAsyncUploading = false }
            done?(status, result)
        }
        if !started {
            monitor.locked { isAsyncUploading = false }
            throw CordwoodError(Status.memory, "the system gave no thread")
        }
        return true
    }

    /// Reports once per open that records cost system calls here, and why (R14).
    func tellWriteMode() {
        guard unsafe engine.pointee.write_mode != 0 else { return }
        let system = unsafe FileSystem(engine.pointee.lanes_fd)
        let cause =
            system.kind == .mapped
            ? "it has no preallocation" : "its mappings are not known to keep what they are told"
        let info: UInt8 = 9
        report(
            UploadDiagnostic(
                level: info, message: "records are written by pwrite(2) on this file system",
                fields: [("file_system", .text(system.name)), ("cause", .text(cause))]),
            as: "Cordwood.Engine")
    }

    /// Counts the records that are a reason to roll.
    func hostRecords() -> UInt64 {
        let uncounted = unsafe Uncounted.count(engine) &- uncountedBefore
        let all = unsafe EngineCore.counts(engine).records
        return all &- min(all, uncounted)
    }

    /// The age at which a segment is sealed. Where there are only records that are no reason to
    /// roll, an hour bounds what they make each other cost.
    package static func rollAge(_ wantedNs: UInt64, hasHostRecords: Bool) -> UInt64 {
        hasHostRecords ? wantedNs : max(wantedNs, 3_600_000_000_000)
    }

    /// Tells capture which exchanges may be uploads.
    func noteOrigins() {
        // Read under the lock too: the call that stores last has the latest.
        monitor.locked {
            let origins = uploads.origins.map {
                HTTPOrigins.Origin($0.origin, isSentToByHost: $0.isHostTransport)
            }
            unsafe HTTPOrigins.set(engine, origins)
        }
    }

    /// Writes one line of the engine's own log.
    /// - Parameter isOwed: whatever the logger's threshold is.
    func report(_ diagnostic: UploadDiagnostic, as name: String, isOwed: Bool = false) {
        guard let logger = try? unsafe logger(name) else { return }
        let fields = diagnostic.fields.map { field -> (String, FieldInput) in
            switch field.value {
            case .text(let text): return (field.key, .string(text))
            case .number(let number): return (field.key, .int(number))
            }
        }
        let words = unsafe cwi_tls_get()!
        unsafe words.pointee.helper |= UInt8(CWI_HELPER_WRITES)
        unsafe Uncounted.begin(engine)
        let status = unsafe RecordWriter.write(
            logger, level: diagnostic.level, message: diagnostic.message, fields: fields,
            isOwed: isOwed)
        unsafe Uncounted.end(engine, status)
        unsafe words.pointee.helper &= ~UInt8(CWI_HELPER_WRITES)
    }
}

extension Services: UploadDelegate {
    static let uploaderName = "Cordwood.Uploader"

    package func report(_ diagnostic: UploadDiagnostic) {
        report(diagnostic, as: Services.uploaderName)
    }

    /// Close waits for it.
    package func startUploadThread(_ body: @escaping @Sendable () -> Void) -> Bool {
        startThread("cordwood-upload", body)
    }

    package func policyWanted() { policyKeeper?.lookSoon() }

    /// Work that arrived meanwhile may go out now.
    package func uploadRunEnded() {
        monitor.locked { hasRunEnded = true }
        wakeShipper()
    }

    package func uploadsReplanned() { wakeShipper() }

    package func archiveRemoved(_ archiveName: String, _ reason: RemovalReason) {
        settings.options.archiveRemoved?(archiveName, reason)
    }

    package var hearsRemovals: Bool { settings.options.archiveRemoved != nil }
}
