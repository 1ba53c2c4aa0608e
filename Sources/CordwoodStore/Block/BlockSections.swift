// The parts of a record besides its message, as an archive keeps them (FORMAT §11.4).
// Stored sections are copied, except those that have their own column; then what the source itself
// knows (place, original length, own time) is added. A malformed section ends the copy.
// SAFETY: `whole` begins one header before the body that the cursor has just passed, so it lies in
// the same view; tables copy what they keep.

import CordwoodCore

/// Walks the sections of FORMAT §8.1; ends at the first that does not fit.
struct SectionWalk {
    private var cursor: ByteCursor

    @safe init(_ sections: UnsafeRawBufferPointer) { cursor = ByteCursor(sections) }

    /// `whole` includes the section's header.
    @safe mutating func next() -> (
        kind: UInt8, body: UnsafeRawBufferPointer, whole: UnsafeRawBufferPointer
    )? {
        let start = unsafe cursor.position
        guard let head = cursor.word(UInt32.self), let size = cursor.word(UInt32.self),
            let body = cursor.bytes(UInt64(size))
        else { return nil }
        let whole = unsafe UnsafeRawBufferPointer(
            start: start, count: body.count + SectionKind.headerBytes)
        return unsafe (UInt8(truncatingIfNeeded: head), body, whole)
    }
}

extension Block {
    /// Appends the sections of one record to sections.
    mutating func appendSections(_ record: inout RecordRef, cut: Bool, budget: Int) -> Bool {
        let start = sections.count
        var left = budget
        var cut = cut
        var hasPlace = false
        var hasTime = false
        var walk = SectionWalk(record.sections)
        while let (kind, body, whole) = walk.next() {
            switch kind {
            case SectionKind.message, SectionKind.kind, SectionKind.site,
                SectionKind.originalLength, SectionKind.arguments, SectionKind.definition:
                continue
            // One that does not fit its bytes says nothing.
            case SectionKind.place: hasPlace = PlaceSection(body) != nil
            case SectionKind.time: hasTime = body.count == 8
            default: break
            }
            if whole.count > left {
                // Larger than a block can hold: the record is marked as cut.
                cut = true
                continue
            }
            left -= whole.count
            sections.append(whole)
        }
        if !hasTime, record.timeNs != record.writtenNs {
            append(section: SectionKind.time, word: record.timeNs)
        }
        if !hasPlace, !record.isDeferred,
            unsafe record.line != 0 || !record.file.isEmpty || !record.function.isEmpty
        {
            append(section: SectionKind.site, word: UInt32(truncatingIfNeeded: siteIndex(&record)))
        }
        if !record.isDeferred,
            cut || record.flags.contains(.truncated)
                || record.originalLength > UInt64(record.message.count)
        {
            append(section: SectionKind.originalLength, word: record.originalLength)
        }
        sectionBytesOfRecord = sections.count - start
        return cut
    }

    private mutating func append<Word: FixedWidthInteger>(section kind: UInt8, word: Word) {
        sections.append(word: UInt32(kind))
        sections.append(word: UInt32(MemoryLayout<Word>.size))
        sections.append(word: word)
    }

    private mutating func siteIndex(_ record: inout RecordRef) -> Int {
        putPlace(&record)
        return unsafe sites.index(scratch.bytes)
    }

    /// Line, file and function, with which sites and formats begin.
    mutating func putPlace(_ record: inout RecordRef) {
        scratch.removeAll()
        scratch.append(varint: UInt64(record.line))
        scratch.append(string: record.file, max: ArchiveLimits.stringMax)
        scratch.append(string: record.function, max: ArchiveLimits.stringMax)
    }

    /// Index of the context, plus 1; 0: none.
    mutating func contextNumber(_ record: inout RecordRef) -> Int {
        let fields =
            unsafe record.context.count <= ArchiveLimits.contextMax
            ? record.context : UnsafeRawBufferPointer(start: nil, count: 0)
        let shared = !hasOwnTrace(record.sections) && record.trace.count == TraceLayout.bytes
        if unsafe fields.isEmpty && !shared { return 0 }
        scratch.removeAll()
        scratch.append(varint: UInt64(fields.count))
        scratch.append(fields)
        if shared {
            scratch.append(record.trace)
        } else {
            for _ in 0..<TraceLayout.bytes { scratch.append(0) }
        }
        return unsafe contexts.index(scratch.bytes) + 1
    }

    @safe private func hasOwnTrace(_ sections: UnsafeRawBufferPointer) -> Bool {
        if unsafe sections.isEmpty { return false }
        var walk = SectionWalk(sections)
        while let (kind, body, _) = walk.next() {
            if kind == SectionKind.trace { return body.count == TraceLayout.bytes }
        }
        return false
    }
}
