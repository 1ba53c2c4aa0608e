// Makes lane files, segments, catalogs and journals byte by byte from docs/FORMAT.md, so that the
// reader is tested against the document and not against the writer. Test code: arrays of bytes, no
// limits.

import CordwoodCore
import CordwoodStore
import CordwoodTestSupport
import Glibc

struct ByteWriter {
    var bytes: [UInt8] = []

    mutating func u8(_ v: UInt8) { bytes.append(v) }
    mutating func u16(_ v: UInt16) { int(v) }
    mutating func u32(_ v: UInt32) { int(v) }
    mutating func u64(_ v: UInt64) { int(v) }
    mutating func text(_ v: String) { bytes.append(contentsOf: v.utf8) }
    mutating func raw(_ v: [UInt8]) { bytes.append(contentsOf: v) }
    mutating func pad(to size: Int) { while bytes.count < size { bytes.append(0) } }

    mutating func str(_ v: String) {
        var n = v.utf8.count
        while n >= 128 {
            u8(UInt8(n & 127) | 128)
            n >>= 7
        }
        u8(UInt8(n))
        text(v)
    }

    private mutating func int<T: FixedWidthInteger>(_ v: T) {
        withUnsafeBytes(of: v.littleEndian) { bytes.append(contentsOf: $0) }
    }

    static func put<T: FixedWidthInteger>(_ v: T, at: Int, in bytes: inout [UInt8]) {
        withUnsafeBytes(of: v.littleEndian) { source in
            for (index, byte) in source.enumerated() { bytes[at + index] = byte }
        }
    }
}

/// CRC-32C, bit by bit, from FORMAT §1.
func slowCRC(_ parts: ArraySlice<UInt8>...) -> UInt32 {
    var crc: UInt32 = 0xFFFF_FFFF
    for part in parts {
        for byte in part {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc & 1 != 0 ? crc >> 1 ^ 0x82F6_3B78 : crc >> 1 }
        }
    }
    return ~crc
}

enum TestField {
    case int(Int64), uint(UInt64), double(Double), bool(Bool), string(String)
}

func fieldBytes(_ fields: [(String, TestField)]) -> [UInt8] {
    var w = ByteWriter()
    w.u16(UInt16(fields.count))
    for (key, value) in fields {
        let type: UInt8 =
            switch value {
            case .int: 1
            case .uint: 2
            case .double: 3
            case .bool: 4
            case .string: 5
            }
        w.u8(type)
        w.u8(0)
        w.u16(UInt16(key.utf8.count))
        w.text(key)
        switch value {
        case .int(let v): w.u64(UInt64(bitPattern: v))
        case .uint(let v): w.u64(v)
        case .double(let v): w.u64(v.bitPattern)
        case .bool(let v): w.u8(v ? 1 : 0)
        case .string(let v):
            w.u32(UInt32(v.utf8.count))
            w.text(v)
        }
    }
    return w.bytes
}

func section(_ kind: UInt8, _ content: [UInt8]) -> [UInt8] {
    var w = ByteWriter()
    w.u8(kind)
    w.u8(0)
    w.u16(0)
    w.u32(UInt32(content.count))
    w.raw(content)
    return w.bytes
}

final class ChunkBuilder {
    var serial: UInt32
    var sequence: UInt32
    var stream: UInt8 = 0
    /// The version of the lane's resource.
    var resource: UInt16 = 0
    var base: UInt64
    var threadID: UInt32 = 77
    var name = "worker"
    var size = 0
    var isSettled = true
    /// Makes `final` (and so the chunk) this much shorter than what is committed.
    var finalShort = 0
    var records: [UInt8] = []
    var isCRCRight = true

    init(thread: UInt32, sequence: UInt32, base: UInt64) {
        serial = thread
        self.sequence = sequence
        self.base = base
    }

    /// Settles the chunk this much short of what the writer committed.
    func cut(by bytes: Int) {
        isSettled = true
        finalShort = bytes
    }

    @discardableResult
    func record(
        _ type: UInt8, at ticks: UInt64 = 0, id: UInt32 = 0, level: UInt8 = 9,
        flags: UInt16 = 0, _ payload: [UInt8]
    ) -> ChunkBuilder {
        var w = ByteWriter()
        w.u32(UInt32(16 + payload.count))
        w.u32(UInt32(truncatingIfNeeded: ticks &- base))
        w.u32(id)
        w.u8(level)
        w.u8(type)
        w.u16(flags)
        w.raw(payload)
        while w.bytes.count % 8 != 0 { w.u8(0xEE) }
        records += w.bytes
        return self
    }

