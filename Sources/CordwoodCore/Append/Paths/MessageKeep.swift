// Frames of messages that are made outside a log call: `let message: LogMessage = "order \(id)"`. A
// message is a plain value without reference counts, so its frame cannot tell when it is no longer
// needed. Each thread therefore keeps the last `framesMax` frames that it made, and a message is
// valid for that long, in that thread. Serials tell whether a frame has been given to another
// message: each number belongs to one frame.
// This serves a host's own logging functions, which take a LogMessage: values keep their types.
// Such a record costs 2,470 instructions. With a String, which loses the types, it costs 2,370;
// with the message in the call itself, 240.
// SAFETY: the blocks are one allocation of the calling thread's, freed when it ends (message.c); a
// frame is followed only after its address and serial were found there.

import CShims

public enum MessageKeep {
    public static let framesMax = 16
    static let frameBytes = 4_096

    /// u64 the function that frees the rest (message.c); u64 number of frames made; u64 serials of
    /// the frames still kept; frames.
    private static let madeAt = 8
    private static let serialsAt = 16
    private static let framesAt = 16 + framesMax * 8
    static let keepBytes = framesAt + framesMax * frameBytes

    /// Prepares a frame of the calling thread and gives it a serial. Without memory, returns a lost
    /// one.
    @inline(never)
    public static func take(_ serial: inout UInt64) -> UnsafeMutableRawPointer {
        unsafe take(&serial, keepBytes: keepBytes)
    }

    static func take(_ serial: inout UInt64, keepBytes: Int) -> UnsafeMutableRawPointer {
        guard
            let keep = unsafe cwi_keep_slot().pointee
                ?? cwi_keep_make(keepBytes, { unsafe MessageKeep.release($0!) })
        else {
            let spare = unsafe cwi_spare_frame()!
            serial = MessageFrame.unmade
            unsafe MessageFrame.prepare(
                spare, bytes: Int(CWI_SPARE_BYTES), serial: MessageFrame.lost)
            return unsafe spare
        }
        let made = unsafe keep.load(fromByteOffset: madeAt, as: UInt64.self)
        unsafe keep.storeBytes(of: made &+ 1, toByteOffset: madeAt, as: UInt64.self)
        let index = Int(made % UInt64(framesMax))
        // Releases the strings of an earlier message that did not fit there.
        if let other = unsafe other(keep, index) { unsafe MessageFrame.release(other) }
        serial = cwi_serial_next()
        unsafe keep.storeBytes(of: serial, toByteOffset: serialsAt + index * 8, as: UInt64.self)
        let base = unsafe keep + framesAt + index * frameBytes
        unsafe MessageFrame.prepare(base, bytes: frameBytes, serial: serial)
        return unsafe base
    }

    /// When the thread ends: frees everything attached to its frames.
    private static func release(_ keep: UnsafeMutableRawPointer) {
        for index in 0..<framesMax {
            if let other = unsafe other(keep, index) { unsafe MessageFrame.release(other) }
        }
    }

    /// The heap block of a frame.
    private static func other(
        _ keep: UnsafeMutableRawPointer, _ index: Int
    ) -> UnsafeMutableRawPointer? {
        guard
            unsafe keep.load(fromByteOffset: serialsAt + index * 8, as: UInt64.self) != 0
        else { return nil }
        return unsafe MessageFrame(keep + framesAt + index * frameBytes).other
    }

    /// True if the message with that frame and serial is still there.
    public static func has(_ frame: MessageFrame, _ serial: UInt64) -> Bool {
        guard serial > 0, let keep = unsafe cwi_keep_slot().pointee else { return false }
        for index in 0..<framesMax
        where unsafe keep.load(fromByteOffset: serialsAt + index * 8, as: UInt64.self) == serial {
            let base = unsafe keep + framesAt + index * frameBytes
            let isThere = unsafe frame.base == base || frame.base == other(keep, index)
            return isThere && frame.serial == serial
        }
        return false
    }
}
