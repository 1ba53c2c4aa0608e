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
        switch owner(descriptor) {
        case .closed, .gone: return true
        case .alive, .elsewhere, .remote: return false
        }
    }

    /// Explicitly: a forked child may still hold the descriptor.
    func release() {
        flock(descriptor, LOCK_UN)
        cwi_file_close(descriptor)
    }

    private static func isFree(
        _ descriptor: Int32, _ directory: String, _ lane: String, _ witness: AdoptionWitness
    ) -> Bool {
        if flock(descriptor, LOCK_EX | LOCK_NB) == 0 {
            switch owner(descriptor) {
            case .closed, .gone, .elsewhere: return true
            // A host that closed all its descriptors has lost its lock and lives: left alone.
            // The lock of another machine's process may be known there only.
            case .alive, .remote: return false
            }
        }
        // Held by a descriptor that outlived its process, or by the process.
        switch owner(descriptor) {
        case .closed: return true
        case .gone: return witness.isQuiet(directory: directory, lane: lane)
        case .alive, .elsewhere, .remote: return false
        }
    }

    /// The name still means the inode that we locked (R32).
    private static func isSameFile(_ descriptor: Int32, _ path: String) -> Bool {
        var held = stat()
        var named = stat()
        return unsafe fstat(descriptor, &held) == 0 && lstat(path, &named) == 0
            && held.st_ino == named.st_ino && held.st_dev == named.st_dev
    }

    private enum Owner {
        /// It closed the lane.
        case closed
        /// No such process on this machine since this boot.
        case gone
        case alive
        /// Of another boot or pid namespace: nothing can be said.
        case elsewhere
        /// Of another machine, on a file system of a network.
        case remote
    }

    private static func owner(_ descriptor: Int32) -> Owner {
        unsafe withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { header in
            guard unsafe pread(descriptor, header.baseAddress, 4096, 0) == 4096,
                unsafe header.load(as: UInt64.self) == LaneHeader.magicValue
            else { return .elsewhere }
            func word(_ offset: Int) -> UInt64 {
                unsafe header.load(fromByteOffset: offset, as: UInt64.self)
            }
            if unsafe header.load(fromByteOffset: LaneHeader.closed, as: UInt32.self) != 0 {
                return .closed
            }
            if isOnNetwork(descriptor), unsafe isOtherMachine(header) { return .remote }
            let boot = Machine.bootID()
            let sameBoot =
                word(LaneHeader.bootID) == boot.high
                && word(LaneHeader.bootID + 8) == boot.low
            var namespace = stat()
            guard sameBoot, unsafe stat("/proc/self/ns/pid", &namespace) == 0,
                UInt64(namespace.st_ino) == word(LaneHeader.processNamespace)
            else { return .elsewhere }
            let processID = unsafe header.load(
                fromByteOffset: LaneHeader.processID, as: UInt32.self)
            let start = Machine.processStart(processID)
            return start == 0 || start != word(LaneHeader.processStart) ? .gone : .alive
        }
    }

    /// File systems that several machines may have mounted (R33).
    private static func isOnNetwork(_ descriptor: Int32) -> Bool {
        var system = statfs()
        guard unsafe fstatfs(descriptor, &system) == 0 else { return false }
        let types: [UInt32] = [
            0x6969 /* NFS */, 0x517B /* SMB */, 0xFF53_4D42 /* CIFS */, 0xFE53_4D42 /* SMB 2 */,
            0x6573_5546 /* FUSE */, 0x0102_1997 /* 9P */, 0x00C3_6400 /* Ceph */,
            0x5346_414F /* AFS */, 0x786F_4256 /* VirtualBox */,
        ]
        return types.contains(UInt32(truncatingIfNeeded: system.f_type))
    }

    /// Both machines' ids are known, and they differ.
    private static func isOtherMachine(_ header: UnsafeMutableRawBufferPointer) -> Bool {
        let file = unsafe cw_open_file("/etc/machine-id", O_RDONLY, 0)
        guard file >= 0 else { return false }
        defer { Glibc.close(file) }
        let ours = unsafe withUnsafeTemporaryAllocation(byteCount: 32, alignment: 1) { text in
            unsafe read(file, text.baseAddress, 32) == 32 ? Array(text) : []
        }
        guard ours.count == 32 else { return false }
        let digits = Array("0123456789abcdef".utf8)
        let theirs = unsafe header[LaneHeader.machineID..<LaneHeader.machineID + 16].flatMap {
            [digits[Int($0 >> 4)], digits[Int($0 & 15)]]
        }
        return theirs != ours && theirs.contains { $0 != digits[0] }
    }
}

/// Remembers lanes whose process is gone and whose lock is still held: by a child of a raw
/// clone(2), which never writes there, or by one of vfork(2), which may. They are adopted once
/// nothing in them has changed for ten seconds (R31). One thread at a time.
@safe public final class AdoptionWitness: @unchecked Sendable {
    // SAFETY: used by one adopter, on its thread.
    public static let quietNs: UInt64 = 10_000_000_000
    private var seen: [String: (digest: UInt64, since: UInt64)] = [:]

    public init() {}

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
