// The identity of this machine, boot and process, its clocks, limits and environment. A forked
// child reads again what an open reads, so that part uses no heap: all except what returns strings.
// SAFETY: buffers lie on the stack, and no more of them is read than the system call returned.

import CShims
import Glibc

package enum Machine {
    /// The running kernel's boot id as 16 raw bytes; zero if it cannot be read.
    package static func bootID() -> (high: UInt64, low: UInt64) {
        uuid("/proc/sys/kernel/random/boot_id")
    }

    package static func machineID() -> (high: UInt64, low: UInt64) { uuid("/etc/machine-id") }

    /// Writes the machine's own name for itself and returns its length; 0 if it has none.
    static func hostName(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        var names = utsname()
        guard unsafe uname(&names) == 0 else { return 0 }
        return unsafe withUnsafeBytes(of: &names.nodename) { name in
            let count = unsafe min(name.firstIndex(of: 0) ?? name.count, buffer.count)
            unsafe buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: name[..<count]))
            return count
        }
    }

    package static func hostName() -> String {
        unsafe withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { buffer in
            let count = unsafe hostName(buffer)
            return unsafe String(
                decoding: UnsafeRawBufferPointer(rebasing: buffer[..<count]), as: UTF8.self)
        }
    }

    /// The program has more rights than its caller: set-user-ID, set-group-ID, or capabilities of
    /// its file. The environment is still the caller's.
    package static var isPrivileged: Bool { cw_is_privileged() }

    /// A variable of the process's environment; nil in a privileged program. The only function that
    /// reads one.
    package static func environment(_ name: String) -> String? {
        isPrivileged ? nil : unsafe getenv(name).map { unsafe String(cString: $0) }
    }

    package static func processID() -> UInt32 { UInt32(getpid()) }

    /// The user as whom the process acts.
    package static func userID() -> UInt32 { geteuid() }

    /// The user who started it.
    static func realUserID() -> UInt32 { getuid() }

    package static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

    package static func realtimeNs() -> UInt64 { cw_realtime_ns() }
    package static func monotonicNs() -> UInt64 { cw_monotonic_ns() }

    /// The clocks of the initial time namespace, which is what files hold (FORMAT §4): records of
    /// one boot are ordered whatever namespace their process is in. Elsewhere, times that are only
    /// compared with one another stay those of the process.
    package static func sharedMonotonicNs() -> UInt64 { shared(monotonic: cw_monotonic_ns()) }

    package static func sharedCoarseNs() -> UInt64 { shared(monotonic: cw_coarse_ns()) }

    package static func sharedBoottimeNs() -> UInt64 {
        shared(boottime: cw_clock_ns(CLOCK_BOOTTIME))
    }

    // ORDER: relaxed. Every look at the namespace finds the same numbers (A43).
    static func shared(monotonic ns: UInt64) -> UInt64 {
        unsafe ns &- cwa_load_relaxed_u64(cwi_process_monotonic_ahead_at(cwi_process_get()!))
    }

    /// The other way round.
    package static func own(monotonic ns: UInt64) -> UInt64 {
        unsafe ns &+ cwa_load_relaxed_u64(cwi_process_monotonic_ahead_at(cwi_process_get()!))
    }

    static func shared(boottime ns: UInt64) -> UInt64 {
        unsafe ns &- cwa_load_relaxed_u64(cwi_process_boottime_ahead_at(cwi_process_get()!))
    }

    /// Learns how far the clocks of this process's time namespace are ahead. Without /proc, or in a
    /// process that has left its namespace for its children only, they count as the machine's.
    package static func readTimeNamespace() {
        var ahead: (monotonic: UInt64, boottime: UInt64) = (0, 0)
        if isInTimeNamespaceOfChildren {
            unsafe withUnsafeTemporaryAllocation(byteCount: 256, alignment: 8) { buffer in
                let count = unsafe FileCalls.readSmall("/proc/self/timens_offsets", buffer)
                unsafe ahead = offsets(
                    UnsafeRawBufferPointer(rebasing: buffer[..<max(0, count)]))
            }
        }
        let process = unsafe cwi_process_get()!
        unsafe cwa_store_relaxed_u64(cwi_process_monotonic_ahead_at(process), ahead.monotonic)
        unsafe cwa_store_relaxed_u64(cwi_process_boottime_ahead_at(process), ahead.boottime)
    }

    /// Only then does /proc/self/timens_offsets say something about this process.
    private static var isInTimeNamespaceOfChildren: Bool {
        var (own, children) = (stat(), stat())
        return unsafe stat("/proc/self/ns/time", &own) == 0
            && stat("/proc/self/ns/time_for_children", &children) == 0
            && own.st_ino == children.st_ino
    }

    /// Lines `monotonic <seconds> <nanoseconds>` and `boottime …`; the seconds may be negative.
    static func offsets(
        _ text: UnsafeRawBufferPointer
    ) -> (monotonic: UInt64, boottime: UInt64) {
        var found: (monotonic: UInt64, boottime: UInt64) = (0, 0)
        var at = 0
        func number() -> UInt64 {
            while at < text.count, unsafe text[at] == UInt8(ascii: " ") { at += 1 }
            let isNegative = unsafe at < text.count && text[at] == UInt8(ascii: "-")
            if isNegative { at += 1 }
            var value: UInt64 = 0
            while at < text.count, case let digit = unsafe text[at] &- UInt8(ascii: "0"),
                digit < 10
            {
                value = value &* 10 &+ UInt64(digit)
                at += 1
            }
            return isNegative ? 0 &- value : value
        }
        while at < text.count {
            let clock = unsafe text[at]
            while at < text.count, unsafe text[at] > UInt8(ascii: " ") { at += 1 }
            let ahead = number() &* 1_000_000_000 &+ number()
            if clock == UInt8(ascii: "m") { found.monotonic = ahead }
            if clock == UInt8(ascii: "b") { found.boottime = ahead }
            while at < text.count, unsafe text[at] != UInt8(ascii: "\n") { at += 1 }
            at += 1
        }
        return found
    }

    /// The names that uname(2) gives: of the machine, its system, the system's release, the
    /// processor.
    package static func words() -> (host: String, system: String, release: String, kind: String)? {
        var names = utsname()
        guard unsafe uname(&names) == 0 else { return nil }
        return (
            text(&names.nodename), text(&names.sysname), text(&names.release), text(&names.machine)
        )
    }

    private static func text<T>(_ field: inout T) -> String {
        unsafe withUnsafeBytes(of: &field) { bytes in
            unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
    }

    /// Raises the process's limit on descriptors to that number, if it is lower. If the hard limit
    /// is too low as well, changes nothing and returns that. nil: fine, or not known.
    package static func raiseDescriptorLimit(to wanted: UInt64) -> UInt64? {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0,
            limit.rlim_cur < wanted
        else { return nil }
        guard limit.rlim_max >= wanted else { return UInt64(limit.rlim_max) }
        limit.rlim_cur = rlim_t(wanted)
        unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return nil
    }

    /// Raises it as far as the system allows, within reason: a reader may have a thousand archives
    /// of the same time open.
    package static func raiseDescriptorLimit() {
        if let bound = raiseDescriptorLimit(to: 65_536) {
            _ = raiseDescriptorLimit(to: bound)
        }
    }

    /// Bytes 0…7 and 8…15, each as a little-endian load returns them.
    private static func uuid(_ path: StaticString) -> (high: UInt64, low: UInt64) {
        unsafe withUnsafeTemporaryAllocation(byteCount: 64, alignment: 8) { buffer in
            let count = unsafe FileCalls.readSmall(path, buffer)
            var words: (high: UInt64, low: UInt64) = (0, 0)
            var digits = 0
            for i in 0..<max(0, count) where digits < 32 {
                guard let digit = unsafe hexDigit(buffer[i]) else { continue }
                let byte = digits / 2
                let shift = UInt64(byte % 8 * 8 + (digits % 2 == 0 ? 4 : 0))
                if byte < 8 {
                    words.high |= UInt64(digit) << shift
                } else {
                    words.low |= UInt64(digit) << shift
                }
                digits += 1
            }
            return digits == 32 ? words : (0, 0)
        }
    }

    private static func hexDigit(_ c: UInt8) -> UInt8? {
        switch c {
        case 48...57: return c - 48
        case 65...70: return c - 55
        case 97...102: return c - 87
        default: return nil
        }
    }

    /// The state of a process according to /proc.
    private enum Entry {
        /// No entry: it has ended, or is hidden (hidepid), or this /proc belongs to another
        /// namespace.
        case missing
        /// It has ended, and its parent has not waited for it yet.
        case zombie
        /// Start time in clock ticks since boot.
        case running(since: UInt64)
    }

    /// Start time of a process in clock ticks since boot. 0: /proc shows no such process, or it has
    /// ended and its parent has not waited for it yet.
    package static func processStart(_ processID: UInt32) -> UInt64 {
        if case .running(let start) = entry(processID) { start } else { 0 }
    }

    /// Proves that a process of our own pid namespace has ended: the system knows no process of
    /// that number, or /proc shows a zombie or a process with another start time. A missing entry
    /// of /proc proves nothing.
    /// startedAt: 0 if not known.
    package static func isGone(_ processID: UInt32, startedAt known: UInt64) -> Bool {
        guard let number = pid_t(exactly: processID), number > 0 else { return true }
        if kill(number, 0) != 0, errno == ESRCH { return true }
        guard isProcOurs() else { return false }
        switch entry(processID) {
        case .missing: return false
        case .zombie: return true
        case .running(let start): return known != 0 && start != known
        }
    }

    /// True if the visible /proc numbers processes as this process itself does.
    private static func isProcOurs() -> Bool {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 24) { buffer in
            let count = unsafe readlink("/proc/self", buffer.baseAddress!, buffer.count)
            guard count > 0, count < buffer.count else { return false }
            var number: Int32 = 0
            for i in 0..<count {
                let digit = unsafe Int32(buffer[i]) - 48
                guard 0...9 ~= digit else { return false }
                number = number &* 10 &+ digit
            }
            return number == getpid()
        }
    }

    private static func entry(_ processID: UInt32) -> Entry {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { nameBuffer in
            var name = unsafe NameBuffer(nameBuffer)
            name.add("/proc/")
            name.add(decimal: UInt64(processID))
            name.add("/stat")
            let descriptor = unsafe cw_open_file(name.pointer, O_RDONLY, 0)
            guard descriptor >= 0 else { return .missing }
            defer { FileCalls.close(descriptor) }
            return unsafe withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 8) { buffer in
                let count = unsafe read(descriptor, buffer.baseAddress, buffer.count)
                return unsafe entry(UnsafeRawBufferPointer(buffer), count)
            }
        }
    }

    /// Parses field 22 of `stat`. The name in field 2 may contain spaces and brackets, so fields
    /// are counted from the last bracket. A process whose first thread has ended shows as a zombie,
    /// too, but while other threads live it has more than one (field 20).
    private static func entry(_ text: UnsafeRawBufferPointer, _ count: Int) -> Entry {
        var i = count - 1
        while i >= 0, unsafe text[i] != 41 { i -= 1 }
        guard i >= 0, i + 2 < count else { return .missing }
        let isZombie = unsafe text[i + 2] == 90
        var field = 2
        var threads: UInt64 = 0
        var start: UInt64 = 0
        i += 1
        while i < count, field <= 22 {
            let byte = unsafe text[i]
            if byte == 32 { field += 1 }
            if byte >= 48, byte <= 57 {
                if field == 20 { threads = threads &* 10 &+ UInt64(byte - 48) }
                if field == 22 { start = start &* 10 &+ UInt64(byte - 48) }
            }
            i += 1
        }
        if isZombie && threads <= 1 { return .zombie }
        return field < 22 ? .missing : .running(since: start)
    }

    /// Inode number of the pid namespace; 0 if it cannot be read.
    package static func processNamespace() -> UInt64 {
        var status = stat()
        return unsafe stat("/proc/self/ns/pid", &status) == 0 ? UInt64(status.st_ino) : 0
    }

    /// A random number, never 0.
    static func random() -> UInt64 {
        var value: UInt64 = 0
        while value == 0 { _ = unsafe cwi_random(&value, 8) }
        return value
    }

    /// False: a filter of system calls refuses random numbers, so keys could be guessed.
    package static var givesKeys: Bool {
        var value: UInt64 = 0
        return unsafe cwi_random(&value, 8)
    }

    /// True if the kernel itself keeps time by the TSC. It does so only if the TSC is invariant.
    static func tscIsTrusted() -> Bool {
        #if arch(x86_64)
        return unsafe withUnsafeTemporaryAllocation(byteCount: 16, alignment: 8) { buffer in
            let count = unsafe FileCalls.readSmall(
                "/sys/devices/system/clocksource/clocksource0/current_clocksource", buffer)
            return unsafe count >= 3 && buffer[0] == 116 && buffer[1] == 115 && buffer[2] == 99
        }
        #else
        return false
        #endif
    }
}

