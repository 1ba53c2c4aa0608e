// Records as OTLP JSON lines, one ExportLogsServiceRequest a line, as the OpenTelemetry Collector's
// file exporter writes them and its file receiver reads them. What `cordwood export` prints. A line
// is held until it is full. Owned by one thread.

import CordwoodStore

public struct OTLPLines {
    /// Of a line; a record larger than this stands alone.
    private static let lineBytesMax = 256 << 10

    private var encoder = OTLPEncoder(.json, entryBytesMax: 128 << 20)
    private var bytes = 0

    public init() {}

    /// Takes a record; appends a line where the one before is full.
    public mutating func append(_ record: RecordRef, to out: inout [UInt8]) {
        var entry: [UInt8] = []
        // A record of a store has no place in an archive, so it has no id.
        let place = RecordPlace(archiveID: "", ordinal: 0)
        encoder.makeEntry(record, place, messageBytesMax: .max, &entry)
        let cost = encoder.cost(entry, record)
        if bytes > 0, bytes + cost > OTLPLines.lineBytesMax { finish(&out) }
        bytes += cost
        encoder.take(entry, record, &out)
    }

    /// Appends the line that is not full.
    public mutating func finish(_ out: inout [UInt8]) {
        guard bytes > 0 else { return }
        encoder.end(&out)
        out.append(0x0A)
        bytes = 0
    }
}
