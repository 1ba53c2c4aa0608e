// What a lane's file says before the lane is opened: its header and, of a small lane whose process
// is gone, when its records were written. A reader of the last records then leaves out the lane, or
// opens it, which costs many times as much. Anything unusual is left to the reader, which reports
// it.
// SAFETY: views are of a ReadBuffer held in a variable.

import CordwoodCore

struct LaneGlance {
    let head: LaneHead
    /// nil: not asked, or the lane is not small, or may change, or has gaps or damage.
    private(set) var span: SegmentSpan?

    /// nil: the lane's file or its header cannot be read.
    /// - Parameter namespace: that of the running process; nil: the span is not wanted.
    init?(_ files: LaneFiles, runningBoot: LaneID, namespace: UInt64?) {
        let isAlone = namespace != nil && files.segments.isEmpty && !files.hasJournal
        guard let file = try? ReadFile(path: files.lanePath),
            let page = try? file.copy(at: 0, count: LaneHeader.dropsOffsetValue),
            let head = try? unsafe LaneHead(page.bytes, path: files.lanePath)
        else { return nil }
        self.head = head
        // Records are read after the process was seen to be gone: it logs no more.
        guard isAlone, let namespace, head.archivedBelow == 0,
            head.hasEnded(runningBoot: runningBoot, namespace: namespace),
            let bytes = try? file.copy(at: 0, count: LaneContext.smallBytes)
        else { return }
        span = unsafe LaneGlance.span(bytes.bytes, head, files.lanePath)
    }

    @safe private static func span(
        _ lane: UnsafeRawBufferPointer, _ head: LaneHead, _ path: FilePath
    ) -> SegmentSpan? {
        // Refused records would be reported after the last one.
        guard head.dropsOffset &+ head.dropsCount &* DropSlot.bytes <= lane.count else {
            return nil
        }
        let hasDrops = (0..<head.dropsCount).contains {
            let at = head.dropsOffset &+ $0 &* DropSlot.bytes
            return Bytes.u64(lane, at &+ DropSlot.dropped) != 0
        }
        guard !hasDrops, let base = Int(exactly: head.segmentOffset), base <= lane.count,
            let bytes = Bytes.slice(lane, base, lane.count &- base),
            let segment = try? SegmentHead(bytes, path: path),
            segment.laneID == head.laneID, segment.number == 0, !segment.isDamaged,
            segment.state != SegmentHeader.stateDead
        else { return nil }
        let isSealed = segment.state == SegmentHeader.stateSealed
        let end = min(segment.allocated, segment.ready)
        let clock = ClockTable(header: bytes)
        guard !clock.pairs.isEmpty, end <= head.segmentBytes, end <= segment.size,
            max(end, isSealed ? segment.end : 0) <= UInt64(bytes.count)
        else { return nil }
        var span = SegmentSpan(number: 0)
        var checksum: UInt32 = 0
        var at = segment.headerBytes
        while at &+ UInt64(ChunkHeader.bytes) <= end {
            guard let header = Bytes.slice(bytes, Int(at), ChunkHeader.bytes),
                let chunk = ChunkHead(header, segment: segment, at: at)
            else {
                at &+= UInt64(ChunkHeader.granule)
                continue
            }
            guard let body = Bytes.slice(bytes, Int(at), Int(chunk.end)),
                span.take(body, chunk, clock)
            else { return nil }
            if isSealed, chunk.final != 0 {
                guard StreamCursor.crcHolds(body, chunk) else { return nil }
                chunk.add(to: &checksum)
            }
            at &+= UInt64(chunk.size)
        }
        return span.records > 0 && (!isSealed || checksum == segment.chunksCRC) ? span : nil
    }
}

extension SegmentSpan {
    /// Adds the records of a chunk. False: it has a gap, or is damaged.
    @safe fileprivate mutating func take(
        _ chunk: UnsafeRawBufferPointer, _ head: ChunkHead, _ clock: ClockTable
    ) -> Bool {
        var base = head.baseTicks
        var at = ChunkHeader.bytes
        while at < chunk.count {
            let size = Int(Bytes.u32(chunk, at))
            let type = Bytes.u8(chunk, at &+ RecordHeader.type)
            guard size >= RecordHeader.bytes, size <= chunk.count &- at, type != RecordType.gap
            else { return false }
            if RecordType.isCounted(type) {
                let ticks = base &+ UInt64(Bytes.u32(chunk, at &+ RecordHeader.delta))
                let time = clock.times(of: ticks).monotonic
                firstNs = min(firstNs, time)
                lastNs = max(lastNs, time)
                records &+= 1
            } else if type == RecordType.timeBase, size >= 24 {
                base = Bytes.u64(chunk, at &+ RecordHeader.payload)
            }
            at = (at &+ size &+ 7) & ~7
        }
        return true
    }
}
