// Frames of messages that are made outside a log call: `let message: LogMessage = "order \(id)"`.
// A message is a plain value without reference counts, so its frame cannot say when nobody needs it
// any more: each thread keeps the last `framesMax` that it made, and a message is good for as long,
// in that thread. Serial numbers tell when its frame has become another's.
// SAFETY: the blocks are one allocation of the calling thread's, freed when it ends (message.c); a
// frame is followed only after its address and serial were found there.

import CShims

public enum MessageKeep {
    public static let framesMax = 16
    static let frameBytes = 4_096

    /// u64 serial of the one made last; u64 serials of the frames; frames.
    private static let serialsAt = 8
    private static let framesAt = 8 + framesMax * 8

    /// A frame of the calling thread's, prepared, and its serial.
    @inline(never)
    public static func take(_ serial: inout UInt64) -> UnsafeMutableRawPointer {
        let slot = unsafe cwi_keep_slot()!
        let keep: UnsafeMutableRawPointer
        if let found = unsafe slot.pointee {
            unsafe keep = found
        } else {
            unsafe keep = cwi_keep_make(framesAt + framesMax * frameBytes)
        }
        serial = unsafe keep.load(as: UInt64.self) + 1
        unsafe keep.storeBytes(of: serial, as: UInt64.self)
        let index = Int(serial % UInt64(framesMax))
        unsafe keep.storeBytes(of: serial, toByteOffset: serialsAt + index * 8, as: UInt64.self)
        let base = unsafe keep + framesAt + index * frameBytes
        let frame = unsafe MessageFrame(base)
        // The strings of an earlier message there did not fit.
        if serial > UInt64(framesMax), let other = unsafe frame.other {
            unsafe other.deallocate()
        }
        unsafe MessageFrame.prepare(base, bytes: frameBytes)
        unsafe base.storeBytes(of: 1, as: UInt32.self)
        return unsafe base
    }

    /// True where the message of that frame and serial is still there.
    public static func has(_ frame: MessageFrame, _ serial: UInt64) -> Bool {
        guard serial > 0, let keep = unsafe cwi_keep_slot().pointee else { return false }
        let index = Int(serial % UInt64(framesMax))
        guard
            unsafe keep.load(fromByteOffset: serialsAt + index * 8, as: UInt64.self) == serial
        else { return false }
        let base = unsafe keep + framesAt + index * frameBytes
        return unsafe frame.base == base || frame.base == MessageFrame(base).other
    }
}
