// Bodies for Loki's push interface: streams by labels, each with its lines in order. Labels are few
// and bounded (the service, one of eight levels, the host's fixed labels). Everything else is
// structured metadata; whatever exceeds its limits follows the message in the line. Loki merges
// lines of one stream with the same time and text, so each record gets a time that differs from its
// neighbours' (`distinctNs`). Holds a whole body until its end, which the limit bounds
// (LokiDialect.bodyBytesMax). One thread at a time.

import CordwoodCore
import CordwoodFormats
import CordwoodStore

struct LokiEncoder: RecordEncoder {
    let origin: Origin
    /// The labels of every stream, as `,"name":"value"`.
    private let fixedLabels: [UInt8]
    private let hasMetadata: Bool
    /// The names before any field is added.
    private let names: FieldNames
    private var streams: [Stream] = []
    private var numbers: [[UInt8]: Int] = [:]

    /// Loki's own default is 256 KiB.
    static let lineBytesMax = 256_000
    /// Loki's own defaults are 64 KiB and 128; servers add metadata of their own.
    static let metadataBytesMax = 24 << 10
    static let metadataCountMax = 100
    /// The limit of the text after the message.
    static let tailBytesMax = 64 << 10
    static let serviceBytesMax = 1_000

    private struct Stream {
        /// `{"stream":{…},"values":[`
        var head: [UInt8]
        var values: [UInt8] = []
    }

    init(origin: Origin, labels: [(name: String, value: String)], hasMetadata: Bool) {
        self.origin = origin
        self.hasMetadata = hasMetadata
        names = FieldNames(.identifier, own: LokiEncoder.own + labels.map(\.name))
        var fixed: [UInt8] = []
        for (name, value) in labels {
            fixed.append(0x2c)
            JSONText.string(name, &fixed)
            fixed.append(0x3a)
            JSONText.string(value, &fixed)
        }
        fixedLabels = fixed
    }

    /// The frame, and one stream's head; each byte of its service may take six.
    var frameBytes: Int {
        128 + 6 * LokiEncoder.serviceBytesMax + fixedLabels.count
    }

    mutating func begin(_ out: inout [UInt8]) {
        streams = []
        numbers = [:]
    }

    func cost(_ entry: [UInt8], _ record: RecordRef) -> Int {
        let labels = labels(of: record)
        let isNew = numbers[labels] == nil
        return entry.count + 1 + (isNew ? labels.count + 32 : 0)
    }

    mutating func take(_ entry: [UInt8], _ record: RecordRef, _ out: inout [UInt8]) {
        let labels = labels(of: record)
        let number = numbers[labels] ?? streams.count
        if number == streams.count {
            numbers[labels] = number
            var head: [UInt8] = []
            Literal.append("{\"stream\":", &head)
            head += labels
            Literal.append(",\"values\":[", &head)
            streams.append(Stream(head: head))
        } else {
            streams[number].values.append(0x2c)
        }
        streams[number].values += entry
    }

    mutating func end(_ out: inout [UInt8]) {
        Literal.append("{\"streams\":[", &out)
        for (index, stream) in streams.enumerated() {
            if index > 0 { out.append(0x2c) }
            out += stream.head
            out += stream.values
            Literal.append("]}", &out)
        }
        Literal.append("]}", &out)
        streams = []
        numbers = [:]
    }

    // ── One record ──

    private func labels(of record: RecordRef) -> [UInt8] {
        var labels: [UInt8] = []
        Literal.append("{\"service_name\":", &labels)
        var service = origin.service(of: record)
        service.withUTF8 {
            let text = UnsafeRawBufferPointer($0)
            let end = UTF8Scan.end(of: text, at: LokiEncoder.serviceBytesMax)
            // SAFETY: a shorter view of the same bytes.
            _ = unsafe JSONText.string(UnsafeRawBufferPointer(rebasing: text[..<end]), &labels)
        }
        Literal.append(",\"level\":\"", &labels)
        Literal.append(LokiEncoder.level(record.level), &labels)
        labels.append(0x22)
        labels += fixedLabels
        labels.append(0x7d)
        return labels
    }

    /// The words that Grafana knows; metadata has the exact level.
    private static func level(_ level: UInt8) -> StaticString {
        switch level {
        case 1...4: "trace"
        case 5...8: "debug"
        case 9: "info"
        case 10...12: "notice"
        case 13...16: "warn"
        case 17...20: "error"
        case 21...: "fatal"
        default: "unknown"
        }
    }

