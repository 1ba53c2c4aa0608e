// Finds the blocks of an archive whose footer is damaged (FORMAT §11.3): it steps from frame to
// frame and, if that fails, searches for the next block header whose checksum matches. Reads every
// byte about once at most, whatever the file contains.
// SAFETY: `fill` makes the window hold a header's frame at `offset` before `here` is used; a view
// of it is no longer used at the next `fill`.

import CZstd
import CordwoodCore

struct FrameWalk: ~Copyable {
    private(set) var blocks: [BlockEntry] = []
    private(set) var problems: [ReadProblem] = []
    private var offset: UInt64
    private var window = GrowingBytes()
    private var windowStart: UInt64 = 0
    private var small = GrowingBytes()

    private static let windowBytes: UInt64 = 256 << 10

    init(from offset: UInt64) { self.offset = offset }

    mutating func run(_ file: borrowing ArchiveFile) throws(ReadProblem) {
        while blocks.count < ArchiveLimits.blocksMax {
            guard try fill(file) else { return }
            if take(file) { continue }
            if try stepOver(file) { continue }
            guard try seek(file) else { return }
        }
    }

    /// Makes the window hold a block header's frame at `offset`; false if the file ends too early.
    private mutating func fill(_ file: borrowing ArchiveFile) throws(ReadProblem) -> Bool {
        let wanted = UInt64(BlockHeader.frameBytes)
        guard offset <= file.size, file.size - offset >= wanted else { return false }
        if offset >= windowStart, offset + wanted <= windowStart + UInt64(window.count) {
            return true
        }
        windowStart = offset
        return try file.read(min(Self.windowBytes, file.size - offset), at: offset, into: &window)
    }

    @safe private var here: UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(rebasing: window.bytes[Int(offset - windowStart)...])
    }

    /// Takes the block at `offset`. False if no block begins there.
    private mutating func take(_ file: borrowing ArchiveFile) -> Bool {
        switch BlockHead.read(here) {
        case .bad: return false
        case .newer(let what):
            report(.version("\(file.path): \(what) of the block at \(offset)"))
            offset += UInt64(BlockHeader.frameBytes)
        case .good(let head):
            let entry = BlockEntry(header: head, at: offset)
            if entry.spanBytes <= file.size - offset {
                blocks.append(entry)
                offset += entry.spanBytes
            } else {
                report(.damaged("\(file.path): cut in the block at \(offset)"))
                offset += UInt64(BlockHeader.frameBytes)
            }
        }
        return true
    }

    /// Steps over a skippable frame if something known follows it.
    private mutating func stepOver(_ file: borrowing ArchiveFile) throws(ReadProblem) -> Bool {
        guard here.word(0, UInt32.self) == SkippableFrame.magicValue else { return false }
        let next = offset + UInt64(SkippableFrame.headerBytes) + UInt64(here.word(4, UInt32.self))
        guard next < file.size, file.size - next >= 4,
            try file.read(4, at: next, into: &small)
        else { return false }
        switch unsafe small.bytes.word(0, UInt32.self) {
        case SkippableFrame.magicValue, UInt32(ZSTD_MAGICNUMBER), FrameMagic.lz4: break
        default: return false
        }
        if BlockHead.isStart(here) {
            report(.damaged("\(file.path): header of the block at \(offset)"))
        }
        offset = next
        return true
    }

    /// Moves on to the next block header whose checksum matches.
    private mutating func seek(_ file: borrowing ArchiveFile) throws(ReadProblem) -> Bool {
        if here.word(SkippableFrame.headerBytes, UInt64.self) != ArchiveFooter.magicValue {
            report(.damaged("\(file.path): no frame at \(offset), looking for the next block"))
        }
        offset += 1
        while try fill(file) {
            let bytes = here
            let last = bytes.count - BlockHeader.frameBytes
            for index in 0...last
            where unsafe bytes.word(index, UInt32.self) == SkippableFrame.magicValue
                && isHeader(UnsafeRawBufferPointer(rebasing: bytes[index...]))
            {
                offset += UInt64(index)
                return true
            }
            offset += UInt64(last + 1)
        }
        return false
    }

    @safe private func isHeader(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if case .bad = BlockHead.read(bytes) { return false }
        return true
    }

    private mutating func report(_ problem: ReadProblem) {
        if problems.count < ArchiveLimits.problemsMax { problems.append(problem) }
    }
}

enum FrameMagic {
    static let lz4: UInt32 = 0x184D_2204
}
