// Whether a lane may belong to a process of another machine: it lies on a shared file system, where
// its lock may be visible only to that machine (R33). Machines are told apart by their ids, or by
// their names if an id is missing or was copied along with the machine. For adopters and `stats`.
// SAFETY: headers are 4,096 bytes, and every offset used lies in them.

import CShims
import CordwoodCore

package enum OtherMachine {
    /// `header`: the header of the lane file behind `descriptor`.
    package static func made(
        _ header: UnsafeMutableRawBufferPointer, _ descriptor: Int32
    ) -> Bool {
        unsafe FileSystem(descriptor).kind == .network && isOther(header)
    }

    /// True if both ids are known and differ, or both names are. Unknown values prove nothing.
    private static func isOther(_ header: UnsafeMutableRawBufferPointer) -> Bool {
        let theirs = unsafe (
            header.load(fromByteOffset: LaneHeader.machineID, as: UInt64.self),
            header.load(fromByteOffset: LaneHeader.machineID + 8, as: UInt64.self)
        )
        let ours = Machine.machineID()
        if theirs != (0, 0), ours != (0, 0), theirs != ours { return true }
        let (name, own) = (unsafe hostName(header), Machine.hostName())
        return !name.isEmpty && !own.isEmpty && name != own
    }

    private static func hostName(_ header: UnsafeMutableRawBufferPointer) -> String {
        let count = unsafe header.load(fromByteOffset: LaneHeader.hostNameBytes, as: UInt16.self)
        let start = LaneHeader.hostName
        let end = start + min(Int(count), LaneHeader.hostNameBytesMax)
        return unsafe String(
            decoding: UnsafeRawBufferPointer(rebasing: header[start..<end]), as: UTF8.self)
    }

    /// The reason for leaving alone a lane that no local process holds: the other machine's name,
    /// or `?` if it has none. nil: the lane belongs to this machine, or was closed.
    package static func name(directory: FilePath, lane: String) -> String? {
        let path = directory + "/lanes/\(lane).lane"
        let descriptor = Files.open(path, [.read, .nonBlocking])
        guard descriptor >= 0 else { return nil }
        defer { Files.close(descriptor) }
        return unsafe withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { header in
            guard unsafe Files.readOnce(descriptor, into: header, at: 0) == 4096,
                unsafe header.load(as: UInt64.self) == LaneHeader.magicValue,
                unsafe header.load(fromByteOffset: LaneHeader.closed, as: UInt32.self) == 0,
                unsafe made(header, descriptor)
            else { return nil }
            let name = unsafe hostName(header)
            return name.isEmpty ? "?" : name
        }
    }
}
