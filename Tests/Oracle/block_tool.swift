// What tests in Python need of the blocks that Swift reads and writes. block_against.py builds it.
//
//     block_tool lines LIST OUT     each block's records as lines of JSON, or what is wrong with it
//     block_tool arguments LIST OUT the same, but a deferred record has its arguments as message
//     block_tool efforts LIST OUT   each block's records in blocks of every effort and codec
//     block_tool text BYTES SEED FOLDER EVERY
//         Hostile texts as blocks of every effort, which must come back; each EVERYth of the texts'
//         blocks is also left in FOLDER, as N.list beside N.json, its records as they were put in.

import CordwoodCore
import Glibc

@testable import CordwoodStore

@main
enum BlockTool {
    static func main() {
        let words = CommandLine.arguments
        switch words.count > 1 ? words[1] : "" {
        case "lines" where words.count == 4: lines(read(words[2]), words[3])
        case "arguments" where words.count == 4: lines(read(words[2]), words[3], hasTexts: false)
        case "efforts" where words.count == 4: efforts(read(words[2]), words[3])
        case "text" where words.count == 6:
            var run = TextRun(folder: words[4], every: Int(words[5]) ?? 1)
            run.all(Int(words[2]) ?? 0, seed: UInt64(words[3]) ?? 1)
        default: stop("block_tool: see the top of block_tool.swift")
        }
    }

    static func stop(_ text: String) -> Never {
        fputs(text + "\n", stderr)
        exit(1)
    }

    static func read(_ path: String) -> [UInt8] {
        guard let file = fopen(path, "r") else { stop("\(path) cannot be read") }
        defer { fclose(file) }
        fseek(file, 0, SEEK_END)
        var bytes = [UInt8](repeating: 0, count: ftell(file))
        rewind(file)
        guard fread(&bytes, 1, bytes.count, file) == bytes.count else { stop("\(path): torn") }
        return bytes
    }

    static func write(_ bytes: [UInt8], _ path: String) {
        guard let file = fopen(path, "w"), fwrite(bytes, 1, bytes.count, file) == bytes.count,
            fclose(file) == 0
        else { stop("\(path) cannot be written") }
    }

    /// `lines NAME RESULT BYTES` and the lines of each.
    private static func lines(_ file: [UInt8], _ path: String, hasTexts: Bool = true) {
        var (list, out) = (BlockList(file), [UInt8]())
        var decoder = BlockDecoder()
        while let (name, block) = list.next() {
            var (lines, result) = ([UInt8](), "whole")
            do throws(BlockProblem) { lines = try block.lines(&decoder, hasTexts: hasTexts) } catch
            {
                result = "\(error)"
            }
            out += Array("lines \(name) \(result) \(lines.count)\n".utf8) + lines
        }
        write(out, path)
    }

    private static func efforts(_ file: [UInt8], _ path: String) {
        var (list, out) = (BlockList(file), [UInt8]())
        var decoder = BlockDecoder()
        while let (name, source) = list.next() {
            for effort in BlockEffort.allCases {
                for codec in Codec.allCases {
                    guard var block = try? source.block(&decoder),
                        var encoder = BlockEncoder(level: 3, seed: 1),
                        let made = try? BlockFile(&block, effort, codec, by: &encoder)
                    else { stop("\(name) cannot be written at \(effort)") }
                    out += BlockList.entry("\(name)-\(effort)-\(codec)", made)
                }
            }
        }
        write(out, path)
    }
}

/// Texts as blocks, and back.
private struct TextRun: ~Copyable {
    private let folder: String
    private let every: Int
    private var encoder = BlockEncoder(level: 3, seed: 1)!
    private var decoder = BlockDecoder()
    private var block = Block(seed: 1, target: ArchiveLimits.blockTarget)
    private var put: [TextRecord] = []
    private var made = (blocks: 0, records: 0, bytes: 0, left: 0)
    private var stored = [Int](repeating: 0, count: BlockEffort.allCases.count)
    private static let thread = ThreadInfo(
        process: ProcessInfo(
            laneID: LaneID(high: 1, low: 2), bootID: LaneID(high: 3, low: 4), processID: 812,
            name: "texts", createdRealtime: 1_790_000_000_000_000_000, createdMonotonic: 1_000,
            resource: []),
        serial: 1, threadID: 813, name: "")

