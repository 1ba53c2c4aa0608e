// A copy of an archive with its dense blocks in plain form (FORMAT §11.2, method 1) and without an
// extract, for readers that know neither. A dense block represents the payload of a plain one, byte
// for byte, so covers, id, records and their order stay. One thread at a time.
// SAFETY: views are of buffers that do not change while one is used.

import CordwoodCore

package enum PlainCopy {
    package enum Outcome {
        case copied
        /// No block is dense, and there is no extract: the copy would be identical.
        case same
        case stopped
    }

    /// - Parameter write: takes the copy, piece by piece; false: it cannot, and copying ends.
    /// Throws if the archive is encrypted or damaged.
    package static func make(
        path: FilePath, shouldStop: () -> Bool, write: (UnsafeRawBufferPointer) -> Bool
    ) throws(ReadProblem) -> Outcome {
        let file = try ArchiveFile(path: path)
        let index = try ArchiveIndex.load(file, salvage: false)
        if let problem = index.locked ?? index.problems.first { throw problem }
        guard let footer = index.footer else { throw .damaged("\(path): no footer") }
        guard let compressor = BlockCompressor(codec: .zstd, level: 0) else {
            throw .system("read \(path)", errno: Errno.ENOMEM)
        }
        var copy = Copy(compressor, path, headerSpan: index.headerSpan)
        if footer.sides.isEmpty, try !copy.hasDense(index.blocks, file) { return .same }
        try copy.begin(file)
        guard unsafe write(copy.out.bytes) else { return .stopped }
        for entry in index.blocks {
            if shouldStop() { return .stopped }
            try copy.take(entry, file)
            guard unsafe write(copy.out.bytes) else { return .stopped }
        }
        try copy.end(footer, file)
        return unsafe write(copy.out.bytes) ? .copied : .stopped
    }

    private struct Copy: ~Copyable {
        /// The piece to be written next.
        private(set) var out = GrowingBytes()
        private var entries = GrowingBytes()
        private var loader = BlockLoader(isStrict: true)
        private let compressor: BlockCompressor
        private var written: UInt64
        private let path: FilePath

        init(_ compressor: consuming BlockCompressor, _ path: FilePath, headerSpan: UInt64) {
            self.compressor = compressor
            self.path = path
            written = headerSpan
        }

        /// Puts the header into `out`.
        mutating func begin(_ file: borrowing ArchiveFile) throws(ReadProblem) {
            guard try file.read(written, at: 0, into: &out) else {
                throw .damaged("\(path): header")
            }
        }

        mutating func hasDense(
            _ blocks: [BlockEntry], _ file: borrowing ArchiveFile
        ) throws(ReadProblem) -> Bool {
            var head = GrowingBytes()
            for entry in blocks {
                guard
                    try file.read(UInt64(BlockHeader.frameBytes), at: entry.offset, into: &head),
                    case .good(let found) = unsafe BlockHead.read(head.bytes)
                else { throw .damaged("\(path): header of the block at \(entry.offset)") }
                if found.isDense { return true }
            }
            return false
        }

        /// Puts the block into `out`.
        mutating func take(
            _ entry: BlockEntry, _ file: borrowing ArchiveFile
        ) throws(ReadProblem) {
            let head = try loader.load(entry, of: file)
            guard head.isDense else {
                guard try file.read(entry.spanBytes, at: entry.offset, into: &out) else {
                    throw .damaged("\(path): size of the block at \(entry.offset)")
                }
                return append(entry, span: entry.spanBytes, storedCRC: entry.storedCRC)
            }
            guard try file.read(UInt64(BlockHeader.frameBytes), at: entry.offset, into: &out),
                unsafe compressor.append(loader.payload, to: &out)
            else { throw .system("read \(path)", errno: Errno.ENOMEM) }
            let start = SkippableFrame.headerBytes
            let storedCRC = unsafe checksum(out.bytes, from: BlockHeader.frameBytes)
            out.store(BlockHeader.methodColumns, at: start + BlockHeader.method)
            out.store(
                UInt64(out.count - BlockHeader.frameBytes), at: start + BlockHeader.storedBytes)
            out.store(storedCRC, at: start + BlockHeader.storedCRC)
            out.store(
                unsafe checksum(loader.payload, from: 0), at: start + BlockHeader.rawCRC)
            out.store(UInt32(0), at: start + BlockHeader.headerCRC)
            let header = unsafe UnsafeRawBufferPointer(
                start: out.base + start, count: BlockHeader.bytes)
            out.store(checksum(header, from: 0), at: start + BlockHeader.headerCRC)
            append(entry, span: UInt64(out.count), storedCRC: storedCRC)
        }

        private mutating func append(_ entry: BlockEntry, span: UInt64, storedCRC: UInt32) {
            entries.append(word: written)
            entries.append(word: span)
            entries.append(word: entry.timeMin)
            entries.append(word: entry.timeMax)
            entries.append(word: entry.levels)
            entries.append(word: entry.kinds)
            entries.append(word: entry.recordCount)
            entries.append(word: storedCRC)
            entries.append(word: entry.rawBytes)
            entries.append(word: entry.writtenMin)
            entries.append(word: entry.writtenMax)
            written &+= span
        }

        /// Puts the footer into `out`: the old one with other entries.
        mutating func end(
            _ footer: ArchiveIndex.Footer, _ file: borrowing ArchiveFile
        ) throws(ReadProblem) {
            let start = SkippableFrame.headerBytes
            let size = start + ArchiveFooter.bytes + entries.count + ArchiveFooter.trailerBytes
            let sides = footer.sides.count * SideFrame.bytes
            guard UInt64(size + sides) == footer.span,
                try file.read(
                    UInt64(start + ArchiveFooter.bytes), at: file.size - footer.span, into: &out)
            else { throw .damaged("\(path): footer") }
            // The copy has no side frames.
            out.store(UInt32(0), at: start + ArchiveFooter.sideCount)
            out.store(UInt32(size - start), at: 4)
            unsafe out.append(entries.bytes)
            out.append(word: UInt32(truncatingIfNeeded: size))
            unsafe out.append(word: checksum(out.bytes, from: start))
            out.append(word: ArchiveFooter.endMagicValue)
            if out.failed || entries.failed {
                throw .system("read \(path)", errno: Errno.ENOMEM)
            }
        }
    }
}
