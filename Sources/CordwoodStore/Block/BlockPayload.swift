// The payload of method 1 (FORMAT §11.4), made of a block's columns.
// SAFETY: views of the columns are used only while nothing but `head` grows; ten bytes are reserved
// for each varint.

import CordwoodCore

extension Block {
    /// All streams, one after another. Valid until the block changes; whole unless it `failed`.
    @safe mutating func assemble() -> UnsafeRawBufferPointer {
        if failed { return Bytes.none }
        var head = GrowingBytes()
        swap(&head, &self.head)
        defer { swap(&head, &self.head) }
        assembleHead(into: &head)
        // Messages go last, so that `zstd -dc` shows them at the end of each block.
        let count = messages.count - headRoom
        head.store(UInt32(truncatingIfNeeded: count), at: 4 * ArchiveLimits.streams)
        if head.count > headRoom {
            unsafe head.append(UnsafeRawBufferPointer(rebasing: messages.bytes.suffix(count)))
            return unsafe head.bytes
        }
        let start = headRoom - head.count
        unsafe (messages.base + start).copyMemory(from: head.base, byteCount: head.count)
        return unsafe UnsafeRawBufferPointer(rebasing: messages.bytes.dropFirst(start))
    }

    /// The table, and all streams except messages.
    private mutating func assembleHead(into out: inout GrowingBytes) {
        out.removeAll()
        let table = 4 + 4 * ArchiveLimits.streams
        guard unsafe out.claim(table) != nil else { return }
        out.store(UInt32(ArchiveLimits.streams), at: 0)
        var stream = 0
        var start = table
        func close(_ out: inout GrowingBytes) {
            out.store(UInt32(truncatingIfNeeded: out.count - start), at: 4 + 4 * stream)
            stream += 1
            start = out.count
        }
        out.append(varint: UInt64(people.processCount))
        unsafe out.append(people.processes.bytes)
        close(&out)
        out.append(varint: UInt64(people.threadCount))
        unsafe out.append(people.threads.bytes)
        close(&out)
        out.append(varint: UInt64(loggers.count))
        for index in 0..<loggers.count {
            unsafe out.append(string: loggers.bytes(index), max: ArchiveLimits.stringMax)
        }
        close(&out)
        out.append(varint: UInt64(sites.count))
        for index in 0..<sites.count { unsafe out.append(sites.bytes(index)) }
        close(&out)
        out.append(varint: UInt64(contexts.count))
        for index in 0..<contexts.count { unsafe out.append(contexts.bytes(index)) }
        close(&out)
        thread.append(varintsTo: &out)
        close(&out)
        time.append(stepsTo: &out)
        close(&out)
        offset.append(stepsTo: &out)
        close(&out)
        sequence.append(zigzagsTo: &out)
        close(&out)
        level.append(varintsTo: &out, isOctet: true)
        close(&out)
        kind.append(varintsTo: &out, isOctet: true)
        close(&out)
        logger.append(varintsTo: &out)
        close(&out)
        context.append(varintsTo: &out)
        close(&out)
        length.append(varintsTo: &out)
        close(&out)
        sectionLength.append(varintsTo: &out)
        close(&out)
        unsafe out.append(sections.bytes)
        close(&out)
        out.append(varint: UInt64(formats.count))
        for index in 0..<formats.count { unsafe out.append(formats.bytes(index)) }
        close(&out)
        format.append(varintsTo: &out)
        close(&out)
        unsafe out.append(arguments.bytes)
        close(&out)
    }
}

extension NumberColumn {
    /// isOctet: a byte each.
    fileprivate func append(varintsTo out: inout GrowingBytes, isOctet: Bool = false) {
        if count == 0 { return }
        if isConst, isOctet || self[0] < 0x80 {
            guard let target = unsafe out.claim(count) else { return }
            let byte = UInt8(truncatingIfNeeded: self[0])
            unsafe target.initializeMemory(as: UInt8.self, repeating: byte, count: count)
            return
        }
        if isOctet, MemoryLayout<Word>.size == 1 { return unsafe out.append(bytes) }
        append(to: &out) { word, _ in word }
    }

    fileprivate func append(zigzagsTo out: inout GrowingBytes) {
        append(to: &out) { word, _ in Zigzag.coded(word) }
    }

    /// Zigzags of the differences.
    fileprivate func append(stepsTo out: inout GrowingBytes) {
        append(to: &out) { word, last in Zigzag.coded(word &- last) }
    }

    /// A varint for each, of what `code` makes of it and the one before.
    @inline(__always)
    private func append(to out: inout GrowingBytes, _ code: (UInt64, UInt64) -> UInt64) {
        guard out.reserve(10 &* count) else { return }
        let start = unsafe out.base + out.count
        var target = unsafe start
        var last: UInt64 = 0
        let words = unsafe bytes.baseAddress?.assumingMemoryBound(to: Word.self)
        for row in 0..<count {
            let word = unsafe UInt64(isConst ? self[0] : Word(littleEndian: words?[row] ?? 0))
            var rest = code(word, last)
            last = word
            while rest >= 0x80 {
                unsafe target.storeBytes(of: UInt8(truncatingIfNeeded: rest) | 0x80, as: UInt8.self)
                unsafe target += 1
                rest &>>= 7
            }
            unsafe target.storeBytes(of: UInt8(truncatingIfNeeded: rest), as: UInt8.self)
            unsafe target += 1
        }
        unsafe out.resize(out.count + (target - start))
    }
}
