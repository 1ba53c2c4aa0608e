// Reads an archive from end to end and checks that every byte is what its writer wrote. Used before
// an upload is answered with 2xx, and by `cordwood verify`. Stricter than the reader, which
// salvages what it can: frames must adjoin, and header, footer and blocks must agree.
// SAFETY: a block's view is not used once the next block is loaded.

import CordwoodCore

package struct ArchiveVerification: Sendable {
    package var info: ArchiveInfo
    /// Number of blocks whose checksums match and whose columns parse.
    package var blocksWhole = 0
    /// Number of records read from those blocks.
    package var recordCount: UInt64 = 0
    /// Number of records among them that no sync had covered when the machine went down.
    package var unverifiedCount: UInt64 = 0
    /// Number of records severe enough for an extract.
    fileprivate var severeCount: UInt64 = 0
    /// The lanes that it covers; nil: its header is damaged.
    fileprivate var lanes: Set<LaneID>?
    /// Problems found, cut at 64 texts.
    package var problems: [String] = []
    package var problemCount = 0
    /// Set for an encrypted archive that no identity opens: only its outside was checked, and
    /// records are not counted.
    package var locked: String?

    package var isWhole: Bool { problemCount == 0 }

    fileprivate mutating func report(_ text: String) {
        problemCount &+= 1
        if problems.count < ArchiveLimits.problemsMax { problems.append(text) }
    }
}

