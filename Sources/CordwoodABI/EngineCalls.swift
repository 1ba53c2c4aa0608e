// Open, roll, flush, close, loggers and levels: check, convert, call, return.
// SAFETY: pointers are the host's and hold during the call; NULL and sizes are checked before one
// is followed, strings and structs are copied.

import CCordwood
import CordwoodCore
import CordwoodEngine
import CordwoodFormats
import CordwoodShip
import CordwoodStore
import CordwoodTrace

/// The engine of a C handle, or the status to return.
func engine(_ handle: OpaquePointer?) throws(CordwoodError) -> Engine {
    guard let handle = unsafe handle else {
        throw CordwoodError(Status.argument, "the engine is NULL")
    }
    guard let engine = unsafe Engine.of(EngineBlock(handle)) else {
        throw CordwoodError(Status.closed, "the engine is closed")
    }
    return engine
}

@_cdecl("cw_options_init") @implementation
public func cw_options_init(_ options: UnsafeMutablePointer<cw_options>!, _ size: Int) {
    guard let options = unsafe options, unsafe Stamped.fits(size, cw_options.self) else { return }
    var defaults = unsafe cw_options()
    unsafe defaults.struct_size = UInt32(truncatingIfNeeded: size)
    unsafe defaults.level = UInt32(CW_LEVEL_INFO)
    unsafe defaults.segment_bytes = 16 << 20
    unsafe defaults.roll_age_s = 86_400
    unsafe defaults.quota_bytes = 5 << 30
    unsafe defaults.expiration_days = 30
    unsafe defaults.codec_level = 3
    unsafe defaults.upload_interval_s = 30
    unsafe Stamped.write(defaults, to: options, size: size)
}

@_cdecl("cw_open") @implementation
public func cw_open(
    _ options: UnsafePointer<cw_options>!, _ out: UnsafeMutablePointer<OpaquePointer?>!
) -> cw_status {
    guard let options = unsafe options, let out = unsafe out else {
        return failed(Status.argument, "cw_open: a pointer is NULL")
    }
    var copy = unsafe cw_options()
    if let wrong = unsafe Stamped.read(options, into: &copy) { return failed(wrong) }
    return status { () throws(CordwoodError) in
        let engine = try unsafe Engine(
            directory: CText.string(copy.directory), options: try Options.convert(copy))
        unsafe out.pointee = OpaquePointer(engine.block)
        return Status.ok
    }
}

enum Options {
    static func convert(_ options: cw_options) throws(CordwoodError) -> EngineOptions {
        var result = EngineOptions()
        result.processName = unsafe CText.string(options.process_name)
        let level = try unsafe threshold(options.level)
        // The default means that the host set none: CORDWOOD_LEVEL may fill it.
        result.level = level == .info ? nil : level
        result.segmentBytes = unsafe options.segment_bytes
        result.rollAgeSeconds = unsafe options.roll_age_s
        result.quotaBytes = unsafe options.quota_bytes
        result.archivesMax = unsafe options.archives_max
        result.expirationDays = unsafe options.expiration_days
        result.codec = try unsafe word(
            Codec(rawValue: UInt8(clamping: options.codec)), "codec", options.codec)
        result.codecLevel = unsafe options.codec_level
        result.archiveMethod = try unsafe word(
            ArchiveMethod.allCases.first { unsafe number($0) == options.archive_method },
            "archive_method", options.archive_method)
        result.archiveTimeStepNs = unsafe options.archive_time_step_ns
        result.consent = try unsafe word(
            Consent(rawValue: options.consent), "consent", options.consent)
        result.overflow = try unsafe word(
            Overflow(rawValue: options.overflow), "overflow", options.overflow)
        let console = try unsafe word(
            Console(rawValue: options.console), "console", options.console)
        result.console = console == .off ? nil : console
        guard unsafe options.console_level <= 24 else {
            throw unsafe CordwoodError(
                Status.level, "console_level \(options.console_level) is over 24")
        }
        result.consoleLevel = unsafe UInt8(options.console_level)
        let known = UInt32(
            CW_FLAG_SYNC_CONSOLE | CW_FLAG_COARSE_CLOCK | CW_FLAG_TMPFS | CW_FLAG_SIGBUS_GUARD
                | CW_FLAG_GROUP_READ)
        guard unsafe options.flags & ~known == 0 else {
            throw unsafe CordwoodError(Status.argument, "flags \(options.flags) has unknown bits")
        }
        result.segmentsInMemory = unsafe options.flags & UInt32(CW_FLAG_TMPFS) != 0
        result.guardsAgainstBusErrors = unsafe options.flags & UInt32(CW_FLAG_SIGBUS_GUARD) != 0
        result.groupReads = unsafe options.flags & UInt32(CW_FLAG_GROUP_READ) != 0
        result.coarseClock = unsafe options.flags & UInt32(CW_FLAG_COARSE_CLOCK) != 0
        result.syncConsole = unsafe options.flags & UInt32(CW_FLAG_SYNC_CONSOLE) != 0
        result.uploadIntervalSeconds = unsafe options.upload_interval_s
        result.encryptTo = unsafe CText.string(options.encrypt_to)
        result.identityFile = unsafe CText.string(options.identity_file)
        result.policy = unsafe policy(options)
        result.policyAllow = unsafe PolicyAllowance(rawValue: options.policy_allow)
        guard result.policyAllow.isSubset(of: .all) else {
            throw unsafe CordwoodError(
                Status.argument, "policy_allow \(options.policy_allow) has unknown bits")
        }
        if let removed = unsafe options.archive_removed {
            let user = unsafe HostPointer(value: options.user)
            result.archiveRemoved = { archive, reason in
                unsafe removed(user.value, archive, reason.rawValue)
            }
        }
        return result
    }