/// The clocks read together (FORMAT §4): the narrowest of 8 tries.
struct ClockSample: Sendable {
    var ticks: UInt64
    var monotonic: UInt64
    var boottime: UInt64
    var realtime: UInt64

    /// `tsc`: ticks come from the processor, otherwise from the monotonic clock, in nanoseconds.
    static func take(tsc: Bool) -> ClockSample {
        var best = ClockSample(ticks: 0, monotonic: 0, boottime: 0, realtime: 0)
        var narrowest = UInt64.max
        for _ in 0..<8 {
            let before = cw_ticks_tsc()
            let monotonic = cw_monotonic_ns()
            let realtime = cw_realtime_ns()
            let after = cw_ticks_tsc()
            guard after &- before < narrowest else { continue }
            narrowest = after &- before
            let ticks = tsc ? before &+ (after &- before) / 3 : monotonic
            best = ClockSample(
                ticks: ticks, monotonic: monotonic, boottime: 0, realtime: realtime)
        }
        // Boottime and monotonic time differ by whole suspends; nanoseconds do not matter here.
        best.boottime = best.monotonic &+ (cw_clock_ns(CLOCK_BOOTTIME) &- cw_monotonic_ns())
        return best
    }

    /// TSC ticks per second, from two samples a fifth of a millisecond apart; accurate to 0.1 %.
    static func ticksPerSecond() -> UInt64 {
        let first = take(tsc: true)
        var last = first
        while last.monotonic &- first.monotonic < 200_000 {
            last = take(tsc: true)
        }
        let ticks = last.ticks &- first.ticks
        let ns = last.monotonic &- first.monotonic
        return ticks.multipliedFullWidth(by: 1_000_000_000).high == 0 && ns > 0
            ? ticks &* 1_000_000_000 / ns : 1_000_000_000
    }
}