    /// `["time","line",{"name":"value",…}]`
    func makeEntry(
        _ record: RecordRef, distinctNs: UInt64, messageBytesMax: Int, _ out: inout [UInt8]
    ) {
        var metadata: [UInt8] = []
        var tail: [UInt8] = []
        facts(record, &metadata, &tail)
        // Each byte that is not UTF-8 takes three.
        let room = LokiEncoder.lineBytesMax - tail.count - LokiEncoder.markBytesMax
        let lineMax = UTF8Scan.isValid(record.message) ? room : room / 3
        let cut = Cut.message(of: record, to: min(messageBytesMax, lineMax))
        Literal.append("[\"", &out)
        Digits.append(Times.signed(distinctNs), to: &out)
        Literal.append("\",\"", &out)
        _ = JSONText.content(cut.message, &out)
        out.append(contentsOf: Cut.mark(of: cut).utf8)
        unsafe tail.withUnsafeBytes { _ = JSONText.content($0, &out) }
        out.append(0x22)
        if !metadata.isEmpty {
            out.append(0x2c)
            out += metadata
        }
        out.append(0x5d)
    }

    private static let markBytesMax = 64

    /// The names in `facts`, and the labels of every stream.
    private static let own = [
        "service_name", "level", "severity", "logger", "pid", "tid", "thread", "process", "file",
        "line", "function", "trace_id", "span_id", "kind", "record_id",
    ]

    /// Everything in a record besides its message, as metadata, and the rest that does not fit
    /// there.
    private func facts(
        _ record: RecordRef, _ metadata: inout [UInt8], _ tail: inout [UInt8]
    ) {
        var names = self.names
        var pairs = LokiPairs(hasMetadata: hasMetadata)
        let process = record.thread.process
        func add(_ key: StaticString, _ write: (inout [UInt8]) -> Void) {
            var value: [UInt8] = []
            write(&value)
            guard !value.isEmpty else { return }
            unsafe pairs.add(Array(Bytes.literal(key)), value)
        }
        add("severity") { Levels.append(record.level, to: &$0) }
        add("logger") { unsafe $0.append(contentsOf: record.logger) }
        add("pid") { Digits.append(UInt64(process.processID), to: &$0) }
        add("tid") { Digits.append(UInt64(record.thread.threadID), to: &$0) }
        add("thread") { $0.append(contentsOf: record.thread.name.utf8) }
        add("process") { $0.append(contentsOf: process.name.utf8) }
        add("file") { unsafe $0.append(contentsOf: record.file) }
        add("line") { if record.line > 0 { Digits.append(UInt64(record.line), to: &$0) } }
        add("function") { unsafe $0.append(contentsOf: record.function) }
        add("trace_id") { Hex.append(record.traceID, to: &$0) }
        add("span_id") { Hex.append(record.spanID, to: &$0) }
        add("kind") { JSONLine.kind(record.kind, &$0) }
        add("record_id") { record.id.append(to: &$0) }
        for field in UniqueFields.of(record) {
            var value: [UInt8] = []
            FieldText.append(field.value, to: &value)
            pairs.add(names.name(field.key), value)
        }
        for (key, value) in process.attributes(without: [ProcessOrigin.serviceKey]) {
            var key = key
            pairs.add(
                key.withUTF8 { names.name(UnsafeRawBufferPointer($0)) }, Array(value.utf8))
        }
        metadata = pairs.metadata()
        tail = pairs.tail
    }
}

/// Names and values besides the message: metadata while there is room, then text after the line.
private struct LokiPairs {
    let hasMetadata: Bool
    private var members: [UInt8] = []
    private var bytes = 0
    private var count = 0
    /// ` name=value`, like log lines written by hand.
    private(set) var tail: [UInt8] = []
    private var isFull = false

    init(hasMetadata: Bool) { self.hasMetadata = hasMetadata }

    mutating func add(_ name: [UInt8], _ value: [UInt8]) {
        let size = name.count + value.count * 3
        guard hasMetadata, count < LokiEncoder.metadataCountMax,
            bytes + size <= LokiEncoder.metadataBytesMax
        else { return addToTail(name, value) }
        members.append(count == 0 ? 0x7b : 0x2c)
        JSONText.string(name, &members)
        members.append(0x3a)
        JSONText.string(value, &members)
        bytes += size
        count += 1
    }

    /// Empty: none.
    func metadata() -> [UInt8] { count == 0 ? [] : members + [0x7d] }

    private mutating func addToTail(_ name: [UInt8], _ value: [UInt8]) {
        var text: [UInt8] = [0x20]
        text += name
        text.append(0x3d)
        let isWord =
            !value.isEmpty
            && value.allSatisfy { $0 > 0x20 && $0 < 0x7f && $0 != 0x22 && $0 != 0x3d }
        if isWord {
            text += value
        } else {
            JSONText.string(value, &text)
        }
        // Marks a full tail, which then stays unchanged.
        let mark = Array(" …".utf8)
        let room = LokiEncoder.tailBytesMax - tail.count - mark.count
        if isFull || text.count <= room {
            if !isFull { tail += text }
            return
        }
        unsafe text.withUnsafeBytes {
            let end = UTF8Scan.end(of: $0, at: room)
            unsafe tail.append(contentsOf: $0[..<end])
        }
        tail += mark
        isFull = true
    }
}