    private static func number(_ method: ArchiveMethod) -> UInt32 {
        switch method {
        case .dense: UInt32(CW_ARCHIVE_DENSE)
        case .plain: UInt32(CW_ARCHIVE_PLAIN)
        }
    }

    private static func policy(_ options: cw_options) -> PolicyOptions? {
        guard let url = unsafe CText.string(options.policy_url), !url.isEmpty else { return nil }
        var policy = PolicyOptions(url: url)
        policy.headers = unsafe CText.string(options.policy_headers)
        policy.caFile = unsafe CText.string(options.policy_ca_file)
        policy.intervalSeconds = unsafe options.policy_interval_s
        return policy
    }

    static func threshold(_ number: UInt32) throws(CordwoodError) -> Level {
        if number == UInt32(CW_LEVEL_OFF) { return .off }
        guard let level = Level(number: UInt8(clamping: number)) else {
            throw CordwoodError(Status.level, "level \(number) is outside 1…24 and is not 255")
        }
        return level
    }

    private static func word<T>(
        _ value: T?, _ name: String, _ number: UInt32
    ) throws(CordwoodError) -> T {
        guard let value else {
            throw CordwoodError(Status.argument, "\(name) \(number) is not a value of that enum")
        }
        return value
    }
}

@_cdecl("cw_resource_set") @implementation
public func cw_resource_set(
    _ handle: OpaquePointer!, _ key: UnsafePointer<CChar>!, _ value: UnsafePointer<CChar>!
) -> cw_status {
    status { () throws(CordwoodError) in
        guard let key = unsafe key, let value = unsafe value else {
            throw CordwoodError(Status.argument, "cw_resource_set: key or value is NULL")
        }
        try unsafe engine(handle).setResource(String(cString: key), String(cString: value))
        return Status.ok
    }
}

@_cdecl("cw_crash_handler_install") @implementation
public func cw_crash_handler_install(_ handle: OpaquePointer!) -> cw_status {
    status { () throws(CordwoodError) in
        try unsafe engine(handle).installCrashHandler()
        return Status.ok
    }
}

@_cdecl("cw_flush") @implementation
public func cw_flush(
    _ handle: OpaquePointer!, _ durability: cw_durability, _ timeout: UInt32
) -> cw_status {
    status { () throws(CordwoodError) in
        guard let level = Engine.Durability(rawValue: durability.rawValue) else {
            throw CordwoodError(
                Status.argument, "cw_flush: durability \(durability.rawValue) is not known")
        }
        try unsafe engine(handle).flush(level, timeout: Duration(ms: timeout))
        return Status.ok
    }
}

@_cdecl("cw_roll") @implementation
public func cw_roll(_ handle: OpaquePointer!) -> cw_status {
    status { () throws(CordwoodError) in
        try unsafe engine(handle).roll()
        return Status.ok
    }
}

@_cdecl("cw_archive_wait") @implementation
public func cw_archive_wait(_ handle: OpaquePointer!, _ timeout: UInt32) -> cw_status {
    status { () throws(CordwoodError) in
        try unsafe engine(handle).archiveWait(timeout: Duration(ms: timeout))
        return Status.ok
    }
}

