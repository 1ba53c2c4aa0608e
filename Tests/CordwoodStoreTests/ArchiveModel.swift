// Seeded random records for the tests of archives: a plain model that keeps every byte it made, and
// a source that returns them from one buffer that it overwrites each time, as real sources do.

import CordwoodCore
import CordwoodTestSupport
import Glibc
import XCTest

@testable import CordwoodStore

struct ModelRecord: Equatable {
    var lane = LaneID.zero
    var processName = ""
    var resource: [String] = []
    var serial: UInt32 = 0
    var threadID: UInt32 = 0
    var threadName = ""
    var monotonic: UInt64 = 0
    var written: UInt64 = 0
    var time: UInt64 = 0
    var sequence: UInt64 = 0
    var level: UInt8 = 0
    var kind: UInt8 = 0
    var flags: UInt8 = 0
    var logger: [UInt8] = []
    var message: [UInt8] = []
    var originalLength: UInt64 = 0
    var file: [UInt8] = []
    var function: [UInt8] = []
    var line: UInt32 = 0
    /// Kind to bytes, without the kinds that an archive keeps elsewhere.
    var sections: [UInt8: [UInt8]] = [:]
    var context: [UInt8] = []
    var trace: [UInt8] = []

    init() {}

    init(_ record: RecordRef) {
        let thread = record.thread
        lane = thread.process.laneID
        processName = thread.process.name
        resource = thread.process.resource.flatMap { [$0.key, $0.value] }
        serial = thread.serial
        threadID = thread.threadID
        threadName = thread.name
        monotonic = record.monotonicNs
        written = record.writtenNs
        time = record.timeNs
        sequence = record.sequence
        level = record.level
        kind = record.kind
        flags = record.flags.rawValue
        logger = Array(record.logger)
        message = Array(record.message)
        originalLength = record.originalLength
        file = Array(record.file)
        function = Array(record.function)
        line = record.line
        context = Array(record.context)
        trace = Array(record.trace)
        var walk = SectionWalk(record.sections)
        while let (kind, body, _) = walk.next() {
            if [1, 3, 8, 9].contains(kind) { continue }
            sections[kind] = Array(body)
        }
    }
}

func little<Word: FixedWidthInteger>(_ word: Word) -> [UInt8] {
    withUnsafeBytes(of: word.littleEndian) { Array($0) }
}

/// A model record and what else the source needs.
struct Staged {
    var model = ModelRecord()
    var thread: ThreadInfo
    var storedSections: [UInt8] = []
}

struct RecordMaker {
    var random: SplitMix
    var threads: [ThreadInfo] = []
    private var loggers: [[UInt8]] = [[]]
    private var contexts: [[UInt8]] = [[]]
    private var sequences: [Int: UInt64] = [:]
    private var clock: UInt64 = 1_000_000

    /// Records for blocks of about 1 MiB: each has `others` records, then one that fills it.
    static func largeBlocks(seed: UInt64, count: Int, others: Int) -> [Staged] {
        var maker = RecordMaker(seed: seed)
        var records: [Staged] = []
        for _ in 0..<count {
            records += maker.records(others)
            var last = Staged(thread: maker.threads[0])
            last.model = ModelRecord(RecordRef(thread: last.thread))
            last.model.message = maker.random.bytes(1 << 20)
            last.model.originalLength = 1 << 20
            records.append(last)
        }
        return records
    }

    init(seed: UInt64, processes: Int = 4, threadsEach: Int = 6) {
        random = SplitMix(seed)
        for process in 0..<processes {
            let info = CordwoodStore.ProcessInfo(
                laneID: coverForTests.laneID, bootID: LaneID(high: random.next(), low: 7),
                processID: UInt32(100 + process),
                name: "process-\(process)", createdRealtime: random.next() >> 2,
                createdMonotonic: random.next() >> 20,
                resource: (0..<process).map { ("key.\($0)", "värde \($0)") })
            for thread in 0..<threadsEach {
                threads.append(
                    ThreadInfo(
                        process: info, serial: UInt32(thread + 1), threadID: UInt32(9_000 + thread),
                        name: thread == 0 ? "" : "worker \(thread)"))
            }
        }
        for index in 0..<20 { loggers.append(Array("app.part\(index).module".utf8)) }
        for _ in 0..<10 { contexts.append(fields(1 + random.below(4))) }
    }

