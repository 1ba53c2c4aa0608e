// Records as OTLP JSON lines, one ExportLogsServiceRequest per line, as the OpenTelemetry
// Collector's file exporter writes and its file receiver reads them. `cordwood export` prints them.
// A line is held until it is full. Owned by one thread.

import CordwoodStore

public struct OTLPLines {
    /// The limit of a line; a larger record gets a line of its own.
    private static let lineBytesMax = 256 << 10

    private var encoder = OTLPEncoder(.json, entryBytesMax: 128 << 20)
    private var bytes = 0

    public init() {}

    /// Takes a record; appends the previous line if it is full.
    public mutating func append(_ record: RecordRef, to out: inout [UInt8]) {
        var entry: [UInt8] = []
        encoder.makeEntry(record, distinctNs: record.timeNs, messageBytesMax: .max, &entry)
        let cost = encoder.cost(entry, record)
        if bytes > 0, bytes + cost > OTLPLines.lineBytesMax { finish(&out) }
        bytes += cost
        encoder.take(entry, record, &out)
    }

    /// Appends the last, incomplete line.
    public mutating func finish(_ out: inout [UInt8]) {
        guard bytes > 0 else { return }
        encoder.end(&out)
        out.append(0x0A)
        bytes = 0
    }
}
