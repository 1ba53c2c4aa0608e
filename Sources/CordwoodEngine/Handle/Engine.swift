// One open store, for Swift hosts and the C interface. Any thread may call anything at any time,
// also in a forked child. Handles stay safe after close: calls on them return `closed`.
// SAFETY: `block` is never unmapped. `slot` holds a retained Services; ClosedServices covers
// threads that read it while close empties it.

import CShims
import CordwoodCore
import CordwoodShip
import CordwoodStore
import CordwoodTrace

@safe public final class Engine: @unchecked Sendable {
    // SAFETY: block and settings never change; `slot` is one atomic word.
    package let block: EngineBlock
    /// The store's directory, absolute. For ":memory:", the place where the store lives until
    /// close.
    public let directory: String
    let store: OpenDirectory
    private let settings: Settings
    package let transactionTable = TransactionTable()
    /// Retained Services of this process; 0 once closed. A forked child replaces it.
    private let slot = UnsafeMutableRawPointer.allocate(byteCount: 8, alignment: 8)

    deinit { unsafe slot.deallocate() }

    /// Opens a store for writing. Creates it, and any missing parents, if it does not exist.
    /// directory nil: environment CORDWOOD_DIR. ":memory:" keeps everything in memory.
    public init(
        directory: String? = nil, options: EngineOptions = EngineOptions()
    ) throws(CordwoodError) {
        settings = try Settings(directory: directory, options: options)
        let path =
            settings.isMemory
            ? try MemoryStore.make() : try Directories.absolute(settings.directory)
        self.directory = path
        unsafe slot.storeBytes(of: 0, as: UInt64.self)
        let (store, lanes) = try Directories.openStore(
            path, consent: options.consent, groupReads: options.groupReads)
        self.store = store
        var memory: Int32 = -1
        if options.segmentsInMemory {
            memory = MemorySegments.openFolder()
            guard memory >= 0 else {
                FileCalls.close(lanes)
                throw CordwoodError(
                    memory == -Errno.ENOTSUP ? Status.unsupported : Status.of(errno: -memory),
                    "segments in memory: /dev/shm/cordwood-segments-\(Machine.userID())"
                        + " cannot be used")
            }
        }
        // If the system refuses the guard, the engine runs without it.
        if options.guardsAgainstBusErrors { _ = cwi_guard_install() }
        let name = options.processName ?? Environment.processName()
        var configuration = EngineCore.Configuration(
            lanesDirectory: lanes, segmentBytes: settings.segmentBytes,
            overflow: settings.options.overflow.rawValue, processName: Array(name.utf8),
            echoInLine: options.syncConsole && settings.console != .off,
            coarseClock: options.coarseClock, memoryDirectory: memory,
            ringMax: settings.ringMax, lanesPath: path + "/lanes")
        configuration.guards = options.guardsAgainstBusErrors
        configuration.holdsTime = options.holdsTime
        let opened = unsafe EngineCore.open(configuration)
        switch unsafe opened {
        case .failure(let error):
            FileCalls.close(lanes)
            FileCalls.close(memory)
            throw CordwoodError(error.status, "could not make an engine for \(path)")
        case .success(let block): unsafe self.block = block
        }
        try start()
    }

    private func start() throws(CordwoodError) {
        let process = unsafe cwi_process_get()!
        unsafe process.pointee.start_helper = { unsafe Engine.childStarts($0) }
        unsafe process.pointee.echo = { unsafe $0.flatMap { unsafe Engine.of($0) }?.echoInLine() }
        unsafe block.pointee.services = Unmanaged.passRetained(self).toOpaque()
        let services: Services
        do throws(CordwoodError) {
            services = try makeServices()
        } catch {
            unsafe block.pointee.services = nil
            unsafe Unmanaged.passUnretained(self).release()
            unsafe EngineCore.dispose(block)
            throw error
        }
        do throws(CordwoodError) {
            _ = try unsafe services.logger("")
            for (key, value) in Environment.resource() { try services.setResource(key, value) }
            let status = unsafe EngineCore.start(block)
            guard status == Status.ok else {
                throw CordwoodError(status, "could not make a lane in \(directory)/lanes")
            }
            store(services)
            services.tellWriteMode()
            try services.startThreads()
            try addEnvironmentTarget()
        } catch {
            _ = services.close(Deadline(afterMs: 1_000))
            throw error
        }
    }