    mutating func records(_ count: Int) -> [Staged] { (0..<count).map { _ in record() } }

    mutating func record() -> Staged {
        let who = random.below(threads.count)
        var staged = Staged(thread: threads[who])
        let process = threads[who].process
        clock &+= UInt64(random.below(5_000))
        if random.chance(50) { clock &-= UInt64(random.below(20_000)) }
        let step = random.chance(30) ? random.next() >> 30 : 1
        sequences[who] = (sequences[who] ?? 0) &+ step
        var model = ModelRecord()
        model.lane = process.laneID
        model.processName = process.name
        model.resource = process.resource.flatMap { [$0.key, $0.value] }
        model.serial = threads[who].serial
        model.threadID = threads[who].threadID
        model.threadName = threads[who].name
        model.monotonic = clock
        model.written = clock &+ 1_700_000_000_000_000_000 &+ UInt64(random.below(3))
        model.time = model.written
        model.sequence = sequences[who]!
        model.level = UInt8(random.below(25))
        model.kind = UInt8(random.chance(5) ? random.below(5) : 0)
        model.logger = loggers[random.below(loggers.count)]
        model.message = message()
        model.originalLength = UInt64(model.message.count)
        model.context = random.chance(3) ? contexts[random.below(contexts.count)] : []
        if random.chance(4) { model.trace = random.bytes(25) }
        if random.chance(10) { model.flags |= RecordFlags.unverified.rawValue }
        if random.chance(20) {
            model.flags |= RecordFlags.truncated.rawValue
            model.originalLength &+= random.next() >> 32
        }
        if random.chance(2) { staged.storedSections = dress(&model) }
        staged.model = model
        return staged
    }

    private mutating func message() -> [UInt8] {
        switch random.below(12) {
        case 0: return []
        case 1: return random.bytes(random.below(200))
        case 2: return Array("two\nlines \u{1F332}".utf8)
        case 3: return [0xff, 0xfe, 0xc0, 0x00, 0x80]
        default: return Array("request \(random.below(9_999)) took \(random.below(99)) ms".utf8)
        }
    }

    /// FORMAT §8.2.
    private mutating func fields(_ count: Int) -> [UInt8] {
        var out = little(UInt16(count))
        for index in 0..<count {
            let key = Array("key\(index)".utf8)
            let type = UInt8(1 + random.below(5))
            out += [type, 0] + little(UInt16(key.count)) + key
            switch type {
            case 4: out.append(UInt8(random.below(2)))
            case 5:
                let text = random.bytes(random.below(30))
                out += little(UInt32(text.count)) + text
            default: out += little(random.next())
            }
        }
        return out
    }

