// A trace and one context field that a thread carries for a while, for example inside a
// transaction. Each attachment saves the previous values and restores them when it ends, the last
// one first. A list of malloc'ed blocks that starts in the thread's context words; the memory is
// the thread's own.
// SAFETY: a block is its head and `valueBytes` more; blocks are freed when they are detached, or
// with the thread.

import CShims

public enum ThreadAttachments {
    /// The most attachments of one thread at a time.
    public static let countMax: UInt32 = 16

    @safe private struct Head {
        var next: UnsafeMutableRawPointer?
        var owner: UInt
        var depth: UInt32
        var hadTrace: UInt32
        /// Below 0: there was no such field.
        var valueBytes: Int
        var trace: (UInt64, UInt64, UInt64, UInt64)
    }

    private static var headBytes: Int { MemoryLayout<Head>.stride }

    /// - Parameters:
    ///   - owner: tells this attachment from others.
    ///   - trace: 25 bytes (FORMAT §8.4).
    package static func attach(
        owner: UInt, trace: UnsafeRawPointer, key: UnsafeBufferPointer<UInt8>,
        value: UnsafeBufferPointer<UInt8>
    ) -> Int32 {
        guard let words = unsafe ThreadContext.words() else { return Status.memory }
        let outer = unsafe top(words)
        let depth = unsafe outer?.load(as: Head.self).depth ?? 0
        guard depth < countMax else { return Status.limit }
        let old = unsafe ThreadContext.value(of: key)
        guard let block = unsafe Memory.allocate(headBytes + (old?.count ?? 0)) else {
            return Status.memory
        }
        var head = unsafe Head(
            next: outer, owner: owner, depth: depth + 1, hadTrace: 0,
            valueBytes: old?.count ?? -1, trace: (0, 0, 0, 0))
        if let start = unsafe old?.baseAddress, let count = unsafe old?.count {
            unsafe (block + headBytes).copyMemory(from: start, byteCount: count)
        }
        if let before = unsafe ThreadContext.trace {
            head.hadTrace = 1
            unsafe withUnsafeMutableBytes(of: &head.trace) {
                unsafe $0.copyMemory(
                    from: UnsafeRawBufferPointer(start: before, count: TraceLayout.bytes))
            }
        }
        unsafe block.storeBytes(of: head, as: Head.self)
        let status = unsafe ThreadContext.set(key: key, value: value)
        guard status == Status.ok else {
            unsafe Memory.free(block)
            return status
        }
        _ = unsafe ThreadContext.setTrace(trace)
        unsafe setTop(words, block)
        return Status.ok
    }

    /// Returns `argument` if the owner's attachment is not the last one.
    package static func detach(owner: UInt, key: UnsafeBufferPointer<UInt8>) -> Int32 {
        guard let words = unsafe ThreadContext.words() else { return Status.memory }
        guard let block = unsafe top(words), unsafe block.load(as: Head.self).owner == owner
        else { return Status.argument }
        let head = unsafe block.load(as: Head.self)
        var status = Status.limit
        if head.valueBytes >= 0 {
            let value = unsafe UnsafeRawBufferPointer(
                start: block + headBytes, count: head.valueBytes
            ).assumingMemoryBound(to: UInt8.self)
            status = unsafe ThreadContext.set(key: key, value: value)
        }
        // If the host has used up the room meanwhile, the field is removed rather than left at our
        // value.
        if status != Status.ok { _ = unsafe ThreadContext.set(key: key, value: nil) }
        var trace = head.trace
        _ = unsafe withUnsafeBytes(of: &trace) {
            unsafe ThreadContext.setTrace(head.hadTrace != 0 ? $0.baseAddress : nil)
        }
        unsafe setTop(words, head.next)
        unsafe Memory.free(block)
        return Status.ok
    }

    /// Called when the thread's context is freed.
    static func freeAll(_ words: UnsafeMutableRawPointer) {
        var next = unsafe top(words)
        while let block = unsafe next {
            unsafe next = block.load(as: Head.self).next
            unsafe Memory.free(block)
        }
        unsafe setTop(words, nil)
    }

    private static func top(_ words: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
        unsafe UnsafeMutableRawPointer(
            bitPattern: words.load(fromByteOffset: ThreadContext.attachmentOffset, as: UInt.self))
    }

    private static func setTop(
        _ words: UnsafeMutableRawPointer, _ block: UnsafeMutableRawPointer?
    ) {
        unsafe words.storeBytes(
            of: UInt(bitPattern: block), toByteOffset: ThreadContext.attachmentOffset,
            as: UInt.self)
    }
}
