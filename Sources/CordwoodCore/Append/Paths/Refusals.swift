// Refuses records without asking the system: the disk refused a moment ago, the quota is used up,
// or no segment is ready and the policy does not wait. Such a refusal makes no system call; the
// disk is asked again every tenth of a second. Any thread, even in a signal handler.
// docs/CONCURRENCY.md, A26.
// SAFETY: words of the lane's and the engine's blocks, which are never unmapped.

import CCordwood
import CShims

extension Segments {
    /// How long a disk that refused is not asked again. Once there is room, logging resumes after
    /// this time at most.
    static let refusalNs: UInt64 = 100_000_000

    static func refuse(_ engine: EngineBlock, _ lane: LaneBlock, errno number: Int32) {
        unsafe Refusal.note(engine, errno: number)
        unsafe set(fullUntil(lane), cw_monotonic_ns() &+ refusalNs)
    }

    static func refuse(_ engine: EngineBlock, _ lane: LaneBlock, _ cause: GapCause, ns: UInt64) {
        unsafe Refusal(cause: cause, number: 0).note(engine)
        unsafe set(fullUntil(lane), cw_monotonic_ns() &+ ns)
    }

    /// A segment is ready, but the directory refuses its name.
    static func refuseNames(_ engine: EngineBlock, _ lane: LaneBlock, errno number: Int32) {
        unsafe Refusal.note(engine, errno: number)
        unsafe set(nameUntil(lane), cw_monotonic_ns() &+ refusalNs)
    }

    /// For as long as another directory takes the place of the lane's: no segment of the lane gets
    /// a name there, where no reader would find the lane's file.
    static func setElsewhere(_ lane: LaneBlock, _ isElsewhere: Bool) {
        // ORDER: relaxed, between two fences. Who finds another directory finds the mark, and who
        // finds no mark has the lane's directory (A26).
        cwa_fence_full()
        unsafe cwa_store_relaxed_u64(fullUntil(lane), isElsewhere ? .max : 0)
        unsafe cwa_store_relaxed_u64(nameUntil(lane), isElsewhere ? .max : 0)
        cwa_fence_full()
    }

    /// True: `Descriptors.lanes`, called before this, may have returned another directory than the
    /// lane's.
    static func isElsewhere(_ lane: LaneBlock) -> Bool {
        cwa_fence_full()
        return unsafe cwa_load_relaxed_u64(nameUntil(lane)) == .max
    }

    private static func set(_ word: UnsafeMutableRawPointer, _ until: UInt64) {
        // ORDER: relaxed. Of two refusals either may set the time, but none replaces the mark of a
        // lane whose directory is elsewhere (A26).
        let before = unsafe cwa_load_relaxed_u64(word)
        if before != .max { _ = unsafe cwa_cas_u64(word, before, until) }
    }

    /// True while the file system must not be asked again for a segment or its name.
    static func isAnyRefused(_ lane: LaneBlock) -> Bool {
        unsafe isRefused(lane) || isBefore(cwa_load_relaxed_u64(nameUntil(lane)))
    }

    static func isRefused(_ lane: LaneBlock) -> Bool {
        unsafe isBefore(cwa_load_relaxed_u64(fullUntil(lane)))
    }

    /// True if no next segment can be had now. Finding out costs a reading of the clock.
    static func isHopeless(_ engine: EngineBlock, _ lane: LaneBlock) -> Bool {
        if unsafe isBefore(cwa_load_relaxed_u64(nameUntil(lane))) { return true }
        if unsafe spareCount(lane) > 0 { return false }
        let isFull = unsafe isRefused(lane) || Quota.isUsed(engine)
        if unsafe isFull || engine.pointee.overflow != UInt32(CW_OVERFLOW_DROP) { return isFull }
        unsafe EngineCore.wake(engine)
        return true
    }

    /// 0, the usual value, costs no reading of the clock.
    private static func isBefore(_ until: UInt64) -> Bool {
        until != 0 && cw_monotonic_ns() < until
    }

    static func wantedWord(_ lane: LaneBlock) -> UnsafeMutableRawPointer {
        unsafe cwi_lane_wanted_at(lane)
    }

    private static func fullUntil(_ lane: LaneBlock) -> UnsafeMutableRawPointer {
        unsafe cwi_lane_full_until_ns_at(lane)
    }

    private static func nameUntil(_ lane: LaneBlock) -> UnsafeMutableRawPointer {
        unsafe cwi_lane_name_until_ns_at(lane)
    }
}

/// Why a call was refused: recorded where the system said no, looked up where the call ends.
public struct Refusal {
    package var cause: GapCause
    /// The errno that caused it; 0: no system call failed.
    package var number: Int32

    /// In the thread's `last_detail`, this means that its value is a refusal's `word`.
    public static let detail: UInt32 = 0xFF
    /// An older answer of the system does not explain a refusal made now.
    private static let freshNs: UInt64 = 1_000_000_000

    package init(cause: GapCause, number: Int32) {
        self.cause = cause
        self.number = number
    }

    /// Decodes the thread's `last_value`.
    package init(word: UInt32) {
        cause = GapCause(rawValue: word >> 16) ?? .other
        number = Int32(word & 0xFFFF)
    }

    private var word: UInt32 { cause.rawValue << 16 | UInt32(number & 0xFFFF) }

    private static func noteWord(_ engine: EngineBlock) -> UnsafeMutableRawPointer {
        unsafe cwi_engine_refusal_at(engine)
    }

    private static func timeWord(_ engine: EngineBlock) -> UnsafeMutableRawPointer {
        unsafe cwi_engine_refusal_ns_at(engine)
    }