package enum ArchiveVerifier {
    /// Throws if the file cannot be read, is not an archive, or has a newer format; also, before
    /// inflating anything, if its blocks exceed `rawBytesMax` together. If none of the identities
    /// opens an encrypted archive, only the outside is checked.
    /// - Parameter progress: called after each block, with the bytes of the file up to its end.
    package static func verify(
        path: FilePath, identities: [AgeIdentity] = [], rawBytesMax: UInt64 = .max,
        progress: (_ bytes: UInt64) -> Void = { _ in }
    ) throws(ReadProblem) -> ArchiveVerification {
        let file = try ArchiveFile(path: path, identities: identities)
        let index = try ArchiveIndex.load(file, salvage: true, seals: true)
        var result = ArchiveVerification(info: index.info)
        if let locked = index.locked {
            try look(file, index, locked, &result)
            return result
        }
        for problem in index.problems { result.report(text(problem)) }
        if index.headerSpan > 0, !index.isOther {
            checkID(index.info, &result)
            result.lanes = Set(index.info.covers.map(\.laneID))
        }
        if let footer = index.footer, !index.isOther {
            compare(footer, index, file.size, &result)
        }

        guard index.blocks.allSatisfy({ $0.rawBytes <= rawBytesMax }),
            index.info.rawBytes <= rawBytesMax
        else {
            throw .damaged("\(path): \(index.info.rawBytes) bytes of blocks")
        }
        var loader = BlockLoader(isStrict: true)
        for entry in index.blocks {
            // A hostile archive may inflate 32,768-fold, for as long as this continues.
            if result.problemCount > ArchiveLimits.problemsMax { break }
            do throws(ReadProblem) {
                let head = try loader.load(entry, of: file)
                check(loader.view, head, entry, &result)
            } catch {
                if case .system = error { throw error }
                result.report(text(error))
            }
            progress(entry.offset &+ entry.spanBytes)
        }
        if let footer = index.footer {
            for side in footer.sides {
                do throws(ReadProblem) {
                    guard try side.isIntact(file) else {
                        throw .damaged("\(path): side frame at \(side.offset)")
                    }
                } catch {
                    if case .system = error { throw error }
                    result.report(text(error))
                    continue
                }
                if side == footer.extract { try check(extractOf: footer, file, &loader, &result) }
            }
        }
        if result.blocksWhole == index.blocks.count, result.recordCount != index.info.recordCount {
            result.report("\(path): \(result.recordCount) records of \(index.info.recordCount)")
        }
        return result
    }

    private static func check(
        extractOf footer: ArchiveIndex.Footer, _ file: borrowing ArchiveFile,
        _ loader: inout BlockLoader, _ result: inout ArchiveVerification
    ) throws(ReadProblem) {
        guard let extract = ExtractPlace(file, footer) else {
            return result.report("\(file.path): head of the extract")
        }
        do throws(ReadProblem) {
            let head = try loader.load(extract.block, of: file)
            var copies = ArchiveVerification(info: result.info)
            copies.lanes = result.lanes
            check(loader.view, head, extract.block, &copies)
            for problem in copies.problems { result.report("\(problem) of the extract") }
            if copies.isWhole, copies.recordCount != result.severeCount, result.isWhole {
                result.report(
                    "\(file.path): \(copies.recordCount) records of the extract, "
                        + "\(result.severeCount) in the blocks")
            }
        } catch {
            if case .system = error { throw error }
            result.report(text(error))
        }
    }

    private static func look(
        _ file: borrowing ArchiveFile, _ index: ArchiveIndex, _ locked: ReadProblem,
        _ result: inout ArchiveVerification
    ) throws(ReadProblem) {
        result.locked = text(locked)
        checkID(index.info, &result)
        if let problem = try file.checkLocked() { result.report("\(file.path): \(problem)") }
    }

    private static func checkID(_ info: ArchiveInfo, _ result: inout ArchiveVerification) {
        let id = ArchiveIdentity.id(
            info.covers, replaced: info.replaced, lostPlaces: info.lostPlaces)
        if id != info.id { result.report("\(info.path): the id is not that of its records") }
    }

    private static func compare(
        _ footer: ArchiveIndex.Footer, _ index: ArchiveIndex, _ size: UInt64,
        _ result: inout ArchiveVerification
    ) {
        let info = index.info
        if footer.id != info.id { result.report("\(info.path): id of the footer") }
        if footer.recordCount != info.recordCount || footer.rawBytes != info.rawBytes
            || footer.timeMin != info.timeMin || footer.timeMax != info.timeMax
            || footer.writtenMin != info.writtenMin || footer.writtenMax != info.writtenMax
        {
            result.report("\(info.path): sums of the footer")
        }
        var expected =
            index.headerSpan > 0 ? index.headerSpan : index.blocks.first?.offset ?? 0
        for block in index.blocks {
            if block.offset != expected {
                result.report("\(info.path): bytes before \(block.offset)")
            }
            expected = block.offset &+ block.spanBytes
        }
        for side in footer.sides {
            if side.offset != expected {
                result.report("\(info.path): bytes before \(side.offset)")
            }
            expected = side.offset &+ side.spanBytes
        }
        if expected != size - footer.span {
            result.report("\(info.path): bytes before the footer")
        }
    }

    private static func check(
        _ view: BlockView, _ head: BlockHead, _ entry: BlockEntry,
        _ result: inout ArchiveVerification
    ) {
        let place = "\(result.info.path): block at \(entry.offset)"
        var said = BlockEntry(header: head, at: entry.offset)
        said.isExtract = entry.isExtract
        if said != entry {
            result.report("\(place) and its footer entry differ")
            return
        }
        var records = BlockRecords(view)
        if let lanes = result.lanes,
            !records.dictionaries.processes.allSatisfy({ lanes.contains($0.laneID) })
        {
            result.report("\(place): a process of a lane that the archive does not cover")
        }
        var seen = BlockSummary()
        var record = RecordRef()
        while true {
            switch records.next(into: &record) {
            case .record:
                seen.count(record)
                if record.level >= ArchiveExtract.levelValue { result.severeCount &+= 1 }
                if record.flags.contains(.unverified) { result.unverifiedCount &+= 1 }
            case .damaged:
                result.report("\(place): columns")
                return
            case .end:
                result.recordCount &+= UInt64(seen.recordCount)
                if seen.says(head) {
                    result.blocksWhole += 1
                } else {
                    result.report("\(place): times, levels or kinds")
                }
                return
            }
        }
    }

    private static func text(_ problem: ReadProblem) -> String {
        switch problem {
        case .damaged(let text), .version(let text), .system(let text, _), .locked(let text): text
        }
    }
}

extension BlockSummary {
    fileprivate func says(_ head: BlockHead) -> Bool {
        recordCount == head.recordCount && timeMin == head.timeMin && timeMax == head.timeMax
            && writtenMin == head.writtenMin && writtenMax == head.writtenMax
            && levels == head.levels && kinds == head.kinds
    }
}
