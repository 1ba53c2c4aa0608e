// Whether a lane may be adopted: its process is gone, and nobody else adopts it. Two locks on the
// lane file: the owner's, which the kernel lets go with the last descriptor of the open file (a
// child that ran no fork handler may still have one), and the adopters' own, which children never
// hold. Adopters only: the ship thread, `cordwood archive`. FORMAT §2.
// SAFETY: the lane's header is read into 4,096 bytes on the stack, and every offset looked at lies
// in its first page.

import CShims
import CordwoodCore
import Glibc

/// The lock of a lane whose process is gone. nil: it lives, or another adopter was faster.
struct LaneLock {
    private let descriptor: Int32

    init?(directory: String, lane: String, witness: AdoptionWitness) {
        let path = "\(directory)/lanes/\(lane).lane"
        let descriptor = unsafe cwi_file_open(path, O_RDWR, 0)
        guard descriptor >= 0 else { return nil }
        guard cwi_lock_file(descriptor) == 0, LaneLock.isSameFile(descriptor, path),
            LaneLock.isFree(descriptor, directory, lane, witness)
        else {
            cwi_file_close(descriptor)
            return nil
        }
        self.descriptor = descriptor
    }

    /// True where the lane's process writes to it no more, whoever holds its lock.
    static func isOver(directory: String, lane: String) -> Bool {
        let path = "\(directory)/lanes/\(lane).lane"
        let descriptor = unsafe cwi_file_open(path, O_RDONLY | O_NONBLOCK, 0)
        guard descriptor >= 0 else { return false }
        defer { cwi_file_close(descriptor) }
        let owner = owner(descriptor)
        if owner.lockIsLife { return flock(descriptor, LOCK_SH | LOCK_NB) == 0 }
        return owner.state == .closed || owner.state == .gone
    }

    /// Explicitly: a forked child may still hold the descriptor.
    func release() {
        flock(descriptor, LOCK_UN)
        cwi_file_close(descriptor)
    }

    /// A busy lock is life and a free lock is death where the lock is held by the owner's memory
    /// (`compatLockIsLife`): in every namespace, and without /proc. Else a descriptor holds it,
    /// which a child may have inherited and a host may have closed.
    private static func isFree(
        _ descriptor: Int32, _ directory: String, _ lane: String, _ witness: AdoptionWitness
    ) -> Bool {
        let isLocked = flock(descriptor, LOCK_EX | LOCK_NB) == 0
        let owner = owner(descriptor)
        // The lock of another machine's process may be known there only: on the user's word.
        if owner.state == .remote { return isLocked && witness.adoptsForeign }
        if owner.lockIsLife { return isLocked }
        switch owner.state {
        case .closed: return true
        case .past: return isLocked
        // Where it is busy, a descriptor has outlived its process.
        case .gone: return isLocked || witness.isQuiet(directory: directory, lane: lane)
        // A host that closed all its descriptors has lost its lock and may live.
        case .elsewhere: return isLocked && witness.isQuiet(directory: directory, lane: lane)
        case .unknown, .remote: return false
        }
    }

    /// The name still means the inode that we locked (R32).
    private static func isSameFile(_ descriptor: Int32, _ path: String) -> Bool {
        var held = stat()
        var named = stat()
        return unsafe fstat(descriptor, &held) == 0 && lstat(path, &named) == 0
            && held.st_ino == named.st_ino && held.st_dev == named.st_dev
    }

    private struct Owner {
        enum State {
            /// It closed the lane.
            case closed
            /// It belongs to another boot, or the file is no lane.
            case past
            /// The system proves that its process has ended.
            case gone
            /// It lives, or nothing proves that it does not.
            case unknown
            /// It belongs to another pid namespace, about which nothing can be proved.
            case elsewhere
            /// Of another machine, on a file system of a network.
            case remote
        }
        var state: State
        /// The lock is held by the owner's memory, not by a descriptor.
        var lockIsLife = false
    }