    init(folder: String, every: Int) { (self.folder, self.every) = (folder, every) }

    mutating func all(_ bytes: Int, seed: UInt64) {
        var maker = TextMaker(seed: seed)
        while made.bytes < bytes {
            let record = maker.next()
            if !put.isEmpty, record.message.count > ArchiveLimits.blockTarget { close() }
            Self.with(record) { block.add(&$0) }
            put.append(record)
            made.bytes += record.message.count + 1
            if block.isFull() { close() }
        }
        if !put.isEmpty { close() }
        print(
            "\(made.bytes) bytes, \(made.records) records, \(made.blocks) blocks of each effort, "
                + "\(made.left) left for the oracle, stored \(stored)")
    }

    private mutating func close() {
        let isLeft = made.blocks % every == 0
        let codec = Codec.allCases[made.blocks / every % 3]
        var list: [UInt8] = []
        for effort in BlockEffort.allCases {
            do throws(BlockProblem) {
                let one = try BlockFile(&block, effort, codec, by: &encoder)
                check(one, effort)
                stored[Int(effort.rawValue)] += one.bytes.count
                if isLeft { list += BlockList.entry("\(effort)", one) }
            } catch {
                // BlockMaker stores it at effort 0 then.
                if case .unfit = error, effort != .swift { continue }
                BlockTool.stop("block \(made.blocks) at \(effort): \(error)")
            }
        }
        if isLeft {
            BlockTool.write(list, "\(folder)/\(made.left).list")
            var (lines, text) = ([UInt8](), DeferredText())
            for record in put {
                Self.with(record) { record in
                    var record = copy record
                    text.render(&record)
                    JSONLine.append(record, to: &lines)
                }
            }
            BlockTool.write(lines, "\(folder)/\(made.left).json")
            made.left += 1
        }
        made.blocks += 1
        made.records += put.count
        put.removeAll(keepingCapacity: true)
        block.removeAll()
    }

    private mutating func check(_ one: BlockFile, _ effort: BlockEffort) {
        let put = self.put
        var (next, isSame) = (0, true)
        var problem: BlockProblem?
        do throws(BlockProblem) {
            try one.each(&decoder) { found in
                guard isSame, next < put.count else { return isSame = false }
                let record = put[next]
                isSame =
                    found.message.elementsEqual(record.message)
                    && found.sections.elementsEqual(record.sections)
                    && found.context.elementsEqual(record.context)
                    && found.logger.elementsEqual(TextMaker.loggers[record.logger])
                    && found.monotonicNs == record.time && found.sequence == record.sequence
                    && found.level == record.level && found.isDeferred == record.isDeferred
                if isSame { next += 1 }
            }
        } catch { problem = error }
        guard problem == nil, isSame, next == put.count else {
            let said = problem.map { "\($0)" } ?? "differs"
            BlockTool.stop("block \(made.blocks) at \(effort): record \(next) \(said)")
        }
    }

    private static func with(_ record: TextRecord, _ use: (inout RecordRef) -> Void) {
        var found = RecordRef(thread: thread)
        found.monotonicNs = record.time
        found.writtenNs = record.time &+ 1_790_000_000_000_000_000
        found.timeNs = found.writtenNs
        found.sequence = record.sequence
        found.level = record.level
        let format = Array("%s".utf8)
        let types = [ArgumentType.text]
        let arguments = record.isDeferred ? BlockFile.little(UInt32(record.message.count)) : []
        let parts = [
            record.message, record.sections, record.context, TextMaker.loggers[record.logger],
            format, types, arguments + (record.isDeferred ? record.message : []),
        ]
        // The parts lie in one place while the record is used.
        var starts = [0]
        for part in parts { starts.append(starts[starts.count - 1] + part.count) }
        parts.flatMap { $0 }.withUnsafeBytes { all in
            func part(_ index: Int) -> UnsafeRawBufferPointer {
                UnsafeRawBufferPointer(rebasing: all[starts[index]..<starts[index + 1]])
            }
            (found.sections, found.context, found.logger) = (part(1), part(2), part(3))
            if record.isDeferred {
                found.isDeferred = true
                (found.format, found.argumentTypes, found.arguments) = (part(4), part(5), part(6))
            } else {
                found.message = part(0)
                found.originalLength = UInt64(found.message.count)
            }
            use(&found)
        }
    }
}
