// Whether a lane may be adopted: its process is gone, and no other process is adopting it. The lane
// file carries two locks. The owner's lock ends with its memory (OwnerLock) or, if no mapping can
// hold it, with the last descriptor of the open file; a child that ran no fork handler may still
// have one. The other lock is the adopters' own, which children never hold. Adopters only: the ship
// thread, `cordwood archive`. FORMAT §2.
// SAFETY: the lane's header is read into 4,096 bytes on the stack, and every offset used lies in
// its first page.

import CShims
import CordwoodCore

/// The lock of a lane whose process is gone. nil: the process lives, or another adopter was faster.
struct AdoptionLock {
    private let descriptor: Int32

    init?(directory: FilePath, lane: String, witness: AdoptionWitness) {
        let path = directory + "/lanes/\(lane).lane"
        let descriptor = Files.open(path, .readWrite)
        guard descriptor >= 0 else { return nil }
        // R32: the name still leads to the inode that we locked.
        guard Files.lockOpenFile(descriptor), FileFacts.isNamed(descriptor, path),
            AdoptionLock.isFree(descriptor, directory, lane, witness)
        else {
            Files.close(descriptor)
            return nil
        }
        self.descriptor = descriptor
    }

    /// True if the lane's process no longer writes to it, whoever holds its lock.
    static func isOver(directory: FilePath, lane: String) -> Bool {
        let path = directory + "/lanes/\(lane).lane"
        let descriptor = Files.open(path, [.read, .nonBlocking])
        guard descriptor >= 0 else { return false }
        defer { Files.close(descriptor) }
        let owner = owner(descriptor)
        if owner.lockIsLife { return Files.lock(descriptor, shared: true) }
        return owner.state == .closed || owner.state == .gone
    }

    /// Released explicitly: a forked child may still hold the descriptor.
    func release() {
        Files.unlock(descriptor)
        Files.close(descriptor)
    }

    /// If the owner's memory holds the lock (`compatLockIsLife`), a busy lock means life and a free
    /// lock means death, in every namespace and without /proc. Otherwise a descriptor holds it,
    /// which a child may have inherited or a host may have closed.
    private static func isFree(
        _ descriptor: Int32, _ directory: FilePath, _ lane: String, _ witness: AdoptionWitness
    ) -> Bool {
        let isLocked = Files.lock(descriptor)
        let owner = owner(descriptor)
        // The lock of another machine's lane may be visible only there: adopt only if the user says
        // so.
        if owner.state == .remote { return isLocked && witness.adoptsForeign }
        if owner.lockIsLife { return isLocked }
        switch owner.state {
        case .closed: return true
        case .past: return isLocked
        // If the lock is busy, a descriptor has outlived its process.
        case .gone: return isLocked || witness.isQuiet(directory: directory, lane: lane)
        // A host that closed all its descriptors has lost its lock but may still live.
        case .elsewhere: return isLocked && witness.isQuiet(directory: directory, lane: lane)
        case .unknown, .remote: return false
        }
    }

    private struct Owner {
        enum State {
            /// The owner closed the lane.
            case closed
            /// The lane belongs to another boot, or the file is not a lane.
            case past
            /// The system proves that the owner's process has ended.
            case gone
            /// The owner lives, or nothing proves that it does not.
            case unknown
            /// The owner is in another pid namespace, where nothing can be proved.
            case elsewhere
            /// The lane belongs to another machine, on a network file system.
            case remote
        }
        var state: State
        /// The owner's memory holds the lock, instead of a descriptor.
        var lockIsLife = false
    }

    private static func owner(_ descriptor: Int32) -> Owner {
        unsafe withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { header in
            guard unsafe Files.readOnce(descriptor, into: header, at: 0) == 4096,
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

/// Remembers lanes whose lock is held by a descriptor and proves nothing about the owner: its
/// process has ended and a child has inherited the descriptor, or the lock is free and the owner is
/// in another pid namespace. They are adopted once nothing in them has changed for ten seconds
/// (R31). One thread at a time.
@safe public final class AdoptionWitness: @unchecked Sendable {
    // SAFETY: used by one adopter, on its thread.
    public static let quietNs: UInt64 = 10_000_000_000
    private var seen: [String: (digest: UInt64, since: UInt64)] = [:]
    /// The user vouches that no process of another machine writes to this store any more.
    let adoptsForeign: Bool

    public init(adoptsForeign: Bool = false) { self.adoptsForeign = adoptsForeign }

    /// Number of lanes that may be adopted once they have been quiet for long enough.
    public var waiting: Int { seen.count }

    func isQuiet(directory: FilePath, lane: String) -> Bool {
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

    /// Forgets lanes that no longer exist.
    func keep(only lanes: Set<String>) {
        seen = seen.filter { lanes.contains($0.key) }
    }

    /// Digest of every byte of the lane's files.
    private static func digest(_ directory: FilePath, _ lane: String) -> UInt64 {
        var sum: UInt64 = 0
        let names = Directories.names(directory + "/lanes").filter { $0.hasPrefix(lane + ".") }
        for name in names.sorted() {
            let path = directory + "/lanes/\(name)"
            let descriptor = Files.open(path, [.read, .nonBlocking])
            guard descriptor >= 0 else { continue }
            defer { Files.close(descriptor) }
            // A FIFO's writer might never end.
            guard StoreFiles.isRegular(descriptor) else { continue }
            var crc: UInt32 = 0
            unsafe withUnsafeTemporaryAllocation(byteCount: 65_536, alignment: 8) { buffer in
                while true {
                    let count = unsafe Files.readNext(descriptor, into: buffer)
                    guard count > 0 else { return }
                    crc = unsafe cwi_crc32c(crc, buffer.baseAddress!, count)
                }
            }
            sum = (sum << 7 | sum >> 57) ^ UInt64(crc) &+ UInt64(name.utf8.count)
        }
        return sum
    }
}