    /// Adds sections; returns them as a segment would store them.
    private mutating func dress(_ model: inout ModelRecord) -> [UInt8] {
        var stored = section(1, model.message)
        func kept(_ kind: UInt8, _ body: [UInt8]) {
            model.sections[kind] = body
            stored += section(kind, body)
        }
        if random.chance(2) { kept(2, fields(1 + random.below(5))) }
        let place = random.below(3)
        if place > 0 {
            model.line = UInt32(1 + random.below(40))
            model.file = Array("Sources/App/File\(random.below(5)).swift".utf8)
            model.function = Array("run(_:)".utf8)
        }
        if place == 1 { stored += section(3, little(UInt32(random.below(1_000)))) }
        if place == 2 {
            let head = little(model.line) + little(UInt16(model.file.count))
            kept(4, head + little(UInt16(model.function.count)) + model.file + model.function)
        }
        if random.chance(4) {
            model.trace = random.bytes(25)
            kept(5, model.trace)
        }
        if random.chance(5) {
            model.time = random.next() >> 2
            kept(6, little(model.time))
        }
        if random.chance(6) {
            let parts = [Array("Type".utf8), random.bytes(20), Array("at a\nat b".utf8)]
            kept(7, parts.flatMap { little(UInt32($0.count)) } + parts.flatMap { $0 })
        }
        if random.chance(30) { kept(200, random.bytes(7)) }
        if model.kind != 0 { stored += section(8, [model.kind]) }
        if model.flags & RecordFlags.truncated.rawValue != 0 {
            stored += section(9, little(model.originalLength))
        }
        return stored
    }

    private func section(_ kind: UInt8, _ body: [UInt8]) -> [UInt8] {
        [kind, 0, 0, 0] + little(UInt32(body.count)) + body
    }
}

/// Returns staged records; throws `problems` before the record of that index.
final class FakeSource: RecordSource {
    private let records: [Staged]
    private var problems: [Int: ReadProblem]
    private var index = 0
    private var memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 4_096, alignment: 8)

    init(_ records: [Staged], problems: [Int: ReadProblem] = [:]) {
        self.records = records
        self.problems = problems
    }

    deinit { memory.deallocate() }

    var createdMonotonicNs: UInt64 { records.first?.model.monotonic ?? 0 }
    var process: CordwoodStore.ProcessInfo? { records.first?.thread.process }

    func next(_ record: inout RecordRef) throws(ReadProblem) -> Bool {
        guard let made = try make() else { return false }
        record = made
        return true
    }

    private func make() throws(ReadProblem) -> RecordRef? {
        if let problem = problems.removeValue(forKey: index) { throw problem }
        guard index < records.count else { return nil }
        let staged = records[index]
        let model = staged.model
        index += 1
        let parts = [
            model.logger, model.message, model.file, model.function, staged.storedSections,
            model.context, model.trace,
        ]
        let size = parts.reduce(0) { $0 + $1.count }
        if size > memory.count {
            memory.deallocate()
            memory = .allocate(byteCount: size, alignment: 8)
        }
        var offset = 0
        var placed: [UnsafeRawBufferPointer] = []
        for part in parts {
            let slot = UnsafeMutableRawBufferPointer(
                rebasing: memory[offset..<(offset + part.count)])
            slot.copyBytes(from: part)
            placed.append(UnsafeRawBufferPointer(slot))
            offset += part.count
        }
        var record = RecordRef(thread: staged.thread)
        record.monotonicNs = model.monotonic
        record.writtenNs = model.written
        record.timeNs = model.time
        record.sequence = model.sequence
        record.level = model.level
        record.kind = model.kind
        record.flags = RecordFlags(rawValue: model.flags)
        record.originalLength = model.originalLength
        record.line = model.line
        record.logger = placed[0]
        record.message = placed[1]
        record.file = placed[2]
        record.function = placed[3]
        record.sections = placed[4]
        record.context = placed[5]
        record.trace = placed[6]
        return record
    }
}

/// A directory for one test.
final class Scratch {
    let path: String
    init() {
        var template = Array("\(StorePlace.folder)cordwood-archive-XXXXXX".utf8CString)
        path = String(cString: mkdtemp(&template)!)
    }
    deinit { _ = shell("rm -rf '\(path)'") }

    var names: [String] {
        guard let directory = opendir(path) else { return [] }
        defer { closedir(directory) }
        var found: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != "." && name != ".." { found.append(name) }
        }
        return found.sorted()
    }
}

@discardableResult
func shell(_ command: String) -> (status: Int32, output: [UInt8]) {
    guard let pipe = popen(command, "r") else { return (-1, []) }
    var output: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
        let size = fread(&chunk, 1, chunk.count, pipe)
        if size == 0 { break }
        output += chunk[0..<size]
    }
    return (pclose(pipe), output)
}

