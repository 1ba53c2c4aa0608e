// Size-stamped structs and C strings from the host: checked, then copied, so that later code uses
// exactly the checked values.
// SAFETY: a struct is read only as far as its own `struct_size` says, which covers the copied part.

import CCordwood
import CordwoodCore
import CordwoodEngine
import CordwoodFormats
import CordwoodShip
import CordwoodStore
import CordwoodTrace

enum Stamped {
    /// No later version of a struct is larger: a struct with a larger size was never initialised.
    static let bytesMax = 65_536

    /// Copies a struct that starts with `struct_size` over `target`, which holds the defaults.
    /// Refuses a smaller one; the excess of a larger one must be zero.
    static func copy<T>(_ source: UnsafePointer<T>, into target: inout T) -> Int32 {
        let raw = unsafe UnsafeRawPointer(source)
        let size = unsafe Int(raw.loadUnaligned(as: UInt32.self))
        let known = MemoryLayout<T>.size
        guard size >= known else { return Status.structSize }
        guard size <= bytesMax else { return Status.structTail }
        for i in known..<size
        where unsafe raw.load(fromByteOffset: i, as: UInt8.self) != 0 {
            return Status.structTail
        }
        unsafe withUnsafeMutableBytes(of: &target) {
            unsafe $0.copyMemory(from: UnsafeRawBufferPointer(start: raw, count: known))
        }
        return Status.ok
    }

    /// Like `copy`, but returns the problem with the struct, by its name; nil: none.
    static func read<T>(_ source: UnsafePointer<T>, into target: inout T) -> CordwoodError? {
        let status = unsafe copy(source, into: &target)
        guard status != Status.ok else { return nil }
        let size = unsafe UnsafeRawPointer(source).loadUnaligned(as: UInt32.self)
        return CordwoodError(status, text(status, "\(T.self)", size, MemoryLayout<T>.size))
    }

    /// Whether a struct of the host of this size can be written.
    static func fits<T>(_ size: Int, _: T.Type) -> Bool {
        size >= MemoryLayout<T>.size && size <= bytesMax
    }

    /// Writes a struct of the host whose size fits, and zeroes what is behind the result.
    static func write<T>(_ result: T, to out: UnsafeMutablePointer<T>, size: Int) {
        let raw = UnsafeMutableRawPointer(out)
        let known = MemoryLayout<T>.size
        unsafe withUnsafeBytes(of: result) {
            unsafe raw.copyMemory(from: $0.baseAddress!, byteCount: known)
        }
        unsafe (raw + known).initializeMemory(as: UInt8.self, repeating: 0, count: size - known)
    }

    static func text(_ status: Int32, _ name: String, _ size: UInt32, _ known: Int) -> String {
        status == Status.structSize
            ? "\(name).struct_size is \(size), the struct has \(known)"
            : size > UInt32(bytesMax)
                ? "\(name).struct_size is \(size), over 65,536"
                : "\(name).struct_size is \(size): bytes behind \(known) are not zero"
    }
}

/// The host's size_t, as text: a negative number is one beyond SSIZE_MAX.
func sizeText(_ size: Int) -> String {
    size == -1 ? "SIZE_MAX" : "\(UInt(bitPattern: size))"
}

enum CText {
    static func length(_ text: UnsafePointer<CChar>) -> Int { unsafe Memory.length(text) }

    static func string(_ text: UnsafePointer<CChar>?) -> String? {
        unsafe text.map { unsafe String(cString: $0) }
    }
}

/// Carries a callback's `user` to another thread; only the host knows what it points to.
@safe struct HostPointer: @unchecked Sendable {
    // SAFETY: never dereferenced here.
    let value: UnsafeMutableRawPointer?
}