    @discardableResult
    func text(_ message: String, at ticks: UInt64, logger: UInt32 = 0, level: UInt8 = 9)
        -> ChunkBuilder
    {
        record(1, at: ticks, id: logger, level: level, Array(message.utf8))
    }

    func newBase(_ ticks: UInt64) {
        var w = ByteWriter()
        w.u64(ticks)
        record(4, at: base, level: 0, w.bytes)
        base = ticks
    }

    var end: Int { 128 + records.count }

    func bytes(salt: UInt64, offset: Int, chunkBase: UInt64, sealed: Bool) -> [UInt8] {
        let needed = (end + 1_023) / 1_024 * 1_024
        let whole = max(size, needed)
        var w = ByteWriter()
        w.u64(salt)
        w.u32(UInt32(end))
        w.u32(UInt32(whole))
        w.u64(UInt64(offset))
        w.u64(chunkBase)
        w.u32(serial)
        w.u32(sequence)
        w.u32(threadID)
        w.u8(stream)
        w.u8(0)
        w.u16(resource)
        w.text(name)
        w.pad(to: 64)
        let final = end - finalShort
        w.u32(isSettled || sealed ? UInt32(final) : 0)
        w.u32(0)
        w.pad(to: 128)
        w.raw(records)
        w.pad(to: whole)
        if sealed {
            let crc = slowCRC(w.bytes[12..<64], w.bytes[128..<final])
            ByteWriter.put(isCRCRight ? crc : ~crc, at: 68, in: &w.bytes)
        }
        return w.bytes
    }
}

final class SegmentBuilder {
    var number: UInt64
    var generation: UInt32
    var laneID: LaneID
    var bootID: LaneID
    var salt: UInt64
    var state: UInt32 = 1
    var created: UInt64 = 0
    var ticksPerSecond: UInt64 = 1_000_000_000
    /// Ticks, monotonic, realtime.
    var pairs: [(UInt64, UInt64, UInt64)] = [(0, 0, 1_000_000_000_000)]
    var chunks: [ChunkBuilder] = []
    private var bases: [UInt64] = []
    /// Granules left empty before each chunk.
    var holes = 0
    /// What the header of a sealed one says of the end of its last chunk, instead of the truth.
    var end: UInt64?
    fileprivate weak var lane: LaneBuilder?

    init(number: UInt64, generation: UInt32 = 0, laneID: LaneID, bootID: LaneID) {
        self.number = number
        self.generation = generation
        self.laneID = laneID
        self.bootID = bootID
        salt = 0x5A17_0000 + number &* 97 &+ UInt64(generation) + 1
    }

    @discardableResult
    func chunk(thread: UInt32, sequence: UInt32, base: UInt64) -> ChunkBuilder {
        let chunk = ChunkBuilder(thread: thread, sequence: sequence, base: base)
        chunk.resource = lane?.resourceVersion ?? 0
        chunks.append(chunk)
        bases.append(base)
        return chunk
    }

    func offset(of index: Int) -> Int {
        var at = 4_096
        for i in 0..<index {
            at += holes * 1_024 + max(chunks[i].size, (chunks[i].end + 1_023) / 1_024 * 1_024)
        }
        return at + holes * 1_024
    }