    private static func owner(_ descriptor: Int32) -> Owner {
        unsafe withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { header in
            guard unsafe pread(descriptor, header.baseAddress, 4096, 0) == 4096,
                unsafe header.load(as: UInt64.self) == LaneHeader.magicValue
            else { return Owner(state: .past) }
            func word(_ offset: Int) -> UInt64 {
                unsafe header.load(fromByteOffset: offset, as: UInt64.self)
            }
            let isLife = word(LaneHeader.compat) & LaneHeader.compatLockIsLife != 0
            func state() -> Owner.State {
                if unsafe header.load(fromByteOffset: LaneHeader.closed, as: UInt32.self) != 0 {
                    return .closed
                }
                if unsafe OtherMachine.made(header, descriptor) { return .remote }
                let boot = Machine.bootID()
                let namespace = word(LaneHeader.processNamespace)
                guard word(LaneHeader.bootID) == boot.high, word(LaneHeader.bootID + 8) == boot.low
                else { return .past }
                guard namespace != 0, namespace == Machine.processNamespace() else {
                    return .elsewhere
                }
                let processID = unsafe header.load(
                    fromByteOffset: LaneHeader.processID, as: UInt32.self)
                return Machine.isGone(processID, startedAt: word(LaneHeader.processStart))
                    ? .gone : .unknown
            }
            return Owner(state: state(), lockIsLife: isLife)
        }
    }
}

/// Remembers lanes whose lock is a descriptor's and says nothing about the owner: its process has
/// ended and a child has inherited the descriptor, or the lock is free and the owner's pid
/// namespace is another. They are adopted once nothing in them has changed for ten seconds (R31).
/// One thread at a time.
@safe public final class AdoptionWitness: @unchecked Sendable {
    // SAFETY: used by one adopter, on its thread.
    public static let quietNs: UInt64 = 10_000_000_000
    private var seen: [String: (digest: UInt64, since: UInt64)] = [:]
    /// The user says that no process of another machine writes to this store any more.
    let adoptsForeign: Bool

    public init(adoptsForeign: Bool = false) { self.adoptsForeign = adoptsForeign }

    /// Lanes that may be adopted when they have been quiet for long enough.
    public var waiting: Int { seen.count }

    func isQuiet(directory: String, lane: String) -> Bool {
        let now = cw_monotonic_ns()
        let digest = AdoptionWitness.digest(directory, lane)
        guard let known = seen[lane], known.digest == digest else {
            seen[lane] = (digest, now)
            return false
        }
        guard now - known.since >= AdoptionWitness.quietNs else { return false }
        seen[lane] = nil
        return true
    }

    /// Forgets lanes that are not there any more.
    func keep(only lanes: Set<String>) {
        seen = seen.filter { lanes.contains($0.key) }
    }

    /// Of every byte of the lane's files.
    private static func digest(_ directory: String, _ lane: String) -> UInt64 {
        var sum: UInt64 = 0
        let names = Directories.names(directory + "/lanes").filter { $0.hasPrefix(lane + ".") }
        for name in names.sorted() {
            let path = "\(directory)/lanes/\(name)"
            let descriptor = unsafe cwi_file_open(path, O_RDONLY | O_NONBLOCK, 0)
            guard descriptor >= 0 else { continue }
            defer { cwi_file_close(descriptor) }
            var crc: UInt32 = 0
            unsafe withUnsafeTemporaryAllocation(byteCount: 65_536, alignment: 8) { buffer in
                while true {
                    let count = unsafe read(descriptor, buffer.baseAddress, buffer.count)
                    guard count > 0 else { return }
                    crc = unsafe cwi_crc32c(crc, buffer.baseAddress!, count)
                }
            }
            sum = (sum << 7 | sum >> 57) ^ UInt64(crc) &+ UInt64(name.utf8.count)
        }
        return sum
    }
}