    private func makeServices() throws(CordwoodError) -> Services {
        try unsafe Services(
            engine: block, settings: settings, store: store,
            levels: LevelTable(root: settings.rootLevel, settings.levels),
            transactions: transactionTable)
    }

    private func addEnvironmentTarget() throws(CordwoodError) {
        guard let url = Environment.value("CORDWOOD_TARGET"), !url.isEmpty else { return }
        do throws(CordwoodError) {
            _ = try addTarget(TargetOptions(url: url))
        } catch {
            // The host has passed no URL: without the variable's name it would search its own code.
            throw CordwoodError(error.status, "CORDWOOD_TARGET: \(error.text)")
        }
    }

    /// The engine of a block; nil after close.
    package static func of(_ block: EngineBlock) -> Engine? {
        guard let pointer = unsafe block.pointee.services else { return nil }
        return unsafe Unmanaged<Engine>.fromOpaque(pointer).takeUnretainedValue()
    }

    /// Gives the following records of all threads the present time, until that is let go or taken
    /// anew. Only with `EngineOptions.holdsTime`, and for a program that has one writing thread.
    package func holdTime() { unsafe Clock.hold(block) }

    package func letTimeGo() { unsafe Clock.letGo(block) }

    // MARK: Services of this process

    /// Also marks the lane with the services. The mark lies in memory that every child sees as
    /// zero, even after a raw clone(2): there the services belong to another process.
    private func store(_ services: Services) {
        let word = unsafe UInt64(UInt(bitPattern: Unmanaged.passRetained(services).toOpaque()))
        unsafe block.pointee.lane?.pointee.services_mark = services.mark
        // ORDER: release. Threads that find the services also see their contents (A13).
        unsafe cwa_store_release_u64(slot, word)
    }

    /// This process's services. In a forked child a new thread makes them, and the child's calls
    /// wait for it: if a lock of the language runtime was held at the fork, only that thread
    /// hangs.
    package func services() throws(CordwoodError) -> Services {
        if let services = try current() { return services }
        _ = unsafe EngineCore.makeLane(block)
        unsafe Engine.childStarts(block)
        let deadline = Deadline(afterMs: Engine.childWaitMs)
        while !deadline.hasPassed {
            if let services = try current() { return services }
            ThreadIdentity.pause(microseconds: 500)
        }
        throw CordwoodError(Status.timeout, "the engine did not start in this forked child")
    }

    private static let childWaitMs: UInt64 = 5_000

    /// nil: a forked child that has no services yet.
    private func current() throws(CordwoodError) -> Services? {
        // ORDER: acquire. Pairs with `store` (A13).
        let word = unsafe cwa_load_acquire_u64(slot)
        guard word != 0, let pointer = unsafe UnsafeRawPointer(bitPattern: UInt(word)) else {
            throw CordwoodError(Status.closed, "the engine is closed")
        }
        let services = unsafe Unmanaged<Services>.fromOpaque(pointer).takeUnretainedValue()
        return unsafe services.mark == block.pointee.lane?.pointee.services_mark ? services : nil
    }

    /// In a forked child, once: a thread of the engine's starts the child's services and threads.
    /// The parent's services are never touched: threads that are gone may hold their locks.
    private static func childStarts(_ block: UnsafeMutablePointer<cwi_engine>?) {
        guard let block = unsafe block, unsafe EngineCore.takesHelperStart(block),
            let engine = unsafe of(block)
        else { return }
        _ = EngineThread.start("cordwood-child") {
            guard let fresh = try? engine.makeServices() else { return }
            engine.store(fresh)
            try? fresh.startThreads()
        }
    }

    private func echoInLine() {
        guard let services = try? services() else { return }
        unsafe services.echo?.pump(lane: EngineCore.laneName(block))
    }

    // MARK: Loggers and levels

    /// The block of a logger. It lives as long as the process.
    package func loggerBlock(_ name: String) throws(CordwoodError) -> LoggerBlock {
        unsafe try services().logger(name)
    }

    /// Sets the threshold of a name and all dotted names below it.
    public func setLevel(_ level: Level, prefix: String = "") throws(CordwoodError) {
        try services().setLevel(prefix: prefix, level: level.number)
    }

    /// Applies a policy (B-SAP-9) given as a JSON object: levels, limits, and whether anything is
    /// uploaded. It replaces the previous policy. An invalid policy throws and changes nothing.
    public func applyPolicy(json: String) throws(CordwoodError) {
        try services().applyPolicy(json: Array(json.utf8))
    }