    func bytes(size: Int? = nil) -> [UInt8] {
        let sealed = state == 3
        var body: [UInt8] = []
        for (index, chunk) in chunks.enumerated() {
            body += [UInt8](repeating: 0, count: holes * 1_024)
            body += chunk.bytes(
                salt: salt, offset: 4_096 + body.count, chunkBase: bases[index], sealed: sealed)
        }
        let total = size ?? max(65_536, 4_096 + body.count)
        var w = ByteWriter()
        w.text("CWSEGM01")
        w.u32(1)
        w.u32(4_096)
        w.u64(0)
        w.u64(0)
        w.u64(laneID.high)
        w.u64(laneID.low)
        w.u64(bootID.high)
        w.u64(bootID.low)
        w.u64(number)
        w.u32(generation)
        w.u32(2)
        w.u64(salt)
        w.u64(UInt64(total))
        w.u64(ticksPerSecond)
        w.u64(created)
        w.u32(state)
        w.pad(to: 128)
        w.u64(UInt64(4_096 + body.count))
        w.pad(to: 256)
        w.u64(UInt64(total))
        w.pad(to: 512)
        w.u32(0)
        w.u32(UInt32(pairs.count))
        w.pad(to: 576)
        for (ticks, monotonic, realtime) in pairs {
            w.u64(ticks)
            w.u64(monotonic)
            w.u64(monotonic)
            w.u64(realtime)
        }
        w.pad(to: 4_096)
        if sealed {
            var at = 0
            var heads: [UInt8] = []
            for chunk in chunks {
                at += holes * 1_024
                heads += body[(at + 12)..<(at + 72)]
                at += max(chunk.size, (chunk.end + 1_023) / 1_024 * 1_024)
            }
            ByteWriter.put(end ?? UInt64(4_096 + body.count), at: 384, in: &w.bytes)
            ByteWriter.put(slowCRC(heads[...]), at: 400, in: &w.bytes)
            let crc = slowCRC(w.bytes[..<112], w.bytes[384..<404], w.bytes[512...])
            ByteWriter.put(crc, at: 404, in: &w.bytes)
        }
        w.raw(body)
        w.pad(to: total)
        return w.bytes
    }
}

final class LaneBuilder {
    let store: String
    let name: String
    var laneID: LaneID
    var bootID: LaneID
    var salt: UInt64 = 0xCA7A_1060
    var processID: UInt32 = 812
    var processName = "tester"
    var processStart: UInt64 = 1
    var processNamespace: UInt64 = 0
    var createdRealtime: UInt64 = 1_000_000_000_000
    var createdMonotonic: UInt64 = 0
    var archivedBelow: UInt64 = 0
    var closed: UInt32 = 0
    var catalog: [[UInt8]] = []
    /// Of the chunks that are made from here on.
    var resourceVersion: UInt16 = 0
    /// dropped, reported, first, last.
    var drops: [(UInt64, UInt64, UInt64, UInt64)] = []
    var first: SegmentBuilder
    var segments: [SegmentBuilder] = []

    init(
        store: String, name: String = "20261121T081530Z-812-9f3c5a0de1b27788", id: UInt64 = 7,
        boot: UInt64 = 0
    ) {
        self.store = store
        self.name = name
        laneID = LaneID(high: id, low: 1)
        bootID = LaneID(high: boot, low: boot)
        first = SegmentBuilder(number: 0, laneID: laneID, bootID: bootID)
        first.state = 1
        first.lane = self
    }

    func segment(_ number: UInt64, generation: UInt32 = 0) -> SegmentBuilder {
        let made = SegmentBuilder(
            number: number, generation: generation, laneID: laneID, bootID: bootID)
        made.lane = self
        segments.append(made)
        return made
    }

    func logger(_ id: UInt32, _ name: String) { catalog.append(entry(1, id, Array(name.utf8))) }

    func site(
        _ id: UInt32, line: UInt32, file: String, function: String, format: String,
        types: [UInt8] = []
    ) {
        var w = ByteWriter()
        w.u32(line)
        w.u8(0)
        w.u8(UInt8(types.count))
        w.u16(0)
        w.str(file)
        w.str(function)
        w.str(format)
        w.raw(types)
        catalog.append(entry(2, id, w.bytes))
    }

    func resource(_ key: String, _ value: String) {
        resourceVersion += 1
        catalog.append(change(resourceVersion, key, value))
    }

    /// An entry that makes that version of the resource.
    func change(_ version: UInt16, _ key: String, _ value: String) -> [UInt8] {
        var w = ByteWriter()
        w.str(key)
        w.str(value)
        return entry(3, UInt32(version), w.bytes)
    }

    /// The header of a file of names that the lane grew; entries follow.
    func catalogHead() -> ByteWriter {
        var w = ByteWriter()
        w.text("CWCATA01")
        w.u32(1)
        w.u32(0)
        w.u64(laneID.high)
        w.u64(laneID.low)
        w.u64(salt)
        w.pad(to: CatalogHeader.bytes)
        return w
    }

    func entry(_ type: UInt8, _ id: UInt32, _ payload: [UInt8]) -> [UInt8] {
        var w = ByteWriter()
        w.u64(salt)
        w.u32(UInt32(24 + payload.count))
        w.u32(0)
        w.u8(type)
        w.pad(to: 20)
        w.u32(id)
        w.raw(payload)
        ByteWriter.put(slowCRC(w.bytes[16...]), at: 12, in: &w.bytes)
        while w.bytes.count % 16 != 0 { w.u8(0) }
        return w.bytes
    }