    static func note(_ engine: EngineBlock, errno number: Int32) {
        unsafe Refusal(cause: .of(errno: number), number: number).note(engine)
    }

    func note(_ engine: EngineBlock) {
        // ORDER: relaxed. Text for people; of two simultaneous refusals either may be reported
        // (A26).
        unsafe cwa_store_relaxed_u64(Self.noteWord(engine), UInt64(word))
        unsafe cwa_store_relaxed_u64(Self.timeWord(engine), cw_monotonic_ns())
    }

    /// The last answer of the system, or `other` if that was long ago.
    static func noted(_ engine: EngineBlock) -> Refusal {
        let time = unsafe cwa_load_relaxed_u64(timeWord(engine))
        guard time != 0, cw_monotonic_ns() < time &+ freshNs else {
            return Refusal(cause: .other, number: 0)
        }
        return unsafe Refusal(
            word: UInt32(truncatingIfNeeded: cwa_load_relaxed_u64(noteWord(engine))))
    }

    /// The reason for a call that returns CW_E_FULL now.
    static func of(_ engine: EngineBlock) -> Refusal {
        let noted = unsafe noted(engine)
        guard let lane = unsafe EngineCore.readyLane(engine), unsafe !Segments.isAnyRefused(lane)
        else { return noted }
        if unsafe Quota.isUsed(engine) { return Refusal(cause: .storeQuota, number: 0) }
        let drops = unsafe engine.pointee.overflow == UInt32(CW_OVERFLOW_DROP)
        return drops ? Refusal(cause: .notReady, number: 0) : noted
    }

    /// Keeps it for the thread's cw_last_error.
    func keep(_ engine: EngineBlock) {
        let tls = unsafe cwi_tls_get()!
        unsafe tls.pointee.last_value = word
        unsafe tls.pointee.last_detail = engine.pointee.index << 8 | Refusal.detail
    }
}

/// How many bytes of files may still be made within the quota. Makers take from it; from time to
/// time the helper counts the store's files and sets it anew.
package enum Quota {
    private static func made(_ engine: EngineBlock) -> UnsafeMutableRawPointer {
        unsafe cwi_engine_made_bytes_at(engine)
    }

    private static func limit(_ engine: EngineBlock) -> UnsafeMutableRawPointer {
        unsafe cwi_engine_made_limit_at(engine)
    }

    /// True if not even one more segment fits.
    package static func isUsed(_ engine: EngineBlock) -> Bool {
        unsafe left(engine) < SegmentSize.of(engine)
    }

    /// Bytes that may still be made.
    package static func left(_ engine: EngineBlock) -> UInt64 {
        // ORDER: relaxed. Both only limit how much is made; they publish nothing (A26).
        let limit = unsafe cwa_load_relaxed_u64(limit(engine))
        let made = unsafe cwa_load_relaxed_u64(made(engine))
        return limit > made ? limit - made : 0
    }

    static func take(_ engine: EngineBlock, bytes: UInt64) -> Bool {
        let word = unsafe made(engine)
        while true {
            // ORDER: relaxed, then acquire-release. Of two makers, one gets the last bytes. Nothing
            // is added before it is taken: a mark read meanwhile would allow it a second time
            // (A26).
            let before = unsafe cwa_load_relaxed_u64(word)
            guard unsafe before &+ bytes <= cwa_load_relaxed_u64(limit(engine)) else {
                return false
            }
            if unsafe cwa_cas_u64(word, before, before &+ bytes) { return true }
        }
    }

    static func giveBack(_ engine: EngineBlock, bytes: UInt64) {
        _ = unsafe cwa_add_u64(made(engine), 0 &- bytes)
    }

    /// Takes the bytes that an archive about to be written may need beyond the segments it covers.
    package static func charge(_ engine: EngineBlock, bytes: UInt64) {
        _ = unsafe cwa_add_u64(made(engine), bytes)
    }

    /// Read before the files are counted: files made meanwhile are counted twice rather than never.
    package static func mark(_ engine: EngineBlock) -> UInt64 {
        unsafe cwa_load_relaxed_u64(made(engine))
    }

    /// Counts this engine's segment files that may still grow, spares included, and the total size
    /// they may reach. Files of a larger, since lowered size count at the present size; otherwise
    /// no segment of that size could ever be made. A listing that runs beside renames may miss one.
    package static func growing(_ engine: EngineBlock) -> (count: UInt64, bytes: UInt64) {
        var count: UInt64 = 0
        var bytes: UInt64 = 0
        unsafe Segments.forEach(engine) { segment in
            let state = unsafe cwa_load_acquire_u32(Segments.stateWord(segment))
            guard state != Segments.free, state != Segments.sealed,
                unsafe segment.pointee.in_lane == 0, unsafe segment.pointee.memory_id == 0
            else { return }
            count += 1
            unsafe bytes &+= min(segment.pointee.size, SegmentSize.of(engine))
        }
        return (count, bytes)
    }

    /// The size of the quota, for messages; 0: unlimited.
    package static func name(_ engine: EngineBlock, bytes: UInt64) {
        let word = unsafe cwi_engine_quota_bytes_at(engine)
        // ORDER: relaxed. A number on its own (A26).
        unsafe cwa_store_relaxed_u64(word, bytes)
    }

    /// Allows this many bytes to be made from the mark on. nil: any number.
    package static func allow(_ engine: EngineBlock, from mark: UInt64, bytes: UInt64?) {
        unsafe cwa_store_relaxed_u64(limit(engine), bytes.map { mark &+ $0 } ?? .max)
    }
}