    public func applyPolicy(json: [UInt8]) throws(CordwoodError) {
        try services().applyPolicy(json: json)
    }

    /// Sets an attribute of the program that logs (service.name, user.id, …) for the records that
    /// follow; an empty value removes it. Values that change with each request belong in
    /// `Context`.
    public func setResource(_ key: String, _ value: String) throws(CordwoodError) {
        try services().setResource(key, value)
    }

    /// Opt-in, once per process: a fatal signal writes a last record at FATAL, with address and
    /// backtrace, under the logger `Cordwood.Crash`. The signal then goes on to the handler that
    /// was installed before, or to the core dump. See cw_crash_handler_install.
    public func installCrashHandler() throws(CordwoodError) {
        let logger = unsafe try loggerBlock(CrashRecord.loggerName)
        // The calling thread gets an alternate stack, to be freed when the thread ends.
        ThreadContext.registerThread()
        let status = unsafe CrashRecord.install(logger)
        guard status == Status.ok else {
            throw CordwoodError(
                status,
                status == Status.limit
                    ? "64 engines have the crash handler already"
                    : "no memory for the crash handler's stacks")
        }
    }

    // MARK: Flush, roll, archive

    public enum Durability: UInt32, Sendable { case process, machine }

    /// Makes every record whose call returned before this one as durable as requested. Without a
    /// timeout it waits as long as it takes.
    public func flush(
        _ durability: Durability = .process, timeout: Duration? = nil
    ) throws(CordwoodError) {
        let services = try services()
        unsafe services.echo?.pump(lane: EngineCore.laneName(block))
        guard durability == .machine, !settings.isMemory else { return }
        switch services.flushToMachine(Deadline(timeout)) {
        case .done(0): return
        case .done(let error):
            throw CordwoodError(
                Status.of(errno: error),
                "could not write and sync the journal in \(directory)/lanes: "
                    + systemText(error))
        case .timeout:
            throw CordwoodError(
                Status.timeout, "\(directory)/lanes: the journal's sync did not end in time")
        case .closed: throw CordwoodError(Status.closed, "the engine is closed")
        }
    }

    /// Seals the open segments, so that they are archived in the background.
    public func roll() throws(CordwoodError) { try services().roll() }

    /// Waits until everything sealed before the call is archived.
    public func archiveWait(timeout: Duration? = nil) throws(CordwoodError) {
        try services().archiveWait(Deadline(timeout))
    }

    // MARK: Uploading