    func laneBytes() -> [UInt8] {
        var w = ByteWriter()
        w.text("CWLANE01")
        w.u32(1)
        w.u32(65_536)
        w.u64(0)
        w.u64(0)
        for id in [laneID, bootID, LaneID.zero] {
            w.u64(id.high)
            w.u64(id.low)
        }
        w.u64(salt)
        w.u32(processID)
        w.u32(1_000)
        w.u64(processStart)
        w.u64(processNamespace)
        w.u64(createdRealtime)
        w.u64(createdMonotonic)
        for word: UInt32 in [8_192, 8_192, 4_096, 64, 16_384, 49_152] { w.u32(word) }
        w.u16(UInt16(processName.utf8.count))
        w.pad(to: 160)
        w.text(processName)
        w.pad(to: 512)
        w.u64(archivedBelow)
        w.pad(to: 576)
        w.u32(closed)
        w.pad(to: 4_096)
        for (dropped, reported, from, to) in drops {
            for word in [dropped, reported, from, to] { w.u64(word) }
            w.pad(to: (w.bytes.count + 63) / 64 * 64)
        }
        w.pad(to: 8_192)
        for entry in catalog { w.raw(entry) }
        w.pad(to: 16_384)
        w.raw(first.bytes(size: 49_152))
        w.pad(to: 65_536)
        return w.bytes
    }

    static func digits(_ value: UInt64, _ width: Int) -> String {
        let text = String(value)
        return String(repeating: "0", count: max(0, width - text.count)) + text
    }

    func path(_ s: SegmentBuilder) -> String {
        let numbers = Self.digits(s.number, 8) + "-" + Self.digits(UInt64(s.generation), 4)
        return "\(store)/lanes/\(name).\(numbers).\(s.state == 3 ? "sealed" : "seg")"
    }

    var lanePath: String { "\(store)/lanes/\(name).lane" }

    func write() {
        mkdir(store, 0o700)
        mkdir(store + "/lanes", 0o700)
        for segment in segments { TestFiles.write(segment.bytes(), to: path(segment)) }
        TestFiles.write(laneBytes(), to: lanePath)
    }

    func source(boot: LaneID = .zero, _ range: ClosedRange<UInt64>? = nil) throws -> LaneSource {
        try LaneSource.open(
            directory: FilePath(store), lane: name, segments: range, runningBoot: boot)
    }
}

enum TestFiles {
    static func directory() -> String {
        var template = Array("\(StorePlace.folder)cordwood-read-XXXXXX".utf8CString)
        return template.withUnsafeMutableBufferPointer { String(cString: mkdtemp($0.baseAddress!)) }
    }

    /// In place, as a writer would: a reader's descriptor stays valid.
    static func write(_ bytes: [UInt8], to path: String) {
        let fd = open(path, O_CREAT | O_RDWR, 0o600)
        precondition(fd >= 0, path)
        _ = bytes.withUnsafeBytes { pwrite(fd, $0.baseAddress, $0.count, 0) }
        ftruncate(fd, bytes.count)
        close(fd)
    }

    static func size(_ path: String) -> Int {
        var facts = stat()
        return stat(path, &facts) == 0 ? Int(facts.st_size) : 0
    }

    static func remove(_ path: String) {
        for name in (try? LaneFiles.names(in: FilePath(path))) ?? [] { remove("\(path)/\(name)") }
        _ = Glibc.remove(path)
    }
}

/// What a source returns, as strings and problems.
struct Drained {
    var messages: [String] = []
    var json: [String] = []
    var problems: [ReadProblem] = []
    var times: [UInt64] = []
    var sequences: [UInt64] = []
    var flags: [RecordFlags] = []

    init(_ source: any RecordSource, limit: Int = 1_000_000) {
        var steps = 0
        while steps < limit {
            steps += 1
            do {
                guard let r = try source.advance() else { return }
                messages.append(String(decoding: r.message, as: UTF8.self))
                var line: [UInt8] = []
                JSONLine.append(r, to: &line)
                json.append(String(decoding: line, as: UTF8.self))
                var text: [UInt8] = []
                TextLine.append(r, to: &text, utc: true, color: true)
                times.append(r.monotonicNs)
                sequences.append(r.sequence)
                flags.append(r.flags)
            } catch {
                problems.append(error)
            }
        }
        messages.append("no end after \(limit) steps")
    }
}