func readAll(_ path: String) -> [UInt8] {
    guard let file = fopen(path, "r") else { return [] }
    defer { fclose(file) }
    var out: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 20)
    while true {
        let size = fread(&chunk, 1, chunk.count, file)
        if size == 0 { return out }
        out += chunk[0..<size]
    }
}

func writeAll(_ bytes: some Collection<UInt8>, _ path: String) {
    let file = fopen(path, "w")!
    let all = Array(bytes)
    if !all.isEmpty { fwrite(all, 1, all.count, file) }
    fclose(file)
}

let coverForTests = ArchiveCover(
    laneID: LaneID(high: 1, low: 2), first: 3, last: 5,
    laneName: "20261121T081530Z-812-9f3c5a0de1b27788")

let nameForTests = ArchiveIdentity.fileName(
    of: [coverForTests], ArchiveIdentity.id([coverForTests]))

/// Later than the records.
let createdForTests = UInt64.max >> 1

func writeArchive(
    _ records: [Staged], in scratch: Scratch, codec: Codec = .zstd, level: Int32 = 1,
    effort: BlockEffort = .swift, problems: [Int: ReadProblem] = [:], blockBytes: Int? = nil,
    timeStepNs: UInt64 = 1
) throws -> ArchiveInfo {
    try makeArchive(
        records, in: scratch.path, covers: [coverForTests], codec: codec, level: level,
        effort: effort, problems: problems, blockBytes: blockBytes, timeStepNs: timeStepNs)
}

func makeArchive(
    _ records: [Staged], in directory: String, covers: [ArchiveCover], codec: Codec,
    level: Int32 = 1, effort: BlockEffort = .swift, problems: [Int: ReadProblem] = [:],
    blockBytes: Int? = nil, timeStepNs: UInt64 = 1, recipients: [AgeRecipient] = []
) throws -> ArchiveInfo {
    try ArchiveWriter.write(
        source: FakeSource(records, problems: problems), covers: covers,
        archivesDirectory: FilePath(directory), codec: codec, level: level, now: createdForTests,
        recipients: recipients, effort: effort, blockBytes: blockBytes, timeStepNs: timeStepNs)
}

/// All records and problems of a source; fails the test if the source never ends.
func drain(_ source: any RecordSource, limit: Int = 10_000_000) -> (
    records: [ModelRecord], problems: [ReadProblem]
) {
    var records: [ModelRecord] = []
    var problems: [ReadProblem] = []
    for _ in 0..<limit {
        do {
            guard let record = try source.advance() else { return (records, problems) }
            records.append(ModelRecord(record))
        } catch {
            problems.append(error)
        }
    }
    XCTFail("the source does not end")
    return (records, problems)
}

// MARK: the bytes of an archive

func blockOffsets(_ path: String) -> [Int] {
    guard let file = try? ArchiveFile(path: FilePath(path)),
        let index = try? ArchiveIndex.load(file, salvage: false)
    else { return [] }
    return index.blocks.map { Int($0.offset) }
}

func littleAt(_ bytes: [UInt8], _ at: Int) -> UInt64 {
    bytes.withUnsafeBytes { $0.word(at, UInt64.self) }
}

func resealHeader(_ bytes: inout [UInt8], _ head: Int) {
    let crc = bytes.withUnsafeBytes {
        checksum(
            UnsafeRawBufferPointer(rebasing: $0[head..<(head + 128)]),
            zeroAt: BlockHeader.headerCRC)
    }
    let at = head + BlockHeader.headerCRC
    bytes.replaceSubrange(at..<(at + 4), with: little(crc))
}

func peakMemory() -> Int {
    var usage = rusage()
    getrusage(RUSAGE_SELF.rawValue, &usage)
    return usage.ru_maxrss * 1_024
}