    /// Adds a target for archives and returns its number.
    @discardableResult
    public func addTarget(
        _ options: TargetOptions, callbacks: TargetCallbacks = TargetCallbacks()
    ) throws(CordwoodError) -> UInt32 {
        let services = try services()
        do {
            let target = try Target(options, callbacks: callbacks)
            let number = try services.uploads.addTarget(target)
            services.noteOrigins()
            services.wakeShipper()
            return number
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }

    public func removeTarget(_ name: String) throws(CordwoodError) {
        do {
            let services = try services()
            defer { services.noteOrigins() }
            try services.uploads.removeTarget(name)
        } catch let error as UploadError {
            throw CordwoodError(error.status.rawValue, error.text)
        } catch {
            throw error as? CordwoodError ?? CordwoodError(Status.internal, "\(error)")
        }
    }

    /// Releases quarantined archives, which targets refused and the store keeps, for another
    /// attempt at the next occasion. Of an archive that was accepted except for some records, only
    /// those records are sent again.
    /// - Parameter target: nil: all targets.
    /// - Returns: the number of pairs of archive and target.
    @discardableResult
    public func retryQuarantined(target: String? = nil) throws(CordwoodError) -> Int {
        let uploads = try services().uploads
        do throws(UploadError) {
            return try uploads.retryQuarantined(target: target)
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }

    /// Seals, archives and sends everything that waits, with one attempt each. Returns cw_upload's
    /// status.
    package func upload(
        timeout: Duration?, result: inout UploadResult
    ) throws(CordwoodError) -> Int32 {
        try services().upload(Deadline(timeout), &result)
    }

    /// Like `upload`, but only for targets of the kind `transactions`; `records` counts the events.
    package func flushTransactions(
        timeout: Duration?, result: inout UploadResult
    ) throws(CordwoodError) -> Int32 {
        try services().upload(Deadline(timeout), kind: .transactions, &result)
    }

    /// Like the other `upload`, for Swift hosts. Throws if something was not sent.
    public func upload(timeout: Duration? = .seconds(60)) throws(CordwoodError) -> UploadResult {
        var result = UploadResult()
        let status = try upload(timeout: timeout, result: &result)
        guard status >= 0 else {
            throw uploadError(status, result)
        }
        return result
    }

    /// Shows byte for byte what the next upload to a target would carry, and sends nothing. Seals
    /// the open segments and waits until they are archived. Each body comes in pieces, and an empty
    /// piece ends it; the preview stops when `piece` returns false.
    /// - Returns: the number of bodies.
    public func uploadPreview(
        target number: UInt32, timeout: Duration? = .seconds(60),
        piece: (UnsafeRawBufferPointer) -> Bool
    ) throws(CordwoodError) -> Int {
        let services = try services()
        guard let target = services.uploads.target(number) else {
            throw CordwoodError(Status.notFound, "no target has the number \(number)")
        }
        guard !services.isOwnThread else {
            throw CordwoodError(Status.busy, "a callback cannot wait for what it holds up")
        }
        try services.prepareUpload(Deadline(timeout))
        do throws(UploadError) {
            var isFirst = true
            var goesOn = true
            let count = try unsafe services.uploads.plan(
                target,
                begin: { _ in
                    if !isFirst { goesOn = unsafe piece(Bytes.none) }
                    isFirst = false
                    return goesOn
                },
                piece: {
                    goesOn = unsafe piece($0)
                    return goesOn
                })
            if count > 0 && goesOn { _ = unsafe piece(Bytes.none) }
            return count
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }

    /// Like `upload`, but on an engine thread; `done` gets the status and the result.
    package func beginUpload(
        _ done: (@Sendable (Int32, UploadResult) -> Void)?
    ) throws(CordwoodError) {
        guard try services().uploadAsync(done) else {
            throw CordwoodError(Status.busy, "an upload is under way already")
        }
    }

    /// Sets and stores the store's consent. Denied removes everything that is not sent yet.
    public func setConsent(_ consent: Consent) throws(CordwoodError) {
        let services = try services()
        do {
            _ = try StoreFile.setConsent(storeDirectory: FilePath(store), to: consent)
            services.follow(consent)
            if consent == .denied { _ = try services.uploads.removeWaiting() }
        } catch {
            throw CordwoodError(error.status.rawValue, error.text)
        }
    }

    // MARK: Stats and close

    public struct Stats: Sendable {
        public var lanes: UInt32 = 0
        public var recordsWritten: UInt64 = 0
        public var recordsDropped: UInt64 = 0
        public var bytesWritten: UInt64 = 0
        public var slowAppends: UInt64 = 0
        public var segmentsSealed: UInt64 = 0
        public var segmentsRecovered: UInt64 = 0
        public var archivesWritten: UInt64 = 0
        public var archiveBytesIn: UInt64 = 0
        public var archiveBytesOut: UInt64 = 0
        public var archivesRemoved: UInt64 = 0
        public var uploadsSucceeded: UInt64 = 0
        public var uploadsFailed: UInt64 = 0
        public var uploadBytes: UInt64 = 0
        public var segmentsReused: UInt64 = 0
        public var recordsRefused: UInt64 = 0
        /// The part of `recordsDropped` for which the disk had no space.
        public var droppedDiskFull: UInt64 = 0
        /// The user's disk quota was used up.
        public var droppedDiskQuota: UInt64 = 0
        /// The store's quota was reached.
        public var droppedStoreQuota: UInt64 = 0
        /// RLIMIT_FSIZE was reached.
        public var droppedFileLimit: UInt64 = 0
        /// No file descriptor was free.
        public var droppedDescriptors: UInt64 = 0
        /// Memory ran out.
        public var droppedMemory: UInt64 = 0
        /// No segment was ready, and the engine does not wait (`Overflow.drop`, or sealing is
        /// far behind).
        public var droppedNotReady: UInt64 = 0
        /// The system refused access.
        public var droppedPermission: UInt64 = 0
        /// Anything else.
        public var droppedOther: UInt64 = 0
    }

    /// Counts since open.
    public func stats() throws(CordwoodError) -> Stats {
        let services = try services()
        let counts = unsafe EngineCore.counts(block)
        let totals = services.totals
        let uploads = services.uploads.totals
        var stats = Stats()
        stats.lanes = UInt32(LaneListing(directory: FilePath(store)).lanes.count)
        stats.recordsWritten = counts.records
        stats.recordsDropped = counts.dropped
        stats.bytesWritten = counts.bytes
        stats.slowAppends = counts.slow
        stats.segmentsSealed = totals.segmentsSealed
        stats.segmentsRecovered = totals.segmentsRecovered
        stats.archivesWritten = UInt64(totals.archiving.archives)
        stats.archiveBytesIn = totals.archiving.bytesIn
        stats.archiveBytesOut = totals.archiving.bytesOut
        stats.archivesRemoved = uploads.archivesRemoved
        stats.uploadsSucceeded = uploads.succeeded
        stats.uploadsFailed = uploads.failed
        stats.uploadBytes = uploads.bytes
        stats.segmentsReused = totals.segmentsReused
        stats.recordsRefused = uploads.refused
        stats.droppedDiskFull = counts.causes[.diskFull] ?? 0
        stats.droppedDiskQuota = counts.causes[.diskQuota] ?? 0
        stats.droppedStoreQuota = counts.causes[.storeQuota] ?? 0
        stats.droppedFileLimit = counts.causes[.fileLimit] ?? 0
        stats.droppedDescriptors = counts.causes[.descriptors] ?? 0
        stats.droppedMemory = counts.causes[.memory] ?? 0
        stats.droppedNotReady = counts.causes[.notReady] ?? 0
        stats.droppedPermission = counts.causes[.permission] ?? 0
        stats.droppedOther = counts.causes[.other] ?? 0
        return stats
    }

    /// Seals everything and stops the engine's threads; later calls report `closed`. Idempotent.
    /// Returns false if a thread is still busy after the timeout; it finishes by itself. Throws
    /// `timeout`, and closes nothing, in a forked child whose helper does not start (RELIABILITY).
    @discardableResult
    public func close(timeout: Duration? = .seconds(10)) throws(CordwoodError) -> Bool {
        let services: Services
        do throws(CordwoodError) {
            services = try self.services()
        } catch {
            guard error.status == Status.timeout else { return true }
            throw error
        }
        guard !services.isOwnThread else {
            throw CordwoodError(Status.busy, "an engine cannot be closed from its own callback")
        }
        guard unsafe cwa_exchange_u64(slot, 0) != 0 else { return true }
        unsafe HTTPSwitch.close(block)
        let ended = services.close(Deadline(timeout))
        ClosedServices.keep(services)
        return ended
    }
}

/// Keeps the engines that were closed last. Another thread may have read an engine's slot just
/// before close emptied it without having retained the services yet, or may be inside a call on the
/// block. The services are therefore released only after 64 more closes. The Engine object, whose
/// address the block holds, is released only 64 closes after that.
private enum ClosedServices {
    private static let count = 64
    // SAFETY: a ring of services and one of engines, each an index and `count` atomic words that
    // hold retained references; never freed.
    nonisolated(unsafe) private static let words: UnsafeMutableRawPointer = {
        let bytes = (count + 1) * 16
        let words = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: 8)
        unsafe words.initializeMemory(as: UInt64.self, repeating: 0, count: bytes / 8)
        return unsafe words
    }()

    /// Takes over the reference that the slot held.
    static func keep(_ services: Services) {
        let word = unsafe UInt(bitPattern: Unmanaged.passUnretained(services).toOpaque())
        guard let pointer = unsafe put(word, in: words) else { return }
        let oldest = unsafe Unmanaged<Services>.fromOpaque(pointer).takeRetainedValue()
        let engine = unsafe UInt(bitPattern: oldest.engine.pointee.services)
        guard oldest.isFinished else { return }
        unsafe EngineCore.retire(oldest.engine)
        guard let gone = unsafe put(engine, in: words + (count + 1) * 8) else { return }
        unsafe Unmanaged<Engine>.fromOpaque(gone).release()
    }

    /// Puts a reference into the ring and returns the oldest one, which it replaces.
    private static func put(
        _ word: UInt, in ring: UnsafeMutableRawPointer
    ) -> UnsafeRawPointer? {
        let index = unsafe Int(cwa_add_u64(ring, 1) % UInt64(count)) + 1
        let oldest = unsafe cwa_exchange_u64(ring + index * 8, UInt64(word))
        return unsafe UnsafeRawPointer(bitPattern: UInt(oldest))
    }
}