@_cdecl("cw_stats_get") @implementation
public func cw_stats_get(
    _ handle: OpaquePointer!, _ out: UnsafeMutablePointer<cw_stats>!, _ size: Int
) -> cw_status {
    status { () throws(CordwoodError) in
        guard let out = unsafe out else {
            throw CordwoodError(Status.argument, "cw_stats_get: out is NULL")
        }
        guard Stamped.fits(size, cw_stats.self) else {
            throw CordwoodError(
                Status.structSize, "cw_stats_get: size_of_stats is \(sizeText(size))")
        }
        let stats = try unsafe engine(handle).stats()
        var result = cw_stats()
        result.struct_size = UInt32(truncatingIfNeeded: size)
        result.lanes = stats.lanes
        result.records_written = stats.recordsWritten
        result.records_dropped = stats.recordsDropped
        result.bytes_written = stats.bytesWritten
        result.slow_appends = stats.slowAppends
        result.segments_sealed = stats.segmentsSealed
        result.segments_recovered = stats.segmentsRecovered
        result.archives_written = stats.archivesWritten
        result.archive_bytes_in = stats.archiveBytesIn
        result.archive_bytes_out = stats.archiveBytesOut
        result.archives_removed = stats.archivesRemoved
        result.uploads_succeeded = stats.uploadsSucceeded
        result.uploads_failed = stats.uploadsFailed
        result.upload_bytes = stats.uploadBytes
        result.segments_reused = stats.segmentsReused
        result.records_refused = stats.recordsRefused
        result.dropped_disk_full = stats.droppedDiskFull
        result.dropped_disk_quota = stats.droppedDiskQuota
        result.dropped_store_quota = stats.droppedStoreQuota
        result.dropped_file_limit = stats.droppedFileLimit
        result.dropped_descriptors = stats.droppedDescriptors
        result.dropped_memory = stats.droppedMemory
        result.dropped_not_ready = stats.droppedNotReady
        result.dropped_permission = stats.droppedPermission
        result.dropped_other = stats.droppedOther
        unsafe Stamped.write(result, to: out, size: size)
        return Status.ok
    }
}

@_cdecl("cw_close") @implementation
public func cw_close(
    _ handle: UnsafeMutablePointer<OpaquePointer?>!, _ timeout: UInt32
) -> cw_status {
    guard let handle = unsafe handle else {
        return failed(Status.argument, "cw_close: engine is NULL")
    }
    guard let block = unsafe handle.pointee else { return Status.ok }
    return status { () throws(CordwoodError) in
        let ended = try unsafe engine(block).close(timeout: Duration(ms: timeout))
        unsafe handle.pointee = nil
        guard ended else {
            throw CordwoodError(
                Status.timeout, "closed; the helper is still busy and ends by itself")
        }
        return Status.ok
    }
}

@_cdecl("cw_logger_get") @implementation
public func cw_logger_get(
    _ handle: OpaquePointer!, _ name: UnsafePointer<CChar>!,
    _ out: UnsafeMutablePointer<OpaquePointer?>!
) -> cw_status {
    status { () throws(CordwoodError) in
        guard let name = unsafe name, let out = unsafe out else {
            throw CordwoodError(Status.argument, "cw_logger_get: name or out is NULL")
        }
        unsafe out.pointee = OpaquePointer(
            try engine(handle).loggerBlock(String(cString: name)))
        return Status.ok
    }
}

@_cdecl("cw_level_set") @implementation
public func cw_level_set(
    _ handle: OpaquePointer!, _ prefix: UnsafePointer<CChar>!, _ level: cw_level
) -> cw_status {
    status { () throws(CordwoodError) in
        guard let prefix = unsafe prefix else {
            throw CordwoodError(Status.argument, "cw_level_set: name_prefix is NULL")
        }
        let threshold = try Options.threshold(level)
        let text = unsafe String(cString: prefix)
        guard text.utf8.count <= 255 else {
            throw CordwoodError(Status.limit, "cw_level_set: the prefix has over 255 bytes")
        }
        try unsafe engine(handle).setLevel(threshold, prefix: text)
        return Status.ok
    }
}

@_cdecl("cw_policy_apply") @implementation
public func cw_policy_apply(
    _ handle: OpaquePointer!, _ json: UnsafePointer<CChar>!, _ length: Int
) -> cw_status {
    status { () throws(CordwoodError) in
        let engine = try unsafe engine(handle)
        guard let json = unsafe json else {
            throw CordwoodError(Status.argument, "cw_policy_apply: json is NULL")
        }
        guard length >= 0 else {
            throw CordwoodError(
                Status.argument, "cw_policy_apply: the length is \(sizeText(length))")
        }
        guard length <= PolicyDocument.bytesMax else {
            throw CordwoodError(
                Status.limit,
                "cw_policy_apply: the policy has \(length) bytes, over \(PolicyDocument.bytesMax)")
        }
        let bytes = unsafe Array(UnsafeRawBufferPointer(start: json, count: length))
        try engine.applyPolicy(json: bytes)
        return Status.ok
    }
}

@_cdecl("cw_consent_set") @implementation
public func cw_consent_set(_ handle: OpaquePointer!, _ consent: cw_consent) -> cw_status {
    status { () throws(CordwoodError) in
        guard let value = Consent(rawValue: consent) else {
            throw CordwoodError(Status.argument, "cw_consent_set: \(consent) is no consent")
        }
        try unsafe engine(handle).setConsent(value)
        return Status.ok
    }
}
